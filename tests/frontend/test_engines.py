"""The same answers on every kind of machine that may be met: few cores, narrow vectors; and of numbers that are none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.frontend.build import model

import jumar
from jumar.device import host

# a network with products, a convolution and a softmax, against its own meaning
SCRIPT = """
import sys, warnings
import numpy as np
from tests.frontend.test_engines import inputs, network
import jumar
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    models = [jumar.load(network()) for _ in range(2)]
    results = [m(*inputs()) for m in models]
expected = jumar.load(network(), target="interpreter")(*inputs())
assert all(np.allclose(r, expected, rtol=1e-4, atol=1e-5) for r in results)
threads = {s.executable.instance.threads for m in models for s in m._straight.values()}
print(len([w for w in said if "AVX2" in str(w.message)]), *threads)
"""


def run(script: str, **environment: str) -> list[str]:
    """What the script prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", script], env=dict(os.environ, **environment), capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def network() -> bytes:
    """A convolution, products of many rows and of one, and a softmax."""
    raw: bytes = model(
        "g (float[1, 3, 9, 9] x, float[5, 3, 3, 3] w, float[5, 33] a, float[33] b) => (float[1, 49, 33] y) {"
        "  c = Conv<pads = [0, 0, 0, 0]>(x, w)"
        "  r = Relu(c)"
        "  s = Constant<value_ints = [1, 5, 49]>()"
        "  f = Reshape(r, s)"
        "  t = Transpose<perm = [0, 2, 1]>(f)"
        "  m = MatMul(t, a)"
        "  n = Add(m, b)"
        "  y = Softmax<axis = -1>(n)"
        "}"
    ).SerializeToString()
    return raw


def inputs() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, dtype=np.float32) for shape in ((1, 3, 9, 9), (5, 3, 3, 3), (5, 33), (33,))]


@pytest.mark.skipif(host().architecture != "x86_64", reason="names of x86-64 CPUs")
@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v2"])
def test_a_cpu_without_avx2_gives_the_same_and_says_once_that_it_is_slow(cpu: str, tmp_path: Path) -> None:
    assert "1" == run(SCRIPT, JUMAR_CPU=cpu, JUMAR_CACHE_DIR=str(tmp_path))[0]


def test_one_core_of_several_is_one_thread(tmp_path: Path) -> None:
    bound = "import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n" + SCRIPT
    assert ["0", "1"] == run(bound, JUMAR_CACHE_DIR=str(tmp_path))


def test_threads_above_the_cores_give_the_same(tmp_path: Path) -> None:
    assert ["0", "64"] == run(SCRIPT, JUMAR_THREADS="64", JUMAR_CACHE_DIR=str(tmp_path))


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("rows", [1, 3, 20])
def test_what_is_no_number_goes_on_as_the_standard_says(odd: float, rows: int) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((rows, 40), dtype=np.float32), rng.standard_normal((40, 37), dtype=np.float32)
    x[0, 7] = odd
    w[11, 5] = odd
    text = f"(float[{rows}, 40] x) => (float[{rows}, 37] p, float[{rows}, 37] r, float[{rows}, 37] s, float[{rows}, 1] m)"
    proto = model(
        f"g {text} {{"
        "  p = MatMul(x, w)"
        "  r = Relu(p)"
        "  s = Softmax<axis = -1>(p)"
        "  axes = Constant<value_ints = [1]>()"
        "  m = ReduceMax<keepdims = 1>(p, axes)"
        "}"
    )
    proto.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    with np.errstate(all="ignore"):
        expected = jumar.load(proto, target="interpreter")(x)
        actual = jumar.load(proto)(x)
    for name, want, got in zip("prsm", expected, actual, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=name)  # NaN equals NaN only, infinity itself
