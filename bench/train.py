"""How fast is one training step, against MindSpore, PyTorch (eager and compiled) and JAX?

Question: forward, backward and optimiser, fp32, from the same weights on the same data; ratio = our median / a rival's, per round.
Machine, versions and the last answer: bench/results/train-*.md (each written by this script together with its .json).
Usage: python bench/train.py [--rows mlp,lenet] [--threads 1,2] [--rounds 7] [--steps 5] [--out bench/results/train-NAME]
       --python mindspore=PATH --python torch=PATH --python jax=PATH: the interpreter that has the rival; without it the one of this script
Each rival is a process of its own that sleeps while another works. A rival whose package is missing is said and left out.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from rivals import driver
from rivals.task import ROWS, TASKS

ENGINES = ("jumar", "mindspore", "torch", "torch.compile", "jax")
TOLERANCE = 0.02


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=",".join(ROWS), help=f"of {', '.join(TASKS)}")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=5, help="steps of one turn")
    parser.add_argument("--no-cached", action="store_true", help="do not start each rival a second time to see what its caches spare")
    parser.add_argument("--python", action="append", default=[], metavar="PACKAGE=PATH")
    parser.add_argument("--out", type=Path, help="writes OUT.json and OUT.md")
    args = parser.parse_args()
    rows = args.rows.split(",")
    if unknown := [row for row in rows if row not in TASKS]:
        parser.error(f"no row {', '.join(unknown)}; there are {', '.join(TASKS)}")
    rivals = driver.Rivals(driver.pythons(args.python))
    facts, results = driver.machine(), []
    try:
        for row in rows:
            for threads in map(int, args.threads.split(",")):
                result = driver.measure(
                    rivals, args.engines.split(","), "train", row, TASKS[row].title, threads, args.rounds, args.steps, not args.no_cached
                )
                results.append(result)
                print(driver.line(result), flush=True)
    except KeyboardInterrupt:
        print("stopped: the rows so far are kept", file=sys.stderr)
    if not results:
        sys.exit(130)
    question = "One training step in fp32: forward, backward, optimiser; the loss is read after each."
    text = driver.markdown("Training steps: ours, MindSpore, PyTorch, JAX", question, results, rivals, facts, TOLERANCE)
    print("\n" + text)
    if args.out:
        driver.write(args.out, text, results, rivals, facts)


if __name__ == "__main__":
    main()
