"""Sparse tensors: `COOTensor`, `CSRTensor`, `RowTensor`: indices and values, and their dense form.

In: Tensors of indices and values, and a shape.  Out: objects that functions of sparse tensors take; `to_dense()` for all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar.frontend.dtype import Type
from jumar.frontend.tensor import Tensor, wrap


class _Sparse:
    """What the kinds share: values and a shape."""

    _fields: tuple[str, ...] = ()
    indptr: Tensor
    indices: Tensor
    values: Tensor
    shape: tuple[int, ...]

    def __init__(self, *parts: Any) -> None:
        raise NotImplementedError("a sparse tensor is a COOTensor, CSRTensor or RowTensor")

    def to_dense(self) -> Tensor:
        """The dense tensor."""
        raise NotImplementedError

    def _check(self) -> None:
        for name in self._fields:
            if not isinstance(getattr(self, name), Tensor):
                raise TypeError(f"{type(self).__name__}: {name} must be a Tensor, got {type(getattr(self, name)).__name__}")
        if not isinstance(self.shape, tuple) or any(not isinstance(d, int) or d < 1 for d in self.shape):
            raise TypeError(f"{type(self).__name__}: shape must be a tuple of positive ints, got {self.shape!r}")

    @property
    def dtype(self) -> Type:
        return self.values.dtype

    @property
    def itemsize(self) -> int:
        return self.values.itemsize

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many values are kept."""
        return self.values.size

    def to_tuple(self) -> tuple[Any, ...]:
        """Indices, values and shape."""
        return (*(getattr(self, f) for f in self._fields), self.shape)

    def _with(self, values: Any) -> Any:
        return type(self)(*(values if f == "values" else getattr(self, f) for f in self._fields), self.shape)

    def abs(self) -> Any:
        """With the absolute values."""
        return self._with(self.values.abs())

    def astype(self, dtype: Any) -> Any:
        """With values of another element type."""
        return self._with(self.values.astype(dtype))

    def __neg__(self) -> Any:
        return self._with(-self.values)

    def __repr__(self) -> str:
        inner = ", ".join(f"{f}={getattr(self, f)!r}" for f in self._fields)
        return f"{type(self).__name__}(shape={list(self.shape)}, dtype={self.dtype}, {inner})"

    __str__ = __repr__


class COOTensor(_Sparse):
    """indices: [nnz, ndim]   values: [nnz]   shape: of the dense tensor."""

    _fields = ("indices", "values")

    def __init__(self, indices: Any = None, values: Any = None, shape: Any = None, coo_tensor: COOTensor | None = None) -> None:
        if coo_tensor is not None:
            indices, values, shape = coo_tensor.indices, coo_tensor.values, coo_tensor.shape
        self.indices, self.values, self.shape = indices, values, shape
        self._check()
        if indices.ndim != 2 or values.ndim != 1 or indices.shape != (values.shape[0], len(shape)):
            raise ValueError(
                f"COOTensor: indices must be [nnz, ndim] and values [nnz], got {indices.shape}, {values.shape} for shape {shape}"
            )

    def to_dense(self) -> Tensor:
        """The dense tensor; values at equal places are added."""
        from jumar.ops import scatter_nd  # noqa: PLC0415  (`ops` is made of this room)

        dense: Tensor = scatter_nd(self.indices, self.values, self.shape)
        return dense

    def coalesce(self) -> COOTensor:
        """Sorted, each place once; values at equal places are added."""
        flat = np.ravel_multi_index(tuple(self.indices.asnumpy().T), self.shape)
        places, where = np.unique(flat, return_inverse=True)
        values = np.zeros(len(places), self.values.asnumpy().dtype)
        np.add.at(values, where, self.values.asnumpy())
        indices = np.stack(np.unravel_index(places, self.shape), 1).astype(self.indices.asnumpy().dtype)
        return COOTensor(wrap(indices), wrap(values), self.shape)

    def to_csr(self) -> CSRTensor:
        """By rows; two dimensions only."""
        if self.ndim != 2:
            raise ValueError(f"COOTensor.to_csr: shape must have two dimensions, got {self.shape}")
        indices, values = self.indices.asnumpy(), self.values.asnumpy()
        order = np.lexsort((indices[:, 1], indices[:, 0]))
        counts = np.bincount(indices[:, 0], minlength=self.shape[0])
        pointers = np.concatenate([[0], np.cumsum(counts)]).astype(indices.dtype)
        return CSRTensor(wrap(pointers), wrap(indices[order, 1].copy()), wrap(values[order]), self.shape)

    def add(self, other: COOTensor, thresh: Any = 0) -> COOTensor:
        """The sum of two; values whose size is below `thresh` are left out."""
        indices = np.concatenate([self.indices.asnumpy(), other.indices.asnumpy()])
        values = np.concatenate([self.values.asnumpy(), other.values.asnumpy()])
        both = COOTensor(wrap(indices), wrap(values), self.shape).coalesce()
        limit = float(thresh.asnumpy() if isinstance(thresh, Tensor) else thresh)
        keep = np.abs(both.values.asnumpy()) >= limit
        return COOTensor(wrap(both.indices.asnumpy()[keep]), wrap(both.values.asnumpy()[keep]), self.shape)


