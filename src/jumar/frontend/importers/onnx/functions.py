"""Functions that the ONNX standard gives for operators: the last resort before an operator is unsupported.

In: a node without a rule.  Out: a FunctionProto in simpler operators, which evaluator.py inlines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jumar.frontend.importers.onnx.node import ONNX_OF_DTYPE, OnnxNode
from jumar.frontend.importers.onnx.rule import find_rule
from jumar.frontend.importers.onnx.value import Known, Traced, Value


def _schema(node: OnnxNode) -> Any:
    import onnx  # noqa: PLC0415  (0.2 s: a model from the cache never needs it)

    if not 0 < node.opset < 2**31 or not (node.op + node.domain).isascii():
        return None
    try:
        return onnx.defs.get_schema(node.op, node.opset, node.domain)
    except onnx.defs.SchemaError:
        return None


def has_schema_function(node: OnnxNode) -> bool:
    """The standard says this operator in others."""
    schema = _schema(node)
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)


KINDS = {
    1: "a float", 2: "an int", 3: "a text", 4: "a tensor", 5: "a graph", 6: "floats", 7: "ints", 8: "texts", 9: "tensors", 10: "graphs", 11: "a sparse tensor",
}  # fmt: skip


def check_node(node: OnnxNode) -> None:
    """Inputs and attributes are those that the standard asks for, and attributes have its types, where it knows the operator."""
    rule = find_rule(node.op, node.domain)
    for name in rule.required if rule else ():
        if name not in node.protos:
            raise node.fault(f"attribute {name} must be given in opset {node.opset}, got none")
    schema = _schema(node)
    if schema is None:
        return
    single = schema.FormalParameterOption.Single
    for i, wanted in enumerate(schema.inputs[: schema.min_input]):
        if i >= len(node.input_names) or (wanted.option == single and not node.input_names[i]):
            raise node.fault(f"input {wanted.name} (number {i}) must be given in opset {node.opset}, got none")
    if len(node.input_names) > schema.max_input and any(node.input_names[schema.max_input :]):
        raise node.fault(f"node must have at most {schema.max_input} inputs in opset {node.opset}, got {len(node.input_names)}")
    for name, wanted in schema.attributes.items():
        if wanted.required and name not in node.protos:
            raise node.fault(f"attribute {name} must be given in opset {node.opset}, got none")
    for name, attribute in node.protos.items():
        wanted = schema.attributes.get(name)
        if wanted is not None and wanted.type.value != attribute.type:
            raise node.fault(
                f"attribute {name} must be {KINDS.get(wanted.type.value, wanted.type.name)}, got {KINDS.get(attribute.type, f'type {attribute.type}')}",
                code="attribute-type",
            )


def function_of_schema(node: OnnxNode, values: Sequence[Value]) -> Any:
    """The standard's function for a node on inputs of these types; None where there is none."""
    import onnx  # noqa: PLC0415  (see above)

    schema = _schema(node)
    if schema is None:
        return None
    proto = onnx.FunctionProto()
    if schema.has_context_dependent_function:
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= node.opsets.get("", node.opset)]
        if not versions:
            return None
        types = [_type_proto(v).SerializeToString() for v in values]
        proto.ParseFromString(
            schema.get_context_dependent_function_with_opset_version(max(versions), _resolved(node).SerializeToString(), types)
        )
    elif schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= node.opsets.get("", node.opset)]
        if not versions:
            return None
        found = schema.get_function_with_opset_version(max(versions))
        proto.CopyFrom(found) if not isinstance(found, bytes) else proto.ParseFromString(found)
    else:
        return None
    for name, attribute in schema.attributes.items():
        if name not in node.protos and attribute.default_value.name:
            proto.attribute_proto.append(attribute.default_value)
    return proto


def _resolved(node: OnnxNode) -> Any:
    """The NodeProto with the attributes that the function call around it gives."""
    import onnx  # noqa: PLC0415  (see above)

    proto = onnx.NodeProto()
    proto.CopyFrom(node.proto)
    del proto.attribute[:]
    proto.attribute.extend(node.protos.values())
    return proto


def _type_proto(value: Value) -> Any:
    import onnx  # noqa: PLC0415  (see above)

    match value:
        case Known() | Traced():
            return onnx.helper.make_tensor_type_proto(ONNX_OF_DTYPE[value.dtype], value.shape)
        case list():
            inner = _type_proto(value[0]) if value else onnx.TypeProto()
            return onnx.helper.make_sequence_type_proto(inner)
    return onnx.TypeProto()
