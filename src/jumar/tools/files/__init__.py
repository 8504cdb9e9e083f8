"""Files that people hand over, and what archives hold, to any depth: one reader for `jumar diagnose` and `jumar doctor`."""
