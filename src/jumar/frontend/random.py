"""Random numbers: generators that count, so that the same seed gives the same numbers in both modes and for any number of threads.

In: a seed.  Out: for each random operator a key and an offset (operators.RandomBits).  In a capture both are inputs of the Program, and each run
moves the generator on by as many offsets as the function has drawn.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from jumar.frontend.engine import apply
from jumar.frontend.recorder import Capture
from jumar.frontend.tensor import LOCAL, Tensor, wrap
from jumar.operators import RandomBits


class Generator:
    """A stream of random numbers.   seed, offset: its state."""

    def __init__(self) -> None:
        self.seed_value = int.from_bytes(os.urandom(6), "little")
        self.offset = 0

    def manual_seed(self, seed: int) -> Generator:
        """Begins the stream of that seed."""
        self.seed_value, self.offset = int(seed) & 0xFFFFFFFFFFFFFFFF, 0
        return self

    def seed(self) -> int:
        """Begins a stream that nobody knows, and says which."""
        self.manual_seed(int.from_bytes(os.urandom(6), "little"))
        return self.seed_value

    def initial_seed(self) -> int:
        return self.seed_value

    def get_state(self) -> Tensor:
        """Seed and offset, for `set_state`."""
        return wrap(np.array([self.seed_value, self.offset], np.uint64).view(np.uint8))

    def set_state(self, state: Any) -> None:
        seed, offset = np.ascontiguousarray(np.asarray(state, np.uint8)).view(np.uint64)
        self.seed_value, self.offset = int(seed), int(offset)


DEFAULT = Generator()


def draw(shape: tuple[int, ...], generator: Generator | None = None) -> Tensor:
    """Random bits, u32, of that shape; the generator moves on by one offset."""
    found = generator or DEFAULT
    recorder = LOCAL.recorder
    if isinstance(recorder, Capture):
        key, offset = recorder.draw(found)
    else:
        key, offset = wrap(np.array(found.seed_value, np.uint64)), wrap(np.array(found.offset, np.uint64))
    found.offset += 1
    result: Tensor = apply(RandomBits(tuple(shape)), key, offset)
    return result
