"""One step of a recurrent network: `RNNCell`, `GRUCell`, `LSTMCell`.

In: x [batch, input] and the state before.  Out: the state after.  Gates lie in the weights as in MindSpore's checkpoints: input, forget, cell, output of an
LSTM; reset, update, new of a GRU.
"""

from __future__ import annotations

import math
from typing import Any

from jumar import ops
from jumar.common.initializer import Uniform, initializer
from jumar.frontend import dtype as types
from jumar.frontend.parameter import Parameter
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell
from jumar.nn.layer.basic import dense
from jumar.nn.layer.sizes import is_int


class RNNCellBase(Cell):
    """What the three share: their weights."""

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool, num_chunks: int, dtype: Any = types.float32) -> None:
        super().__init__()
        for label, value in (("input_size", input_size), ("hidden_size", hidden_size)):
            if not is_int(value) or value < 1:
                raise ValueError(f"For '{type(self).__name__}', the '{label}' must be int and must be > 0, but got {value!r}.")
        if not isinstance(has_bias, bool):
            raise TypeError(f"For '{type(self).__name__}', the 'has_bias' must be bool, but got {type(has_bias).__name__}.")
        self.input_size, self.hidden_size, self.has_bias, self.dtype = input_size, hidden_size, has_bias, dtype
        start = Uniform(1 / math.sqrt(hidden_size))
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(initializer(start, (rows, input_size), dtype), name="weight_ih")
        self.weight_hh = Parameter(initializer(start, (rows, hidden_size), dtype), name="weight_hh")
        self.bias_ih: Any = None
        self.bias_hh: Any = None
        if has_bias:
            self.bias_ih = Parameter(initializer(start, (rows,), dtype), name="bias_ih")
            self.bias_hh = Parameter(initializer(start, (rows,), dtype), name="bias_hh")

    def _checked(self, x: Tensor, h: Tensor) -> None:
        name = type(self).__name__
        if x.ndim != 2 or x.shape[1] != self.input_size:
            raise ValueError(f"For '{name}', x must be [batch, {self.input_size}], but got {tuple(x.shape)}.")
        if tuple(h.shape) != (x.shape[0], self.hidden_size):
            raise ValueError(f"For '{name}', hx must be [{x.shape[0]}, {self.hidden_size}], but got {tuple(h.shape)}.")

    def _products(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        return dense(x, self.weight_ih, self.bias_ih), dense(h, self.weight_hh, self.bias_hh)


class RNNCell(RNNCellBase):
    """h' = f(x w_ih^T + h w_hh^T + biases), f being tanh or relu."""

    def __init__(
        self, input_size: int, hidden_size: int, has_bias: bool = True, nonlinearity: str = "tanh", dtype: Any = types.float32
    ) -> None:
        super().__init__(input_size, hidden_size, has_bias, 1, dtype)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"For 'RNNCell', the 'nonlinearity' must be in ['tanh', 'relu'], but got {nonlinearity!r}.")
        self.nonlinearity = nonlinearity

    def construct(self, x: Tensor, hx: Tensor) -> Tensor:
        self._checked(x, hx)
        of_x, of_h = self._products(x, hx)
        return (ops.tanh if self.nonlinearity == "tanh" else ops.relu)(of_x + of_h)  # type: ignore[no-any-return]


class LSTMCell(RNNCellBase):
    """(h', c') of a long short-term memory."""

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool = True, dtype: Any = types.float32) -> None:
        super().__init__(input_size, hidden_size, has_bias, 4, dtype)

    def construct(self, x: Tensor, hx: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        h, c = hx
        self._checked(x, h)
        self._checked(x, c)
        of_x, of_h = self._products(x, h)
        take, keep, new, out = ops.split(of_x + of_h, self.hidden_size, 1)
        c = ops.sigmoid(keep) * c + ops.sigmoid(take) * ops.tanh(new)
        return ops.sigmoid(out) * ops.tanh(c), c


class GRUCell(RNNCellBase):
    """h' of a gated recurrent unit."""

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool = True, dtype: Any = types.float32) -> None:
        super().__init__(input_size, hidden_size, has_bias, 3, dtype)

    def construct(self, x: Tensor, hx: Tensor) -> Tensor:
        self._checked(x, hx)
        of_x, of_h = self._products(x, hx)
        (rx, zx, nx), (rh, zh, nh) = ops.split(of_x, self.hidden_size, 1), ops.split(of_h, self.hidden_size, 1)
        z = ops.sigmoid(zx + zh)
        new = ops.tanh(nx + ops.sigmoid(rx + rh) * nh)
        return new + z * (hx - new)  # type: ignore[no-any-return]
