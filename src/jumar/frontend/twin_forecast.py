"""What was watched on the twin becomes forecasts: each graph as MindSpore launches it, and operators of PYNATIVE mode in the order in which they ran.

In: `Watched` of twin.py.  Out: `Forecast`s, and one `Timeline` of all single operators; read by `jumar run --explain` and by the profiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jumar.frontend import twin

if TYPE_CHECKING:
    from jumar.compiler import Forecast, TwinOptions
    from jumar.device.npu import Chip, Prediction, Task, Timeline


def options_of(kind: str, chip: Chip) -> TwinOptions:
    """As MindSpore runs it: operators of PYNATIVE mode one by one; graphs sunk on the first generation and at O2, else kernel by kernel."""
    from jumar.compiler import Precision, TwinOptions  # noqa: PLC0415  (a script for the CPU needs no forecast)
    from jumar.context import get_context  # noqa: PLC0415  (it turns the twin on)

    level = get_context("jit_config").get("jit_level", "")
    sunk = level == "O2" or (not level and chip.arch < 2200)
    keeps = chip.cube_macs.get("f32", 0) > 0  # a cube without f32 computes in f16, whatever the script says
    mode = "eager" if kind == twin.OPERATOR else "sunk" if sunk else "stepwise"
    return TwinOptions(Precision("must_keep_origin_dtype" if keeps else "allow_fp32_to_fp16"), mode, training=True)


def forecast_of(seen: twin.Watched, chip: Chip) -> Forecast:
    """The forecast of one graph or operator."""
    from jumar.compiler import forecast  # noqa: PLC0415  (see options_of)

    return forecast(seen.graph, chip, options_of(seen.kind, chip))


def eager_line(order: Sequence[twin.Watched], forecasts: dict[twin.Watched, Forecast], chip: Chip) -> Timeline | None:
    """Single operators in the order in which they ran, launched one by one; None where none has a forecast."""
    from jumar.device.npu import timeline  # noqa: PLC0415  (see options_of)

    tasks: list[Task] = []
    predictions: list[Prediction] = []
    for seen in order:
        if (f := forecasts.get(seen)) is not None:
            tasks += [x.task for x in f.launches]
            predictions += f.predictions
    return timeline(tasks, predictions, chip, mode="eager", reads=[()] * len(tasks)) if tasks else None
