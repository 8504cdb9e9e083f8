"""Losses: cells that say in one number how far a result is from what it should be."""
