"""The twin in the report and on the terminal: every figure with its kind, the banner, chips side by side."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace

from rich.console import Console
from tests.tools.enable.twins import too_large, twin

from jumar.tools.enable.console import Teller
from jumar.tools.enable.facts import Environment, ModelFact, Report
from jumar.tools.enable.page import page, tiles
from jumar.tools.enable.twin_facts import BANNER, TwinFact


def report(*twins: TwinFact) -> Report:
    machine = Environment("a CPU", "x86_64", 2, 256, "AVX2", 1, 1, 1, 1, "3.11", "Linux", {}, "no NPU")
    return Report("model", machine, ModelFact("m.onnx", 1, "", {}, (("MatMul", 4),), 10, 40, (), (), ()), twins=twins)


def told(*twins: TwinFact) -> str:
    teller = Teller(quiet=False)
    teller.console = Console(file=io.StringIO(), width=200, soft_wrap=True, highlight=False)
    for t in twins:
        teller.twin(t)
    teller.twins(twins, 12.5)
    assert isinstance(teller.console.file, io.StringIO)
    return teller.console.file.getvalue()


def test_the_page_says_that_nothing_ran_on_an_npu() -> None:
    text = page(report(twin()))
    assert BANNER in text
    assert "A card with Ascend910B4 &lt;x&gt;" in text
    assert text.count('<span class="kind">predicted</span>') > 5


def test_a_page_without_a_twin_has_no_word_of_it() -> None:
    assert "twin" not in re.sub(r"<style>.*?</style>", "", page(report()), flags=re.DOTALL)


def test_chips_are_compared_where_there_are_several() -> None:
    text = page(report(twin(), too_large()))
    assert 'id="compare"' in text
    assert "does not fit: 40 GiB of 21 GiB" in text
    assert "a batch of 4" in text
    assert 'id="compare"' not in page(report(twin()))
    socs = ("Ascend910B4", "Ascend310P3", "Ascend910A")
    shown = [text for _, text in tiles(report(*(replace(twin(), soc=soc) for soc in socs)))]
    assert all(any(text.startswith(f"on {soc}, predicted") for text in shown) for soc in socs)


def test_the_json_document_holds_every_kernel_and_the_derived_figures() -> None:
    document = json.loads(json.dumps(report(twin()).as_json()))["twins"][0]
    assert document["latency"]["kind"] == "predicted"
    assert len(document["kernels"]) == 12
    assert document["costliest"][0] == 11
    assert document["memory"]["saving_percent"] == 70
    assert document["banner"] == BANNER


def test_the_terminal_says_the_kind_of_each_figure() -> None:
    text = told(twin(), too_large())
    assert re.search(r"^twin +A card with Ascend910B4", text, re.MULTILINE)
    assert "predicted; device busy 90 %" in text
    assert "time per sample [52.0 to 68.0]" in text
    assert "12.5 ms measured" in text
    assert "does not fit" in text
    assert text.rstrip().endswith(BANNER)
