"""Who failed by itself and who only waited: the process that its peers waited for is at fault, whatever the clocks say."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumar.tools.diagnose import diagnose
from jumar.tools.diagnose.sources import opened
from jumar.tools.diagnose.stamps import rank_of, seconds_of
from jumar.tools.verdict import Verdict

RAISED = """{time} INFO step 40
Traceback (most recent call last):
  File "/job/train.py", line 40, in train
    out = model(batch)
TypeError: Head.forward() got an unexpected keyword argument 'mask'
"""
CRASHED = """{time} INFO step 40
Fatal Python error: Segmentation fault

Current thread 0x0000ffff8b (most recent call first):
  File "/job/train.py", line 40 in train
"""
ENDED = """{time} INFO step 40
{time} INFO training done, exiting 0
"""
NOTIFY = """[ERROR] HCCL(10{rank},python3):{plog} [task_exception_handler.cc:545][1{rank}][TaskExceptionHandler][Callback]Task from HCCL run failed, \
base information is streamID:[4], taskID[22], taskType[Notify Wait], tag[AllReduce_10.0.0.1_60000_1]
[rank{rank}]: RuntimeError: The Inner error is reported as above. ACL stream synchronize failed, error code:507018
[ERROR] {plog} (PID:10{rank}, Device:{rank}, RankID:{rank}) ERR02200 DIST call hccl api failed.
"""
WATCHDOG = "[rank{rank}]:[E501 {clock}.512345678 compiler_depend.ts:720] [Rank {rank}] Watchdog caught collective operation timeout: \
WorkHCCL(SeqNum=12, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800100 milliseconds before timing out.\n"
CLOSED = "[ERROR] HCCL(10{rank},python3):{plog} [hccl_socket.cc:50] recv fail, socket closed by peer, remote rank[2]\n\
RuntimeError: HCCL function error: HcclAllReduce, error code is 7\n"


def verdict_of(folder: Path, failed: str, peers: str, *, at: str = "10:00:00", waited: str = "10:30:00") -> Verdict:
    """The verdict on four ranks' logs: rank 2 failed, the others waited."""
    for rank in range(4):
        text = (
            failed.format(time=f"2025-05-01 {at},123")
            if rank == 2
            else peers.format(rank=rank, plog=f"2025-05-01-{waited}.100.100", clock=waited)
        )
        (folder / f"rank{rank}.log").write_text(text)
    return diagnose(opened((folder,)).sources)


@pytest.mark.parametrize("peers", [NOTIFY, WATCHDOG, CLOSED], ids=["notify", "watchdog", "closed"])
@pytest.mark.parametrize("at", ["10:00:00", "10:30:04", "10:29:58", "18:00:00"])
def test_an_exception_of_the_rank_that_all_others_waited_for_is_at_fault_whatever_the_clocks_say(
    tmp_path: Path, peers: str, at: str
) -> None:
    verdict = verdict_of(tmp_path, RAISED, peers, at=at)
    assert verdict.findings[0].rule.name == "raised-before-peers-waited"
    assert "rank 2" in verdict.findings[0].what("en") and "TypeError" in verdict.findings[0].what("en")
    assert verdict.first_error and verdict.first_error.source.endswith("rank2.log")


@pytest.mark.parametrize("peers", [NOTIFY, WATCHDOG, CLOSED], ids=["notify", "watchdog", "closed"])
def test_a_crash_of_one_rank_goes_before_the_timeouts_of_its_peers(tmp_path: Path, peers: str) -> None:
    verdict = verdict_of(tmp_path, CRASHED, peers)
    assert verdict.findings[0].evidence[0].source.endswith("rank2.log")
    assert not {"operator", "hccl"} & {verdict.layer}


def test_a_rank_that_finished_early_is_told(tmp_path: Path) -> None:
    verdict = verdict_of(tmp_path, ENDED, NOTIFY)
    assert verdict.findings[0].rule.name == "ended-before-peers-waited"
    assert verdict.layer == "hccl"


def test_the_wait_of_a_rank_alone_is_no_failure_of_an_aicpu_operator(tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_text(NOTIFY.format(rank=0, plog="2025-05-01-10:30:00.100.100"))
    assert diagnose(opened((tmp_path,)).sources).findings[0].rule.layer == "hccl"


def test_a_rank_of_another_time_zone_is_no_earlier_run(tmp_path: Path) -> None:
    own = (
        "[ERROR] RUNTIME(102,python3):{} [davinci_kernel_task.cc:1000]102 PreCheckTaskErr:Aicore kernel execute failed, device_id=2, stream_id=2, \
task_id=3, flip_num=0, fault kernel_name=Mul_1\n[rank2]: RuntimeError: ACL stream synchronize failed, error code:507015\n"
    )
    verdict = verdict_of(tmp_path, own.format("2025-05-01-02:00:01.100.100"), NOTIFY)
    assert verdict.layer == "operator" and not verdict.notes
    assert verdict.findings[0].evidence[0].source.endswith("rank2.log")


def test_errors_of_earlier_runs_are_named_where_they_are_left_aside(tmp_path: Path) -> None:
    old = "[ERROR] RUNTIME(7,python3):2025-04-30-10:00:00.000.000 [x.cc:1] aicore kernel execute failed, fault kernel_name=Mul_1\n"
    (tmp_path / "plog-7.log").write_text(old)
    (tmp_path / "plog-9.log").write_text("[ERROR] HCCL(9,python3):2025-05-01-10:00:00.000.000 [x.cc:1] EI0006: Getting socket times out\n")
    verdict = diagnose(opened((tmp_path,)).sources)
    assert verdict.layer == "hccl"
    assert any("plog-7.log:1" in note for note in verdict.notes)


def test_the_stamps_and_ranks_of_launchers_are_known() -> None:
    glog, iso = (
        seconds_of("[rank0]:[E501 11:00:12.512345678 x.ts:7]", seconds_of("2025-05-01 10:00:00") or 0.0),
        seconds_of("2025-05-01 11:00:12"),
    )
    assert glog is not None and iso is not None and 0.5 < glog - iso < 0.52
    lines = [
        "(VllmWorker rank=5 pid=1) ERROR",
        "[default3]:Traceback",
        "[1,7]<stderr>:x",
        "[2]<stderr>x",
        "rank 4: lost",
        "waits for rank 3: x",
    ]
    assert [rank_of(line) for line in lines] == [5, 3, 7, 2, 4, -1]
