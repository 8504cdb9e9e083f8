"""Acceptance: whole networks mapped for three chips, with nothing unexplained."""

from pathlib import Path

import numpy as np
import pytest
from tests.models import zoo

from jumar.compiler.passes import Canonicalize, Fold, FoldScale, Merge, Recognize
from jumar.compiler.passes.precision import Precision, set_precision
from jumar.compiler.passes.select import select
from jumar.device.npu import AI_CPU, CUBE, VECTOR, find_chip
from jumar.frontend import load

MODES = {"310P3": "force_fp16", "910B4": "must_keep_origin_dtype", "950": "must_keep_origin_dtype"}
OCR = {"cls": (1, 3, 48, 192), "det": (1, 3, 640, 640), "rec": (1, 3, 48, 320)}


def simplified(graph):
    """What a compiler for any chip does first."""
    steps = (
        Canonicalize(),
        Fold(),
        Merge(),
        Canonicalize(),
        Recognize(attention=False),
        Canonicalize(),
        FoldScale(),
        Canonicalize(),
        Fold(),
        Merge(),
    )
    for step in steps:
        graph = step(graph)
    return graph


def mapped(graph, soc):
    """The selection on a chip; every choice has a unit and a kind, or says why not."""
    chip = find_chip(soc)
    typed, _ = set_precision(graph, chip, Precision(MODES[soc]))
    selection = select(typed, chip, strict=True)
    assert selection.warnings == ()
    for c in selection.choices.values():
        assert c.source
        assert c.evidence in ("documented", "inferred")
        assert (c.unit and c.kind and c.how in ("aclnn", "ge")) or c.why, c
    return selection


def graphs_of(model, inputs):
    return [simplified(g) for g in load(model).graphs(**inputs) if g.count()]


@pytest.mark.parametrize("name", list(zoo.ZOO))
def test_a_benchmark_network_runs_on_the_cores_of_each_chip(name):
    model, inputs = zoo.build(name, 1)
    graphs = graphs_of(model, inputs)
    assert graphs
    for soc in MODES:
        units = {u: n for graph in graphs for u, n in mapped(graph, soc).by_unit().items()}
        assert units[CUBE] and units[VECTOR]
        assert AI_CPU not in units


@pytest.mark.parametrize("stage", list(OCR))
def test_a_stage_of_pp_ocr_runs_on_the_cores_of_each_chip(stage):
    rapid = pytest.importorskip("rapidocr_onnxruntime", reason="its models come with rapidocr-onnxruntime")
    (path,) = Path(rapid.__file__).parent.glob(f"models/*_{stage}_infer.onnx")
    for graph in graphs_of(path, {"x": np.zeros(OCR[stage], np.float32)}):
        for soc in MODES:
            assert AI_CPU not in mapped(graph, soc).by_unit()
