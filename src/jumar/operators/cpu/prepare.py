"""Kernels that bring activations into the form that the micro-kernel reads: other element types, packed panels.

In: values in memory.  Out: tasks that write temporaries, which matmul.py, conv.py and attention.py put before their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from jumar.base import Array, DType, i64
from jumar.ir import Node
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.contraction import Conv, MatMul
from jumar.operators.cpu.epilogue import modulo, quotient
from jumar.operators.cpu.microkernel import Tile
from jumar.operators.schedule import Packed, Task, TaskArg, Temp, TempPlace

CONVERT_BLOCK = 16384  # elements that a chunk converts


@cache
def convert_kernel(source: DType, result: DType, lanes: int, moved: bool = False) -> Kernel:
    """y[i] = x[i] in another element type.   moved: less a number, which is the last argument."""
    k = Builder(f"convert_{source}_{result}" + ("_moved" if moved else ""))
    x, y, size, block = k.pointer("x", source), k.pointer("y", result), k.integer("size"), k.integer("block")
    zero = k.convert(k.integer("zero"), result) if moved else None
    first = k.chunk * block

    def convert(value: Value) -> Value:
        value = k.convert(value, result)
        return value if zero is None else value - zero

    last = k.minimum(first + block, size)
    whole = last - modulo(k, last - first, k.index(lanes))
    with k.loop(first, whole, lanes) as i:
        k.store(convert(k.load(x, i, lanes)), y, i)
    with k.loop(whole, last) as i:
        k.store(convert(k.load(x, i)), y, i)
    return k.finish()


def root_zero(root: Node) -> int:
    """The code that stands for 0 in the first input of a contraction."""
    return root.op.x_zero if isinstance(root.op, MatMul | Conv) else 0


def convert_task(x: TaskArg, source: DType, result: DType, size: int, lanes: int, zero: int = 0) -> tuple[Task, TempPlace]:
    """The values of `x`, less `zero`, as `result`, in a temporary."""
    temp = TempPlace(Temp(size * result.nbytes, "converted"))
    kernel = convert_kernel(source, result, lanes, zero != 0)
    args = (x, temp, size, CONVERT_BLOCK, *((zero,) if zero else ()))
    nbytes = size * (source.nbytes + result.nbytes)
    return Task(kernel, args, (1,), max(1, -(-size // CONVERT_BLOCK)), nbytes=nbytes, label="convert"), temp


def converted(x: TaskArg, root: Node, result: DType, lanes: int, tasks: list[Task]) -> TaskArg:
    """Where the first input of a contraction, which is at x, is as `result` and less its zero code: x itself, or what a further task makes."""
    source, zero = root.inputs[0].type, root_zero(root)
    if source.dtype is result and not zero:
        return x
    task, place = convert_task(x, source.dtype, result, source.size, lanes, zero)
    tasks.append(task)
    return place


@cache
def border_kernel(dtype: DType, lanes: int) -> Kernel:
    """Rows of `size` elements with a border: y[r] = [value] * low + x[r] + [value] * high; a chunk is a block of rows."""
    k = Builder(f"border_{dtype}")
    x, y = k.pointer("x", dtype), k.pointer("y", dtype)
    rows, size, low, high, block, value = (k.integer(name) for name in ("rows", "size", "low", "high", "block", "value"))
    first = k.chunk * block
    whole = size - (size & (lanes - 1))
    border = k.convert(value, dtype)
    with k.loop(first, k.minimum(first + block, rows)) as row:
        source, result = k.offset(x, row * size), k.offset(y, row * (size + low + high))
        with k.loop(0, low) as i:
            k.store(border, result, i)
        with k.loop(0, whole, lanes) as i:
            k.store(k.load(source, i, lanes), result, low + i)
        with k.loop(whole, size) as i:
            k.store(k.load(source, i), result, low + i)
        with k.loop(0, high) as i:
            k.store(border, result, low + size + i)
    return k.finish()


def border_task(
    x: TaskArg, dtype: DType, lanes: int, rows: int, sizes: tuple[int, int, int], value: int = 0, behind: int = 0
) -> tuple[Task, TempPlace]:
    """Rows of x with their border in a temporary.   sizes: elements before, of and after a row; behind: bytes that may be read after the last."""
    low, size, high = sizes
    nbytes = rows * sum(sizes) * dtype.nbytes
    temp, block = TempPlace(Temp(nbytes + behind, "bordered")), max(1, 16384 // max(1, size))
    args = (x, temp, rows, size, low, high, block, value)
    return Task(border_kernel(dtype, lanes), args, (1,), -(-rows // block), nbytes=2 * nbytes, label="border"), temp


@cache
def pack_kernel(source: DType, tile: Tile, transposed: bool) -> Kernel:
    """Panels of a matrix [k, n] in memory: rows `pitch` apart, or, transposed, columns `pitch` apart."""
    columns = tile.columns
    k = Builder("pack_transposed" if transposed else "pack")
    w, packed, places = k.pointer("w", source), k.pointer("packed", tile.dtype), k.pointer("places", i64)
    depth, width, pitch, panels = k.integer("depth"), k.integer("width"), k.integer("pitch"), k.integer("panels")
    panel, batch = modulo(k, k.chunk, panels), quotient(k, k.chunk, panels)
    start = k.offset(w, k.load(places, batch))
    out = k.offset(packed, k.chunk * depth * columns)
    column = panel * columns
    here = k.minimum(width - column, columns)
    if transposed:
        pack_transposed(k, start, out, column, here, depth, pitch, tile)
    else:
        with k.when(here == columns), k.loop(0, depth) as i:
            k.store(k.convert(k.load(start, i * pitch + column, columns), tile.dtype), out, i * columns)
        with k.when(here < columns):
            mask = k.lane_mask(here, columns)
            with k.loop(0, depth) as i:
                k.store(k.convert(k.load(start, i * pitch + column, columns, mask), tile.dtype), out, i * columns)
    return k.finish()


def pack_transposed(k: Builder, start: Value, out: Value, column: Value, here: Value, depth: Value, pitch: Value, tile: Tile) -> None:
    """One panel of a matrix's transpose: square blocks of `lanes` are turned in registers; the rest of its depth goes one by one.

    Columns beyond the last one hold the last one: what comes of them is used as little as what comes of zeros, and no block is cut.
    """
    lanes, columns = tile.lanes, tile.columns
    turned = depth - modulo(k, depth, k.index(lanes))
    with k.loop(0, columns, lanes) as j:
        rows = [k.offset(start, (column + k.minimum(j + r, here - 1)) * pitch) for r in range(lanes)]
        with k.loop(0, turned, lanes) as i:
            block = [k.convert(k.load(row, i, lanes), tile.dtype) for row in rows]
            for r, vector in enumerate(transpose_block(k, block)):
                k.store(vector, out, (i + r) * columns + j)
        with k.loop(turned, depth) as i:
            for lane, row in enumerate(rows):
                k.store(k.convert(k.load(row, i), tile.dtype), out, i * columns + j + lane)


def transpose_block(k: Builder, rows: Sequence[Value]) -> list[Value]:
    """The columns of a square block of vectors: log2(lanes) rounds of pairwise exchanges."""
    rows, n = list(rows), len(rows)
    step = n // 2
    while step:
        for i in range(n):
            if i & step:
                continue
            a, b = rows[i], rows[i + step]
            rows[i] = k.shuffle(a, b, [lane if not lane & step else n + lane - step for lane in range(n)])
            rows[i + step] = k.shuffle(a, b, [lane + step if not lane & step else n + lane for lane in range(n)])
        step //= 2
    return rows


def copy_line(k: Builder, source: Value, line: Value, sizes: tuple[Value, Value, Value], lanes: int, inside: Value) -> None:
    """A line with its border: zeros, what is at `source`, zeros; nothing but zeros where it is not `inside`.   sizes: of the three, in elements."""
    (left, size, right), zero = sizes, k.const(0, source.dtype)
    whole = size - modulo(k, size, k.index(lanes))
    with k.when(inside):
        middle = k.offset(line, left)
        with k.loop(0, left) as i:
            k.store(zero, line, i)
        with k.loop(0, whole, lanes) as i:
            k.store(k.load(source, i, lanes), middle, i)
        with k.loop(whole, size) as i:
            k.store(k.load(source, i), middle, i)
        with k.loop(0, right) as i:
            k.store(zero, middle, size + i)
    with k.otherwise(), k.loop(0, left + size + right) as i:
        k.store(zero, line, i)


def pack_task(
    w: TaskArg, source: DType, tile: Tile, places: Array, depth: int, width: int, pitch: int, *, transposed: bool = False
) -> tuple[Task, TempPlace]:
    """Panels of the matrices of `w` at `places` (offsets in elements), in a temporary: [len(places), panels, depth, columns]."""
    panels = -(-width // tile.columns)
    size = len(places) * panels * depth * tile.columns
    temp = TempPlace(Temp(size * tile.dtype.nbytes, "panels"))
    args = (w, temp, Packed(places, "places"), depth, width, pitch, panels)
    nbytes = len(places) * depth * width * source.nbytes + size * tile.dtype.nbytes
    return Task(pack_kernel(source, tile, transposed), args, (1,), len(places) * panels, nbytes=nbytes, label="pack"), temp
