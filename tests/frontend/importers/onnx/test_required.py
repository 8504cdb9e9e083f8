"""What the standard says must be there is asked for when a model is loaded: inputs and attributes, for every operator that we know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import jumar
from jumar.base import ImportFault
from jumar.frontend.importers.onnx.rule import RULES, load_rules

load_rules()
SCHEMAS = {s.name: s for s in onnx.defs.get_all_schemas() if s.domain == "" and not s.deprecated and ("", s.name) in RULES}
KINDS: dict[str, Any] = {
    "FLOAT": 1.0, "INT": 1, "STRING": "x", "FLOATS": [1.0], "INTS": [1], "STRINGS": ["x"], "GRAPH": helper.make_graph([], "inner", [], []),
    "TENSOR": helper.make_tensor("t", TensorProto.FLOAT, [1], [0.0]), "TYPE_PROTO": helper.make_tensor_type_proto(1, [1]),
}  # fmt: skip


def loaded(schema: Any, inputs: list[str], attributes: dict[str, Any], opset: int | None = None) -> None:
    """Loads a model of one node."""
    names = [f"y{i}" for i in range(max(1, schema.min_output))]
    node = helper.make_node(schema.name, inputs, names, "the_node", domain=schema.domain, **attributes)
    given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3]) for n in dict.fromkeys(inputs) if n]
    graph = helper.make_graph([node], "g", given, [helper.make_tensor_value_info(names[0], TensorProto.FLOAT, None)])
    jumar.load(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset or schema.since_version)]))


def whole(schema: Any) -> tuple[list[str], dict[str, Any]]:
    """All inputs and attributes that must be there."""
    required = {k: KINDS[a.type.name] for k, a in schema.attributes.items() if a.required}
    return [f"x{i}" for i in range(schema.min_input)], required


def without() -> Iterator[Any]:
    """Every operator without each one of those."""
    for name, schema in SCHEMAS.items():
        inputs, attributes = whole(schema)
        for a in attributes:
            rest = {k: v for k, v in attributes.items() if k != a}
            yield pytest.param(schema, inputs, rest, f"attribute {a} must be given", id=f"{name}-without-{a}")
        for i in range(len(inputs)):
            what = schema.inputs[min(i, len(schema.inputs) - 1)].name
            yield pytest.param(schema, inputs[:i], attributes, f"input {what} ", id=f"{name}-with-{i}-inputs")
        if schema.max_input < 100:
            more = [f"x{i}" for i in range(schema.max_input + 1)]
            yield pytest.param(schema, more, attributes, f"at most {schema.max_input} inputs", id=f"{name}-with-{len(more)}-inputs")


@pytest.mark.parametrize("schema, inputs, attributes, message", list(without()))
def test_a_node_without_what_it_needs_is_refused(schema: Any, inputs: list[str], attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(ImportFault) as caught:
        loaded(schema, inputs, attributes)
    assert caught.value.code == "node-invalid"
    assert caught.value.what.startswith(f"{schema.name}: ") and message in caught.value.what
    assert "the_node" in str(caught.value.loc)


def test_an_input_left_empty_is_refused_like_one_left_out() -> None:
    for name, empty in (("MatMul", ["x", ""]), ("MatMul", ["", "x"]), ("Gather", ["x", ""]), ("Where", ["c", "", "y"])):
        with pytest.raises(ImportFault, match=f"{name}: input .* must be given"):
            loaded(SCHEMAS[name], empty, {})


def test_what_an_older_opset_did_not_ask_for_may_be_absent() -> None:
    schema = onnx.defs.get_schema("Concat", 1)
    loaded(schema, ["x", "y"], {}, opset=1)  # axis was optional, and 1, in opset 1
    with pytest.raises(ImportFault, match="Concat: attribute axis must be given in opset 13, got none"):
        loaded(schema, ["x", "y"], {}, opset=13)


def test_nodes_of_functions_and_sub_graphs_are_checked_too() -> None:
    text = '<ir_version: 8, opset_import: ["": 18, "local": 1]> g (float[2] x) => (float[4] y) {{ {body} }} {functions}'
    function = '<domain: "local", opset_import: ["": 18]> f (a) => (b) { b = Concat(a, a) }'
    branch = "c = Constant<value_int = 1>() \n k = Cast<to = 9>(c) \n y = If (k) <then_branch = t () => (float[4] z) { z = Concat(x, x) }, "
    branch += "else_branch = e () => (float[4] w) { w = Concat<axis = 0>(x, x) }>"
    for model in (text.format(body="y = local.f(x)", functions=function), text.format(body=branch, functions="")):
        with pytest.raises(ImportFault, match="Concat: attribute axis must be given"):
            jumar.load(onnx.parser.parse_model(model))


REQUIRED = [(name, a) for (domain, name), r in sorted(RULES.items()) if domain == "com.microsoft" for a in r.required]


@pytest.mark.parametrize("name, attribute", REQUIRED)
def test_operators_of_onnx_runtime_ask_for_their_attributes(name: str, attribute: str) -> None:
    others = {a: 1 for n, a in REQUIRED if n == name and a != attribute}
    node = helper.make_node(name, ["x"], ["y"], "the_node", domain="com.microsoft", **others)
    x, y = (helper.make_tensor_value_info(v, TensorProto.FLOAT, [1, 2, 3, 4]) for v in "xy")
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph([node], "g", [x], [y]), ir_version=8, opset_imports=opsets)
    with pytest.raises(ImportFault, match=f"{name}: attribute {attribute} must be given"):
        jumar.load(model)


UNARY = {"Gelu", "QuickGelu", "FastGelu"}  # of what one input is enough for
MICROSOFT = sorted(name for domain, name in RULES if domain == "com.microsoft")


@pytest.mark.parametrize("name", MICROSOFT)
@pytest.mark.parametrize("count", [0, 1])
def test_operators_of_onnx_runtime_with_too_few_inputs_are_named(name: str, count: int) -> None:
    """There is no schema for them: the rule says what it misses, when it runs."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    node = helper.make_node(name, ["x"] * count, ["y"], "the_node", domain="com.microsoft")
    graph = helper.make_graph([node], "g", [x], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    if count == 1 and name in UNARY:
        return
    with pytest.raises(jumar.base.StackError) as caught:
        jumar.load(helper.make_model(graph, ir_version=8, opset_imports=opsets), target="interpreter")(np.ones((2, 3), np.float32))
    assert "the_node" in str(caught.value.loc)
