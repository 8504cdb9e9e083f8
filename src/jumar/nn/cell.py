"""`Cell`: a piece of a network - parameters, children and `construct`.

In: Tensors.  Out: what `construct` makes of them.  In GRAPH mode the outermost cell is captured (frontend/capture.py); inside of that, and in PYNATIVE mode,
calling a cell runs its `construct` between its hooks.  What a cell owns is in tree.py, how it is saved in state.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from jumar import context
from jumar.base import event
from jumar.frontend import dtype as types
from jumar.frontend.dtype import Type
from jumar.frontend.guards import EPOCH
from jumar.frontend.parameter import Parameter
from jumar.frontend.promote import cast
from jumar.frontend.tensor import LOCAL, Tensor
from jumar.nn.hooks import HookHandle, add_hook, run_with_hooks
from jumar.nn.state import State
from jumar.nn.tree import MIXED

_Self = TypeVar("_Self", bound="Cell")
_PRECISIONS = {"fp16": types.float16, "fp32": types.float32, "bf16": types.bfloat16}
_TRAIN, _PREDICT = "train", "predict"


class Cell(State):
    """The base of all networks and layers.

    auto_prefix: whether parameters of children get dotted paths as names.   flags: see `add_flags`.
    Subclasses create their parameters and children in `__init__` and say in `construct` what they compute.
    """

    training: bool
    _plain = True  # nothing but `construct` happens in a call
    _mixed: Type | None = None
    _result: Type | None = None  # the element type of floating results, where it is not their own
    cell_type: str | None = None

    def __init__(self, auto_prefix: bool = True, flags: dict[str, Any] | None = None) -> None:
        EPOCH[0] += 1
        self._init_tree(auto_prefix)
        state = self.__dict__
        state["training"] = False
        state["requires_grad"] = False
        state["_hooks"] = {}
        state["_flags"] = {}
        state["_phase"] = _TRAIN
        state["_details"] = {}  # settings that change no result
        if "bprop" in _names_of(type(self)):
            state["_plain"] = False
        if flags:
            self.add_flags(**flags)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith("jumar.nn"):
            cls._ours = True

    # ------------------------------------------------------------------ calling
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if LOCAL.recorder is None and context.MODE == context.GRAPH_MODE:
            from jumar.frontend.capture import call_cell  # noqa: PLC0415  (PYNATIVE never needs it)

            return call_cell(self, args, kwargs)
        calls = LOCAL.calls
        calls.append(self)
        try:
            return self.construct(*args, **kwargs) if self._plain else self._run(args, kwargs)
        finally:
            calls.pop()

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """What the cell computes: for subclasses."""
        raise AttributeError(f"For 'Cell', the method 'construct' is not defined by {type(self).__name__}.")

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call with hooks, another element type, recomputation or a `bprop` of the cell's own."""
        if self._flags.get("recompute") and LOCAL.recorder is not None and not LOCAL.recorder.frozen:
            from jumar.frontend.recompute import recomputed  # noqa: PLC0415  (few cells ask for it)

            return recomputed(self._run_with_hooks, args, kwargs, list(self.get_parameters()))
        return self._run_with_hooks(*args, **kwargs)

    def _run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        return run_with_hooks(self, self._run_construct, args, kwargs) if self._hooks else self._run_construct(*args, **kwargs)

    def _run_construct(self, *args: Any, **kwargs: Any) -> Any:
        if self._mixed is not None:
            args, kwargs = self._cast_inputs(args, self._mixed), {k: self._cast_inputs(v, self._mixed) for k, v in kwargs.items()}
        if LOCAL.recorder is not None and "bprop" in _names_of(type(self)):
            from jumar.frontend.grad import call_with_bprop  # noqa: PLC0415  (few cells have one)

            found = call_with_bprop(self, args, kwargs)
        else:
            found = self.construct(*args, **kwargs)
        return found if self._result is None else self._cast_inputs(found, self._result)

    run_construct = _run_construct

    def _refresh_plain(self) -> None:
        hooked = any(self._hooks.get(kind) for kind in ("forward_pre", "forward", "backward_pre", "backward"))
        self.__dict__["_plain"] = not (
            hooked or self._mixed is not None or "bprop" in _names_of(type(self)) or bool(self._flags.get("recompute"))
        )

    def _cast_inputs(self, value: Any, dtype: Type) -> Any:
        """Floats among the arguments in another element type."""
        if isinstance(value, Tensor):
            return cast(value, dtype) if value.dtype.is_floating_point else value
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(self._cast_inputs(v, dtype) for v in value))
        if isinstance(value, tuple | list):
            return type(value)(self._cast_inputs(v, dtype) for v in value)
        return {k: self._cast_inputs(v, dtype) for k, v in value.items()} if type(value) is dict else value

    def cast_inputs(self, inputs: Any, dst_type: Any) -> Any:
        """The inputs in another element type."""
        return self._cast_inputs(tuple(inputs), types.as_type(dst_type))

    # ------------------------------------------------------------------ mode and precision
    def set_train(self: _Self, mode: bool = True) -> _Self:
        """Whether this cell and all below it are in training."""
        if not isinstance(mode, bool):
            raise TypeError(f"set_train: mode must be a bool, got {type(mode).__name__}")
        EPOCH[0] += 1
        for _, cell in self.cells_and_names():
            state = cell.__dict__
            state["training"] = state["_flags"]["training"] = mode
            state["_phase"] = _TRAIN if mode else _PREDICT
        return self

    def set_grad(self: _Self, requires_grad: bool = True) -> _Self:
        """Notes that gradients of the cell are wanted."""
        self.requires_grad = requires_grad
        return self

    def to_float(self: _Self, dst_type: Any) -> _Self:
        """This cell and all below it compute in float16, bfloat16 or float32: floats among inputs and parameters are cast."""
        found = dst_type if isinstance(dst_type, Type) else None
        name = next((n for n, t in _PRECISIONS.items() if t is found), None)
        if name is None:
            raise ValueError(
                "For 'to_float', the argument 'dst_type' must be mstype.float32, mstype.float16 or mstype.bfloat16, "
                f"but got type: {type(dst_type)} and value: {dst_type}."
            )
        EPOCH[0] += 1
        MIXED[0] += 1
        for _, cell in self.cells_and_names():
            cell.__dict__["_mixed"] = found
            cell.__dict__["_flags"].update({n: n == name for n in _PRECISIONS})
            cell._refresh_plain()
        return self

    def _add_mixed_precision_flag(self: _Self, **flags: bool) -> _Self:
        wanted = [_PRECISIONS[n] for n, on in flags.items() if on and n in _PRECISIONS]
        return self.to_float(wanted[0]) if wanted else self

    @property
    def to_float_fp16(self) -> bool:
        return self._mixed is types.float16

    def add_flags(self: _Self, **flags: Any) -> _Self:
        """Notes flags of this cell; they can be read as attributes too."""
        self._flags.update(flags)
        for name, value in flags.items():
            if name in _PRECISIONS and value:
                self.__dict__["_mixed"] = _PRECISIONS[name]
                MIXED[0] += 1
                self._refresh_plain()
            setattr(self, name, value)
        return self

    def add_flags_recursive(self: _Self, **flags: Any) -> _Self:
        """Notes flags of this cell and all below it."""
        for _, cell in self.cells_and_names():
            cell.add_flags(**flags)
        return self

    def get_flags(self) -> dict[str, Any]:
        """The flags of this cell."""
        return self._flags  # type: ignore[no-any-return]

    # ------------------------------------------------------------------ hooks
    def register_forward_pre_hook(self, hook_fn: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False) -> HookHandle:
        """`hook_fn(cell, inputs)` before `construct`; what it returns replaces the inputs."""
        return add_hook(self, "forward_pre", hook_fn, prepend, with_kwargs)

    def register_forward_hook(
        self, hook_fn: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> HookHandle:
        """`hook_fn(cell, inputs, output)` after `construct`; what it returns replaces the output."""
        return add_hook(self, "forward", hook_fn, prepend, with_kwargs, always_call)

    def register_backward_pre_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """`hook_fn(cell, grad_output)`; what it returns replaces the gradient of the output."""
        return add_hook(self, "backward_pre", hook_fn)

    def register_backward_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """`hook_fn(cell, grad_input, grad_output)`; what it returns replaces the gradient of the inputs."""
        return add_hook(self, "backward", hook_fn)

    # ------------------------------------------------------------------ printing
    @property
    def cls_name(self) -> str:
        """The name of the class."""
        return type(self).__name__

    def _get_name(self) -> str:
        return type(self).__name__

    def extend_repr(self) -> str:
        """What `repr` says about the cell beside its children: for subclasses."""
        return ""

    def __repr__(self) -> str:
        extra = self.extend_repr()
        name = type(self).__name__
        if not self.__dict__.get("_cells"):
            return f"{name}({extra})"
        lines = [f"  {extra}"] if extra else []
        for child_name, child in self._cells.items():
            lines.append("  " + f"({child_name}): {child!r}".replace("\n", "\n  "))
        return "\n".join([f"{name}(", *lines, ")"])

    __str__ = __repr__

    def __bool__(self) -> bool:
        return True

    # ------------------------------------------------------------------ compiling and shapes
    @property
    def phase(self) -> str:
        """`train` or `predict`, or what the user set it to."""
        return self._phase  # type: ignore[no-any-return]

    @phase.setter
    def phase(self, value: str) -> None:
        self.__dict__["_phase"] = value

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Has no effect: the first call with inputs of a type captures and compiles, and may write to parameters, which this must not."""

    def compile_and_run(self, *args: Any, **kwargs: Any) -> Any:
        """The cell captured and run, in either mode."""
        from jumar.frontend.capture import call_cell  # noqa: PLC0415  (see __call__)

        return call_cell(self, args, kwargs)

    def set_inputs(self, *inputs: Any, **kwargs: Any) -> None:
        """Types of the inputs, None for a dimension of any size.   We compile for each size that comes."""
        if inputs and kwargs:
            raise ValueError("set_inputs: inputs must all be positional or all be named")
        self._details["inputs"] = inputs or tuple(kwargs.values())

    def get_inputs(self) -> tuple[Any, ...] | None:
        """What `set_inputs` was given."""
        return self._details.get("inputs")  # type: ignore[no-any-return]

    def init_parameters_data(self, auto_parallel_mode: bool = False) -> dict[Parameter, Parameter]:
        """The parameters themselves: their values are made when they are."""
        return {p: p for p in self.get_parameters()}

    def flatten_weights(self, fusion_size: int = 0) -> None:
        """Has no effect: updates of many parameters are one Program already."""

    # ------------------------------------------------------------------ settings that change no result
    def recompute(self, **options: Any) -> None:
        """Values inside are computed again in the backward pass instead of kept; the results are the same."""
        EPOCH[0] += 1
        self._flags["recompute"] = True
        self._refresh_plain()

    def shard(self: _Self, in_strategy: Any = None, out_strategy: Any = None, parameter_plan: Any = None, **options: Any) -> _Self:
        """Has no effect on one device."""
        event("shard", cell=type(self).__name__, effect="none here")
        return self

    def set_data_parallel(self) -> None:
        """Has no effect on one device."""

    def set_comm_fusion(self: _Self, fusion_type: int, recurse: bool = True) -> _Self:
        """The group in which gradients of the parameters are communicated."""
        if not isinstance(fusion_type, int) or fusion_type < 0:
            raise ValueError(f"set_comm_fusion: fusion_type must be a non-negative int, got {fusion_type!r}")
        for param in self.trainable_params(recurse):
            param.comm_fusion = fusion_type
        return self

    def set_broadcast_flag(self: _Self, mode: bool = True) -> _Self:
        """Has no effect: all inputs of a Program broadcast."""
        return self

    def set_jit_config(self, jit_config: Any) -> None:
        """Settings of the compiler, kept for who asks."""
        self._details["jit_config"] = dict(getattr(jit_config, "jit_config_dict", {}))

    @property
    def jit_config_dict(self) -> dict[str, Any]:
        return self._details.get("jit_config", {})  # type: ignore[no-any-return]

    def set_boost(self: _Self, boost_type: str) -> _Self:
        """`less_bn`, `grad_freeze` and the like are not supported."""
        raise NotImplementedError(f"set_boost: boosting is not supported, got {boost_type!r}; networks run unchanged without it")

    def offload(self, backward_prefetch: Any = "Auto") -> None:
        """Has no effect: there is one memory."""

    def update_cell_type(self, cell_type: str) -> None:
        """Notes what kind of cell it is."""
        self.cell_type = cell_type

    def to_empty(self: _Self, *, device: Any = None, recurse: bool = True) -> _Self:
        """The cell itself: there is one device."""
        return self

    def to(self: _Self, *args: Any, **kwargs: Any) -> _Self:
        """Floating parameters and buffers in another element type.   args: a dtype, a Tensor of it, or the name of this device."""
        wanted: Any = kwargs.get("dtype")
        for arg in args:
            if isinstance(arg, Type | Tensor):
                wanted = arg.dtype if isinstance(arg, Tensor) else arg
            elif isinstance(arg, str) and arg.split(":")[0].lower() != "cpu":
                raise ValueError(f"Cell.to: device must be 'CPU', got {arg!r}")
        if wanted is not None:
            kind = types.as_type(wanted)
            for _, cell in self.cells_and_names():
                for param in cell._params.values():
                    if param is not None and param.dtype.is_floating_point:
                        param.set_dtype(kind)
                for name, buffer in list(cell._buffers.items()):
                    if buffer is not None and buffer.dtype.is_floating_point:
                        cell._buffers[name] = cast(buffer, kind)
        return self

    def remove_redundant_parameters(self) -> list[str]:
        """Nothing is redundant on one device."""
        return []

    @property
    def pipeline_stage(self) -> int:
        """The stage of a pipeline that runs the cell; unset until it is set."""
        try:
            return self._details["pipeline_stage"]  # type: ignore[no-any-return]
        except KeyError:
            raise AttributeError(f"The '{type(self).__name__}' object has no attribute 'pipeline_stage'.") from None

    @pipeline_stage.setter
    def pipeline_stage(self, value: int) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"For 'pipeline_stage', the value must be a non-negative int, but got {type(value)}.")
        if value < 0:
            raise ValueError(f"For 'pipeline_stage', the value must be a non-negative int, but got {value}.")
        self._details["pipeline_stage"] = value
        for param in self.trainable_params():
            param.add_pipeline_stage(value)

    @property
    def pipeline_segment(self) -> int:
        """The segment of a stage that runs the cell; unset until it is set."""
        try:
            return self._details["pipeline_segment"]  # type: ignore[no-any-return]
        except KeyError:
            raise AttributeError(f"The '{type(self).__name__}' object has no attribute 'pipeline_segment'.") from None

    @pipeline_segment.setter
    def pipeline_segment(self, value: int) -> None:
        self._details["pipeline_segment"] = value

    @property
    def create_time(self) -> int:
        """When the cell was first asked for it, in nanoseconds."""
        return self._details.setdefault("create_time", time.time_ns())  # type: ignore[no-any-return]

    @property
    def bprop_debug(self) -> bool:
        return self._details.get("bprop_debug", False)  # type: ignore[no-any-return]

    @bprop_debug.setter
    def bprop_debug(self, value: bool) -> None:
        self._details["bprop_debug"] = value

    @property
    def parameter_layout_dict(self) -> dict[str, Any]:
        return self._details.setdefault("layouts", {})  # type: ignore[no-any-return]

    @property
    def compile_cache(self) -> set[str]:
        return self._details.setdefault("compile_cache", set())  # type: ignore[no-any-return]


_NAMES: dict[type, frozenset[str]] = {}


def _names_of(kind: type) -> frozenset[str]:
    """Names that a class and its bases define."""
    found = _NAMES.get(kind)
    if found is None:
        found = _NAMES[kind] = frozenset(n for base in kind.__mro__ for n in vars(base))
    return found
