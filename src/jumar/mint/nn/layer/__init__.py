"""Layers with PyTorch's names and defaults, by kind."""
