"""MindIO's file system for checkpoints: not here; the two functions say so."""

from __future__ import annotations

from typing import NoReturn


def mindio_preload(ckpt_file_name: str) -> bool:
    """False: nothing was preloaded, as in MindSpore where the MindIO package is absent."""
    return False


def set_mindio_server_info(data_block_pool_capacity_in_gb: int = 100) -> NoReturn:
    """Raises: there is no MindIO server."""
    raise NotImplementedError("set_mindio_server_info: MindIO does not exist here; load_checkpoint reads files as they are")
