"""`SGD`, `RMSprop`, `Rprop`, `Adagrad`, `Adadelta` and `ASGD` in PyTorch's manner.

In: gradients.  Out: parameters moved against them.
"""

from __future__ import annotations

from typing import Any

from jumar import ops
from jumar.experimental.optim.optimizer import Optimizer, decayed, update, wide
from jumar.frontend import dtype as types
from jumar.frontend.parameter import Parameter
from jumar.frontend.tensor import Tensor


def _at_least_zero(**values: float) -> None:
    for name, value in values.items():
        if value < 0:
            raise ValueError(f"Invalid {name} value: {value}")


class SGD(Optimizer):
    """v = momentum v + (1 - dampening) g, v = g at the first step; p -= lr v."""

    _accum, _first = "accum", "stat"

    def __init__(
        self, params: Any, lr: Any, momentum: float = 0, dampening: float = 0, weight_decay: float = 0.0, nesterov: bool = False, *,
        maximize: bool = False,
    ) -> None:  # fmt: skip
        _at_least_zero(momentum=momentum)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening.")
        super().__init__(
            params,
            {
                "lr": lr, "momentum": float(momentum), "dampening": float(dampening), "weight_decay": float(weight_decay), "nesterov": nesterov,
                "maximize": maximize, "grad_centralization": False,
            },
        )  # fmt: skip
        self.accum = self._state("accum")
        self.stat = self._state("stat", 1.0)

    def construct(self, gradients: Any) -> Any:
        for group, rate, i, p, g in self._each(gradients):
            g = decayed(group, p, g)
            momentum = group["momentum"]
            if momentum:
                v = ops.where(self.stat[i] > 0, g, self.accum[i] * momentum + g * (1 - group["dampening"]))
                update(self.accum[i], v)
                update(self.stat[i], self.stat[i] * 0)
                g = g + v * momentum if group["nesterov"] else v
            update(p, wide(p) - g * rate)
        return True


class RMSprop(Optimizer):
    """s = alpha s + (1 - alpha) g^2; v = momentum v + g / (sqrt(s) + eps); p -= lr v."""

    def __init__(
        self, params: Any, lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0.0, momentum: float = 0.0,
        centered: bool = False, maximize: bool = False,
    ) -> None:  # fmt: skip
        _at_least_zero(alpha=alpha, epsilon=eps, momentum=momentum)
        super().__init__(
            params,
            {
                "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered, "weight_decay": weight_decay,
                "maximize": maximize,
            },
        )  # fmt: skip
        self.mean_grad = self._state("mean_grad")
        self.mean_square = self._state("mean_square")
        self.moment = self._state("moment")

    def construct(self, gradients: Any) -> Any:
        for group, rate, i, p, g in self._each(gradients):
            g, alpha = decayed(group, p, g), group["alpha"]
            s = self.mean_square[i] * alpha + g * g * (1 - alpha)
            update(self.mean_square[i], s)
            if group["centered"]:
                mean = self.mean_grad[i] * alpha + g * (1 - alpha)
                update(self.mean_grad[i], mean)
                s = s - mean * mean
            move = g / (ops.sqrt(s) + group["eps"])
            if group["momentum"] > 0:
                move = self.moment[i] * group["momentum"] + move
                update(self.moment[i], move)
            update(p, wide(p) - move * rate)
        return True


class Rprop(Optimizer):
    """Steps by the sign of the gradient, longer while it stays and shorter when it changes."""

    def __init__(
        self, params: Any, lr: Any = 1e-2, etas: Any = (0.5, 1.2), step_sizes: Any = (1e-6, 50), *, maximize: bool = False
    ) -> None:
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize, "weight_decay": 0.0})
        self.prev = self._state("prev")
        self.step_size = self._state("step_size")
        self.step_t = self._steps()

    def construct(self, gradients: Any) -> Any:
        first = ops.equal(self._next(self.step_t), 1)
        for group, rate, i, p, g in self._each(gradients):
            (minus, plus), (least, most) = group["etas"], group["step_sizes"]
            size = ops.where(first, ops.ones_like(g) * rate, self.step_size[i])
            turn = g * self.prev[i]
            factor = ops.where(turn > 0, plus, ops.where(turn < 0, minus, ops.ones_like(g)))
            size = ops.minimum(ops.maximum(size * factor, least), most)
            g = ops.where(turn < 0, ops.zeros_like(g), g)
            update(self.step_size[i], size)
            update(self.prev[i], g)
            update(p, wide(p) - ops.sign(g) * size)
        return True


