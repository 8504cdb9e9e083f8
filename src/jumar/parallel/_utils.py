"""Questions about parallel training that cells, optimisers and third-party packages ask: answered from the auto-parallel context.

In: the context.  Out: modes, counts and ranks, for one process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jumar.parallel._auto_parallel_context import ParallelMode, get_auto_parallel_context


def _get_parallel_mode() -> str:
    """The mode: `stand_alone` unless a script has set another."""
    return str(get_auto_parallel_context("parallel_mode"))


def _is_in_auto_parallel_mode() -> bool:
    """Whether operators are split over devices."""
    return _get_parallel_mode() in (ParallelMode.SEMI_AUTO_PARALLEL, ParallelMode.AUTO_PARALLEL)


def _is_in_data_parallel_mode() -> bool:
    """Whether each device has a part of the batch."""
    return _get_parallel_mode() == ParallelMode.DATA_PARALLEL


def _is_in_hybrid_parallel_mode() -> bool:
    """Whether the user splits by hand."""
    return _get_parallel_mode() == ParallelMode.HYBRID_PARALLEL


def _is_parallel_mode() -> bool:
    """Whether there are several devices and operators are split over them."""
    return _is_in_auto_parallel_mode() and _get_device_num() > 1


def _is_sharding_propagation() -> bool:
    """Whether the ways to split are found from a few that are given."""
    return bool(get_auto_parallel_context("sharding_propagation") or get_auto_parallel_context("search_mode") == "sharding_propagation")


def _get_device_num() -> int:
    """How many devices there are."""
    return int(get_auto_parallel_context("device_num"))


def _get_global_rank() -> int:
    """This process's number."""
    return int(get_auto_parallel_context("global_rank"))


def _get_pipeline_stages() -> int:
    """How many stages a pipeline has."""
    return int(get_auto_parallel_context("pipeline_stages"))


def _get_stage_device_num() -> int:
    """Devices for each stage of a pipeline."""
    return _get_device_num() // _get_pipeline_stages()


def _get_gradients_mean() -> bool:
    """Whether gradients are averaged, not added, over devices."""
    return bool(get_auto_parallel_context("gradients_mean"))


def _get_parameter_broadcast() -> bool:
    """Whether process 0 hands its parameters to the others."""
    return bool(get_auto_parallel_context("parameter_broadcast"))


def _get_enable_parallel_optimizer() -> bool:
    """Whether the optimiser's work is split over devices."""
    return bool(get_auto_parallel_context("enable_parallel_optimizer"))


def _get_full_batch() -> bool:
    """Whether each device loads the whole batch."""
    return bool(get_auto_parallel_context("full_batch"))


def _get_grad_accumulation_shard() -> bool:
    """Whether accumulated gradients are split over devices: there is one."""
    return False


def _need_to_full() -> bool:
    """Whether inputs are parts of larger tensors: only where operators are split over several devices."""
    return _is_parallel_mode() and not _get_full_batch()


def _check_full_batch() -> None:
    """full_batch goes with operators that are split."""
    if _get_full_batch() and not _is_in_auto_parallel_mode():
        raise RuntimeError("full_batch could only be used under semi_auto_parallel or auto_parallel.")


def _device_number_check(parallel_mode: str, device_number: int) -> None:
    """One device stands alone."""
    if parallel_mode == ParallelMode.STAND_ALONE and device_number != 1:
        raise ValueError(
            f"If parallel_mode is {parallel_mode}, device_number must be 1, device_number: {device_number}, parallel_mode:{parallel_mode}"
        )


def _parameter_broadcast_check(parallel_mode: str, parameter_broadcast: bool) -> None:
    """Parameters are handed round in data_parallel and hybrid_parallel only."""
    if parameter_broadcast and parallel_mode in (
        ParallelMode.STAND_ALONE, ParallelMode.SEMI_AUTO_PARALLEL, ParallelMode.AUTO_PARALLEL,
    ):  # fmt: skip
        raise ValueError(
            "stand_alone, semi_auto_parallel and auto_parallel do not support parameter broadcast, "
            f"parallel_mode: {parallel_mode}, parameter_broadcast:{parameter_broadcast}"
        )


def _parallel_predict_check() -> None:
    """Predicting works in any mode of one process."""


def _to_full_shapes(shapes: Sequence[Sequence[int]], device_num: int) -> list[list[int]]:
    """Shapes of whole batches: the first axis times the number of devices.

    >>> _to_full_shapes([(2, 3)], 4)
    [[8, 3]]
    """
    return [[d * device_num if i == 0 else d for i, d in enumerate(s)] for s in shapes]


def _to_full_tensor(elem: Any, global_device_num: int, global_rank: int, scaling_sens: Any = None) -> tuple[Any, ...]:
    """A batch as a tuple of tensors, with the loss scale behind it; for one device the tensors are whole already."""
    if global_device_num != 1:
        raise NotImplementedError(f"_to_full_tensor: there must be 1 device, got {global_device_num}")
    from jumar.frontend import Tensor  # noqa: PLC0415  (the context stands on this room, and must be quick to import)

    given = tuple(elem) if isinstance(elem, list | tuple) else (elem,)
    return given if scaling_sens is None else (*given, Tensor(scaling_sens, "float32"))


def _grads_divided_by_device_num_if_recomputation(grads: Any) -> Any:
    """The gradients: nothing to divide by on one device."""
    return grads


def _init_auto_parallel_context(net: Any) -> None:
    """Nothing: a network of one device needs no plan."""


def _clear_auto_parallel_context(net: Any) -> None:
    """Nothing: see above."""


def _reset_op_id() -> None:
    """Nothing: operators have no numbers here."""


def _get_auto_parallel_net(net: Any) -> Any:
    """The network."""
    return net
