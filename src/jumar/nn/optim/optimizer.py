"""`Optimizer`: what optimisers share - parameters and their groups, learning rates, weight decay, loss scale.

In: parameters, or groups of them as dicts (`params`, `lr`, `weight_decay`, `grad_centralization`, and `order_params`).  Out: a cell that is called with the
gradients and writes to the parameters.  Learning rate and step are Parameters: a change of them recompiles nothing.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from jumar import ops
from jumar.frontend import dtype as types
from jumar.frontend.parameter import Parameter, ParameterTuple
from jumar.frontend.promote import cast
from jumar.frontend.tensor import Tensor, wrap
from jumar.nn.cell import Cell
from jumar.nn.layer.container import CellList
from jumar.nn.learning_rate_schedule import LearningRateSchedule
from jumar.ops.composite import HyperMap

__all__ = ["Optimizer"]
GROUP_KEYS = ("params", "lr", "weight_decay", "order_params", "grad_centralization")


def opt_init_args_register(fn: Callable[..., None]) -> Callable[..., None]:
    """Keeps the arguments of an optimiser's `__init__` as `init_params`, `init_learning_rate` and `init_args`."""
    signature = inspect.signature(fn)

    @functools.wraps(fn)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = dict(list(bound.arguments.items())[1:])
        kept = {
            "init_params": {"params": given.pop("params", None)},
            "init_learning_rate": given.pop("learning_rate", None),
            "init_args": given,
        }
        fn(self, *args, **kwargs)
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    return init


def _number(owner: str, name: str, value: Any, least: float, strict: bool = False) -> float:
    """A number as a float."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
        raise TypeError(f"For '{owner}', the '{name}' must be a float, but got {type(value).__name__}.")
    if value < least or (strict and value == least):
        sign = ">" if strict else ">="
        raise ValueError(
            f"For '{owner}', the '{name}' must be float and must {sign} {least:g}, but got '{value}' with type '{type(value).__name__}'."
        )
    return float(value)


class _Iterator(LearningRateSchedule):
    """A rate for each step, from a list; past its end the last one holds."""

    def __init__(self, rates: Any, name: str) -> None:
        super().__init__()
        values = rates.asnumpy() if isinstance(rates, Tensor) else np.array([float(r) for r in rates])
        self.learning_rate = Parameter(Tensor(values.astype(np.float32)), name=name)
        self._last = len(values) - 1

    def construct(self, global_step: Any) -> Tensor:
        place = ops.minimum(ops.reshape(global_step, ()), self._last)
        return ops.gather(self.learning_rate, place, 0)  # type: ignore[no-any-return]


class _Constant(LearningRateSchedule):
    """A parameter as a schedule: among groups some of which have one."""

    def __init__(self, rate: Parameter) -> None:
        super().__init__(auto_prefix=False)
        self.learning_rate = rate

    def construct(self, global_step: Any) -> Tensor:
        return self.learning_rate + 0.0


class _Decay(LearningRateSchedule):
    """A number as a schedule of weight decay."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def construct(self, global_step: Any) -> Tensor:
        return Tensor(self.value, types.float32)


