"""The public face: MindSpore's names, found when they are asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import jumar


def fresh(code: str) -> str:
    """What a new process prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_names_are_those_of_the_modules_they_come_from() -> None:
    from jumar.common import dtype
    from jumar.context import set_context
    from jumar.frontend import Tensor

    assert jumar.float32 is dtype.float32
    assert jumar.Tensor is Tensor
    assert jumar.set_context is set_context
    assert (jumar.GRAPH_MODE, jumar.PYNATIVE_MODE) == (0, 1)
    assert jumar.int is jumar.int32


def test_a_misspelt_name_gets_the_nearest() -> None:
    with pytest.raises(AttributeError, match="did you mean Tensor"):
        _ = jumar.Tensr


def test_a_name_that_only_mindspore_has_says_so() -> None:
    with pytest.raises(AttributeError, match=r"MindSpore 2\.10\.0 has mindspore\.dryrun, Jumar does not have it yet"):
        _ = jumar.dryrun
    with pytest.raises(AttributeError, match="no attribute 'no_grad'; did you mean _no_grad"):
        _ = jumar.no_grad


def test_dir_lists_what_can_be_asked_for() -> None:
    assert {"Tensor", "nn", "set_context", "load", "__version__"} <= set(dir(jumar))


def test_the_version_is_ours_unless_jumar_plays_mindspore(monkeypatch: pytest.MonkeyPatch) -> None:
    assert jumar.__version__ == jumar.VERSION
    monkeypatch.setitem(sys.modules, "mindspore", jumar)
    assert jumar.__version__ == "2.10.0"


def test_importing_loads_next_to_nothing() -> None:
    code = "import sys; before = set(sys.modules); import jumar; print(*sorted(m for m in set(sys.modules) - before if 'jumar' not in m))"
    assert {m.split(".")[0] for m in fresh(code).split()} <= {"importlib", "warnings", "__future__", "re", "enum"}


def test_functions_hide_modules_of_their_name() -> None:
    code = (
        "import jumar.common, jumar.common.seed, jumar.common.mutable; print(callable(jumar.common.seed), callable(jumar.common.mutable))"
    )
    assert fresh(code) == "True True"


def test_mindspore_s_runtime_is_found_in_ours() -> None:
    import jumar.runtime

    jumar.runtime.synchronize()
    assert jumar.runtime.memory_allocated() > 0
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = jumar.runtime.nothing
