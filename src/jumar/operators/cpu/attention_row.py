"""One row of attention: from scores to weights.   Shared by attention.py and attention_few.py.

In: scores of a query in scratch.  Out: their exponentials in place, and the factor that makes them weights.
"""

from __future__ import annotations

from dataclasses import dataclass

from jumar.base import DType, bool_
from jumar.kernel import Builder, Value, math
from jumar.operators.cpu.epilogue import Epilogue, modulo
from jumar.operators.cpu.expression import load
from jumar.operators.cpu.microkernel import Tile

HIDDEN = float("-inf")  # a score that cannot be seen; the least number is a score like others, as exporters write it into masks


@dataclass(frozen=True)
class Scores:
    """What the code of a row of scores depends on.   mask: as in `Block`."""

    tile: Tile
    causal: bool
    softcap: bool
    mask: tuple[DType, bool, bool] | None


@dataclass(frozen=True)
class Block:
    """What makes one attention kernel different from another.   mask: its element type and whether it differs along rows and columns."""

    tile: Tile
    epilogue: Epilogue
    causal: bool
    softcap: bool
    mask: tuple[DType, bool, bool] | None


def softmax_row(
    k: Builder, block: Block | Scores, line: Value, mask: Value | None, sees: Value, seen: Value, scale: Value, softcap: Value
) -> Value:
    """Exponentials of one row of scores less their maximum, in place; the value is 1 over their sum, or 0 for a row that sees nothing."""
    dtype, lanes = block.tile.dtype, block.tile.columns
    hidden = k.const(HIDDEN, dtype, lanes)
    highest = k.var(hidden)
    plain = not block.softcap and mask is None  # then whole vectors are scaled once more instead of stored

    def final(at: Value, inside: Value | None) -> None:
        score = k.load(line, at, lanes) * scale
        if block.softcap:
            score = math.tanh(k, score / softcap) * softcap
        if mask is not None and block.mask:
            seen_mask = load(k, mask, at, lanes, inside) if block.mask[2] else k.splat(load(k, mask, 0), lanes)
            if block.mask[0] is bool_:
                score = k.select(seen_mask, score, hidden)
            else:
                score = score + k.convert(seen_mask, dtype)
        if inside is not None:
            score = k.select(inside, score, hidden)
        if inside is not None or not plain:
            k.store(score, line, at)
        before = highest.get()
        highest.set(k.select(score > before, score, before))  # one instruction; a score that is NaN comes back in the sum

    whole = sees - modulo(k, k.maximum(sees, 0), k.index(lanes))
    with k.loop(0, whole, lanes) as at:
        final(at, None)
    # the rest of the row as far as the block sees: hidden scores, whose exponentials are 0
    with k.loop(k.maximum(whole, 0), seen, lanes) as at:
        final(at, k.lane_mask(sees - at, lanes))
    top = k.reduce(highest.get(), "max")
    blind = top == HIDDEN
    top = k.select(blind, 0, top)
    total = k.var(k.const(0, dtype, lanes))
    stored = k.maximum(whole, 0) if plain else k.index(0)
    for begin, end, scaled in ((k.index(0), stored, False), (stored, seen, True)) if plain else ((stored, seen, True),):
        with k.loop(begin, end, lanes) as at:
            score = k.load(line, at, lanes)
            value = math.exp_below(k, (score if scaled else score * scale) - top)
            k.store(value, line, at)
            total.set(total.get() + value)
    sum_ = k.reduce(total.get(), "add")
    return k.select(blind, k.const(0, dtype), k.const(1, dtype) / sum_)
