"""Collectives in PyTorch's manner, in a job of one process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import jumar
from jumar.mint import distributed as dist


@pytest.fixture(autouse=True)
def _destroyed() -> Iterator[None]:
    yield
    dist.destroy_process_group()


def test_the_world_is_one_process() -> None:
    assert (dist.get_rank(), dist.get_world_size(), dist.is_available(), dist.is_initialized()) == (0, 1, True, False)
    dist.init_process_group()
    assert dist.is_initialized()
    group = dist.new_group([0], group_desc="g")
    assert (dist.get_world_size(group), dist.get_global_rank(group, 0), dist.get_process_group_ranks()) == (1, 0, [0])
    with pytest.raises(RuntimeError, match="world_size must be 1"):
        dist.init_process_group(world_size=2, rank=0)


def test_collectives_write_what_one_process_has() -> None:
    x, out = jumar.Tensor([1.0, 2.0]), jumar.Tensor([0.0, 0.0])
    with pytest.raises(RuntimeError, match="has not been inited"):
        dist.all_reduce(x)
    dist.init_process_group()
    assert dist.all_reduce(x) is None
    dist.all_gather_into_tensor(out, x)
    assert out.asnumpy().tolist() == [1.0, 2.0]
    found = [jumar.Tensor([0.0, 0.0])]
    handle = dist.all_gather(found, x * 2, async_op=True)
    assert handle is not None
    handle.wait()
    assert found[0].asnumpy().tolist() == [2.0, 4.0]
    objects = [None]
    dist.all_gather_object(objects, {"a": 1})
    assert objects == [{"a": 1}]
    with pytest.raises(RuntimeError, match="there must be another process"):
        dist.send(x, 1)
    with pytest.raises(ValueError, match="must be one of"):
        dist.all_reduce(x, op="mean")
