"""`no_inline`, at the place where older scripts import it from."""

from jumar.common.api import no_inline

__all__ = ["no_inline"]
