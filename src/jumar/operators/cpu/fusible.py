"""What may be one kernel on the CPU: the answers to the questions that the fuse and decompose passes ask (operators/fusible.py).

In: the body of a group that is thought of, or a node.  Out: an answer in words: nothing where a schedule takes it, else why not.
"""

from __future__ import annotations

from jumar.ir import Graph, Node
from jumar.operators.cpu.contraction import fits
from jumar.operators.cpu.region import region_of
from jumar.operators.cpu.root import from_memory
from jumar.operators.cpu.rows import sweeps_twice
from jumar.operators.fusible import FUSION, Fusion, is_root


def refusal(body: Graph) -> str:
    """Why no schedule takes the body as one kernel; empty where one does."""
    roots = [n for n in body.nodes if is_root(n.op)]
    match roots:
        case [root] if not all(from_memory(root, i) for i in root.inputs):
            return "a contraction reads its inputs from memory"
        case [root]:
            return "" if fits(root, body.outputs) else "operands do not follow the contraction's rows and columns"
        case []:
            region = region_of(body.outputs)
            if region is None:
                return "not one loop nest"
            return "sums down long columns are a sweep of their own" if sweeps_twice(region) else ""
    return "two contractions"


def is_one_nest(node: Node) -> bool:
    """Whether the node by itself is one loop nest."""
    return not isinstance(node.type, tuple) and region_of([node], node.inputs) is not None


FUSION["cpu"] = Fusion(refusal, is_one_nest)
