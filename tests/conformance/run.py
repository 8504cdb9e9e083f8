"""The conformance runner.   python -m tests.conformance.run [-k filter] [--target interpreter|cpu] [--jobs 2] [--json FILE] [-v]

Question: how much of the ONNX project's own suite (node, simple, pytorch-converted, pytorch-operator) do we pass?
Prints passed, failed and unsupported for each group, with the reason of everything that did not pass.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from tests.conformance.cases import GROUPS, all_names

TIMEOUT_S = 60.0


class Worker:
    """A subprocess that runs one case at a time; replaced when it crashes or hangs."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.process: subprocess.Popen[str] | None = None
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  (lives as long as the worker)

    def run(self, name: str) -> dict[str, Any]:
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.conformance.worker", self.target],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
            )  # fmt: skip
        process = self.process
        assert process.stdin and process.stdout
        timer = threading.Timer(TIMEOUT_S, process.kill)
        timer.start()
        try:
            process.stdin.write(name + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        alive = timer.is_alive()
        timer.cancel()
        if line:
            result: dict[str, Any] = json.loads(line)
            return result
        code = process.wait()
        self.process = None
        self.errors.seek(0)
        last = self.errors.read().strip().splitlines()[-1:]
        return {
            "name": name,
            "status": "failed",
            "why": f"crashed with {code}: {' '.join(last)}" if alive else f"longer than {TIMEOUT_S:.0f} s",
            "code": "crash",
        }

    def close(self) -> None:
        if self.process and self.process.stdin:
            self.process.stdin.close()
            self.process.wait()


def run(names: list[str], target: str, jobs: int) -> list[dict[str, Any]]:
    """Results of the cases, in their order."""
    todo: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in names:
        todo.put(name)
    results: dict[str, dict[str, Any]] = {}

    def work() -> None:
        worker = Worker(target)
        while True:
            try:
                name = todo.get_nowait()
            except queue.Empty:
                worker.close()
                return
            results[name] = worker.run(name)

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[n] for n in names]


def summary(results: list[dict[str, Any]]) -> str:
    """A table of counts for each group."""
    counts = Counter((r["name"].split("/")[0], r["status"]) for r in results)
    lines = [f"{'group':20s} {'passed':>7s} {'failed':>7s} {'unsupported':>12s} {'of':>6s}"]
    for group in [*GROUPS, "all"]:
        row = [
            sum(c for (g, s), c in counts.items() if s == status and group in (g, "all")) for status in ("passed", "failed", "unsupported")
        ]
        lines.append(f"{group:20s} {row[0]:7d} {row[1]:7d} {row[2]:12d} {sum(row):6d}")
    return "\n".join(lines)


def reasons(results: list[dict[str, Any]]) -> list[str]:
    """Why cases did not pass, equal reasons in one line."""
    groups: dict[tuple[str, str], list[str]] = {}
    for r in results:
        if r["status"] != "passed":
            groups.setdefault((r["status"], r["why"]), []).append(r["name"].split("/")[1].removeprefix("test_"))
    lines = []
    for (status, why), names in groups.items():
        more = f" and {len(names) - 6} more" if len(names) > 6 else ""
        lines.append(f"{status:12s} {', '.join(names[:6])}{more}: {why}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("-k", default="", help="regular expression on group/name")
    parser.add_argument("--target", default="interpreter")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", default="")
    parser.add_argument("-q", action="store_true", help="only the table")
    args = parser.parse_args()
    names = [n for n in all_names() if re.search(args.k, n)]
    results = run(names, args.target, args.jobs)
    if not args.q:
        print("\n".join(reasons(results)))
    print(summary(results))
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1))
    return 0 if all(r["status"] != "failed" for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
