"""`Symbol`, at the place where older scripts import it from."""

__all__ = ["Symbol"]
