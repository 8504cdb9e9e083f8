"""Configuration of capturing, marks, and gradients switched off."""

from __future__ import annotations

import pytest

import jumar
from jumar.common.api import _pynative_executor, grad_enabled


def test_a_configuration_is_checked_and_kept() -> None:
    assert jumar.JitConfig(jit_level="O1").jit_config_dict["jit_level"] == "O1"
    with pytest.raises(ValueError, match=r"For 'jit_level' must be one of \['O0', 'O1', 'O2'\]."):
        jumar.JitConfig(jit_level="x")


def test_mutable_gives_the_value_back_and_refuses_texts() -> None:
    values = [jumar.Tensor(1), (2, 3.0), {"a": True}]
    assert jumar.mutable(values) is values
    with pytest.raises(TypeError, match="but got str: a"):
        jumar.mutable("a")
    with pytest.raises(TypeError, match="should be list or tuple"):
        jumar.mutable(1, dynamic_len=True)


def test_marks_give_the_function_back() -> None:
    assert jumar.lazy_inline(abs) is abs
    assert jumar.no_inline(abs) is abs
    assert jumar.lazy_inline(attrs="x")(abs) is abs
    with pytest.raises(ValueError, match="arguments must be those of"):
        jumar.enable_dynamic(y=None)(lambda x: x)


def test_a_symbol_has_bounds() -> None:
    assert jumar.Symbol(max=8, divisor=2).to_dict()["max"] == 8
    with pytest.raises(TypeError, match="the argument 'max' must be int"):
        jumar.Symbol(max="8")


def test_gradients_are_switched_off_in_a_block_and_by_a_decorator() -> None:
    assert grad_enabled()
    with jumar._no_grad():
        assert not _pynative_executor.enable_grad()
        with jumar._no_grad():
            pass
        assert not grad_enabled()
    assert grad_enabled()

    @jumar._no_grad()
    def inside() -> bool:
        return grad_enabled()

    assert not inside()
    assert not inside()


@pytest.mark.parametrize("mode", [jumar.GRAPH_MODE, jumar.PYNATIVE_MODE])
def test_what_is_computed_without_gradients_counts_as_constant(mode: int) -> None:
    before = jumar.get_context("mode")

    def f(x: jumar.Tensor) -> jumar.Tensor:
        with jumar._no_grad():
            scale = x * 3
        return (x * scale).sum()

    try:
        jumar.set_context(mode=mode)
        assert jumar.grad(f)(jumar.Tensor([2.0])).asnumpy().tolist() == [6.0]
    finally:
        jumar.set_context(mode=before)


def test_what_cannot_be_done_says_so() -> None:
    with pytest.raises(NotImplementedError, match="hooks on it do not exist here"):
        jumar.saved_tensors_hooks(abs, abs)
    with pytest.raises(AttributeError, match="MindSpore's eager executor is not here"):
        _ = _pynative_executor.new_graph
    with pytest.raises(NotImplementedError, match="not counted yet"):
        jumar.flops_collection()


def test_recompute_computes() -> None:
    assert jumar.recompute(abs, -3) == 3
    with pytest.raises(TypeError, match="block must be a cell or a function"):
        jumar.recompute(3)


@pytest.mark.parametrize("mode", [jumar.GRAPH_MODE, jumar.PYNATIVE_MODE])
def test_the_gradient_of_a_recomputed_block_is_the_block_s(mode: int) -> None:
    before = jumar.get_context("mode")
    x = jumar.Tensor([1.0, 2.0])
    try:
        jumar.set_context(mode=mode)
        found = jumar.grad(lambda x: jumar.recompute(lambda y: y * y * y, x).sum())(x)
    finally:
        jumar.set_context(mode=before)
    assert found.asnumpy().tolist() == [3.0, 12.0]