class CSRTensor(_Sparse):
    """indptr: [rows + 1]   indices: [nnz], of columns   values: [nnz]   shape: (rows, columns)."""

    _fields = ("indptr", "indices", "values")

    def __init__(
        self, indptr: Any = None, indices: Any = None, values: Any = None, shape: Any = None, csr_tensor: CSRTensor | None = None
    ) -> None:
        if csr_tensor is not None:
            indptr, indices, values, shape = csr_tensor.indptr, csr_tensor.indices, csr_tensor.values, csr_tensor.shape
        self.indptr, self.indices, self.values, self.shape = indptr, indices, values, shape
        self._check()
        if len(shape) != 2 or indptr.shape != (shape[0] + 1,) or indices.shape != values.shape[:1]:
            raise ValueError(
                f"CSRTensor: indptr must be [rows + 1], indices and values [nnz], got {indptr.shape}, {indices.shape}, {values.shape}"
            )

    def to_coo(self) -> COOTensor:
        """By coordinates."""
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr.asnumpy()))
        indices = np.stack([rows, self.indices.asnumpy()], 1).astype(self.indices.asnumpy().dtype)
        return COOTensor(wrap(indices), self.values, self.shape)

    def to_dense(self) -> Tensor:
        """The dense tensor."""
        return self.to_coo().to_dense()

    def mv(self, dense_vector: Tensor) -> Tensor:
        """The product with a vector [columns, 1]."""
        return self.mm(dense_vector)

    def mm(self, matrix: Any) -> Tensor:
        """The product with a matrix."""
        other = matrix.to_dense() if isinstance(matrix, _Sparse) else matrix
        product: Tensor = self.to_dense() @ other
        return product

    def sum(self, axis: int) -> Tensor:
        """The sum over an axis, which stays as 1."""
        total: Tensor = self.to_dense().sum(axis, keepdims=True)
        return total


class RowTensor(_Sparse):
    """Some rows of a tensor.   indices: [n], of rows   values: [n, ...]   shape: of the dense tensor."""

    _fields = ("indices", "values")

    def __init__(self, indices: Any = None, values: Any = None, shape: Any = None, row_tensor: RowTensor | None = None) -> None:
        if row_tensor is not None:
            indices, values, shape = row_tensor.indices, row_tensor.values, row_tensor.shape
        self.indices, self.values, self.shape = indices, values, shape
        self._check()

    @property
    def dense_shape(self) -> tuple[int, ...]:
        return self.shape

    def to_dense(self) -> Tensor:
        """The dense tensor; rows that occur twice are added."""
        from jumar.ops import scatter_nd  # noqa: PLC0415  (`ops` is made of this room)

        dense: Tensor = scatter_nd(self.indices.reshape(-1, 1), self.values, self.shape)
        return dense


RowTensorInner = RowTensor


class SparseTensor(COOTensor):
    """The older name of `COOTensor`."""
