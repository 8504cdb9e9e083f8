"""Is the error that the twin computes for fp16 and bf16 that of an implementation which is not ours?

Question: relative error (L2) of the outputs against fp32: the twin's, on an Atlas A2, over PyTorch's on the CPU, whose kernels of 16 bits also add in
fp32 and round once.  Both get the same networks, weights and inputs.  It says whether the method is right, not what a device does.
Rival: PyTorch, `net.half()` and `net.bfloat16()`, one thread.  Needs torch and onnx.
Usage: python bench/twin_numerics.py [--ocr]
  --ocr: instead, what two chips' arithmetic does to trained models on a real input, PP-OCRv4 on the bundled picture (needs the extra `examples`).
Last answer (30 November 2026, PyTorch 2.13): fp16: perceptron 1.08, four transformer blocks 1.00, convolutions 0.91; bf16: 1.03, 1.02, 1.00.
--ocr: in fp16 the outputs are off by 0.48, 0.10 and 0.17 %, in bf16 products by 3.07, 0.24 and 5.00 %, in fp32 with HF32 convolutions by 0.17, 0.18, 0.14 %.
"""

from __future__ import annotations

import argparse
import copy
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn

import jumar
from jumar.base import DType, bf16, f16, f32
from jumar.compiler import device_numerics, parse_precision, prepared_graph, run_precision
from jumar.device.npu import find_chip
from jumar.ir import Constant, Graph, Node, apply
from jumar.operators import Cast


class Block(nn.Module):
    """A transformer's block: attention written out, then a perceptron, each after a norm and beside a shortcut."""

    def __init__(self, width: int = 128, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wide = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, length, width = x.shape
        q, k, v = self.inputs(self.first(x)).view(n, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5, -1)
        x = x + self.output((weights @ v).transpose(1, 2).reshape(n, length, width))
        return x + self.wide(self.second(x))


def networks() -> dict[str, tuple[nn.Module, torch.Tensor]]:
    perceptron = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 64))
    layers = [nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64)]
    tail = [nn.SiLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return {
        "perceptron": (perceptron, torch.randn(32, 256)),
        "transformer": (nn.Sequential(*(Block() for _ in range(4))), torch.randn(2, 64, 128)),
        "convolutions": (nn.Sequential(*layers, *tail), torch.randn(2, 3, 64, 64)),
    }


def narrow(graph: Graph, dtype: DType) -> Graph:
    """Everything in the narrower type, as `net.half()` has it; a precision mode would keep some in fp32."""
    new: dict[Node, Node] = {}
    for n in graph.nodes:
        if n in graph.params or isinstance(n.op, Constant):
            new[n] = Cast(dtype)(n) if n.dtype is f32 else n
        else:
            new[n] = apply(Cast(dtype) if n.op == Cast(f32) else n.op, *(new[i] for i in n.inputs), loc=n.loc)
    return graph.with_outputs(Cast(f32)(new[o]) for o in graph.outputs)


def errors(net: nn.Module, x: torch.Tensor, dtype: torch.dtype, ours: DType) -> tuple[float, float]:
    """PyTorch's error and the twin's."""
    with torch.no_grad():
        exact = net(x).double().numpy()
        half = copy.deepcopy(net).to(dtype)(x.to(dtype)).double().numpy()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = str(Path(folder) / "net.onnx")
        torch.onnx.export(net, (x,), path, input_names=["x"], output_names=["y"], dynamo=False, opset_version=17)
        graph = jumar.load(path).graph(x.numpy())
    findings = device_numerics(narrow(graph, ours), [x.numpy()], find_chip("Ascend910B4"), trials=0)
    return float(np.linalg.norm(half - exact) / np.linalg.norm(exact)), findings.outputs[0].error


def ocr() -> None:
    """A row for each model, chip and mode."""
    from jumar.tools.examples import ocr as example

    example.reader()(example.read_picture(example.PICTURES[0]))
    print("| model | chip, mode | error of the output | in one element | choices as good | of the range |\n|---|---|---|---|---|---|")
    for name, path in zip(("detection", "direction", "recognition"), example.models(), strict=True):
        _, x = example.Session.fed[str(path)]
        graph = prepared_graph(jumar.load(str(path)).graph(x))
        for soc, mode in (("Ascend310P3", "force_fp16"), ("Ascend910B4", "allow_fp32_to_bf16"), ("Ascend910B4", "must_keep_origin_dtype")):
            found = run_precision(graph, [x], find_chip(soc), parse_precision(mode), trials=0)
            o, filled = found.outputs[0], max(n.filled for n in found.nodes)
            choices = "-" if o.agreement is None else f"{o.agreement:.1%}"
            print(f"| {name} | {soc}, `{mode}` | {o.error:.2%} | {o.max_error:.2g} | {choices} | {filled:.1%} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ocr", action="store_true")
    if parser.parse_args().ocr:
        ocr()
        return
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"PyTorch {torch.__version__}\n{'network':14}{'type':6}{'PyTorch':>10}{'twin':>10}{'ratio':>8}")
    for name, (net, x) in networks().items():
        for dtype, ours in ((torch.float16, f16), (torch.bfloat16, bf16)):
            theirs, mine = errors(net.eval(), x, dtype, ours)
            print(f"{name:14}{ours!s:6}{theirs:10.2e}{mine:10.2e}{mine / theirs:8.2f}")


if __name__ == "__main__":
    main()
