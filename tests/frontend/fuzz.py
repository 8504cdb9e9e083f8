"""Broken ONNX files by the thousand.   python -m tests.frontend.fuzz [--count 2400] [--target interpreter|cpu] [--start 0] [--jobs 2]

Question: does any file crash the process, hang it, or end in anything but a result or a `StackError`?
File `i` is the same in every run: a small model, mutated with the seed `i`: flipped bits, cut or spliced bytes, or fields of the protobuf changed to
what the format allows and no exporter writes (sizes of 2^60, negative sizes, names swapped, attributes of another type).
"""

# ruff: noqa: E501  (a model a line)
from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from typing import Any

import numpy as np

COUNT = 2400
TIMEOUT_S = 60.0
SLOW_S = 3.0
MEMORY = 4 << 30

TEXTS = (
    "g (float[n, 4] x) => (float[n, 3] y) <float[4, 3] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[3] b = {1,2,3}> { a = Gemm(x, w, b) \n c = Relu(a) \n y = Softmax<axis = 1>(c) }",
    "g (float[1, 2, 6, 6] x) => (float[p, q, r, s] y) { a = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [1, 1]>(x, w) \n m = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(a) \n y = AveragePool<kernel_shape = [2, 2]>(m) }",
    "g (float[n, 3] x) => (float[a, b] y) <int64[2] s = {3, -1}, int64[1] ax = {0}> { t = Transpose<perm = [1, 0]>(x) \n r = Reshape(t, s) \n u = ReduceSum(r, ax) \n c = Concat<axis = 0>(r, u) \n y = Slice(c, ax, s2) }",
    "g (float[n] x) => (float[k] y) { i = NonZero(x) \n j = Transpose(i) \n y = GatherND(x, j) }",
    "g (float[n] x, bool c) => (float[n] y) { y = If(c) <then_branch = t () => (a) { a = Neg(x) }, else_branch = e () => (b) { b = Add(x, x) }> }",
    "g (int64 m, float[n] x) => (float[n] y, float[k, n] r) <bool go = {1}> { y, r = Loop(m, go, x) <body = b (int64 i, bool c, float[n] v) => (bool d, float[n] w, float[n] z) { o = CastLike(i, x) \n w = Add(v, o) \n z = Mul(w, x) \n d = Identity(c) }> }",
    "g (float[2] s, float[2, 4] x) => (float[2] l, float[2, 4] o) { l, o = Scan(s, x) <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1], body = b (float[2] a, float[2] r) => (float[2] n, float[2] q) { n = Add(a, r) \n q = Identity(n) }> }",
    "g (float[4] x) => (float[k] y) <int64 one = {1}> { a = SequenceConstruct(x, x) \n b = SequenceInsert(a, x, one) \n c = SequenceAt(b, one) \n d = ConcatFromSequence<axis = 0>(b) \n y = Add(d, d) }",
    "g (float[2, 4] x) => (float[2, 4] y) <float s = {0.1}, uint8 z = {3}> { q = QuantizeLinear(x, s, z) \n y = DequantizeLinear(q, s, z) }",
    "g (float[3, 2, 4] x) => (float[a, b, c, d] y) <float[1, 12, 4] w = {" + ",".join(["0.1"] * 48) + "}, float[1, 12, 3] r = {" + ",".join(["0.1"] * 36) + "}> { y = LSTM<hidden_size = 3>(x, w, r) }",
    "g (float[1, 1, 4, 4] x) => (float[a, b, c, d] y) <float[4] s = {1, 1, 2, 2}> { e = Identity(s) \n y = Resize<mode = \"linear\">(x, , e) }",
    "g (float[2, 5] x) => (float[2, k] v, int64[2, k] i) <int64[1] k = {3}> { v, i = TopK<axis = 1>(x, k) }",
    "g (float[2, 3, 4] x) => (float[2, 3, 4] y) <float[4] w = {1, 1, 1, 1}> { a = LayerNormalization<axis = -1>(x, w) \n b = Gelu(a) \n c = Erf(b) \n y = Pow(c, w) }",
    "g (float[2, 3] x, float[3, 4] z) => (float[2, 4] y) { y = Einsum<equation = \"ij,jk->ik\">(x, z) }",
    "g (string[n] x) => (string[n] y, bool[n] e) { y = StringConcat(x, x) \n e = Equal(x, y) }",
    "g (float[2, 3] x) => (float[2, 3] y) { y = mine.f<alpha = 3.0>(x) }",
    "g (float[8] x) => (float[a, b] y) <int64[2] s = {2, 4}, int64[2] t = {3, 2}, int64[4] p = {1, 0, 0, 1}> { r = Reshape(x, s) \n u = Expand(r, s) \n v = Tile(u, t) \n y = Pad(v, p) }",
)  # fmt: skip
FUNCTION = '<domain: "mine", opset_import: ["" : 20]> f <alpha> (x) => (y) { a = Constant<value_float: float = @alpha>() \n y = Mul(x, a) }'


