"""`load` and `Model`: arrays of every kind in, clear errors for what does not fit, threads, clones, packages."""

from __future__ import annotations

import array
import copy
import ctypes
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper
from tests.frontend.build import model

import jumar
from jumar.base import ImportFault, bf16, f32, i64, recording
from jumar.runtime import Step

TEXT = "g (float[batch, 3] x, float[batch, 3] scale, int64[1] k) => (float[batch, 3] y, int64[1] l) { y = Mul(x, scale) \n l = Add(k, k) }"


@pytest.fixture(scope="module")
def m() -> Any:
    return jumar.load(model(TEXT), target="interpreter")


X = np.arange(6, dtype=np.float32).reshape(2, 3)
K = np.array([4], np.int64)


def fault(run: Any) -> ImportFault:
    with pytest.raises(ImportFault) as caught:
        run()
    return caught.value


def test_ports_have_names_types_and_free_dims(m: Any) -> None:
    assert [str(p) for p in m.inputs] == ["x: f32[batch, 3]", "scale: f32[batch, 3]", "k: i64[1]"]
    assert [p.name for p in m.outputs] == ["y", "l"]
    assert m.inputs[0].dtype is f32 and m.inputs[2].dtype is i64
    assert m.free_dims == ("batch",)


def test_inputs_come_by_position_by_name_or_in_a_dict(m: Any) -> None:
    for y, l in (m(X, X, K), m(X, scale=X, k=K), m(x=X, scale=X, k=K), m({"x": X, "scale": X, "k": K})):
        np.testing.assert_array_equal(y, X * X)
        assert l.tolist() == [8]
    assert [r.tolist() for r in m.run(["l"], {"x": X, "scale": X, "k": K})] == [[8]]


