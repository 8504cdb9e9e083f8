"""ONNX files in, graphs out: file -> nodes -> rules -> trace -> segments."""
