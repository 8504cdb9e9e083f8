"""`Symbol`, at the place where older scripts import it from."""

from jumar.common.api import Symbol

__all__ = ["Symbol"]