def seeds() -> list[bytes]:
    """The sound models that mutations start from."""
    import onnx.parser
    from onnx import numpy_helper

    found = []
    for text in TEXTS:
        function = FUNCTION if "mine." in text else ""
        proto = onnx.parser.parse_model(
            f'<ir_version: 9, opset_import: ["" : 20{", " + chr(34) + "mine" + chr(34) + " : 1" if function else ""}]>\n{text}\n{function}'
        )
        names = {t.name for t in proto.graph.initializer}
        if "Conv<" in text:
            proto.graph.initializer.append(numpy_helper.from_array(np.ones((2, 2, 3, 3), np.float32), "w"))
        if "s2)" in text and "s2" not in names:
            proto.graph.initializer.append(numpy_helper.from_array(np.array([2], np.int64), "s2"))
        found.append(proto.SerializeToString())
    return found


def fuzzed(index: int, corpus: list[bytes]) -> bytes:
    """File number `index`."""
    rng = random.Random(index)
    raw = corpus[rng.randrange(len(corpus))]
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        raw = rng.choice([_flip, _cut, _splice, _noise, *[_fields] * 7])(raw, rng, corpus)
    return raw


def _flip(raw: bytes, rng: random.Random, corpus: list[bytes]) -> bytes:
    changed = bytearray(raw)
    for _ in range(rng.choice([1, 1, 2, 8])):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(raw: bytes, rng: random.Random, corpus: list[bytes]) -> bytes:
    start = rng.randrange(len(raw) + 1)
    return rng.choice([raw[:start], raw[start:], raw[:start] + raw[start + rng.randrange(16) :]])


def _splice(raw: bytes, rng: random.Random, corpus: list[bytes]) -> bytes:
    other = rng.choice(corpus)
    at, to = rng.randrange(len(raw) + 1), rng.randrange(len(other))
    return raw[:at] + other[to : to + rng.choice([4, 32, 400])] + raw[at:]


def _noise(raw: bytes, rng: random.Random, corpus: list[bytes]) -> bytes:
    at = rng.randrange(len(raw) + 1)
    return raw[:at] + rng.randbytes(rng.choice([1, 2, 8])) + raw[at + rng.choice([0, 1, 8]) :]


NUMBERS = (0, 1, -1, 2, 3, 7, 64, 1000, 2**31 - 1, 2**31, -(2**31), 2**40, 2**60, 2**63 - 1, -(2**63))
FLOATS = (0.0, 1.0, -1.0, 1e30, -1e-30, float("inf"), float("nan"))


def _fields(raw: bytes, rng: random.Random, corpus: list[bytes]) -> bytes:
    """The file with one field of its protobuf changed."""
    import onnx
    from google.protobuf.message import DecodeError

    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(raw)
    except DecodeError:
        return _flip(raw, rng, corpus)
    places = _places(proto)
    if not places:
        return rng.randbytes(8)
    message, field = places[rng.randrange(len(places))]
    try:
        _change(message, field, rng, places)
        return bytes(proto.SerializeToString())
    except (ValueError, TypeError, AttributeError):  # the format cannot hold that
        return raw


def _places(message: Any) -> list[tuple[Any, Any]]:
    found = []
    stack = [message]
    while stack:
        top = stack.pop()
        for field, value in top.ListFields():
            found.append((top, field))
            if field.message_type is not None:
                stack += list(value) if field.is_repeated else [value]
    return found


def _change(message: Any, field: Any, rng: random.Random, places: list[tuple[Any, Any]]) -> None:
    value = getattr(message, field.name)
    if field.is_repeated:
        action = rng.choice(["drop", "double", "swap", "set", "set"])
        if action == "drop" and len(value):
            del value[rng.randrange(len(value))]
        elif action == "double" and len(value):
            item = value[rng.randrange(len(value))]
            value.add().CopyFrom(item) if field.message_type is not None else value.append(item)
        elif action == "swap" and len(value) > 1 and field.message_type is None:
            i, j = rng.randrange(len(value)), rng.randrange(len(value))
            value[i], value[j] = value[j], value[i]
        elif field.message_type is None and len(value):
            value[rng.randrange(len(value))] = _other(value[0], rng, places)
        return
    if field.message_type is not None:
        message.ClearField(field.name)
        return
    setattr(message, field.name, _other(value, rng, places))


