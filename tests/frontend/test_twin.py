"""A script that asks for an Ascend NPU runs on the CPU, is told so once, and what ran is known."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np
import pytest

from jumar import GRAPH_MODE, PYNATIVE_MODE, Tensor, jit, ops, set_context
from jumar.base import DeviceError
from jumar.frontend import twin


@pytest.fixture(autouse=True)
def _back() -> Iterator[None]:
    yield
    set_context(device_target="CPU", mode=PYNATIVE_MODE)


def test_ascend_without_an_npu_is_the_twin_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("jumar")
    logger.addHandler(caplog.handler)
    try:
        set_context(device_target="Ascend")
        set_context(device_target="Ascend")
    finally:
        logger.removeHandler(caplog.handler)
    said = [r.getMessage() for r in caplog.records if "device_target" in r.getMessage()]
    assert len(said) == 1
    assert "no NPU" in said[0] and "twin of Ascend910B4" in said[0] and "values are computed on this CPU, times are predicted" in said[0]


def test_values_are_those_of_the_cpu_and_operators_are_counted() -> None:
    set_context(device_target="Ascend", mode=PYNATIVE_MODE)
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    for _ in range(3):
        y = ops.add(x, x)
    assert np.array_equal(y.asnumpy(), 2 * x.asnumpy())
    found = twin.watched()
    assert found is not None and found.chip.name == "Ascend910B4"
    assert [(w.graph.name, w.kind, w.runs) for w in found.graphs.values()] == [("add", twin.OPERATOR, 3)]


def test_pieces_of_captured_functions_are_counted() -> None:
    set_context(device_target="Ascend", mode=GRAPH_MODE)

    @jit
    def double(x: Tensor) -> Tensor:
        return ops.exp(x) * 2

    for _ in range(4):
        double(Tensor(np.ones((2, 3), np.float32)))
    found = twin.watched()
    assert found is not None
    assert [(w.kind, w.runs) for w in found.graphs.values()] == [(twin.GRAPH, 4)]


def test_on_the_cpu_nothing_is_watched() -> None:
    set_context(device_target="Ascend")
    set_context(device_target="CPU")
    ops.add(Tensor(1.0), Tensor(2.0))
    assert twin.watched() is None


def test_the_chip_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_SOC", "310P3")
    set_context(device_target="Ascend")
    found = twin.watched()
    assert found is not None and found.chip.name == "Ascend310P3"
    monkeypatch.setenv("JUMAR_SOC", "310P33")
    with pytest.raises(DeviceError, match="310P3"):
        set_context(device_target="Ascend")


def test_an_operator_whose_result_depends_on_values_runs_as_on_the_cpu_and_is_counted() -> None:
    set_context(device_target="Ascend", mode=PYNATIVE_MODE)
    x = Tensor(np.array([[1, 0], [0, 2]], np.float32))
    assert ops.nonzero(x).asnumpy().tolist() == [[0, 0], [1, 1]]
    assert ops.masked_select(x, x > 0).asnumpy().tolist() == [1, 2]
    found = twin.watched()
    assert found is not None
    assert "non_zero" in [w.graph.name for w in found.graphs.values()]
