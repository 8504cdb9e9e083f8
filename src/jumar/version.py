"""Versions: Jumar's own, and MindSpore's whose API this is (`mindspore.version.__version__`)."""

VERSION = "0.1.0"
MINDSPORE_VERSION = __version__ = version = "2.10.0"
