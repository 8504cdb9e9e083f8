"""`lazy_inline`, at the place where older scripts import it from."""

from jumar.common.api import lazy_inline

__all__ = ["lazy_inline"]
