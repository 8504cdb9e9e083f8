"""What each operator of ours is called in CANN: the operator types that may run it, the unit they run on, and the element types they take.

In: a node and a chip.  Out: `Kernel`s in the order in which CANN would take them; select.py asks each whether it fits.
One line an operator; where the type depends on the node (a grouped convolution, a pool in three dimensions) a function says which.
Types are those that a profile of the chip lists: the names of graphs compiled with fixed shapes (`ReduceSumD`) on chips before 910B, those
of aclnn (`ReduceSum`) from there on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from jumar.base import TensorType
from jumar.device.npu import AI_CPU, CUBE, DVPP, HOST, MIX_CUBE, VECTOR, Chip, library
from jumar.ir import Node, Param
from jumar.operators import Gradient


@dataclass(frozen=True)
class Kernel:
    """An operator type of CANN that may run a node.

    aclnn: the function that launches it, empty for the one of the operator's class, `-` where there is none.
    unit: where; takes: the row of ELEMENTS that says which element types its AI Core kernel takes; cpu: whether the AI CPU has it too.
    decides: the input whose element type counts (-1: the result's).  why: what a reader must know, of a kernel that is not on the AI Core.
    """

    kind: str
    takes: str = "float"
    unit: str = VECTOR
    aclnn: str = ""
    decides: int = 0
    cpu: bool = True
    why: str = ""


# Element types of AI Core kernels by generation: before 910B, 910B and 910_93, 950.  Inferred: what kernels of that sort take in CANN's
# sources; where the lists of an operator are known (library/cores.csv) they count, not these.
ELEMENTS: dict[str, tuple[str, str, str]] = {
    "float": ("f16 f32", "f16 f32 bf16", "f16 f32 bf16"),
    "arith": ("f16 f32 i32", "f16 f32 bf16 i32 i64 i8 u8", "f16 f32 bf16 i32 i64 i16 i8 u8"),
    "compare": ("f16 f32 i32 i8 u8", "f16 f32 bf16 i32 i64 i8 u8 bool", "f16 f32 bf16 i32 i64 i16 i8 u8 bool"),
    "int": ("i16 u16 i32", "i16 u16 i32 i64 i8 u8", "i16 u16 i32 i64 i8 u8"),
    "bool": ("bool", "bool", "bool"),
    "move": tuple(["f16 f32 bf16 i8 u8 bool i16 u16 i32 u32 i64 u64"] * 3),  # type: ignore[dict-item]
    "cast": tuple(["f16 f32 bf16 i8 u8 bool i16 i32 i64"] * 3),  # type: ignore[dict-item]
    "half": ("f16", "f16 f32 bf16", "f16 f32 bf16"),
    "code": ("i8", "i8", "i8"),
    "none": ("", "", ""),
}
NEW = frozenset({"910b", "910_93", "950"})  # chips whose cube and vector cores are apart, and whose kernels aclnn launches


def is_new(chip: Chip) -> bool:
    """Whether the chip is 910B or later: bf16, f32 on the cube, kernels of aclnn."""
    return library.column(chip.family) in NEW


def elements(kernel: Kernel, chip: Chip) -> frozenset[str]:
    """Element types that the AI Core kernel takes on that chip; a product takes what the cube multiplies."""
    if kernel.takes == "cube":
        return frozenset(chip.cube_macs) & {"f16", "bf16", "f32"}
    if (known := library.find_core(kernel.kind, library.column(chip.family))) is not None:
        return known.dtypes & (chip.dtypes | {"c64", "f64"})
    generation = 2 if library.column(chip.family) == "950" else 1 if is_new(chip) else 0
    return frozenset(ELEMENTS[kernel.takes][generation].split()) & chip.dtypes


def kernels(node: Node, chip: Chip) -> tuple[Kernel, ...]:
    """The operator types that may run a node, the first that fits counts; none where CANN has no such operator."""
    entry = KERNELS.get(node.op.name, ())
    made = entry(node, chip) if callable(entry) else entry
    found = (made,) if isinstance(made, Kernel) else made
    return tuple(k if k.aclnn else replace(k, aclnn=node.op.cann) for k in found)


Found = Kernel | tuple[Kernel, ...]


# ------------------------------------------------------------------------------------------------------------------------- by shape
def _by_age(old: str, new: str, **rest: Any) -> Callable[[Node, Chip], Found]:
    """One type on chips before 910B, another from there on."""
    return lambda node, chip: Kernel(new if is_new(chip) else old, **rest)


def _matmul(node: Node, chip: Chip) -> Found:
    x, w = (i.type for i in node.inputs[:2])
    rows = w.rank < 3  # the rows of all batches are one matrix
    slow = Kernel(
        "MatMul" if rows else "BatchMatMul", "none", AI_CPU, "-", why=f"no cube multiplies {x.dtype}: products of it are the AI CPU's"
    )
    if x.dtype.is_integer and x.dtype.bits > 8:
        return slow
    if x.dtype.is_integer:
        if x.dtype.name != w.dtype.name:
            return ()
        kind, aclnn = ("QuantBatchMatmulV3", "aclnnQuantMatmulV4") if is_new(chip) else ("MatMulV2" if rows else "BatchMatMulV2", "-")
        return Kernel(kind, "code", CUBE, aclnn, cpu=False)
    version = "V3" if library.column(chip.family) == "950" else "V2"
    kernel = (
        Kernel(f"MatMul{version}", "cube", CUBE, cpu=False)
        if rows
        else Kernel(f"BatchMatMul{version}", "cube", CUBE, "aclnnBatchMatMul", cpu=False)
    )
    return (kernel, slow) if x.dtype.name == "f64" else kernel


def is_depthwise(node: Node) -> bool:
    """Whether each channel has filters of its own."""
    groups = node.op.groups  # type: ignore[attr-defined]
    x = node.inputs[0].type
    channels = x.shape[-1] if node.op.channels_last else x.shape[1]  # type: ignore[attr-defined]
    return bool(groups > 1 and groups == channels)


def _conv(node: Node, chip: Chip) -> Found:
    x = node.inputs[0].type
    if x.dtype.is_integer:
        if x.dtype.name != node.inputs[1].dtype.name:
            return ()
        kind = "QuantConv2D" if is_new(chip) else "DepthwiseConv2D" if is_depthwise(node) else "Conv2D"
        return Kernel(kind, "code", CUBE, "aclnnQuantConvolution" if is_new(chip) else "-", cpu=False)
    if x.rank == 5:
        return Kernel("Conv3DV2" if is_new(chip) else "Conv3D", "cube", CUBE, cpu=False)
    if x.rank > 5:
        return ()
    return Kernel("DepthwiseConv2D" if is_depthwise(node) else "Conv2D", "cube", CUBE, cpu=False)


def _conv_transpose(node: Node, chip: Chip) -> Found:
    rank = node.inputs[0].rank
    if rank > 5:
        return ()
    return Kernel("Conv3DTranspose" if rank == 5 else "Conv2DTranspose", "cube", CUBE, cpu=False)


def _conv_grad(what: str) -> Callable[[Node, Chip], Found]:
    def found(node: Node, chip: Chip) -> Found:
        rank = node.inputs[0].rank
        if rank > 5:
            return ()
        groups = node.op.groups  # type: ignore[attr-defined]
        shape = node.op.x_shape if what == "Input" else node.inputs[0].shape  # type: ignore[attr-defined]
        channels = shape[-1] if node.op.channels_last else shape[1]  # type: ignore[attr-defined]
        depthwise = groups > 1 and groups == channels
        kind = f"Conv3DBackprop{what}V2" if rank == 5 else f"{'Depthwise' * depthwise}Conv2DBackprop{what}"
        return Kernel(kind, "cube", CUBE, cpu=False)

    return found


def _max_pool(node: Node, chip: Chip) -> Found:
    rank = node.inputs[0].rank
    if rank > 5:
        return ()
    if any(d > 1 for d in node.op.dilations):  # type: ignore[attr-defined]
        return Kernel(
            "MaxPool3DWithArgmaxV2" if rank == 5 else "MaxPoolWithArgmaxV1", "float", aclnn="aclnnMaxPool2dWithIndices", cpu=False
        )
    return Kernel("MaxPool3D" if rank == 5 else "MaxPoolV3", "half" if rank < 5 else "float", cpu=rank < 5)


def _max_pool_indices(node: Node, chip: Chip) -> Found:
    rank = node.inputs[0].rank
    return () if rank > 5 else Kernel("MaxPool3DWithArgmaxV2" if rank == 5 else "MaxPoolWithArgmaxV1", "float")


def _max_pool_grad(node: Node, chip: Chip) -> Found:
    rank = node.inputs[0].rank
    if rank > 5:
        return ()
    return Kernel("MaxPool3DGrad" if rank == 5 else "MaxPoolGradWithArgmaxV1" if is_new(chip) else "MaxPoolGrad", "float")


def _avg_pool(node: Node, chip: Chip) -> Found:
    x, op = node.inputs[0].type, node.op
    if x.rank > 5 or any(d > 1 for d in op.dilations):  # type: ignore[attr-defined]
        return ()
    if x.rank == 5:
        return Kernel("AvgPool3D", "float", aclnn="aclnnAvgPool3d")
    spatial = x.dims[1:-1] if op.channels_last else x.dims[2:]  # type: ignore[attr-defined]
    unpadded = not any((*op.pads_low, *op.pads_high))  # type: ignore[attr-defined]
    if spatial == tuple(op.kernel) and unpadded:  # type: ignore[attr-defined]
        return (
            Kernel("ReduceMean", "float", aclnn="aclnnMean")
            if is_new(chip)
            else Kernel("GlobalAveragePool", "float", aclnn="aclnnAdaptiveAvgPool2d")
        )
    return Kernel("AvgPoolV2", "float")


def _avg_pool_grad(node: Node, chip: Chip) -> Found:
    rank = node.inputs[0].rank
    if rank > 5 or any(d > 1 for d in node.op.dilations):  # type: ignore[attr-defined]
        return ()
    return Kernel("AvgPool3DGrad" if rank == 5 else "AvgPoolV2Grad", "float")


def _slice(node: Node, chip: Chip) -> Found:
    steps = getattr(node.op, "steps", ()) or ()
    if is_new(chip) and all(s == 1 for s in steps):
        return Kernel("Slice", "move", aclnn="aclnnSlice")
    return Kernel("StridedSliceD" if all(s > 0 for s in steps) else "StridedSlice", "move")


def _pad(node: Node, chip: Chip) -> Found:
    mode = node.op.mode  # type: ignore[attr-defined]
    if mode in ("reflect", "symmetric"):
        return Kernel("MirrorPad", "move", aclnn=f"aclnnReflectionPad{min(max(node.rank - 2, 1), 3)}d")
    if mode in ("edge", "replicate"):
        return Kernel("PadV3", "move", aclnn=f"aclnnReplicationPad{min(max(node.rank - 2, 1), 3)}d")
    if mode == "constant":
        return Kernel("PadV3" if is_new(chip) else "PadD", "move")
    return ()


def _gather_grad(node: Node, chip: Chip) -> Found:
    op = node.op
    if op.axis == 0 and len(op.x_shape) == 2:  # type: ignore[attr-defined]
        return Kernel("EmbeddingDenseGradV2", "float") if is_new(chip) else Kernel("UnsortedSegmentSum", "float", aclnn="-")
    return ()


def _arg(kind: str, old: str) -> Callable[[Node, Chip], Found]:
    def found(node: Node, chip: Chip) -> Found:
        if node.op.select_last:  # type: ignore[attr-defined]
            return Kernel(kind, "none", AI_CPU, why="CANN's kernels give the first of equal elements; the last is asked for")
        return Kernel(f"{kind}WithValue" if is_new(chip) else old, "float")

    return found


def _attention(node: Node, chip: Chip) -> Found:
    op, name = node.op, library.column(chip.family)
    d = node.inputs[0].shape[-1]
    if op.softcap or name not in ("910b", "910_93", "950") or d > 768:  # type: ignore[attr-defined]
        return ()  # older chips have no flash attention that a graph of ONNX or MindSpore reaches; 768: limit of the operator's document
    return Kernel("FlashAttentionScore", "float", MIX_CUBE, cpu=False)


def _attention_grad(node: Node, chip: Chip) -> Found:
    found = _attention(node, chip)
    return Kernel("FlashAttentionScoreGrad", "float", MIX_CUBE, cpu=False) if found else ()


def _rotary(node: Node, chip: Chip) -> Found:
    if not is_new(chip) or 2 * node.inputs[1].shape[-1] != node.inputs[0].shape[-1]:
        return ()
    return Kernel("RotaryPositionEmbedding", "float")


def _lstm(node: Node, chip: Chip) -> Found:
    op = node.op
    plain = op.clip in (0, 0.0, None) and not op.input_forget and _names(op) == ("sigmoid", "tanh", "tanh")  # type: ignore[attr-defined]
    return Kernel("DynamicRNN", "float", MIX_CUBE if is_new(chip) else CUBE, cpu=False) if plain else ()


def _lstm_grad(node: Node, chip: Chip) -> Found:
    op = node.op
    plain = op.clip in (0, 0.0, None) and not op.input_forget and _names(op) == ("sigmoid", "tanh", "tanh")  # type: ignore[attr-defined]
    return Kernel("DynamicRNNGrad", "float", MIX_CUBE if is_new(chip) else CUBE, cpu=False) if plain else ()


def _gru(kind: str) -> Callable[[Node, Chip], Found]:
    def found(node: Node, chip: Chip) -> Found:
        plain = node.op.clip in (0, 0.0, None) and _names(node.op) == ("sigmoid", "tanh")  # type: ignore[attr-defined]
        return Kernel(kind, "float", MIX_CUBE if is_new(chip) else CUBE, cpu=False) if plain else ()

    return found


def _names(op: Any) -> tuple[str, ...]:
    return tuple(str(getattr(a, "name", a)).lower().split("(")[0] for a in op.activations)


def _resize(node: Node, chip: Chip) -> Found:
    op: Any = node.op
    x: TensorType = node.inputs[0].type
    moved = [i for i, (a, b) in enumerate(zip(x.shape, op.sizes, strict=True)) if a != b]
    if _is_picture(node) and chip.dvpp and op.mode in ("nearest", "linear") and not op.antialias and not op.roi:
        return Kernel(
            "VpcResize", "none", DVPP, "-", cpu=False, why="an image of bytes, as it enters the model: the media engine resizes it (VPC)"
        )
    if op.coordinates == "tf_crop_and_resize" or op.exclude_outside or op.roi or (moved and moved[0] < 2 and x.rank > 2):
        return ()
    if op.antialias:
        plain = op.mode == "linear" and x.rank == 4 and is_new(chip)
        return Kernel("UpsampleBilinear2dAA", "float", aclnn="aclnnUpsampleBilinear2dAA", cpu=False) if plain else ()
    if op.coordinates not in ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"):
        return ()
    match op.mode, x.rank:
        case "nearest", 3 | 4:
            return Kernel("ResizeNearestNeighborV2", "float", aclnn="aclnnUpsampleNearest2d")
        case "linear", 4:
            return Kernel("ResizeBilinearV2", "float", aclnn="aclnnUpsampleBilinear2d")
        case "linear", 3:
            return (
                Kernel("UpsampleLinear1d", "float", aclnn="aclnnUpsampleLinear1d") if is_new(chip) else Kernel("ResizeBilinearV2", "float")
            )
        case "cubic", 4:
            return Kernel("UpsampleBicubic2d", "float", aclnn="aclnnUpsampleBicubic2d", cpu=False)
        case (("nearest" | "linear"), 5):
            kind = "UpsampleNearest3d" if op.mode == "nearest" else "ResizeUpsampleTrilinear"
            return Kernel(kind, "float", aclnn="aclnnUpsample" + ("Nearest3d" if op.mode == "nearest" else "Trilinear3d"), cpu=False)
        case _:
            return ()


def _is_picture(node: Node) -> bool:
    """Whether a node reads an input of the graph that is images of bytes, in gray or in three colours."""
    x = node.inputs[0]
    while x.op.name in ("reshape", "identity") and x.inputs:
        x = x.inputs[0]
    shape = node.inputs[0].shape
    return isinstance(x.op, Param) and x.dtype.name == "u8" and len(shape) == 4 and bool({shape[1], shape[3]} & {1, 3})


def _reduction(name: str, takes: str = "float") -> Callable[[Node, Chip], Found]:
    return _by_age(f"{name}D", name, takes=takes)


def _random(kind: str, dsa: str, aclnn: str) -> Callable[[Node, Chip], Found]:
    def found(node: Node, chip: Chip) -> Found:
        if library.column(chip.family) in ("910b", "910_93"):
            return Kernel(dsa, "float", VECTOR, aclnn, -1, why="made by the random engine (DSA) beside the cores")
        return Kernel(kind, "none", AI_CPU, aclnn, -1, why="random numbers of a graph are made by the AI CPU on this chip")

    return found


def _divide(node: Node, chip: Chip) -> Found:
    return Kernel("RealDiv", "float") if node.dtype.is_float else Kernel("TruncateDiv", "arith", aclnn="aclnnDivMod")


def _top_k(node: Node, chip: Chip) -> Found:
    if library.column(chip.family) == "310p" and node.inputs[0].dtype.name == "f16" and node.op.k < 16:  # type: ignore[attr-defined]
        return Kernel("TopKV3", "half")
    return Kernel("TopKV2", "float")


def _dequantize(node: Node, chip: Chip) -> Found:
    codes = node.inputs[0].dtype.name
    if node.dtype.name not in ("f16", "bf16") or codes not in ("i8", "i32") or (codes == "i32" and len(node.inputs) > 2):
        return ()
    return Kernel("AscendDequant", "cast", aclnn="-", cpu=False) if codes == "i32" else Kernel("AscendAntiQuantV2", "code", cpu=False)


GRADIENTS = {
    "relu": ("ReluGrad", "aclnnThresholdBackward"), "leaky_relu": ("LeakyReluGrad", "aclnnLeakyReluBackward"), "elu": ("EluGradV2", "aclnnEluBackward"),
    "gelu": ("GeluGrad", "aclnnGeluBackward"), "silu": ("SiluGrad", "aclnnSiluBackward"), "mish": ("MishGrad", "aclnnMishBackward"),
    "hard_sigmoid": ("HardSigmoidGrad", "aclnnHardsigmoidBackward"), "hard_swish": ("HardSwishGrad", "aclnnHardswishBackward"),
    "sigmoid": ("SigmoidGrad", "aclnnSigmoidBackward"), "tanh": ("TanhGrad", "aclnnTanhBackward"), "softsign": ("SoftsignGrad", "-"),
    "softplus": ("SoftplusV2Grad", "aclnnSoftplusBackward"), "softmax": ("SoftmaxGrad", "aclnnSoftmaxBackward"),
    "log_softmax": ("LogSoftmaxGrad", "aclnnLogSoftmaxBackward"), "layer_norm": ("LayerNormGrad", "aclnnLayerNormBackward"),
    "rms_norm": ("RmsNormGrad", "aclnnRmsNormGrad"),
}  # fmt: skip


def _gradient(node: Node, chip: Chip) -> Found:
    kind, aclnn = GRADIENTS.get(meant(node), ("", ""))
    if not kind:
        return ()
    return Kernel("LayerNormGradV3" if kind == "LayerNormGrad" and is_new(chip) else kind, "float", aclnn=aclnn, cpu=False)


def meant(node: Node) -> str:
    """The name of a node's operator; of a gradient, of the operator whose gradient it is."""
    return str(node.op.of).partition("(")[0] if isinstance(node.op, Gradient) else node.op.name


def _deform(node: Node, chip: Chip) -> Found:
    return Kernel("DeformableConv2d", "float", MIX_CUBE, cpu=False) if is_new(chip) else ()


def _nms(node: Node, chip: Chip) -> Found:
    return Kernel("NonMaxSuppressionV6", "float") if not is_new(chip) else Kernel("NonMaxSuppressionV3", "none", AI_CPU, "-", why=SERIAL)


def _decode(node: Node, chip: Chip) -> Found:
    if chip.dvpp:
        return Kernel(
            "JpegDecode",
            "none",
            DVPP,
            "-",
            cpu=False,
            why="JPEG files are decoded by the media engine (hi_mpi_vdec, acldvppJpegDecodeAsync)",
        )
    return Kernel("DecodeJpeg", "none", HOST, "-", cpu=False, why="the chip has no media engine: the host decodes")


SIZE = "the size of its result depends on the values: such operators are the AI CPU's here"
SERIAL = "each step depends on the one before: CANN runs it on the AI CPU"
LINEAR = "linear algebra of small matrices runs on the AI CPU"
HOSTED = "CANN has no such operator: the host computes it, between two parts of the graph"

KERNELS: dict[str, Kernel | Callable[[Node, Chip], Found]] = {
    "neg": Kernel("Neg", "arith"),
    "abs": Kernel("Abs", "arith"),
    "sign": Kernel("Sign", "arith"),
    "square": Kernel("Square", "arith"),
    "sqrt": Kernel("Sqrt"),
    "rsqrt": Kernel("Rsqrt"),
    "reciprocal": Kernel("Reciprocal"),
    "exp": Kernel("Exp"),
    "expm1": Kernel("Expm1"),
    "log": Kernel("Log"),
    "log1p": Kernel("Log1p"),
    "sin": Kernel("Sin"),
    "cos": Kernel("Cos"),
    "tan": Kernel("Tan"),
    "asin": Kernel("Asin"),
    "acos": Kernel("Acos"),
    "atan": Kernel("Atan"),
    "sinh": Kernel("Sinh"),
    "cosh": Kernel("Cosh"),
    "tanh": Kernel("Tanh"),
    "asinh": Kernel("Asinh"),
    "acosh": Kernel("Acosh"),
    "atanh": Kernel("Atanh"),
    "sigmoid": Kernel("Sigmoid"),
    "erf": Kernel("Erf"),
    "relu": Kernel("Relu", "arith"),
    "floor": Kernel("Floor"),
    "ceil": Kernel("Ceil"),
    "round": Kernel("Round"),
    "trunc": Kernel("Trunc"),
    "is_nan": Kernel("IsNan", aclnn="-"),
    "is_inf": Kernel("IsInf"),
    "not": Kernel("LogicalNot", "bool"),
    "bitwise_not": Kernel("Invert", "int"),
    "add": Kernel("Add", "arith"),
    "sub": Kernel("Sub", "arith"),
    "mul": Kernel("Mul", "arith"),
    "div": _divide,
    "floor_div": Kernel("FloorDiv", "arith"),
    "mod": lambda node, chip: Kernel("Mod" if node.op.fmod else "FloorMod", "arith", aclnn="aclnnFmodTensor" if node.op.fmod else ""),  # type: ignore[attr-defined]
    "pow": Kernel("Pow", "arith"),
    "minimum": Kernel("Minimum", "arith"),
    "maximum": Kernel("Maximum", "arith"),
    "equal": Kernel("Equal", "compare"),
    "not_equal": Kernel("NotEqual", "compare"),
    "less": Kernel("Less", "compare"),
    "less_equal": Kernel("LessEqual", "compare"),
    "greater": Kernel("Greater", "compare"),
    "greater_equal": Kernel("GreaterEqual", "compare"),
    "and": Kernel("LogicalAnd", "bool"),
    "or": Kernel("LogicalOr", "bool"),
    "xor": Kernel("NotEqual", "bool"),
    "bitwise_and": Kernel("BitwiseAnd", "int"),
    "bitwise_or": Kernel("BitwiseOr", "int"),
    "bitwise_xor": Kernel("BitwiseXor", "int"),
    "shift_left": Kernel("LeftShift", "int"),
    "shift_right": Kernel("RightShift", "int"),
    "select": _by_age("Select", "SelectV2", takes="compare", decides=1),
    "cast": Kernel("Cast", "cast"),
    "gelu": Kernel("Gelu"),
    "silu": Kernel("Swish"),
    "hard_sigmoid": Kernel("HardSigmoid"),
    "hard_swish": Kernel("HardSwish"),
    "leaky_relu": Kernel("LeakyRelu"),
    "prelu": Kernel("PRelu"),
    "elu": Kernel("Elu"),
    "selu": Kernel("Selu"),
    "celu": Kernel("CeluV2"),
    "softplus": Kernel("SoftplusV2"),
    "softsign": Kernel("Softsign"),
    "mish": Kernel("Mish"),
    "clip": Kernel("ClipByValueV2", "arith"),
    "transpose": _by_age("TransposeD", "Transpose", takes="move"),
    "broadcast": Kernel("BroadcastTo", "move"),
    "slice": _slice,
    "pad": _pad,
    "concat": Kernel("ConcatD", "move"),
    "gather": Kernel("GatherV2", "move"),
    "gradient": _gradient,
    "gather_grad": _gather_grad,
    "gather_elements": _by_age("GatherElements", "GatherElementsV2", takes="move"),
    "gather_nd": Kernel("GatherNd", "move"),
    "scatter_elements": _by_age("ScatterElements", "ScatterElementsV2", takes="arith"),
    "scatter_nd": lambda node, chip: Kernel(
        {"add": "ScatterNdAdd", "max": "ScatterNdMax", "min": "ScatterNdMin", "mul": "ScatterNdMul"}.get(node.op.reduction, "ScatterNdUpdate"),  # type: ignore[attr-defined]
        "arith",
    ),
    "iota": Kernel("Range", "arith", decides=-1),
    "reduce_sum": _reduction("ReduceSum", "arith"),
    "reduce_mean": _reduction("ReduceMean"),
    "reduce_prod": _reduction("ReduceProd", "arith"),
    "reduce_max": _reduction("ReduceMax", "arith"),
    "reduce_min": _reduction("ReduceMin", "arith"),
    "reduce_any": _reduction("ReduceAny", "bool"),
    "reduce_all": _reduction("ReduceAll", "bool"),
    "arg_max": _arg("ArgMax", "ArgMaxV2"),
    "arg_min": _arg("ArgMin", "ArgMinD"),
    "cum_sum": _by_age("CumsumD", "Cumsum", takes="arith"),
    "cum_prod": _by_age("CumprodD", "Cumprod", takes="arith"),
    "matmul": _matmul,
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "conv_grad_input": _conv_grad("Input"),
    "conv_grad_weight": _conv_grad("Filter"),
    "max_pool": _max_pool,
    "max_pool_grad": _max_pool_grad,
    "max_pool_indices": _max_pool_indices,
    "avg_pool": _avg_pool,
    "avg_pool_grad": _avg_pool_grad,
    "softmax": Kernel("SoftmaxV2"),
    "log_softmax": Kernel("LogSoftmaxV2"),
    "layer_norm": _by_age("LayerNorm", "LayerNormV3", takes="float"),
    "rms_norm": Kernel("RmsNorm"),
    "batch_norm": Kernel("BNInfer"),
    "instance_norm": Kernel("InstanceNorm"),
    "group_norm": Kernel("GroupNorm"),
    "lrn": Kernel("LRN", aclnn="-"),
    "batch_norm_train": lambda node, chip: Kernel("BatchNormV3") if is_new(chip) else (),  # before: two kernels, see expand.py
    "batch_norm_grad": lambda node, chip: Kernel("BatchNormGradV3") if is_new(chip) else (),
    "batch_norm_reduce": Kernel("BNTrainingReduce", aclnn="-", cpu=False),
    "batch_norm_update": Kernel("BNTrainingUpdate", aclnn="-", cpu=False),
    "batch_norm_grad_reduce": Kernel("BNTrainingUpdateGrad", aclnn="-", cpu=False),
    "batch_norm_grad_update": Kernel("BNTrainingReduceGrad", aclnn="-", cpu=False),
    "attention": _attention,
    "attention_grad": _attention_grad,
    "rotary_embedding": _rotary,
    "lstm": _lstm,
    "lstm_grad": _lstm_grad,
    "gru": _gru("DynamicGRUV2"),
    "gru_grad": _gru("DynamicGRUV2Grad"),
    "quantize": lambda node, chip: Kernel("AscendQuantV2", "float", cpu=False) if node.dtype.name == "i8" else (),
    "dequantize": _dequantize,
    "random_normal": _random("RandomStandardNormal", "DSARandomNormal", "aclnnInplaceNormal"),
    "random_uniform": _random("RandomUniform", "DSARandomUniform", "aclnnInplaceUniform"),
    "bernoulli": Kernel("StatelessBernoulli", "none", AI_CPU, "aclnnBernoulli", why="random numbers of a graph are made by the AI CPU"),
    "multinomial": Kernel("Multinomial", "none", AI_CPU, "aclnnMultinomial", why="sampling by cumulated chances is the AI CPU's"),
    "random_bits": Kernel("StatelessRandomUniformInt", "none", AI_CPU, "-", why="raw bits of a given key and counter are made by the AI CPU"),
    "top_k": _top_k,
    "non_zero": Kernel("NonZero", "none"),
    "unique": Kernel("UniqueWithCountsAndSorting", "none", AI_CPU, why=SIZE),
    "compress": Kernel("MaskedSelect", "none", AI_CPU, "aclnnMaskedSelect", why=SIZE),
    "non_max_suppression": _nms,
    "suppress_overlaps": Kernel("NMSWithMask", "float", aclnn="-"),
    "det": Kernel("MatrixDeterminant", "none", AI_CPU, "-", why=LINEAR),
    "ngrams": Kernel("TfIdfVectorizer", "none", HOST, "-", why=HOSTED),
    "resize": _resize,
    "grid_sample": lambda node, chip: Kernel("GridSampler2D", "float") if node.inputs[0].rank == 4 and node.op.mode != "cubic" else (),  # type: ignore[attr-defined]
    "deform_conv": _deform,
    "roi_align": Kernel("ROIAlign"),
    "max_roi_pool": Kernel("ROIPooling"),
    "col2_im": Kernel("Col2im", cpu=False),
    "image_decode": _decode,
    "ctc_loss": lambda node, chip: Kernel("CTCLossV2", "float") if library.column(chip.family) == "950" else Kernel("CTCLossV2", "none", AI_CPU, why=SERIAL),
    "inverse": Kernel("MatrixInverse", "none", AI_CPU, why=LINEAR),
    "cholesky": Kernel("Cholesky", "none", AI_CPU, "aclnnLinalgCholesky", why=LINEAR),
    "solve_triangular": Kernel("MatrixTriangularSolve", "none", AI_CPU, why=LINEAR),
    "solve": Kernel("MatrixSolve", "none", AI_CPU, "-", why=LINEAR),
    "qr": Kernel("Qr", "none", AI_CPU, "aclnnLinalgQr", why=LINEAR),
    "svd": Kernel("Svd", "none", AI_CPU, "aclnnSvd", why=LINEAR),
    "eigh": Kernel("SelfAdjointEig", "none", AI_CPU, "-", why=LINEAR),
    "eigvals": Kernel("Eig", "none", AI_CPU, "-", why=LINEAR),
}  # fmt: skip


def size(node: Node) -> int:
    """Elements of all results."""
    types = node.type if isinstance(node.type, tuple) else (node.type,)
    return sum(math.prod(t.dims) for t in types)
