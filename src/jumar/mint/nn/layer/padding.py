"""Pads under PyTorch's names of arguments.

In: a Tensor.  Out: a larger one.
"""

from jumar.frontend.tensor import Tensor
from jumar.nn.layer import padding as plain


class ConstantPad1d(plain.ConstantPad1d):
    """One value around the last dimension."""

    def construct(self, input: Tensor) -> Tensor:
        return super().construct(input)


class ConstantPad2d(plain.ConstantPad2d):
    """One value around the last two dimensions."""

    def construct(self, input: Tensor) -> Tensor:
        return super().construct(input)


class ConstantPad3d(plain.ConstantPad3d):
    """One value around the last three dimensions."""

    def construct(self, input: Tensor) -> Tensor:
        return super().construct(input)


class ReflectionPad1d(plain.ReflectionPad1d):
    """The last dimension reflected at their ends."""

    def construct(self, input: Tensor) -> Tensor:
        return super().construct(input)


class ReflectionPad2d(plain.ReflectionPad2d):
    """The last two dimensions reflected at their ends."""

    def construct(self, input: Tensor) -> Tensor:
        return super().construct(input)


class ReflectionPad3d(plain.ReflectionPad3d):
    """The last three dimensions reflected at their ends."""

    def construct(self, input: Tensor) -> Tensor:
        return super().construct(input)


class ReplicationPad1d(plain.ReplicationPad1d):
    """The edges of the last dimension repeated."""

    def construct(self, input: Tensor) -> Tensor:
        return super().construct(input)


class ReplicationPad2d(plain.ReplicationPad2d):
    """The edges of the last two dimensions repeated."""

    def construct(self, input: Tensor) -> Tensor:
        return super().construct(input)


class ReplicationPad3d(plain.ReplicationPad3d):
    """The edges of the last three dimensions repeated."""

    def construct(self, input: Tensor) -> Tensor:
        return super().construct(input)


class ZeroPad1d(plain.ZeroPad1d):
    """Zeros around the last dimension."""

    def construct(self, input: Tensor) -> Tensor:
        return super().construct(input)


class ZeroPad2d(plain.ZeroPad2d):
    """Zeros around the last two dimensions."""

    def construct(self, input: Tensor) -> Tensor:
        return super().construct(input)


class ZeroPad3d(plain.ZeroPad3d):
    """Zeros around the last three dimensions."""

    def construct(self, input: Tensor) -> Tensor:
        return super().construct(input)
