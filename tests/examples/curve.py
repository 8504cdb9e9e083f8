"""Runs one example from fixed initial weights and writes the loss of each step: the same file under MindSpore and under Jumar.

    python tests/examples/curve.py lenet_digits --out curve.json -- --steps 100          (whatever `mindspore` is installed)
    jumar run tests/examples/curve.py lenet_digits --out curve.json -- --steps 100
In: an example with `build(args)` and `main(argv)`.  Out: {"example", "arguments", "losses", "seconds", "by"}.
"""

import argparse
import importlib.util
import json
import sys
import time
import zlib
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def initial(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The value that a parameter starts from: it depends on its name and shape, on nothing else."""
    rng = np.random.RandomState(zlib.crc32(name.encode()) & 0x7FFFFFFF)
    last = name.rsplit(".", 1)[-1]
    if last in ("moving_mean", "beta", "bias"):
        return np.zeros(shape, np.float32)
    if name.endswith("bn3.gamma"):  # the last of a branch of ResNet-50: smaller, else rounding alone moves fifty layers by percents
        return np.full(shape, 0.2, np.float32)
    if last in ("moving_variance", "gamma"):
        return np.ones(shape, np.float32)
    if last == "embedding_table":
        return (0.1 * rng.standard_normal(shape)).astype(np.float32)
    if len(shape) <= 1:
        return (0.02 * rng.standard_normal(shape)).astype(np.float32)
    return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def fill(net, perturb=0.0):  # type: ignore[no-untyped-def]
    """`net` with fixed weights; with `perturb` each is off by about that part of itself."""
    import mindspore as ms

    for name, parameter in net.parameters_and_names():
        if "Float" in str(parameter.dtype):
            array = initial(name, tuple(parameter.shape))
            array = array * (1 + perturb * np.random.RandomState(5).standard_normal(array.shape))
            parameter.set_data(ms.Tensor(array.astype(np.float32), parameter.dtype))
    return net


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("example")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--perturb", type=float, default=0.0, help="noise on the weights, relative: how far does rounding alone carry?")
    parser.epilog = "What follows -- are arguments of the example."
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args, given = parser.parse_args(sys.argv[1:end]), sys.argv[end + 1 :]
    spec = importlib.util.spec_from_file_location(args.example, EXAMPLES / f"{args.example}.py")
    assert spec is not None and spec.loader is not None, f"no example {args.example}"
    module = importlib.util.module_from_spec(spec)
    sys.modules[args.example] = module
    spec.loader.exec_module(module)
    made = module.build
    module.build = lambda *given: fill(made(*given), args.perturb)
    start = time.perf_counter()
    losses = module.main(given)
    import mindspore as ms

    found = {
        "example": args.example,
        "arguments": given,
        "by": f"{ms.__name__} {ms.__version__}",
        "seconds": round(time.perf_counter() - start, 1),
        "losses": [float(f"{loss:.7g}") for loss in losses],
    }
    args.out.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
