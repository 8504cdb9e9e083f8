"""The networks of bench/twin_models.py as ONNX files: published architectures with random weights, nothing downloaded.

In: a name of NETWORKS and a folder.  Out: `folder/NAME.onnx` with a free dimension `batch` (and `seq` where tokens are read), written once.
Needs PyTorch, for most also torchvision, timm or transformers; what is missing is an ImportError that the bench prints.
Detectors end where their convolutions do: suppression of boxes (NMS) is not part of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OPSET = 17


@dataclass(frozen=True)
class Network:
    """How one network is made.   build: gives the module and example inputs; inputs: their names; seq: the inputs' second dimension is free too.

    int8: products read int8, as a tool for quantising writes it.
    """

    build: Callable[[], tuple[Any, tuple[Any, ...]]]
    inputs: tuple[str, ...] = ("image",)
    seq: bool = False
    int8: bool = False


def write(name: str, folder: Path, *, training: bool = False) -> Path:
    """The file of that network; made if it is not there.   training: normalisation is not folded away, dropout is left out."""
    path = folder / f"{name}{'_training' if training else ''}.onnx"
    if path.is_file():
        return path
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = NETWORKS[name]
    module, example = network.build()
    module.eval()
    free = {0: "batch", 1: "seq"} if network.seq else {0: "batch"}
    for weight in module.parameters() if training else ():
        weight.data.normal_()  # the exporter takes equal ones for one
    kept = {"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False} if training else {}
    folder.mkdir(parents=True, exist_ok=True)
    made = path.with_suffix(".part")
    with torch.no_grad():
        torch.onnx.export(
            module, example, str(made), input_names=list(network.inputs), output_names=["y"], opset_version=OPSET, dynamo=False,
            dynamic_axes={port: {0: "batch"} if port == "masked" else free for port in network.inputs}, **kept,
        )  # fmt: skip
    if network.int8:
        quantize(made)
    made.rename(path)
    return path


def quantize(path: Path) -> None:
    """Rewrites the file: convolutions and products by weights read int8 by way of QuantizeLinear and DequantizeLinear; scales mean nothing."""
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load(path)
    graph = model.graph
    weights = {t.name: t for t in graph.initializer}
    made: dict[str, str] = {}
    nodes: list[Any] = []
    graph.initializer.extend([numpy_helper.from_array(np.float32(0.05), "q.scale"), numpy_helper.from_array(np.int8(0), "q.zero")])
    for node in graph.node:
        if node.op_type in ("Conv", "Gemm") and node.input[1] in weights:
            x, w = node.input[0], node.input[1]
            if x not in made:
                made[x] = f"{x}.back"
                nodes.append(helper.make_node("QuantizeLinear", [x, "q.scale", "q.zero"], [f"{x}.int8"], f"{x}.quantize"))
                nodes.append(helper.make_node("DequantizeLinear", [f"{x}.int8", "q.scale", "q.zero"], [made[x]], f"{x}.dequantize"))
            if w not in made:
                made[w] = f"{w}.back"
                array = numpy_helper.to_array(weights[w])
                steps = np.maximum(np.abs(array).reshape(len(array), -1).max(axis=1), 1e-6) / 127
                values = np.round(array / steps.reshape(-1, *[1] * (array.ndim - 1))).astype(np.int8)
                graph.initializer.extend([
                    numpy_helper.from_array(values, f"{w}.int8"), numpy_helper.from_array(steps.astype(np.float32), f"{w}.scale"),
                    numpy_helper.from_array(np.zeros(len(array), np.int8), f"{w}.zero"),
                ])  # fmt: skip
                nodes.append(
                    helper.make_node("DequantizeLinear", [f"{w}.int8", f"{w}.scale", f"{w}.zero"], [made[w]], f"{w}.dequantize", axis=0)
                )
                graph.initializer.remove(weights[w])
            node.input[0], node.input[1] = made[x], made[w]
        nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.save(model, path)


# ---- packages ----


def _vision(name: str, size: int = 224) -> Callable[[], tuple[Any, tuple[Any, ...]]]:
    def build() -> tuple[Any, tuple[Any, ...]]:
        import torch

        options = {"init_weights": False} if name in ("inception_v3", "googlenet") else {}
        if name == "inception_v3":
            options["aux_logits"] = True
        return getattr(torchvision().models, name)(weights=None, **options), (torch.zeros(1, 3, size, size),)

    return build


def torchvision() -> Any:
    """The package, also beside a PyTorch that its compiled operators were not built for: the networks need none of them."""
    import torch

    register = torch.library.register_fake
    torch.library.register_fake = lambda op, *a, **k: (  # type: ignore[assignment]
        (lambda function: function) if str(op).startswith("torchvision::") else register(op, *a, **k)
    )
    try:
        import torchvision as package
    finally:
        torch.library.register_fake = register
    return package


def _timm(name: str, size: int = 224) -> Callable[[], tuple[Any, tuple[Any, ...]]]:
    def build() -> tuple[Any, tuple[Any, ...]]:
        import torch

        torchvision()
        import timm

        timm.layers.set_fused_attn(False)
        return timm.create_model(name, exportable=True), (torch.zeros(1, 3, size, size),)

    return build


# ---- BERT and its family, as their exporters spell them ----


def _bert(
    layers: int, width: int, vocabulary: int, head: str, *, mask: bool = True, tied: bool = False
) -> Callable[[], tuple[Any, tuple[Any, ...]]]:
    """head: what is computed of the last layer (`span`, `class`, `tokens`, `mask`).   mask: the model reads one.   tied: ALBERT's, one layer run often."""

    def build() -> tuple[Any, tuple[Any, ...]]:
        import torch
        from torch import nn

        heads = width // 64

        class Layer(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
                self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
                self.norm1, self.norm2, self.gelu = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12), nn.GELU()

            def forward(self, x: Any, bias: Any) -> Any:
                def split(t: Any) -> Any:
                    return t.view(t.shape[0], t.shape[1], heads, 64).permute(0, 2, 1, 3)

                scores = split(self.q(x)) @ split(self.k(x)).transpose(-1, -2) / math.sqrt(64)
                weights = torch.softmax(scores if bias is None else scores + bias, dim=-1)
                mixed = (weights @ split(self.v(x))).permute(0, 2, 1, 3).reshape(x.shape)
                x = self.norm1(self.o(mixed) + x)
                return self.norm2(self.down(self.gelu(self.up(x))) + x)

        class Bert(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                inner = 128 if tied else width
                self.words, self.places, self.kinds = nn.Embedding(vocabulary, inner), nn.Embedding(512, inner), nn.Embedding(2, inner)
                self.norm = nn.LayerNorm(inner, eps=1e-12)
                self.project = nn.Linear(inner, width) if tied else nn.Identity()
                one = Layer() if tied else None
                self.layers = nn.ModuleList([one or Layer() for _ in range(layers)])
                sizes = {"span": 2, "class": 2, "tokens": 9, "mask": vocabulary}
                self.pool = nn.Linear(width, width) if head in ("class", "mask") else nn.Identity()
                self.last, self.head = nn.LayerNorm(width, eps=1e-12), nn.Linear(width, sizes[head])

            def forward(self, ids: Any, keep: Any = None) -> Any:
                places = torch.arange(ids.shape[1]).unsqueeze(0)
                x = self.project(self.norm(self.words(ids) + self.kinds(torch.zeros_like(ids)) + self.places(places)))
                bias = None if keep is None else (1.0 - keep[:, None, None, :].to(x.dtype)) * -10000.0
                for layer in self.layers:
                    x = layer(x, bias)
                if head == "class":
                    return self.head(torch.tanh(self.pool(x[:, 0])))
                if head == "mask":
                    return self.head(self.last(torch.nn.functional.gelu(self.pool(x)))).argmax(dim=-1)
                return self.head(x)

        ids = torch.ones(2, 32, dtype=torch.int64)
        return Bert(), ((ids, ids) if mask else (ids,))

    return build


def _bert_pretrain() -> tuple[Any, tuple[Any, ...]]:
    """BERT-large before its first task: 20 masked words a sentence are guessed by the table of the embedding."""
    import torch
    from torch import nn

    body, _ = _bert(24, 1024, 30522, "tokens")()
    body.head = nn.Identity()

    class Pretrain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.dense, self.norm = body, nn.Linear(1024, 1024), nn.LayerNorm(1024, eps=1e-12)
            self.bias = nn.Parameter(torch.zeros(30522))

        def forward(self, ids: Any, keep: Any, masked: Any) -> Any:
            x = self.body(ids, keep).reshape(-1, 1024)[masked.reshape(-1)]
            return self.norm(nn.functional.gelu(self.dense(x))) @ self.body.words.weight.t() + self.bias

    ids = torch.ones(2, 32, dtype=torch.int64)
    return Pretrain(), (ids, ids, torch.ones(2, 20, dtype=torch.int64))


def _wav2vec2() -> tuple[Any, tuple[Any, ...]]:
    import torch
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

    model = Wav2Vec2ForCTC(Wav2Vec2Config(attn_implementation="eager"))

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: Any) -> Any:
            return self.model(x).logits

    return Logits(), (torch.zeros(1, 100000),)


