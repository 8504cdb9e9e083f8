"""`mutable`, at the place where older scripts import it from."""

from jumar.common.api import mutable

__all__ = ["mutable"]
