"""Scalers, linear models and forests of ai.onnx.ml.

Scaling and linear models are ordinary graph.  Forests branch on data: they run on the host, all rows and trees a level at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jumar.base import Array, f32, i64
from jumar.frontend.importers.onnx.node import OnnxNode
from jumar.frontend.importers.onnx.rule import rule
from jumar.frontend.importers.onnx.rules.ml import ML
from jumar.frontend.importers.onnx.trace import Trace
from jumar.frontend.importers.onnx.value import Tensor, Value
from jumar.ir import Node, constant
from jumar.operators import (  # fmt: skip
    Abs,
    ArgMax,
    Gather,
    IsNan,
    ReduceMax,
    ReduceSum,
    Sigmoid,
    Softmax,
    add,
    broadcast_to,
    cast,
    concat,
    div,
    equal,
    matmul,
    mul,
    reshape,
    select,
    sqrt,
    square,
    sub,
)


@rule("Scaler", domain=ML)
def scaler(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    offset, scale = (constant(np.array(n.attribute(name, (default,))), f32) for name, default in (("offset", 0.0), ("scale", 1.0)))
    return mul(sub(cast(t.node(x), f32), offset), scale)


@rule("Normalizer", domain=ML)
def normalizer(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    node, axes = cast(t.node(x), f32), (x.rank - 1,)
    match n.attribute("norm", "MAX"):
        case "MAX":
            size = ReduceMax(axes, keepdims=True)(node)
        case "L1":
            size = ReduceSum(axes, keepdims=True)(Abs()(node))
        case "L2":
            size = sqrt(ReduceSum(axes, keepdims=True)(square(node)))
        case other:
            raise n.fault(f"norm must be MAX, L1 or L2, got {other!r}")
    return div(node, select(equal(size, 0), 1, size))


@rule("Imputer", domain=ML)
def imputer(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    node = t.node(x)
    kind = "float" if x.dtype.is_float else "int64"
    wrong, right = n.attribute(f"replaced_value_{kind}", 0), constant(np.array(n.attribute(f"imputed_value_{kind}s", (0,))), x.dtype)
    return select(IsNan()(node) if wrong != wrong else equal(node, wrong), right, node)  # noqa: PLR0124  (only NaN differs from itself)


@rule("FeatureVectorizer", domain=ML)
def feature_vectorizer(t: Trace, n: OnnxNode, *inputs: Tensor) -> Node:
    parts = [cast(t.node(x), f32) for x in inputs]
    return concat([p if p.rank == 2 else reshape(p, (1, p.type.size)) for p in parts], 1)


@rule("LinearRegressor", domain=ML)
def linear_regressor(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    return _score(n, _linear(t, n, x, n.attribute("targets", 1)))


def _linear(t: Trace, n: OnnxNode, x: Tensor, count: int) -> Node:
    """x w + b, with one row of coefficients for each target."""
    node = cast(t.node(x), f32)
    node = node if node.rank == 2 else reshape(node, (1, node.type.size))
    weights = np.array(n.attribute("coefficients"), np.float32).reshape(count, -1)
    y = matmul(node, constant(np.ascontiguousarray(weights.T)))
    bias = n.attribute("intercepts", None)
    return y if not bias else add(y, constant(np.array(bias), f32))


def _score(n: OnnxNode, y: Node) -> Node:
    match n.attribute("post_transform", "NONE"):
        case "NONE":
            return y
        case "SOFTMAX":
            return Softmax(-1)(y)
        case "LOGISTIC":
            return Sigmoid()(y)
    raise n.fault(f"post_transform must be NONE, SOFTMAX or LOGISTIC, got {n.attribute('post_transform')!r}", code="op-unsupported")


@rule("LinearClassifier", domain=ML)
def linear_classifier(t: Trace, n: OnnxNode, x: Tensor) -> tuple[Node, Node]:
    labels = n.attribute("classlabels_ints", None)
    count = len(n.attribute("intercepts", ()) or ()) or len(labels or ())
    if not labels or count < 2 or count != len(labels):
        raise n.fault("classes must be at least two whole numbers with a row of coefficients each, got others", code="op-unsupported")
    y = _linear(t, n, x, count)
    best = ArgMax(1)(y)
    return Gather(0)(constant(np.array(labels), i64), best), _score(n, y)


@rule("OneHotEncoder", domain=ML)
def one_hot_encoder(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    categories = n.attribute("cats_int64s", None)
    if not categories:
        raise n.fault("categories must be whole numbers, got texts", code="op-unsupported")
    node = reshape(cast(t.node(x), i64), (*x.shape, 1))
    return cast(equal(broadcast_to(node, (*x.shape, len(categories))), constant(np.array(categories), i64)), f32)


COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "BRANCH_LEQ": np.less_equal,
    "BRANCH_LT": np.less,
    "BRANCH_GTE": np.greater_equal,
    "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal,
    "BRANCH_NEQ": np.not_equal,
}


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees as tables over all their nodes.   votes: for each leaf, what it adds to each target; leaves lead to themselves."""

    roots: Array
    features: Array
    modes: Array
    values: Array
    missing: Array
    true: Array
    false: Array
    votes: dict[int, Array]
    base: Array
    aggregate: str

    def __call__(self, x: Array) -> Array:
        """Scores.   x: [n, features] -> f32 [n, targets]"""
        at = np.broadcast_to(self.roots, (len(x), len(self.roots))).copy()
        for _ in range(len(self.modes)):  # no path is longer than there are nodes
            inner = self.modes[at] != "LEAF"
            if not inner.any():
                break
            value, split = np.take_along_axis(x, self.features[at], axis=1), self.values[at]
            taken = np.isnan(value) & self.missing[at]
            for name, compare in COMPARE.items():
                taken |= (self.modes[at] == name) & compare(value, split)
            at = np.where(inner, np.where(taken, self.true[at], self.false[at]), at)
        leaves = np.unique(at)
        table = np.array([self.votes.get(int(leaf), np.zeros(len(self.base))) for leaf in leaves], np.float32).reshape(len(leaves), -1)
        each = table[np.searchsorted(leaves, at)]
        gather: dict[str, Any] = {"SUM": np.sum, "AVERAGE": np.mean, "MIN": np.min, "MAX": np.max}
        return np.asarray(gather[self.aggregate](each, axis=1) + self.base, np.float32)


