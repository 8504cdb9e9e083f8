"""`SGD`, `Momentum` and `LARS`.

In: gradients.  Out: parameters moved against them, with memory of earlier gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jumar import log, ops
from jumar.base import config
from jumar.frontend import dtype as types
from jumar.frontend.parameter import Parameter, ParameterTuple
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell
from jumar.nn.optim.optimizer import Optimizer, _number, filled_like, opt_init_args_register, update, wide, zeros_like


class SGD(Optimizer):
    """v = momentum v + (1 - dampening) g, v = g at the first step; p -= rate v.   nesterov: p -= rate (g + momentum v)."""

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any = 0.1, momentum: float = 0.0, dampening: float = 0.0, weight_decay: Any = 0.0,
        nesterov: bool = False, loss_scale: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        momentum = _number("SGD", "momentum", momentum, 0.0)
        dampening = _number("SGD", "dampening", dampening, 0.0)
        if not isinstance(nesterov, bool):
            raise TypeError(f"For 'SGD', the 'nesterov' must be bool, but got {type(nesterov).__name__}.")
        if nesterov and (momentum <= 0 or dampening):
            raise ValueError(
                "For 'SGD', if 'nesterov' is true, 'momentum' must be > 0.0 and 'dampening' must equal to 0.0, "
                f"but got 'momentum' {momentum}, 'dampening' {dampening}."
            )
        self.dampening, self.nesterov, self._momentum = dampening, nesterov, momentum
        self.momentum = Parameter(Tensor(momentum, types.float32), name="momentum")
        self.accum = zeros_like(self.parameters, "accum")
        self.stat = filled_like(self.parameters, "stat", 1.0)

    def construct(self, gradients: Any) -> Any:
        grads = self._prepared(gradients)
        done = []
        for p, g, rate, accum, stat in zip(self.parameters, grads, self._rates(), self.accum, self.stat, strict=True):
            g = wide(g)
            if self._momentum:
                v = ops.where(stat > 0, g, accum * self.momentum + g * (1 - self.dampening))
                update(accum, v)
                update(stat, stat * 0)
                g = g + v * self.momentum if self.nesterov else v
            done.append(update(p, wide(p) - g * rate))
        return tuple(done)


class Momentum(Optimizer):
    """v = momentum v + g; p -= rate v.

    use_nesterov is documented as p -= rate (g + momentum v), which MindSpore 2.10's CPU kernel does not do: it ignores the flag, and so do we, and
    say so, unless the setting `momentum_nesterov` is on.
    """

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any, momentum: float, weight_decay: Any = 0.0, loss_scale: float = 1.0, use_nesterov: bool = False
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        if isinstance(momentum, float | int) and not isinstance(momentum, bool) and momentum < 0.0:
            raise ValueError(f"For 'Momentum', the argument 'momentum' must be at least 0.0, but got {momentum}")
        if not isinstance(use_nesterov, bool):
            raise TypeError(f"For 'Momentum', the 'use_nesterov' must be bool, but got {type(use_nesterov).__name__}.")
        self.momentum = Parameter(Tensor(_number("Momentum", "momentum", momentum, 0.0), types.float32), name="momentum")
        self.params = self.parameters
        self.use_nesterov = use_nesterov
        self._nesterov = use_nesterov and bool(config("momentum_nesterov"))
        if use_nesterov and not self._nesterov:
            log.warning(
                "Momentum: use_nesterov changes nothing, as in MindSpore 2.10 on the CPU; JUMAR_MOMENTUM_NESTEROV=1 makes it what is documented"
            )
        self.moments = zeros_like(self.parameters, "moments")

    def construct(self, gradients: Any) -> Any:
        grads = self._prepared(gradients)
        done = []
        for p, g, rate, moment in zip(self.parameters, grads, self._rates(), self.moments, strict=True):
            g = wide(g)
            v = moment * self.momentum + g
            update(moment, v)
            step = g + v * self.momentum if self._nesterov else v
            done.append(update(p, wide(p) - step * rate))
        return tuple(done)


def _default_filter(param: Parameter) -> bool:
    return "LayerNorm" not in param.name and "bias" not in param.name


class LARS(Optimizer):
    """Gradients scaled by |p| / |g| for each parameter, then another optimiser.   Weight decay is done here, not by the other one."""

    @opt_init_args_register
    def __init__(
        self, optimizer: Optimizer, epsilon: float = 1e-5, coefficient: float = 0.001, use_clip: bool = False,
        lars_filter: Callable[[Parameter], bool] = _default_filter,
    ) -> None:  # fmt: skip
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"For 'LARS', the 'optimizer' must be an Optimizer, but got {type(optimizer).__name__}.")
        Cell.__init__(self, auto_prefix=False)
        self.opt = optimizer
        self.parameters = optimizer.parameters
        self.epsilon, self.coefficient, self.use_clip = epsilon, coefficient, use_clip
        self.dynamic_lr, self.is_group, self.is_group_lr = optimizer.dynamic_lr, optimizer.is_group, optimizer.is_group_lr
        self.dynamic_weight_decay, self.need_scale = optimizer.dynamic_weight_decay, optimizer.need_scale
        self.loss_scale, self.reciprocal_scale = optimizer.loss_scale, optimizer.reciprocal_scale
        self.lars_flag = tuple(bool(lars_filter(p)) for p in optimizer.parameters)
        self._decays = tuple(optimizer.weight_decay) if self.is_group else (optimizer.weight_decay,) * len(self.lars_flag)
        if optimizer.dynamic_weight_decay:
            raise NotImplementedError("LARS: weight_decay of the optimizer must be a number, schedules are not supported")
        self._decay_flags = optimizer.decay_flags if optimizer.exec_weight_decay else (False,) * len(self.lars_flag)
        optimizer.exec_weight_decay = False
        optimizer.need_scale = False

    def _members(self) -> ParameterTuple:
        return self.opt.parameters

    @property
    def _rates_now(self) -> tuple[Any, ...]:
        opt = self.opt
        rate = opt.learning_rate
        if opt.dynamic_lr:
            rate = tuple(c(opt.global_step) for c in rate) if opt.is_group_lr else rate(opt.global_step)
        return tuple(rate) if opt.is_group_lr else (rate,) * len(opt.parameters)

    def construct(self, gradients: Any) -> Any:
        grads = []
        whole = zip(self._members(), gradients, self.lars_flag, self._decays, self._decay_flags, self._rates_now, strict=True)
        for p, g, scaled, decay, decays, rate in whole:
            g, w = wide(g), wide(p)
            if self.need_scale:
                g = g * self.reciprocal_scale
            amount = decay * self.reciprocal_scale
            full = g + w * amount if decays else g
            if scaled:
                norm_w, norm_g = ops.sqrt(ops.sum(w * w)), ops.sqrt(ops.sum(g * g))
                below = norm_g + norm_w * amount if decays else norm_g
                ratio = norm_w * self.coefficient / (below + self.epsilon)
                ratio = ops.where(ops.logical_and(norm_w > 0, norm_g > 0), ratio, ops.ones_like(ratio))
                if self.use_clip:
                    ratio = ops.minimum(ratio / rate, 1.0)
                full = full * ratio
            grads.append(full)
        return self.opt(tuple(grads))
