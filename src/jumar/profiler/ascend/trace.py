"""trace_view.json: the step as a trace in Chrome's format, with the processes and threads that Ascend's tools look for by name.

In: a `Step`.  Out: a list of events.  Processes: Python (operators as the host starts them), CANN (its launches), Ascend Hardware (kernels by stream),
Communication, Overlap Analysis.  Arrows lead from an operator to its kernels (`async_npu`) and from a launch to its kernel (`HostToDevice`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jumar.device.npu import HOST_STREAM, Span
from jumar.profiler.ascend.communication import message, sent
from jumar.profiler.ascend.kernels import DTYPES, overlap
from jumar.profiler.ascend.step import PREDICTED, Step, computing

PYTHON, HARDWARE, CANN, ANALYSIS, LINKS = 9000, 100, 101, 102, 103
_HOST_THREAD, _GROUP, _PLANE = 9000, 0, 1
Event = dict[str, Any]


def trace(step: Step) -> list[Event]:
    """All events."""
    return [*_names(step), *_host(step), *_kernels(step), *_analysis(step)]


def _names(step: Step) -> Iterator[Event]:
    streams = sorted({s.stream for s in step.device_spans if computing(step, s)})
    threads = {
        PYTHON: ("Python", "CPU", {_HOST_THREAD: f"Thread {_HOST_THREAD}"}),
        CANN: ("CANN", "CPU", {_HOST_THREAD: f"Thread {_HOST_THREAD}"}),
        HARDWARE: ("Ascend Hardware", "NPU", {s: f"Stream {s}" for s in streams}),
        ANALYSIS: ("Overlap Analysis", "NPU", dict(enumerate(overlap(step)))),
        LINKS: ("Communication", "NPU", {_GROUP: "Group default_group Communication", _PLANE: "Plane 0"}),
    }
    for order, (pid, (name, unit, known)) in enumerate(threads.items()):
        yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
        yield {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "args": {"labels": f"{unit}, {PREDICTED}"}}
        yield {"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": order}}
        for i, (tid, thread) in enumerate(known.items()):
            yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": thread}}
            yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": i}}


def _host(step: Step) -> Iterator[Event]:
    line = step.line
    yield _span(f"ProfilerStep#{step.number}", PYTHON, _HOST_THREAD, step.when(0.0), line.latency_us, {"Sequence number": -1}, cat="cpu_op")
    if line.mode == "sunk":
        args = {"Sequence number": 0, "Fwd thread id": 0, "Input Dims": "", "Input type": ""}
        yield _span(f"{step.name} (whole graph)", PYTHON, _HOST_THREAD, step.when(0.0), line.latency_us, args, cat="cpu_op")
    for span in line.spans:
        if line.mode == "sunk" and span.stream != HOST_STREAM:
            continue  # it is launched with the graph
        task = line.tasks[span.index]
        dims, types = (";\r\n".join(x) for x in ((",".join(map(str, o.shape)) for o in task.inputs), (_type(o.dtype) for o in task.inputs)))
        args = {"Sequence number": span.index, "Fwd thread id": 0, "Input Dims": dims, "Input type": types}
        cost = span.launched_us - span.launch_us
        yield _span(step.kernel(span), PYTHON, _HOST_THREAD, step.when(span.launch_us), cost, args, cat="cpu_op")
        if span.stream != HOST_STREAM:
            yield _span("Node@launch", CANN, _HOST_THREAD, step.when(span.launch_us), cost, _launch(step, span))


def _launch(step: Step, span: Span) -> Event:
    name = step.kernel(span)
    return {"Thread Id": _HOST_THREAD, "Mode": "launch", "level": "node", "id": name, "item_id": name, "connection_id": span.index + 1}


def _kernels(step: Step) -> Iterator[Event]:
    line = step.line
    for span in step.device_spans:
        task, prediction = line.tasks[span.index], line.predictions[span.index]
        begun, start = step.when(0.0 if line.mode == "sunk" else span.launch_us), step.when(span.start_us)
        pid, tid = (HARDWARE, span.stream) if computing(step, span) else (LINKS, _GROUP)
        if computing(step, span):
            args: Event = {
                "Model Id": 1 if line.mode == "sunk" else 4294967295, "Task Type": task.core, "Physic Stream Id": span.stream, "Task Id": span.index + 1,
                "Batch Id": 0, "Subtask Id": 4294967295, "connection_id": span.index + 1,
                "predicted us": f"{prediction.time_us:.3f} ({prediction.low_us:.3f} to {prediction.high_us:.3f})", "bottleneck": prediction.bottleneck,
            }  # fmt: skip
            if task.place:
                args["place"] = task.place
            yield _span(step.kernel(span), pid, tid, start, span.time_us, args)
        else:
            yield from _collective(step, span, start)
        if line.mode != "sunk":
            name, flow = f"HostToDevice{span.index + 1}", str(span.index + 1)
            yield {"name": name, "ph": "s", "cat": "HostToDevice", "id": flow, "pid": CANN, "tid": _HOST_THREAD, "ts": begun}
            yield {"name": name, "ph": "f", "bp": "e", "cat": "HostToDevice", "id": flow, "pid": pid, "tid": tid, "ts": start}
        if computing(step, span):
            flow_id = int(start.replace(".", ""))  # nanoseconds of the start: how tools find the kernel of an operator
            yield {
                "ph": "s",
                "bp": "e",
                "name": "async_npu",
                "id": flow_id,
                "pid": PYTHON,
                "tid": _HOST_THREAD,
                "ts": begun,
                "cat": "async_npu",
            }
            yield {"ph": "f", "bp": "e", "name": "async_npu", "id": flow_id, "pid": pid, "tid": tid, "ts": start, "cat": "async_npu"}


def _collective(step: Step, span: Span, start: str) -> Iterator[Event]:
    task = step.line.tasks[span.index]
    count, size, transport = sent(step, span)
    first = next((o for o in task.inputs if o.dtype), None)
    args: Event = {
        "connection_id": span.index + 1,
        "model id": 4294967295,
        "data_type": _type(first.dtype) if first else "",
        "count": sum(o.size for o in task.inputs),
    }
    yield _span(step.kernel(span), LINKS, _GROUP, start, span.time_us, args)
    moved: Event = {
        "notify_id": 0, "duration estimated(us)": span.time_us, "stream id": span.stream, "task id": span.index + 1, "context id": 0, "task type": "Memcpy",
        "src rank": step.rank, "dst rank": (step.rank + 1) % max(2, step.ranks), "transport type": "SDMA", "size(Byte)": message(task), "data type": "INT8",
        "link type": transport, "bandwidth(GB/s)": round(count * size * 1e3 / span.time_us, 4) if span.time_us else 0, "model id": 4294967295,
    }  # fmt: skip
    yield _span("Memcpy", LINKS, _PLANE, start, span.time_us, moved)


def _analysis(step: Step) -> Iterator[Event]:
    for tid, (name, parts) in enumerate(overlap(step).items()):
        for start, end in parts:
            yield {"name": name, "pid": ANALYSIS, "tid": tid, "ts": step.when(start), "dur": round(end - start, 3), "ph": "X"}


def _span(name: str, pid: int, tid: int, ts: str, us: float, args: Event, cat: str = "") -> Event:
    event: Event = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": round(us, 3), "args": args}
    return {**event, "cat": cat} if cat else event


def _type(dtype: Any) -> str:
    return DTYPES.get(dtype.name, dtype.name.upper()) if dtype else ""
