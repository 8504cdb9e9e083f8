"""Recurrent networks over sequences: `RNN`, `GRU`, `LSTM`, in layers and in both directions.

In: x [seq, batch, input] (or batch first), the state before, lengths of the sequences.  Out: the states of the last layer at each step, and the last states
of all layers.  Past its length a sequence's states are zero.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jumar import ops
from jumar.common.initializer import Uniform, initializer
from jumar.frontend import dtype as types
from jumar.frontend.engine import apply
from jumar.frontend.parameter import Parameter, ParameterTuple
from jumar.frontend.promote import cast
from jumar.frontend.tensor import Tensor, wrap
from jumar.nn.cell import Cell
from jumar.nn.layer.basic import Dropout
from jumar.nn.layer.conv import to_type
from jumar.nn.layer.sizes import is_int
from jumar.operators import Gru, Lstm, Rnn

_TANH, _SIGMOID, _RELU = ("Tanh", 0.0, 0.0), ("Sigmoid", 0.0, 0.0), ("Relu", 0.0, 0.0)
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
_ORDER = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2)}  # where the operator's gates are among MindSpore's


class _Dynamic(Cell):
    """One layer, in one or both directions.   mode: LSTM, GRU, RNN_TANH or RNN_RELU."""

    def __init__(self, mode: str, hidden_size: int) -> None:
        super().__init__()
        self.mode, self.hidden_size = mode, hidden_size

    def _stacked(self, weights: list[Tensor], x: Tensor) -> Tensor:
        """[dirs, gates * hidden, ...] in the operator's order of gates."""
        order = _ORDER.get(self.mode)
        ready = []
        for w in weights:
            w = to_type(w, x)
            if order:
                parts = ops.split(w, self.hidden_size, 0)
                w = ops.cat([parts[i] for i in order], 0)
            ready.append(w)
        return ops.stack(ready, 0)  # type: ignore[no-any-return]

    def construct(
        self, x: Tensor, states: tuple[Tensor, ...], lengths: Tensor, w: list[Tensor], r: list[Tensor], b_w: list[Tensor], b_r: list[Tensor]
    ) -> Any:
        dirs = len(w)
        if b_w:
            bias = ops.cat([self._stacked(b_w, x), self._stacked(b_r, x)], 1)
        else:
            bias = ops.zeros((dirs, 2 * _GATES[self.mode] * self.hidden_size), x.dtype)
        backward = (False, True)[:dirs]
        if self.mode == "LSTM":
            op: Any = Lstm((_SIGMOID, _TANH, _TANH) * dirs, backward)
        elif self.mode == "GRU":
            op = Gru((_SIGMOID, _TANH) * dirs, backward, linear_before_reset=True)
        else:
            op = Rnn((_TANH if self.mode == "RNN_TANH" else _RELU,) * dirs, backward)
        y, *last = apply(op, x, self._stacked(w, x), self._stacked(r, x), bias, lengths, *states)
        seq, _, batch, hidden = y.shape
        return ops.reshape(ops.transpose(y, (0, 2, 1, 3)), (seq, batch, dirs * hidden)), tuple(last)


class _RNNBase(Cell):
    """What the three share: their weights and the walk through layers."""

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, has_bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__()
        name = type(self).__name__
        for label, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            if not is_int(value) or value < 1:
                raise ValueError(f"For '{name}', the '{label}' must be int and must be > 0, but got {value!r}.")
        for label, flag in (("has_bias", has_bias), ("batch_first", batch_first), ("bidirectional", bidirectional)):
            if not isinstance(flag, bool):
                raise TypeError(f"For '{name}', the '{label}' must be bool, but got {type(flag).__name__}.")
        if not 0 <= dropout < 1:
            raise ValueError(f"For '{name}', the 'dropout' must be in range [0, 1), but got {dropout}.")
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.has_bias, self.batch_first, self.dropout, self.bidirectional, self.dtype = has_bias, batch_first, dropout, bidirectional, dtype
        self.is_lstm = mode == "LSTM"
        self.rnn = _Dynamic(mode, hidden_size)
        self.dropout_op = Dropout(p=float(dropout))
        dirs, rows = 1 + bidirectional, _GATES[mode] * hidden_size
        start = Uniform(1 / math.sqrt(hidden_size))

        def make(kind: str, width: Any) -> ParameterTuple:
            found = []
            for layer in range(num_layers):
                for suffix in ("", "_reverse")[:dirs]:
                    shape = (rows, *width(layer))
                    found.append(Parameter(initializer(start, shape, dtype), name=f"{kind}_l{layer}{suffix}"))
            return ParameterTuple(found)

        self.w_ih_list = make("weight_ih", lambda layer: (hidden_size * dirs if layer else input_size,))
        self.w_hh_list = make("weight_hh", lambda _: (hidden_size,))
        if has_bias:
            self.b_ih_list: Any = make("bias_ih", lambda _: ())
            self.b_hh_list: Any = make("bias_hh", lambda _: ())
        else:
            self.b_ih_list = self.b_hh_list = ()

    def construct(self, x: Tensor, hx: Any = None, seq_length: Any = None) -> Any:
        name, dirs = type(self).__name__, 1 + self.bidirectional
        if x.ndim != 3 or x.shape[2] != self.input_size:
            raise ValueError(f"For '{name}', x must be 3-dimensional with {self.input_size} features, but got {tuple(x.shape)}.")
        if self.batch_first:
            x = ops.transpose(x, (1, 0, 2))
        seq, batch, _ = x.shape
        shape = (self.num_layers * dirs, batch, self.hidden_size)
        if hx is None:
            zeros = ops.zeros(shape, x.dtype)
            states = (zeros, zeros) if self.is_lstm else (zeros,)
        else:
            states = tuple(hx) if isinstance(hx, tuple | list) else (hx,)
        if len(states) != 1 + self.is_lstm or any(tuple(s.shape) != shape for s in states):
            raise ValueError(
                f"For '{name}', hx must be {1 + self.is_lstm} tensors of shape {shape}, but got {[tuple(s.shape) for s in states]}."
            )
        if seq_length is None:
            lengths = wrap(np.full((batch,), seq, np.int32))
        else:
            lengths = cast(seq_length if isinstance(seq_length, Tensor) else Tensor(seq_length), types.int32)
        lasts: list[tuple[Tensor, ...]] = []
        for layer in range(self.num_layers):
            part = slice(layer * dirs, (layer + 1) * dirs)
            if layer and self.dropout:
                x = self.dropout_op(x)
            weights = [list(w[part]) for w in (self.w_ih_list, self.w_hh_list, self.b_ih_list, self.b_hh_list)]
            x, last = self.rnn(x, tuple(s[part] for s in states), lengths, *weights)
            lasts.append(last)
        ends = [ops.cat(parts, 0) if len(parts) > 1 else parts[0] for parts in zip(*lasts, strict=True)]
        if self.batch_first:
            x = ops.transpose(x, (1, 0, 2))
        return x, tuple(ends) if self.is_lstm else ends[0]


class RNN(_RNNBase):
    """An Elman network.   nonlinearity: tanh or relu; the other arguments are those of `LSTM`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"For 'RNN', the 'nonlinearity' must be in ['tanh', 'relu'], but got {nonlinearity!r}.")
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)


class GRU(_RNNBase):
    """Gated recurrent units.   The arguments are those of `LSTM`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)


class LSTM(_RNNBase):
    """Long short-term memory.

    input_size, hidden_size, num_layers=1, has_bias=True, batch_first=False, dropout=0.0 (between layers), bidirectional=False, dtype=float32.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)
