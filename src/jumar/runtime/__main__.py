"""`python -m jumar.runtime MODEL.jmr INPUTS.npz [-o OUTPUTS.npz]`: runs a deployed model; compiler and frontend are not needed."""

from __future__ import annotations

import argparse
import sys

import numpy as np

from jumar.base import StackError
from jumar.runtime.executor import measure
from jumar.runtime.package import load_package


def main(arguments: list[str] | None = None) -> int:
    """Runs the model in a package on the arrays of an .npz file.   Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m jumar.runtime", description="Run a deployed model.")
    parser.add_argument("package", help="the .jmr file")
    parser.add_argument("inputs", help="an .npz file with the inputs by name")
    parser.add_argument("-o", "--output", help="an .npz file for the outputs; without it their types and first values are shown")
    parser.add_argument("--threads", type=int, default=0, help="threads; default the cores that may be used")
    parser.add_argument("--time", action="store_true", help="show the median time of a run")
    given = parser.parse_args(arguments)
    try:
        package = load_package(given.package)
        with np.load(given.inputs, allow_pickle=False) as file:
            inputs = {name: file[name] for name in file.files}
        outputs = package.run(inputs, threads=given.threads)
        if given.output:
            np.savez(given.output, **outputs)  # type: ignore[arg-type]
        else:
            for name, array in outputs.items():
                values = " ".join(f"{v:g}" if array.dtype.kind == "f" else str(v) for v in array.ravel()[:8].tolist())
                sys.stdout.write(f"{name}: {array.dtype}{list(array.shape)} = {values}{' ...' if array.size > 8 else ''}\n")
        if given.time:
            seconds = measure(lambda: package.run(inputs, threads=given.threads), 1.0)
            sys.stdout.write(f"{seconds * 1e3:.3f} ms per run (median)\n")
    except (StackError, OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
