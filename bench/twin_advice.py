"""Does advice gain what it promises?

Question: for each network, chip and way to run it: what the twin promises for each change, and what it predicts when a person makes the change: an export
at the other batch, other options on the command line, the float model in place of the quantised one.
Machine: any; nothing is run or measured, times are predictions.  Rival: none.
The last answer: the table of docs/twin/advice.md, which this prints; the largest difference is below the table.
Usage: python bench/twin_advice.py [NETWORK ...]      networks of tests/models/zoo.py, all of them by default
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.models.zoo import ZOO, build  # noqa: E402

import jumar  # noqa: E402
from jumar.compiler import Advice, TwinOptions, advise, forecast, parse_precision  # noqa: E402
from jumar.compiler.twin.sizes import batch_of  # noqa: E402
from jumar.device.npu import Chip, find_chip  # noqa: E402
from jumar.ir import Graph  # noqa: E402

WAYS = (  # chip, options, how the table calls it
    ("910B4", TwinOptions(), "fp16, sunk"),
    ("310P3", TwinOptions(), "fp16, sunk"),
    ("910B4", TwinOptions(precision=parse_precision("must_keep_origin_dtype"), mode="stepwise"), "fp32, stepwise"),
    ("910B4", TwinOptions(mode="eager"), "fp16, eager"),
)


def graph_of(name: str, batch: int) -> Graph:
    """A network as it is exported for a batch."""
    proto, feeds = build(name, batch)
    return jumar.load(proto, target="cpu").graph(**feeds)


def by_hand(name: str, advice: Advice, graph: Graph, chip: Chip, options: TwinOptions) -> tuple[float, str]:
    """Time of a run (of a sample, for a batch) when the change is made without advice's help, and how it was made."""
    match advice.kind:
        case "batch":
            batch = batch_of(advice.change.graph)
            return forecast(graph_of(name, batch), chip, options).timeline.latency_us / batch, f"exported at batch {batch}"
        case "sink":
            return forecast(graph, chip, replace(options, mode="sunk")).timeline.latency_us, "--mode sunk"
        case "precision" | "hf32":
            asked = advice.command.split()[1]
            return forecast(graph, chip, replace(options, precision=parse_precision(asked))).timeline.latency_us, f"--precision {asked}"
        case "autofuse":
            return forecast(graph, chip, replace(options, autofuse=True)).timeline.latency_us, "--autofuse"
    return advice.apply().timeline.latency_us, "applied again"


def rows(name: str) -> Iterator[tuple[str, str, Advice, float, str]]:
    """Each advice on a network, with what comes of it."""
    graph = graph_of(name, 1)
    for soc, options, way in WAYS:
        chip = find_chip(soc)
        for advice in advise(forecast(graph, chip, options)):
            yield soc, way, advice, *by_hand(name, advice, graph, chip, options)


def main() -> None:
    print("| network | chip | run in | change | promised | made by hand | how |\n|---|---|---|---|---:|---:|---|")
    worst = 0.0
    for name in sys.argv[1:] or ZOO:
        for soc, way, advice, after, how in rows(name):
            got = 100 * (1 - after / advice.before)
            worst = max(worst, abs(got - advice.percent) / max(abs(advice.percent), 1e-9))
            print(f"| {name} | {soc} | {way} | {advice.title} | {advice.percent:.1f} % | {got:.1f} % | {how} |", flush=True)
    print(f"\nThe largest difference is {100 * worst:.2f} % of the gain.")


if __name__ == "__main__":
    main()
