"""`Parameter`: a Tensor with a name that optimisers and checkpoints know, and `ParameterTuple`.

In: a value or an initialised tensor.  Out: what cells own.  A captured assignment to a parameter writes into its memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jumar.base import Array
from jumar.frontend.tensor import Tensor, as_array, wrap


class Parameter(Tensor):
    """A trainable tensor.

    default_input: Tensor, array, number or list.   name: what checkpoints and optimisers call it; a cell that owns it gives it its dotted path
    where it has none.   requires_grad: whether optimisers and `trainable_params` take it.
    """

    in_place = True

    def __init__(
        self, default_input: Any = None, name: str | None = None, requires_grad: bool = True, layerwise_parallel: bool = False,
        parallel_optimizer: bool = True, storage_format: str = "",
    ) -> None:  # fmt: skip
        self._node = self._recorder = None
        if isinstance(default_input, Tensor):
            self._value = default_input.array.copy()
        else:
            self._value = as_array(default_input)
        self.name = "Parameter" if name is None else name
        self.requires_grad = requires_grad
        self.layerwise_parallel = layerwise_parallel
        self.parallel_optimizer = parallel_optimizer
        self.storage_format = storage_format

    def set_data(self, data: Any, slice_shape: bool = False) -> Parameter:
        """Takes over a value of the same shape; the element type stays the parameter's."""
        new = data if isinstance(data, Tensor) else wrap(as_array(data))
        if tuple(new.shape) != tuple(self.shape) and not slice_shape:
            raise ValueError(f"Parameter {self.name}: set_data must get shape {tuple(self.shape)}, got {tuple(new.shape)}")
        self._write(new.astype(self.dtype) if new.dtype is not self.dtype else new)
        return self

    def asnumpy(self) -> Array:
        """A copy of the value: training writes into the parameter's own memory."""
        return super().asnumpy().copy()

    def __repr__(self) -> str:
        return f"Parameter (name={self.name}, shape={tuple(self.shape)}, dtype={self.dtype}, requires_grad={self.requires_grad})"

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.array, dict(self.__dict__))

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        copy = _unpickle(self.array.copy(), dict(self.__dict__))
        memo[id(self)] = copy
        return copy


def _unpickle(array: Array, state: dict[str, Any]) -> Parameter:
    made = Parameter.__new__(Parameter)
    made._value, made._node, made._recorder = array, None, None
    made.__dict__.update(state)
    return made


class ParameterTuple(tuple[Parameter, ...]):
    """Parameters in order, as optimisers and gradients want them."""

    def __new__(cls, iterable: Iterable[Parameter]) -> ParameterTuple:
        found = list(iterable)
        for i, p in enumerate(found):
            if not isinstance(p, Parameter):
                raise TypeError(f"ParameterTuple: elements must be Parameters, got {type(p).__name__}")
            if p.name == "Parameter":
                p.name = f"Parameter${i + 1}"
        return super().__new__(cls, found)

    def clone(self, prefix: str, init: Any = "same") -> ParameterTuple:
        """Copies whose names begin with `prefix`."""
        return ParameterTuple(p.clone(init=init, name=f"{prefix}.{p.name}") for p in self)



