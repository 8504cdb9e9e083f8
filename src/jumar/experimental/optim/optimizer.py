"""`Optimizer` in PyTorch's manner: groups of parameters as dicts in `param_groups`, whose `lr` may change at any time.

In: parameters or groups, and defaults.  Out: a cell that is called with the gradients.  A group's `lr` is a Parameter: a change of it recompiles nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from jumar import ops
from jumar.frontend import dtype as types
from jumar.frontend.parameter import Parameter, ParameterTuple
from jumar.frontend.promote import cast
from jumar.frontend.tensor import Tensor, wrap
from jumar.nn.cell import Cell
from jumar.nn.optim.optimizer import update, wide

__all__ = ["Optimizer"]


class Optimizer(Cell):
    """The base.   params: Parameters, or dicts with `params` and options.   defaults: options of groups that do not have them."""

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        super().__init__(auto_prefix=False)
        if isinstance(params, Parameter) or not isinstance(params, Iterable):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Parameters or dicts, but got " + type(params).__name__
            )
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self.group_start_id = [0]
        self.parameters: Any = ()
        groups = list(params)
        if not groups:
            raise ValueError("For 'Optimizer', the parameters must not be empty.")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for i, group in enumerate(groups):
            self.add_param_group(i, group)

    def add_param_group(self, group_id: int, param_group: dict[str, Any]) -> None:
        """One more group."""
        if not isinstance(param_group, dict):
            raise TypeError(f"Optimizer: a group must be a dict, got {type(param_group).__name__}")
        group = dict(param_group)
        found = group["params"]
        members = [found] if isinstance(found, Parameter) else list(found)
        if not members or not all(isinstance(p, Parameter) for p in members):
            raise TypeError("Optimizer: the params of a group must be Parameters, at least one")
        known = {id(p) for g in self.param_groups for p in g["params"]}
        if any(id(p) in known for p in members):
            raise ValueError("some parameters appear in more than one parameter group")
        group["params"] = members
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        if "lr" in group:
            group["lr"] = self._build_single_lr(group["lr"], f"learning_rate_group_{group_id}")
        if group.get("weight_decay", 0) is not None and group.get("weight_decay", 0) < 0:
            raise ValueError(f"Invalid weight_decay value: {group['weight_decay']}")
        self.param_groups.append(group)
        self.group_start_id.append(self.group_start_id[-1] + len(members))
        self.__dict__.pop("parameters", None)
        self.parameters = ParameterTuple(p for g in self.param_groups for p in g["params"])

    @staticmethod
    def _build_single_lr(lr: Any, name: str) -> Parameter:
        value = float(lr.asnumpy()) if isinstance(lr, Tensor) else lr
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"Optimizer: lr must be a number, got {type(lr).__name__}")
        if value < 0:
            raise ValueError(f"Invalid learning rate: {value}")
        return Parameter(Tensor(float(value), types.float32), name=name)

    def _each(self, gradients: Any) -> Iterator[tuple[dict[str, Any], Any, int, Parameter, Tensor]]:
        """(group, rate, place, parameter, gradient in float32) of all parameters; an `lr` that the user replaced by a number is taken as it is."""
        gradients = tuple(gradients)
        if len(gradients) != len(self.parameters):
            raise ValueError(f"{type(self).__name__}: there must be {len(self.parameters)} gradients, got {len(gradients)}")
        place = 0
        for group in self.param_groups:
            for p in group["params"]:
                g = wide(gradients[place])
                if group.get("maximize"):
                    g = -g
                yield group, group["lr"], place, p, g
                place += 1

    def _decay_weight(self, weight_decay: float, params: Any, gradients: Any) -> Any:
        """Gradients plus weight_decay times parameters."""
        return tuple(wide(g) + wide(p) * weight_decay for g, p in zip(gradients, params, strict=True)) if weight_decay else gradients

    def _state(self, prefix: str, value: float = 0.0) -> ParameterTuple:
        made = []
        for p in self.parameters:
            kind = np.float64 if p.dtype is types.float64 else np.float32
            made.append(Parameter(wrap(np.full(p.shape, value, kind)), name=f"{prefix}.{p.name}"))
        return ParameterTuple(made)

    def _steps(self, name: str = "step_t") -> Parameter:
        return Parameter(Tensor(0, types.int32), name=name)

    @staticmethod
    def _next(step: Parameter) -> Tensor:
        """Counts a step; its number as a float."""
        step._write(cast(step + 1, step.dtype))
        return ops.reshape(cast(step + 0, types.float32), ())  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            for key in sorted(group):
                if key != "params":
                    value = group[key]
                    lines.append(f"    {key}: {float(value.asnumpy()) if isinstance(value, Tensor) else value}")
        return "\n".join([*lines, ")"])

    def construct(self, *hyper_params: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: construct must be defined")


def decayed(group: dict[str, Any], p: Parameter, g: Tensor) -> Tensor:
    """The gradient plus weight decay."""
    return g + wide(p) * group["weight_decay"] if group["weight_decay"] else g


def power(base: float, step: Tensor) -> Tensor:
    """base^step, as a tensor."""
    return ops.pow(base, step) if base > 0 else step * 0.0


__all__ += ["decayed", "power", "update", "wide"]
