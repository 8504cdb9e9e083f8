"""Random bits: Philox 4x32-10 on vectors, one block of four words in each lane.

In: RandomBits nodes; key and offset are read from memory.  Out: one task.  The words of a vector of blocks are turned, so that
they are stored side by side; the numbers depend on key, offset and the element's index alone, whatever the threads.
"""

from __future__ import annotations

import functools

from jumar.base import u32, u64
from jumar.device import Target
from jumar.ir import Node
from jumar.kernel import Builder, Kernel, Value
from jumar.operators.random import PHILOX_MULTIPLIERS, PHILOX_ROUNDS, PHILOX_WEYL, RandomBits
from jumar.operators.schedule import Lowered, Place, Task, schedule

CHUNK = 16384  # elements
WORDS = 4  # of a block


@schedule("cpu", RandomBits)
def lower_random_bits(node: Node, target: Target) -> Lowered | None:
    """One task over all elements."""
    size = node.type.size
    if size == 0:
        return Lowered()
    key, offset = node.inputs
    lanes = target.lanes(u32)
    args = (Place(key), Place(offset), Place(node), size, CHUNK)
    return Lowered((Task(philox_kernel(lanes), args, (2,), -(-size // CHUNK), nbytes=node.type.nbytes, label="random_bits"),))


@functools.cache
def philox_kernel(lanes: int) -> Kernel:
    """A chunk is `block` elements, whole vectors of blocks but the last."""
    k = Builder("philox")
    key, offset, y = k.pointer("key", u64), k.pointer("offset", u64), k.pointer("y", u32)
    size, block = k.integer("size"), k.integer("block")
    low = k.const(0xFFFFFFFF, u64)
    half = k.const(32, u64)
    seed, stream = k.load(key, 0), k.load(offset, 0)
    keys = [k.binary("and", seed, low), k.binary("shr", seed, half)]
    rounds = []
    for _ in range(PHILOX_ROUNDS):
        rounds.append([k.splat(v, lanes) for v in keys])
        keys = [k.binary("and", k.binary("add", v, k.const(w, u64)), low) for v, w in zip(keys, PHILOX_WEYL, strict=True)]
    counters = [k.splat(k.binary("and", stream, low), lanes), k.splat(k.binary("shr", stream, half), lanes)]
    lane_numbers = k.iota(lanes, u64)
    first = k.chunk * block
    last = k.minimum(first + block, size)
    wide = WORDS * lanes

    def words(at: Value) -> list[Value]:
        """Four vectors of u32: word w of the blocks from element `at` on."""
        index = k.splat(k.convert(at / WORDS, u64), lanes) + lane_numbers
        a, b, c, d = k.binary("and", index, k.splat(low, lanes)), k.binary("shr", index, k.splat(half, lanes)), *counters
        for k0, k1 in rounds:
            one = k.binary("mul", a, k.const(PHILOX_MULTIPLIERS[0], u64, lanes))
            two = k.binary("mul", c, k.const(PHILOX_MULTIPLIERS[1], u64, lanes))
            a, b, c, d = (
                k.binary("xor", k.binary("xor", k.binary("shr", two, k.splat(half, lanes)), b), k0),
                k.binary("and", two, k.splat(low, lanes)),
                k.binary("xor", k.binary("xor", k.binary("shr", one, k.splat(half, lanes)), d), k1),
                k.binary("and", one, k.splat(low, lanes)),
            )
        return [k.convert(v, u32) for v in (a, b, c, d)]

    whole = last - (last - first) % wide
    with k.loop(first, whole, wide) as at:
        a, b, c, d = words(at)
        if lanes == 1:
            for w, v in enumerate((a, b, c, d)):
                k.store(v, y, at + w)
        else:
            zipped = [i // 2 + (i % 2) * lanes for i in range(2 * lanes)]
            ac, bd = k.shuffle(a, c, zipped), k.shuffle(b, d, zipped)  # a0 c0 a1 c1 ..., b0 d0 ...
            every = [i // 2 + (i % 2) * 2 * lanes for i in range(4 * lanes)]
            k.store(k.shuffle(ac, bd, every), y, at)  # a0 b0 c0 d0 a1 ...
    with k.when(whole < last):
        held = k.array(u32, wide)
        for w, v in enumerate(words(whole)):
            for lane in range(lanes):
                k.store(k.extract(v, lane) if lanes > 1 else v, held, lane * WORDS + w)
        with k.loop(whole, last) as i:
            k.store(k.load(held, i - whole), y, i)
    return k.finish()
