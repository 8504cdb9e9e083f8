"""The forecast of a graph: every operator ends in a kernel or in nothing, times add up, and options change what they say."""

from __future__ import annotations

import pytest

from jumar.base import TensorType, f16, f32
from jumar.compiler import Precision, TwinOptions, forecast
from jumar.compiler.twin.forecast import resident
from jumar.device.npu import CORES, find_chip
from jumar.ir import Graph, constant, param
from jumar.operators import Conv, MatMul, Relu, Softmax


def _network() -> Graph:
    import numpy as np

    rng = np.random.default_rng(0)
    x = param("x", TensorType((1, 16, 32, 32), f32))
    w = constant(rng.normal(size=(32, 16, 3, 3)).astype(np.float32))
    y = Relu()(Conv((1, 1), (1, 1), (1, 1), (1, 1))(x, w))
    return Graph(
        "conv", (x,), (Relu()(Conv((1, 1), (1, 1), (1, 1), (1, 1))(y, constant(rng.normal(size=(16, 32, 3, 3)).astype(np.float32)))),)
    )


@pytest.mark.parametrize("soc", ["310P3", "910A", "910B4", "950"])
def test_each_kernel_has_a_place_and_a_time(soc: str) -> None:
    found = forecast(_network(), find_chip("950PR_9599" if soc == "950" else soc))
    assert found.launches
    assert len(found.launches) == len(found.predictions) == len(found.timeline.spans)
    assert all(x.task.core in CORES for x in found.launches)
    assert all(p.low_us <= p.time_us <= p.high_us for p in found.predictions)
    assert found.timeline.low_us <= found.timeline.latency_us <= found.timeline.high_us
    assert found.memory.needed_nbytes > 0


def test_the_mode_changes_the_launching_and_not_the_kernels_of_one_operator() -> None:
    sunk, eager = (forecast(_network(), find_chip("910B4"), TwinOptions(mode=m)) for m in ("sunk", "eager"))
    assert eager.timeline.latency_us > sunk.timeline.latency_us
    assert len(eager.launches) >= len(sunk.launches)


def test_the_precision_decides_the_element_type_of_the_product() -> None:
    x, w = param("x", TensorType((64, 64), f32)), param("w", TensorType((64, 64), f32))
    graph = Graph("product", (x, w), (MatMul()(x, w),))
    kinds = {}
    for mode in ("force_fp16", "must_keep_origin_dtype"):
        found = forecast(graph, find_chip("910B4"), TwinOptions(Precision(mode)))
        (product,) = [x for x in found.launches if x.task.kind.startswith("MatMul")]
        kinds[mode] = product.task.inputs[0].dtype
    assert kinds == {"force_fp16": f16, "must_keep_origin_dtype": f32}


def test_what_was_just_written_lies_in_the_cache_and_what_is_far_does_not() -> None:
    x = param("x", TensorType((1024, 1024), f16))
    found = forecast(Graph("chain", (x,), (Softmax()(Softmax()(x)),)), find_chip("910B4"))
    near = resident(found.launches, find_chip("910B4"))
    assert (near[0], near[-1]) == (0, 1024 * 1024 * 2)
