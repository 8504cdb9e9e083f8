"""Runs that are killed again and again, against runs that are not; `scripts/kill-resume` calls it."""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path

from tests.train.test_state import run

KINDS = [("run_functional.py", []), ("run_model.py", ["1"]), ("run_model.py", ["0"])]


def main(kills: int) -> int:
    rng, failures = random.Random(time.time_ns()), 0
    for script, mode in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["60", "2", *mode]
            wanted = run(script, Path(folder) / "whole", *arguments)
            found, done, rounds = None, 0, 0
            while done < kills:
                found = run(script, Path(folder) / f"killed{rounds}", *arguments, saves=rng.randint(1, 20), wait_s=rng.uniform(0, 0.03))
                done += found is None
                if found is not None:  # it came to its end: compare, and begin anew
                    failures += found != wanted
                    rounds += 1
            found = run(script, Path(folder) / f"killed{rounds}", *arguments)
            failures += found != wanted
            end = "the same bits" if not failures else "OTHER BITS"
            print(f"{script} {' '.join(mode)}: {done} kills, {rounds + 1} runs came to their end, {end}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
