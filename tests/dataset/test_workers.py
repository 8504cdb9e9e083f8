"""Worker processes: shared memory, what a killed worker says, and that nothing is left behind."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import jumar.dataset as ds

SRC = str(Path(__file__).resolve().parents[2] / "src")


def children() -> set[int]:
    """Processes that this one has started and that still run."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == os.getpid() and fields[0] != "Z":
                found.add(int(entry.name))
    return found


def gone(pids: set[int], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(
            Path(f"/proc/{p}").exists() and "Z" not in Path(f"/proc/{p}/stat").read_text().rsplit(")", 1)[1].split()[0] for p in pids
        ):
            return True
        time.sleep(0.05)
    return False


class Large:
    """Rows that go through shared memory, of different sizes and types."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, i: int):
        shape = (i % 5 + 1, 100, 200)
        return np.full(shape, i, np.float32), np.arange(i), f"row {i}", {"box": np.full(20000, i)}


def read(workers: int) -> list:
    data = ds.GeneratorDataset(Large(), ["x", "n", "s", "d"], shuffle=False, num_parallel_workers=workers)
    return list(data.create_tuple_iterator(num_epochs=1, output_numpy=True))


def test_large_rows_come_through_shared_memory_unchanged():
    one, many = read(1), read(3)
    assert len(one) == len(many) == 40
    for a, b in zip(one, many):
        assert np.array_equal(a[0], b[0]) and a[0].dtype == b[0].dtype
        assert np.array_equal(a[1], b[1]) and a[2] == b[2]
        assert np.array_equal(a[3]["box"], b[3]["box"])
        b[0][0] = 1  # rows are the caller's own


def test_rows_also_come_through_pipes():
    ds.config.set_enable_shared_mem(False)
    try:
        assert all(np.array_equal(a[0], b[0]) for a, b in zip(read(1), read(2)))
    finally:
        ds.config.set_enable_shared_mem(True)


@pytest.mark.parametrize("shared", [True, False])
def test_large_rows_both_ways_do_not_block_a_pipe(shared):
    def change(x, d):
        return x + 1, {"text": np.array(str(d["text"]) + "!"), "many": {str(i): np.zeros(20) for i in range(2000)}}

    rows = [(np.full((400, 1000), i, np.float32), {"text": np.array("long " * 100000)}) for i in range(12)]
    ds.config.set_enable_shared_mem(shared)
    try:
        data = ds.GeneratorDataset(rows, ["x", "d"], shuffle=False)
        data = data.map(change, ["x", "d"], num_parallel_workers=2, python_multiprocessing=True)
        found = list(data.create_tuple_iterator(num_epochs=1, output_numpy=True))
    finally:
        ds.config.set_enable_shared_mem(True)
    assert [float(x.mean()) for x, _ in found] == [i + 1 for i in range(12)]
    assert all(str(d["text"]).endswith("long !") and len(d["many"]) == 2000 for _, d in found)


def test_python_random_numbers_of_a_worker_follow_from_the_row():
    def draw(x: np.ndarray) -> np.ndarray:
        return np.array([random.random(), np.random.rand()])

    def values(workers: int) -> list:
        ds.config.set_seed(3)
        data = ds.NumpySlicesDataset(list(range(9)), ["x"]).map(draw, "x", num_parallel_workers=workers, python_multiprocessing=True)
        return [r[0].tolist() for r in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]

    try:
        assert values(2) == values(3)
    finally:
        ds.config.set_seed(ds.config.DEFAULT_SEED)


def test_a_killed_worker_is_an_error_and_not_a_hang():
    def die(x: np.ndarray) -> np.ndarray:
        if x == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    data = ds.NumpySlicesDataset(list(range(10)), ["x"], shuffle=False).map(die, "x", num_parallel_workers=2, python_multiprocessing=True)
    before = children()
    with pytest.raises(ds.WorkerLost, match="must give row 5, but it was killed by SIGKILL") as caught:
        list(data.create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert "memory ran out" in caught.value.hint
    assert gone(children() - before)


def test_a_worker_that_exits_is_an_error():
    def leave(x: np.ndarray) -> np.ndarray:
        os._exit(3)

    data = ds.NumpySlicesDataset([1, 2], ["x"]).map(leave, "x", num_parallel_workers=2, python_multiprocessing=True)
    with pytest.raises(ds.WorkerLost, match="exit code 3"):
        list(data.create_tuple_iterator(num_epochs=1, output_numpy=True))


def test_a_dropped_iterator_ends_its_workers():
    before = children()
    it = ds.GeneratorDataset(Large(), ["x", "n", "s", "d"], num_parallel_workers=2).create_tuple_iterator(output_numpy=True)
    next(it)
    mine = children() - before
    assert len(mine) == 2
    del it
    gc.collect()
    assert gone(mine)


def test_a_finished_iterator_ends_its_workers_and_files():
    before, files = children(), len(os.listdir("/proc/self/fd"))
    read(2)
    assert gone(children() - before)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= files


def test_an_early_end_of_a_pass_leaves_the_pool_in_order():
    data = ds.NumpySlicesDataset(list(range(20)), ["x"], shuffle=False)
    data = data.map(lambda x: x * 2, "x", num_parallel_workers=2, python_multiprocessing=True).take(3).repeat(3)
    assert [int(r[0]) for r in data.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [0, 2, 4] * 3


SCRIPT = """
    import os, sys, time
    sys.path.insert(0, {src!r})
    import numpy as np
    import jumar.dataset as ds

    class Source:
        def __len__(self): return 10**4
        def __getitem__(self, i):
            time.sleep(0.01)
            return np.zeros((64, 64, 3), np.float32) + i

    data = ds.GeneratorDataset(Source(), ["x"], num_parallel_workers=2).map(lambda x: x + 1, "x", num_parallel_workers=2, python_multiprocessing=True)
    it = data.create_tuple_iterator(output_numpy=True)
    next(it)
    pids = [c.process.pid for pool in it._walk.feed.run.pools.values() for c in pool.workers]
    print(*pids, flush=True)
    {body}
"""


def start(body: str) -> tuple[subprocess.Popen, set[int]]:
    script = textwrap.dedent(SCRIPT).format(src=SRC, body=body)
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    pids = {int(p) for p in process.stdout.readline().split()}
    assert len(pids) == 4
    return process, pids


def test_ctrl_c_ends_the_script_and_its_workers():
    process, pids = start("\nfor row in it: pass")
    shm = set(os.listdir("/dev/shm"))
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group
    _, err = process.communicate(timeout=20)
    assert process.returncode != 0 and "KeyboardInterrupt" in err
    assert "Traceback" not in err.split("KeyboardInterrupt")[-1]
    assert gone(pids)
    assert set(os.listdir("/dev/shm")) <= shm


def test_workers_end_when_their_parent_is_killed():
    process, pids = start("\ntime.sleep(60)")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=20)
    assert gone(pids)


def test_a_script_that_ends_with_an_open_iterator_ends():
    process, pids = start("\nprint('done', file=sys.stderr)")
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, "", "done\n")
    assert gone(pids)


def test_spawned_workers_do_the_same(tmp_path):
    module = tmp_path / "rows_for_spawn.py"
    module.write_text(
        textwrap.dedent("""
        import numpy as np
        class Source:
            def __len__(self): return 12
            def __getitem__(self, i): return np.full((100, 200), i, np.float32)
        def double(x): return x * 2
        """)
    )
    main = tmp_path / "main.py"
    main.write_text(
        textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {SRC!r})
        import jumar.dataset as ds
        from rows_for_spawn import Source, double
        if __name__ == "__main__":
            ds.config.set_multiprocessing_start_method("spawn")
            data = ds.GeneratorDataset(Source(), ["x"], shuffle=False, num_parallel_workers=2)
            data = data.map(double, "x", num_parallel_workers=2, python_multiprocessing=True)
            print([float(r[0].mean()) for r in data.create_tuple_iterator(num_epochs=1, output_numpy=True)])
        """)
    )
    done = subprocess.run([sys.executable, str(main)], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == str([2.0 * i for i in range(12)]), done.stderr