class Adagrad(Optimizer):
    """a += g^2; p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(a) + eps)."""

    def __init__(
        self, params: Any, lr: Any = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0, initial_accumulator_value: float = 0.0,
        eps: float = 1e-10, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        _at_least_zero(lr_decay=lr_decay, epsilon=eps, initial_accumulator_value=initial_accumulator_value)
        super().__init__(
            params,
            {
                "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay, "initial_accumulator_value": initial_accumulator_value,
                "maximize": maximize,
            },
        )  # fmt: skip
        self.accum = self._state("accum", initial_accumulator_value)
        self.step_t = self._steps()

    def construct(self, gradients: Any) -> Any:
        step = self._next(self.step_t)
        for group, rate, i, p, g in self._each(gradients):
            g = decayed(group, p, g)
            a = self.accum[i] + g * g
            update(self.accum[i], a)
            now = rate / ((step - 1) * group["lr_decay"] + 1)
            update(p, wide(p) - g * now / (ops.sqrt(a) + group["eps"]))
        return True


class Adadelta(Optimizer):
    """a = rho a + (1 - rho) g^2; u = g sqrt(d + eps) / sqrt(a + eps); d = rho d + (1 - rho) u^2; p -= lr u."""

    def __init__(
        self, params: Any, lr: Any = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0, *, maximize: bool = False
    ) -> None:
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        _at_least_zero(epsilon=eps)
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize})
        self.accum = self._state("accum")
        self.accum_update = self._state("accum_update")

    def construct(self, gradients: Any) -> Any:
        for group, rate, i, p, g in self._each(gradients):
            g, rho, eps = decayed(group, p, g), group["rho"], group["eps"]
            a = self.accum[i] * rho + g * g * (1 - rho)
            move = ops.sqrt(self.accum_update[i] + eps) / ops.sqrt(a + eps) * g
            update(self.accum[i], a)
            update(self.accum_update[i], self.accum_update[i] * rho + move * move * (1 - rho))
            update(p, wide(p) - move * rate)
        return True


class ASGD(Optimizer):
    """Gradient descent with a running mean of the parameters, `ax`."""

    def __init__(
        self, params: Any, lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6, weight_decay: float = 0.0,
        maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "maximize": maximize})
        self.ax = self._state("ax")
        self.step_t = self._steps()
        self._etas = [Parameter(Tensor(0.0, types.float32), name=f"eta_{i}") for i in range(len(self.param_groups))]
        self._mus = [Parameter(Tensor(1.0, types.float32), name=f"mu_{i}") for i in range(len(self.param_groups))]

    def construct(self, gradients: Any) -> Any:
        step = self._next(self.step_t)
        scalars = []
        for eta, mu, group in zip(self._etas, self._mus, self.param_groups, strict=True):
            now, share = ops.where(ops.equal(step, 1), group["lr"] + 0.0, eta), mu + 0.0
            scalars.append((now, share))
            update(eta, group["lr"] / ops.pow(step * group["lr"] * group["lambd"] + 1, group["alpha"]))
            update(mu, 1 / ops.maximum(step - group["t0"], 1.0))
        for group, _, i, p, g in self._each(gradients):
            place = next(k for k, other in enumerate(self.param_groups) if other is group)
            now, share = scalars[place]
            w = wide(p) * (1 - now * group["lambd"]) - decayed(group, p, g) * now
            update(self.ax[i], self.ax[i] + (w - self.ax[i]) * share)
            update(p, w)
        return True
