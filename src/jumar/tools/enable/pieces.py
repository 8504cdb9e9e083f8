"""The native pieces of a model, as it was compiled for one set of inputs: usually one.

In: a `Model` and arrays.  Out: for each piece its graph as captured, what the compiler made of it, an instance, and the inputs that it ran on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jumar.base import Array, ToolError
from jumar.compiler import Compiled
from jumar.frontend import Model
from jumar.ir import Graph
from jumar.runtime import Instance


@dataclass(frozen=True, eq=False)
class Piece:
    """One native call.   inputs: what the piece received when the model ran on the arrays, also from pieces before it."""

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
    plan = model.compile(dict(arrays), fresh=True, keep_inputs=True)  # programs from the cache have no report
    found, hosts = [], []
    for piece in plan.pieces:
        if piece.host:
            hosts.append(piece.host)
        elif isinstance(piece.compiled, Compiled) and piece.graph is not None:
            assert piece.received is not None, "they were asked for"
            inputs = [np.asarray(a, order="C") for a in piece.received]  # ascontiguousarray would make a number a vector
            found.append(Piece(piece.graph, piece.compiled, piece.compiled.instance(threads=threads), inputs))
        elif piece.compiled is None and piece.program is not None:
            raise ToolError("enable: the model must be compiled afresh, got it from the cache: this is our bug", code="our-bug")
    return Pieces(tuple(found), tuple(dict.fromkeys(hosts)))
