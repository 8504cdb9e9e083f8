"""`JitConfig`, at the place where older scripts import it from."""

from jumar.common.api import JitConfig

__all__ = ["JitConfig"]
