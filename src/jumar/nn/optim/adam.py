"""`Adam` and its kin: `AdamWeightDecay`, `AdaMax`, `LazyAdam`, `AdamOffload`, `Lamb`.

In: gradients.  Out: parameters moved by the ratio of the mean of gradients to their size.  Adam adds eps to sqrt(v) before the correction of the start, and
`AdamWeightDecay` knows no such correction: both are MindSpore's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar import ops
from jumar.frontend import dtype as types
from jumar.frontend.parameter import Parameter
from jumar.frontend.tensor import Tensor
from jumar.nn.optim.optimizer import Optimizer, _number, opt_init_args_register, update, wide, zeros_like


def _betas(owner: str, beta1: Any, beta2: Any, eps: Any) -> None:
    for name, value in (("beta1", beta1), ("beta2", beta2)):
        if isinstance(value, bool) or not isinstance(value, float):
            raise TypeError(f"For '{owner}', the '{name}' must be float, but got {type(value).__name__}.")
        if not 0.0 < value < 1.0:
            raise ValueError(f"For '{owner}', the '{name}' must be in range (0.0, 1.0), but got {value}.")
    _number(owner, "eps", eps, 0.0, strict=True)


class Adam(Optimizer):
    """m, v: running means of g and g^2; p -= rate sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + eps).

    use_nesterov: beta1 m + (1 - beta1) g for m.   use_amsgrad: the largest v so far.   use_lazy and use_offload change no result for dense gradients.
    """

    _power_shape: tuple[int, ...] = ()

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, use_locking: bool = False,
        use_nesterov: bool = False, weight_decay: Any = 0.0, loss_scale: float = 1.0, use_amsgrad: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        name = type(self).__name__
        unknown = set(kwargs) - {"use_lazy", "use_offload"}
        if unknown:
            raise TypeError(f"For '{name}', the keyword arguments must be use_lazy or use_offload, but got {sorted(unknown)}.")
        _betas(name, beta1, beta2, eps)
        flags = {"use_locking": use_locking, "use_nesterov": use_nesterov, "use_amsgrad": use_amsgrad, **kwargs}
        for label, flag in flags.items():
            if not isinstance(flag, bool):
                raise TypeError(f"For '{name}', the '{label}' must be bool, but got {type(flag).__name__}.")
        if kwargs.get("use_lazy") and kwargs.get("use_offload"):
            raise ValueError(f"For '{name}', 'use_lazy' and 'use_offload' can not both be True.")
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.use_nesterov, self.use_amsgrad = use_nesterov, use_amsgrad
        self.use_lazy, self.use_offload = kwargs.get("use_lazy", False), kwargs.get("use_offload", False)
        self.beta1_power = Parameter(Tensor(np.ones(self._power_shape, np.float32)), name="beta1_power")
        self.beta2_power = Parameter(Tensor(np.ones(self._power_shape, np.float32)), name="beta2_power")
        self.moment1 = zeros_like(self.parameters, "moment1")
        self.moment2 = zeros_like(self.parameters, "moment2")
        if use_amsgrad:
            self.vhat = zeros_like(self.parameters, "vhat")

    def construct(self, gradients: Any) -> Any:
        grads = self._prepared(gradients)
        b1, b2 = self.beta1, self.beta2
        power1, power2 = self.beta1_power * b1, self.beta2_power * b2
        update(self.beta1_power, power1)
        update(self.beta2_power, power2)
        correction = ops.reshape(ops.sqrt(1 - power2) / (1 - power1), ())
        done = []
        for i, (p, g, rate) in enumerate(zip(self.parameters, grads, self._rates(), strict=True)):
            g = wide(g)
            m = self.moment1[i] * b1 + g * (1 - b1)
            v = self.moment2[i] * b2 + g * g * (1 - b2)
            update(self.moment1[i], m)
            update(self.moment2[i], v)
            if self.use_amsgrad:
                v = ops.maximum(self.vhat[i], v)
                update(self.vhat[i], v)
            top = m * b1 + g * (1 - b1) if self.use_nesterov else m
            done.append(update(p, wide(p) - top * (rate * correction) / (ops.sqrt(v) + self.eps)))
        return tuple(done)


class LazyAdam(Adam):
    """Adam, which for sparse gradients would touch only their rows: ours are dense."""

    _power_shape = (1,)

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, use_locking: bool = False,
        use_nesterov: bool = False, weight_decay: Any = 0.0, loss_scale: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(params, learning_rate, beta1, beta2, eps, use_locking, use_nesterov, weight_decay, loss_scale)


class AdamOffload(LazyAdam):
    """Adam, whose update runs on the host: everything does."""


class AdamWeightDecay(Optimizer):
    """p -= rate (m / (sqrt(v) + eps) + weight_decay p)."""

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-6, weight_decay: Any = 0.0
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        _betas(type(self).__name__, beta1, beta2, eps)
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.moments1 = zeros_like(self.parameters, "adam_m")
        self.moments2 = zeros_like(self.parameters, "adam_v")

    def construct(self, gradients: Any) -> Any:
        grads = self.gradients_centralization(tuple(gradients))
        decay = self.get_weight_decay()
        decays = decay if self.is_group else (decay,) * len(self.parameters)
        b1, b2 = self.beta1, self.beta2
        done = []
        for i, (p, g, rate) in enumerate(zip(self.parameters, grads, self._rates(), strict=True)):
            g, w = wide(g), wide(p)
            m = self.moments1[i] * b1 + g * (1 - b1)
            v = self.moments2[i] * b2 + g * g * (1 - b2)
            update(self.moments1[i], m)
            update(self.moments2[i], v)
            step = m / (ops.sqrt(v) + self.eps)
            if self.exec_weight_decay and self.decay_flags[i]:
                step = step + w * decays[i]
            done.append(update(p, w - step * rate))
        return tuple(done)


class AdaMax(Optimizer):
    """v = max(beta2 v, |g|); p -= rate / (1 - beta1^t) m / (v + eps)."""

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, weight_decay: Any = 0.0,
        loss_scale: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        _betas("AdaMax", beta1, beta2, eps)
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.beta1_power = Parameter(Tensor(np.ones(1, np.float32)), name="beta1_power")
        self.moment1 = zeros_like(self.parameters, "moment1")
        self.moment2 = zeros_like(self.parameters, "moment2")

    def construct(self, gradients: Any) -> Any:
        grads = self._prepared(gradients)
        power = self.beta1_power * self.beta1
        update(self.beta1_power, power)
        correction = ops.reshape(1 / (1 - power), ())
        done = []
        for i, (p, g, rate) in enumerate(zip(self.parameters, grads, self._rates(), strict=True)):
            g = wide(g)
            m = self.moment1[i] * self.beta1 + g * (1 - self.beta1)
            v = ops.maximum(self.moment2[i] * self.beta2, ops.abs(g))
            update(self.moment1[i], m)
            update(self.moment2[i], v)
            done.append(update(p, wide(p) - m * (rate * correction) / (v + self.eps)))
        return tuple(done)


class Lamb(Optimizer):
    """Adam with weight decay, the step of each parameter as long as the parameter itself times the rate."""

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-6, weight_decay: Any = 0.0
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        _betas("Lamb", beta1, beta2, eps)
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.moments1 = zeros_like(self.parameters, "lamb_m")
        self.moments2 = zeros_like(self.parameters, "lamb_v")

    def construct(self, gradients: Any) -> Any:
        grads = self.gradients_centralization(tuple(gradients))
        decay = self.get_weight_decay()
        decays = decay if self.is_group else (decay,) * len(self.parameters)
        rates = self._rates()
        step = ops.reshape(ops.cast(self.global_step, types.float32), ())
        b1, b2 = self.beta1, self.beta2
        fix1, fix2 = 1 - ops.exp(step * float(np.log(b1))), 1 - ops.exp(step * float(np.log(b2)))
        done = []
        for i, (p, g, rate) in enumerate(zip(self.parameters, grads, rates, strict=True)):
            g, w = wide(g), wide(p)
            m = self.moments1[i] * b1 + g * (1 - b1)
            v = self.moments2[i] * b2 + g * g * (1 - b2)
            update(self.moments1[i], m)
            update(self.moments2[i], v)
            move = (m / fix1) / (ops.sqrt(v / fix2) + self.eps)
            if self.exec_weight_decay and self.decay_flags[i]:
                move = move + w * decays[i]
            norm_w, norm_m = ops.sqrt(ops.sum(w * w)), ops.sqrt(ops.sum(move * move))
            usable = ops.logical_and(norm_w > 0, norm_m > 0)
            ratio = ops.where(usable, norm_w / ops.where(norm_m > 0, norm_m, ops.ones_like(norm_m)), ops.ones_like(norm_w))
            done.append(update(p, w - move * (ratio * rate)))
        return tuple(done)
