"""`x[index]` and `x[index] = v` with everything that NumPy's index may be made of, at once and in captures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jumar import ops
from jumar.frontend import Tensor
from jumar.frontend.capture import jit

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
MASK = np.array([[True, False, True, False], [False] * 4, [True] * 4])
ROWS = np.array([True, False])

GET = """
x[0]
x[-1]
x[0, 1]
x[0, -1, 2]
x[1:]
x[:, 1:3]
x[::-1]
x[:, ::2]
x[..., ::-2]
x[..., 0]
x[..., 1:, 0]
x[None]
x[:, None, 1]
x[0, ..., None]
x[()]
x[...]
x[1:1]
x[5:]
x[-2:10]
x[slice(0, 1)]
x[True]
x[False]
x[[0, 1]]
x[[]]
x[[1, -1, 0]]
x[:, [0, 2]]
x[:, [0, 2], 1:]
x[[0, 1], [1, 2]]
x[[0, 1], :, [0, 1]]
x[[[0], [1]], [[1, 2]]]
x[0, [0, 2], [1, 2]]
x[0, :, [0, 2]]
x[[0, 1], None, 1]
x[t(1)]
x[t(1), 1:]
x[t([0, 1, 1])]
x[:, t([[0, 1], [2, 0]])]
x[t([0, 1]), t([1, -1])]
x[t([0, 1]), ..., t([1, -1])]
x[rows]
x[rows, 1]
x[:, mask]
x[:, mask, None]
x[x > 5]
x[(x > 5) & (x < 11)]
x[x[:, 0, 0] > 5]
x[np_index]
x[range(2)]
""".strip().splitlines()

SET = """
x[0] = 5
x[0, 1] = 2.5
x[:, 1] = v
x[..., -1] = 3
x[::2] = 7
x[:, ::-1] = x * 2
x[:, 1:, :2] = w
x[1:1] = 9
x[...] = 1
x[None, 0] = 4
x[[0, 1]] = 1
x[[0, 1], [1, 2]] = v
x[:, [0, 2]] = 6
x[:, [0, 2], 1:3] = w
x[t([1, 0]), t([1, -1])] = v
x[t(1)] = v
x[mask2] = 0
x[x > 5] = -1
x[:, mask] = 8
x[rows] = v
x[0] += 1
x[x > 5] *= 2
x[1, :2, 1:3] -= w
x[0][1] = 3
""".strip().splitlines()


def _space(tensors: bool) -> dict[str, Any]:
    """Names of the statements, as tensors or as arrays."""
    make: Any = Tensor if tensors else np.array
    return {
        "x": make(X), "t": make, "mask": make(MASK), "rows": make(ROWS), "np_index": np.array([1, 0]),
        "mask2": make(X > 10), "v": make(np.array([1, 2, 3, 4], np.float32)), "w": make(np.array([[1, 2], [3, 4]], np.float32)),
    }  # fmt: skip


@pytest.mark.parametrize("text", GET)
def test_get_is_as_numpy_has_it(text: str) -> None:
    expected = np.asarray(eval(text, _space(False)))
    found = eval(text, _space(True))
    assert (found.shape, found.asnumpy().tolist()) == (expected.shape, expected.tolist())


@pytest.mark.parametrize("text", SET)
def test_set_is_as_numpy_has_it(text: str) -> None:
    expected, found = _space(False), _space(True)
    exec(text, expected)
    exec(text, found)
    assert found["x"].asnumpy().tolist() == expected["x"].tolist()


def test_get_in_a_capture_is_the_same() -> None:
    def run(x: Tensor) -> tuple[Any, ...]:
        space = _space(True) | {"x": x}
        return tuple(eval(text, space) for text in GET)

    for text, found in zip(GET, jit(run)(Tensor(X)), strict=True):
        expected = np.asarray(eval(text, _space(False)))
        assert (found.shape, found.asnumpy().tolist()) == (expected.shape, expected.tolist()), text


def test_set_in_a_capture_is_the_same() -> None:
    def run(x: Tensor) -> tuple[Any, ...]:
        found = []
        for text in SET:
            space = _space(True) | {"x": x + 0}
            exec(text, space)
            found.append(space["x"])
        return tuple(found)

    for text, found in zip(SET, jit(run)(Tensor(X)), strict=True):
        expected = _space(False)
        exec(text, expected)
        assert found.asnumpy().tolist() == expected["x"].tolist(), text


@pytest.mark.parametrize("text", ["x[2]", "x[0, 3]", "x[-3]", "x[[0, 5]]", "x[0, 0, 0, 0]", "x[..., ...]", "x[t([True, False, True])]"])
def test_index_out_of_range_is_an_index_error_in_both_modes(text: str) -> None:
    with pytest.raises(IndexError):
        eval(text, _space(True))
    with pytest.raises(IndexError):
        jit(lambda x: eval(text, _space(True) | {"x": x}))(Tensor(X))


def test_an_index_error_names_the_index() -> None:
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 1 with size 3"):
        jit(lambda x: x[0, 3])(Tensor(X))


def test_assignment_casts_to_the_tensors_type() -> None:
    x = Tensor(np.zeros(3, np.int32))
    x[0] = 2.7
    x[1] = Tensor(3.9)
    assert x.asnumpy().tolist() == [2, 3, 0]


@pytest.mark.parametrize(
    "text", ["x[:, 1]", "x[..., ::2]", "x[[0, 1], [1, 2]]", "x[:, [0, 2, 0]]", "x[x > 5]", "x[:, mask]", "x[0, [0, 2], [1, 2]]"]
)
def test_gradients_flow_through_indices(text: str) -> None:
    torch = pytest.importorskip("torch")
    names = {"mask": MASK}
    x = torch.tensor(X, requires_grad=True)
    (eval(text.replace("mask", "torch.tensor(mask)"), {"x": x, "torch": torch, **names}) ** 2).sum().backward()

    def loss(y: Tensor) -> Tensor:
        return (eval(text, {"x": y, "mask": Tensor(MASK)}) ** 2).sum()

    assert ops.grad(loss)(Tensor(X)).asnumpy().tolist() == x.grad.numpy().tolist()
    assert jit(ops.grad(loss))(Tensor(X)).asnumpy().tolist() == x.grad.numpy().tolist()


@pytest.mark.parametrize(
    ("index", "as_tuple"),
    [
        ([slice(None), slice(1, 3)], (slice(None), slice(1, 3))),
        ([..., 1], (..., 1)),
        ([None, 1], (None, 1)),
        ([[0, 1], [2, 0]], ([0, 1], [2, 0])),
        ([[0, 1]], ([0, 1],)),
        ([0, 1], np.array([0, 1])),
    ],
)
def test_a_list_that_holds_more_than_numbers_is_a_tuple(index: Any, as_tuple: Any) -> None:
    x = Tensor(X)
    assert x[index].asnumpy().tolist() == X[as_tuple].tolist()
    assert jit(lambda y: y[index])(x).asnumpy().tolist() == X[as_tuple].tolist()

    def put(y: Tensor) -> Tensor:
        z = y + 0
        z[index] = -1
        return z

    expected = X.copy()
    expected[as_tuple] = -1
    assert put(x).asnumpy().tolist() == expected.tolist()
    assert jit(put)(x).asnumpy().tolist() == expected.tolist()
