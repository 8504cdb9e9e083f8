"""How fast does `jumar diagnose` read a log, and in how much memory?

Question: a gigabyte of log in under 60 s and 300 MB. Three logs: `mixed` (eight ranks' training lines of MindSpore, torch_npu, vLLM, HCCL and the
runtime, 2 % errors), `errors` (every line is one), `plain` (no line is of interest). To beat: `grep -c -i -E 'error|fail'`, which looks for two words,
beside some thousands of patterns here. Each run is a process of its own; ours and grep in turns.
Answer (2026-11-30, two cores of an AMD EPYC): 9 to 11 s and 90 MB for a gigabyte; grep 0.5 to 1.1 s.  bench/results/diagnose-2026-11-30.md.
Usage: python bench/diagnose.py [--mb 1000] [--repeat 3] [--out FILE.md]
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

Line = Callable[[int], str]
ROUTINE: tuple[Line, ...] = (
    lambda i: (
        f"[INFO] HCCL(104,python):2025-11-21-01:20:{i % 60:02d}.624.{i % 1000:03d} [hccl_comm.cc:100] [104] entry AllReduce tag {i} count {i * 7}\n"
    ),
    lambda i: (
        f"2025-11-21 01:{i // 60 % 60:02d}:{i % 60:02d},125 [INFO] Epoch {i % 200}/200, Step {i}/3995, imgsize (640, 640), loss: {i % 100 / 10}\n"
    ),
    lambda i: f"(Worker_TP{i % 8} pid=78100) INFO 11-21 01:20:00 [multiproc_executor.py:932] request {i} finished with 128 tokens\n",
    lambda i: (
        f"[WARNING] DEVICE({i},fffe,python):2025-11-21-01:20:{i % 60:02d}.886.561 [mindspore/ccsrc/plugin/x.cc:761] pool grows to {i} bytes, device 0\n"
    ),
    lambda i: (
        f"[EVENT] RUNTIME(227,python):2025-11-21-01:20:{i % 60:02d}.982.549 [runtime.cc:100]227 rtStreamSynchronize done, stream_id={i % 100}\n"
    ),
)


def failure(i: int) -> str:
    return (
        f"[ERROR] RUNTIME(227,python):2025-11-21-01:20:{i % 60:02d}.982.549 [api_c.cc:1713]227 rtModelExecute:ErrCode=507011, "
        f"desc=[the model stream execute failed], InnerCode=0x7150050, device_id={i % 8}\n"
    )


def write(path: Path, kind: str, nbytes: int) -> None:
    """A log of about nbytes."""
    pick = random.Random(1)
    size = count = 0
    with path.open("w") as stream:
        while size < nbytes:
            share = {"mixed": 0.02, "errors": 1.0, "plain": 0.0}[kind]
            line = failure(count) if pick.random() < share else pick.choice(ROUTINE)(count)
            stream.write(line)
            size += len(line)
            count += 1


def measure(command: list[str]) -> tuple[float, float]:
    """Seconds and peak megabytes of a process."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, *command], capture_output=True, text=True, check=True
    )  # a child of its own: RUSAGE_CHILDREN keeps the largest of all
    return time.perf_counter() - start, float(done.stdout) / (1024 if sys.platform == "linux" else 2**20)


_CHILD = (
    "import resource, subprocess, sys\n"
    "subprocess.run(sys.argv[1:], capture_output=True)\n"  # grep stops at the first hit where nobody reads
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    lines = ["| log | MB | diagnose, s | MB/s | peak MB | grep -i -E, s |", "|---|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("mixed", "errors", "plain"):
            log = Path(folder) / f"{kind}.log"
            write(log, kind, args.mb * 1_000_000)
            ours, rival = [], []
            for _ in range(args.repeat):
                ours.append(measure([sys.executable, "-m", "jumar", "diagnose", str(log)]))
                rival.append(measure(["grep", "-c", "-i", "-E", "error|fail", str(log)]))
            seconds = [s for s, _ in ours]
            middle, spread = statistics.median(seconds), max(seconds) - min(seconds)
            cells = (kind, f"{args.mb}", f"{middle:.1f} ± {spread / 2:.1f}", f"{args.mb / middle:.0f}", f"{max(m for _, m in ours):.0f}")
            lines.append(f"| {' | '.join(cells)} | {statistics.median(s for s, _ in rival):.1f} |")
            print(lines[-1], flush=True)
            log.unlink()
    if args.out:
        args.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
