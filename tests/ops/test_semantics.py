"""Values and types that MindSpore 2.10 gives (recorded from the real package), where another library might do otherwise."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from jumar import mint, ops
from jumar.frontend import Parameter, Tensor
from jumar.frontend import dtype as ms
from jumar.mint.nn import functional as F  # noqa: N812  (its name everywhere)

M = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]], np.float32)
SPACE = {
    "ops": ops, "mint": mint, "F": F, "Tensor": Tensor, "ms": ms, "np": np, "Parameter": Parameter,
    "f32": np.float32, "f16": np.float16, "f64": np.float64, "i8": np.int8, "u8": np.uint8, "i32": np.int32, "i64": np.int64,
    "b": np.bool_, "bf16": ml_dtypes.bfloat16, "of": lambda kind, *v: Tensor(np.array(v or (1, 2), kind)),
}  # fmt: skip


def _eval(text: str) -> Any:
    return eval(text, SPACE | {"m": Tensor(M), "i": Tensor(np.array([[3, -2, 5], [7, 0, 1]], np.int32))})


TYPES = {
    "of(f16) + of(f32)": "Float32", "of(i8) + of(u8)": "Int16", "of(i64) + of(f16)": "Float16", "of(i32) + 1.5": "Float32", "of(f16) * 2.5": "Float16",
    "of(i32) / of(i32)": "Float32", "of(i64) / 2": "Float32", "of(i32) ** 2": "Int32", "of(i32) ** 0.5": "Float32", "of(i32) // 2": "Int32",
    "of(i32) % 2.5": "Float32", "of(b) + 1": "Int64", "of(b) * 2.5": "Float32", "of(b) + of(b)": "Bool", "of(bf16) + of(f16)": "Float32",
    "of(bf16) * 2": "BFloat16", "of(u8) + of(i64)": "Int64", "of(f64) + of(f32)": "Float64", "of(i32) + of(i64)": "Int64", "2 - of(f16)": "Float16",
    "ops.argmax(m)": "Int64", "ops.Argmax()(m)": "Int32", "ops.argmin(m)": "Int32", "m.argmin(1)": "Int32", "mint.argmin(m)": "Int64",
    "ops.topk(m, 2)[1]": "Int32", "mint.topk(m, 2)[1]": "Int64", "ops.sort(m)[1]": "Int32", "mint.sort(m)[1]": "Int64", "ops.argsort(m)": "Int32",
    "ops.sum(i)": "Int64", "i.sum()": "Int64", "i.prod()": "Int64", "ops.ReduceSum()(i)": "Int32", "ops.cumsum(i, 0)": "Int32", "i.mean()": "Int32",
    "mint.cumsum(i, 0)": "Int64", "ops.sum(i, dtype=ms.float32)": "Float32", "ops.exp(i)": "Float32", "ops.arange(5)": "Int64",
    "ops.arange(5.0)": "Float32", "ops.arange(0, 1, 0.25)": "Float32", "ops.full((2,), 3)": "Int64", "ops.zeros(2)": "Float32", "ops.eye(2)": "Float32",
    "ops.linspace(0, 1, 3)": "Float32", "ops.one_hot(of(i64), 3)": "Int64", "ops.one_hot(of(i64), 3, 1.0, 0.0)": "Float32", "F.one_hot(of(i64), 3)": "Int64",
    "ops.maximum(i, 1.5)": "Float32", "ops.where(m > 0, m, 1)": "Float32", "ops.where(m > 0, 1, 0)": "Int64", "i.clamp(0.5, 2.5)": "Float32",
    "i.masked_fill(i > 0, 7)": "Int32", "ops.bincount(of(i64))": "Float32", "mint.bincount(of(i64))": "Int64", "ops.count_nonzero(i)": "Int32",
    "m.nonzero()": "Int64", "ops.unique(i)[1]": "Int32", "ops.cummin(m, 0)[1]": "Int32", "ops.cummax(m, 0)[1]": "Int64",
    "m.to(ms.float16)": "Float16", "m.astype('int32')": "Int32", "m.int()": "Int32", "m.long()": "Int64", "m.half()": "Float16", "m.bool()": "Bool",
    "m.type_as(i)": "Int32", "ops.cast(m, ms.int8)": "Int8", "ops.isnan(i)": "Bool", "ops.tuple_to_array((1, 2))": "Int32",
    "ops.searchsorted(of(f32), m)": "Int64", "ops.bucketize(m, [0.0])": "Int32", "np.float32(2) * m": "Float32",
}  # fmt: skip


@pytest.mark.parametrize("text", TYPES)
def test_results_have_mindspores_types(text: str) -> None:
    assert str(_eval(text).dtype) == TYPES[text]


VALUES: dict[str, Any] = {
    "m == None": False, "m != None": True, "m == [1, 2]": False, "ops.max(m)[0].item()": 4.0, "ops.max(m)[1].item()": 0,
    "[t.tolist() for t in ops.max(m, 1)]": [[3.0, 4.0], [2, 1]], "[t.tolist() for t in m.max(1)]": [[3.0, 4.0], [2, 1]],
    "m.max(axis=1).tolist()": [3.0, 4.0], "m.max().item()": 4.0, "[t.tolist() for t in m.max(axis=1, return_indices=True)]": [[3.0, 4.0], [2, 1]],
    "mint.max(m).item()": 4.0, "[t.tolist() for t in mint.min(m, 1)]": [[-2.0, -1.5], [1, 2]], "mint.max(m, m * 2).tolist()": [[2, -2, 6], [1, 8, -1.5]],
    "[t.tolist() for t in m.median(1)]": [[1.0, 0.5], [0, 0]], "mint.median(m).item()": 0.5,
    "round(ops.std(of(f32, 1, 2, 4)).item(), 5)": 1.24722, "round(mint.std(of(f32, 1, 2, 4)).item(), 5)": 1.52753,
    "of(i64, 1, 2).mean().item()": 1, "(of(i32, -7, 7) // 2).tolist()": [-4, 3], "(of(i32, -7, 7) % 3).tolist()": [2, 1],
    "ops.div(of(i32, -7, 7), 2, rounding_mode='trunc').tolist()": [-3, 3], "ops.div(of(f32, -7, 7), 2, rounding_mode='floor').tolist()": [-4, 3],
    "ops.fmod(of(i32, -7, 7), 3).tolist()": [-1, 1], "ops.round(of(f32, 0.5, 1.5, -2.5)).tolist()": [0, 2, -2],
    "[t.shape for t in ops.split(m, 2, 1)]": [(2, 2), (2, 1)], "[t.shape for t in ops.Split(1, 3)(m)]": [(2, 1)] * 3,
    "[t.shape for t in m.chunk(2, 1)]": [(2, 2), (2, 1)], "m.transpose().shape": (3, 2), "m.transpose(1, 0).shape": (3, 2),
    "ops.ones((2, 3, 4)).transpose(0, 1).shape": (3, 2, 4), "ops.ones((2, 3, 4)).transpose(2, 0, 1).shape": (4, 2, 3),
    "ops.ones((2, 3, 4)).flatten().shape": (24,), "ops.flatten(ops.ones((2, 3, 4))).shape": (2, 12), "ops.Flatten()(ops.ones((2, 3, 4))).shape": (2, 12),
    "m.size": 6, "m.ndim": 2, "m.itemsize": 4, "m.stride()": [3, 1], "m.strides": (12, 4), "str(m.dtype)": "Float32", "m.type()": "Float32",
    "ops.leaky_relu(of(f32, -1, 1)).tolist()": [np.float32(-0.2).item(), 1.0], "F.leaky_relu(of(f32, -1, 1)).tolist()": [np.float32(-0.01).item(), 1.0],
    "ops.ReduceSum(skip_mode=True)(m).shape": (2, 3), "ops.clip_by_value(of(f32, -3, 3), -1, 1).tolist()": [-1, 1],
    "len(ops.clip_by_global_norm([m, m]))": 2, "ops.meshgrid(of(i64), of(i64, 5))[0].tolist()": [[1, 2]],
    "mint.meshgrid(of(i64), of(i64, 5))[0].tolist()": [[1], [2]],
    "ops.unique(of(i32, 3, 1, 3))[0].tolist()": [3, 1], "mint.unique(of(i32, 3, 1, 3)).tolist()": [1, 3],
    "mint.equal(m, m)": True, "ops.equal(m, 1.0).tolist()": [[True, False, False], [False] * 3], "1.0 in m": True, "len(m)": 2,
    "[v.tolist() for v in m]": [[1, -2, 3], [0.5, 4, -1.5]], "ops.shape(m)": (2, 3), "ops.rank(m)": 2, "ops.numel(m)": 6, "ops.is_tensor(m)": True,
    "ops.ArgMaxWithValue(1)(m)[0].tolist()": [2, 1], "ops.gather(m, of(i64, 1), 0).tolist()": [[0.5, 4, -1.5]],
    "m.gather(of(i64, 1), 0).tolist()": [[0.5, 4, -1.5]], "m.gather(1, Tensor([[0], [2]])).tolist()": [[1], [-1.5]],
    "ops.tensor_scatter_elements(m, Tensor([[0], [0]]), Tensor([[9.0], [8.0]]), 1).tolist()": [[9, -2, 3], [8, 4, -1.5]],
    "ops.sequence_mask(of(i64, 1, 2)).tolist()": [[True, False], [True, True]], "ops.depend(m, 1).shape": (2, 3),
    "ops.moe_token_permute(Tensor([[1.0], [7.0], [2.0], [1.0], [2.0], [3.0]]), of(i32, 5, 0, 3, 1, 2, 4))[0].tolist()": [[7], [1], [2], [2], [3], [1]],
    "ops.NMSWithMask(0.5)(Tensor([[0.0, 0, 2, 2, 0.9], [0, 0, 2.1, 2, 0.8], [3, 3, 4, 4, 0.7]]))[2].tolist()": [True, False, True],
}  # fmt: skip


@pytest.mark.parametrize("text", VALUES)
def test_results_have_mindspores_values(text: str) -> None:
    assert _eval(text) == VALUES[text]


def test_batch_norm_function_moves_running_statistics_by_its_momentum() -> None:
    x = Tensor(np.arange(8, dtype=np.float32).reshape(4, 2))
    mean, var = Parameter(Tensor([0.0, 0.0]), name="mean"), Parameter(Tensor([1.0, 1.0]), name="var")
    ops.batch_norm(x, mean, var, Tensor([1.0, 1.0]), Tensor([0.0, 0.0]), True, 0.1)
    np.testing.assert_allclose(mean.asnumpy(), [0.3, 0.4], rtol=1e-6)
    np.testing.assert_allclose(var.asnumpy(), [0.9 + 0.1 * 20 / 3] * 2, rtol=1e-6)


def test_augmented_assignment_makes_a_new_tensor_and_methods_with_an_underscore_write() -> None:
    x = Tensor([1.0, 2.0])
    y = x
    y += 1
    assert x.tolist() == [1, 2] and y.tolist() == [2, 3]
    assert x.add_(1) is x and x.tolist() == [2, 3]
    assert x.fill_(7).tolist() == [7, 7] and x.zero_().tolist() == [0, 0] and x.copy_(y).tolist() == [2, 3]


def test_assignment_functions_write_to_parameters() -> None:
    p = Parameter(Tensor([1.0, 2.0]), name="p")
    ops.assign(p, Tensor([3.0, 4.0]))
    ops.assign_add(p, Tensor([1.0, 1.0]))
    ops.AssignSub()(p, Tensor([0.5, 0.5]))
    ops.ScatterUpdate()(p, Tensor([0], ms.int32), Tensor([9.0]))
    assert p.asnumpy().tolist() == [9.0, 4.5]


def test_a_name_that_is_missing_says_which_is_near() -> None:
    with pytest.raises(AttributeError, match=r"mindspore\.ops\.reduce_summ: API must be one that Jumar has; .*reduce_sum"):
        ops.reduce_summ  # noqa: B018
    with pytest.raises(AttributeError, match=r"mindspore\.mint\.catt"):
        mint.catt  # noqa: B018


def test_custom_kernels_are_refused_by_name() -> None:
    with pytest.raises(NotImplementedError, match=r"ops\.Custom: kernels of users"):
        ops.Custom("f.so:f", None, None, "aot")
    with pytest.raises(NotImplementedError, match="HalfLinear: Primitive must be one that Jumar has"):
        ops.Primitive("HalfLinear")(Tensor(1.0))


def test_multitype_functions_hyper_map_and_map() -> None:
    scale = ops.MultitypeFuncGraph("scale")

    @scale.register("Number", "Tensor")
    def _of_tensor(factor: float, x: Tensor) -> Tensor:
        return x * factor

    @scale.register("Number", "Number")
    def _of_number(factor: float, x: float) -> float:
        return x * factor

    assert [t.tolist() for t in ops.HyperMap()(ops.partial(scale, 2.0), (Tensor([1.0]), Tensor([2.0])))] == [[2.0], [4.0]]
    assert ops.HyperMap()(scale, (2, 3), (4, (5, 6)[0])) == (8, 15)
    assert ops.Map()(lambda x, y: x + y, [1, 2], [3, 4]) == [4, 6]
    with pytest.raises(TypeError, match="scale: arguments must fit"):
        scale("a", "b")


def test_primitives_keep_their_attributes_and_are_cached() -> None:
    from jumar.ops._primitive_cache import _get_cache_prim

    conv = ops.Conv2D(out_channel=8, kernel_size=3, pad_mode="same")
    assert (conv.out_channel, conv.attrs["kernel_size"], conv.name, conv.stride) == (8, 3, "Conv2D", 1)
    assert _get_cache_prim(ops.Concat)(1) is _get_cache_prim(ops.Concat)(1) is not _get_cache_prim(ops.Concat)(0)
    with pytest.raises(TypeError, match=r"ops\.Conv2D: arguments must be \(out_channel"):
        ops.Conv2D()


def test_random_numbers_are_the_same_for_a_seed_and_have_their_moments() -> None:
    from jumar.frontend.random import DEFAULT

    DEFAULT.manual_seed(3)
    first = (ops.randn(1000).asnumpy(), ops.rand(1000).asnumpy(), ops.randint(0, 9, (1000,)).asnumpy(), mint.randperm(10).asnumpy())
    DEFAULT.manual_seed(3)
    second = (ops.randn(1000).asnumpy(), ops.rand(1000).asnumpy(), ops.randint(0, 9, (1000,)).asnumpy(), mint.randperm(10).asnumpy())
    for p, q in zip(first, second, strict=True):
        assert p.tolist() == q.tolist()
    assert abs(first[0].mean()) < 0.1 and abs(first[0].std() - 1) < 0.1
    assert (
        0 <= first[1].min()
        and first[1].max() < 1
        and sorted(set(first[2].tolist())) == list(range(9))
        and sorted(first[3].tolist()) == list(range(10))
    )
    kept = ops.dropout(Tensor(np.ones(10000, np.float32)), 0.25).asnumpy()
    assert set(np.round(np.unique(kept) * 3).tolist()) == {0, 4} and abs((kept == 0).mean() - 0.25) < 0.02
