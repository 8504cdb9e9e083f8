"""Gradients over several devices: there is one, so they are what they are.

In: gradients.  Out: the same.
"""

from __future__ import annotations

from typing import Any

from jumar.nn.cell import Cell

__all__ = ["DistributedGradReducer", "PipelineGradReducer"]


class DistributedGradReducer(Cell):
    """The mean of gradients over devices."""

    def __init__(
        self, parameters: Any, mean: bool | None = None, degree: int | None = None, fusion_type: int = 1, group: str = "hccl_world_group"
    ) -> None:
        super().__init__(auto_prefix=False)
        self.degree = 1 if degree is None else degree
        if not isinstance(self.degree, int) or self.degree < 1:
            raise ValueError(f"For 'DistributedGradReducer', the 'degree' must be an int of at least 1, but got {degree!r}.")
        self.mean, self.group = bool(mean), group

    def construct(self, grads: Any) -> Any:
        return grads


class PipelineGradReducer(Cell):
    """The sum of gradients over micro batches, scaled."""

    def __init__(self, parameters: Any, scale_sense: float = 1.0, opt_shard: bool | None = None) -> None:
        super().__init__(auto_prefix=False)
        self.scale_sense = scale_sense

    def construct(self, grads: Any) -> Any:
        return tuple(g / self.scale_sense for g in grads) if self.scale_sense != 1.0 else grads
