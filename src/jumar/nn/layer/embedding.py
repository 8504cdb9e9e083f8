"""Embeddings: rows of a table by number.

In: ints.  Out: their rows, in a new last dimension.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar import ops
from jumar.common.initializer import Normal, initializer
from jumar.frontend import dtype as types
from jumar.frontend.engine import apply
from jumar.frontend.parameter import Parameter
from jumar.frontend.promote import cast, numpy_dtype
from jumar.frontend.tensor import Tensor
from jumar.nn.cell import Cell
from jumar.nn.layer.sizes import is_int
from jumar.operators import Gather
from jumar.ops.arithmetic import stop_gradient

_rows = Gather(0)


def rows(table: Tensor, ids: Tensor) -> Tensor:
    """table[ids]."""
    if numpy_dtype(ids).kind not in "iu":
        raise TypeError(f"embedding: ids must be ints, got {ids.dtype}")
    return apply(_rows, table, ids)  # type: ignore[no-any-return]


def _checked_sizes(owner: str, **sizes: int) -> None:
    for label, value in sizes.items():
        if not is_int(value) or value < 1:
            raise ValueError(f"For '{owner}', the '{label}' must be int and must be > 0, but got {value!r}.")


class Embedding(Cell):
    """embedding_table[ids].   padding_idx: a row that begins as zeros."""

    def __init__(
        self, vocab_size: int, embedding_size: int, use_one_hot: bool = False, embedding_table: Any = "normal", dtype: Any = types.float32,
        padding_idx: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        _checked_sizes("Embedding", vocab_size=vocab_size, embedding_size=embedding_size)
        self.vocab_size, self.embedding_size, self.use_one_hot = vocab_size, embedding_size, use_one_hot
        self.dtype, self.padding_idx = types.as_type(dtype), padding_idx
        table = initializer(embedding_table, (vocab_size, embedding_size), dtype)
        if padding_idx is not None:
            if not 0 <= padding_idx < vocab_size:
                raise ValueError(f"For 'Embedding', the 'padding_idx' must be in range [0, {vocab_size}), but got {padding_idx}.")
            values = table.asnumpy().copy()
            values[padding_idx] = 0
            table = Tensor(values)
        self.embedding_table = Parameter(table, name="embedding_table")

    def construct(self, ids: Tensor) -> Tensor:
        return rows(self.embedding_table, ids)

    def extend_repr(self) -> str:
        return (
            f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, use_one_hot={self.use_one_hot}, "
            f"embedding_table={self.embedding_table}, dtype={self.dtype}, padding_idx={self.padding_idx}"
        )


class EmbeddingExt(Cell):
    """weight[input].   padding_idx: a row that begins as zeros and receives no gradient.   max_norm: rows that are longer are made so long."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Any = None, _freeze: bool = False, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        _checked_sizes("Embedding", num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        if scale_grad_by_freq or sparse:
            raise NotImplementedError("Embedding: scale_grad_by_freq and sparse must be False")
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"For 'Embedding', the 'padding_idx' must be within the {num_embeddings} rows, but got {padding_idx}.")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse = max_norm, norm_type, scale_grad_by_freq, sparse
        kind = types.float32 if dtype is None else dtype
        if _weight is None:
            table = initializer(Normal(1.0), (num_embeddings, embedding_dim), kind)
        else:
            table = initializer(_weight, (num_embeddings, embedding_dim), kind)
        if self.padding_idx is not None and _weight is None:
            values = table.asnumpy().copy()
            values[self.padding_idx] = 0
            table = Tensor(values)
        self.weight = Parameter(table, name="weight", requires_grad=not _freeze)

    def construct(self, input: Tensor) -> Tensor:
        if self.max_norm is not None:
            weight = self._params["weight"]
            norm = ops.pow(ops.sum(ops.pow(ops.abs(weight), self.norm_type), 1, True), 1 / self.norm_type)
            used = ops.any(ops.reshape(input, (1, -1)) == ops.expand_dims(ops.arange(self.num_embeddings), 1), 1, True)
            weight._write(ops.where(ops.logical_and(used, norm > self.max_norm), weight * (self.max_norm / (norm + 1e-7)), weight))
        y = rows(self.weight, input)
        if self.padding_idx is None:
            return y
        # the row's value without its gradient
        padded = ops.expand_dims(ops.equal(input, self.padding_idx), -1)
        return ops.where(padded, stop_gradient(y), y)  # type: ignore[no-any-return]

    def extend_repr(self) -> str:
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, padding_idx={self.padding_idx}, max_norm={self.max_norm}, "
            f"norm_type={self.norm_type}, scale_grad_by_freq={self.scale_grad_by_freq}, dtype={self.weight.dtype}"
        )


class EmbeddingLookup(Cell):
    """embedding_table[indices].   max_norm: rows that are longer come out so long."""

    BATCH_SLICE = "batch_slice"
    FIELD_SLICE = "field_slice"
    TABLE_ROW_SLICE = "table_row_slice"
    TABLE_COLUMN_SLICE = "table_column_slice"

    def __init__(
        self, vocab_size: int, embedding_size: int, param_init: Any = "normal", target: str = "CPU", slice_mode: str = "batch_slice",
        manual_shapes: Any = None, max_norm: float | None = None, sparse: bool = True, dtype: Any = types.float32,
    ) -> None:  # fmt: skip
        super().__init__()
        _checked_sizes("EmbeddingLookup", vocab_size=vocab_size, embedding_size=embedding_size)
        if target not in ("CPU", "DEVICE"):
            raise ValueError(f"For 'EmbeddingLookup', the 'target' must be one of 'CPU' and 'DEVICE', but got {target!r}.")
        modes = (self.BATCH_SLICE, self.FIELD_SLICE, self.TABLE_ROW_SLICE, self.TABLE_COLUMN_SLICE)
        if slice_mode not in modes:
            raise ValueError(f"For 'EmbeddingLookup', the 'slice_mode' must be one of {modes}, but got {slice_mode!r}.")
        self.vocab_size, self.embedding_size, self.target, self.max_norm = vocab_size, embedding_size, target, max_norm
        self.embedding_table = Parameter(initializer(param_init, (vocab_size, embedding_size), dtype), name="embedding_table")

    def construct(self, indices: Tensor) -> Tensor:
        y = rows(self.embedding_table, indices)
        if self.max_norm is None:
            return y
        norm = ops.sqrt(ops.sum(ops.square(cast(y, np.dtype(np.float32))), -1, True))
        return y * ops.cast(self.max_norm / ops.maximum(norm, self.max_norm), y.dtype)  # type: ignore[no-any-return]
