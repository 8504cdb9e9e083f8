"""Versions: Jumar's own, and MindSpore's whose API this is (`mindspore.version.version`)."""

VERSION = "0.1.0"
MINDSPORE_VERSION = version = "2.10.0"