def _other(value: Any, rng: random.Random, places: list[tuple[Any, Any]]) -> Any:
    match value:
        case bool() | int():
            return rng.choice([*NUMBERS, value + 1, value - 1])
        case float():
            return rng.choice(FLOATS)
        case str():
            texts = [v for m, f in places for v in [getattr(m, f.name)] if isinstance(v, str)]
            return rng.choice([*texts, "", "x", "MatMul", "Concat", "a" * 1000])
        case bytes():
            return rng.choice([b"", value[:-1], value + b"\0", value * 2, b"\xff" * len(value)])
    return value


# ---- the worker ----


def attempt(raw: bytes, target: str) -> tuple[str, str]:
    """What a file ends in: result, refused (a StackError), or failed with what was raised."""
    import jumar
    from jumar.base import StackError

    try:
        model = jumar.load(raw, target=target)
        sizes = {d: 2 for p in model.inputs for d in (p.shape or ()) if isinstance(d, str)}
        feeds = {p.name: _feed(p, sizes) for p in model.inputs if not p.has_default}
        if any(v is None for v in feeds.values()):
            model.compile(dims={d: s for d, s in sizes.items() if d in model.free_dims})
        else:
            model.run(None, feeds)
    except StackError as error:
        str(error)
        return "refused", error.code or "no code"
    except BaseException as error:
        return "failed", f"{type(error).__name__}: {error}"[:300]
    return "result", ""


def _feed(port: Any, sizes: dict[str, int]) -> Any:
    if port.kind != "tensor" or port.dtype is None:
        return None
    shape = tuple(sizes[d] if isinstance(d, str) else d for d in port.shape or ())
    if any(d > 4096 for d in shape) or np.prod(shape, dtype=object) > 1 << 20:
        return None
    if port.dtype.kind == "s":
        return np.full(shape, "ab", object)
    values = np.random.default_rng(0).integers(0, 3, shape)
    return np.asarray(values).astype(port.dtype.numpy)


def worker(target: str) -> None:
    from jumar.frontend.importers.onnx.rules import control

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    control.MAX_ITERATIONS = 200  # a loop may run for hours by right; here it need not
    corpus = seeds()
    for line in sys.stdin:
        before = time.process_time()
        status, why = attempt(fuzzed(int(line), corpus), target)
        print(json.dumps([status, why, round(time.process_time() - before, 2)]), flush=True)


class Worker:
    """A subprocess that runs one file at a time, replaced when it crashes or hangs."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.process: subprocess.Popen[str] | None = None
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  (lives as long as the worker)

    def run(self, index: int) -> tuple[str, str]:
        if self.process is None:
            command = [sys.executable, "-m", "tests.frontend.fuzz", "--worker", "--target", self.target]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        process = self.process
        assert process.stdin and process.stdout
        timer = threading.Timer(TIMEOUT_S, process.kill)
        timer.start()
        try:
            process.stdin.write(f"{index}\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        late = not timer.is_alive()
        timer.cancel()
        if line:
            status, why, seconds = json.loads(line)
            if seconds > SLOW_S:
                print(f"file {index}: {seconds} s, {status} {why}", flush=True)
            return status, why
        code = process.wait()
        self.process = None
        self.errors.seek(0)
        last = self.errors.read().strip().splitlines()[-1:]
        return "failed", f"longer than {TIMEOUT_S:.0f} s" if late else f"crashed with {code}: {' '.join(last)}"

    def close(self) -> None:
        if self.process and self.process.stdin:
            self.process.stdin.close()
            self.process.wait()


def run(indices: list[int], target: str, jobs: int) -> dict[int, tuple[str, str]]:
    """What each file ended in."""
    results: dict[int, tuple[str, str]] = {}

    def work(mine: list[int]) -> None:
        one = Worker(target)
        for index in mine:
            results[index] = one.run(index)
        one.close()

    threads = [threading.Thread(target=work, args=(indices[k::jobs],)) for k in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--target", default="interpreter")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--worker", action="store_true")
    args = parser.parse_args()
    if args.worker:
        worker(args.target)
        return 0
    results = run(list(range(args.start, args.start + args.count)), args.target, args.jobs)
    for index, (status, why) in sorted(results.items()):
        if status == "failed":
            print(f"file {index}: {why}")
    print(
        Counter(status for status, _ in results.values()),
        Counter(why for status, why in results.values() if status == "refused").most_common(30),
    )
    return 0 if all(status != "failed" for status, _ in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
