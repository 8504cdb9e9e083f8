"""Errors carry the layer, the place, the way out, and what was going on."""

import pytest

from jumar.base import Loc, OpError, during, nearest


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
    assert "" == nearest("Zzz", ["Softmax", "Exp"])
