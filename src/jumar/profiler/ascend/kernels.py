"""Tables of kernels: kernel_details.csv and op_summary (the same under other names), op_statistic.csv, step_trace_time.csv.

In: a `Step`.  Out: rows of text, the first of them the header of CANN 8.3.  A counter that the twin does not model is `N/A`; one of cores that the
kernel does not use is 0, as the profiler writes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jumar.device.npu import AI_CPU, COMMUNICATION, CUBE, MIX_CUBE, MIX_VECTOR, VECTOR, Operand, Span
from jumar.profiler.ascend.step import Step, collective_type, computing, union, without

Rows = list[list[str]]
NONE = "N/A"
# what the twin calls a unit that Ascend's profiler does not list among kernels is left out of its tables
LISTED = (CUBE, VECTOR, MIX_CUBE, MIX_VECTOR, AI_CPU, COMMUNICATION)
DTYPES: Mapping[str, str] = {
    "f32": "FLOAT", "f16": "FLOAT16", "bf16": "DT_BF16", "f64": "DOUBLE", "i8": "INT8", "i16": "INT16", "i32": "INT32", "i64": "INT64",
    "u8": "UINT8", "u16": "UINT16", "u32": "UINT32", "u64": "UINT64", "bool": "BOOL", "c64": "COMPLEX64", "c128": "COMPLEX128", "str": "STRING",
    "i4": "INT4", "f8e4m3fn": "FLOAT8_E4M3FN", "f8e5m2": "FLOAT8_E5M2", "f8e8m0": "FLOAT8_E8M0", "f4e2m1": "FLOAT4_E2M1",
}  # fmt: skip
_SHAPES = "Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats,Context ID"
_PIPES = (
    "aicore_time(us),aic_total_cycles,aic_mac_time(us),aic_mac_ratio,aic_scalar_time(us),aic_scalar_ratio,aic_mte1_time(us),aic_mte1_ratio,"
    "aic_mte2_time(us),aic_mte2_ratio,aic_fixpipe_time(us),aic_fixpipe_ratio,aic_icache_miss_rate,aiv_time(us),aiv_total_cycles,aiv_vec_time(us),"
    "aiv_vec_ratio,aiv_scalar_time(us),aiv_scalar_ratio,aiv_mte2_time(us),aiv_mte2_ratio,aiv_mte3_time(us),aiv_mte3_ratio,aiv_icache_miss_rate,"
    "cube_utilization(%)"
)
KERNEL_DETAILS = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim,"
    f"Mix Block Dim,HF32 Eligible,{_SHAPES},{_PIPES}"
)
OP_SUMMARY = (
    "Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us),Block Dim,"
    f"Mix Block Dim,HF32 Eligible,{_SHAPES},{_PIPES}"
)
OP_STATISTIC = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
STEP_TRACE = (
    "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing"
)
# columns of a unit and the twin's pipe behind each
_CUBE_PIPES = (("mac", "cube"), ("scalar", "scalar"), ("mte1", "mte1"), ("mte2", "mte2"), ("fixpipe", "fixpipe"))
_MODELLED = ("cube", "vector", "mte2", "mte3", "scalar")  # a prediction that has pipes leaves out those of these that are idle
_VECTOR_PIPES = (("vec", "vector"), ("scalar", "scalar"), ("mte2", "mte2"), ("mte3", "mte3"))


def kernel_details(step: Step) -> Rows:
    """One row a kernel or collective."""
    return [KERNEL_DETAILS.split(","), *([str(step.number), *_row(step, span)] for span in step.device_spans if _listed(step, span))]


def op_summary(step: Step) -> Rows:
    """The table of `msprof --export`: the same kernels."""
    return [OP_SUMMARY.split(","), *(_row(step, span) for span in step.device_spans if _listed(step, span))]


def op_statistic(step: Step) -> Rows:
    """Kernels by type and core, most time first.   Collectives are not among them."""
    times: dict[tuple[str, str], list[float]] = {}
    for span in step.device_spans:
        task = step.line.tasks[span.index]
        if _listed(step, span) and computing(step, span):
            times.setdefault((task.kind, task.core), []).append(span.time_us)
    total = sum(sum(v) for v in times.values()) or 1.0
    rows = [
        [
            str(step.rank),
            kind,
            core,
            str(len(v)),
            number(sum(v)),
            number(min(v)),
            number(sum(v) / len(v)),
            number(max(v)),
            number(100 * sum(v) / total),
        ]
        for (kind, core), v in sorted(times.items(), key=lambda item: -sum(item[1]))
    ]
    return [OP_STATISTIC.split(","), *rows]


def step_trace(step: Step) -> Rows:
    """How the step divides into computing, communication and nothing."""
    parts = overlap(step)
    spans = step.device_spans
    first, last = (spans[0].start_us, max(s.end_us for s in spans)) if spans else (0.0, 0.0)
    lengths = {name: sum(end - start for start, end in found) for name, found in parts.items()}
    exposed, communication = lengths["Communication(Not Overlapped)"], lengths["Communication"]
    row = [lengths["Computing"], exposed, communication - exposed, communication, lengths["Free"], last - first, 0.0, exposed, first]
    return [STEP_TRACE.split(","), [str(step.rank), str(step.number), *(number(x) for x in row)]]


def overlap(step: Step) -> dict[str, list[tuple[float, float]]]:
    """The four lines of the profiler's overlap analysis, as intervals of the step."""
    spans = step.device_spans
    compute = union([(s.start_us, s.end_us) for s in spans if computing(step, s)])
    communication = union([(s.start_us, s.end_us) for s in spans if not computing(step, s)])
    whole = [(spans[0].start_us, max(s.end_us for s in spans))] if spans else []
    return {
        "Computing": compute,
        "Communication": communication,
        "Communication(Not Overlapped)": without(communication, compute),
        "Free": without(whole, union([*compute, *communication])),
    }


