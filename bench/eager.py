"""What does one operator cost when nothing is compiled, against MindSpore (asynchronous and synchronous), PyTorch and JAX?

Question: microseconds of one call from Python in PYNATIVE mode; ratio = our median / a rival's, per round.
Machine, versions and the last answer: bench/results/eager-*.md (each written by this script together with its .json).
Usage: python bench/eager.py [--rows add,mlp] [--rounds 7] [--steps 200] [--out bench/results/eager-NAME]
       --python mindspore=PATH --python torch=PATH --python jax=PATH: the interpreter that has the rival; without it the one of this script
Rows that end in "read" bring the value to NumPy each time; of the others only the last is waited for.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from rivals import driver

ENGINES = ("jumar", "mindspore", "mindspore (synchronous)", "torch", "jax")
ROWS = {
    "add": "a + b of 2x2, read",
    "relu": "relu of 2x2",
    "index": "x[0]",
    "reshape": "x.reshape(4)",
    "tensor": "Tensor(array) of 2x2, a copy",
    "dense": "Dense(8, 8) of 4x8, read",
    "mlp": "MLP 32-64-10 b16: forward, backward, Adam, loss read",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--threads", default="1")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--steps", type=int, default=200, help="calls of one sample; a turn has five samples (the MLP: a twentieth of the calls)"
    )
    parser.add_argument("--python", action="append", default=[], metavar="PACKAGE=PATH")
    parser.add_argument("--out", type=Path, help="writes OUT.json and OUT.md")
    args = parser.parse_args()
    rows = args.rows.split(",")
    if unknown := [row for row in rows if row not in ROWS]:
        parser.error(f"no row {', '.join(unknown)}; there are {', '.join(ROWS)}")
    rivals = driver.Rivals(driver.pythons(args.python))
    facts, results = driver.machine(), []
    for row in rows:
        for threads in map(int, args.threads.split(",")):
            steps = max(1, args.steps // 20) if row == "mlp" else args.steps
            result = driver.measure(rivals, args.engines.split(","), "eager", row, ROWS[row], threads, args.rounds, steps, False, "us")
            results.append(result)
            print(driver.line(result), flush=True)
    question = "Microseconds of one call from Python, nothing compiled by the user."
    text = driver.markdown("Eager calls: ours, MindSpore, PyTorch, JAX", question, results, rivals, facts, 0.0)
    print("\n" + text)
    if args.out:
        driver.write(args.out, text, results, rivals, facts)


if __name__ == "__main__":
    main()
