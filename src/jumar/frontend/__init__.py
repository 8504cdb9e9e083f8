"""Application enablement: what users call, and the importers that bring foreign models in."""
