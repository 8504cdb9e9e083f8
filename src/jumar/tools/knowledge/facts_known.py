"""Which facts there are: a rule that asks for another one would never be found.

In: the text of our rules.  Out: whether `fact:NAME`, or a glob of such names, is one that something can state.
Each fact that a check of the doctor states has a rule of ours, which a test watches; the rest is made of names that a table has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache

from jumar.device.ascend import COMPONENTS

_ASKED = re.compile(rb"fact:([a-z0-9_.-]+)(?=['\"])")
_SOCS = ("soc-910", "soc-910b", "soc-910_93", "soc-310p", "soc-310b", "soc-310", "soc-950")
_MEMORY = ("memory-held-outside", "memory-fragmented", "memory-own")
_UNASKED = ("cann-several", "went-well")  # without a rule of ours that is found by it
_PAIRINGS = tuple(f"pairing-{verdict}" for verdict in ("ok", "inside", "outside", "unknown"))
_VERSIONS = tuple(f"{name.replace('_', '-')}-version" for name in COMPONENTS)


def known_facts(ours: Iterable[bytes]) -> frozenset[str]:
    """The names that our rules ask for, and those that a text or a machine states by its versions and chips."""
    return frozenset(
        (*_SOCS, *_MEMORY, *_UNASKED, *_PAIRINGS, *_VERSIONS, *(name.decode() for text in ours for name in _ASKED.findall(text)))
    )


@cache
def _pairs() -> frozenset[str]:
    """Of each two components, and of each verdict on them."""
    return frozenset(f"{pairing}-{a}-{b}" for pairing in _PAIRINGS for a in COMPONENTS for b in COMPONENTS if a != b)


def is_known(name: str, known: frozenset[str]) -> bool:
    """Can a fact of this name, or one that this glob names, be stated?

    >>> known = known_facts([b"match = ['fact:shm-small']"])
    >>> [is_known(name, known) for name in ("shm-small", "shm-*", "mindspore-version", "pairing-*side-cann-driver", "shm-big")]
    [True, True, True, True, False]
    """
    return name in known or any(fnmatchcase(fact, name) for fact in (*known, *(_pairs() if name.startswith("pairing-") else ())))
