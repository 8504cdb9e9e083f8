"""`mindspore.mint.optim`: `SGD`, `Adam`, `AdamW`, as PyTorch has them.

In: gradients.  Out: parameters moved against them.  The same as `experimental.optim`, with the state that checkpoints of this room have.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar import ops
from jumar.experimental.optim.adam import Adam as _Adam
from jumar.experimental.optim.optimizer import Optimizer, decayed, update, wide
from jumar.frontend.parameter import Parameter
from jumar.frontend.tensor import Tensor

__all__ = ["Adam", "AdamW", "FusedAdamW", "SGD"]


class SGD(Optimizer):
    """v = momentum v + (1 - dampening) g, v = g at the first step; p -= lr v."""

    def __init__(
        self, params: Any, lr: Any, momentum: float = 0, dampening: float = 0, weight_decay: float = 0, nesterov: bool = False, *,
        maximize: bool = False,
    ) -> None:  # fmt: skip
        if momentum < 0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening.")
        super().__init__(
            params,
            {
                "lr": lr, "momentum": momentum, "weight_decay": weight_decay, "dampening": dampening, "nesterov": nesterov, "maximize": maximize,
            },
        )  # fmt: skip
        self.momentum_buf = self._state("momentum_buf")
        self.step_t = self._steps()

    def construct(self, gradients: Any) -> Any:
        first = ops.equal(self._next(self.step_t), 1)
        for group, rate, i, p, g in self._each(gradients):
            g, momentum = decayed(group, p, g), group["momentum"]
            if momentum:
                v = ops.where(first, g, self.momentum_buf[i] * momentum + g * (1 - group["dampening"]))
                update(self.momentum_buf[i], v)
                g = g + v * momentum if group["nesterov"] else v
            update(p, wide(p) - g * rate)
        return True


class Adam(_Adam):
    """p -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)."""

    def _make_state(self) -> None:
        self.exp_avg = self._state("exp_avg")
        self.exp_avg_sq = self._state("exp_avg_sq")
        if any(g["amsgrad"] for g in self.param_groups):
            self.max_exp_avg_sq = self._state("max_exp_avg_sq")
        self.state_step = Parameter(Tensor(np.zeros(1, np.float32)), name="state_step")


class AdamW(Adam):
    """Adam, which shrinks parameters by lr weight_decay apart from the gradient."""

    _decoupled = True

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2, amsgrad: bool = False, *,
        maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


class FusedAdamW(AdamW):
    """AdamW; the updates of all parameters are one Program in any case."""
