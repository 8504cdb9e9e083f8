"""`Adam`, `AdamW`, `Adamax`, `NAdam` and `RAdam` in PyTorch's manner.

In: gradients.  Out: parameters moved by the ratio of the mean of gradients to their size, both corrected for the start.
"""

from __future__ import annotations

from typing import Any

from jumar import ops
from jumar.experimental.optim.optimizer import Optimizer, decayed, power, update, wide
from jumar.frontend import dtype as types
from jumar.frontend.parameter import Parameter
from jumar.frontend.tensor import Tensor


def _checked(betas: Any, eps: float) -> None:
    if eps < 0:
        raise ValueError(f"Invalid epsilon value: {eps}")
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


class Adam(Optimizer):
    """p -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps).   amsgrad: the largest v so far."""

    _decoupled = False

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0, amsgrad: bool = False, *,
        maximize: bool = False,
    ) -> None:  # fmt: skip
        _checked(betas, eps)
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize}
        )
        self._make_state()

    def _make_state(self) -> None:
        self.exp_avg = self._state("exp_avg")
        self.exp_avg_sq = self._state("exp_avg_sq")
        self.max_exp_avg_sq: Any = self._state("max_exp_avg_sq")
        self.state_step = self._steps("state_step")

    def construct(self, gradients: Any) -> Any:
        step = self._next(self.state_step)
        for group, rate, i, p, g in self._each(gradients):
            (b1, b2), w = group["betas"], wide(p)
            if self._decoupled:
                w = w * (1 - rate * group["weight_decay"])
            else:
                g = decayed(group, p, g)
            m = self.exp_avg[i] * b1 + g * (1 - b1)
            v = self.exp_avg_sq[i] * b2 + g * g * (1 - b2)
            update(self.exp_avg[i], m)
            update(self.exp_avg_sq[i], v)
            if group["amsgrad"]:
                v = ops.maximum(self.max_exp_avg_sq[i], v)
                update(self.max_exp_avg_sq[i], v)
            below = ops.sqrt(v) / ops.sqrt(1 - power(b2, step)) + group["eps"]
            update(p, w - m * (rate / (1 - power(b1, step))) / below)
        return True


class AdamW(Adam):
    """Adam, which shrinks parameters by lr weight_decay apart from the gradient."""

    _decoupled = True

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2, amsgrad: bool = False, *,
        maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


class Adamax(Optimizer):
    """p -= lr / (1 - b1^t) m / max(b2 v, |g| + eps)."""

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        _checked(betas, eps)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize})
        self.step_t = self._steps()
        self.exp_avg = self._state("exp_avg")
        self.exp_inf = self._state("exp_inf")

    def construct(self, gradients: Any) -> Any:
        step = self._next(self.step_t)
        for group, rate, i, p, g in self._each(gradients):
            b1, b2 = group["betas"]
            g = decayed(group, p, g)
            m = self.exp_avg[i] * b1 + g * (1 - b1)
            v = ops.maximum(self.exp_inf[i] * b2, ops.abs(g) + group["eps"])
            update(self.exp_avg[i], m)
            update(self.exp_inf[i], v)
            update(p, wide(p) - m * (rate / (1 - power(b1, step))) / v)
        return True


class NAdam(Optimizer):
    """Adam that looks ahead along its momentum, which grows with the steps."""

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
    ) -> None:
        _checked(betas, eps)
        if momentum_decay < 0:
            raise ValueError(f"Invalid momentum_decay value: {momentum_decay}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay})
        self.step_t = self._steps()
        self.exp_avg = self._state("exp_avg")
        self.exp_avg_sq = self._state("exp_avg_sq")
        self._products = [Parameter(Tensor(1.0, types.float32), name=f"mu_product_{i}") for i in range(len(self.param_groups))]

    def construct(self, gradients: Any) -> Any:
        step = self._next(self.step_t)
        done: dict[int, tuple[Any, ...]] = {}
        for group, rate, i, p, g in self._each(gradients):
            b1, b2 = group["betas"]
            if id(group) not in done:
                place = next(k for k, other in enumerate(self.param_groups) if other is group)
                psi = group["momentum_decay"]
                now = b1 * (1 - 0.5 * power(0.96, step * psi))
                ahead = b1 * (1 - 0.5 * power(0.96, (step + 1) * psi))
                product = self._products[place] * now
                update(self._products[place], product)
                done[id(group)] = (now, ahead, product)
            now, ahead, product = done[id(group)]
            g = decayed(group, p, g)
            m = self.exp_avg[i] * b1 + g * (1 - b1)
            v = self.exp_avg_sq[i] * b2 + g * g * (1 - b2)
            update(self.exp_avg[i], m)
            update(self.exp_avg_sq[i], v)
            below = ops.sqrt(v / (1 - power(b2, step))) + group["eps"]
            move = g * ((1 - now) / (1 - product)) + m * (ahead / (1 - product * ahead))
            update(p, wide(p) - move * rate / below)
        return True


class RAdam(Optimizer):
    """Adam that leaves out the division while the variance is not known well."""

    def __init__(self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0) -> None:
        _checked(betas, eps)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self.step_t = self._steps()
        self.exp_avg = self._state("exp_avg")
        self.exp_avg_sq = self._state("exp_avg_sq")

    def construct(self, gradients: Any) -> Any:
        step = self._next(self.step_t)
        for group, rate, i, p, g in self._each(gradients):
            b1, b2 = group["betas"]
            g = decayed(group, p, g)
            m = self.exp_avg[i] * b1 + g * (1 - b1)
            v = self.exp_avg_sq[i] * b2 + g * g * (1 - b2)
            update(self.exp_avg[i], m)
            update(self.exp_avg_sq[i], v)
            left2 = 1 - power(b2, step)
            corrected = m / (1 - power(b1, step))
            most = 2 / (1 - b2) - 1
            length = most - 2 * step * power(b2, step) / left2
            sure = length > 5.0
            safe = ops.where(sure, length, ops.ones_like(length) * 6.0)
            rectified = ops.sqrt((safe - 4) * (safe - 2) * most / ((most - 4) * (most - 2) * safe))
            factor = ops.where(sure, rectified * ops.sqrt(left2) / (ops.sqrt(v) + group["eps"]), ops.ones_like(v))
            update(p, wide(p) - corrected * rate * factor)
        return True
