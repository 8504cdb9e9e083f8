"""The graph engine's values: operators as data, nodes, graphs, their text, rules on them, and the interpreter."""

from jumar.ir.graph import (
    NOWHERE,
    Constant,
    Get,
    Graph,
    Node,
    Param,
    apply,
    constant,
    located,
    param,
    rebuild,
    same_node,
    topological,
)
from jumar.ir.interpret import evaluate, interpret
from jumar.ir.op import REGISTRY, Data, Op, Result, Sample, f32t, find_op, sample, tensor
from jumar.ir.rewrite import Rule, rewrite
from jumar.ir.signature import check_inputs
from jumar.ir.text import large_constants, parse_graph, parse_op, print_graph, subgraphs

__all__ = [
    "NOWHERE", "REGISTRY", "Constant", "Data", "Get", "Graph", "Node", "Op", "Param", "Result", "Rule", "Sample",
    "apply", "check_inputs", "constant", "evaluate", "f32t", "find_op", "interpret", "large_constants", "located", "param", "parse_graph", "parse_op",
    "print_graph", "rebuild", "rewrite", "same_node", "sample", "subgraphs", "tensor", "topological",
]  # fmt: skip
