"""The formats in which the kernel of an operator takes its inputs and leaves its result: what formats.py chooses from.

In: a node of a Selection and the chip.  Out: `Option`s, plain memory first where a kernel takes it, and for each format of the neighbours that a
kernel does not take the reason and what would change it (`Refusal`).
Convolutions and pools read images in blocks of channels; matrix products of the first generations (310, 310P, 910) read fractals, those of a 910B and
later take plain rows and cut them on the way in; a 950 reads plain images, too.  Everything else follows its neighbours where the shape allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jumar.base import DType, TensorType
from jumar.compiler.passes.pairs import Pair, find_pairs, on_edges, pad_to, swaps, up
from jumar.compiler.passes.select import Selection
from jumar.compiler.passes.splits import shared_out
from jumar.compiler.passes.switches import Switches
from jumar.device.npu import (
    AI_CPU,
    BLOCK_ROWS,
    CUBE,
    DVPP,
    FRACTAL_NZ,
    FRACTAL_Z,
    FRACTAL_Z_3D,
    HOST,
    MIX_CUBE,
    NC1HWC0,
    ND,
    NDC1HWC0,
    Chip,
    base_format,
    channel_block,
    is_private,
    library,
)
from jumar.ir import Constant, Get, Node, Param
from jumar.operators import (
    Add,
    AvgPool,
    AvgPoolGrad,
    BatchNorm,
    BatchNormGrad,
    BatchNormGradReduce,
    BatchNormGradUpdate,
    BatchNormReduce,
    BatchNormTrain,
    BatchNormUpdate,
    Concat,
    Conv,
    ConvGradInput,
    ConvGradWeight,
    ConvTranspose,
    Dequantize,
    Elementwise,
    Gradient,
    LayerNorm,
    Lookup,
    MatMul,
    MaxPool,
    MaxPoolGrad,
    MaxPoolIndices,
    Pad,
    Quantize,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceSum,
    Reshape,
    Resize,
    Slice,
    Softmax,
    Transpose,
)

FRACTAL_MATRICES = ("310", "310p", "910")  # chips whose matrix products read and write FRACTAL_NZ
PLAIN_IMAGES = ("950",)
FILTER_READERS: Mapping[type, tuple[int, ...]] = {Conv: (1,), ConvTranspose: (1,), ConvGradInput: (1,)}


@dataclass(frozen=True)
class Option:
    """One way to run a kernel.   inputs: format of each; output: of the result."""

    inputs: tuple[str, ...]
    output: str


@dataclass(frozen=True)
class Refusal:
    """Why a kernel does not take a format, and what would avoid the conversion."""

    why: str
    avoid: str = ""


@dataclass(frozen=True, eq=False)
class Offer:
    """What one node can do.   heavy: it sets the format rather than follows."""

    options: tuple[Option, ...]
    heavy: bool = False
    refusals: Mapping[str, Refusal] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Situation:
    """What the rules ask beside the node.   candidates: private formats that heavy nodes of the graph use, none where operators run one by one.

    turned: transposes that matrix products take in; pairs: reshapes and transposes that CANN joins, each of the two by its node;
    variables: parameters that live on from step to step.
    """

    selection: Selection
    family: str
    split: bool
    candidates: tuple[str, ...] = ()
    turned: frozenset[Node] = frozenset()
    pairs: Mapping[Node, Pair] = field(default_factory=dict)
    variables: frozenset[Node] = frozenset()

    def on_cube(self, node: Node) -> bool:
        return node in self.selection.choices and self.selection.choices[node].unit in (CUBE, MIX_CUBE)

    def launches(self, node: Node) -> bool:
        return node in self.selection.choices and self.selection.choices[node].unit != ""

    def elsewhere(self, node: Node) -> bool:
        """Whether the AI CPU, the media engine or the host runs it: they know plain memory only."""
        return node in self.selection.choices and self.selection.choices[node].unit in (AI_CPU, DVPP, HOST)

    def cube(self, format: str, dtype: DType) -> str:
        """The format as the cube unit of the chip means it: fp32 goes through that of a 910B in blocks of 8."""
        return f"{format}:8" if self.split and dtype.bits == 32 and dtype.is_float and is_private(format) else format


def situation(selection: Selection, chip: Chip, switches: Switches, *, inference: bool, eager: bool) -> Situation:
    """What the rules need to know of a graph."""
    graph = selection.graph
    family = library.column(chip.family)
    first = Situation(selection, family, chip.split and family not in PLAIN_IMAGES)
    heavy = [offer for n in graph.nodes if (offer := _heavy(n, first)) is not None]
    candidates = dict.fromkeys(f for o in heavy for f in (*(o.options[0].inputs), o.options[0].output) if is_private(f))
    updated = frozenset(graph.params[p] for _, p in graph.updates) if not inference else frozenset()
    turned = turned_transposes(selection, first)
    pairs = find_pairs(graph, family, switches, first.launches, first.on_cube)
    return Situation(selection, family, first.split, () if eager else tuple(candidates), turned, pairs, updated)


def offer(node: Node, at: Situation) -> Offer:
    """What a node can do; operators without a rule read and write plain memory."""
    if isinstance(node.op, Param):
        wild = at.candidates if node in at.variables else ()
        return Offer((Option((), ND), *(Option((), f) for f in wild if _has_shape_for(node, f))))
    if isinstance(node.op, Constant):
        return Offer((Option((), ND),))
    if (heavy := _heavy(node, at)) is not None:
        return heavy
    follows = _passes_on(node, at) or next((FOLLOWERS[c] for c in type(node.op).__mro__ if c in FOLLOWERS), None)
    plain = Option((ND,) * len(node.inputs), ND)
    if follows is None or at.elsewhere(node):
        return Offer((plain,), refusals={f: _plain_only(node, at) for f in at.candidates})
    options, refusals = [plain], {}
    for format in at.candidates:
        found = follows(node, format, at)
        if isinstance(found, Refusal):
            refusals[format] = found
        else:
            options.append(found)
    return Offer(tuple(options), refusals=refusals)


Follow = Callable[[Node, str, Situation], Option | Refusal]
FOLLOWERS: dict[type, Follow] = {}


def follows(*ops: type) -> Callable[[Follow], Follow]:
    """Registers how operators run in a private format of their neighbours."""

    def register(function: Follow) -> Follow:
        for op in ops:
            FOLLOWERS[op] = function
        return function

    return register


# ------------------------------------------------------------------------------------------------------------ those that set the format
def _heavy(node: Node, at: Situation) -> Offer | None:
    """The options of an operator that knows only its private formats."""
    if at.elsewhere(node):
        return None
    found: list[tuple[tuple[str, ...], str]] = []
    match node.op:
        case Conv(channels_last=False) | ConvTranspose() | ConvGradInput(channels_last=False) | ConvGradWeight(channels_last=False):
            if at.on_cube(node) and at.family not in PLAIN_IMAGES:
                found = [_convolution(node, at)]
        case MatMul() if at.family in FRACTAL_MATRICES and at.on_cube(node) and all(i.rank > 1 for i in node.inputs):
            found = [((FRACTAL_NZ,) * len(node.inputs), FRACTAL_NZ)]
        case (
            MaxPool(channels_last=False)
            | AvgPool(channels_last=False)
            | MaxPoolGrad(channels_last=False)
            | AvgPoolGrad(channels_last=False)
        ):
            if at.launches(node) and at.family not in PLAIN_IMAGES and node.rank == 4:
                found = [((f,) * len(node.inputs), f) for f in dict.fromkeys((NC1HWC0, at.cube(NC1HWC0, node.dtype)))]
        case MaxPoolIndices():
            if at.launches(node) and at.family not in PLAIN_IMAGES and node.inputs[0].rank == 4:
                found = [((NC1HWC0,), NC1HWC0)]
        case Resize() if at.family in FRACTAL_MATRICES and at.launches(node) and node.rank == 4:
            found = [((NC1HWC0, *(ND,) * (len(node.inputs) - 1)), NC1HWC0)]
    return Offer(tuple(Option(*f) for f in found), heavy=True) if found else None


def _convolution(node: Node, at: Situation) -> tuple[tuple[str, ...], str]:
    """Images and filters of a convolution or of its gradients."""
    volume = max(node.rank, *(i.rank for i in node.inputs)) == 5
    image, filters = (NDC1HWC0, FRACTAL_Z_3D) if volume else (NC1HWC0, FRACTAL_Z)

    def of(format: str, value: Node) -> str:
        return at.cube(format, value.dtype)

    if isinstance(node.op, ConvGradWeight):
        return tuple(of(image, i) for i in node.inputs), of(filters, node)
    x, w, *bias = node.inputs
    return (of(image, x), of(filters, w), *(ND for _ in bias)), of(image, node)


# ----------------------------------------------------------------------------------------------------------------- those that launch nothing
def _passes_on(node: Node, at: Situation) -> Follow | None:
    """How a node that is a view, or is taken in by a neighbour, passes a private format on."""
    if node in at.turned:
        return lambda n, f, _: Option((f,), f) if base_format(f) == FRACTAL_NZ else _plain_only(n, at)
    if node in at.pairs:
        return _one_kernel
    if isinstance(node.op, Get):
        return _result
    if not at.launches(node) and isinstance(node.op, Elementwise):
        return lambda n, f, _: Option((f,) * len(n.inputs), f)
    return None


def _result(node: Node, format: str, at: Situation) -> Option | Refusal:
    """One result of several: those that are no images lie in plain memory, whatever the first does."""
    return Option((format,), format) if _has_shape_for(node, format) else Refusal("is no image")


def _one_kernel(node: Node, format: str, at: Situation) -> Option | Refusal:
    """A reshape and a transpose that are one kernel in fractals, or none."""
    if base_format(format) != FRACTAL_NZ:
        return reshape(node, format, at) if isinstance(node.op, Reshape) else _plain_only(node, at)
    why = at.pairs[node].why
    return Refusal(why, at.pairs[node].avoid) if why else Option((format,), format)


@follows(Reshape)
def reshape(node: Node, format: str, at: Situation) -> Option | Refusal:
    """Free where the bytes stay: an image of one cell as a row of channels, and batches of matrices counted otherwise."""
    old, new = node.inputs[0].shape, node.shape
    if base_format(format) == NC1HWC0:
        cells = [*old[2:], *new[2:]]
        if min(len(old), len(new)) >= 2 and max(len(old), len(new)) <= 4 and old[:2] == new[:2] and all(d == 1 for d in cells):
            return Option((format,), format)
    elif base_format(format) == FRACTAL_NZ and min(len(old), len(new)) >= 2 and old[-2:] == new[-2:]:
        return Option((format,), format)
    what = f"reshape [{_dims(old)}] -> [{_dims(new)}] counts elements in plain order"
    return Refusal(what, "keep the shape up to the last operator on the cube, or move the reshape to the model's input or output")


# ----------------------------------------------------------------------------------------------------------------------- those that follow
@follows(Elementwise)
def elementwise(node: Node, format: str, at: Situation) -> Option | Refusal:
    """In the format of its operands, where what is broadcast does not cut a block."""
    if not _has_shape_for(node, format):
        return Refusal(f"{node.op.name} of {node.type} has no shape for {base_format(format)}")
    wants = []
    for value in node.inputs:
        found = _operand(value, node, format)
        if isinstance(found, Refusal):
            return found
        wants.append(found)
    return Option(tuple(wants), format)


@follows(Quantize, Dequantize)
def quantized(node: Node, format: str, at: Situation) -> Option | Refusal:
    """The kernel that scales changes the block of channels on its way, so both element types are fine."""
    if not _has_shape_for(node, format):
        return Refusal(f"{node.op.name} of {node.type} has no shape for {base_format(format)}")
    return Option((format, *(ND,) * (len(node.inputs) - 1)), format)


@follows(Lookup)
def lookup(node: Node, format: str, at: Situation) -> Option | Refusal:
    """A table knows nothing of padding."""
    return _plain_only(node, at)


@follows(ReduceMean, ReduceSum, ReduceMax, ReduceMin)
def reduction(node: Node, format: str, at: Situation) -> Option | Refusal:
    """Over whole images; over channels a block would be cut."""
    (x,) = node.inputs
    op = node.op
    assert isinstance(op, ReduceMean | ReduceSum | ReduceMax | ReduceMin), "listed under these"
    axes = op.over(x.rank)
    if base_format(format) != NC1HWC0 or x.rank != 4:
        return _plain_only(node, at)
    if 0 in axes or 1 in axes:
        return Refusal(
            f"{op.name} over axes {list(axes)} adds channels up, and they are cut into blocks",
            "reduce over channels in the last layer only",
        )
    if not op.keepdims and axes != (2, 3):
        return Refusal(f"{op.name} over axis {axes[0]} alone leaves no image", "keep the reduced dimension (keepdims)")
    return Option((format,), format)


@follows(Softmax)
def softmax(node: Node, format: str, at: Situation) -> Option | Refusal:
    """Along channels or rows, where padding would not be added up."""
    op = node.op
    assert isinstance(op, Softmax), "listed under it"
    axis = op.axis % node.rank
    return _along(node, format, axis, at)


@follows(LayerNorm)
def layer_norm(node: Node, format: str, at: Situation) -> Option | Refusal:
    """Along rows whose ends lie on the edges of blocks."""
    op = node.op
    assert isinstance(op, LayerNorm), "listed under it"
    found = _along(node, format, op.axis % node.rank, at) if base_format(format) == FRACTAL_NZ else _plain_only(node, at)
    return Option((format, *(ND,) * (len(node.inputs) - 1)), format) if isinstance(found, Option) else found


@follows(Gradient)
def gradient(node: Node, format: str, at: Situation) -> Option | Refusal:
    """As the operator whose gradient it is: element by element in any format, along rows where their ends lie on the edges of blocks."""
    op = node.op
    assert isinstance(op, Gradient), "listed under it"
    if isinstance(op.forward, Elementwise):
        return elementwise(node, format, at)
    if isinstance(op.forward, Softmax):
        found = _along(node, format, op.forward.axis % node.rank, at)
        return Option((format,) * len(node.inputs), format) if isinstance(found, Option) else found
    return _plain_only(node, at)


@follows(BatchNorm, BatchNormTrain, BatchNormGrad, BatchNormUpdate, BatchNormGradUpdate)
def batch_norm(node: Node, format: str, at: Situation) -> Option | Refusal:
    """Numbers of each channel lie in plain memory beside the image."""
    if base_format(format) not in (NC1HWC0, NDC1HWC0) or not _has_shape_for(node.inputs[0], format):
        return _plain_only(node, at)
    return Option(tuple(format if i.rank == node.inputs[0].rank else ND for i in node.inputs), format)


@follows(BatchNormReduce, BatchNormGradReduce)
def batch_norm_sums(node: Node, format: str, at: Situation) -> Option | Refusal:
    """Sums of each channel lie in plain memory."""
    found = batch_norm(node, format, at)
    return Option(found.inputs, ND) if isinstance(found, Option) else found


@follows(Concat)
def concat(node: Node, format: str, at: Situation) -> Option | Refusal:
    """Along channels whole blocks only."""
    op = node.op
    assert isinstance(op, Concat), "listed under it"
    sizes = [i.shape[op.axis % node.rank] for i in node.inputs]
    return _cut_along(node, format, op.axis % node.rank, sizes, "joins")


@follows(Slice)
def slice_(node: Node, format: str, at: Situation) -> Option | Refusal:
    """Channels of an image from the edge of a block to another, or to the end; anything of its other axes."""
    (x,) = node.inputs
    op = node.op
    assert isinstance(op, Slice), "listed under it"
    parts, axis = shared_out(at.selection.graph, x)
    if axis is not None:
        return _split(node, format, axis, parts)
    name, block = base_format(format), channel_block(x.dtype, format)
    choice = at.selection.choices.get(node)
    if name not in (NC1HWC0, NDC1HWC0) or not _has_shape_for(x, format) or x.dtype.bits == 8 or (choice and choice.kind == "StridedSlice"):
        return _plain_only(node, at)
    start, end = op.starts[1], op.starts[1] + node.shape[1] * op.steps[1]
    if op.steps[1] != 1 or start % block or (end % block and end != x.shape[1]):
        steps = f" by {op.steps[1]}" if op.steps[1] != 1 else ""
        return Refusal(f"slice cuts channels {start} to {end}{steps}, and blocks are of {block}", f"cut at multiples of {block}")
    return Option((format,), format)


def _split(node: Node, format: str, axis: int, parts: Sequence[Node]) -> Option | Refusal:
    """Slices that are one split: images as concats are, matrices where batches are cut."""
    (x,) = node.inputs
    if base_format(format) == FRACTAL_NZ and (axis != 0 or x.rank < 3):
        way = "make each part by a product of its own" if isinstance(x.op, MatMul | Add) and axis == x.rank - 1 else ""
        return Refusal(f"a split along axis {axis} of {x.type} reads plain memory", way)
    return _cut_along(node, format, axis, [p.shape[axis] for p in parts], "cuts")


@follows(Pad)
def pad(node: Node, format: str, at: Situation) -> Option | Refusal:
    """Around images, and by whole blocks of channels."""
    (x,) = node.inputs
    op = node.op
    assert isinstance(op, Pad), "listed under it"
    if base_format(format) != NC1HWC0 or x.rank != 4 or op.mode != "constant":
        return _plain_only(node, at)
    return _cut_along(node, format, 1, (x.shape[1], op.low[1], op.high[1]), "adds to or by")


# --------------------------------------------------------------------------------------------------------------------------- small print
def turned_transposes(selection: Selection, at: Situation) -> frozenset[Node]:
    """Transposes of the last two dimensions that only matrix products read: those read either way."""
    graph = selection.graph
    outputs = set(graph.outputs)

    def taken(node: Node) -> bool:
        users = graph.users[node]
        return bool(users) and node not in outputs and all(isinstance(u.op, MatMul) and at.on_cube(u) for u in users)

    return frozenset(n for n in graph.nodes if isinstance(n.op, Transpose) and swaps(n.op.perm) and taken(n))


def _operand(value: Node, node: Node, format: str) -> str | Refusal:
    """The format in which an operand is read, where the result is in a private one."""
    result: TensorType = node.type
    if value.type.size == 1:
        return ND
    shape = (1,) * (result.rank - value.rank) + value.shape
    name, block = base_format(format), channel_block(value.dtype, format)
    if channel_block(result.dtype, format) != block or (":" in format and result.dtype.bits != value.dtype.bits):
        what = f"{node.op.name} from {value.dtype} to {result.dtype} would change blocks of {block}"
        return Refusal(what, "cast before the first or after the last operator on the cube")
    if name in (NC1HWC0, NDC1HWC0) and result.rank >= 4:
        if shape[1] == result.dims[1]:
            return format
        what = f"{node.op.name} broadcasts {list(value.shape)} along channels, and they are cut into blocks of {block}"
        return Refusal(what, "give the operand as many channels as the image has")
    if name == FRACTAL_NZ:
        if shape[-2:] == result.dims[-2:]:
            return format
        if shape[-2] == 1 and shape[-1] == result.dims[-1] and shape[-1] % block == 0:
            return ND  # a row on its own lies alike in both
        if _on_edges(result.dims, result.dtype) and not _on_edges(shape, value.dtype):
            return ND  # kernels of two operands read a small one beside fractals
        what = f"{node.op.name} broadcasts {list(value.shape)} over fractals of {list(result.dims)}"
        return Refusal(what, f"make rows a multiple of {BLOCK_ROWS}, or the operand as large as the result")
    if value.shape == result.dims:
        return format
    return Refusal(f"{node.op.name} broadcasts {list(value.shape)} over {name}")


def _along(node: Node, format: str, axis: int, at: Situation) -> Option | Refusal:
    """An operator that adds up along an axis, for which padding must not be among it."""
    x = node.inputs[0]
    name = base_format(format)
    if name == NC1HWC0 and x.rank == 4 and axis == 1:
        if x.shape[1] % channel_block(x.dtype, format) == 0:
            return Option((format,), format)
        what = f"{node.op.name} along {x.shape[1]} channels would add padding up"
        return Refusal(what, f"make the channels a multiple of {BLOCK_ROWS}: {up(x.shape[1])}")
    if name == FRACTAL_NZ and x.rank >= 2 and axis == x.rank - 1:
        if _on_edges(x.shape, x.dtype):
            return Option((format,), format)
        what = f"{node.op.name} along rows of {list(x.shape)} would add padding up"
        return Refusal(what, pad_to(x.shape))
    return Refusal(f"{node.op.name} along axis {axis} reads rows of plain memory", "")


def _cut_along(node: Node, format: str, axis: int, sizes: Iterable[int], verb: str) -> Option | Refusal:
    """Joining or cutting where the edges of blocks allow it."""
    name, block = base_format(format), channel_block(node.dtype, format)
    option = Option((format,) * len(node.inputs), format)
    if name == NC1HWC0 and node.rank == 4:
        unit = block if axis == 1 else 1
    elif name == FRACTAL_NZ and node.rank >= 2:
        unit = {node.rank - 1: block, node.rank - 2: BLOCK_ROWS}.get(axis, 1)
    else:
        return Refusal(f"{node.op.name} of {node.type} has no shape for {name}")
    unfit = [s for s in sizes if s % unit]
    if not unfit:
        return option
    what = f"{node.op.name} {verb} {unfit[0]} along axis {axis}, and blocks are of {unit}"
    return Refusal(what, f"make it a multiple of {unit}: {up(unfit[0], unit)}")


def _has_shape_for(node: Node, format: str) -> bool:
    """Whether a value of that shape can lie in a format."""
    if not isinstance(node.type, TensorType):
        return True
    ranks = {NC1HWC0: (4,), NDC1HWC0: (5,), FRACTAL_Z: (4,), FRACTAL_Z_3D: (5,)}.get(base_format(format))
    return node.rank in ranks if ranks else node.rank >= 2


def _on_edges(shape: Sequence[int], dtype: DType) -> bool:
    return on_edges(shape, channel_block(dtype))


def _plain_only(node: Node, at: Situation) -> Refusal:
    choice = at.selection.choices.get(node)
    what = f"{choice.kind if choice and choice.kind else node.op.name} takes plain memory only"
    between_images = isinstance(node.op, Transpose) and NC1HWC0 in map(base_format, at.candidates)
    return Refusal(what, ONE_ORDER if between_images else "")


ONE_ORDER = "train and export the model in NCHW from end to end, so that no transpose stands between convolutions"


def _dims(shape: Sequence[int]) -> str:
    return ", ".join(map(str, shape))