class Optimizer(Cell):
    """The base of optimisers.

    learning_rate: a number, a Tensor (scalar, or one for each step), an iterable of numbers, or a LearningRateSchedule.   parameters: Parameters or
    groups.   weight_decay: a number or a schedule.   loss_scale: gradients are divided by it.
    Subclasses call `get_lr`, `decay_weight`, `scale_grad` and so on in `construct(gradients)`.
    """

    def __init__(self, learning_rate: Any, parameters: Any, weight_decay: Any = 0.0, loss_scale: float = 1.0) -> None:
        super().__init__(auto_prefix=False)
        name = type(self).__name__
        found = self._listed(parameters)
        self.param_rank = self._param_rank = None
        self.optim_filter: Any = None
        self.loss_scale = _number(name, "loss_scale", loss_scale, 0.0, strict=True)
        self.dynamic_weight_decay = self.dynamic_lr = self.grad_centralization = False
        self.is_group = self.is_group_lr = self.is_group_params_ordered = self.dynamic_decay_flags = False
        self.assignadd: Any = _assign_add
        self.global_step = Parameter(Tensor(np.zeros(1, np.int32)), name="global_step")
        self.use_parallel = self.reducer_flag = False
        decay = weight_decay if isinstance(weight_decay, Cell) else _number(name, "weight_decay", weight_decay, 0.0)
        if isinstance(found[0], dict):
            self._init_groups(found, learning_rate, decay)
        else:
            self._init_plain(found, learning_rate, decay)
        self._parameters = self.parameters
        self.param_length = len(self.parameters)
        self.optim_filter = (True,) * self.param_length
        self.reciprocal_scale = Tensor(1.0 / self.loss_scale, types.float32)
        self.need_scale = self.loss_scale != 1.0
        self.global_step_increase_tensor = Tensor([1], types.int32)
        self.map_ = self.hyper_map = self.map_reverse = HyperMap()
        self._target, self._unique = "CPU", True

    # ------------------------------------------------------------------ parameters
    @staticmethod
    def _listed(parameters: Any) -> list[Any]:
        if isinstance(parameters, Parameter | dict) or not isinstance(parameters, Iterable):
            raise TypeError(f"For 'Optimizer', the argument 'parameters' must be Iterable type, but got {type(parameters)}.")
        found = list(parameters)
        if not found:
            raise ValueError("For 'Optimizer', the argument parameters must not be empty.")
        kind = dict if isinstance(found[0], dict) else Parameter
        if not all(isinstance(p, kind) for p in found):
            raise TypeError(
                "For 'Optimizer', all elements of the argument 'parameters' must be 'Parameter' or 'dict', please check the 'parameters'."
            )
        return found

    def _init_plain(self, params: list[Parameter], learning_rate: Any, decay: Any) -> None:
        rate = self._rate(learning_rate, "learning_rate")
        self.learning_rate = rate
        self.dynamic_lr = isinstance(rate, LearningRateSchedule)
        self.parameters = ParameterTuple(params)
        self.dynamic_weight_decay = isinstance(decay, Cell)
        dynamic = self.dynamic_weight_decay
        self.exec_weight_decay = dynamic or decay > 0
        self.decay_flags = tuple("beta" not in p.name and "gamma" not in p.name for p in params)
        self.weight_decay = decay if dynamic else Tensor(decay * self.loss_scale, types.float32)
        self.group_lr_names: tuple[str, ...] = ()

    def _init_groups(self, groups: list[dict[str, Any]], learning_rate: Any, decay: Any) -> None:
        name = type(self).__name__
        for group in groups:
            unknown = [k for k in group if k not in GROUP_KEYS]
            if unknown or not group:
                raise KeyError(f"For 'Optimizer', the key in group params must be one of in {list(GROUP_KEYS)}, but got {unknown}.")
        self.is_group = True
        order = next((g["order_params"] for g in groups if "order_params" in g), None)
        parts = [g for g in groups if "order_params" not in g]
        self.is_group_lr = any("lr" in g for g in parts)
        default = self._rate(learning_rate, "learning_rate")
        rows: list[tuple[Parameter, Any, Any, bool]] = []
        for i, group in enumerate(parts):
            params = list(group.get("params", ()))
            if not params:
                raise ValueError("For 'Optimizer', the 'params' of a group must not be empty.")
            rate = self._rate(group["lr"], f"learning_rate_group_{i}") if "lr" in group else default
            own = group.get("weight_decay", decay)
            own = own if isinstance(own, Cell) else _number(name, "weight_decay", own, 0.0)
            centred = group.get("grad_centralization", False)
            if not isinstance(centred, bool):
                raise TypeError(f"For 'Optimizer', the 'grad_centralization' must be bool, but got {type(centred).__name__}.")
            rows += [(p, rate, own, centred) for p in params]
        if order is not None:
            places = {id(p): i for i, p in enumerate(order)}
            if len(places) != len(rows) or any(id(r[0]) not in places for r in rows):
                raise ValueError("For 'Optimizer', the 'order_params' must hold the parameters of all groups, each once.")
            rows.sort(key=lambda r: places[id(r[0])])
            self.is_group_params_ordered = True
        names = [r[0].name for r in rows]
        if len(set(names)) != len(names):
            twice = next(n for i, n in enumerate(names) if n in names[:i])
            raise ValueError(
                f"The value {[r[0] for r in rows]} , its name '{twice}' already exists. Please set a unique name for the parameter."
            )
        self.dynamic_lr = any(isinstance(r[1], LearningRateSchedule) for r in rows)
        self.dynamic_weight_decay = any(isinstance(r[2], Cell) for r in rows)
        if self.is_group_lr:
            if self.dynamic_lr:
                self.learning_rate = _cells([r[1] if isinstance(r[1], LearningRateSchedule) else _Constant(r[1]) for r in rows])
            else:
                self.learning_rate = _SharedParameters([r[1] for r in rows])
                for r in rows:  # each once, in the order of parameters
                    self._params[r[1].name] = r[1]
        else:
            self.learning_rate = default
        self.parameters = ParameterTuple([r[0] for r in rows])
        self.decay_flags = tuple(isinstance(r[2], Cell) or r[2] > 0 for r in rows)
        self.exec_weight_decay = any(self.decay_flags)
        if self.dynamic_weight_decay:
            self.weight_decay = _cells([r[2] if isinstance(r[2], Cell) else _Decay(r[2]) for r in rows])
        else:
            self.weight_decay = tuple(Tensor(r[2] * self.loss_scale, types.float32) for r in rows)
        self.grad_centralization_flags = tuple(r[3] for r in rows)
        self.grad_centralization = any(self.grad_centralization_flags)

    def _rate(self, rate: Any, name: str) -> Any:
        """A learning rate as a Parameter or a schedule."""
        if isinstance(rate, LearningRateSchedule):
            return rate
        if isinstance(rate, Tensor):
            if rate.ndim > 1:
                raise ValueError(
                    f"For 'Optimizer', if 'learning_rate' is Tensor type, then the dimension of it should be 0 or 1, but got {rate.ndim}."
                )
            if rate.ndim == 1 and rate.size < 2:
                raise ValueError("For 'Optimizer', if 'learning_rate' is 1-D Tensor type, then the number of elements must be at least 2.")
            return _Iterator(rate, name) if rate.ndim else Parameter(cast(rate, types.float32), name=name)
        if isinstance(rate, Iterable):
            return _Iterator(list(rate), name)
        return Parameter(Tensor(_number(type(self).__name__, "learning rate", rate, 0.0), types.float32), name=name)

    # ------------------------------------------------------------------ what `construct` of subclasses calls
    def _is_dynamic_lr_or_weight_decay(self) -> bool:
        return bool(self.dynamic_lr or self.dynamic_weight_decay)

    def get_weight_decay(self) -> Any:
        """The weight decay of this step: a Tensor, or one for each parameter."""
        if not self.dynamic_weight_decay:
            return self.weight_decay
        schedule: Any = self.weight_decay
        if self.is_group:
            return tuple(cell(self.global_step) * self.loss_scale for cell in schedule)
        return schedule(self.global_step) * self.loss_scale

    def get_lr(self) -> Any:
        """The learning rate of this step: a Tensor, or one for each parameter where groups have their own.   A schedule's step is counted here."""
        rate = self.learning_rate
        if self.dynamic_lr:
            if self.is_group_lr:
                rate = tuple(ops.reshape(cell(self.global_step), ()) for cell in self.learning_rate)
            else:
                rate = ops.reshape(self.learning_rate(self.global_step), ())
        if self._is_dynamic_lr_or_weight_decay():
            self._count()
        return tuple(rate) if isinstance(rate, _SharedParameters) else rate

    def _count(self) -> None:
        self.assignadd(self.global_step, self.global_step_increase_tensor)

    def get_lr_parameter(self, param: Any) -> Any:
        """The learning rate of a parameter, or of each of a list."""
        if not isinstance(param, Parameter | list):
            raise TypeError(f"For 'get_lr_parameter', the 'param' must be 'Parameter' or 'list' type, but got {type(param)}.")
        rates = []
        for p in [param] if isinstance(param, Parameter) else param:
            place = next((i for i, q in enumerate(self.parameters) if q is p), None)
            if place is None:
                raise ValueError(f"For 'get_lr_parameter', the parameter {p.name} is not one of this optimizer.")
            rate = self.learning_rate[place] if self.is_group_lr else self.learning_rate
            rates.append(rate.learning_rate if isinstance(rate, _Iterator | _Constant) else rate)
        return rates[0] if isinstance(param, Parameter) else rates

    def flatten_gradients(self, gradients: Any) -> Any:
        """The gradients: many of them are one Program already."""
        return gradients

    def decay_weight(self, gradients: Any) -> Any:
        """Gradients plus weight decay times the parameters that decay."""
        if not self.exec_weight_decay:
            return gradients
        decay = self.get_weight_decay()
        each = decay if self.is_group else (decay,) * len(self.parameters)
        return tuple(
            ops.add(g, ops.mul(cast(p, g.dtype), cast(d, g.dtype))) if flag else g
            for g, p, d, flag in zip(gradients, self.parameters, each, self.decay_flags, strict=True)
        )

    def gradients_centralization(self, gradients: Any) -> Any:
        """Gradients of weights less their mean over all but the first dimension, where a group asked for it."""
        if not self.is_group or not self.grad_centralization:
            return gradients
        return tuple(
            g - ops.mean(g, tuple(range(1, g.ndim)), True) if centred and g.ndim > 1 else g
            for g, centred in zip(gradients, self.grad_centralization_flags, strict=True)
        )

    def scale_grad(self, gradients: Any) -> Any:
        """Gradients divided by the loss scale."""
        if not self.need_scale:
            return gradients
        return tuple(ops.mul(g, cast(self.reciprocal_scale, g.dtype)) for g in gradients)

    def _grad_sparse_indices_deduplicate(self, gradients: Any) -> Any:
        return gradients

    def _preprocess_weight_decay(self, weight_decay: Any) -> Any:
        return weight_decay

    def broadcast_params(self, optim_result: Any) -> Any:
        """The result: there is one device."""
        return optim_result

    def _prepared(self, gradients: Any) -> tuple[Any, ...]:
        """Gradients with weight decay, centred and unscaled."""
        gradients = tuple(gradients)
        if len(gradients) != len(self.parameters):
            raise ValueError(f"{type(self).__name__}: there must be {len(self.parameters)} gradients, got {len(gradients)}")
        return tuple(self.scale_grad(self.gradients_centralization(self.decay_weight(self.flatten_gradients(gradients)))))

    def _rates(self) -> tuple[Any, ...]:
        """The learning rate of each parameter; the step is counted."""
        rate = self.get_lr()
        if not self._is_dynamic_lr_or_weight_decay():
            self._count()
        return tuple(rate) if self.is_group_lr else (rate,) * len(self.parameters)

    @property
    def target(self) -> str:
        """Where the update runs."""
        return self._target

    @target.setter
    def target(self, value: str) -> None:
        self._set_base_target(value)

    def _set_base_target(self, value: str) -> None:
        if value not in ("CPU", "Ascend", "GPU"):
            raise ValueError(f"For 'Optimizer', the argument 'value' must be one of ['CPU', 'Ascend', 'GPU'], but got {value!r}.")
        object.__setattr__(self, "_target", value)

    @property
    def unique(self) -> bool:
        """Whether sparse gradients would be made unique."""
        return self._unique

    @unique.setter
    def unique(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"For 'Optimizer', the 'unique' must be bool, but got {type(value).__name__}.")
        object.__setattr__(self, "_unique", value)

    def construct(self, *hyper_params: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: construct must be defined")


class _SharedParameters(tuple[Parameter, ...]):
    """Learning rates, one for each parameter: one of them may serve several."""

    def __new__(cls, items: Iterable[Parameter]) -> _SharedParameters:
        return super().__new__(cls, items)


def _cells(cells: list[Cell]) -> CellList:
    found = CellList(auto_prefix=False)
    for i, cell in enumerate(cells):
        found._cells[str(i)] = cell
    return found


def _assign_add(param: Parameter, value: Any) -> Parameter:
    param._write(cast(param + value, param.dtype))
    return param


def update(target: Parameter, value: Tensor) -> bool:
    """The target becomes the value, in its own element type."""
    target._write(cast(value, target.dtype))
    return True


def zeros_like(params: ParameterTuple, prefix: str) -> ParameterTuple:
    """State of zeros for each parameter, float32 for narrower floats."""
    return filled_like(params, prefix, 0.0)


def filled_like(params: ParameterTuple, prefix: str, value: float) -> ParameterTuple:
    """State of one value for each parameter, float32 for narrower floats."""
    made = []
    for p in params:
        kind = np.float64 if p.dtype is types.float64 else np.float32
        made.append(Parameter(wrap(np.full(p.shape, value, kind)), name=f"{prefix}.{p.name}"))
    return ParameterTuple(made)


def wide(x: Tensor) -> Tensor:
    """A tensor in float32, where it is narrower."""
    return x if x.dtype in (types.float32, types.float64) else cast(x, types.float32)
