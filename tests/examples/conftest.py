"""The twins are scripts for PyTorch, which no test needs."""

collect_ignore = ["torch_twins.py"]
