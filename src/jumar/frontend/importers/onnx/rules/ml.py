"""Operators of ai.onnx.ml that real pipelines carry beside their networks: selection, thresholds and trees, and TfIdfVectorizer's kin.

Trees branch on data, so they run on the host; selection and thresholds are ordinary graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jumar.base import Array
from jumar.frontend.importers.onnx.node import OnnxNode
from jumar.frontend.importers.onnx.rule import rule
from jumar.frontend.importers.onnx.trace import Trace
from jumar.frontend.importers.onnx.value import Value
from jumar.ir import Node
from jumar.operators import Gather, cast, greater, reshape

ML = "ai.onnx.ml"


@rule("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(t: Trace, n: OnnxNode, x: Value, indices: Value) -> Node:
    data, at = t.node(x), t.node(indices)
    if data.rank == 1:
        data = reshape(data, (1, *data.shape))
    return Gather(data.rank - 1)(data, reshape(at, (at.type.size,)))


@rule("Binarizer", domain=ML)
def binarizer(t: Trace, n: OnnxNode, x: Value) -> Node:
    data = t.node(x)
    return cast(greater(data, float(n.attribute("threshold", 0.0))), data.dtype)


COMPARE = (np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal)
MEMBER = 6


@dataclass(frozen=True, eq=False)
class Trees:
    """An ensemble of decision trees, as the attributes of TreeEnsemble give them."""

    roots: Sequence[int]
    features: Sequence[int]
    modes: Sequence[int]
    splits: Sequence[float]
    members: dict[int, set[float]]
    missing: Sequence[int]
    true: Sequence[int]
    true_leaf: Sequence[int]
    false: Sequence[int]
    false_leaf: Sequence[int]
    targets: Sequence[int]
    weights: Array
    count: int
    aggregate: int
    transform: int

    def check(self, n: OnnxNode) -> None:
        """Every index is within its table: a file may say anything."""
        nodes, leaves = len(self.modes), len(self.weights)
        tables = (self.features, self.splits, self.true, self.true_leaf, self.false, self.false_leaf, self.missing)
        fits = all(len(table) == nodes for table in tables) and len(self.targets) == leaves and all(0 <= r < nodes for r in self.roots)
        pairs = [*zip(self.true, self.true_leaf, strict=False), *zip(self.false, self.false_leaf, strict=False)]
        fits = fits and all(0 <= i < (leaves if leaf else nodes) for i, leaf in pairs) and all(0 <= k < self.count for k in self.targets)
        if not fits or not all(0 <= m <= MEMBER for m in self.modes):
            raise n.fault("tables of the trees must have one length and hold indices within them, got others")

    def __call__(self, x: Array) -> Array:
        found = np.zeros((len(x), self.count), x.dtype)
        if self.aggregate > 1:
            found[:] = np.inf if self.aggregate == 2 else -np.inf
        for row, out in zip(x, found, strict=True):
            for root in self.roots:
                leaf = self._leaf(row, root)
                self._gather(out, self.targets[leaf], self.weights[leaf])
        if self.aggregate == 0:
            found /= len(self.roots)
        return self._transformed(found)

    def _leaf(self, row: Array, root: int) -> int:
        at, is_leaf, steps = root, False, 0
        while not is_leaf:
            steps += 1
            if steps > len(self.modes) + 1:
                raise ValueError("trees must have no cycle")
            value = row[self.features[at]]
            if self.modes[at] == MEMBER:
                taken = float(value) in self.members[at]
            else:
                taken = bool(COMPARE[self.modes[at]](value, self.splits[at]))
            taken = taken or (bool(np.isnan(value)) and bool(self.missing[at]))
            at, is_leaf = (self.true[at], bool(self.true_leaf[at])) if taken else (self.false[at], bool(self.false_leaf[at]))
        return at

    def _gather(self, out: Array, target: int, weight: Any) -> None:
        match self.aggregate:
            case 2:
                out[target] = min(out[target], weight)
            case 3:
                out[target] = max(out[target], weight)
            case _:
                out[target] += weight

    def _transformed(self, x: Array) -> Array:
        match self.transform:
            case 1:
                e: Array = np.exp(x - x.max(1, keepdims=True))
                return np.asarray(e / e.sum(1, keepdims=True))
            case 2:
                return np.asarray(1 / (1 + np.exp(-x)))
            case 3:
                e = np.where(x == 0, 0, np.exp(x - x.max(1, keepdims=True)))
                return np.asarray(e / e.sum(1, keepdims=True))
        return x


def _members(values: Array, modes: Sequence[int]) -> dict[int, set[float]]:
    """Sets of the membership nodes, NaN between them."""
    sets: list[set[float]] = [set()]
    for value in values.ravel():
        if np.isnan(value):
            sets.append(set())
        else:
            sets[-1].add(float(value))
    nodes = [i for i, m in enumerate(modes) if m == MEMBER]
    return {node: sets[k] if k < len(sets) else set() for k, node in enumerate(nodes)}


@rule("TreeEnsemble", domain=ML)
def tree_ensemble(t: Trace, n: OnnxNode, x: Value) -> Any:
    modes = [int(m) for m in n.attribute("nodes_modes", np.zeros(0)).ravel()]
    trees = Trees(
        roots=n.attribute("tree_roots", ()), features=n.attribute("nodes_featureids", ()), modes=modes,
        splits=n.attribute("nodes_splits", np.zeros(0)).ravel(), members=_members(n.attribute("membership_values", np.zeros(0)), modes),
        missing=n.attribute("nodes_missing_value_tracks_true", (0,) * len(modes)),
        true=n.attribute("nodes_truenodeids", ()), true_leaf=n.attribute("nodes_trueleafs", ()),
        false=n.attribute("nodes_falsenodeids", ()), false_leaf=n.attribute("nodes_falseleafs", ()),
        targets=n.attribute("leaf_targetids", ()), weights=n.attribute("leaf_weights", np.zeros(0)).ravel(),
        count=int(n.attribute("n_targets", 1)), aggregate=int(n.attribute("aggregate_function", 1)), transform=int(n.attribute("post_transform", 0)),
    )  # fmt: skip
    trees.check(n)
    if trees.transform == 4:
        raise n.fault("post_transform must be none, softmax, logistic or softmax_zero, got probit", code="op-unsupported")
    known = t.known(x)
    return trees(known) if known is not None else t.host(trees, [x])
