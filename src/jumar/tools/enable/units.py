"""Numbers as people read them: bytes, times, counts.

In: a number in its base unit.  Out: a short text.
"""

from __future__ import annotations


def nbytes_text(nbytes: float) -> str:
    """Bytes with a unit.

    >>> nbytes_text(1536), nbytes_text(999), nbytes_text(0)
    ('1.5 KiB', '999 B', '0 B')
    """
    if abs(nbytes) < 1024:
        return f"{nbytes:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        nbytes /= 1024
        if abs(nbytes) < 1024 or unit == "GiB":
            return f"{nbytes:.3g} {unit}" if abs(nbytes) < 1000 else f"{nbytes:.0f} {unit}"
    raise AssertionError("the loop ends at GiB")


def count_text(count: float) -> str:
    """A count with k, M, G, T or P.

    >>> count_text(950), count_text(25557032), count_text(2.4e14)
    ('950', '25.6 M', '240 T')
    """
    for limit, unit in ((1e15, " P"), (1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(count) >= limit:
            return f"{count / limit:.3g}{unit}"
    return f"{count:g}"


def number_text(value: float) -> str:
    """Three digits, or a whole number with commas.

    >>> number_text(1384.2), number_text(80.123)
    ('1,384', '80.1')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def plural(count: int, word: str) -> str:
    """A count of things.

    >>> plural(1, "step"), plural(2, "step"), plural(2, "entry")
    ('1 step', '2 steps', '2 entries')
    """
    if count == 1:
        return f"{count} {word}"
    return f"{count} {word[:-1]}ies" if word.endswith("ry") else f"{count} {word}{'es' if word.endswith('x') else 's'}"


def ms_text(time_ms: float) -> str:
    """Milliseconds, with the unit that keeps three digits readable.

    >>> ms_text(0.0123), ms_text(12.345), ms_text(2345.6)
    ('12.3 µs', '12.3 ms', '2.35 s')
    """
    if time_ms >= 1000:
        return f"{time_ms / 1000:.3g} s"
    return f"{time_ms:.3g} ms" if time_ms >= 0.1 else f"{time_ms * 1000:.3g} µs"
