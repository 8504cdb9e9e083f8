"""Which layers must compute in float32: the smallest set found by trying.

In: layers in order, and a function that says whether a run with some of them in float32 is well.  Out: a set from which no layer can be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


def smallest(layers: Sequence[str], well: Callable[[tuple[str, ...]], bool], most_runs: int = 40) -> tuple[str, ...]:
    """Delta debugging: halves, then quarters and so on, each tried alone and left out.   all of `layers` together must be well.

    >>> smallest(list("abcdefgh"), lambda wide: {"c", "d"} <= set(wide))
    ('c', 'd')
    """
    kept, parts, runs = tuple(layers), 2, 0
    while len(kept) > 1 and runs < most_runs:
        size = -(-len(kept) // parts)
        groups = [kept[i : i + size] for i in range(0, len(kept), size)]
        found: tuple[str, ...] | None = None
        for group in groups:
            for tried in (group, tuple(x for x in kept if x not in group)):
                if found is None and tried and len(tried) < len(kept) and runs < most_runs:
                    runs += 1
                    found = tried if well(tried) else None
        if found is not None:
            kept, parts = found, 2
        elif size == 1:
            break
        else:
            parts = min(2 * parts, len(kept))
    return kept
