"""Weights of MindSpore's cost model for splitting operators: kept; there is nothing to split in one process."""

from __future__ import annotations

from typing import Any

_VALUES: dict[str, Any] = {}


def set_cost_model_context(**kwargs: Any) -> None:
    """Sets weights."""
    _VALUES.update(kwargs)


def get_cost_model_context(attr_key: str) -> Any:
    """The weight that was set."""
    if attr_key not in _VALUES:
        raise ValueError(f"Get context keyword {attr_key} is not recognized!")
    return _VALUES[attr_key]


def reset_cost_model_context() -> None:
    """Forgets all weights."""
    _VALUES.clear()


def _set_multi_subgraphs(multi_subgraph: bool = True) -> None:
    _VALUES["multi_subgraphs"] = multi_subgraph


def _get_multi_subgraphs() -> bool:
    return bool(_VALUES.get("multi_subgraphs", False))


def _set_rp_matmul_mem_coef(coef: float) -> None:
    _VALUES["rp_matmul_mem_coef"] = coef


def _get_rp_matmul_mem_coef() -> float:
    return float(_VALUES.get("rp_matmul_mem_coef", 0.1))


def _set_algo_single_loop(single_loop: bool = True) -> None:
    _VALUES["algo_single_loop"] = single_loop


def _get_algo_single_loop() -> bool:
    return bool(_VALUES.get("algo_single_loop", True))
