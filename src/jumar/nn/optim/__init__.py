"""Optimisers."""

from __future__ import annotations

from typing import Any

from jumar.nn.optim.adam import Adam, AdaMax, AdamOffload, AdamWeightDecay, Lamb, LazyAdam
from jumar.nn.optim.adaptive import ASGD, FTRL, Adadelta, AdaFactor, Adagrad, ProximalAdagrad, RMSProp, Rprop
from jumar.nn.optim.momentum import LARS, SGD, Momentum
from jumar.nn.optim.optimizer import Optimizer, opt_init_args_register

__all__ = [
    "ASGD", "AdaFactor", "AdaMax", "AdaSumByDeltaWeightWrapCell", "AdaSumByGradWrapCell", "Adadelta", "Adagrad", "Adam", "AdamOffload",
    "AdamWeightDecay", "FTRL", "LARS", "Lamb", "LazyAdam", "Momentum", "OptTFTWrapper", "Optimizer", "ProximalAdagrad", "RMSProp", "Rprop", "SGD",
    "opt_init_args_register", "thor",
]  # fmt: skip


def thor(*args: Any, **kwargs: Any) -> Any:
    """Second-order optimisation is not supported."""
    raise NotImplementedError("nn.thor: second-order optimisation is not supported; nn.Momentum, nn.Adam and nn.Lamb are")


def _of_several_devices(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"nn.{name}: training on several devices is not supported; use the optimizer itself")

    return refuse


AdaSumByDeltaWeightWrapCell = _of_several_devices("AdaSumByDeltaWeightWrapCell")
AdaSumByGradWrapCell = _of_several_devices("AdaSumByGradWrapCell")
OptTFTWrapper = _of_several_devices("OptTFTWrapper")
