"""The native pieces of a model, as it was compiled for one set of inputs: usually one.

In: a `Model` and arrays.  Out: for each piece its graph as captured, what the compiler made of it, an instance, and inputs to try it on.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jumar.base import Array, TensorType, ToolError, type_of
from jumar.compiler import Compiled
from jumar.frontend import Model
from jumar.ir import Graph, Param
from jumar.runtime import Instance


@dataclass(frozen=True, eq=False)
class Piece:
    """One native call.   inputs: the model's own where the piece reads them, made up where it reads what another piece computed."""

    graph: Graph
    compiled: Compiled
    instance: Instance
    inputs: Sequence[Array]


@dataclass(frozen=True)
class Pieces:
    """hosts: what runs in Python between pieces."""

    pieces: tuple[Piece, ...]
    hosts: tuple[str, ...]


def compile_pieces(model: Model, arrays: Mapping[str, Array], *, threads: int) -> Pieces:
    """Compiles the model for these inputs (and runs it on them, where values decide how to go on)."""
    plan = model.compile(dict(arrays), fresh=True)  # programs from the cache have no report
    found, hosts = [], []
    for piece in plan.pieces:
        if piece.host:
            hosts.append(piece.host)
        elif isinstance(piece.compiled, Compiled) and piece.graph is not None:
            inputs = [_input(p.op.label if isinstance(p.op, Param) else "", p.type, arrays) for p in piece.graph.params]
            found.append(Piece(piece.graph, piece.compiled, piece.compiled.instance(threads=threads), inputs))
        elif piece.compiled is None and piece.program is not None:
            raise ToolError("enable: the model must be compiled afresh, got it from the cache: this is our bug", code="our-bug")
    return Pieces(tuple(found), tuple(dict.fromkeys(hosts)))


def _input(label: str, type_: TensorType, arrays: Mapping[str, Array]) -> Array:
    if label in arrays and type_of(arrays[label]) == type_:
        return np.ascontiguousarray(arrays[label])
    rng = np.random.default_rng(zlib.crc32(label.encode()))
    if type_.dtype.is_float:
        return np.asarray(rng.standard_normal(type_.dims)).astype(type_.dtype.numpy)
    return np.asarray(rng.integers(0, 2, type_.dims)).astype(type_.dtype.numpy)
