"""The context: MindSpore's keys with its errors, and what they do here."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from jumar import context
from jumar.base import DeviceError, config, recording


@pytest.fixture(autouse=True)
def _same_afterwards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(context, "_VALUES", dict(context._VALUES))
    for name in ("JUMAR_SAVE_GRAPHS", "JUMAR_THREADS", "JUMAR_CACHE", "JUMAR_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    before = context.MODE
    yield
    context.set_context(mode=before)
    context.reset_auto_parallel_context()
    for name in ("JUMAR_SAVE_GRAPHS", "JUMAR_THREADS", "JUMAR_CACHE", "JUMAR_CACHE_DIR"):
        os.environ.pop(name, None)


def test_the_default_mode_is_pynative_and_a_script_can_change_it() -> None:
    assert context.get_context("mode") == context.PYNATIVE_MODE
    context.set_context(mode=context.GRAPH_MODE)
    assert context.MODE == context.get_context("mode") == 0


WRONG = [
    ({"mode": 2}, ValueError, "For 'context.set_context', the argument 'mode' should be context.GRAPH_MODE (0) or context.PYNATIVE_MODE (1), but got 2."),
    ({"mode": "x"}, TypeError, "The parameter 'mode' must be <class 'int'>, but got <class 'str'>"),
    ({"enable_graph_kernel": 1}, TypeError, "The parameter 'enable_graph_kernel' must be <class 'bool'>, but got <class 'int'>"),
    ({"device_target": "TPU"}, ValueError,
     "For 'context.set_context', the argument 'device_target' must be one of ['CPU', 'GPU', 'Ascend', 'Davinci'], but got TPU."),
    ({"device_id": 5000}, ValueError, "For 'context.set_context', the argument 'device_id' must be in range [0, 4095], but got 5000."),
    ({"memory_optimize_level": "O9"}, ValueError,
     "For 'context.set_context', the argument 'memory_optimize_level' must be one of ['O0', 'O1'], but got O9."),
    ({"enable_mem_reuse": True}, ValueError,
     "For 'context.set_context', the keyword argument enable_mem_reuse is not recognized! "
     "For detailed usage of 'set_context', please refer to the Mindspore official website."),
    ({"precompile_only": True}, ValueError,
     "For 'context.set_context', the parameter 'precompile_only' has been removed since MindSpore 2.10 version. "
     "Please use the env MS_DEV_PRECOMPILE_ONLY instead."),
    ({"max_call_depth": -1}, ValueError, "For 'context.set_context', the argument 'max_call_depth' must be greater than 0, but got -1."),
    ({"save_graphs": 5}, ValueError, "value for save_graphs should be 0-3 but got '5'"),
    ({"jit_config": {"x": 1}}, ValueError, "For 'context.set_context', the key of argument 'jit_config' must be one of "
     "{'jit_level': ['O0', 'O1', 'O2'], 'infer_boost': ['on', 'off']}, but got x."),
]  # fmt: skip


@pytest.mark.parametrize("given, kind, text", WRONG, ids=lambda v: next(iter(v)) if isinstance(v, dict) else "")
def test_wrong_keys_and_values_say_what_mindspore_says(given: dict[str, object], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        context.set_context(**given)
    assert str(caught.value).startswith(text)


def test_an_unknown_key_gets_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"did you mean save_graphs"):
        context.set_context(save_graph=True)
    with pytest.raises(ValueError, match=r"did you mean device_target"):
        context.get_context("device_targt")


def test_another_device_is_an_error_that_names_the_layer_and_is_a_runtime_error() -> None:
    with pytest.raises(RuntimeError, match="Unsupported device target GPU") as caught:
        context.set_context(device_target="GPU")
    assert isinstance(caught.value, DeviceError)
    assert "no code generator" in str(caught.value)
    assert context.get_context("device_target") == "CPU"


def test_save_graphs_sets_our_setting() -> None:
    context.set_context(save_graphs=True, save_graphs_path="ir")
    assert (context.get_context("save_graphs"), config("save_graphs")) == (2, "ir")
    context.set_context(save_graphs=False)
    assert config("save_graphs") == ""


def test_threads_and_cache_set_our_settings() -> None:
    context.set_context(runtime_num_threads=3, enable_compile_cache=False)
    assert (config("threads"), config("cache"), context.get_context("runtime_num_threads")) == (3, False, 3)


def test_a_key_without_effect_is_checked_kept_and_noted() -> None:
    with recording() as record:
        context.set_context(op_timeout=4, ascend_config={"precision_mode": "force_fp16"})
    assert context.get_context("op_timeout") == 4
    assert context.get_context("ascend_config") == {}
    assert [e.facts["key"] for e in record.events] == ["op_timeout", "ascend_config"]


def test_a_forced_mode_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "_FORCED", None)
    context.force_mode("graph")
    context.set_context(mode=context.PYNATIVE_MODE)
    assert context.MODE == context.GRAPH_MODE


def test_the_parallel_context_checks_keeps_and_resets() -> None:
    context.set_auto_parallel_context(parallel_mode="data_parallel", device_num=2, comm_fusion={"openstate": False})
    assert context.get_auto_parallel_context("device_num") == 2
    assert context.get_auto_parallel_context("comm_fusion")["allreduce"] == {"mode": "auto", "config": None}
    context.reset_auto_parallel_context()
    assert context.get_auto_parallel_context("parallel_mode") == "stand_alone"
    with pytest.raises(
        ValueError, match="only support 'stand_alone', 'data_parallel', 'hybrid_parallel', 'semi_auto_parallel' and 'auto_parallel'"
    ):
        context.set_auto_parallel_context(parallel_mode="x")
    with pytest.raises(ValueError, match=r"Set context keyword devic_num is not recognized! did you mean device_num"):
        context.set_auto_parallel_context(devic_num=2)


def test_parameter_servers_are_refused() -> None:
    assert context.get_ps_context("enable_ps") is False
    with pytest.raises(ValueError, match="Get PS context keyword x is not recognized!"):
        context.get_ps_context("x")
    with pytest.raises(Exception, match="parameter servers do not exist here"):
        context.set_ps_context(enable_ps=True)


def test_devices_are_set_and_asked_for() -> None:
    from jumar.device_manager import get_current_device, set_deterministic, set_device

    set_device("CPU", 0)
    assert get_current_device() == ("CPU", 0)
    set_deterministic(True)
    assert context.get_context("deterministic") == "ON"
    with pytest.raises(RuntimeError, match="Unsupported device target GPU"):
        set_device("GPU")
