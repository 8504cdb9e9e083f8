"""Vector math on the builder."""
