"""`mindspore.boost`: of its tricks to train faster, what third-party packages use: accumulating gradients."""

from __future__ import annotations

from jumar.boost import grad_accumulation
from jumar.boost.grad_accumulation import GradientAccumulation

__all__ = ["GradientAccumulation", "grad_accumulation"]
