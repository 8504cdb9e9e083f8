"""Times and ranks of every kind of log that people paste."""

from __future__ import annotations

import pytest

from jumar.tools.diagnose.stamps import rank_of, rank_of_file, seconds_of

NOON = 1743004800.0  # 2025-03-26 16:00:00


@pytest.mark.parametrize(
    "line, seconds",
    [
        ("[ERROR] HCCL(159,python):2025-03-26-16:00:01.250.000 [a.cc:1] text", NOON + 1.25),
        ("2025-03-26T16:00:01.250Z app failed", NOON + 1.25),
        ("2025-03-26 16:00:01,250 [WARNING] overflow", NOON + 1.25),
        ("[rank0]: [ERROR] 2025-03-26-16:00:01 (PID:159, Device:0, RankID:-1) ERR02200", NOON + 1),
        ("E0326 16:00:01.250000 19842 real_client.cpp:301] failed", NOON + 1.25),
        ("(Worker_TP3 pid=1) ERROR 03-26 16:00:01 [executor.py:932] x", NOON + 1),
        ("Wed Mar 26 16:00:01 2025 LINK DOWN", NOON + 1),
        ("Mar 26 16:00:01 node kernel: x", NOON + 1),
        ("16:00:01.250  PrintTaskErrorMsg", NOON + 1.25),
    ],
)
def test_a_time_is_read_and_what_it_leaves_out_comes_from_the_lines_around(line: str, seconds: float) -> None:
    assert seconds_of(line, NOON) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "line", ["no time", "[ 2081.843939] [ascend] boot clock", "version 12:34", "9999-99-99 99:99:99", "ratio 1:02:033"]
)
def test_what_is_no_time_of_day_is_not_read_as_one(line: str) -> None:
    assert seconds_of(line, NOON) is None


@pytest.mark.parametrize(
    "line, rank",
    [
        ("[rank3]: x", 3),
        ("(PID:1, Device:3, RankID:12)", 12),
        ("RankID:-1", -1),
        ("Worker_TP7 pid=1", 7),
        ("rank_id=4", 4),
        ("frank 3", -1),
    ],
)
def test_a_line_states_its_rank(line: str, rank: int) -> None:
    assert rank_of(line) == rank


def test_a_file_states_its_rank() -> None:
    assert rank_of_file("out/rank_5/worker_5.log") == 5
    assert rank_of_file("log/device-2/device-305322_2025.log") == 2
    assert rank_of_file("train.log") == -1
