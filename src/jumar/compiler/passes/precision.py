"""Element types as ATC and MindSpore set them: which operators compute in f16, bf16 or f32, and the casts that this takes.

In: a graph in the model's own element types, a chip and a `Precision`.  Out: the graph with its casts as ordinary nodes, and a `CastFact` for each
that says why it is there; constants are cast here, once.  select.py comes next.  What enters and leaves the graph keeps its type.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from jumar.base import Array, CompileError, DType, OpError, TensorType, bf16, event, f16, f32, nearest
from jumar.compiler.passes.cann_kernels import elements, kernels, meant
from jumar.compiler.passes.precision_lists import MixLists, read_mixlist
from jumar.device.npu import CUBE, MIX_CUBE, Chip, find_chip, library
from jumar.ir import Constant, Data, Get, Graph, Node, Param, apply, param
from jumar.operators import Cast, Elementwise

FORCE_FP16, FORCE_FP32, TO_FP16, TO_BF16, MIX_FP16, MIX_BF16, ORIGIN, O1, O2, O3 = (
    "force_fp16", "force_fp32", "allow_fp32_to_fp16", "allow_fp32_to_bf16", "allow_mix_precision_fp16", "allow_mix_precision_bf16",
    "must_keep_origin_dtype", "O1", "O2", "O3",
)  # fmt: skip
MODES = (FORCE_FP16, FORCE_FP32, TO_FP16, TO_BF16, MIX_FP16, MIX_BF16, ORIGIN, O1, O2, O3)
SYNONYMS = {
    "fp16": FORCE_FP16, "cube_fp16in_fp32out": FORCE_FP32, "origin": ORIGIN, "O0": ORIGIN, "allow_mix_precision": MIX_FP16,
    "mixed_float16": MIX_FP16, "mixed_bfloat16": MIX_BF16,
}  # fmt: skip
ALL_NARROW = (FORCE_FP16, O2, O3)  # modes in which also what only moves elements is narrow
O2_BLACK = frozenset({"batch_norm", "batch_norm_train", "batch_norm_grad", "layer_norm"})  # MindSpore's black list, in our operators
O1_WHITE = frozenset(
    {
        "conv",
        "conv_transpose",
        "conv_grad_input",
        "conv_grad_weight",
        "matmul",
        "lstm",
        "lstm_grad",
        "gru",
        "gru_grad",
        "rnn",
        "rnn_grad",
        "prelu",
    }
)  # fmt: skip  (and relu, which computes the same in either)
NARROW = (f16, bf16)
LARGEST_F16 = 65504.0


@dataclass(frozen=True)
class Precision:
    """What the user asks of the chip's arithmetic.

    mode: one of MODES or a synonym, as in ATC's --precision_mode, --precision_mode_v2 and MindSpore's amp levels.
    hf32: products of f32 with 11 bits of mantissa: True, False, or None for CANN's default (convolutions yes, matrix products no).
    deterministic: sums in a fixed order.  infnan: past the range there is infinity (True) or the largest number (False); None for the chip's default.
    lists: of mixed precision; mixlist: whether the user changed them.  keep: nodes or `OpType::Kind` that keep their type (ATC's --keep_dtype).
    input_fp16: names of inputs that the caller gives in f16 (ATC's --input_fp16_nodes).   bf16: levels O1 to O3 narrow to bf16 instead of f16.
    keep_batchnorm_fp32: of level O2, whether batch normalizations stay wide (MindSpore's `Model` asks; its networks for Ascend say no).
    """

    mode: str = FORCE_FP16
    hf32: bool | None = None
    deterministic: bool = False
    infnan: bool | None = None
    lists: MixLists = field(default_factory=MixLists)
    mixlist: bool = False
    keep: frozenset[str] = frozenset()
    input_fp16: frozenset[str] = frozenset()
    bf16: bool = False
    keep_batchnorm_fp32: bool = True

    @property
    def narrow(self) -> DType:
        """What the levels O1 to O3 narrow to."""
        return bf16 if self.bf16 else f16

    @property
    def canonical(self) -> str:
        """The mode without synonyms."""
        return SYNONYMS.get(self.mode, self.mode)

    @property
    def black(self) -> frozenset[str]:
        """Operator types that stay wide under mixed precision."""
        return self.lists.black

    @property
    def white(self) -> frozenset[str]:
        """Operator types that become narrow under mixed precision."""
        return self.lists.white

    def __str__(self) -> str:
        said = [self.mode]
        said += [] if self.hf32 is None else [f"hf32={'on' if self.hf32 else 'off'}"]
        said += ["deterministic"] if self.deterministic else []
        said += ["bf16"] if self.bf16 else []
        said += [] if self.keep_batchnorm_fp32 else ["keep_batchnorm_fp32=off"]
        said += [] if self.infnan is None else ["infnan" if self.infnan else "saturate"]
        said += [f"{name}={value}" for name in ("keep", "input_fp16") for value in sorted(getattr(self, name))]
        return ",".join(said)


@dataclass(frozen=True)
class CastFact:
    """One cast that the mode takes.   where: the operator that asked for it; why: in words; constant: done here, costs nothing on the device."""

    where: str
    from_dtype: DType
    to_dtype: DType
    nbytes: int
    why: str
    constant: bool = False


def parse_precision(text: str) -> Precision:
    """What a command line says: a mode, then switches behind commas.

    >>> parse_precision("must_keep_origin_dtype,hf32=on,deterministic").hf32
    True

    Switches: `hf32`, `hf32=on|off`, `deterministic`, `bf16`,
    `keep_batchnorm_fp32=on|off`, `infnan`, `saturate`, `mixlist=FILE`, `keep=NAME`, `input_fp16=NAME` (both may come again).
    """
    mode, *switches = (part.strip() for part in text.split(","))
    found = Precision(mode or FORCE_FP16)
    _check_mode(found)
    said: dict[str, str] = {}
    for switch in switches:
        name, _, value = switch.partition("=")
        about = {"infnan": "overflow", "saturate": "overflow"}.get(name, name)
        if name not in ("keep", "input_fp16") and _same(said.setdefault(about, switch)) != _same(switch):
            raise _wrong(f"switches must not contradict each other, got {said[about]} and {switch}", "leave one of them out")
        match name, value:
            case "hf32", "" | "on" | "off":
                found = replace(found, hf32=value != "off")
            case "deterministic", "" | "on" | "off":
                found = replace(found, deterministic=value != "off")
            case "keep_batchnorm_fp32", "on" | "off":
                found = replace(found, keep_batchnorm_fp32=value == "on")
            case "bf16", "":
                found = replace(found, bf16=True)
            case (("infnan" | "saturate"), ""):
                found = replace(found, infnan=name == "infnan")
            case "mixlist", _ if value:
                found = replace(found, lists=read_mixlist(value, found.lists), mixlist=True)
            case (("keep" | "input_fp16"), _) if value:
                found = replace(found, **{name: getattr(found, name) | {value}})
            case _:
                known = "hf32[=on|off], deterministic, bf16, keep_batchnorm_fp32=on|off, infnan, saturate, mixlist=FILE, keep=NAME, input_fp16=NAME"
                raise _wrong(f"switch must be one of {known}, got {switch!r}")
    return found


def _same(switch: str) -> str:
    """A switch in one spelling."""
    return switch.removesuffix("=on")


def check_names(precision: Precision, chip: Chip, graphs: Sequence[Graph]) -> None:
    """Raises an error where `keep` or `input_fp16` name what none of the graphs has: a misspelt name would change nothing in silence."""
    nodes = [n for g in graphs for n in g.nodes]
    names = {n.loc.name for n in nodes} | {node_name(n) for n in nodes}
    kinds = {kind for n in nodes if not isinstance(n.op, Param | Constant) for kind in _kinds(n, chip)}
    inputs = {_label(p) for g in graphs for p in g.params}
    for wish, wanted, known in (("keep", precision.keep, names | kinds), ("input_fp16", precision.input_fp16, inputs)):
        for name in sorted(wanted - known):
            what = "an input" if wish == "input_fp16" else "a node, or OpType::Kind,"
            shown = sorted(k for k in known if k and not k.endswith(")"))
            some = f"for example {', '.join(shown[:5])}" if shown else ""
            raise _wrong(f"{wish} must name {what} of the model, got {name}", nearest(name, shown) or some)


def _kinds(node: Node, chip: Chip) -> set[str]:
    """The operator types by which `keep` may name a node."""
    return {f"OpType::{k.kind}" for k in kernels(node, chip)[:1]} | {f"OpType::{node.op.name}"}


def uses_hf32(node: Node, chip: Chip, precision: Precision) -> bool:
    """Whether a product of f32 is computed in HF32."""
    if (
        "hf32" not in chip.cube_macs
        or node.op.name == "cast"
        or f32 not in {i.dtype for i in node.inputs if isinstance(i.type, TensorType)}
    ):
        return False
    if not is_product(node, chip):
        return False
    return node.op.name.startswith("conv") if precision.hf32 is None else precision.hf32


def is_product(node: Node, chip: Chip) -> bool:
    """Whether the cube computes it."""
    found = kernels(node, chip)
    return bool(found) and found[0].unit in (CUBE, MIX_CUBE)


# ---------------------------------------------------------------------------------------------------------------------- contradictions
def check_precision(precision: Precision, chip: Chip) -> None:
    """Raises an error that names the way out where the wishes contradict each other or the chip."""
    mode = _check_mode(precision)
    if mode in (TO_BF16, MIX_BF16) and "bf16" not in chip.dtypes:
        other = {TO_BF16: TO_FP16, MIX_BF16: MIX_FP16}[mode]
        raise _wrong(
            f"mode must be one that {chip.name} has, got {precision.mode}: the chip has no bf16", f"use {other}, or a chip from 910B on"
        )
    if not precision.keep_batchnorm_fp32 and mode != O2:
        raise _wrong(f"keep_batchnorm_fp32=off must go with O2, got {precision.mode}", "use O2,keep_batchnorm_fp32=off, or O3")
    if precision.bf16 and mode not in (O1, O2, O3):
        raise _wrong(f"bf16 must go with a level O1 to O3, got {precision.mode}", f"use {MIX_BF16}, {TO_BF16}, or O2,bf16")
    if precision.bf16 and "bf16" not in chip.dtypes:
        raise _wrong(f"bf16 must be left out on {chip.name}, which has none, got {precision}", "leave bf16 out, or use a chip from 910B on")
    if precision.hf32 and "hf32" not in chip.cube_macs:
        raise _wrong(f"hf32 must be off on {chip.name}, got on: its cube has no HF32", "leave hf32 out, or use a chip from 910B on")
    if precision.hf32 and mode in (FORCE_FP16, O3):
        raise _wrong(f"hf32 must go with a mode that leaves products in f32, got {precision.mode}", f"use {ORIGIN},hf32=on")
    if precision.mixlist and mode not in (MIX_FP16, MIX_BF16):
        raise _wrong(f"mixlist must go with mixed precision, got {precision.mode}", "use allow_mix_precision, or leave mixlist out")
    if precision.keep and mode == ORIGIN:
        raise _wrong(f"keep must go with a mode that changes types, got {precision.mode}", "leave keep out: everything keeps its type")
    if precision.infnan and chip.overflow == "saturate":
        raise _wrong(f"overflow of {chip.name} must be saturate, got infnan", "leave infnan out: past 65504 stands 65504 on this chip")
    if precision.infnan is False and chip.overflow == "infnan":
        raise _wrong(f"overflow of {chip.name} must be infnan, got saturate", "leave saturate out: past 65504 stands infinity on this chip")
    if both := {n for n in precision.lists.white if precision.lists.of(n) == "black"}:
        raise _wrong(
            f"an operator must stand in one list, got {', '.join(sorted(both))} in the white and the black one", "take it off one of them"
        )


def _check_mode(precision: Precision) -> str:
    mode = precision.canonical
    if mode not in MODES:
        hint = nearest(precision.mode, [*MODES, *SYNONYMS]) or f"modes are {', '.join([*MODES, *SYNONYMS])}"
        raise _wrong(f"mode must be one of ATC's or MindSpore's, got {precision.mode!r}", hint)
    return mode


def _wrong(what: str, hint: str = "", node: Node | None = None) -> CompileError:
    return CompileError(f"precision: {what}", loc=node.loc if node is not None else None, hint=hint, code="npu-precision")


# --------------------------------------------------------------------------------------------------------------------------- the pass
def set_precision(graph: Graph, chip: Chip, precision: Precision) -> tuple[Graph, tuple[CastFact, ...]]:
    """The graph in the element types of the mode, and what was cast.   Errors name settings that contradict each other, the chip or the model."""
    check_precision(precision, chip)
    work = _Work(graph, chip, precision)
    result = work.run()
    facts = tuple(work.facts)
    event("precision", mode=precision.mode, casts=sum(not f.constant for f in facts), constants=sum(f.constant for f in facts))
    return result, facts


@dataclass(frozen=True)
class _Wish:
    """In which type a node computes, None for the one it has; back: its result is wide again; why: for the casts."""

    dtype: DType | None
    why: str = ""
    back: bool = False


@dataclass(eq=False)
class _Work:
    """One run of the pass: what each node became and the casts made so far (a class, since casts are shared between their readers)."""

    graph: Graph
    chip: Chip
    precision: Precision
    new: dict[Node, Node] = field(default_factory=dict)
    casts: dict[tuple[Node, DType], Node] = field(default_factory=dict)
    facts: list[CastFact] = field(default_factory=list)

    def run(self) -> Graph:
        params = tuple(self._param(p) for p in self.graph.params)
        for node in self.graph.nodes:
            if node not in self.new:
                self.new[node] = self._successor(node)
        outputs = tuple(self._kept(o, k) for k, o in enumerate(self.graph.outputs))
        return Graph(self.graph.name, params, outputs, self.graph.output_names, self.graph.updates)

    def _param(self, node: Node) -> Node:
        found, name = node, _label(node)
        if "bf16" not in self.chip.dtypes and node.dtype == bf16:
            raise _wrong(
                f"inputs must be of types that {self.chip.name} has, got {node.type} for {name}", "export the model in f16 or f32", node
            )
        if name in self.precision.input_fp16 and node.dtype == f32:
            found = param(name, node.type.with_dtype(f16), node.loc)
        self.new[node] = found
        return found

    def _kept(self, output: Node, k: int) -> Node:
        found = self.new[output]
        if isinstance(output.type, TensorType) and found.dtype != output.dtype:
            names = self.graph.output_names
            return self._cast(found, output.dtype, names[k] if k < len(names) else f"output {k}", "the graph's results keep their type")
        return found

    def _successor(self, node: Node) -> Node:
        inputs = tuple(self.new[i] for i in node.inputs)
        if isinstance(node.op, Param | Constant):
            return node
        if isinstance(node.op, Get):
            return apply(node.op, *inputs, loc=node.loc)
        if isinstance(node.op, Cast):
            return self._cast_of_the_model(node, inputs[0])
        if not any(_is_number(i) for i in inputs):
            return _on(node, inputs)
        if node.op.name in FOLLOWERS and self.precision.canonical not in ALL_NARROW:
            return self._follow(node, inputs)
        wish = self._wish(node, inputs)
        target = wish.dtype or _widest(i.dtype for i in node.inputs if _is_number(i))
        made = self._typed(node, inputs, target, wish.why or "computes in the model's type")
        if wish.back and isinstance(made.type, TensorType) and made.dtype != node.dtype:
            return self._cast(made, node.dtype, _label(node), wish.why)
        return made

    def _typed(self, node: Node, inputs: tuple[Node, ...], target: DType, why: str) -> Node:
        """The node with its numbers in that type; a normalization's statistics and weights keep theirs, as CANN's kernels have them."""
        numbers = [k for k, i in enumerate(inputs) if _is_number(i)]
        data = [k for k in numbers if k in DATA.get(node.op.name, numbers)]
        for chosen in (data, numbers):
            try:
                return _on(node, self._cast_to(node, inputs, {k: target if k in chosen else node.inputs[k].dtype for k in numbers}, why))
            except OpError:  # an operator whose inputs are of several types
                continue
        return _on(node, self._cast_to(node, inputs, {k: node.inputs[k].dtype for k in numbers}, f"{node.op.name} takes these types only"))

    def _cast_to(self, node: Node, inputs: tuple[Node, ...], types: dict[int, DType], why: str) -> tuple[Node, ...]:
        return tuple(self._cast(i, types[k], _label(node), why) if k in types else i for k, i in enumerate(inputs))

    def _follow(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        """What only moves elements takes them as they come; where several come, in the type of the first that was computed."""
        numbers = [i for i in inputs if _is_number(i)]
        first = next((i for i in numbers if i.array is None), numbers[0])
        cast = (self._cast(i, first.dtype, _label(node), "moves what the operator before it gives") if _is_number(i) else i for i in inputs)
        return _on(node, tuple(cast))

    def _cast_of_the_model(self, node: Node, x: Node) -> Node:
        """A cast that the model has: gone where the value is of that type already."""
        assert isinstance(node.op, Cast), "asked for casts only"
        if _is_number(x) and node.op.dtype in (f32, f16, bf16):
            return self._cast(x, node.op.dtype, _label(node), "the model's own cast", fact=False)
        narrow = f16 if self.precision.canonical == FORCE_FP16 else self.precision.narrow
        if node.op.dtype == f32 and self.precision.canonical in ALL_NARROW and (x.dtype.name, narrow.name) in self.pairs:
            return Cast(narrow)(x, loc=node.loc)  # integers become f16 at once: CANN picks the narrow kernel of Cast, too
        return apply(node.op, x, loc=node.loc)

    # ------------------------------------------------------------------------------------------------------------------------ wishes
    def _wish(self, node: Node, inputs: tuple[Node, ...]) -> _Wish:
        """In which type the node is to compute."""
        mode, own = self.precision.canonical, _widest(i.dtype for i in node.inputs if _is_number(i))
        if self._is_kept(node):
            return _Wish(own, "the user keeps its type")
        if node in self._optimiser and mode != FORCE_FP16:
            return _Wish(own, "the optimiser keeps its type")
        product = is_product(node, self.chip)
        match mode:
            case "force_fp16":
                return self._narrowed(node, own, f16, "force_fp16")
            case "must_keep_origin_dtype":
                return self._origin(node, own, product)
            case "force_fp32":
                if product:
                    wish = self._narrowed(node, own, f16, "products take f16 and give f32")
                    return replace(wish, back=wish.dtype == f16)
                return _Wish(f32 if self._takes(node, f32) or own == f32 else own, "force_fp32")
            case "allow_fp32_to_fp16" | "allow_fp32_to_bf16":
                narrow = f16 if mode == TO_FP16 else bf16
                if own in NARROW and self._takes(node, own):
                    return _Wish(own)
                if product or (own == f32 and not self._takes(node, f32)):
                    why = "products in f16" if narrow == f16 else "products in bf16"
                    return self._narrowed(node, own, narrow, why if product else f"its kernel on {self.chip.name} takes no f32")
                return _Wish(f32 if self._takes(node, f32) else own, "vector operators stay in f32")
            case "allow_mix_precision_fp16" | "allow_mix_precision_bf16":
                return self._mixed(node, inputs, own, f16 if mode == MIX_FP16 else bf16)
            case "O1":
                return (
                    replace(self._narrowed(node, own, self.precision.narrow, "O1: white list"), back=True)
                    if node.op.name in O1_WHITE
                    else self._wide(node, own)
                )
            case "O2":
                return (
                    self._wide(node, own, "O2: black list")
                    if self._is_black(node)
                    else self._narrowed(node, own, self.precision.narrow, "O2")
                )
            case _:
                return self._narrowed(node, own, self.precision.narrow, "O3")

    def _is_black(self, node: Node) -> bool:
        """Whether level O2 leaves a node wide."""
        name = meant(node)
        return name in O2_BLACK and (self.precision.keep_batchnorm_fp32 or not name.startswith("batch_norm"))

    def _mixed(self, node: Node, inputs: tuple[Node, ...], own: DType, narrow: DType) -> _Wish:
        found = kernels(node, self.chip)
        listed = self.precision.lists.of(node.op.name, *(k.kind for k in found[:1]))
        if listed == "white":
            return self._narrowed(node, own, narrow, "white list")
        if listed == "black":
            return self._wide(node, own, "black list")
        before = next((i for i in inputs if _is_number(i) and i.array is None), None)
        if before is not None and before.dtype == narrow:
            return self._narrowed(node, own, narrow, "gray list: follows the operator before it")
        return self._wide(node, own, "gray list: follows the operator before it")

    def _origin(self, node: Node, own: DType, product: bool) -> _Wish:
        if own in NARROW and not self._takes(node, own) and self._takes(node, f32):
            return _Wish(f32, f"its kernel on {self.chip.name} takes no {own}")
        if product and own == f32 and not self._takes(node, f32):
            raise _wrong(
                f"{node.op.name} must keep {own}, got a cube that multiplies {', '.join(sorted(self.chip.cube_macs))} only: {self.chip.name}",
                f"use {TO_FP16} (products in f16, the rest in f32) or {FORCE_FP16}, or a chip from 910B on", node,
            )  # fmt: skip
        if own == bf16 and "bf16" not in self.chip.dtypes:
            raise _wrong(
                f"{node.op.name} must keep bf16, got {self.chip.name}, which has none",
                f"use {FORCE_FP16}, or export the model in f16",
                node,
            )
        return _Wish(own)

    def _narrowed(self, node: Node, own: DType, narrow: DType, why: str) -> _Wish:
        """The narrow type where the kernel takes it, else what it has."""
        if own not in (f32, *NARROW):
            return _Wish(own)
        if self._takes(node, narrow):
            return _Wish(narrow, why)
        if self._takes(node, f32):
            return _Wish(f32, f"its kernel on {self.chip.name} takes no {narrow}")
        if own == bf16 and self._takes(node, bf16) and narrow == f16:
            raise _wrong(f"{node.op.name} must take f16, got a kernel of bf16 only", f"use {ORIGIN} or {MIX_BF16}", node)
        return _Wish(own, "has no kernel on the cores")

    def _wide(self, node: Node, own: DType, why: str = "stays in f32") -> _Wish:
        """f32 of what was narrowed on the way; what the model itself has narrow stays."""
        return _Wish(own, why)

    def _takes(self, node: Node, dtype: DType) -> bool:
        """Whether the AI Core takes it; of what CANN has no operator for, whether the chip has the type (it is taken apart later)."""
        found = kernels(node, self.chip)
        if not found:
            return dtype.name in self.chip.dtypes
        return dtype.name in elements(found[0], self.chip)

    def _is_kept(self, node: Node) -> bool:
        if not self.precision.keep:
            return False
        return bool((_kinds(node, self.chip) | {node.loc.name, node_name(node)}) & self.precision.keep)

    @cached_property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """Element types that the AI Core casts into each other."""
        return library.find_casts(library.column(self.chip.family))[0]

    @cached_property
    def _optimiser(self) -> frozenset[Node]:
        """Elementwise operators whose results reach nothing but updated parameters: an optimiser's steps."""
        updated = {self.graph.outputs[o] for o, _ in self.graph.updates}
        read = {o for k, o in enumerate(self.graph.outputs) if k not in {number for number, _ in self.graph.updates}}
        found: set[Node] = set()
        for node in reversed(self.graph.nodes):
            users = self.graph.users[node]
            if isinstance(node.op, Elementwise) and node not in read and (users or node in updated) and all(u in found for u in users):
                found.add(node)
        return frozenset(found)

    # ------------------------------------------------------------------------------------------------------------------------- casts
    def _cast(self, x: Node, dtype: DType, where: str, why: str, *, fact: bool = True) -> Node:
        """x in that type; a cast that is there already is shared, and one that widened x from that very type is undone."""
        if x.dtype == dtype:
            return x
        if isinstance(x.op, Cast) and x.inputs[0].dtype == dtype and dtype in NARROW and x.dtype == f32:
            return x.inputs[0]
        if (x, dtype) in self.casts:
            return self.casts[x, dtype]
        if x.array is not None:
            values, lost = _constant(x.array, dtype, self.chip, self.precision)
            made = apply(Constant(Data(values)), loc=x.loc)
            note = f"; {lost} of its values lie beyond {LARGEST_F16:g}" if lost else ""
            self.facts.append(CastFact(where, x.dtype, dtype, made.type.nbytes, f"a constant of {where}: {why}{note}", constant=True))
        else:
            made = Cast(dtype)(x, loc=x.loc)
            if fact:
                self.facts.append(CastFact(where, x.dtype, dtype, x.type.nbytes + made.type.nbytes, why))
        self.casts[x, dtype] = made
        return made


DATA = {
    "batch_norm": (0,),
    "batch_norm_train": (0,),
    "batch_norm_grad": (0, 4),
}  # inputs that are data; the others are weights and statistics
FOLLOWERS = frozenset(
    {
        "reshape",
        "transpose",
        "broadcast",
        "slice",
        "pad",
        "concat",
        "gather",
        "gather_elements",
        "gather_nd",
        "identity",
        "stop_gradient",
        "after",
    }
)


@dataclass(frozen=True)
class SetPrecision:
    """The pass under a name, for golden files: a chip, and what `parse_precision` reads."""

    soc: str = "310P3"
    precision: str = FORCE_FP16
    name = "set_precision"

    def __call__(self, graph: Graph) -> Graph:
        return set_precision(graph, find_chip(self.soc), parse_precision(self.precision))[0]


def _is_number(node: Node) -> bool:
    """Whether a value is of the types that modes speak of."""
    return isinstance(node.type, TensorType) and node.dtype in (f32, f16, bf16)


def _on(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The operator on other inputs."""
    if all(a is b for a, b in zip(node.inputs, inputs, strict=True)):
        return node
    return apply(node.op, *inputs, loc=node.loc)


def _widest(types: Iterable[DType]) -> DType:
    """f32 where any is; bf16 and f16 together make f32 too."""
    found = set(types)
    return next(iter(found)) if len(found) == 1 else f32


def node_name(node: Node) -> str:
    """The model's own name for a node: importers write its operator behind it, `attention/Exp (Exp)`."""
    name, _, _ = node.loc.name.partition(" (")
    return name


def _label(node: Node) -> str:
    name: Any = getattr(node.op, "label", "")
    return str(name or node.loc.name or node.op.name)


# What was cast before, as long as the values live: advice looks at one model in a dozen variants, and its weights take most of the time.
_CASTS: dict[tuple[int, str, bool], tuple[weakref.ref[Array], tuple[Array, int]]] = {}


def _constant(values: Array, dtype: DType, chip: Chip, precision: Precision) -> tuple[Array, int]:
    """A constant in another type as the chip holds it, and how many of its values lie beyond the range of f16."""
    saturates = chip.overflow == "saturate" or (chip.overflow == "both" and precision.infnan is False)
    key = (id(values), dtype.name, saturates)
    known = _CASTS.get(key)
    if known is not None and known[0]() is values:
        return known[1]
    found = _cast_values(values, dtype, saturates)
    if not values.flags.writeable:
        _CASTS[key] = (weakref.ref(values, lambda _: _CASTS.pop(key, None)), found)
    return found


def _cast_values(values: Array, dtype: DType, saturates: bool) -> tuple[Array, int]:
    lost = 0
    if dtype == f16 and values.size and max(-float(values.min()), float(values.max())) > LARGEST_F16:
        wide = values.astype(np.float32)
        lost = int(np.count_nonzero((np.abs(wide) > LARGEST_F16) & np.isfinite(wide)))
        if saturates:
            values = np.clip(wide, -LARGEST_F16, LARGEST_F16)
    with np.errstate(over="ignore"):
        return values.astype(dtype.numpy), lost
