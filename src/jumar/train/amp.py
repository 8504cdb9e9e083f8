"""Mixed precision: the names of `jumar.amp` where MindSpore's training room has them, and those that client packages take from here.

In: networks and lists of layers.  Out: the same networks, some layers of which compute in float16.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jumar.amp import *  # noqa: F403
from jumar.amp import custom_mixed_precision
from jumar.frontend import dtype as types


def _auto_white_list(network: Any, white_list: Sequence[Any], dtype: Any = types.float16) -> Any:
    """Layers of the list in float16."""
    return custom_mixed_precision(network, white_list=list(white_list), dtype=dtype)


def _auto_black_list(network: Any, black_list: Sequence[Any], dtype: Any = types.float16) -> Any:
    """All but the layers of the list in float16."""
    return custom_mixed_precision(network, black_list=list(black_list), dtype=dtype)


def _auto_mixed_precision_rewrite(network: Any, dtype: Any, *, white_list: Any = None, black_list: Any = None) -> Any:
    """Layers of the white list, or all but those of the black list, in float16."""
    return custom_mixed_precision(network, white_list=white_list, black_list=black_list, dtype=dtype)
