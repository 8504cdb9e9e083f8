"""Mixed precision: networks that compute in float16 or bfloat16, and losses scaled so that small gradients live.

In: a network and a level.  Out: a network whose parameters stay float32; sums are float32 whatever is stored.
O1: the layers of the white list in float16, their results float32.   O2: all but the layers of the black list.   O3: all.   auto: the white list, whose
results stay float16.   The lists are of layers; functions on tensors compute in what they are given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from jumar import nn, ops
from jumar.frontend import dtype as types
from jumar.frontend.parameter import Parameter
from jumar.frontend.promote import cast
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell
from jumar.nn.wrap.loss_scale import _flat, is_finite

__all__ = [
    "AMP_AUTO_BLACK_LIST", "AMP_AUTO_WHITE_LIST", "AMP_BLACK_LIST", "AMP_WHITE_LIST", "DynamicLossScaler", "LossScaler", "StaticLossScaler",
    "all_finite", "auto_mixed_precision", "build_train_network", "custom_mixed_precision", "get_black_list", "get_white_list",
]  # fmt: skip

AMP_WHITE_LIST: list[Any] = [
    nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Conv1dTranspose, nn.Conv2dTranspose, nn.Conv3dTranspose, nn.Dense, nn.LSTMCell, nn.RNNCell, nn.GRUCell,
]  # fmt: skip
AMP_BLACK_LIST: list[Any] = [nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm]
AMP_AUTO_WHITE_LIST: list[Any] = [*AMP_WHITE_LIST, nn.Linear, nn.BiDense, nn.PReLU]
AMP_AUTO_BLACK_LIST: list[Any] = [
    *AMP_BLACK_LIST, nn.GroupNorm, nn.LayerNormExt, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d, nn.SyncBatchNorm, nn.Norm,
    nn.L1Loss, nn.MSELoss, nn.SmoothL1Loss, nn.CrossEntropyLoss, nn.SoftmaxCrossEntropyWithLogits, nn.BCELoss, nn.BCEWithLogitsLoss, nn.NLLLoss,
    nn.KLDivLoss, nn.CosineEmbeddingLoss,
]  # fmt: skip
_WIDE_INSIDE = (  # layers that compute in float32 whatever they are given: they need no cast of their inputs
    nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm, nn.LayerNorm, nn.LayerNormExt, nn.GroupNorm, nn.InstanceNorm1d,
    nn.InstanceNorm2d, nn.InstanceNorm3d,
)  # fmt: skip


def get_white_list() -> list[Any]:
    """A copy of the layers that O1 computes in float16."""
    return list(AMP_WHITE_LIST)


def get_black_list() -> list[Any]:
    """A copy of the layers that O2 leaves in float32."""
    return list(AMP_BLACK_LIST)


class _OutputTo32(Cell):
    """A cell whose floating results become float32."""

    def __init__(self, backbone: Cell) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone
        self._details.update(backbone._details)
        self.__dict__["training"] = backbone.training

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        return self._cast_inputs(self._backbone(*args, **kwargs), types.float32)


def auto_mixed_precision(network: Cell, amp_level: str = "O0", dtype: Any = types.float16) -> Cell:
    """The network in mixed precision, changed in place; O2 and O3 wrap it so that its results are float32."""
    if not isinstance(network, Cell):
        raise TypeError("The network type should be Cell.")
    kind = _narrow(dtype)
    if amp_level == "O0":
        return network
    if amp_level == "O1":
        return _by_white_list(network, AMP_WHITE_LIST, kind, back=True)
    if amp_level == "O2":
        return _OutputTo32(_by_black_list(network, AMP_BLACK_LIST, kind))
    if amp_level == "O3":
        return _OutputTo32(network.to_float(kind))
    if amp_level == "auto":
        network = _by_white_list(network, AMP_AUTO_WHITE_LIST, kind, back=False)
        return _widened(network, AMP_AUTO_BLACK_LIST)
    raise ValueError(f"The amp level {amp_level} is not supported")


def custom_mixed_precision(
    network: Cell, *, white_list: list[Any] | None = None, black_list: list[Any] | None = None, dtype: Any = types.float16
) -> Cell:
    """The network with the layers of a white list in float16, or with all but those of a black list."""
    if white_list is None and black_list is None:
        raise ValueError("For custom_mixed_precision, one of white_list and black_list must be provided.")
    if white_list is not None and black_list is not None:
        raise ValueError(
            "For custom_mixed_precision, the white_list or black_list cannot be provided at the same time, please provide one or the other."
        )
    kind = _narrow(dtype)
    for entry in white_list if white_list is not None else black_list or ():
        if not isinstance(entry, type):
            raise ValueError(f"custom_mixed_precision: lists must be of classes, got {entry!r}")
    if white_list is not None:
        return _by_white_list(network, white_list, kind, back=True)
    return _OutputTo32(_by_black_list(network, black_list or [], kind))


def _narrow(dtype: Any) -> types.Type:
    kind = types.as_type(dtype)
    if kind not in (types.float16, types.bfloat16):
        raise ValueError(f"mixed precision: dtype must be float16 or bfloat16, got {dtype}")
    return kind


def _cells_of(classes: list[Any]) -> tuple[type, ...]:
    """The layers in a list: primitives are not called as cells."""
    return tuple(c for c in classes if isinstance(c, type) and issubclass(c, Cell))


def _by_white_list(network: Cell, white_list: list[Any], kind: types.Type, *, back: bool) -> Cell:
    """Layers of the list in the narrow type.   back: their results in float32."""
    for _, cell in network.cells_and_names():
        if isinstance(cell, _cells_of(white_list)):
            cell.to_float(kind)
            if back:
                cell.__dict__["_result"] = types.float32
    return network


def _by_black_list(network: Cell, black_list: list[Any], kind: types.Type) -> Cell:
    """Everything in the narrow type, but the layers of the list."""
    network.to_float(kind)
    for _, cell in network.cells_and_names():
        if isinstance(cell, _cells_of(black_list)):
            _unmix(cell)
            cell.__dict__["_result"] = kind
            cell._refresh_plain()
    return network


def _widened(network: Cell, black_list: list[Any]) -> Cell:
    """Layers of the list with inputs and results in float32."""
    for _, cell in network.cells_and_names():
        if isinstance(cell, _cells_of(black_list)):
            cell.to_float(types.float32)
    return network


def _unmix(cell: Cell) -> None:
    """The cell and all below it in float32: by a cast of inputs, unless it computes so by itself."""
    for _, inner in cell.cells_and_names():
        inner.__dict__["_mixed"] = None if isinstance(inner, _WIDE_INSIDE) or isinstance(cell, _WIDE_INSIDE) else types.float32
        inner.get_flags().update(fp16=False, bf16=False, fp32=True)
        inner._refresh_plain()


# ---------------------------------------------------------------------- scales of losses
def all_finite(inputs: Any) -> Tensor:
    """Whether all elements of all tensors are finite."""
    return is_finite(_flat(inputs))


class LossScaler(ABC):
    """Multiplies losses and divides gradients by a scale."""

    @abstractmethod
    def scale(self, inputs: Any) -> Any:
        """The inputs times the scale."""

    @abstractmethod
    def unscale(self, inputs: Any) -> Any:
        """The inputs divided by the scale."""

    @abstractmethod
    def adjust(self, grads_finite: Any) -> Any:
        """A new scale after a step."""


def _mapped(inputs: Any, factor: Any) -> Any:
    if isinstance(inputs, Tensor):
        return inputs * cast(ops.reshape(factor, ()), inputs.dtype)
    return type(inputs)(_mapped(v, factor) for v in inputs)


class StaticLossScaler(LossScaler):
    """A scale that stays."""

    def __init__(self, scale_value: float) -> None:
        value = float(scale_value.asnumpy()) if isinstance(scale_value, Tensor) else scale_value
        if isinstance(value, bool) or value < 1.0:
            raise ValueError(f"For 'StaticLossScaler', the 'scale_value' must be at least 1.0, but got {scale_value}.")
        self.scale_value = Parameter(Tensor(float(value), types.float32), name="scale_value", requires_grad=False)

    def scale(self, inputs: Any) -> Any:
        return _mapped(inputs, self.scale_value)

    def unscale(self, inputs: Any) -> Any:
        return _mapped(inputs, 1 / self.scale_value)

    def adjust(self, grads_finite: Any) -> bool:
        return False


class DynamicLossScaler(LossScaler):
    """A scale divided by a factor where gradients are not finite, multiplied by it after scale_window steps in which they were."""

    def __init__(self, scale_value: float, scale_factor: float, scale_window: int) -> None:
        value = float(scale_value.asnumpy()) if isinstance(scale_value, Tensor) else scale_value
        if isinstance(value, bool) or value < 1.0:
            raise ValueError(f"For 'DynamicLossScaler', the 'scale_value' must be at least 1.0, but got {scale_value}.")
        if isinstance(scale_window, bool) or not isinstance(scale_window, int) or scale_window < 1:
            raise ValueError(f"For 'DynamicLossScaler', the 'scale_window' must be an int of at least 1, but got {scale_window!r}.")
        if scale_factor <= 0:
            raise ValueError(f"For 'DynamicLossScaler', the 'scale_factor' must be greater than 0, but got {scale_factor}.")
        self.scale_value = Parameter(Tensor(float(value), types.float32), name="scale_value", requires_grad=False)
        self.scale_window = Tensor(scale_window, types.int32)
        self.scale_factor = Tensor(scale_factor, types.float32)
        self.counter = Parameter(Tensor(0, types.int32), name="counter", requires_grad=False)

    def scale(self, inputs: Any) -> Any:
        return _mapped(inputs, self.scale_value)

    def unscale(self, inputs: Any) -> Any:
        return _mapped(inputs, 1 / self.scale_value)

    def adjust(self, grads_finite: Any) -> bool:
        good = grads_finite if isinstance(grads_finite, Tensor) else Tensor(bool(grads_finite))
        good = ops.reshape(cast(good, types.bool_), ())
        grow = self.counter == self.scale_window - 1
        less = ops.maximum(self.scale_value / self.scale_factor, 1.0)
        more = self.scale_value * self.scale_factor
        more = ops.where(ops.isfinite(more), more, self.scale_value + 0.0)
        value = ops.where(good, ops.where(grow, more, self.scale_value + 0.0), less)
        count = ops.where(good, (self.counter + 1) % self.scale_window, self.counter * 0)
        self.scale_value._write(cast(value, types.float32))
        self.counter._write(cast(count, types.int32))
        return True


# ---------------------------------------------------------------------- networks for training
class _WithLossCell(Cell):
    """The loss of a network in mixed precision: outputs and labels as float32 for it."""

    def __init__(self, backbone: Cell, loss_fn: Any) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone
        self._loss_fn = loss_fn

    def construct(self, data: Any, label: Any) -> Any:
        outputs = self._cast_inputs(self._backbone(data), types.float32)
        return self._loss_fn(outputs, self._cast_inputs(label, types.float32))


def build_train_network(
    network: Cell, optimizer: Any, loss_fn: Any = None, level: str = "O0", boost_level: str = "O0", **kwargs: Any
) -> Cell:
    """A cell that makes one step of training.

    level: see `auto_mixed_precision`.   cast_model_type, keep_batchnorm_fp32, loss_scale_manager: override what the level says.
    """
    from jumar.train.loss_scale_manager import DynamicLossScaleManager  # noqa: PLC0415  (that room builds on this file)

    if not isinstance(network, Cell):
        raise TypeError(f"For 'build_train_network', the argument 'network' must be a Cell, but got {type(network).__name__}.")
    if level not in ("O0", "O1", "O2", "O3", "auto"):
        raise ValueError(f"For 'build_train_network', the argument 'level' must be in ['O0', 'O1', 'O2', 'O3', 'auto'], but got {level!r}.")
    if boost_level != "O0":
        raise NotImplementedError(f"build_train_network: boost_level must be 'O0', boosting is not supported, got {boost_level!r}")
    unknown = set(kwargs) - {"cast_model_type", "keep_batchnorm_fp32", "loss_scale_manager"}
    if unknown:
        raise ValueError(f"Unsupported arg {sorted(unknown)[0]!r}")
    if ("cast_model_type" in kwargs or "keep_batchnorm_fp32" in kwargs) and level in ("O1", "auto"):
        raise ValueError(f"build_train_network: cast_model_type and keep_batchnorm_fp32 can not be given with level {level!r}")
    narrow = {"O0": types.float32, "O2": types.float16, "O3": types.float16}.get(level, types.float32)
    kind = types.as_type(kwargs.get("cast_model_type", narrow))
    keep = kwargs.get("keep_batchnorm_fp32", level == "O2")
    if level in ("O1", "auto"):
        auto_mixed_precision(network, level)
    elif kind is not types.float32:
        if keep:
            network = _by_black_list(network, AMP_BLACK_LIST, kind)
        else:
            network.to_float(kind)
    if loss_fn is not None:
        mixed = kind is not types.float32 or level == "auto"
        network = _WithLossCell(network, loss_fn) if mixed else nn.WithLossCell(network, loss_fn)
    default = DynamicLossScaleManager() if level == "O2" else None
    manager = kwargs.get("loss_scale_manager", default)
    cell: Any = None
    if manager is not None:
        update = manager.get_update_cell()
        if update is not None:
            cell = nn.TrainOneStepWithLossScaleCell(network, optimizer, scale_sense=update).set_train()
        else:
            cell = nn.TrainOneStepCell(network, optimizer, manager.get_loss_scale()).set_train()
    else:
        cell = nn.TrainOneStepCell(network, optimizer).set_train()
    return cell  # type: ignore[no-any-return]


def __getattr__(name: str) -> Any:
    """The managers of loss scales, which live in `jumar.train`."""
    if name in ("DynamicLossScaleManager", "FixedLossScaleManager", "LossScaleManager"):
        import jumar.train.loss_scale_manager as managers  # noqa: PLC0415  (that room builds on this file)

        return getattr(managers, name)
    raise AttributeError(f"module 'mindspore.amp' has no attribute {name!r}")
