"""Gathers and scatters: axes, negative and doubled indices, batches, each width, each way to combine."""

from __future__ import annotations

import numpy as np
import pytest
from tests.frontend.build import model
from tests.operators.cpu.run import check

import jumar
from jumar.base import OpError, RuntimeFault, type_of
from jumar.compiler import compile
from jumar.ir import Graph, interpret, param
from jumar.operators import Gather, GatherElements, GatherNd, RoiAlign, ScatterElements, ScatterNd

RNG = np.random.default_rng(4)
WIDTHS = ["uint8", "float16", "float32", "int64", "bool"]


def numbers(dtype: str, *shape: int) -> np.ndarray:
    return RNG.integers(0, 5, shape).astype(dtype)


def indices(size: int, *shape: int, dtype: str = "int64") -> np.ndarray:
    return RNG.integers(-size, size, shape).astype(dtype)


@pytest.mark.parametrize("dtype", WIDTHS)
def test_gather(dtype: str) -> None:
    for shape in [(7,), (5, 3), (4, 9, 64), (2, 6, 17)]:
        for axis in range(len(shape)):
            for index_shape in [(), (1,), (11,), (2, 3)]:
                check(Gather(axis), numbers(dtype, *shape), indices(shape[axis], *index_shape, dtype="int32"))
    check(Gather(0), numbers(dtype, 1000, 33), indices(1000, 300))
    check(Gather(1), numbers(dtype, 3, 100), indices(100, 5000))
    check(Gather(0), numbers(dtype, 3, 4), indices(3, 0))


@pytest.mark.parametrize("dtype", WIDTHS)
def test_gather_elements(dtype: str) -> None:
    for shape, axis, index_shape in [
        ((7,), 0, (20,)),
        ((5, 6), 0, (3, 6)),
        ((5, 6), 1, (5, 9)),
        ((4, 5, 6), 1, (4, 2, 3)),
        ((30, 40), 1, (30, 400)),
    ]:
        check(GatherElements(axis), numbers(dtype, *shape), indices(shape[axis], *index_shape))


@pytest.mark.parametrize("dtype", WIDTHS)
def test_gather_nd(dtype: str) -> None:
    x = numbers(dtype, 4, 4, 4, 6)
    for n in (1, 2, 3):
        check(GatherNd(), x, indices(4, 5, 2, n))
        check(GatherNd(1), x, indices(4, 4, 3, min(n, 2)))
    check(GatherNd(), x, indices(4, 0, 2))


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize("dtype", WIDTHS)
def test_scatters(dtype: str, reduction: str) -> None:
    for shape, axis, index_shape in [
        ((7,), 0, (5,)),
        ((5, 6), 0, (3, 6)),
        ((5, 6), 1, (5, 4)),
        ((6, 5, 6), 1, (4, 2, 3)),
        ((300, 9), 1, (300, 9)),
    ]:
        where = indices(shape[axis], *index_shape)
        check(ScatterElements(axis, reduction), numbers(dtype, *shape), where, numbers(dtype, *index_shape))
    x = numbers(dtype, 4, 4, 6)
    for n, rest in ((1, (4, 6)), (2, (6,)), (3, ())):
        check(ScatterNd(reduction), x, indices(4, 7, n), numbers(dtype, 7, *rest))
    check(ScatterNd(reduction), numbers(dtype, 5, 3000), indices(5, 7, 1), numbers(dtype, 7, 3000))


# ---- indices that name nothing ----
SIZE = 4
FAULTS = {
    "gather": (Gather(0), (SIZE, 3), (50,)),
    "gather rows": (Gather(1), (2, SIZE, 40), (7,)),
    "gather single": (Gather(-1), (30, SIZE), (3,)),
    "gather_elements": (GatherElements(1), (20, SIZE), (20, 6)),
    "gather_elements front": (GatherElements(0), (SIZE, 5), (9, 5)),
    "gather_nd": (GatherNd(), (SIZE, SIZE, 3), (11, 2)),
    "gather_nd batches": (GatherNd(1), (2, SIZE, 3), (2, 5, 1)),
    "scatter_elements": (ScatterElements(1), (20, SIZE), (20, 3)),
    "scatter_elements add": (ScatterElements(0, "add"), (SIZE, 5), (3, 5)),
    "scatter_nd": (ScatterNd(), (SIZE, 3), (2, 1)),
    "scatter_nd max": (ScatterNd("max"), (SIZE, SIZE, 2000), (5, 2)),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("name", FAULTS)
def test_an_index_out_of_range_ends_the_run(name: str, dtype: str, threads: int) -> None:
    op, shape, index_shape = FAULTS[name]
    x = RNG.random(shape, np.float32)
    good = indices(SIZE, *index_shape, dtype=dtype)
    inputs = [x, good]
    if isinstance(op, ScatterElements | ScatterNd):
        update = index_shape if isinstance(op, ScatterElements) else (*index_shape[:-1], *shape[index_shape[-1] :])
        inputs.append(RNG.random(update, np.float32))
    params = tuple(param(f"x{i}", type_of(a)) for i, a in enumerate(inputs))
    graph = Graph("g", params, (op(*params),))
    instance = compile(graph).instance(threads=threads)
    for wrong in (SIZE, -SIZE - 1, 2**31 - 1, -(2**31)):
        for at in (0, good.size // 2, good.size - 1):
            bad = good.copy()
            bad.flat[at] = wrong
            with pytest.raises(RuntimeFault, match=f"{op.name}: indices must be within the dimensions") as caught:
                instance.run([x, bad, *inputs[2:]])
            assert caught.value.code == "index-range"
            with pytest.raises(OpError) as oracle:
                interpret(graph, [x, bad, *inputs[2:]])
            assert oracle.value.code == "index-range"
    if "add" not in name:
        np.testing.assert_array_equal(instance.run(inputs)[0], interpret(graph, inputs)[0])


@pytest.mark.parametrize("threads", [1, 2])
def test_a_box_of_an_image_that_is_not_there_ends_the_run(threads: int) -> None:
    x, rois = RNG.random((2, 3, 8, 8), np.float32), np.array([[0, 0, 4, 4]] * 5, np.float32)
    params = (param("x", type_of(x)), param("rois", type_of(rois)), param("batch", type_of(np.zeros(5, np.int64))))
    graph = Graph("g", params, (RoiAlign((2, 2))(*params),))
    instance = compile(graph).instance(threads=threads)
    for wrong in (2, -3, 99):
        with pytest.raises(RuntimeFault, match="roi_align: indices must be within"):
            instance.run([x, rois, np.array([0, 1, 0, wrong, 1])])
    instance.run([x, rois, np.array([0, 1, 0, 1, 1])])


def test_the_error_names_the_node_of_the_file() -> None:
    m = jumar.load(model("g (float[4, 3] x, int64[2] i) => (float[2, 3] y) { a = Relu(x) \n y = Gather(a, i) }"))
    with pytest.raises(RuntimeFault, match="gather: indices must be within") as caught:
        m(np.ones((4, 3), np.float32), np.array([0, 4]))
    assert "Gather" in str(caught.value.loc)
