"""`jumar enable`: one model through every layer, each explained; a file for each layer, `job.py` strings them together."""
