"""Cells around networks: with a loss, with gradients, with an optimiser.

In: a network, a loss, an optimiser.  Out: cells that take data and labels and give losses, gradients, or make a step of training.
"""

from __future__ import annotations

from typing import Any

from jumar import ops
from jumar.frontend import dtype as types
from jumar.frontend.grad import GradOperation, value_and_grad
from jumar.frontend.parameter import Parameter, ParameterTuple
from jumar.frontend.promote import cast
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell
from jumar.nn.wrap.grad_reducer import DistributedGradReducer

__all__ = [
    "ForwardValueAndGrad", "GetNextSingleOp", "GradAccumulationCell", "MicroBatchInterleaved", "ParameterUpdate", "PipelineCell",
    "TrainOneStepCell", "VirtualDatasetCellTriple", "WithEvalCell", "WithGradCell", "WithLossCell", "_MicroBatch", "_VirtualDatasetCell",
]  # fmt: skip


class WithLossCell(Cell):
    """The loss of a network on data and labels."""

    def __init__(self, backbone: Cell, loss_fn: Any) -> None:
        super().__init__(auto_prefix=False)
        if isinstance(backbone, Cell) and backbone.jit_config_dict:
            self._details["jit_config"] = backbone.jit_config_dict
        self._backbone = backbone
        self._loss_fn = loss_fn

    def construct(self, data: Any, label: Any) -> Any:
        return self._loss_fn(self._backbone(data), label)

    @property
    def backbone_network(self) -> Any:
        """The network."""
        return self._backbone


class WithGradCell(Cell):
    """The gradients of a network's loss by its weights.   sens: the gradient that comes in."""

    def __init__(self, network: Cell, loss_fn: Any = None, sens: Any = None) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.loss_fn = loss_fn
        self.weights = ParameterTuple(network.trainable_params())
        self.sens = sens
        self.network_with_loss = network if loss_fn is None else WithLossCell(network, loss_fn)

    def construct(self, *inputs: Any) -> Any:
        if self.sens is None:
            return GradOperation(get_by_list=True)(self.network_with_loss, self.weights)(*inputs)
        return GradOperation(get_by_list=True, sens_param=True)(self.network_with_loss, self.weights)(*inputs, self.sens)


class ForwardValueAndGrad(Cell):
    """What a network gives and its gradients.   get_all: by all inputs.   get_by_list: by weights.   sens_param: the last input is the gradient."""

    def __init__(
        self, network: Any, weights: Any = None, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False
    ) -> None:
        super().__init__(auto_prefix=False)
        if not callable(network):
            raise TypeError(f"For 'ForwardValueAndGrad', the argument 'network' must be a Cell or a function, but got {network!r}.")
        for label, flag in (("get_all", get_all), ("get_by_list", get_by_list)):
            if not isinstance(flag, bool):
                raise TypeError(f"For 'ForwardValueAndGrad', the '{label}' must be bool, but got {type(flag).__name__}.")
        self.network = network
        self.weights = weights
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def construct(self, *inputs: Any) -> Any:
        count = len(inputs) - (1 if self.sens_param else 0)
        positions = tuple(range(count)) if self.get_all else 0
        weights = self.weights if self.get_by_list else None
        position = None if self.get_by_list and not self.get_all else positions
        loss, found = value_and_grad(self.network, position, weights, sens_param=self.sens_param)(*inputs)
        return loss, found


class TrainOneStepCell(Cell):
    """One step of training: the loss, its gradients, the update.   sens: the factor of gradients.   return_grad: with gradients by name."""

    def __init__(self, network: Cell, optimizer: Any, sens: Any = None, return_grad: bool = False) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        self.weights = getattr(optimizer, "parameters", ()) or ()
        self.grad = GradOperation(get_by_list=True, sens_param=True)
        self.grad_no_sens = GradOperation(get_by_list=True)
        self.sens = 1.0 if sens is None else sens
        self.sense_flag = sens is not None
        if self.sense_flag and self.sens == 0:
            raise ValueError("TrainOneStepCell: sens must not be zero")
        self.return_grad = return_grad
        self.weights_name = [p.name for p in self.weights] if return_grad else []
        self.reducer_flag = False
        self.parallel_mode = "stand_alone"
        self.use_graceful_exit = False
        self.grad_reducer = DistributedGradReducer(())

    def construct(self, *inputs: Any) -> Any:
        if not self.sense_flag:
            return self._no_sens_impl(*inputs)
        loss, grads = _step(self.network, self.weights, inputs, self.sens)
        return self._finish(loss, grads)

    def _no_sens_impl(self, *inputs: Any) -> Any:
        """The step without a factor."""
        loss, grads = _step(self.network, self.weights, inputs, None)
        return self._finish(loss, grads)

    def _finish(self, loss: Any, grads: Any) -> Any:
        grads = self.grad_reducer(grads)
        loss = ops.depend(loss, self.optimizer(grads))
        if self.return_grad:
            return loss, dict(zip(self.weights_name, grads, strict=True))
        return loss


