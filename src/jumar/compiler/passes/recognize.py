"""Names for what exporters write out: softmax, norms, GELU, SiLU, hard-swish, attention from their elementwise forms.

In: a canonical graph (see canonicalize).  Out: the same function with operators that have a name, and so a schedule of their own.
Products are matched by their factors, in any order and grouping, so that one rule knows PyTorch's, TensorFlow's and hand-written forms.
The rules for whole attention blocks stand in `recognize_attention.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jumar.base import event
from jumar.compiler.match import either, factors, is_number, like, number, through, with_constant
from jumar.compiler.passes.recognize_attention import ATTENTION
from jumar.compiler.rules import Table, apply_rules, rule
from jumar.ir import Graph, Node, constant
from jumar.operators import (
    Add,
    Cast,
    Clip,
    Div,
    Erf,
    Exp,
    Gelu,
    HardSigmoid,
    HardSwish,
    LayerNorm,
    Log,
    Log1p,
    LogSoftmax,
    Mish,
    Mul,
    Neg,
    Reciprocal,
    ReduceMax,
    ReduceMean,
    ReduceSum,
    RmsNorm,
    Rsqrt,
    Sigmoid,
    Silu,
    Softmax,
    Softplus,
    Sqrt,
    Square,
    Sub,
    Tanh,
)

NAMES: Table = {}
UNSHIFTED: Table = {}  # softmax that takes no maximum off: with its name it does, which is no harm where numbers have room
ROOT_TWO = math.sqrt(0.5)
ROOT_TWO_OVER_PI = math.sqrt(2 / math.pi)


@dataclass(frozen=True)
class Recognize:
    """attention: whether whole attention blocks get their name too (for targets that have a kernel for them).

    unshifted: whether exp x over its sum is softmax, although it takes no maximum off: not for a device that runs what is written, in fp16."""

    attention: bool = True
    unshifted: bool = True
    name = "recognize"

    def __call__(self, graph: Graph) -> Graph:
        result, hits = apply_rules(graph, NAMES)
        if self.unshifted:
            result, more = apply_rules(result, UNSHIFTED)
            hits += more
            if more:  # log softmax, and what else is named by it
                result, more = apply_rules(result, NAMES)
                hits += more
        if self.attention:
            result, more = apply_rules(result, ATTENTION)
            hits += more
        if hits:
            event("recognize", **hits)
        return result


def scaled(node: Node, factor: float) -> Node:
    """node * factor, or the node itself where the factor is 1."""
    return node if abs(factor - 1) < 1e-6 else Mul()(node, like(factor, node), loc=node.loc)


# ---------------------------------------------------------------------------------------------------------- activations
@rule(NAMES, Reciprocal, Div)
def sigmoid(node: Node) -> Node | None:
    """1 / (1 + exp(-x)) -> sigmoid x; y / (1 + exp(-x)) -> y * sigmoid x"""
    top, bottom = (None, node.inputs[0]) if isinstance(node.op, Reciprocal) else node.inputs
    if not isinstance(bottom.op, Add):
        return None
    for e, one in either(bottom):
        match e:
            case Node(op=Exp(), inputs=(inner,)) if number(one) == 1:
                found = Sigmoid()(_negated(inner), loc=node.loc)
                if top is None or number(top) == 1:
                    return found if found.type == node.type else None
                return Mul()(top, found, loc=node.loc)
    return None


def _negated(node: Node) -> Node:
    """-node, without a second minus where there is one."""
    match node:
        case Node(op=Neg(), inputs=(x,)):
            return x
        case Node(op=Mul()):
            for x, c in with_constant(node):
                if (value := number(c)) is not None:
                    return scaled(x, -value)
    return Neg()(node)


@rule(NAMES, Mul)
def gelu_erf(node: Node) -> Node | None:
    """x * 0.5 * (1 + erf(x / sqrt 2)) -> gelu"""
    parts, c = factors(node)
    if len(parts) != 2:
        return None
    for x, gate in (parts, parts[::-1]):
        found = _affine(gate, Erf)
        if found is None:
            continue
        inner, weight, shift = found
        inside, scale = factors(inner)
        if (
            inside == [x]
            and abs(scale - ROOT_TWO) < 1e-3
            and abs(c * weight - 0.5) < 1e-4
            and abs(c * shift - 0.5) < 1e-4
            and x.type == node.type
        ):
            return Gelu()(x, loc=node.loc)
    return None


def _affine(node: Node, op: type) -> tuple[Node, float, float] | None:
    """(x, weight, shift) of  weight * op(x) + shift."""
    if not isinstance(node.op, Add):
        return None
    for value, c in with_constant(node):
        shift = number(c)
        inner, weight = factors(value)
        if shift is not None and len(inner) == 1 and isinstance(inner[0].op, op):
            return inner[0].inputs[0], weight, shift
    return None


@rule(NAMES, Mul)
def gelu_tanh(node: Node) -> Node | None:
    """x * 0.5 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) -> gelu(approximate="tanh")"""
    parts, c = factors(node)
    if len(parts) != 2:
        return None
    for x, gate in (parts, parts[::-1]):
        found = _affine(gate, Tanh)
        if found is None or x.type != node.type:
            continue
        inner, weight, shift = found
        if abs(c * weight - 0.5) < 1e-4 and abs(c * shift - 0.5) < 1e-4 and _is_gelu_cubic(inner, x):
            return Gelu(approximate="tanh")(x, loc=node.loc)
    return None


def _is_gelu_cubic(node: Node, x: Node) -> bool:
    """Whether the node is sqrt(2/pi) * (x + 0.044715 x^3), in whatever grouping."""
    terms = _cubic_terms(node, x)
    return terms is not None and abs(terms[0] - ROOT_TWO_OVER_PI) < 1e-3 and abs(terms[1] - 0.044715 * ROOT_TWO_OVER_PI) < 1e-4


def _cubic_terms(node: Node, x: Node, depth: int = 4) -> tuple[float, float] | None:
    """(a, b) of a x + b x^3.   depth: of sums; without an end there are exponentially many ways through sums that share terms."""
    parts, c = factors(node)
    if all(p is x for p in parts):
        return {1: (c, 0.0), 3: (0.0, c)}.get(len(parts))
    if len(parts) == 1 and isinstance(parts[0].op, Add) and depth:  # c * (a x + b x^3)
        terms = [_cubic_terms(i, x, depth - 1) for i in parts[0].inputs]
        if all(terms):
            return c * sum(t[0] for t in terms if t), c * sum(t[1] for t in terms if t)
        return None
    if len(parts) == 2 and x in parts:  # c * x * (a + b x^2)
        other = parts[0] if parts[1] is x else parts[1]
        if isinstance(other.op, Add):
            for value, constant_ in with_constant(other):
                inner, weight = factors(value)
                shift = number(constant_)
                if shift is not None and len(inner) == 2 and all(p is x for p in inner):
                    return c * shift, c * weight
    return None


@rule(NAMES, Mul)
def silu(node: Node) -> Node | None:
    """x * sigmoid(alpha x) -> silu"""
    parts, c = factors(node)
    if len(parts) != 2:
        return None
    for x, gate in (parts, parts[::-1]):
        if isinstance(gate.op, Sigmoid) and x.type == node.type:
            inside, alpha = factors(gate.inputs[0])
            if len(inside) == 1 and inside[0] is x and alpha > 0:
                return scaled(Silu(alpha=1.0 if alpha == 1 else alpha)(x, loc=node.loc), c)
    return None


@rule(NAMES, Clip, Mul)
def hard_sigmoid(node: Node) -> Node | None:
    """clip(x / 6 + 0.5, 0, 1) -> hard_sigmoid; clip(x + 3, 0, 6) / 6 -> hard_sigmoid"""
    parts, c = ([node], 1.0) if isinstance(node.op, Clip) else factors(node)
    if len(parts) != 1 or not isinstance(parts[0].op, Clip) or c <= 0:
        return None
    clip = parts[0].op
    (inner,) = parts[0].inputs
    if clip.low != 0 or clip.high is None or abs(clip.high * c - 1) > 1e-3 or not isinstance(inner.op, Add):
        return None
    for value, constant_ in with_constant(inner):
        shift = number(constant_)
        inside, weight = factors(value)
        if shift is not None and len(inside) == 1 and inside[0].type == node.type:
            alpha, beta = weight * c, shift * c
            return HardSigmoid(alpha=_snap(alpha), beta=_snap(beta))(inside[0], loc=node.loc)
    return None


def _snap(value: float) -> float:
    """A constant of the literature where the value is one within rounding."""
    return next((v for v in (1 / 6, 0.5, 0.2) if abs(value - v) < 1e-6), value)


@rule(NAMES, Mul)
def hard_swish(node: Node) -> Node | None:
    """x * hard_sigmoid x -> hard_swish; x * clip(x + 3, 0, 6) / 6 -> hard_swish"""
    parts, c = factors(node)
    if len(parts) != 2:
        return None
    for x, gate in (parts, parts[::-1]):
        match gate:
            case Node(op=HardSigmoid(alpha=alpha, beta=beta), inputs=(inner,)) if inner is x:
                fits, factor = abs(alpha - 1 / 6) < 1e-4 and abs(beta - 0.5) < 1e-4, c
            case Node(op=Clip(low=low, high=high), inputs=(Node(op=Add()) as inner,)) if low == 0 and high is not None:
                fits, factor = high == 6 and any(v is x and is_number(three, 3.0) for v, three in with_constant(inner)), c * 6
            case _:
                continue
        if fits and x.type == node.type:
            return scaled(HardSwish()(x, loc=node.loc), factor if abs(factor - 1) > 1e-4 else 1.0)
    return None


@rule(NAMES, Log, Log1p)
def softplus(node: Node) -> Node | None:
    """log(1 + exp x) -> softplus"""
    match node:
        case Node(op=Log1p(), inputs=(Node(op=Exp(), inputs=(x,)),)):
            return Softplus()(x, loc=node.loc)
        case Node(op=Log(), inputs=(Node(op=Add()) as total,)):
            for e, one in either(total):
                if isinstance(e.op, Exp) and number(one) == 1 and e.type == node.type:
                    return Softplus()(e.inputs[0], loc=node.loc)
    return None


@rule(NAMES, Mul)
def mish(node: Node) -> Node | None:
    """x * tanh(softplus x) -> mish"""
    for x, gate in either(node):
        match gate:
            case Node(op=Tanh(), inputs=(Node(op=Softplus(), inputs=(inner,)),)) if inner is x:
                return Mish()(x, loc=node.loc)
    return None


# -------------------------------------------------------------------------------------------------------------- softmax
@rule(NAMES, Div, Mul)
def softmax(node: Node) -> Node | None:
    """exp(x - max x) / sum -> softmax, as a quotient or a product"""
    return _softmax(node, shifted=True)


@rule(UNSHIFTED, Div, Mul)
def softmax_unshifted(node: Node) -> Node | None:
    """exp(x) / sum -> softmax, as a quotient or a product"""
    return _softmax(node, shifted=False)


def _softmax(node: Node, *, shifted: bool) -> Node | None:
    if isinstance(node.op, Div):
        pairs = [node.inputs]
    else:
        pairs = [(e, r.inputs[0]) for e, r in either(node) if isinstance(r.op, Reciprocal)]
    for pair in pairs:
        e, total = pair
        match e, total:
            case Node(op=Exp(), inputs=(inner,)), Node(op=ReduceSum() as reduction, inputs=(summed,)) if summed is e:
                axes = reduction.over(e.rank)
                if len(axes) == 1 and reduction.keepdims:
                    x = _without_maximum(inner, axes)
                    if (x is not inner) == shifted:
                        return Softmax(axes[0])(x, loc=node.loc)
    return None


def _without_maximum(node: Node, axes: tuple[int, ...]) -> Node:
    """x of  x - max x  (softmax subtracts it itself)."""
    match node:
        case Node(op=Sub(), inputs=(x, Node(op=ReduceMax() as reduction, inputs=(y,)))) if x is y:
            if reduction.keepdims and reduction.over(x.rank) == axes:
                return x
    return node


@rule(NAMES, Log)
def log_of_softmax(node: Node) -> Node | None:
    """log(softmax x) -> log_softmax x"""
    match node.inputs[0]:
        case Node(op=Softmax(axis=axis), inputs=(x,)):
            return LogSoftmax(axis)(x, loc=node.loc)
    return None


@rule(NAMES, Sub)
def log_softmax(node: Node) -> Node | None:
    """(x - max x) - log(sum(exp(x - max x))) -> log_softmax"""
    match node.inputs:
        case (shifted, Node(op=Log(), inputs=(Node(op=ReduceSum() as reduction, inputs=(Node(op=Exp(), inputs=(y,)),)),))) if shifted is y:
            axes = reduction.over(y.rank)
            if len(axes) == 1 and reduction.keepdims:
                return LogSoftmax(axes[0])(_without_maximum(shifted, axes), loc=node.loc)
    return None


# ---------------------------------------------------------------------------------------------------------------- norms
@dataclass(frozen=True)
class _Moment:
    """What a denominator says: 1 / sqrt(mean(y^2) + epsilon)."""

    of: Node
    axes: tuple[int, ...]
    epsilon: float


def _inverse_root(node: Node) -> Node | None:
    """y of 1 / sqrt y."""
    match node:
        case Node(op=Rsqrt(), inputs=(y,)) | Node(op=Reciprocal(), inputs=(Node(op=Sqrt(), inputs=(y,)),)):
            return y
        case Node(op=Div(), inputs=(one, Node(op=Sqrt(), inputs=(y,)))) if number(one) == 1:
            return y
    return None


def _moment(y: Node) -> _Moment | None:
    """mean(square v) + epsilon, or max(mean(square v), epsilon)."""
    if not isinstance(y.op, Add):
        return None
    for mean, c in with_constant(y):
        epsilon = number(c)
        match mean:
            case Node(op=ReduceMean() as reduction, inputs=(Node(op=Square(), inputs=(v,)),)) if epsilon is not None and reduction.keepdims:
                axes = reduction.over(v.rank)
                if axes == tuple(range(axes[0], v.rank)):
                    return _Moment(v, axes, float(np.float32(epsilon)))
    return None


def _normalized(node: Node) -> tuple[Node, _Moment] | None:
    """(v, moment) of  v / sqrt(mean(square u) + epsilon)."""
    if isinstance(node.op, Div):
        v, root = node.inputs
        if isinstance(root.op, Sqrt) and (moment := _moment(root.inputs[0])):
            return v, moment
    elif isinstance(node.op, Mul):
        for v, inverse in either(node):
            y = _inverse_root(inverse)
            if y is not None and (moment := _moment(y)):
                return v, moment
    return None


def _ones(x: Node, axes: tuple[int, ...]) -> Node:
    return constant(np.ones([x.shape[a] for a in axes]), x.dtype)


@rule(NAMES, Div, Mul)
def layer_norm(node: Node) -> Node | None:
    """(x - mean x) / sqrt(mean(square(x - mean x)) + epsilon) -> layer_norm"""
    found = _normalized(node)
    if found is None:
        return None
    v, moment = found
    if v is not moment.of:
        return None
    match v:
        case Node(op=Sub(), inputs=(x, Node(op=ReduceMean() as reduction, inputs=(y,)))) if x is y and reduction.keepdims:
            if reduction.over(x.rank) == moment.axes:
                return LayerNorm(moment.axes[0], moment.epsilon)(x, _ones(x, moment.axes), loc=node.loc)
    return None


@rule(NAMES, Add)
def layer_norm_of_keras(node: Node) -> Node | None:
    """x * m + (bias - mean x * m), m = rsqrt(variance + epsilon) * scale -> layer_norm (TensorFlow's batch_normalization form)"""
    for product, rest in either(node):
        match rest:
            case Node(op=Sub(), inputs=(bias, Node(op=Mul()) as shift)) if bias.array is not None and isinstance(product.op, Mul):
                pass
            case _:
                continue
        for x, m in either(product):
            for mean, m2 in either(shift):
                if m is not m2 or not isinstance(mean.op, ReduceMean) or mean.inputs[0] is not x or not isinstance(m.op, Mul):
                    continue
                for inverse, scale in either(m):
                    y = _inverse_root(inverse)
                    moment = _moment(y) if y is not None else None
                    centered = moment is not None and isinstance(moment.of.op, Sub) and moment.of.inputs == (x, mean)
                    if moment is not None and centered and _is_affine(scale, x, moment.axes) and _is_affine(bias, x, moment.axes):
                        return LayerNorm(moment.axes[0], moment.epsilon)(
                            x, _as_affine(scale, x, moment.axes), _as_affine(bias, x, moment.axes), loc=node.loc
                        )
    return None


def _is_affine(node: Node, x: Node, axes: tuple[int, ...]) -> bool:
    """Whether the node has one number for each normalized element (leading dimensions of 1 allowed)."""
    normed = tuple(x.shape[a] for a in axes)
    return node.dtype == x.dtype and node.type.size == math.prod(normed) and node.rank <= x.rank and node.shape[-len(normed) :] == normed


def _as_affine(node: Node, x: Node, axes: tuple[int, ...]) -> Node:
    from_shape = tuple(x.shape[a] for a in axes)
    if node.shape == from_shape:
        return node
    assert node.array is not None, "scale and bias are constants"
    return constant(node.array.reshape(from_shape), loc=node.loc)


@rule(NAMES, Mul)
def layer_norm_scale(node: Node) -> Node | None:
    """layer_norm(x, ones) * scale -> layer_norm(x, scale)"""
    for normed, scale in with_constant(node):
        match normed:
            case Node(op=LayerNorm() as op, inputs=(x, ones)):
                axes = tuple(range(op.axis % x.rank, x.rank))
                if _is_affine(scale, x, axes) and ones.array is not None and bool((ones.array == 1).all()):
                    return op(x, _as_affine(scale, x, axes), loc=node.loc)
            case Node(op=RmsNorm() as op, inputs=(x, ones)):
                axes = tuple(range(op.axis % x.rank, x.rank))
                if _is_affine(scale, x, axes) and ones.array is not None and bool((ones.array == 1).all()):
                    return op(x, _as_affine(scale, x, axes), loc=node.loc)
    return None


@rule(NAMES, Add)
def layer_norm_bias(node: Node) -> Node | None:
    """layer_norm(x, scale) + bias -> layer_norm(x, scale, bias)"""
    for normed, bias in with_constant(node):
        match normed:
            case Node(op=LayerNorm() as op, inputs=(x, scale)):
                axes = tuple(range(op.axis % x.rank, x.rank))
                if _is_affine(bias, x, axes):
                    return op(x, scale, _as_affine(bias, x, axes), loc=node.loc)
    return None


@rule(NAMES, Div, Mul)
def rms_norm(node: Node) -> Node | None:
    """x / sqrt(mean(square x) + epsilon) -> rms_norm"""
    found = _normalized(node)
    if found is None:
        return None
    v, moment = found
    centered = isinstance(v.op, Sub) and any(isinstance(i.op, ReduceMean) for i in v.inputs)  # a layer norm, seen by the rule above
    if v is not moment.of or centered:
        return None
    return RmsNorm(moment.axes[0], moment.epsilon)(v, _ones(v, moment.axes), loc=node.loc)


@rule(NAMES, Cast)
def norm_of_widened(node: Node) -> Node | None:
    """cast to f16 (norm (cast x to f32)) -> norm x: norms widen by themselves"""
    (inner,) = node.inputs
    match inner:
        case Node(op=Softmax() | LogSoftmax() as op, inputs=(Node(op=Cast(), inputs=(x,)),)) if x.dtype == node.dtype:
            return op(x, loc=node.loc)
        case Node(op=LayerNorm() | RmsNorm() as op, inputs=(Node(op=Cast(), inputs=(x,)), *affine)) if x.dtype == node.dtype:
            if all(a.array is not None for a in affine):
                narrow = [constant(through(a).array, x.dtype) for a in affine]
                return op(x, *narrow, loc=node.loc)
    return None
