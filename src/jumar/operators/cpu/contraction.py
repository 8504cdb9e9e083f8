"""Schedules of contractions on the CPU, plain or as the root of a fused group; and the rule which groups there may be.

In: a node (MatMul, Conv, or `Fused` around one).  Out: its tasks, by the kind that suits: matmul.py, conv.py and their kin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from jumar.device import Target
from jumar.ir import Node, apply
from jumar.operators.attention import Attention
from jumar.operators.contraction import Conv, MatMul
from jumar.operators.conv_grad import ConvGradInput
from jumar.operators.cpu.attention import lower_attention
from jumar.operators.cpu.channels import between_transposes
from jumar.operators.cpu.conv import filters_of, geometry_of, lower_conv
from jumar.operators.cpu.conv_grad_input import gradient_geometry, lower_input_gradient
from jumar.operators.cpu.depthwise import lower_depthwise
from jumar.operators.cpu.epilogue import Axes, lay_out
from jumar.operators.cpu.integer import lower_byte_conv, lower_byte_product, of_bytes
from jumar.operators.cpu.matmul import lower_matmul, product_of
from jumar.operators.cpu.planes import lower_planes
from jumar.operators.cpu.region import region_of
from jumar.operators.cpu.root import RootGroup, matrix_axes, root_group
from jumar.operators.cpu.skinny import lower_skinny, skinny_product
from jumar.operators.cpu.winograd import lower_winograd
from jumar.operators.elementwise import Add, Cast
from jumar.operators.schedule import Lowered, schedule

WIDEST_PANEL = 32  # columns of the widest tile (AVX-512): runs of columns that fit it fit every machine


@schedule("cpu", MatMul, Conv, Attention, ConvGradInput)
def lower_contraction(node: Node, target: Target) -> Lowered | None:
    """The tasks of a contraction, or of a fused group around one; None where it is none or has a form that these kernels lack."""
    group = root_group(node)
    if group is None:
        return None
    match group.root.op:
        case MatMul():
            found = lower_byte_product(group, target) if of_bytes(group.root) else None
            return found or lower_skinny(group, target) or lower_matmul(group, target)
        case Conv(channels_last=True):
            group = without_bias(group)
            return lower_channels_last(group, target)
        case Conv() if group.root is node:
            return between_transposes(node, target, 1)
        case ConvGradInput(channels_last=True):
            return lower_input_gradient(group, target)
        case ConvGradInput(x_shape=shape) if group.root is node:
            return between_transposes(node, target, 1, {"x_shape": (shape[0], *shape[2:], shape[1])})
        case Attention():
            return lower_attention(group, target)
    return None


def lower_channels_last(group: RootGroup, target: Target) -> Lowered | None:
    """The tasks of a convolution without bias, by the way that suits it."""
    g, x = geometry_of(group.root), group.place(group.root.inputs[0])
    if group.root.type.size == 0 or group.root.inputs[0].type.size == 0:
        return None
    if g.depthwise and (found := lower_depthwise(group, g, x, range(g.taps), target)):
        return found
    if found := lower_planes(group, g, target):
        return found
    filters = filters_of(g)
    if of_bytes(group.root) and (found := lower_byte_conv(group, g, filters, target)):
        return found
    known = group.array(group.root.inputs[1])
    if g.pointwise and g.groups == 1 and known is not None and (found := skinny_product(group, filters.matrix(known)[0], g.rows, target)):
        return found
    if found := lower_winograd(group, g, x, filters, target):
        return found
    return lower_conv(group, g, x, filters, target)


def without_bias(group: RootGroup) -> RootGroup:
    """The group with the bias of its convolution as an operator of the epilogue."""
    root = group.root
    if len(root.inputs) < 3:
        return group
    x, w, bias = root.inputs
    bare = apply(root.op, x, w)
    wide = bias if bias.dtype is bare.dtype else Cast(bare.dtype)(bias)
    return group.replaced(bare, Add()(bare, wide))


def fits(root: Node, outputs: Sequence[Node]) -> bool:
    """Whether all that lies between `root` and `outputs` can be its epilogue: each element of its result goes its own way, once, and
    other operands follow its rows and columns.   The fuse pass asks before it takes a further operator into a group.
    """
    axes = result_axes(root)
    if axes is None or isinstance(root.type, tuple) or root.type.size == 0:
        return False
    region = region_of(outputs, (root,))
    return region is not None and lay_out(region, root, axes, WIDEST_PANEL) is not None


def result_axes(root: Node) -> Axes | None:
    """How the result of a contraction falls into columns, rows and batches; None for what cannot have an epilogue."""
    match root.op:
        case MatMul():
            return product_of(root.inputs[0].type, root.inputs[1].type).axes
        case Conv(channels_last=True):
            return geometry_of(root).axes
        case ConvGradInput(channels_last=True):
            return gradient_geometry(root).axes
        case Attention():
            *outer, rows, columns = root.shape
            return matrix_axes(math.prod(outer), rows, columns)
    return None