class Dlpack:
    """Something that only speaks dlpack."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __dlpack__(self, **options: Any) -> Any:
        return self.held.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.held.__dlpack_device__()


def test_anything_that_holds_an_array_is_taken(m: Any) -> None:
    for given in (X.copy(), Dlpack(X), X.tolist(), np.asfortranarray(X), X.astype(">f4"), memoryview(X), array.array("f", X[0])):
        if isinstance(given, array.array):
            y, _ = m(np.asarray(given)[None], X[:1], K)
            np.testing.assert_array_equal(y, X[:1] * X[:1])
        else:
            y, _ = m(given, X, [4])
            np.testing.assert_array_equal(y, X * X)


class Tensor(Dlpack):
    """A tensor of PyTorch as far as it is asked: bfloat16, or one that wants gradients."""

    def __init__(self, held: Any, *, requires_grad: bool = False, code: int = 4) -> None:
        super().__init__(held)
        self.requires_grad = requires_grad
        self.code = code
        self.device = "cpu"

    def __dlpack__(self, **options: Any) -> Any:
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        capsule = self.held.view(np.uint16).__dlpack__()
        pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
        pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        at = pointer_of(capsule, b"dltensor")
        assert at is not None
        ctypes.c_uint8.from_address(at + 20).value = self.code
        return capsule

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


def test_bfloat16_is_taken_over_dlpack() -> None:
    twice = jumar.load(model("g (bfloat16[n] x) => (bfloat16[n] y) { y = Add(x, x) }"), target="interpreter")
    x = np.array([1.5, -2, 1024], bf16.numpy)
    y = twice(Tensor(x))
    assert y.dtype == bf16.numpy and y.astype(np.float32).tolist() == [3, -4, 2048]
    assert x.astype(np.float32).tolist() == [1.5, -2, 1024]
    assert fault(lambda: twice(Tensor(x, code=99))).code == "input-kind"


def test_a_tensor_that_wants_gradients_says_how_to_give_it(m: Any) -> None:
    error = fault(lambda: m(Tensor(X, requires_grad=True), X, K))
    assert error.code == "input-kind" and error.hint == "x.detach()"


@pytest.mark.parametrize("target", ["gpu", "npu", "cuda", "GPU", "quantum"])
def test_a_target_that_is_no_processor_lists_those_that_are(target: str) -> None:
    error = fault(lambda: jumar.load(model(TEXT), target=target))
    assert "target='cpu'" in error.hint and "did you mean" not in error.hint
    assert fault(lambda: jumar.load(model(TEXT), target="cpus")).hint == "did you mean cpu?"


def test_outputs_that_are_not_as_declared_are_noted_once() -> None:
    for declared, odd in (("float[n, 99]", True), ("float[n]", True), ("float[2, m]", False), ("float[n, 3]", False)):
        m = jumar.load(model(f"g (float[n, 3] x) => ({declared} y) {{ y = Neg(x) }}"), target="interpreter")
        with recording() as record:
            for _ in range(2):
                m(X)
        assert [e.facts["output"] for e in record.events if e.name == "output-declared"] == ["y"] * odd
        assert len(m.warnings) == odd and all("output 'y'" in w and "[2, 3]" in w for w in m.warnings)


@pytest.mark.parametrize("kind", ["path", "bytes", "proto"])
def test_a_model_is_pickled_by_its_path_or_its_bytes(kind: str, tmp_path: Path) -> None:
    proto = model("g (float[n, 3] x) => (float[n, 3] y) { y = Neg(x) }")
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    source = {"path": path, "bytes": path.read_bytes(), "proto": proto}[kind]
    m = jumar.load(source, target="interpreter", threads=1, dims={"n": 2})
    before = pickle.dumps(m)
    m(X)
    again = pickle.loads(pickle.dumps(m))
    for other in (again, pickle.loads(before), copy.copy(m), copy.deepcopy(m)):
        np.testing.assert_array_equal(other(X), -X)
        assert other.dims == {"n": 2} and str(other) == str(m)
    if kind == "path":
        path.write_bytes(model("g (float[n, 3] x) => (float[n, 3] y) { y = Abs(x) }").SerializeToString())
        assert fault(lambda: pickle.loads(before)).code == "file-changed"
        path.unlink()
        assert fault(lambda: pickle.loads(before)).code == "file-missing"


def test_a_wrong_name_is_named_with_the_nearest(m: Any) -> None:
    error = fault(lambda: m(X, skale=X, k=K))
    assert error.code == "input-name" and "got 'skale'" in error.what and "did you mean scale?" in error.hint
    error = fault(lambda: m(X))
    assert "scale: f32[batch, 3], k: i64[1] are missing" in error.what
    assert "at most 3 inputs, got 4" in fault(lambda: m(X, X, K, K)).what
    assert "by position and by name" in fault(lambda: m(X, X, K, x=X)).what
    assert fault(lambda: m.run(["z"], {"x": X, "scale": X, "k": K})).code == "output-name"


def test_a_wrong_dtype_is_not_cast_in_silence(m: Any) -> None:
    error = fault(lambda: m(X.astype(np.float64), X, K))
    assert error.code == "input-dtype" and "must be f32, got f64[2, 3]" in error.what and error.hint == "x.astype(np.float32)"
    assert fault(lambda: m(X, X, K.astype(np.int32))).hint == "k.astype(np.int64)"


def test_a_wrong_shape_says_which_dimension(m: Any) -> None:
    error = fault(lambda: m(X[:, :2], X, K))
    assert error.code == "input-shape" and "dimension 1 of 'x' must be 3, got 2" in error.what
    assert fault(lambda: m(X[0], X, K)).hint == "is the batch missing? x[None]"
    assert fault(lambda: m(X[None], X, K)).hint == "is there a dimension too many? x[0]"


def test_dims_of_one_name_are_one_size(m: Any) -> None:
    error = fault(lambda: m(X, X[:1], K))
    assert (
        error.code == "input-dims" and "'batch' must be one size, got 2 as dimension 0 of 'x' and 1 as dimension 0 of 'scale'" in error.what
    )


def test_dims_may_be_fixed_when_loading() -> None:
    m = jumar.load(model(TEXT), dims={"batch": 2}, target="interpreter")
    assert m.free_dims == ()
    assert str(m.graph().params[0].type) == "f32[2, 3]"
    assert "got 2 as dims=" in fault(lambda: m(X[:1], X[:1], K)).what
    assert "did you mean batch?" in fault(lambda: jumar.load(model(TEXT), dims={"bach": 2})).hint
    assert fault(lambda: jumar.load(model(TEXT), dims={"batch": -2})).code == "input-dims"


def test_what_is_no_array_is_refused(m: Any) -> None:
    assert fault(lambda: m(object(), X, K)).code == "input-kind"
    assert fault(lambda: m("text", X, K)).code == "input-kind"
    assert fault(lambda: m(None, X, K)).code == "input-kind"
    assert fault(lambda: jumar.load(3)).code == "file-missing"
    assert "did you mean cpu?" in fault(lambda: jumar.load(model(TEXT), target="cpuu")).hint


def test_inputs_with_defaults_may_be_left_out() -> None:
    proto = model("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    proto.graph.input.append(proto.graph.input[0])
    proto.graph.input[1].name = "w"
    m = jumar.load(proto)
    x = np.zeros(2, np.float32)
    assert m(x).tolist() == [1, 2]
    assert m(x, w=x).tolist() == [0, 0]
    assert m(x, x).tolist() == [0, 0]
    assert m(x).tolist() == [1, 2]


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_many_threads_get_their_own_results(target: str) -> None:
    text = """g (float[n, 8] x) => (float[k, 8] y) { a = MatMul(x, w)
        s = ReduceSum<keepdims = 0>(a, one) \n i = NonZero(s) \n j = Squeeze(i, zero) \n y = Gather(a, j) }"""
    proto = model(text.replace("{ a", "<float[8, 8] w = {" + ", ".join(["1"] * 64) + "}, int64[1] one = {1}, int64[1] zero = {0}> { a", 1))
    m = jumar.load(proto, target=target)
    errors: list[str] = []
    start = threading.Barrier(8)

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        copy = m.clone() if seed % 2 else m
        start.wait()
        for _ in range(20):
            x = rng.integers(0, 2, (rng.integers(1, 5), 8)).astype(np.float32)
            x[rng.random(len(x)) < 0.4] = 0
            a = x @ np.ones((8, 8), np.float32)
            if not np.array_equal(copy(x), a[a.sum(1) != 0]):
                errors.append(str(x))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert not errors


def test_a_package_runs_without_the_compiler(tmp_path: Path) -> None:
    m = jumar.load(
        model("g (float[batch, 3] x) => (float[batch, 3] y, float[2] w) <float[2] v = {1, 2}> { y = Relu(x) \n w = Identity(v) }")
    )
    m.package(tmp_path / "m.jmr", dims=[{"batch": 1}, {"batch": 2}])
    np.savez(tmp_path / "in.npz", x=X - 2)
    code = (
        "import sys, numpy as np\nfrom jumar.runtime import load_package\n"
        f"p = load_package({str(tmp_path / 'm.jmr')!r})\ny = p.run(dict(np.load({str(tmp_path / 'in.npz')!r})))\n"
        "print(y['y'].tolist(), y['w'].tolist(), 'jumar.compiler' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)})
    assert done.stdout.strip() == f"{np.maximum(X - 2, 0).tolist()} [1.0, 2.0] False"


def test_a_call_of_known_types_takes_the_straight_way_and_checks_new_ones() -> None:
    sub = jumar.load(model("g (float[n, 3] a, float[n, 3] b) => (float[n, 3] y) { y = Sub(a, b) }"))
    a, b = np.ones((2, 3), np.float32), np.full((2, 3), 3, np.float32)
    for _ in range(2):
        for y in (sub(a, b), sub({"b": b, "a": a}), sub(b=b, a=a)):
            np.testing.assert_array_equal(a - b, y)
    assert 1 == len(sub._straight)
    np.testing.assert_array_equal(a - b, sub(a.tolist(), b.tolist()))
    for wrong in ((a, b[:1]), (a,), (a.astype(np.float64), b), (a, b, b), (a, "b")):
        fault(lambda wrong=wrong: sub(*wrong))


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_a_fused_step_has_the_place_of_its_contraction(op: str) -> None:
    text = f"""g (float[1, 8, 6, 6] x) => (float[1, 8, 6, 6] y) {{
        a = Relu(x)
        c = {op}<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(a, w)
        n = BatchNormalization(c, s, s, s, s)
        y = Relu(n)
    }}"""
    proto = model(text)
    rng = np.random.default_rng(0)
    for name, shape in (("w", (8, 8, 3, 3)), ("s", (8,))):
        proto.graph.initializer.append(numpy_helper.from_array(rng.random(shape, np.float32), name))
    m = jumar.load(proto)
    steps = [s for p in m.compile(fresh=True).pieces for s in (p.program.steps if p.program else ())]
    places = [s.loc for s in steps if isinstance(s, Step) and "conv" in s.name]
    assert places and all(place.endswith(f"({op})") for place in places), places
