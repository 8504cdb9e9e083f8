"""Eight networks from their published architectures with seeded random weights, at full size and without any framework.

In: a name and a batch.  Out: `build(name, batch) -> (onnx.ModelProto, {input: array})`.  Read by whole-model tests and bench/infer.py.
ResNet-50 v1.5, MobileNetV3-Large (table 1), YOLOv5s v6 (raw head maps), BERT-base (128 tokens), GPT-2 prefill (128) and decode
(one token after 128), ViT-B/16, U-Net (base 32, four levels), MLP 784-512-256-10.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto
from tests.models.net import Arrays, Net

Built = tuple[onnx.ModelProto, Arrays]


def build(name: str, batch: int = 1) -> Built:
    """The model and one set of inputs, the same every time."""
    return ZOO[name](batch)


def _image(batch: int, size: int, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((batch, channels, size, size), dtype=np.float32)


def resnet50(batch: int) -> Built:
    net = Net("resnet50")
    x = net.input("x", (batch, 3, 224, 224))
    y = net.pool(net.op("Relu", net.norm(net.conv(x, (3, 64), 7, 2), 64)), 3, 2, 1)
    cin = 64
    for mid, count, first in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            stride, cout = first if i == 0 else 1, mid * 4
            short = y if cin == cout else net.norm(net.conv(y, (cin, cout), 1, stride), cout)
            z = net.op("Relu", net.norm(net.conv(y, (cin, mid), 1), mid))
            z = net.op("Relu", net.norm(net.conv(z, (mid, mid), 3, stride), mid))
            z = net.norm(net.conv(z, (mid, cout), 1), cout, scale=0.2)
            y, cin = net.op("Relu", net.op("Add", z, short)), cout
    y = net.op("Flatten", net.op("GlobalAveragePool", y), axis=1)
    y = net.op("Gemm", y, net.normal(1000, 2048), net.normal(1000), transB=1)
    return net.model({"y": y}), {"x": _image(batch, 224)}


_MOBILE = (  # kernel, expansion, out, squeeze-and-excite, hard-swish, stride
    (3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2), (5, 120, 40, 1, 0, 1),
    (5, 120, 40, 1, 0, 1), (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1),
    (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1), (5, 672, 160, 1, 1, 2), (5, 960, 160, 1, 1, 1), (5, 960, 160, 1, 1, 1),
)  # fmt: skip


def mobilenet_v3_large(batch: int) -> Built:
    net = Net("mobilenet_v3_large")
    x = net.input("x", (batch, 3, 224, 224))
    y = net.op("HardSwish", net.norm(net.conv(x, (3, 16), 3, 2), 16))
    cin = 16
    for kernel, wide, cout, squeeze, hard, stride in _MOBILE:
        act = "HardSwish" if hard else "Relu"
        z = y
        if wide != cin:
            z = net.op(act, net.norm(net.conv(z, (cin, wide), 1), wide))
        z = net.op(act, net.norm(net.conv(z, (wide, wide), kernel, stride, groups=wide), wide))
        if squeeze:
            narrow = _divisible(wide / 4)
            s = net.op("Relu", net.conv(net.op("GlobalAveragePool", z), (wide, narrow), 1, bias=True))
            s = net.op("HardSigmoid", net.conv(s, (narrow, wide), 1, bias=True), alpha=1 / 6, beta=0.5)
            z = net.op("Mul", z, s)
        z = net.norm(net.conv(z, (wide, cout), 1), cout)
        y, cin = net.op("Add", y, z) if stride == 1 and cin == cout else z, cout
    y = net.op("HardSwish", net.norm(net.conv(y, (160, 960), 1), 960))
    y = net.op("Flatten", net.op("GlobalAveragePool", y), axis=1)
    y = net.op("HardSwish", net.op("Gemm", y, net.normal(1280, 960), net.normal(1280), transB=1))
    y = net.op("Gemm", y, net.normal(1000, 1280), net.normal(1000), transB=1)
    return net.model({"y": y}), {"x": _image(batch, 224)}


def _divisible(value: float) -> int:
    rounded = max(8, int(value + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * value else rounded


def yolov5s(batch: int) -> Built:
    net = Net("yolov5s")

    def cbs(x: str, cin: int, cout: int, kernel: int = 1, stride: int = 1, pad: int | None = None) -> str:
        return net.silu(net.norm(net.conv(x, (cin, cout), kernel, stride, pad=pad), cout, 1e-3))

    def c3(x: str, cin: int, cout: int, count: int, shortcut: bool = True) -> str:
        half = cout // 2
        y, side = cbs(x, cin, half), cbs(x, cin, half)
        for _ in range(count):
            z = cbs(cbs(y, half, half), half, half, 3)
            y = net.op("Add", y, z) if shortcut else z
        return cbs(net.op("Concat", y, side, axis=1), 2 * half, cout)

    def up(x: str) -> str:
        scales = net.constant([1.0, 1.0, 2.0, 2.0])
        return str(net.op("Resize", x, "", scales, mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric"))

    def join(*xs: str) -> str:
        return str(net.op("Concat", *xs, axis=1))

    x = net.input("x", (batch, 3, 640, 640))
    y = c3(cbs(cbs(x, 3, 32, 6, 2, 2), 32, 64, 3, 2), 64, 64, 1)
    p3 = c3(cbs(y, 64, 128, 3, 2), 128, 128, 2)
    p4 = c3(cbs(p3, 128, 256, 3, 2), 256, 256, 3)
    y = cbs(c3(cbs(p4, 256, 512, 3, 2), 512, 512, 1), 512, 256)
    pools = [y]
    for _ in range(3):
        pools.append(net.pool(pools[-1], 5, 1, 2))
    p5 = cbs(join(*pools), 1024, 512)
    t10 = cbs(p5, 512, 256)
    t14 = cbs(c3(join(up(t10), p4), 512, 256, 1, False), 256, 128)
    t17 = c3(join(up(t14), p3), 256, 128, 1, False)
    t20 = c3(join(cbs(t17, 128, 128, 3, 2), t14), 256, 256, 1, False)
    t23 = c3(join(cbs(t20, 256, 256, 3, 2), t10), 512, 512, 1, False)
    heads = {f"p{i}": net.conv(t, (c, 255), 1, bias=True) for i, t, c in ((3, t17, 128), (4, t20, 256), (5, t23, 512))}
    return net.model(heads), {"x": np.random.default_rng(1).random((batch, 3, 640, 640), dtype=np.float32)}


def unet(batch: int, size: int = 256) -> Built:
    net = Net("unet")
    widths = [32 * 2**i for i in range(5)]

    def double(x: str, cin: int, cout: int) -> str:
        y = net.op("Relu", net.norm(net.conv(x, (cin, cout), 3), cout))
        return str(net.op("Relu", net.norm(net.conv(y, (cout, cout), 3), cout)))

    x = net.input("x", (batch, 3, size, size))
    levels = [double(x, 3, widths[0])]
    for i in range(4):
        levels.append(double(net.pool(levels[-1], 2, 2), widths[i], widths[i + 1]))
    y = levels[-1]
    for i in (3, 2, 1, 0):
        w = net.normal(widths[i + 1], widths[i], 2, 2, std=(2 / (4 * widths[i + 1])) ** 0.5)
        y = net.op("ConvTranspose", y, w, net.normal(widths[i]), kernel_shape=[2, 2], strides=[2, 2])
        y = double(net.op("Concat", levels[i], y, axis=1), widths[i + 1], widths[i])
    return net.model({"y": net.conv(y, (32, 2), 1, bias=True)}), {"x": _image(batch, size)}


def mlp(batch: int) -> Built:
    net = Net("mlp")
    y = net.input("x", (batch, 784))
    for i, (cin, cout) in enumerate(((784, 512), (512, 256), (256, 10))):
        y = net.op("Gemm", y, net.normal(cout, cin, std=cin**-0.5), net.normal(cout), transB=1)
        y = net.op("Relu", y) if i < 2 else y
    return net.model({"y": y}), {"x": np.random.default_rng(1).standard_normal((batch, 784), dtype=np.float32)}


def bert_base(batch: int, *, layers: int = 12, width: int = 768, heads: int = 12, tokens: int = 128, vocabulary: int = 30522) -> Built:
    net = Net("bert_base")
    ids, mask, types = (net.input(n, (batch, tokens), TensorProto.INT64) for n in ("ids", "mask", "types"))
    word = net.op("Gather", net.normal(vocabulary, width), ids)
    x = net.op("Add", net.op("Add", word, net.op("Gather", net.normal(2, width), types)), net.normal(tokens, width))
    x = net.layer_norm(x, width, 1e-12)
    bias = net.op("Sub", net.constant(1.0), net.op("Cast", mask, to=TensorProto.FLOAT))
    bias = net.op("Reshape", net.op("Mul", bias, net.constant(-10000.0)), net.constant([batch, 1, 1, tokens], np.int64))
    for _ in range(layers):
        q, k, v = (net.split_heads(net.linear(x, (width, width)), heads, width) for _ in range(3))
        a = net.linear(net.attend(q, k, v, width, heads, bias), (width, width))
        x = net.layer_norm(net.op("Add", x, a), width, 1e-12)
        f = net.linear(net.gelu(net.linear(x, (width, 4 * width))), (4 * width, width))
        x = net.layer_norm(net.op("Add", x, f), width, 1e-12)
    first = net.op("Gather", x, net.constant(0, np.int64), axis=1)
    pooled = net.op("Tanh", net.op("Gemm", first, net.normal(width, width), net.normal(width), transB=1))
    rng = np.random.default_rng(1)
    seen = np.ones((batch, tokens), np.int64)
    seen[:, tokens - 8 :] = 0
    inputs = {"ids": rng.integers(0, vocabulary, (batch, tokens)), "mask": seen, "types": np.zeros((batch, tokens), np.int64)}
    return net.model({"hidden": x, "pooled": pooled}), inputs


def _gpt2(batch: int, tokens: int, past: int, *, layers: int = 12, width: int = 768, heads: int = 12, vocabulary: int = 50257) -> Built:
    net = Net("gpt2")
    rng = np.random.default_rng(1)
    ids = net.input("ids", (batch, tokens), TensorProto.INT64)
    inputs: Arrays = {"ids": rng.integers(0, vocabulary, (batch, tokens))}
    table = net.normal(vocabulary, width)
    x = net.op("Add", net.op("Gather", table, ids), net.normal(tokens, width))
    mask = None if past else net.weight(np.triu(np.full((1, 1, tokens, tokens), -10000, np.float32), 1))
    outputs: dict[str, str] = {}
    for layer in range(layers):
        normed = net.layer_norm(x, width)
        qkv = net.op("Split", net.linear(normed, (width, 3 * width)), net.constant([width] * 3, np.int64), outputs=3, axis=2)
        q, k, v = (net.split_heads(part, heads, width) for part in qkv)
        if past:
            shape = (batch, heads, past, width // heads)
            for letter in "kv":
                net.input(f"past_{letter}{layer}", shape)
                inputs[f"past_{letter}{layer}"] = rng.standard_normal(shape, dtype=np.float32)
            k, v = (net.op("Concat", f"past_{letter}{layer}", new, axis=2) for letter, new in (("k", k), ("v", v)))
        outputs |= {f"k{layer}": k, f"v{layer}": v}
        x = net.op("Add", x, net.linear(net.attend(q, k, v, width, heads, mask), (width, width)))
        inner = net.gelu_tanh(net.linear(net.layer_norm(x, width), (width, 4 * width)))
        x = net.op("Add", x, net.linear(inner, (4 * width, width)))
    last = net.op("Slice", net.layer_norm(x, width), *(net.constant([i], np.int64) for i in (tokens - 1, tokens, 1)))
    logits = net.op("MatMul", last, net.op("Transpose", table, perm=[1, 0]))
    return net.model({"logits": logits, **outputs}), inputs


def vit_b_16(batch: int, *, layers: int = 12, width: int = 768, heads: int = 12) -> Built:
    net = Net("vit_b_16")
    x = net.input("x", (batch, 3, 224, 224))
    y = net.conv(x, (3, width), 16, 16, pad=0, bias=True)
    y = net.op("Transpose", net.op("Reshape", y, net.constant([batch, width, 196], np.int64)), perm=[0, 2, 1])
    cls = net.op("Expand", net.normal(1, 1, width), net.constant([batch, 1, width], np.int64))
    y = net.op("Add", net.op("Concat", cls, y, axis=1), net.normal(1, 197, width))
    for _ in range(layers):
        normed = net.layer_norm(y, width, 1e-6)
        q, k, v = (net.split_heads(net.linear(normed, (width, width)), heads, width) for _ in range(3))
        y = net.op("Add", y, net.linear(net.attend(q, k, v, width, heads, None), (width, width)))
        inner = net.gelu(net.linear(net.layer_norm(y, width, 1e-6), (width, 4 * width)))
        y = net.op("Add", y, net.linear(inner, (4 * width, width)))
    first = net.op("Gather", net.layer_norm(y, width, 1e-6), net.constant(0, np.int64), axis=1)
    y = net.op("Gemm", first, net.normal(1000, width), net.normal(1000), transB=1)
    return net.model({"y": y}), {"x": _image(batch, 224)}


ZOO: dict[str, Callable[[int], Built]] = {
    "resnet50": resnet50,
    "mobilenet_v3_large": mobilenet_v3_large,
    "yolov5s": yolov5s,
    "bert_base": bert_base,
    "gpt2_prefill": lambda batch: _gpt2(batch, 128, 0),
    "gpt2_decode": lambda batch: _gpt2(batch, 1, 128),
    "vit_b_16": vit_b_16,
    "unet": unet,
    "mlp": mlp,
}
