"""Counts of the kernels that use the cube: products, convolutions, attention, recurrent layers.

In: a task, its kind and the chip.  Out: `Work` (counts.py), by the families of kinds.py; work.py chooses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from jumar.device.npu.chip import Chip
from jumar.device.npu.counts import Work, cycles_of, deal, ints, largest, nbytes_of
from jumar.device.npu.kinds import Kind
from jumar.device.npu.task import CUBE, MIX_CUBE, Operand, Task
from jumar.device.npu.vector import elementwise


@dataclass(frozen=True)
class Product:
    """One matrix product: `batch` times [m, k] by [k, n].   a, b, c: bytes an element; packet: bytes of b or a that lie together at the narrow end."""

    batch: int
    m: int
    k: int
    n: int
    a: float
    b: float
    c: float
    rate: str
    shared_b: bool = False
    packed: bool = False
    lengthwise: bool = True


@dataclass(frozen=True)
class Cut:
    """How a product is cut: tile, cores used, products of the busiest core in cycles, bytes loaded over all cores, tiles of the busiest core.

    busy: cores used, weighed by how much each has to do.
    """

    tile: tuple[int, int]
    blocks: int
    cycles: float
    loaded: float
    waves: int
    splits: int = 1
    busy: float = 0.0


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


@lru_cache(maxsize=8192)
def cut(product: Product, cores: int, macs: int, l0_nbytes: int, l0c_nbytes: int, ddr_rate: float, l2_rate: float) -> Cut:
    """The tile that keeps the busiest core least busy, as CANN's tiling looks for it: it fits L0C, its operands fit L0A and L0B twice.

    ddr_rate, l2_rate: bytes a cycle that one core gets from memory (all cores at work) and from L2.
    """
    m16, n16 = _up(product.m, 16), _up(product.n, 16)
    k0 = max(1, int(32 / product.a))
    k = _up(product.k, k0)
    rows = sorted({min(m16, _up(t, 16)) for t in (16, 32, 48, 64, 80, 96, 128, 160, 192, 256, 320)})
    best: tuple[float, Cut] | None = None
    for tm in rows:
        for tn in sorted({min(n16, t) for t in (16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256, 320, 512)}):
            if tm * tn * 4 > l0c_nbytes or tm * k0 * product.a * 2 > l0_nbytes or tn * k0 * product.b * 2 > l0_nbytes:
                continue
            tiles = product.batch * (-(-product.m // tm)) * (-(-product.n // tn))
            waves = -(-tiles // cores)
            blocks = -(-tiles // waves)
            cycles = waves * (tm * tn * k / macs + 64)
            loaded_core = waves * (tm * product.a + tn * product.b) * k
            unique = product.batch * (m16 * product.a + (0 if product.shared_b else n16 * product.b)) * k + (
                n16 * k * product.b if product.shared_b else 0
            )
            load = max(loaded_core / l2_rate, unique / blocks / ddr_rate)
            store = waves * tm * tn * product.c / (ddr_rate * 2)
            cost = max(cycles, load) + 0.3 * min(cycles, load) + 0.5 * store + 300 * waves
            found = Cut((tm, tn), blocks, cycles, loaded_core * tiles / waves, waves, busy=tiles / waves)
            if best is None or cost < best[0]:
                best = (cost, found)
    if best is None:
        return Cut((16, 16), 1, float(m16) * n16 * k / macs * product.batch, product.batch * (m16 * product.a + n16 * product.b) * k, 1)
    return best[1]


def _split_k(product: Product, cores: int, chosen: Cut) -> Cut:
    """Few tiles and a long k: the cores that are left share k, and add up in memory."""
    idle = cores // max(1, chosen.blocks)
    if chosen.waves > 1 or idle < 2 or product.k < 8192 or product.m < 64:
        return chosen
    return replace(chosen, blocks=chosen.blocks * idle, cycles=chosen.cycles / idle, splits=idle, busy=chosen.busy * idle)


def _matrix(operand: Operand) -> tuple[int, ...]:
    """Logical shape of a matrix in FRACTAL_NZ, [..., n1, m1, m0, n0] as [..., m, n]; others as they are."""
    s = operand.shape
    return (*s[:-4], s[-3] * s[-2], s[-4] * s[-1]) if _is_nz(operand) else s


def _is_nz(operand: Operand) -> bool:
    s = operand.shape
    if "NZ" in operand.format:
        return len(s) >= 4
    # tables that name no format list weights as they are stored
    return len(s) >= 4 and s[-2] == 16 and s[-1] in (16, 32) and operand.format == ""


def _rate_of(operand: Operand, task: Task, chip: Chip) -> tuple[str, int]:
    """The cube's rate for an operand: hf32 where it is asked for, fp32 at a quarter of fp16 where the chip does not name it."""
    name = operand.dtype.name if operand.dtype else "f16"
    if name == "f32":
        name = "hf32" if task.attrs.get("hf32") or "hf32" not in chip.cube_macs else "f32"
        name = name if name in chip.cube_macs else "f32"
    name = "i8" if name in ("u8", "bool") else name
    base = chip.cube_macs.get("f16", 4096)
    fallback = {"bf16": base, "f32": base // 4, "hf32": base // 2, "i8": 2 * base, "i4": 4 * base}
    return name, chip.cube_macs.get(name) or fallback.get(name, base)


def _groups(task: Task, rows: int, groups: int) -> tuple[int, int]:
    """Rows that a grouped product really multiplies, and groups that have any: by the group list, of sums or of counts; else all of both."""
    given = task.attrs.get("group_list", ())
    if isinstance(given, (list, tuple)) and given and isinstance(given[0], (list, tuple)):
        given = given[0]
    numbers = [max(0, n) for n in ints(given)]
    if not numbers:
        return rows, min(groups, max(1, rows))
    # the list says itself what it is where the attribute does not: sums never fall, and counts that are all alike are no sums
    sums = list(numbers) == sorted(numbers) and (len(set(numbers)) > 1 or len(numbers) == 1)
    if "group_list_type" in task.attrs:
        sums = ints(task.attrs["group_list_type"])[:1] == (0,)
    counts = [b - a for a, b in zip([0, *numbers], numbers)] if sums else numbers
    return max(1, min(rows, sum(counts))), max(1, min(groups, sum(1 for c in counts if c > 0)))


def matmul(task: Task, kind: Kind, chip: Chip) -> Work:
    data = [o for o in task.inputs if o.dtype and len(o.shape) >= 2]
    if len(data) < 2:
        return elementwise(task, kind, chip)
    x, w = data[0], data[1]
    out = largest(task.outputs)
    if kind.name == "Compressor" or kind.name.startswith("Mla"):
        return _chain(task, kind, chip, x, [o for o in data[1:] if o.size >= 4096])
    a, b = _matrix(x), _matrix(w)
    o = _matrix(out)
    grouped = "Group" in kind.name and len(b) >= 3
    if grouped:
        rows, touched = _groups(task, math.prod(a[:-1]), b[0])
        k = a[-1]
        n = b[-1] if b[-2] == k else b[-2]
        each = max(1, -(-rows // touched))
        product = Product(touched, each, k, n, x.dtype.nbytes if x.dtype else 2, _weight_nbytes(w), _c_nbytes(out), "")
        read = rows * k * product.a + touched * k * n * product.b
        return _cube(task, kind, chip, product, x, read, rows * n * product.c)
    m, n = (o[-2], o[-1]) if len(o) >= 2 else (1, o[-1] if o else 1)
    batch = max(1, math.prod(o[:-2])) if len(o) > 2 else 1
    k = max(1, x.size // max(1, batch * m)) if not _is_nz(x) else (a[-1] if a[-2] == m else a[-2])
    if task.attrs.get("transpose_a") and len(a) >= 2:
        k = a[-2]
    elif not _is_nz(x) and len(a) >= 2 and a[-1] != k and a[-2] != k:
        k = a[-1]
    if any(name.startswith(("Transpose", "ConfusionTranspose")) for name in task.fused):
        # what leaves is turned: only the operands say what is multiplied
        batch = max(1, math.prod(a[:-2]))
        m, k = (a[-1], a[-2]) if task.attrs.get("transpose_a") else (a[-2], a[-1])
        n = b[-2] if task.attrs.get("transpose_b") else b[-1]
    shared = len(b) <= 2 and batch > 1
    if shared:
        batch, m = 1, m * batch
    packed = _is_nz(w)
    # the axis of an operand that lies together in memory decides how well it loads
    ends = [s[-1] for s, q in ((a, x), (b, w)) if not _is_nz(q)]
    product = Product(
        batch, m, k, n, x.dtype.nbytes if x.dtype else 2, _weight_nbytes(w), _c_nbytes(out), "", packed=packed, lengthwise=b[-1] == k
    )
    return _cube(task, kind, chip, product, x, nbytes_of(task.inputs), nbytes_of(task.outputs), ends=ends)


def _weight_nbytes(w: Operand) -> float:
    return w.dtype.bits / 8 if w.dtype else 2.0


def _c_nbytes(out: Operand) -> float:
    return float(out.dtype.nbytes) if out.dtype else 2.0


def _cube(
    task: Task,
    kind: Kind,
    chip: Chip,
    product: Product,
    x: Operand,
    read: float,
    written: float,
    ends: Sequence[int] = (),
    again: float = 1.0,
) -> Work:
    name, macs = _rate_of(x, task, chip)
    product = replace(product, rate=name)
    cores = max(1, chip.cube_cores)
    l2_rate = chip.l2_bytes_per_s / cores / chip.clock_hz
    ddr_rate = chip.memory_bytes_per_s / cores / chip.clock_hz
    item = product.a
    # rows shorter than a burst, or that do not start on 32 or 512 bytes, load slowly
    ragged = 0.0
    for end in ends:
        nbytes = end * item
        ragged = max(ragged, 2.0 if nbytes % 32 else 1.0 if nbytes % 256 else 0.3 if nbytes % 512 else 0.0)
    if ends and chip.split and product.batch == 1 and product.m < 8:
        # tiles of a few rows are cut for more rows than there are: loads do not keep up
        ragged += 0.4
    # where one core holds both units, tiles are larger where loads are slow
    slower = 1.0 if chip.split else 1.0 + 1.7 * ragged
    chosen = cut(product, cores, macs, chip.l0a_nbytes, chip.l0c_nbytes, ddr_rate / slower, l2_rate / slower)
    chosen = _split_k(product, cores, chosen)
    return Work(
        kind, CUBE if chosen.splits == 1 else MIX_CUBE, chosen.blocks, cores, read, written * (1 if chosen.splits == 1 else 2), read + written,
        again=max(0.0, chosen.loaded * again - read), loops=max(1.0, chosen.waves * _steps(product, item, chip)),
        cube_cycles=chosen.cycles, least_cycles=float(product.batch * product.m * product.n * product.k) / (macs * cores),
        tiles=float(chosen.waves), ragged=ragged,
        busy=chosen.busy, started=float(min(cores, product.batch * -(-product.m // 16) * -(-product.n // 16))),
        stages=1.0 + (1.0 if chosen.splits > 1 else 0.0) + (0.5 if "Quant" in kind.name else 0.0),
        flops=2.0 * product.batch * product.m * product.n * product.k,
    )  # fmt: skip


def _steps(product: Product, item: float, chip: Chip) -> float:
    """Loads of a tile that run beside its products; where one core holds both units, also beside the way out of the tile before."""
    steps = product.k * item / 1024
    return steps if chip.split else max(1.0, steps)


def _chain(task: Task, kind: Kind, chip: Chip, x: Operand, weights: Sequence[Operand]) -> Work:
    """Several products of one activation in one kernel, with vector work between (latent attention's first part, a compressor)."""
    rows = max(1, x.size // max(1, x.shape[-1]))
    total: Work | None = None
    for w in weights:
        m = _matrix(w)
        if len(m) < 2:
            continue
        k, n = (m[-2], m[-1])
        one = _cube(
            task,
            kind,
            chip,
            Product(1, rows, k, n, x.dtype.nbytes if x.dtype else 2, _weight_nbytes(w), 4.0, ""),
            x,
            float(w.nbytes),
            rows * n * 4.0,
        )
        total = one if total is None else replace(
            total, read=total.read + one.read, written=total.written + one.written, again=total.again + one.again, footprint=total.footprint + one.footprint,
            cube_cycles=total.cube_cycles + one.cube_cycles,
            least_cycles=total.least_cycles + one.least_cycles, tiles=total.tiles + one.tiles,
            flops=total.flops + one.flops, blocks=max(total.blocks, one.blocks),
        )  # fmt: skip
    if total is None:
        return elementwise(task, kind, chip)
    return replace(total, core=MIX_CUBE, stages=(4.0 if kind.name.startswith("Mla") else 8.0) * len(weights))


def _conv_extent(shape: Sequence[int], layout: str) -> tuple[int, int, int]:
    """Images, channels and places of a feature map, NC1HWC0, NDC1HWC0, NHWC or NCHW."""
    s = tuple(shape)
    if len(s) == 6 and (layout.startswith("NDC1HWC0") or s[-1] in (8, 16, 32)):
        return s[0], s[2] * s[5], s[1] * s[3] * s[4]
    if len(s) == 5 and (layout.startswith("NC1HWC0") or (s[-1] in (8, 16, 32) and not layout.startswith("NC"))):
        return s[0], s[1] * s[4], s[2] * s[3]
    if len(s) >= 3 and layout.startswith(("NHWC", "NDHWC")):
        return s[0], s[-1], math.prod(s[1:-1])
    return (s[0], s[1], math.prod(s[2:])) if len(s) >= 3 else (s[0] if s else 1, s[-1] if s else 1, 1)


def _filter_extent(operand: Operand) -> tuple[int, int, int]:
    """Results, channels a group and places of the window of a filter, FRACTAL_Z ([c1*kh*kw, n1, n0, c0]) or the plain layouts."""
    s, layout = operand.shape, operand.format
    if len(s) == 4 and (layout.startswith("FRACTAL_Z") or (s[2] == 16 and s[3] in (8, 16, 32))):
        return s[1] * s[2], s[0] * s[3], 1
    if len(s) >= 4 and layout.startswith("HWCN"):
        return s[3], s[2], math.prod(s[:2])
    if len(s) >= 3 and layout.startswith("NHWC"):
        return s[0], s[-1], math.prod(s[1:-1])
    return (s[0], s[1], math.prod(s[2:])) if len(s) >= 3 else (s[0] if s else 1, s[-1] if s else 1, 1)


def conv(task: Task, kind: Kind, chip: Chip) -> Work:
    """A convolution as the product that the cube sees: places by window times channels."""
    maps = [
        o
        for o in (*task.inputs, *task.outputs)
        if o.dtype and len(o.shape) >= 3 and o.size and (not o.dtype.is_integer or o.dtype.name in ("i8", "u8"))
    ]
    if len(maps) < 2:
        return elementwise(task, kind, chip)
    name = kind.name
    feature = [o for o in maps if not _is_filter(o)]
    filters = [o for o in maps if _is_filter(o)]
    if "BackpropFilter" in name:
        x, dy, w = maps[0], maps[1], maps[-1]
    elif "BackpropInput" in name:
        w, dy, x = (filters or maps)[0], (feature or maps)[0], task.outputs[0] if task.outputs else maps[-1]
    elif "Transpose" in name or "Deconv" in name:
        w = (filters or maps)[0] if filters else maps[1]
        dy = next(o for o in maps if o is not w)
        x = task.outputs[0] if task.outputs else dy
    else:
        x, w, dy = maps[0], maps[1], task.outputs[0] if task.outputs else maps[-1]
    images, channels, places_in = _conv_extent(x.shape, x.format)
    _, results, places = _conv_extent(dy.shape, dy.format)
    n, per_group, window = _filter_extent(w)
    groups = int(task.attrs.get("groups", 1) or 1)
    depthwise = name.startswith("Depthwise") or (groups > 1 and groups >= channels)
    k = per_group * window
    item = x.dtype.nbytes if x.dtype else 2
    read, written = nbytes_of(task.inputs), nbytes_of(task.outputs)
    if depthwise:
        # each channel on its own fills one column of the cube: sixteen channels share a fractal
        fractals = max(1, _up(channels, 16) // 16)
        product = Product(fractals, images * places, max(16, k // fractals) if _is_filter(w) else window * 16, 16, item, item, item, "")
    elif groups > 1:
        # groups are put side by side until they fill fractals, whose other places are zeros
        inside, outside = max(1, channels // groups), max(1, results // groups)
        side = min(groups, math.lcm(math.lcm(inside, 16) // inside, math.lcm(outside, 16) // outside))
        sets = -(-groups // side)
        deep = k // sets if _is_filter(w) else per_group * window * side
        product = Product(sets, images * places, max(16, deep), outside * side, item, item, item, "")
    elif "BackpropFilter" in name:
        product = Product(1, n, images * places, k, item, item, 4.0, "")
    elif "BackpropInput" in name or "Transpose" in name or "Deconv" in name:
        product = Product(
            1,
            images * places_in,
            max(1, n * window if not w.format.startswith("FRACTAL") and len(w.shape) >= 4 else n * k // max(1, channels)),
            channels,
            item,
            item,
            item,
            "",
        )
    else:
        product = Product(1, images * places, k, n, item, item, item, "")
    found = _cube(task, kind, chip, product, x, read, written, again=1.0)
    # the window is unfolded on the way from L1, so that memory is read about once a tile of results
    spread = max(1.0, window) if window > 1 else max(1.0, k / max(1, channels))
    narrow = item * min(channels, 16) < 32 or (len(x.shape) == 5 and x.shape[1] == 1)
    if "BackpropFilter" in name:
        found = replace(
            found, blocks=found.cores, cube_cycles=found.flops / 2 / (found.cores * _rate_of(x, task, chip)[1]) * 1.0, core=CUBE
        )
    elif chip.split and found.cores <= images <= 2 * found.cores:
        # enough images for all cores: each gets whole ones, as profiles show.  Fewer are cut inside, else most cores had none
        blocks, share = deal(images, found.cores)
        even = images / share
        shared = min(read, float(w.nbytes))
        # the filter comes from memory once for all cores, the maps through the ports of those that have images
        busy = (read + written) / (shared / found.cores + (read + written - shared) / even)
        macs = _rate_of(x, task, chip)[1]
        found = replace(
            found, blocks=blocks, busy=busy, started=float(found.cores), cube_cycles=max(found.cube_cycles, found.flops / 2 / macs / even)
        )
    if groups > 1 or depthwise:
        # zeros that fill fractals are no work that must be done
        found = replace(found, least_cycles=0.0)
    # where one core holds both units, load3d unfolds blocks that lie together, few channels or not
    return replace(found, again=max(0.0, found.again / spread), stages=2.0, ragged=2.0 if narrow and chip.split else 0.0)


def _is_filter(operand: Operand) -> bool:
    s = operand.shape
    return operand.format.startswith(("FRACTAL_Z", "HWCN")) or (len(s) == 4 and s[2] == 16 and s[3] in (8, 16, 32))


def _lengths(task: Task, name: str) -> tuple[int, ...]:
    return ints(task.attrs.get(name, ()))


def attention(task: Task, kind: Kind, chip: Chip) -> Work:
    """Scores, softmax and values in one kernel: two products on the cube, a softmax on the vector cores, keys and values read once a block of queries."""
    data = [o for o in task.inputs if o.dtype and o.dtype.is_float and len(o.shape) >= 2 and o.size > 1]
    if len(data) < 2:
        return elementwise(task, kind, chip)
    q, keys = data[0], data[1]
    # _geometry: sequences, heads, queries a sequence, keys a sequence, width of keys and of values, heads of keys
    batch, heads, queries, length, width, value_width, kv_heads, causal = _geometry(task, kind, q, keys, data)
    item = q.dtype.nbytes if q.dtype else 2
    part = 0.5 if causal and queries > 1 else 1.0
    _, macs = _rate_of(q, task, chip)
    cores = max(1, chip.cube_cores)
    pairs = batch * heads * queries * length * part
    # queries of the heads that share keys are one matrix; a tile has at least sixteen rows
    group = max(1, heads // kv_heads)
    rows = max(16, _up(queries * group, 16)) / (queries * group)
    blocks_of_queries = max(1, -(-queries * group // 128))
    tiles = batch * kv_heads * blocks_of_queries
    if queries * group <= 128 and tiles < cores:
        # flash decoding: what is left of the cores shares the keys, in parts of 512
        tiles = min(cores, tiles * max(1, length // 512))
    blocks, share = deal(int(tiles), cores)
    balance = share * blocks / max(1.0, tiles)
    # backward: the scores again, and the gradients of values, probabilities, queries and keys
    flops = 2.0 * pairs * (width + value_width) * (2.5 if "Grad" in kind.name else 1.0)
    cached = batch * kv_heads * length * (width + (value_width if width != value_width + 64 else 0)) * item
    read = q.nbytes + cached
    written = float(max((o.nbytes for o in task.outputs), default=0))
    again = cached * max(0, blocks_of_queries - 1) * part
    softmax_ops = kind.ops
    vector_share = pairs / (blocks * (2 if chip.split else 1))
    return Work(
        kind, MIX_CUBE, blocks, cores, float(read), written, float(read + written), again=again, loops=max(1.0, length / 512 * share),
        cube_cycles=flops / 2 * rows / macs / blocks * balance,
        least_cycles=flops / 2 / (macs * cores), vector_cycles=cycles_of(vector_share, softmax_ops, 4, chip) * balance * max(1.0, rows / 4),
        stages=float(kind.stages) * 2, tiles=float(share), flops=flops,
    )  # fmt: skip


def _geometry(task: Task, kind: Kind, q: Operand, keys: Operand, data: Sequence[Operand]) -> tuple[int, int, int, int, int, int, int, bool]:
    """Sequences, heads, queries, keys, widths of keys and values, heads of keys, and whether the later half of the scores is left out."""
    layout = str(task.attrs.get("input_layout", ""))
    s, t = q.shape, keys.shape
    lengths = _lengths(task, "actual_seq_lengths_kv")
    grad = "Grad" in kind.name
    if kind.name in ("RingMLAPrefill", "MLA") and len(s) == 3:
        values = data[4] if len(data) > 4 else keys
        return 1, s[1], s[0], (data[2] if len(data) > 2 else keys).shape[0], s[2] + 64, values.shape[-1], s[1], True
    paged = len(t) == 4 and len(s) in (3, 4) and t[0] > 64 and max(t[1], t[2]) in (16, 32, 64, 128, 256, 512) and s[0] != t[0]
    if "Indexer" in kind.name:
        tokens = s[0] if len(s) == 3 else s[0] * s[1]
        sequences = max((o.shape[0] for o in task.inputs if o.dtype and o.dtype.is_integer and len(o.shape) == 2), default=1)
        chosen = largest(task.outputs).shape[-1] if task.outputs and largest(task.outputs).shape else 2048
        queries = -(-tokens // max(1, sequences))
        # keys are not listed: as many as are chosen from, or as the queries of a sequence themselves
        return sequences, s[-2], queries, max(chosen, queries), s[-1], 0, 1, queries > 1
    if kind.name.startswith(("Sparse", "Nsa")):
        tokens = s[0] if len(s) == 3 else s[0] * s[1]
        chosen = max((o.shape[-1] for o in task.inputs if o.dtype and o.dtype.is_integer and len(o.shape) >= 3), default=0) or max(
            (o.shape[-1] for o in task.inputs if o.dtype and o.dtype.is_integer and len(o.shape) == 2 and o.shape[-1] >= 128), default=1024
        )
        return tokens, s[-2], 1, chosen, s[-1] + 64, s[-1], 1, False
    if paged:
        batch = len(lengths) if len(lengths) > 1 else s[0]
        total = sum(lengths) if len(lengths) > 1 else (lengths[0] * batch if lengths else 1024 * batch)
        heads = s[1] if len(s) == 4 and layout.startswith("BN") else (s[-2] if len(s) >= 3 else 1)
        queries = s[2] if len(s) == 4 and layout.startswith("BN") else (s[1] if len(s) == 4 else 1)
        kv = min(t[1], t[2]) if len(t) == 4 else 1
        width = t[-1]
        extra = max((o.shape[-1] for o in data[2:] if o.shape[-1] == 64), default=0) if width == 512 else 0
        return batch, heads, queries, max(1, total // max(1, batch)), width + extra, width, max(1, min(kv, heads)), False
    # S B H, B S H, B N S D, T N D: the axis that the statistics (softmax maximum, [b, n, s, 8]) name decides
    stats = next(
        (o.shape for o in (*task.outputs, *task.inputs) if len(o.shape) == 4 and o.shape[-1] == 8 and o.dtype and o.dtype.name == "f32"),
        None,
    )
    heads = int(task.attrs.get("head_num", task.attrs.get("num_heads", 0)) or 0)
    causal = grad or kind.name == "FlashAttentionScore" or any(o.shape[-2:] == (2048, 2048) for o in task.inputs if o.dtype)
    if stats:
        b, n, sq, _ = stats
        width = max(1, q.size // (b * n * sq))
        kv_tokens = keys.size // (b * width)
        sk = next((d for d in t if d == sq), max(t[:2]) if len(t) == 3 else sq)
        return b, n, sq, sk, width, width, max(1, kv_tokens // max(1, sk)), causal
    if len(s) == 4:
        if layout.startswith("BSN") or (not layout and s[1] > s[2]):
            return s[0], s[2], s[1], t[1], s[3], s[3], t[2], causal
        return s[0], s[1], s[2], t[2] if len(t) == 4 else t[0], s[3], s[3], t[1] if len(t) == 4 else s[1], causal
    if len(s) == 3 and (layout == "TND" or (len(t) == 3 and s[-1] <= 256 and s[-2] <= 256)):
        sequences = max(1, len(_lengths(task, "actual_seq_lengths")))
        return sequences, s[1], max(1, s[0] // sequences), max(1, t[0] // sequences), s[2], t[2], t[1], causal
    if len(s) == 3:
        width = s[2] // heads if heads else 128
        n = max(1, s[2] // max(1, width))
        b, sq = (s[1], s[0]) if layout.startswith("S") else (s[0], s[1])
        sk = t[0] if layout.startswith("S") else t[1]
        return b, n, sq, sk, width, width, max(1, t[2] // max(1, width)), causal
    return 1, 1, s[0], t[0], s[-1], s[-1], 1, causal


def recurrent(task: Task, kind: Kind, chip: Chip) -> Work:
    """A recurrent layer: one small product a step, each waiting for the one before."""
    data = [o for o in task.inputs if o.dtype and len(o.shape) >= 2]
    if len(data) < 2:
        return elementwise(task, kind, chip)
    x = data[0]
    steps = x.shape[0] if len(x.shape) == 3 else 1
    w = data[1]
    k, n = _matrix(w)[-2:]
    product = Product(1, x.shape[-2], k, n, x.dtype.nbytes if x.dtype else 2, _weight_nbytes(w), 4.0, "")
    one = _cube(task, kind, chip, product, x, nbytes_of(task.inputs), nbytes_of(task.outputs))
    return replace(
        one,
        core=MIX_CUBE,
        cube_cycles=one.cube_cycles * steps,
        least_cycles=one.least_cycles * steps,
        again=float(w.nbytes) * (steps - 1),
        tiles=one.tiles * steps,
        stages=4.0 * steps,
        flops=one.flops * steps,
    )
