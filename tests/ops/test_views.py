"""A write to a view is seen in its base and the reverse: at once, under a tape and in a capture alike, as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jumar import ops
from jumar.frontend import Tensor
from jumar.frontend.capture import jit
from jumar.ops.views import reshaped_strides

# statements on t [2, 3, 4]; what is compared is the tuple of the tensors named behind the bar
CASES = """
v = t[0]; v[...] = 5 | t, v
v = t[0]; v.add_(1) | t, v
v = t[:, 1]; v.mul_(2) | t, v
v = t[..., 1:3]; v.fill_(7) | t, v
v = t[0, 1]; v[2] = -1 | t, v
v = t[:, ::2]; v.zero_() | t, v
v = t.view(6, 4); v[0] = 3 | t, v
v = t.view(-1); v[5] = 3 | t, v
v = t.reshape(3, 8); v.add_(10) | t, v
v = t.unsqueeze(1); v[0] = 2 | t, v
v = t[:1].squeeze(0); v[1] = 2 | t, v
v = t.permute(2, 0, 1); v[0] = 9 | t, v
v = t.transpose(0, 1); v[1].mul_(3) | t, v
v = t.narrow(2, 1, 2); v.sub_(1) | t, v
v = t.select(1, 2); v.add_(t[:, 0]) | t, v
v = t.flatten(); v[3] = 1 | t, v
a, b = t.split(1, 0); a.copy_(b) | t, a, b
a, b = t.chunk(2, 2); b.fill_(4) | t, a, b
a, b, c = t.unbind(1); c.copy_(a + b) | t, a, b, c
v = t[0]; t[0, 0] = 100 | t, v
v = t.view(-1); t.mul_(2) | t, v
v = t[1]; w = v[0]; w.fill_(8) | t, v, w
v = t.view(6, 4); w = t.permute(1, 0, 2); v[0] = 1; w[2] = 2 | t, v, w
v = t[0]; w = t[0, 1:]; w.add_(1); v.mul_(2) | t, v, w
v = t.permute(2, 1, 0).reshape(-1); v[0] = 50 | t, v
v = t.transpose(1, 2).unsqueeze(0); v[0, 0] = 6 | t, v
v = t[0]; v = v + 1; v.fill_(0) | t, v
v = t[[0, 1]]; v.fill_(0) | t, v
v = t[t > 0]; v.fill_(0) | t, v
v = t.clone()[0]; v.fill_(0) | t, v
v = t[0]; s = v.sum(); v.add_(1); r = v.sum() | t, s, r
u = t * 2; v = u[0]; u[0, 0] = 7; v[1] = 8 | t, u, v
v = t[0]; t[:, 1] = v[2]; t[1].add_(v) | t, v
v = t.view(2, 12)[:, 3:5]; v.mul_(0) | t, v
v = t[:, None, 1]; v[0] = 1.5 | t, v
v = t[-1, ::2, 1:]; v.add_(v) | t, v
""".strip().splitlines()


def _function(case: str) -> Any:
    body, found = case.split("|")
    code = "def run(t):\n" + "".join(f"    {s.strip()}\n" for s in body.split(";")) + f"    return {found.strip()}\n"
    space: dict[str, Any] = {}
    exec(code, space)
    return space["run"]


def _start() -> np.ndarray[Any, Any]:
    return np.random.RandomState(0).randn(2, 3, 4).astype(np.float32)


def _arrays(found: Any) -> list[np.ndarray[Any, Any]]:
    return [np.array(v.asnumpy()) for v in found]


@pytest.fixture(scope="module")
def expected() -> dict[str, list[np.ndarray[Any, Any]]]:
    torch = pytest.importorskip("torch")
    return {case: [v.numpy().copy() for v in _function(case)(torch.tensor(_start()))] for case in CASES}


@pytest.mark.parametrize("case", CASES)
def test_views_at_once_are_as_torch_has_them(case: str, expected: dict[str, Any]) -> None:
    for want, got in zip(expected[case], _arrays(_function(case)(Tensor(_start()))), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_views_in_a_capture_are_as_torch_has_them(case: str, expected: dict[str, Any]) -> None:
    run = jit(_function(case))
    for _ in range(2):
        for want, got in zip(expected[case], _arrays(run(Tensor(_start()))), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_views_under_a_tape_are_as_torch_has_them(case: str, expected: dict[str, Any]) -> None:
    run, seen = _function(case), []

    def loss(x: Tensor) -> Tensor:
        found = run(x * 1)
        seen.append(_arrays(found))
        return sum((f.sum() for f in found), Tensor(0.0))

    ops.grad(loss)(Tensor(_start()))
    for want, got in zip(expected[case], seen[-1], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("case", [c for c in CASES if not any(w in c for w in ("split", "chunk", "unbind"))])  # which torch refuses
def test_gradients_flow_through_writes_to_views_as_in_torch(case: str) -> None:
    torch = pytest.importorskip("torch")
    run = _function(case)
    x = torch.tensor(_start(), requires_grad=True)
    sum((f * f).sum() for f in run(x * 1)).backward()

    def loss(y: Tensor) -> Tensor:
        return sum(((f * f).sum() for f in run(y * 1)), Tensor(0.0))

    for gradient in (ops.grad(loss), jit(ops.grad(loss)))[: 1 + CASES.index(case) % 2]:
        np.testing.assert_allclose(gradient(Tensor(_start())).asnumpy(), x.grad.numpy(), rtol=1e-5, atol=1e-5)


def test_strides_of_another_shape_exist_only_where_no_copy_is_needed() -> None:
    rng = np.random.RandomState(0)
    for _ in range(200):
        shape = tuple(int(d) for d in rng.randint(1, 5, rng.randint(1, 4)))
        array = np.zeros(shape, np.int8).transpose(rng.permutation(len(shape)))[
            tuple(slice(None, None, int(s)) for s in rng.randint(1, 3, len(shape)))
        ]
        size = array.size
        wanted = next(
            w for w in ((size,), (2, size // 2), (size // 3, 3), (1, size)) if (np.prod(w) == size and rng.rand() < 0.7) or w == (1, size)
        )
        view = array.view()
        try:
            view.shape = wanted
            free = True
        except AttributeError:
            free = False
        assert free == (reshaped_strides(array.shape, array.strides, wanted) is not None), (array.shape, array.strides, wanted)
