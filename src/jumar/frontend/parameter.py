"""`Parameter`: a Tensor with a name that optimisers and checkpoints know, and `ParameterTuple`.

In: a value or an initialised tensor.  Out: what cells own.  A captured assignment to a parameter writes into its memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from jumar.base import Array
from jumar.frontend import dtype as types
from jumar.frontend.promote import cast
from jumar.frontend.tensor import LOCAL, Tensor, as_array, wrap

_COUNTER = itertools.count()
_PLAIN_STATE = {  # what a parameter has besides its value, name and requires_grad
    "layerwise_parallel": False, "parallel_optimizer": True, "parallel_optimizer_comm_recompute": False, "comm_fusion": 1, "storage_format": "",
    "key": -1, "sliced": False, "unique": False, "cache_enable": False, "cache_shape": (), "is_init": False, "inited_param": None,
    "is_in_parallel": False, "is_param_ps": False, "pipeline_stages": (), "from_ckpt": False,
}  # fmt: skip


class Parameter(Tensor):
    """A trainable tensor.

    default_input: Tensor, array, number or list.   name: what checkpoints and optimisers call it; a cell that owns it gives it its dotted path
    where it has none.   requires_grad: whether optimisers and `trainable_params` take it.
    """

    in_place = True
    init_mode = None
    has_init = False
    layerwise_parallel: bool
    parallel_optimizer: bool
    comm_fusion: int

    def __init__(
        self, default_input: Any = None, name: str | None = None, requires_grad: bool = True, layerwise_parallel: bool = False,
        parallel_optimizer: bool = True, storage_format: str = "", device: Any = None,
    ) -> None:  # fmt: skip
        self._node = self._recorder = None
        if isinstance(default_input, bool):
            raise ValueError("Parameter data can not be `bool`")
        if isinstance(default_input, str):
            raise TypeError("Parameter: default_input must be a Tensor, a number, a list, a tuple or a NumPy array, got str")
        self._value = default_input.array.copy() if isinstance(default_input, Tensor) else as_array(default_input)
        state = self.__dict__
        state["_name"] = _checked_name(name)
        state["_requires_grad"] = _checked_flag(requires_grad)
        if layerwise_parallel:
            state["layerwise_parallel"] = layerwise_parallel
        if not parallel_optimizer:
            state["parallel_optimizer"] = parallel_optimizer
        if storage_format:
            state["storage_format"] = storage_format

    def __getattr__(self, name: str) -> Any:
        if name in _PLAIN_STATE:
            return _PLAIN_STATE[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    # ------------------------------------------------------------------ what it is called
    @property
    def name(self) -> str:
        """The name; one that is unique in the process where none was given."""
        state = self.__dict__
        found: str | None = state.get("_name")
        if found is None:
            if "_number" not in state:
                state["_number"] = next(_COUNTER)
            return f"Parameter#{state['_number']}"
        return found

    @name.setter
    def name(self, value: str | None) -> None:
        self.__dict__["_name"] = _checked_name(value)

    @property
    def is_unnamed(self) -> bool:
        """Whether a cell may still choose the name."""
        return self.__dict__.get("_name") is None

    @property
    def requires_grad(self) -> bool:
        """Whether optimisers take it."""
        return bool(self.__dict__["_requires_grad"])

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.__dict__["_requires_grad"] = _checked_flag(value)

    def requires_grad_(self, requires_grad: bool = True) -> Parameter:
        """Sets `requires_grad` and returns the parameter."""
        self.requires_grad = requires_grad
        return self

    # ------------------------------------------------------------------ the value
    @property
    def data(self) -> Tensor:
        """The parameter itself."""
        return self

    @data.setter
    def data(self, value: Any) -> None:
        self.set_data(value)

    def value(self) -> Tensor:
        """The value as a plain tensor that shares its memory."""
        return self if LOCAL.recorder is not None else wrap(self.array)

    def set_data(self, data: Any, slice_shape: bool = False) -> Parameter:
        """Takes over a value; the element type stays the parameter's.   A value of another shape replaces the memory."""
        if isinstance(data, np.ndarray) or not isinstance(data, Tensor | int | float):
            raise TypeError(f"Parameter {self.name}: data must be a Tensor, an int or a float, got {type(data).__name__}")
        new = data if isinstance(data, Tensor) else wrap(as_array(data))
        new = cast(new, self.dtype)
        if tuple(new.shape) == tuple(self.shape):
            self._write(new)
        elif LOCAL.recorder is None:
            self._value, self._node, self._recorder = new.array.copy(), None, None
        else:
            raise ValueError(f"Parameter {self.name}: set_data must get shape {tuple(self.shape)}, got {tuple(new.shape)}")
        return self

    def set_dtype(self, dtype: Any) -> types.Type:
        """Changes the element type of the value in place, and returns it."""
        found = types.as_type(dtype)
        if found is not self.dtype:
            self._value, self._node, self._recorder = cast(self, found).array, None, None
        return found

    def init_data(self, layout: Any = None, set_sliced: bool = False) -> Parameter:
        """The parameter itself: its value is made when it is."""
        if layout is not None:
            raise NotImplementedError("Parameter: init_data makes the whole value only (layout=None), a layout of slices is not supported")
        if set_sliced:
            self.__dict__["sliced"] = True
        return self

    def clone(self, init: Any = "same", name: str | None = None) -> Parameter:
        """A copy.   init: `same` for the same value, else an initialiser, a number or a tensor for a new one.   name: default the same."""
        if isinstance(init, str) and init == "same":
            value: Any = self.array.copy()
        else:
            from jumar.common.initializer import initializer  # noqa: PLC0415  (an initialiser makes tensors)

            value = initializer(init, self.shape, self.dtype).array
        state = {k: v for k, v in self.__dict__.items() if k != "_number"}
        copy = _unpickle(value, state, type(self))
        if name is not None:
            copy.name = name
        return copy

    def asnumpy(self) -> Array:
        """A copy of the value: training writes into the parameter's own memory."""
        value: Array = super().asnumpy().copy()
        return value

    def copy(self) -> Parameter:
        """A copy that shares nothing."""
        return self.clone()

    def add_pipeline_stage(self, stage: int) -> None:
        """Notes a pipeline stage that uses the parameter."""
        if not isinstance(stage, int) or stage < 0:
            raise TypeError(f"Parameter {self.name}: stage must be a non-negative int, got {stage!r}")
        self.__dict__["pipeline_stages"] = (*self.pipeline_stages, stage)

    def __repr__(self) -> str:
        return f"Parameter (name={self.name}, shape={tuple(self.shape)}, dtype={self.dtype}, requires_grad={self.requires_grad})"

    __str__ = __repr__

    def __parameter__(self) -> None:
        """Marks parameters of every kind."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.array, dict(self.__dict__), type(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        copy = _unpickle(self.array.copy(), dict(self.__dict__), type(self))
        memo[id(self)] = copy
        return copy


def _checked_name(name: str | None) -> str | None:
    if name is None or name == "":
        return None
    if not isinstance(name, str):
        raise ValueError(f"The type of the Parameter's name should be 'string' or 'None', but got {type(name)}.")
    if len(name) > 1024:
        raise ValueError(f"Parameter: name must have at most 1024 characters, got {len(name)}")
    return name.strip()


def _checked_flag(value: bool) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError("The argument `requires_grad` must be bool type")
    return bool(value)


def _unpickle(array: Array, state: dict[str, Any], kind: type[Parameter] = Parameter) -> Parameter:
    made = kind.__new__(kind)
    made._value, made._node, made._recorder = array, None, None
    made.__dict__.update(state)
    return made


class ParameterTuple(tuple[Parameter, ...]):
    """Parameters in order, as optimisers and gradients want them.   Names must differ; parameters without one are called `Parameter$1` and so on."""

    def __new__(cls, iterable: Iterable[Parameter]) -> ParameterTuple:
        found = list(iterable)
        names: set[str] = set()
        unnamed = 0
        for p in found:
            if not isinstance(p, Parameter):
                raise TypeError(f"ParameterTuple: elements must be Parameters, got {type(p).__name__}")
            if p.is_unnamed:
                unnamed += 1
                p.name = f"Parameter${unnamed}"
            if p.name in names:
                raise ValueError(f"The value {p} , its name '{p.name}' already exists. Please set a unique name for the parameter.")
            names.add(p.name)
        return super().__new__(cls, found)

    def clone(self, prefix: str, init: Any = "same") -> ParameterTuple:
        """Copies whose names begin with `prefix`."""
        return ParameterTuple(p.clone(init=init, name=f"{prefix}.{p.name}") for p in self)

    def __parameter_tuple__(self) -> None:
        """Marks tuples of parameters."""
