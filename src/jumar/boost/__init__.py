"""`mindspore.boost`: of its tricks to train faster, what third-party packages use: accumulating gradients."""

from __future__ import annotations

from jumar.boost import grad_accumulation

__all__ = ["grad_accumulation"]