# ---- networks of no package ----


def _nested_unet() -> tuple[Any, tuple[Any, ...]]:
    """UNet++ with nearest upsampling, as the repository changes it for the device."""
    import torch
    from torch import nn

    widths = (32, 64, 128, 256, 512)

    def block(cin: int, cout: int) -> Any:
        parts = [nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU()]
        return nn.Sequential(*parts, nn.Conv2d(cout, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU())

    class Nested(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pool, self.up = nn.MaxPool2d(2, 2), nn.Upsample(scale_factor=2, mode="nearest")
            self.blocks = nn.ModuleDict()
            for across in range(5):
                for down in range(5 - across):
                    cin = (3 if down == 0 else widths[down - 1]) if across == 0 else widths[down] * across + widths[down + 1]
                    self.blocks[f"{down}{across}"] = block(cin, widths[down])
            self.last = nn.Conv2d(widths[0], 1, 1)

        def forward(self, x: Any) -> Any:
            found: dict[str, Any] = {}
            for across in range(5):
                for down in range(5 - across):
                    if across == 0:
                        value = x if down == 0 else self.pool(found[f"{down - 1}0"])
                    else:
                        value = torch.cat([*(found[f"{down}{k}"] for k in range(across)), self.up(found[f"{down + 1}{across - 1}"])], 1)
                    found[f"{down}{across}"] = self.blocks[f"{down}{across}"](value)
            return self.last(found["04"])

    return Nested(), (torch.zeros(1, 3, 96, 96),)


def _yolox(depth: float, width: float) -> Callable[[], tuple[Any, tuple[Any, ...]]]:
    def build() -> tuple[Any, tuple[Any, ...]]:
        import torch
        from torch import nn

        c = int(64 * width)
        n = max(round(3 * depth), 1)

        def conv(cin: int, cout: int, k: int, s: int = 1) -> Any:
            return nn.Sequential(nn.Conv2d(cin, cout, k, s, (k - 1) // 2, bias=False), nn.BatchNorm2d(cout), nn.SiLU())

        class Bottleneck(nn.Module):
            def __init__(self, width: int, add: bool) -> None:
                super().__init__()
                self.one, self.two, self.add = conv(width, width, 1), conv(width, width, 3), add

            def forward(self, x: Any) -> Any:
                y = self.two(self.one(x))
                return y + x if self.add else y

        class Csp(nn.Module):
            def __init__(self, cin: int, cout: int, repeats: int, add: bool = True) -> None:
                super().__init__()
                half = cout // 2
                self.left, self.right, self.join = conv(cin, half, 1), conv(cin, half, 1), conv(2 * half, cout, 1)
                self.body = nn.Sequential(*(Bottleneck(half, add) for _ in range(repeats)))

            def forward(self, x: Any) -> Any:
                return self.join(torch.cat([self.body(self.left(x)), self.right(x)], 1))

        class Spp(nn.Module):
            def __init__(self, width: int) -> None:
                super().__init__()
                self.one, self.two = conv(width, width // 2, 1), conv(width * 2, width, 1)
                self.pools = nn.ModuleList(nn.MaxPool2d(k, 1, k // 2) for k in (5, 9, 13))

            def forward(self, x: Any) -> Any:
                x = self.one(x)
                return self.two(torch.cat([x, *(pool(x) for pool in self.pools)], 1))

        class Yolox(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.stem = conv(12, c, 3)
                self.d2 = nn.Sequential(conv(c, 2 * c, 3, 2), Csp(2 * c, 2 * c, n))
                self.d3 = nn.Sequential(conv(2 * c, 4 * c, 3, 2), Csp(4 * c, 4 * c, 3 * n))
                self.d4 = nn.Sequential(conv(4 * c, 8 * c, 3, 2), Csp(8 * c, 8 * c, 3 * n))
                self.d5 = nn.Sequential(conv(8 * c, 16 * c, 3, 2), Spp(16 * c), Csp(16 * c, 16 * c, n, False))
                self.up = nn.Upsample(scale_factor=2, mode="nearest")
                self.l0, self.c4 = conv(16 * c, 8 * c, 1), Csp(16 * c, 8 * c, n, False)
                self.r1, self.c3 = conv(8 * c, 4 * c, 1), Csp(8 * c, 4 * c, n, False)
                self.b2, self.n3 = conv(4 * c, 4 * c, 3, 2), Csp(8 * c, 8 * c, n, False)
                self.b1, self.n4 = conv(8 * c, 8 * c, 3, 2), Csp(16 * c, 16 * c, n, False)
                mid = 4 * c
                self.stems = nn.ModuleList(conv(k * c, mid, 1) for k in (4, 8, 16))
                self.kinds = nn.ModuleList(nn.Sequential(conv(mid, mid, 3), conv(mid, mid, 3)) for _ in range(3))
                self.boxes = nn.ModuleList(nn.Sequential(conv(mid, mid, 3), conv(mid, mid, 3)) for _ in range(3))
                self.kind, self.box, self.there = (nn.ModuleList(nn.Conv2d(mid, k, 1) for _ in range(3)) for k in (80, 4, 1))

            def forward(self, x: Any) -> Any:
                x = torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1)
                x3 = self.d3(self.d2(self.stem(x)))
                x4 = self.d4(x3)
                x5 = self.d5(x4)
                f5 = self.l0(x5)
                f4 = self.r1(self.c4(torch.cat([self.up(f5), x4], 1)))
                p3 = self.c3(torch.cat([self.up(f4), x3], 1))
                p4 = self.n3(torch.cat([self.b2(p3), f4], 1))
                p5 = self.n4(torch.cat([self.b1(p4), f5], 1))
                found = []
                for i, p in enumerate((p3, p4, p5)):
                    s = self.stems[i](p)
                    kinds, boxes = self.kinds[i](s), self.boxes[i](s)
                    out = torch.cat([self.box[i](boxes), self.there[i](boxes).sigmoid(), self.kind[i](kinds).sigmoid()], 1)
                    found.append(out.flatten(2))
                return torch.cat(found, 2).permute(0, 2, 1)

        return Yolox(), (torch.zeros(1, 3, 640, 640),)

    return build


def _rosetta_resnet34() -> tuple[Any, tuple[Any, ...]]:
    """ResNet34-vd of a text recogniser: rows are halved, columns kept; every column is classified."""
    import torch
    from torch import nn

    def conv(cin: int, cout: int, k: int, s: Any = 1, act: bool = True) -> Any:
        parts = [nn.Conv2d(cin, cout, k, s, k // 2, bias=False), nn.BatchNorm2d(cout)]
        return nn.Sequential(*parts, nn.ReLU()) if act else nn.Sequential(*parts)

    class Block(nn.Module):
        def __init__(self, cin: int, cout: int, stride: tuple[int, int], first: bool) -> None:
            super().__init__()
            self.body = nn.Sequential(conv(cin, cout, 3, stride), conv(cout, cout, 3, act=False))
            if stride == (1, 1) and cin == cout and not first:
                self.short: Any = nn.Identity()
            elif stride == (1, 1):
                self.short = conv(cin, cout, 1, act=False)
            else:
                self.short = nn.Sequential(nn.AvgPool2d(stride, stride), conv(cin, cout, 1, act=False))

        def forward(self, x: Any) -> Any:
            return torch.relu(self.body(x) + self.short(x))

    class Rosetta(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(conv(3, 32, 3), conv(32, 32, 3), conv(32, 64, 3), nn.MaxPool2d(3, 2, 1))
            blocks, cin = [], 64
            for stage, (cout, repeats) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
                for i in range(repeats):
                    blocks.append(Block(cin, cout, (2, 1) if i == 0 and stage else (1, 1), i == 0 and stage == 0))
                    cin = cout
            self.blocks, self.pool, self.head = nn.Sequential(*blocks), nn.MaxPool2d(2, 2), nn.Linear(512, 37)

        def forward(self, x: Any) -> Any:
            y = self.pool(self.blocks(self.stem(x))).squeeze(2).permute(0, 2, 1)
            return torch.softmax(self.head(y), dim=2)

    return Rosetta(), (torch.zeros(1, 3, 32, 100),)


_MOBILE = (  # kernel, expanded, channels, squeeze, hardswish, stride of rows where it is more than 1
    (3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2), (5, 120, 40, 1, 0, 1), (5, 120, 40, 1, 0, 1),
    (3, 240, 80, 0, 1, -2), (3, 200, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 480, 112, 1, 1, 1),
    (3, 672, 112, 1, 1, 1), (5, 672, 160, 1, 1, 2), (5, 960, 160, 1, 1, 1), (5, 960, 160, 1, 1, 1),
)  # fmt: skip


def _mobile_parts(scale: float, strides: Callable[[int], Any]) -> tuple[Any, list[Any], list[int]]:
    """Stem and blocks of PaddleOCR's MobileNetV3-large at that scale.   strides: of the number in _MOBILE, the stride of a block."""
    import torch
    from torch import nn

    def rounded(v: float) -> int:
        new = max(8, int(v + 4) // 8 * 8)
        return new + 8 if new < 0.9 * v else new

    def conv(cin: int, cout: int, k: int, s: Any = 1, groups: int = 1, act: str = "") -> Any:
        parts = [nn.Conv2d(cin, cout, k, s, k // 2, groups=groups, bias=False), nn.BatchNorm2d(cout)]
        return nn.Sequential(*parts, *({"relu": [nn.ReLU()], "hard": [nn.Hardswish()], "": []}[act]))

    class Squeeze(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.down, self.up = nn.Conv2d(width, width // 4, 1), nn.Conv2d(width // 4, width, 1)

        def forward(self, x: Any) -> Any:
            s = torch.nn.functional.adaptive_avg_pool2d(x, 1)
            return x * torch.nn.functional.hardsigmoid(self.up(torch.relu(self.down(s))))

    class Block(nn.Module):
        def __init__(self, cin: int, k: int, mid: int, cout: int, squeeze: int, act: str, stride: Any) -> None:
            super().__init__()
            self.same = cin == cout and stride in (1, (1, 1))
            parts = [conv(cin, mid, 1, act=act), conv(mid, mid, k, stride, mid, act), *([Squeeze(mid)] if squeeze else [])]
            self.body = nn.Sequential(*parts, conv(mid, cout, 1))

        def forward(self, x: Any) -> Any:
            y = self.body(x)
            return y + x if self.same else y

    cin = rounded(16 * scale)
    blocks, widths = [], []
    stem = conv(3, cin, 3, 2, act="hard")
    for k, mid, cout, squeeze, hard, stride in _MOBILE:
        width = rounded(cout * scale)
        blocks.append(Block(cin, k, rounded(mid * scale), width, squeeze, "hard" if hard else "relu", strides(stride)))
        widths.append(width)
        cin = width
    blocks.append(conv(cin, rounded(960 * scale), 1, act="hard"))
    widths.append(rounded(960 * scale))
    return stem, blocks, widths


def _rosetta_mobile() -> tuple[Any, tuple[Any, ...]]:
    import torch
    from torch import nn

    stem, blocks, widths = _mobile_parts(0.5, lambda s: (2, 1) if s == 2 else 1)

    class Rosetta(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.pool, self.head = nn.Sequential(stem, *blocks), nn.MaxPool2d(2, 2), nn.Linear(widths[-1], 37)

        def forward(self, x: Any) -> Any:
            return torch.softmax(self.head(self.pool(self.body(x)).squeeze(2).permute(0, 2, 1)), dim=2)

    return Rosetta(), (torch.zeros(1, 3, 32, 100),)


def _dbnet_mobile() -> tuple[Any, tuple[Any, ...]]:
    """Differentiable binarisation on MobileNetV3-large x0.5: four levels, 256 channels, the map of shrunk texts."""
    import torch
    from torch import nn

    stem, blocks, widths = _mobile_parts(0.5, lambda s: 2 if abs(s) == 2 else 1)
    ends = (2, 5, 11, 15)

    class Dbnet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem, self.blocks = stem, nn.ModuleList(blocks)
            self.ins = nn.ModuleList(nn.Conv2d(widths[e], 256, 1, bias=False) for e in ends)
            self.outs = nn.ModuleList(nn.Conv2d(256, 64, 3, padding=1, bias=False) for _ in ends)
            self.ups = nn.ModuleList(nn.Upsample(scale_factor=k, mode="nearest") for k in (2, 4, 8))
            self.head = nn.Sequential(
                nn.Conv2d(256, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                nn.ConvTranspose2d(64, 64, 2, 2), nn.BatchNorm2d(64), nn.ReLU(), nn.ConvTranspose2d(64, 1, 2, 2), nn.Sigmoid(),
            )  # fmt: skip

        def forward(self, x: Any) -> Any:
            x, found = self.stem(x), []
            for i, block in enumerate(self.blocks):
                x = block(x)
                if i in ends:
                    found.append(self.ins[len(found)](x))
            for i in (2, 1, 0):
                found[i] = found[i] + self.ups[0](found[i + 1])
            levels = [out(f) for out, f in zip(self.outs, found, strict=True)]
            return self.head(torch.cat([self.ups[2](levels[3]), self.ups[1](levels[2]), self.ups[0](levels[1]), levels[0]], 1))

    return Dbnet(), (torch.zeros(1, 3, 736, 1280),)


def _ssd_mobilenet_v2() -> tuple[Any, tuple[Any, ...]]:
    """SSD-lite on MobileNetV2 at 300x300: six levels, six boxes each, 21 kinds."""
    import torch
    from torch import nn

    base = torchvision().models.mobilenet_v2(weights=None).features

    def separable(cin: int, cout: int) -> Any:
        return nn.Sequential(nn.Conv2d(cin, cin, 3, padding=1, groups=cin), nn.BatchNorm2d(cin), nn.ReLU(), nn.Conv2d(cin, cout, 1))

    def extra(cin: int, cout: int, ratio: float) -> Any:
        mid = round(cin * ratio)
        parts = [nn.Conv2d(cin, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU6()]
        parts += [nn.Conv2d(mid, mid, 3, 2, 1, groups=mid, bias=False), nn.BatchNorm2d(mid), nn.ReLU6()]
        return nn.Sequential(*parts, nn.Conv2d(mid, cout, 1, bias=False), nn.BatchNorm2d(cout))

    widths = (576, 1280, 512, 256, 256, 64)

    class Ssd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.low, self.expand = base[:14], base[14].conv[0]
            self.rest = nn.Sequential(base[14].conv[1:], base[15:])
            self.extras = nn.ModuleList(extra(*e) for e in ((1280, 512, 0.2), (512, 256, 0.25), (256, 256, 0.5), (256, 64, 0.25)))
            heads = [[separable(w, 6 * k) for w in widths[:-1]] + [nn.Conv2d(64, 6 * k, 1)] for k in (4, 21)]
            self.boxes, self.kinds = nn.ModuleList(heads[0]), nn.ModuleList(heads[1])

        def forward(self, x: Any) -> Any:
            first = self.expand(self.low(x))
            levels = [first, self.rest(first)]
            for part in self.extras:
                levels.append(part(levels[-1]))
            flat = [
                torch.cat([head(v).permute(0, 2, 3, 1).reshape(v.shape[0], -1, k) for head, v in zip(heads, levels, strict=True)], 1)
                for heads, k in ((self.boxes, 4), (self.kinds, 21))
            ]
            return torch.cat([flat[0], torch.softmax(flat[1], 2)], 2)

    return Ssd(), (torch.zeros(1, 3, 300, 300),)


def _ssd_vgg16() -> tuple[Any, tuple[Any, ...]]:
    """SSD on VGG16 at 300x300: the first level's vectors have length one times a weight; the sixth block is dilated."""
    import torch
    from torch import nn

    def stack(sizes: tuple[Any, ...], cin: int) -> tuple[list[Any], int]:
        parts: list[Any] = []
        for size in sizes:
            if isinstance(size, str):
                parts.append(nn.MaxPool2d(2, 2, ceil_mode=size == "C"))
            else:
                parts += [nn.Conv2d(cin, size, 3, padding=1), nn.ReLU()]
                cin = size
        return parts, cin

    def extra(cin: int, mid: int, cout: int, stride: int, pad: int) -> Any:
        return nn.Sequential(nn.Conv2d(cin, mid, 1), nn.ReLU(), nn.Conv2d(mid, cout, 3, stride, pad), nn.ReLU())

    widths, boxes = (512, 1024, 512, 256, 256, 256), (4, 6, 6, 6, 4, 4)

    class Ssd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            low, cin = stack((64, 64, "M", 128, 128, "M", 256, 256, 256, "C", 512, 512, 512), 3)
            high, cin = stack(("M", 512, 512, 512), cin)
            more = [nn.MaxPool2d(3, 1, 1), nn.Conv2d(512, 1024, 3, padding=6, dilation=6), nn.ReLU(), nn.Conv2d(1024, 1024, 1), nn.ReLU()]
            self.low, self.high = nn.Sequential(*low), nn.Sequential(*high, *more)
            self.scale = nn.Parameter(torch.full((1, 512, 1, 1), 20.0))
            self.extras = nn.ModuleList(
                [extra(1024, 256, 512, 2, 1), extra(512, 128, 256, 2, 1), extra(256, 128, 256, 1, 0), extra(256, 128, 256, 1, 0)]
            )
            self.boxes = nn.ModuleList(nn.Conv2d(w, 4 * b, 3, padding=1) for w, b in zip(widths, boxes, strict=True))
            self.kinds = nn.ModuleList(nn.Conv2d(w, 21 * b, 3, padding=1) for w, b in zip(widths, boxes, strict=True))

        def forward(self, x: Any) -> Any:
            first = self.low(x)
            levels = [first / (first.pow(2).sum(1, keepdim=True).sqrt() + 1e-10) * self.scale, self.high(first)]
            for part in self.extras:
                levels.append(part(levels[-1]))
            flat = [
                torch.cat([head(v).permute(0, 2, 3, 1).reshape(v.shape[0], -1, k) for head, v in zip(heads, levels, strict=True)], 1)
                for heads, k in ((self.boxes, 4), (self.kinds, 21))
            ]
            return torch.cat([flat[0], torch.softmax(flat[1], 2)], 2)

    return Ssd(), (torch.zeros(1, 3, 300, 300),)


TOKENS = ("ids", "keep")
NETWORKS: dict[str, Network] = {
    **{name: Network(_vision(name)) for name in (
        "alexnet", "densenet121", "mobilenet_v2", "mobilenet_v3_small", "resnet18", "resnet34", "resnet50", "resnet101", "resnext50_32x4d",
        "shufflenet_v2_x1_0", "shufflenet_v2_x0_5", "wide_resnet50_2", "wide_resnet101_2", "googlenet", "squeezenet1_0", "vgg13", "vgg19",
    )},
    "inception_v3": Network(_vision("inception_v3", 299)),
    **{name: Network(_timm(name)) for name in (
        "mobilenetv3_large_100", "vit_base_patch32_224", "efficientnet_b0", "convnext_tiny", "swin_tiny_patch4_window7_224", "repvgg_a0", "mnasnet_075",
        "res2net50_26w_4s", "resnetv2_50", "poolformer_s12", "visformer_tiny",
    )},
    **{name: Network(_timm(name, 384)) for name in ("vit_base_patch16_384", "vit_base_patch32_384", "swin_base_patch4_window12_384")},
    "bert_base_span": Network(_bert(12, 768, 30522, "span"), TOKENS, seq=True),
    "bert_large_span": Network(_bert(24, 1024, 30522, "span"), TOKENS, seq=True),
    "bert_base_class": Network(_bert(12, 768, 28996, "class"), TOKENS, seq=True),
    "bert_chinese_mask": Network(_bert(12, 768, 21128, "mask"), TOKENS, seq=True),
    "bert_chinese_class": Network(_bert(12, 768, 21128, "class"), TOKENS, seq=True),
    "bert_chinese_tokens": Network(_bert(12, 768, 21128, "tokens"), TOKENS, seq=True),
    "bert_large_tokens": Network(_bert(24, 1024, 28996, "tokens"), TOKENS, seq=True),
    "roberta_base_class": Network(_bert(12, 768, 50265, "class", mask=False), TOKENS[:1], seq=True),
    "albert_base_class": Network(_bert(12, 768, 30000, "class", tied=True), TOKENS, seq=True),
    "bert_large_pretrain": Network(_bert_pretrain, (*TOKENS, "masked"), seq=True),
    "wav2vec2_base": Network(_wav2vec2, ("sound",)),
    "nested_unet": Network(_nested_unet),
    "yolox_s": Network(_yolox(0.33, 0.5)),
    "yolox_tiny": Network(_yolox(0.33, 0.375)),
    "rosetta_resnet34_vd": Network(_rosetta_resnet34),
    "rosetta_mobilenet_v3": Network(_rosetta_mobile),
    "dbnet_mobilenet_v3": Network(_dbnet_mobile),
    "ssd_mobilenet_v2": Network(_ssd_mobilenet_v2),
    "resnet50_int8": Network(_vision("resnet50"), int8=True),
    "ssd_vgg16_int8": Network(_ssd_vgg16, int8=True),
}  # fmt: skip
