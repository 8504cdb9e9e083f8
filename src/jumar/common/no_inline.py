"""`no_inline`, at the place where older scripts import it from."""

__all__ = ["no_inline"]
