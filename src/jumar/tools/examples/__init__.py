"""Whole applications on real models, run by our runtime: what `jumar enable --example NAME` shows."""
