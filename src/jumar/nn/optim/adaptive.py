"""Optimisers with a rate for each element: `Adagrad`, `ProximalAdagrad`, `RMSProp`, `Adadelta`, `FTRL`, `Rprop`, `ASGD`, `AdaFactor`.

In: gradients.  Out: parameters moved against them by steps that remember how large and how steady they were.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar import ops
from jumar.frontend import dtype as types
from jumar.frontend.parameter import Parameter, ParameterTuple
from jumar.frontend.tensor import Tensor, wrap
from jumar.nn.optim.optimizer import Optimizer, _number, filled_like, opt_init_args_register, update, wide, zeros_like


class Adagrad(Optimizer):
    """a += g^2; p -= rate g / sqrt(a)."""

    @opt_init_args_register
    def __init__(
        self, params: Any, accum: float = 0.1, learning_rate: Any = 0.001, update_slots: bool = True, loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.update_slots = update_slots
        self.accum = filled_like(self.parameters, "accum", _number("Adagrad", "accum", accum, 0.0))

    def construct(self, grads: Any) -> Any:
        done = []
        for p, g, rate, accum in zip(self.parameters, self._prepared(grads), self._rates(), self.accum, strict=True):
            g = wide(g)
            a = accum + g * g if self.update_slots else accum + 0.0
            update(accum, a)
            done.append(update(p, wide(p) - g * rate / ops.sqrt(a)))
        return tuple(done)


class ProximalAdagrad(Optimizer):
    """Adagrad, then a step towards zero: by l1, and divided by 1 + rate l2."""

    @opt_init_args_register
    def __init__(
        self, params: Any, accum: float = 0.1, learning_rate: Any = 0.001, l1: float = 0.0, l2: float = 0.0, use_locking: bool = False,
        loss_scale: float = 1.0, weight_decay: Any = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.accum = filled_like(self.parameters, "accum", _number("ProximalAdagrad", "accum", accum, 0.0))
        self.l1, self.l2 = _number("ProximalAdagrad", "l1", l1, 0.0), _number("ProximalAdagrad", "l2", l2, 0.0)

    def construct(self, grads: Any) -> Any:
        done = []
        for p, g, rate, accum in zip(self.parameters, self._prepared(grads), self._rates(), self.accum, strict=True):
            g = wide(g)
            a = accum + g * g
            update(accum, a)
            each = rate / ops.sqrt(a)
            near = wide(p) - g * each
            if self.l1 > 0:
                near = ops.sign(near) * ops.relu(ops.abs(near) - each * self.l1)
            done.append(update(p, near / (each * self.l2 + 1)))
        return tuple(done)


class RMSProp(Optimizer):
    """s = decay s + (1 - decay) g^2; v = momentum v + rate g / sqrt(s + epsilon); p -= v.   centered: s less the square of the mean of g."""

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any = 0.1, decay: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-10,
        use_locking: bool = False, centered: bool = False, loss_scale: float = 1.0, weight_decay: Any = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.decay, self.momentum = _number("RMSProp", "decay", decay, 0.0), _number("RMSProp", "momentum", momentum, 0.0)
        self.epsilon = _number("RMSProp", "epsilon", epsilon, 0.0, strict=True)
        if not isinstance(centered, bool):
            raise TypeError(f"For 'RMSProp', the 'centered' must be bool, but got {type(centered).__name__}.")
        self.centered = centered
        if centered:
            self.mg = zeros_like(self.parameters, "mean_grad")
        self.ms = filled_like(self.parameters, "mean_square", 1.0)
        self.moment = zeros_like(self.parameters, "moment")

    def construct(self, gradients: Any) -> Any:
        done = []
        for i, (p, g, rate) in enumerate(zip(self.parameters, self._prepared(gradients), self._rates(), strict=True)):
            g = wide(g)
            s = self.ms[i] * self.decay + g * g * (1 - self.decay)
            update(self.ms[i], s)
            if self.centered:
                mean = self.mg[i] * self.decay + g * (1 - self.decay)
                update(self.mg[i], mean)
                s = s - mean * mean
            v = self.moment[i] * self.momentum + g * rate / ops.sqrt(s + self.epsilon)
            update(self.moment[i], v)
            done.append(update(p, wide(p) - v))
        return tuple(done)


class Adadelta(Optimizer):
    """a = rho a + (1 - rho) g^2; u = g sqrt(d + epsilon) / sqrt(a + epsilon); d = rho d + (1 - rho) u^2; p -= rate u."""

    @opt_init_args_register
    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1.0,
        rho: float = 0.9,
        epsilon: float = 1e-6,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"For 'Adadelta', the 'rho' must be in range [0.0, 1.0], but got {rho}.")
        self.rho, self.epsilon = float(rho), _number("Adadelta", "epsilon", epsilon, 0.0)
        self.accum = zeros_like(self.parameters, "accum")
        self.accum_update = zeros_like(self.parameters, "accum_update")

    def construct(self, grads: Any) -> Any:
        done = []
        for i, (p, g, rate) in enumerate(zip(self.parameters, self._prepared(grads), self._rates(), strict=True)):
            g = wide(g)
            a = self.accum[i] * self.rho + g * g * (1 - self.rho)
            step = ops.sqrt(self.accum_update[i] + self.epsilon) / ops.sqrt(a + self.epsilon) * g
            update(self.accum[i], a)
            update(self.accum_update[i], self.accum_update[i] * self.rho + step * step * (1 - self.rho))
            done.append(update(p, wide(p) - step * rate))
        return tuple(done)


class FTRL(Optimizer):
    """Follow the regularised leader.   Weight decay applies to every parameter."""

    @opt_init_args_register
    def __init__(
        self, params: Any, initial_accum: float = 0.1, learning_rate: Any = 0.001, lr_power: float = -0.5, l1: float = 0.0, l2: float = 0.0,
        use_locking: bool = False, loss_scale: float = 1.0, weight_decay: Any = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        if self.dynamic_lr or self.is_group_lr:
            raise ValueError("For 'FTRL', dynamic learning rate and group learning rate are currently not supported.")
        if lr_power > 0:
            raise ValueError(f"For 'FTRL', the 'lr_power' must be at most 0.0, but got {lr_power}.")
        self.lr_power, self.l1, self.l2 = float(lr_power), _number("FTRL", "l1", l1, 0.0), _number("FTRL", "l2", l2, 0.0)
        self.moments = filled_like(self.parameters, "moments", _number("FTRL", "initial_accum", initial_accum, 0.0))
        self.linear = zeros_like(self.parameters, "linear")
        if not self.is_group:
            self.decay_flags = (True,) * len(self.parameters)

    def construct(self, grads: Any) -> Any:
        done = []
        for i, (p, g, rate) in enumerate(zip(self.parameters, self._prepared(grads), self._rates(), strict=True)):
            g, w = wide(g), wide(p)
            before, after = self.moments[i], self.moments[i] + g * g
            if self.lr_power == -0.5:
                low, high = ops.sqrt(before), ops.sqrt(after)
            else:
                low, high = ops.pow(before, -self.lr_power), ops.pow(after, -self.lr_power)
            linear = self.linear[i] + g - (high - low) / rate * w
            below = high / rate + 2 * self.l2
            new = (ops.sign(linear) * self.l1 - linear) / below
            update(self.moments[i], after)
            update(self.linear[i], linear)
            done.append(update(p, ops.where(ops.abs(linear) > self.l1, new, ops.zeros_like(new))))
        return tuple(done)


class Rprop(Optimizer):
    """Steps by the sign of the gradient, longer while it stays and shorter when it changes."""

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any = 0.1, etas: tuple[float, float] = (0.5, 1.2), step_sizes: tuple[float, float] = (1e-6, 50.0),
        weight_decay: Any = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay)
        if not isinstance(etas, tuple) or not isinstance(step_sizes, tuple):
            raise TypeError(f"For 'Rprop', 'etas' and 'step_sizes' must be tuples, but got {etas!r} and {step_sizes!r}.")
        if len(etas) != 2 or not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"For 'Rprop', the 'etas' must be (below 1, above 1), but got {etas}.")
        if len(step_sizes) != 2 or step_sizes[0] > step_sizes[1]:
            raise ValueError(f"For 'Rprop', the 'step_sizes' must be (smallest, largest), but got {step_sizes}.")
        self.etaminus, self.etaplus = etas
        self.step_size_min, self.step_size_max = step_sizes
        self.prev = zeros_like(self.parameters, "prev")
        self.step_size = zeros_like(self.parameters, "step_size")

    def construct(self, gradients: Any) -> Any:
        grads, rates = self._prepared(gradients), self._rates()
        first = ops.reshape(self.global_step, ()) == 1
        done = []
        for i, (p, g, rate) in enumerate(zip(self.parameters, grads, rates, strict=True)):
            g = wide(g)
            size = ops.where(first, ops.ones_like(g) * rate, self.step_size[i])
            turn = g * self.prev[i]
            factor = ops.where(turn > 0, self.etaplus, ops.where(turn < 0, self.etaminus, ops.ones_like(g)))
            size = ops.minimum(ops.maximum(size * factor, self.step_size_min), self.step_size_max)
            g = ops.where(turn < 0, ops.zeros_like(g), g)
            update(self.step_size[i], size)
            update(self.prev[i], g)
            done.append(update(p, wide(p) - ops.sign(g) * size))
        return all(done)


class ASGD(Optimizer):
    """Gradient descent with a running mean of the parameters, `ax_`."""

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any = 0.1, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6, weight_decay: Any = 0.0
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self.lambd, self.alpha, self.t0 = float(lambd), float(alpha), float(t0)

        def scalars(prefix: str) -> ParameterTuple:
            return ParameterTuple(
                Parameter(wrap(np.zeros((), np.float32) if prefix == "eta" else np.ones((), np.float32)), name=f"{prefix}_{p.name}")
                for p in self.parameters
            )

        self.mu, self.eta = scalars("mu"), scalars("eta")
        self.ax = zeros_like(self.parameters, "ax_")

    def construct(self, gradients: Any) -> Any:
        grads, rates = self._prepared(gradients), self._rates()
        step = ops.reshape(ops.cast(self.global_step, types.float32), ())
        done = []
        for i, (p, g, rate) in enumerate(zip(self.parameters, grads, rates, strict=True)):
            mu, eta, ax = self.mu[i], self.eta[i], self.ax[i]
            g = wide(g)
            now = ops.where(step == 1, rate, eta)
            w = wide(p) * (1 - now * self.lambd) - g * now
            update(ax, ax + (w - ax) * mu)
            update(eta, rate / ops.pow(step * rate * self.lambd + 1, self.alpha))
            update(mu, 1 / ops.maximum(step - self.t0, 1.0))
            done.append(update(p, w))
        return all(done)


class AdaFactor(Optimizer):
    """Adam whose second moment of matrices is kept as rows and columns."""

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any = None, eps: tuple[float, float] = (1e-30, 1e-3), clip_threshold: float = 1.0,
        decay_rate: float = 0.8, beta1: float = 0.9, weight_decay: Any = 0.0, scale_parameter: bool = True, relative_step: bool = True,
        warmup_init: bool = False, compression: bool = False, loss_scale: float = 1.0,
    ) -> None:  # fmt: skip
        if learning_rate is not None and relative_step:
            raise ValueError("For AdaFactor, cannot combine manual lr and relative_step options.")
        if warmup_init and not relative_step:
            raise ValueError("For AdaFactor, warmup_init requires relative_step=True.")
        if learning_rate is None and not relative_step:
            raise ValueError("For AdaFactor, learning_rate must be given where relative_step is False.")
        super().__init__(0.0 if learning_rate is None else learning_rate, params, weight_decay, loss_scale)
        self.eps, self.clip_threshold, self.decay_rate, self.beta1 = eps, clip_threshold, decay_rate, beta1
        self.scale_parameter, self.relative_step, self.warmup_init, self.compression = (
            scale_parameter,
            relative_step,
            warmup_init,
            compression,
        )
        self.use_first_moment = beta1 > 0
        if self.use_first_moment:
            self.exp_avg = zeros_like(self.parameters, "exp_avg")
        rows: list[Parameter] = []
        columns: list[Parameter] = []
        whole: list[Parameter] = []
        for p in self.parameters:
            factored = p.ndim >= 2
            parts = (
                (rows, "exp_avg_sq_row", p.shape[:-1] if factored else (1,)),
                (columns, "exp_avg_sq_col", (*p.shape[:-2], p.shape[-1]) if factored else (1,)),
                (whole, "exp_avg_sq", (1,) if factored else p.shape),
            )
            for found, name, shape in parts:
                found.append(Parameter(wrap(np.zeros(shape, np.float32)), name=f"{name}_{p.name}"))
        self.exp_avg_sq_row, self.exp_avg_sq_col = ParameterTuple(rows), ParameterTuple(columns)
        self.exp_avg_sq = ParameterTuple(whole)
        self.step = Parameter(Tensor(np.zeros(1, np.float32)), name="afactor_step")

    def construct(self, gradients: Any) -> Any:
        grads = self.scale_grad(self.gradients_centralization(self.flatten_gradients(tuple(gradients))))
        decay = self.get_weight_decay()
        decays = decay if self.is_group else (decay,) * len(self.parameters)
        rates = self._rates()
        update(self.step, self.step + 1)
        step = ops.reshape(self.step + 0.0, ())
        beta2 = 1 - ops.pow(step, -self.decay_rate)
        done = []
        for i, (p, g, rate) in enumerate(zip(self.parameters, grads, rates, strict=True)):
            g, w = wide(g), wide(p)
            if self.relative_step:
                least = step * 1e-6 if self.warmup_init else 1e-2
                rate = ops.minimum(ops.rsqrt(step), least)
            if self.scale_parameter:
                rate = rate * ops.maximum(ops.sqrt(ops.mean(w * w)), self.eps[1])
            square = g * g + self.eps[0]
            if p.ndim >= 2:
                row = self.exp_avg_sq_row[i] * beta2 + ops.mean(square, -1) * (1 - beta2)
                column = self.exp_avg_sq_col[i] * beta2 + ops.mean(square, -2) * (1 - beta2)
                update(self.exp_avg_sq_row[i], row)
                update(self.exp_avg_sq_col[i], column)
                by_row = ops.expand_dims(ops.rsqrt(row / ops.mean(row, -1, True)), -1)
                move = by_row * ops.expand_dims(ops.rsqrt(column), -2) * g
            else:
                v = self.exp_avg_sq[i] * beta2 + square * (1 - beta2)
                update(self.exp_avg_sq[i], v)
                move = ops.rsqrt(v) * g
            move = move / ops.maximum(ops.sqrt(ops.mean(move * move)) / self.clip_threshold, 1.0) * rate
            if self.use_first_moment:
                move = self.exp_avg[i] * self.beta1 + move * (1 - self.beta1)
                update(self.exp_avg[i], move)
            if self.exec_weight_decay and self.decay_flags[i]:
                move = move + w * (decays[i] * rate)
            done.append(update(p, w - move))
        return tuple(done)