def forest(n: OnnxNode, kind: str, count: int) -> Forest:
    """The tables of a node.   kind: target or class, the name of what leaves vote for."""

    def table(name: str, default: Sequence[float] = ()) -> Array:
        tensor = n.attribute(f"{name}_as_tensor", None)
        return np.asarray(n.attribute(name, default) if tensor is None else tensor)

    keys = list(zip(n.attribute("nodes_treeids", ()), n.attribute("nodes_nodeids", ()), strict=True))
    place = {key: i for i, key in enumerate(keys)}
    modes = np.array(n.attribute("nodes_modes", ()))
    children = [np.arange(len(keys)) for _ in range(2)]
    for side, name in zip(children, ("nodes_truenodeids", "nodes_falsenodeids"), strict=True):
        for i, child in enumerate(n.attribute(name, ())):
            if modes[i] != "LEAF":
                if (keys[i][0], child) not in place:
                    raise n.fault(f"child {child} must be a node of tree {keys[i][0]}, got none")
                side[i] = place[keys[i][0], child]
    votes: dict[int, Array] = {}
    weights = table(f"{kind}_weights")
    for tree, node, target, weight in zip(*(n.attribute(f"{kind}_{a}", ()) for a in ("treeids", "nodeids", "ids")), weights, strict=True):
        if (tree, node) not in place or not 0 <= target < count:
            raise n.fault(f"a vote must be of a node for one of {count} targets, got node {node} of tree {tree} and {target}")
        votes.setdefault(place[tree, node], np.zeros(count, np.float32))[target] += weight
    inner = np.unique(np.concatenate([c[modes != "LEAF"] for c in children])) if keys else np.zeros(0, np.int64)
    roots = np.setdiff1d(np.arange(len(keys)), inner)
    missing = np.array(n.attribute("nodes_missing_value_tracks_true", None) or (0,) * len(keys), np.bool_)
    base = table("base_values", (0.0,) * count)
    features, values = np.array(n.attribute("nodes_featureids", ()), np.int64), table("nodes_values")
    if not len(features) == len(values) == len(modes) == len(missing) == len(keys) or len(base) not in (1, count) or not len(roots):
        raise n.fault("tables of the trees must have one length, got others")
    aggregate = n.attribute("aggregate_function", "SUM")
    if aggregate not in ("SUM", "AVERAGE", "MIN", "MAX"):
        raise n.fault(f"aggregate_function must be SUM, AVERAGE, MIN or MAX, got {aggregate!r}")
    wide = np.broadcast_to(base, (count,)).astype(np.float32)
    return Forest(roots, np.where(modes == "LEAF", 0, features), modes, values, missing, children[0], children[1], votes, wide, aggregate)


def _on_host(t: Trace, function: Callable[[Array], Any], x: Tensor) -> Any:
    known = t.known(x)
    return function(known) if known is not None else t.host(function, [x])


@rule("TreeEnsembleRegressor", domain=ML)
def tree_ensemble_regressor(t: Trace, n: OnnxNode, x: Tensor) -> Node:
    scores: Value = _on_host(t, forest(n, "target", n.attribute("n_targets", 1)), x)
    return _score(n, t.node(scores))


@rule("TreeEnsembleClassifier", domain=ML)
def tree_ensemble_classifier(t: Trace, n: OnnxNode, x: Tensor) -> tuple[Node, Node]:
    labels = n.attribute("classlabels_int64s", None)
    if not labels:
        raise n.fault("classes must be whole numbers, got texts", code="op-unsupported")
    scores = t.node(_on_host(t, forest(n, "class", len(labels)), x))
    names = constant(np.array(labels), i64)
    voted = set(n.attribute("class_ids", ()))
    if len(labels) != 2 or len(voted) != 1:
        return Gather(0)(names, ArgMax(1)(scores)), _score(n, scores)
    # two classes and votes for one of them: the other one's score is what is missing to 1, or the opposite
    one = ReduceSum((1,), keepdims=True)(scores)
    positive = all(w >= 0 for w in (n.attribute("class_weights", None) or n.attribute("class_weights_as_tensor", ())))
    both = concat([sub(1, one) if positive else mul(one, -1), one], 1)
    return Gather(0)(names, ArgMax(1)(both)), _score(n, both) if not positive else both