def number(x: float) -> str:
    """Three decimals at most, one at least, as the profiler writes them."""
    text = f"{x:.3f}".rstrip("0")
    return f"{text}0" if text.endswith(".") else text


def _listed(step: Step, span: Span) -> bool:
    return step.line.tasks[span.index].core in LISTED


def _row(step: Step, span: Span) -> list[str]:
    """A row from `Device_id` on."""
    line = step.line
    task, prediction = line.tasks[span.index], line.predictions[span.index]
    device, start, wait = str(step.rank), step.when(span.start_us) + "\t", number(span.wait_us)
    if task.core == COMMUNICATION:
        kind = collective_type(task.kind)
        row = [device, "4294967295", NONE, NONE, step.kernel(span), kind, NONE, COMMUNICATION, start, f"{span.time_us:.3f}", wait, "0"]
        return row + [NONE] * (KERNEL_DETAILS.count(",") - len(row))
    model, state = ("1", "static") if line.mode == "sunk" else ("4294967295", "dynamic")
    blocks = 0 if task.core == AI_CPU else prediction.block_dim
    mixed = blocks * 2 if task.core == MIX_CUBE else blocks // 2 if task.core == MIX_VECTOR else 0
    return [
        device, model, str(span.index + 1), str(span.stream), step.kernel(span), task.kind, state, task.core, start, f"{span.time_us:.3f}", wait,
        str(blocks), str(mixed), "YES" if task.attrs.get("hf32") else "NO", *_operands(task.inputs), *_operands(task.outputs), NONE, *_counters(step, span),
    ]  # fmt: skip


def _operands(operands: Sequence[Operand]) -> list[str]:
    """Shapes, element types and formats.   Shapes carry quotes of their own; an absent operand has an empty place."""
    shapes = ";".join(",".join(map(str, o.shape)) if o.dtype else "" for o in operands)
    dtypes = ";".join(DTYPES.get(o.dtype.name, o.dtype.name.upper()) if o.dtype else "DT_UNDEFINED" for o in operands)
    return [f'"{shapes}"', dtypes, ";".join(o.format if o.dtype else "NULL" for o in operands)]


def _counters(step: Step, span: Span) -> list[str]:
    """Times of pipes, with cycles of the cores that the kernel is cut over."""
    task, prediction, chip = step.line.tasks[span.index], step.line.predictions[span.index], step.line.chip
    cube_us = vector_us = 0.0
    # on the cores: without what any kernel costs before it begins
    on_core = max(0.0, span.time_us - prediction.pipes.get("fixed", 0.0))
    if task.core in (CUBE, MIX_CUBE, MIX_VECTOR):
        cube_us = on_core
    if task.core in (VECTOR, MIX_CUBE, MIX_VECTOR) or (task.core == CUBE and prediction.pipes.get("vector")):
        vector_us = on_core
    blocks = prediction.block_dim
    cube_blocks = max(1, blocks // 2) if task.core == MIX_VECTOR else blocks
    vector_blocks = 2 * blocks if task.core == MIX_CUBE else blocks
    cube_cycles = cube_us * chip.clock_hz / 1e6 * cube_blocks
    # the profiler's figure: cycles of all cores over what they have in the kernel's time
    used = 100 * cube_cycles / (chip.clock_hz / 1e6 * chip.cube_cores * span.time_us) if span.time_us else 0.0
    return [
        number(cube_us), str(round(cube_cycles)), *_pipes(_CUBE_PIPES, prediction.pipes, cube_us), NONE if cube_us else "0.0",
        number(vector_us), str(round(vector_us * chip.vector_clock_hz / 1e6 * vector_blocks)), *_pipes(_VECTOR_PIPES, prediction.pipes, vector_us),
        NONE if vector_us else "0.0", number(min(used, 100.0)),
    ]  # fmt: skip


def _pipes(columns: Sequence[tuple[str, str]], pipes: Mapping[str, float], core_us: float) -> list[str]:
    """Time and ratio of each pipe of one unit."""
    found: list[str] = []
    for _, pipe in columns:
        if not core_us or (pipes and pipe in _MODELLED and pipe not in pipes):
            found += ["0.0", "0.0"]
        elif pipe not in pipes:
            found += [NONE, NONE]
        else:
            found += [number(min(pipes[pipe], core_us)), number(min(pipes[pipe] / core_us, 1.0))]
    return found
