"""Pieces of a model are tried on what they received when the model ran, not on made-up values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.frontend.build import model

import jumar
from jumar.ir import interpret
from jumar.tools.enable.pieces import compile_pieces

# the second piece gathers at places that the first one found, which made-up numbers would miss
CUT = "g (float[n, 3] x) => (float[k] y) { a = Relu(x) \n i = NonZero(a) \n j = Transpose(i) \n b = GatherND(a, j) \n y = Neg(b) }"
X = np.array([[1, -1, 2], [-3, 4, -5], [6, 7, -8]], np.float32)


def test_later_pieces_get_what_earlier_ones_computed(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model(CUT).SerializeToString())
    loaded = jumar.load(path, threads=1)
    expected = loaded(X)
    first, last = compile_pieces(loaded, {"x": X}, threads=1).pieces
    np.testing.assert_array_equal(first.inputs[0], X)
    assert any(a.shape == X.shape and np.array_equal(a, np.maximum(X, 0)) for a in last.inputs)
    assert any(a.dtype == np.int64 and a.max() == 2 for a in last.inputs), "real indices reach the last row and column"
    np.testing.assert_array_equal(last.instance.run(list(last.inputs))[0], expected)
    np.testing.assert_array_equal(interpret(last.graph, last.inputs)[0], expected)


def test_a_plan_holds_inputs_on_request_only() -> None:
    loaded = jumar.load(model(CUT), threads=1)
    assert all(p.received is None for p in loaded.compile(X).pieces)
    received = [p.received for p in loaded.compile(X, keep_inputs=True).pieces if not p.host]
    assert all(r is not None and len(r) >= 1 for r in received) and len(received) == 2
    (only,) = jumar.load(model("g (float[2] x, float[2] z) => (float[2] y) { y = Add(x, z) }")).compile(
        np.ones(2, np.float32), np.zeros(2, np.float32), keep_inputs=True
    ).pieces  # fmt: skip
    assert [a.tolist() for a in only.received or ()] == [[1, 1], [0, 0]]
