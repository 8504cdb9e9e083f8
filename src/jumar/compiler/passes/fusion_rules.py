"""The fusion rules of an Ascend NPU as tables: what each joins, where, and under which condition.

In: nothing, they are facts, from CANN's documentation of its fusion rules and from the lists in its fusion engine.  Out: rows that fuse_npu.py tries and
that docs/twin/formats-and-fusion.md prints.  Their names are those of a switch file (switches.py, which also knows the chips that have each).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jumar.base import f16, f32, i8, i32
from jumar.ir import Node
from jumar.operators import (
    Add,
    AvgPool,
    Cast,
    Clip,
    Conv,
    ConvTranspose,
    Dequantize,
    Div,
    Elu,
    Gelu,
    LayerNorm,
    LeakyRelu,
    MatMul,
    MaxPool,
    Minimum,
    Mish,
    Mul,
    PRelu,
    Quantize,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceSum,
    Relu,
    RmsNorm,
    Selu,
    Sigmoid,
    Silu,
    Softplus,
    Softsign,
    Tanh,
)

CONV, DEPTHWISE, DECONV, MATMUL, BATCH, POOL = (
    "convolution", "depthwise convolution", "transposed convolution", "matmul", "batched matmul", "pool",
)  # fmt: skip
CONVS = (CONV, DEPTHWISE, DECONV)
Types = tuple[type, ...]


@dataclass(frozen=True)
class Epilogue:
    """What may follow a product or a pool in its kernel.   heads: what it follows; links: operators in their order, each of which may be absent.

    whole: none of them may; first: the first may not.  what: in words.  kind: the kernel's name, where it has one of its own.
    condition: asked of the node before and the one taken in, gives why not.
    """

    rule: str
    heads: tuple[str, ...]
    links: tuple[Types, ...]
    what: str
    whole: bool = False
    first: bool = False
    kind: str = ""
    condition: Callable[[Node, Node], str] | None = None


def _whole_blocks(before: Node, node: Node) -> str:
    c = node.shape[1] if node.rank > 1 else 0
    return "" if c % 16 == 0 else f"output channels must be a multiple of 16, got {c}"


def _widens(before: Node, node: Node) -> str:
    return "" if before.dtype is f16 and node.dtype is f32 else f"the cast must be from f16 to f32, got {before.dtype} to {node.dtype}"


def _of_extended(before: Node, node: Node) -> str:
    return "" if before.dtype in (f16, i8, i32) else f"the kernel takes f16 and int8, got {before.dtype}"


def _is_relu6(before: Node, node: Node) -> str:
    match node.op:
        case Clip(low=low, high=high) if (low, high) != (0, 6):
            return f"a clip must be 0 to 6 (relu6), got {low} to {high}"
    return ""


# the lists are those of the fusion engine and of its documentation
AFTER_CONV: Types = (LeakyRelu, Relu, Clip, PRelu, Add, Mul, Softplus, Sigmoid, Mish, Minimum, Tanh, Silu)
AFTER_FULLY: Types = (Elu, LeakyRelu, Gelu, Softsign, Clip, Relu, Softplus, Sigmoid, Tanh, Selu, PRelu)
AFTER_MATMUL: Types = (*AFTER_FULLY, Add)
ON_FIXPIPE: tuple[Types, ...] = ((Dequantize, Cast), (Relu, LeakyRelu, PRelu), (Quantize,))
BIAS = {CONV: "AABiasaddConvFusion", DEPTHWISE: "AABiasaddConvFusion", MATMUL: "MatMulBiasAddFusionPass", BATCH: "MatMulBiasAddFusionPass"}
EPILOGUES = (
    Epilogue("ConvCastFusionPass", (CONV, DEPTHWISE), ((Cast,),), "a cast of the result from f16 to f32", condition=_widens),
    Epilogue("MatmulCastFusionPass", (MATMUL, BATCH), ((Cast,),), "a cast of the result from f16 to f32", condition=_widens),
    Epilogue(
        "TbeConvCommonRules0FusionPass", (CONV, DEPTHWISE), ((Dequantize,), *(AFTER_CONV,) * 5, (Quantize,)),
        "dequant, up to five elementwise operators, quant", condition=_is_relu6,
    ),
    Epilogue(
        "ConvClipByValueFusionPass", (CONV,), ((Clip,), (Relu, Add), (Relu, Add)), "a clip, then relu or add", first=True, condition=_whole_blocks,
    ),
    Epilogue("TbeConv2dAddClipMulDivFusionPass", (CONV,), ((Add,), (Clip,), (Mul,), (Div,)), "add, clip, mul, div", whole=True),
    Epilogue("TbeConv2dAddRelu6MulMulFusionPass", (CONV, DEPTHWISE), ((Add,), (Clip,), (Mul,), (Mul,)), "add, relu6, mul, mul", whole=True),
    Epilogue("TbeConvFixPipeFusionPass", CONVS, ON_FIXPIPE, "dequant or cast, relu, quant on the fixpipe"),
    Epilogue(
        "Conv2DFixPipeToExtendConv2DFusionPass", (CONV,), ((Dequantize,), (Relu, LeakyRelu), (Quantize,)), "dequant, relu, quant on the fixpipe",
        kind="ExtendConv2D", condition=_of_extended,
    ),
    Epilogue("TbeMatmulFixPipeFusionPass", (MATMUL,), ON_FIXPIPE, "dequant or cast, relu, quant on the fixpipe"),
    Epilogue("BatchMatmulFixpipeFusionPass", (BATCH,), ON_FIXPIPE, "dequant or cast, relu, quant on the fixpipe"),
    Epilogue("ATbeMatMulElemwiseFusionPass", (MATMUL,), (AFTER_MATMUL, AFTER_MATMUL), "one or two elementwise operators"),
    Epilogue("TbeBatchMatmulElementWiseFusionPass", (BATCH,), ((Add, Div, Relu), (Add, Relu)), "add, div or relu, then add or relu"),
    Epilogue("TbeBatchMatmulFusedMulAddFusionPass", (BATCH,), ((Mul,), (Add,)), "mul and add as one FusedMulAdd", whole=True),
    Epilogue("TbeFullyconnectionElemwiseDequantFusionPass", (MATMUL, BATCH), ((Dequantize,), AFTER_FULLY, (Quantize,)), "dequant, an activation, quant"),
    Epilogue("TbePool2dQuantFusionPass", (POOL,), ((Quantize,),), "quant"),
)  # fmt: skip
TURNS = {MATMUL: "MatmulConfusiontransposeUbFusion", BATCH: "BatchMatmulConfusiontransposeUbFusion"}
NORM_WIDTHS = (320, 640, 768, 1024, 1280, 1536)  # for which a 310P has the kernel of add and layer norm


@dataclass(frozen=True)
class Named:
    """An add and the norm that reads it, for which there is a kernel.   kind: its name; widths: sizes of the last axis, all where empty."""

    rule: str
    norm: type
    kind: str
    what: str
    widths: tuple[int, ...] = ()


NAMED = (
    Named("AddLayerNormFusionPass", LayerNorm, "AddLayerNorm", "an add and the layer norm of its result"),
    Named("AddLayerNormV3FusionPass", LayerNorm, "AddLayerNorm", "an add and the layer norm of its result", NORM_WIDTHS),
    Named("AddRmsNormFusionGraphPass", RmsNorm, "AddRmsNorm", "an add and the RMS norm of its result"),
)
REDUCTIONS: Types = (ReduceSum, ReduceMean, ReduceMax, ReduceMin)
CHAIN, CHAIN_LONG, MANY, INTO_QUANT, AROUND_REDUCE = (
    "TbeEltwiseFusionPass", "AutomaticUbFusion", "TbeMultiOutputFusionPass", "TbeEltwiseQuantFusionPass", "TbeReduceElemwiseFusionPass",
)  # fmt: skip
LONGEST = {CHAIN: 6, CHAIN_LONG: 29}
CHAINS = {
    CHAIN: "up to six elementwise operators in a row",
    CHAIN_LONG: "up to 29 elementwise operators that no other rule took",
    MANY: "elementwise operators of which one that is read elsewhere, too",
    INTO_QUANT: "up to five elementwise operators and the quant of their result",
    AROUND_REDUCE: "an elementwise operator, the reduction of its result, and what follows that",
}


TURNED = {
    "ReshapeTransposeFusionPass": "a reshape and the transpose of its result, in fractals",
    "TransposeReshapeFusionPass": "a transpose and the reshape of its result, in fractals",
    "TransdataTransposeTransdataBatchMatMulv2FusionPass": "heads of attention between two products lie in fractals as they are: no kernel",
    "BatchMatMulV2ReshapeFusionPass": "the batch of a product with one matrix as more rows, so that heads can be cut in fractals",
}
IN_PLACE = {
    "ConvConcatFusionPass": "convolutions write straight into the concat of their channels",
    "FusionVirtualOpSetSwitch": "the parts of a split are read where they lie",
}
AUTOFUSE = "AutoFuse"  # switched by an environment variable, not by a switch file
HAVE_AUTOFUSE = ("910b", "910_93", "950")
LONGEST_AUTOFUSE = 64


def head_of(node: Node) -> str:
    """Which kind of product or pool a node is, empty where it is none."""
    match node.op:
        case Conv():
            return DEPTHWISE if node.op.groups > 1 and node.op.groups == node.inputs[0].shape[1] else CONV
        case ConvTranspose():
            return DECONV
        case MatMul():
            return MATMUL if node.inputs[1].rank <= 2 else BATCH  # weights that all of the batch share: their rows are one matrix
        case MaxPool() | AvgPool():
            return POOL
    return ""


def described() -> Iterator[tuple[str, str, str]]:
    """Every rule that has an effect here: its name, what it follows, what it joins."""
    for name in dict.fromkeys(BIAS.values()):
        heads = [head for head, rule in BIAS.items() if rule == name]
        yield name, ", ".join(heads), "an add of one constant for each output channel or column"
    for row in EPILOGUES:
        yield row.rule, ", ".join(row.heads), row.what
    for head, name in TURNS.items():
        yield name, head, "the reshape and transpose of its result, in fractals"
    for norm in NAMED:
        yield norm.rule, "", norm.what
    for table in (TURNED, CHAINS, IN_PLACE):
        for name, what in table.items():
            yield name, "", what
