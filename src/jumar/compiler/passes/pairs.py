"""Reshapes with the transposes before or after them, as attention cuts rows into heads: one kernel on the device, or none.

In: a graph, a chip's family and the switches.  Out: `Pair` by each of its two nodes: by which rule CANN joins them in fractals, or why it does not.
Comes before: format_options.py, which asks whether a pair takes fractals.  After: fuse_npu.py, tasks.py.

In fractals the rows of a head lie together already: [b, s, n*d] is stored as [b, n*d/16, s/16, 16, 16], and its heads [b, n, s, d] as
[b, n, d/16, s/16, 16, 16], the same bytes.  A 310P leaves such a pair out; the others run a ConfusionTransposeD, for a few shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jumar.base import f16
from jumar.compiler.passes.switches import Switches, rule_names
from jumar.device.npu import BLOCK_ROWS, channel_block
from jumar.ir import Graph, Node
from jumar.operators import MatMul, Reshape, Transpose

LEFT_OUT = "TransdataTransposeTransdataBatchMatMulv2FusionPass"
RESHAPE_FIRST, TRANSPOSE_FIRST, FLATTENS = "ReshapeTransposeFusionPass", "TransposeReshapeFusionPass", "BatchMatMulV2ReshapeFusionPass"
HEADS, HEADS_TURNED = (0, 2, 1, 3), (0, 2, 3, 1)
Asks = Callable[[Node], bool]


@dataclass(frozen=True, eq=False)
class Pair:
    """A reshape and a transpose.   first, last: in order; rule: by which they are joined in fractals; why, avoid: where they are not.

    turned: the transpose also exchanges the last two dimensions, which the matrix products that read it do for nothing.
    """

    first: Node
    last: Node
    rule: str = ""
    why: str = ""
    avoid: str = ""
    turned: bool = False

    @property
    def left_out(self) -> bool:
        """Whether it launches nothing in fractals."""
        return self.rule == LEFT_OUT


def find_pairs(graph: Graph, family: str, switches: Switches, launches: Asks, on_cube: Asks) -> dict[Node, Pair]:
    """The pairs of a graph, by either node."""
    found: dict[Node, Pair] = {}
    allowed = {rule: _on(rule, family, switches) for rule in (LEFT_OUT, RESHAPE_FIRST, TRANSPOSE_FIRST, FLATTENS)}
    for node in graph.nodes:
        (x,) = node.inputs if len(node.inputs) == 1 else (None,)
        if allowed[LEFT_OUT] and x is not None and isinstance(node.op, Reshape) and _cuts_one_row(x, node):
            found[node] = Pair(node, node, LEFT_OUT)
        if x is None or x in found or len(graph.users[x]) != 1 or x in graph.outputs:
            continue
        match x.op, node.op:
            case Reshape(), Transpose() if launches(node):
                readers = graph.users[node]
                products = bool(readers) and node not in graph.outputs and all(isinstance(u.op, MatMul) and on_cube(u) for u in readers)
                found[x] = found[node] = _pair(x, node, x.shape, node.op.perm, products, family, allowed)
            case Transpose(), Reshape() if launches(x):
                found[x] = found[node] = _pair(x, node, x.shape, x.op.perm, False, family, allowed)
    return found


def _cuts_one_row(x: Node, node: Node) -> bool:
    """Whether a reshape cuts heads from one row of each batch, or puts them together: a transpose with it would move nothing."""
    row, heads = sorted((x.shape, node.shape), key=len)
    return (
        x.dtype is f16
        and (len(row), len(heads)) == (3, 4)
        and (row[0], row[1], heads[2]) == (heads[0], 1, 1)
        and heads[3] % channel_block(x.dtype) == 0
    )


def _on(rule: str, family: str, switches: Switches) -> bool:
    return rule_names()[rule].on(family) and switches.enabled(rule)


def _pair(
    first: Node, last: Node, parts: Sequence[int], perm: Sequence[int], products: bool, family: str, allowed: dict[str, bool]
) -> Pair:
    """The pair with the rule that joins it.   parts: the shape between the two."""
    turned = products and tuple(perm) == HEADS_TURNED
    if len(parts) != 4 or (tuple(perm) != HEADS and not turned):
        return Pair(
            first,
            last,
            why=f"transpose {list(perm)} of [{_dims(parts)}] is none of heads, perm [0, 2, 1, 3], which alone is done in fractals",
        )
    x = first.inputs[0]
    flat = x.shape if isinstance(first.op, Reshape) else last.shape
    b, s, n, d = parts  # the transpose stands behind the reshape or before it: heads are cut from rows, or put together to rows
    block = channel_block(x.dtype)
    if allowed[LEFT_OUT] and x.dtype is f16 and flat in ((b, s, n * d), (s, n * d)) and (len(flat) == 3 or b == 1) and d % block == 0:
        return Pair(first, last, LEFT_OUT, turned=turned)
    own = RESHAPE_FIRST if isinstance(first.op, Reshape) else TRANSPOSE_FIRST
    if not allowed[own]:
        return Pair(first, last, why=f"{own} is switched off")
    by_rows = flat == (b * s, n * d) or (flat == (b, s, n * d) and (b == 1 or (allowed[FLATTENS] and family != "310p")))
    if not by_rows and flat != (b, s * n, d):
        return Pair(
            first,
            last,
            why=f"a kernel for [{_dims(flat)}] as [{_dims(parts)}] in fractals is missing",
            avoid=f"cut heads of [{b * s}, {n * d}]",
        )
    heads = (b, n, s, d)
    unfit = [shape for shape in (flat, heads) if not on_edges(shape, block)]
    if unfit:
        what = f"a reshape and a transpose in fractals need both last dimensions to be multiples of {BLOCK_ROWS}, got {list(unfit[0])}"
        return Pair(first, last, why=what, avoid=pad_to(unfit[0]))
    return Pair(first, last, own, turned=turned)


# ------------------------------------------------------------------------------------------------------------------------ small print
def swaps(perm: Sequence[int]) -> bool:
    """Whether a transpose exchanges the last two dimensions and nothing else."""
    rank = len(perm)
    return rank >= 2 and tuple(perm) == (*range(rank - 2), rank - 1, rank - 2)


def on_edges(shape: Sequence[int], block: int = BLOCK_ROWS) -> bool:
    """Whether matrices of a shape fill their blocks."""
    return len(shape) >= 2 and shape[-1] % block == 0 and shape[-2] % BLOCK_ROWS == 0


def up(size: int, unit: int = BLOCK_ROWS) -> int:
    """The next multiple."""
    return -(-size // unit) * unit


def pad_to(shape: Sequence[int]) -> str:
    """What to pad, in the user's numbers."""
    wanted = dict.fromkeys(f"{d} -> {up(d)}" for d in shape[-2:] if d % BLOCK_ROWS)
    return f"pad to multiples of {BLOCK_ROWS}: {', '.join(wanted)}" if wanted else ""


def _dims(shape: Sequence[int]) -> str:
    return ", ".join(map(str, shape))
