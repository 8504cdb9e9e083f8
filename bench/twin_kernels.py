"""Into how many kernels does the twin put a network, how many of them are TransData, and what do fusion and formats save?

Question: launches of one inference at batch 1 in fp16, on four generations of chips, with CANN's fusion rules on and off.
Machine: any; nothing is run or measured, times are predictions.  Rival: the same graph with every rule off that a switch file can switch off.
The last answer: the table of docs/twin/formats-and-fusion.md, which this prints.
Usage: python bench/twin_kernels.py [NETWORK ...]      networks of tests/models/zoo.py, all of them by default
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.models.zoo import ZOO, build  # noqa: E402

import jumar  # noqa: E402
from jumar.compiler.passes.switches import GROUPS, Switches, rule_names  # noqa: E402
from jumar.compiler.twin.forecast import Forecast, TwinOptions, forecast  # noqa: E402
from jumar.device.npu import find_chip  # noqa: E402

CHIPS = ("310P3", "910A", "910B4", "950")
OFF = Switches(off=frozenset(rule_names()), closed=frozenset(GROUPS))


def transdata_us(found: Forecast) -> float:
    """Predicted time of the conversions between formats."""
    return sum(p.time_us for x, p in zip(found.launches, found.predictions, strict=True) if x.task.kind == "TransData")


def main() -> None:
    print(
        "| network | chip | operators | kernels | of them TransData | their share of the time | all rules off |\n|---|---|---|---|---|---|---|"
    )
    for name in sys.argv[1:] or ZOO:
        proto, feeds = build(name, 1)
        graph = jumar.load(proto, target="cpu").graph(**feeds)
        for chip in CHIPS:
            on = forecast(graph, find_chip(chip))
            off = forecast(graph, find_chip(chip), TwinOptions(switches=OFF))
            count = sum(x.task.kind == "TransData" for x in on.launches)
            total = sum(p.time_us for p in on.predictions)
            operators = sum(c.unit != "" for c in on.selection.choices.values())
            share = f"{100 * transdata_us(on) / total:.0f} %"
            without = f"{len(off.launches)} kernels, {sum(p.time_us for p in off.predictions) / total:.2f} times the time"
            print(f"| {name} | {chip} | {operators} | {len(on.launches)} | {count} | {share} | {without} |", flush=True)


if __name__ == "__main__":
    main()
