"""Tables of the host: api_statistic.csv and operator_details.csv.

In: a `Step`.  Out: rows of text.  A sunk graph has one call of the host for all kernels, so its operators are the graph and what runs on the host.
"""

from __future__ import annotations

import statistics

from jumar.device.npu import HOST_STREAM
from jumar.profiler.ascend.kernels import Rows, number
from jumar.profiler.ascend.step import Step, on_cores

API_STATISTIC = "Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance"
OPERATOR_DETAILS = (
    "Name,Input Shapes,Call Stack,Host Self Duration(us),Host Total Duration(us),Device Self Duration(us),Device Total Duration(us),"
    "Device Self Duration With AICore(us),Device Total Duration With AICore(us)"
)


def api_statistic(step: Step) -> Rows:
    """Calls of the host: launches, and the wait for the end."""
    launches = [s.launched_us - s.launch_us for s in step.device_spans if s.launched_us > s.launch_us]
    last = max((s.launched_us for s in step.line.spans), default=0.0)
    calls = {("node", "launch"): launches, ("acl", "aclrtSynchronizeStream"): [step.line.latency_us - last] if step.line.spans else []}
    rows = [
        [level, name, number(sum(v)), str(len(v)), number(sum(v) / len(v)), number(min(v)), number(max(v)), number(statistics.pvariance(v))]
        for (level, name), v in calls.items()
        if v
    ]
    return [API_STATISTIC.split(","), *rows]


def operator_details(step: Step) -> Rows:
    """Operators as the host starts them, with the time of their kernels."""
    line = step.line
    rows: Rows = [OPERATOR_DETAILS.split(",")]
    if line.mode == "sunk":
        cores = sum(s.time_us for s in step.device_spans if on_cores(step, s))
        device = sum(s.time_us for s in step.device_spans)
        own = line.latency_us - sum(s.time_us for s in line.spans if s.stream == HOST_STREAM)
        rows.append([f"{step.name} (whole graph)", "", "", *(number(x) for x in (own, line.latency_us, device, device, cores, cores))])
    for span in line.spans:
        if line.mode == "sunk" and span.stream != HOST_STREAM:
            continue  # it is launched with the graph
        task = line.tasks[span.index]
        device = span.time_us if span.stream != HOST_STREAM else 0.0
        cores = device if on_cores(step, span) else 0.0
        shapes = ";\r\n".join(",".join(map(str, o.shape)) for o in task.inputs)
        host = span.launched_us - span.launch_us
        rows.append([step.kernel(span), shapes, task.place, *(number(x) for x in (host, host, device, device, cores, cores))])
    return rows
