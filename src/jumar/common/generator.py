"""Random generators: `Generator`, and the default one that `manual_seed` sets.

In: seeds.  Out: the streams of `jumar.frontend.random`, equal in both modes and for any number of threads.
"""

from __future__ import annotations

from typing import Any

from jumar.frontend.random import DEFAULT, Generator
from jumar.frontend.tensor import Tensor

default_generator = DEFAULT


def _checked(seed: Any) -> int:
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise TypeError("Seed must be an integer.")
    return seed


def manual_seed(seed: int) -> Generator:
    """Begins the stream of that seed in the default generator."""
    return default_generator.manual_seed(_checked(seed))


def seed() -> int:
    """Begins a stream that nobody knows in the default generator, and says its seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator, for `set_rng_state`."""
    return default_generator.get_state()


def set_rng_state(state: Tensor) -> None:
    """Puts the default generator into a state that it had."""
    default_generator.set_state(state)


__all__ = ["Generator", "default_generator", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]
