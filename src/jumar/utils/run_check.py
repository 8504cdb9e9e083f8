"""`run_check()`: computes something and says whether it came out right."""

from __future__ import annotations

import sys

from jumar.frontend.tensor import Tensor
from jumar.version import MINDSPORE_VERSION, VERSION


def run_check() -> None:
    """Multiplies two matrices on the device and prints what came of it."""
    ones = Tensor([[1.0] * 64] * 64)
    right = bool(((ones @ ones).asnumpy() == 64.0).all())
    sys.stdout.write(f"MindSpore version:  {MINDSPORE_VERSION} (Jumar {VERSION})\n")
    if not right:
        raise RuntimeError("run_check: a product of matrices came out wrong: this is our bug")
    sys.stdout.write("The result of multiplication calculation is correct, Jumar runs on platform [CPU] successfully!\n")
