"""Communication in a job of one process: MindSpore's numbers and errors; a larger job is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import jumar
from jumar import communication as comm
from jumar.communication import comm_func


@pytest.fixture(autouse=True)
def _released() -> Iterator[None]:
    yield
    comm.release()


def test_ranks_need_no_init() -> None:
    assert (comm.get_rank(), comm.get_group_size(), comm.get_local_rank(), comm.get_local_rank_size()) == (0, 1, 0, 1)
    with pytest.raises(TypeError, match="For 'get_rank', the argument 'group' must be type of string"):
        comm.get_rank(3)  # type: ignore[arg-type]


def test_groups_need_init() -> None:
    with pytest.raises(RuntimeError, match="Distributed Communication has not been inited"):
        comm.create_group("g", [0])
    comm.init()
    assert comm.GlobalComm.INITED
    comm.create_group("g", [0])
    assert comm.get_world_rank_from_group_rank("g", 0) == 0
    assert comm.get_process_group_ranks() == [0]
    comm.destroy_group("g")
    with pytest.raises(RuntimeError, match=r"rank_ids must be \[0\]"):
        comm.create_group("h", [0, 1])


def test_backends_are_checked() -> None:
    with pytest.raises(RuntimeError, match="must be one of 'hccl', 'nccl' and 'mccl', but got 'backend_name' : foo"):
        comm.init("foo")
    with pytest.raises(RuntimeError, match="should be 'mccl' to init 'CPU', but got 'hccl'"):
        comm.init("hccl")
    with pytest.raises(TypeError, match="must be a string"):
        comm.init(3)  # type: ignore[arg-type]


def test_a_job_of_several_processes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK_SIZE", "8")
    with pytest.raises(RuntimeError, match="the job must have 1 process, got 8"):
        comm.init()


def test_collectives_of_one_are_the_tensor() -> None:
    x = jumar.Tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="has not been inited"):
        comm_func.all_reduce(x)
    comm.init()
    assert comm_func.all_reduce(x)[0] is x
    assert comm_func.broadcast(x) is x
    with pytest.raises(RuntimeError, match="src must be 0"):
        comm_func.broadcast(x, src=1)
    with pytest.raises(RuntimeError, match="there must be another process"):
        comm_func.send(x, 1)
