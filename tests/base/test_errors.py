"""Errors carry the layer, the place, the way out, and what was going on."""

import copy
import pickle

import pytest

from jumar.base import Loc, OpError, Said, ToolError, during, nearest, reason, told


def test_an_error_names_layer_place_hint_page_and_context():
    with pytest.raises(OpError) as caught, during("compiling graph 'mlp' for cpu"):
        raise OpError(
            "matmul: k must match, got 3 and 5", loc=Loc("model.py", 41, text="h = x @ w"), hint="transpose w", code="dimension-mismatch"
        )
    assert str(caught.value).splitlines() == [
        "OpError: [operators] matmul: k must match, got 3 and 5",
        "  at model.py:41   h = x @ w",
        "  hint: transpose w",
        "  more: jumar explain dimension-mismatch",
        "  while compiling graph 'mlp' for cpu",
    ]


def test_the_nearest_name_is_offered_and_nonsense_gets_none():
    assert "did you mean Softmax?" == nearest("Sofmax", ["Softmax", "Exp"])
    assert "是否指 Softmax？" == told(nearest("Sofmax", ["Softmax", "Exp"]), "zh")
    assert "" == nearest("Zzz", ["Softmax", "Exp"])


def test_an_error_is_told_in_the_language_that_it_is_given():
    with pytest.raises(ToolError) as caught, during(Said("reading --cann", "读取 --cann")):
        raise ToolError(
            Said("compat: version must be one, got 'x'", "compat：'x' 不是版本号"),
            loc=Loc("a.log", 3),
            hint="jumar compat",
            code="version-text",
        )
    english = [
        "ToolError: [tools] compat: version must be one, got 'x'",
        "  at a.log:3",
        "  hint: jumar compat",
        "  more: jumar explain version-text",
        "  while reading --cann",
    ]
    assert english == str(caught.value).splitlines()
    caught.value.language = "zh"
    assert str(caught.value).splitlines() == [
        "ToolError: [tools] compat：'x' 不是版本号",
        "  位置：a.log:3",
        "  提示：jumar compat",
        "  详见：jumar explain version-text",
        "  当时正在读取 --cann",
    ]


def test_both_languages_survive_a_copy_and_another_process():
    error = ToolError(Said("gone", "已不在"), hint=Said("look", "查看"))
    error.language = "zh"
    for same in (copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert str(same) == str(error) == "ToolError: [tools] 已不在\n  提示：查看"


def test_the_reason_of_the_system_has_both_languages_and_what_is_unknown_stays(tmp_path):
    with pytest.raises(OSError) as caught:
        (tmp_path / "none").read_bytes()
    assert ("No such file or directory", "文件或目录不存在") == (reason(caught.value), told(reason(caught.value), "zh"))
    assert "a driver's own" == told(reason(OSError("a driver's own")), "zh")