def _step(network: Any, weights: Any, inputs: tuple[Any, ...], sens: Any) -> tuple[Any, Any]:
    """Loss and gradients by weights; sens is the gradient that comes in, of the loss's own shape."""
    if sens is None:
        return value_and_grad(network, None, weights)(*inputs)  # type: ignore[no-any-return]
    seed = sens if isinstance(sens, Tensor) else Tensor(float(sens), types.float32)
    return value_and_grad(network, None, weights, sens_param=True)(*inputs, seed)  # type: ignore[no-any-return]


class WithEvalCell(Cell):
    """(loss, outputs, label) of a network, for metrics.   add_cast_fp32: outputs as float32 for the loss."""

    def __init__(self, network: Cell, loss_fn: Any, add_cast_fp32: bool = False) -> None:
        super().__init__(auto_prefix=False)
        self._network = network
        self._loss_fn = loss_fn
        if not isinstance(add_cast_fp32, bool):
            raise TypeError(f"For 'WithEvalCell', the 'add_cast_fp32' must be bool, but got {type(add_cast_fp32).__name__}.")
        self.add_cast_fp32 = add_cast_fp32

    def construct(self, data: Any, label: Any) -> Any:
        outputs = self._network(data)
        if self.add_cast_fp32:
            label, outputs = self._cast_inputs(label, types.float32), self._cast_inputs(outputs, types.float32)
        return self._loss_fn(outputs, label), outputs, label


class ParameterUpdate(Cell):
    """A cell that gives a parameter a new value."""

    def __init__(self, param: Parameter) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(param, Parameter):
            raise TypeError(f"For 'ParameterUpdate', 'param' must be 'Parameter', but got {type(param)}.")
        self._param = param

    def construct(self, x: Tensor) -> Tensor:
        self._param._write(cast(x, self._param.dtype))
        return x


class _Micro(Cell):
    """A network on parts of the batch, one after another; the mean of their results."""

    def __init__(self, network: Cell, count: int, label: str) -> None:
        super().__init__(auto_prefix=False)
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(f"For '{type(self).__name__}', the '{label}' must be int, but got {type(count).__name__}.")
        if count < 1:
            raise ValueError(f"For '{type(self).__name__}', the '{label}' must be at least 1, but got {count}.")
        if not isinstance(network, Cell):
            raise TypeError(f"For '{type(self).__name__}', the 'network' must be a Cell, but got {type(network).__name__}.")
        self.network = network
        self._count = count

    def construct(self, *inputs: Any) -> Any:
        total: Any = None
        for i in range(self._count):
            found = self.network(*(_part(x, i, self._count) for x in inputs))
            total = found if total is None else total + found
        return total / self._count


def _part(x: Any, i: int, count: int) -> Any:
    """The i-th of `count` parts of a batch."""
    if not isinstance(x, Tensor) or not x.ndim:
        return x
    if x.shape[0] % count:
        raise ValueError(f"micro batches: the batch must be divisible by {count}, got {tuple(x.shape)}")
    size = x.shape[0] // count
    return x[i * size : (i + 1) * size]


class PipelineCell(_Micro):
    """A network on micro batches: the stages of a pipeline are all on this device."""

    def __init__(self, network: Cell, micro_size: int, stage_config: Any = None, segment_config: Any = None) -> None:
        super().__init__(network, micro_size, "micro_size")
        self.micro_size = micro_size


class GradAccumulationCell(_Micro):
    """A network on micro batches, whose gradients add up."""

    def __init__(self, network: Cell, micro_size: int) -> None:
        super().__init__(network, micro_size, "micro_size")
        self.micro_size = micro_size


class MicroBatchInterleaved(_Micro):
    """A network on parts of the batch."""

    def __init__(self, network: Cell, interleave_num: int = 2) -> None:
        super().__init__(network, interleave_num, "interleave_num")
        self.interleave_num = interleave_num


class _MicroBatch(Cell):
    """One of several parts of each input."""

    def __init__(self, micro_size: int) -> None:
        super().__init__()
        self.micro_size = micro_size

    def construct(self, i: int, *inputs: Any) -> tuple[Any, ...]:
        return tuple(_part(x, i, self.micro_size) for x in inputs)


class _VirtualDatasetCell(Cell):
    """A network whose inputs would be spread over devices: there is one."""

    def __init__(self, backbone: Cell) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, *inputs: Any) -> Any:
        return self._backbone(*inputs)


class VirtualDatasetCellTriple(_VirtualDatasetCell):
    """The same for three inputs."""

    def construct(self, a: Any, b: Any, c: Any) -> Any:
        return self._backbone(a, b, c)


class GetNextSingleOp(Cell):
    """Data from a device's queue: there is none."""

    def __init__(self, dataset_types: Any, dataset_shapes: Any, queue_name: str) -> None:
        raise NotImplementedError("GetNextSingleOp: there are no queues of a device; iterate over the dataset")
