"""`mindspore.version.version`: the version of MindSpore whose API this is."""

from __future__ import annotations

import jumar

version = jumar.MINDSPORE_VERSION
