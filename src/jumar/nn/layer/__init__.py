"""Layers: cells with parameters, activations, pools and the containers that hold them."""
