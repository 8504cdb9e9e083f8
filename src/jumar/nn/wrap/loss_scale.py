"""Training with a scaled loss: gradients of float16 stay large enough, and a step whose gradients are not finite is left out.

In: a network, an optimiser, a scale or what manages one.  Out: a cell whose call gives (loss, overflow, scale).
The update is computed and then chosen or not by a select, so that a step is one Program whether it overflows or not.
"""

from __future__ import annotations

from typing import Any

from jumar import ops
from jumar.frontend import dtype as types
from jumar.frontend.grad import value_and_grad
from jumar.frontend.parameter import Parameter
from jumar.frontend.promote import cast
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell
from jumar.nn.wrap.cell_wrapper import TrainOneStepCell
from jumar.ops.composite import HyperMap

__all__ = ["DynamicLossScaleUpdateCell", "FixedLossScaleUpdateCell", "TrainOneStepWithLossScaleCell", "grad_scale", "shard_grad_scale"]


def _unscale(scale: Any, grad: Tensor) -> Tensor:
    """A gradient divided by the scale."""
    found: Tensor = cast(grad, types.float32) * (1.0 / scale)
    return found


def grad_scale(scale: Any, grad: Any) -> Any:
    """A gradient, or each of several, divided by the scale."""
    return tuple(_unscale(scale, g) for g in grad) if isinstance(grad, tuple | list) else _unscale(scale, grad)


shard_grad_scale = grad_scale


def is_finite(grads: Any) -> Tensor:
    """Whether all elements of all gradients are finite: by one sum for each, since inf and nan stay what they are under 0 times."""
    total: Any = None
    for g in grads:
        part = ops.sum(cast(g, types.float32) * 0.0)
        total = part if total is None else total + part
    return total == 0  # type: ignore[no-any-return]


class DynamicLossScaleUpdateCell(Cell):
    """The scale divided by a factor after an overflow, multiplied by it after scale_window steps without."""

    def __init__(self, loss_scale_value: float, scale_factor: float, scale_window: int) -> None:
        super().__init__()
        self.scale_window = Tensor(scale_window, types.int32)
        self.scale_factor = Tensor(float(scale_factor), types.float32)
        self.loss_scale_value = float(loss_scale_value)
        self.minimum_loss_scale = Tensor(1.0, types.float32)
        self.cur_iter = Parameter(Tensor(1, types.int32), name="current_iterator_step", requires_grad=False)
        self.last_overflow_iter = Parameter(Tensor(0, types.int32), name="last_overflow_iterator_step", requires_grad=False)

    def get_loss_scale(self) -> float:
        """The first scale."""
        return self.loss_scale_value

    def construct(self, loss_scale: Any, overflow: Any) -> Any:
        bad = cast(overflow, types.bool_) if isinstance(overflow, Tensor) else Tensor(bool(overflow))
        bad = ops.reshape(bad, ())
        less = ops.maximum(loss_scale / self.scale_factor, self.minimum_loss_scale)
        steady = ops.cast(self.cur_iter - self.last_overflow_iter, types.int32) >= self.scale_window
        scale = ops.where(bad, less, ops.where(steady, loss_scale * self.scale_factor, loss_scale + 0.0))
        last = ops.where(ops.logical_or(bad, steady), self.cur_iter + 0, self.last_overflow_iter + 0)
        self.last_overflow_iter._write(cast(last, types.int32))
        self.cur_iter._write(cast(self.cur_iter + 1, types.int32))
        if isinstance(loss_scale, Parameter):
            loss_scale._write(cast(ops.reshape(scale, loss_scale.shape), loss_scale.dtype))
        return bad


class FixedLossScaleUpdateCell(Cell):
    """The scale as it is."""

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__()
        self.loss_scale_value = float(loss_scale_value)

    def get_loss_scale(self) -> float:
        """The scale."""
        return self.loss_scale_value

    def construct(self, _: Any, overflow: Any) -> Any:
        return overflow


class TrainOneStepWithLossScaleCell(TrainOneStepCell):
    """One step of training with a scaled loss.   scale_sense: a Tensor, or a cell that manages the scale.   Gives (loss, overflow, scale)."""

    def __init__(self, network: Cell, optimizer: Any, scale_sense: Any) -> None:
        super().__init__(network, optimizer, sens=None)
        self.hyper_map = HyperMap()
        self.is_distributed = self.gpu_target = self.ascend_910a_target = self.ascend_910b_target = False
        self.loss_scaling_manager: Any = None
        if isinstance(scale_sense, Cell):
            self.loss_scaling_manager = scale_sense
            self.scale_sense = Parameter(Tensor(scale_sense.get_loss_scale(), types.float32), name="scale_sense")
        elif isinstance(scale_sense, Tensor):
            if tuple(scale_sense.shape) not in ((), (1,)):
                raise ValueError(
                    f"For 'TrainOneStepWithLossScaleCell', the shape of 'scale_sense' must be (1,) or (), but got {tuple(scale_sense.shape)}."
                )
            self.scale_sense = Parameter(scale_sense, name="scale_sense")
        else:
            raise TypeError(
                f"For 'TrainOneStepWithLossScaleCell', the 'scale_sense' must be Cell or Tensor, but got {type(scale_sense).__name__}."
            )

    def construct(self, *inputs: Any) -> Any:
        scale = ops.reshape(self.scale_sense + 0.0, ())
        network = self.network

        def scaled(*args: Any) -> Any:
            loss = network(*args)
            return loss * cast(scale, loss.dtype), loss

        (_, loss), grads = value_and_grad(scaled, None, self.weights, has_aux=True)(*inputs)
        grads = self.grad_reducer(grad_scale(scale, grads))
        overflow = self.process_loss_scale(ops.logical_not(is_finite(grads)))
        self._update_unless(overflow, grads)
        return loss, overflow, scale

    def _update_unless(self, overflow: Any, grads: Any) -> None:
        """The optimiser's update, taken back where the gradients are not finite."""
        state = [p for _, p in self.optimizer.parameters_and_names() if p is not self.scale_sense]
        before = [p + 0 if p.dtype is not types.bool_ else ops.logical_or(p, False) for p in state]
        self.optimizer(tuple(ops.where(overflow, ops.zeros_like(g), g) for g in grads))
        for p, old in zip(state, before, strict=True):
            p._write(cast(ops.where(overflow, old, p), p.dtype))

    # ------------------------------------------------------------------ for subclasses that write their own step
    def start_overflow_check(self, pre_cond: Any, compute_input: Any) -> tuple[Any, Any]:
        """(status, compute_input): nothing needs to be cleared first."""
        return False, compute_input

    def get_overflow_status(self, status: Any, compute_output: Any) -> Tensor:
        """Whether gradients are not finite."""
        return ops.logical_not(is_finite(_flat(compute_output)))  # type: ignore[no-any-return]

    def process_loss_scale(self, overflow: Any) -> Any:
        """Tells the manager; gives overflow back."""
        if self.loss_scaling_manager is not None:
            return self.loss_scaling_manager(self.scale_sense, overflow)
        return overflow

    def set_sense_scale(self, sens: Any) -> None:
        """Another scale, where no manager has it."""
        if not isinstance(sens, Tensor):
            raise TypeError(f"For 'TrainOneStepWithLossScaleCell', the type of 'sens' must be Tensor, but got {type(sens).__name__}.")
        self.scale_sense.set_data(sens)


def _flat(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [t for v in value for t in _flat(v)] if isinstance(value, tuple | list) else []
