"""Kernels: an IR of loops and short vectors, a builder that writes it, vector math, and LLVM code for it."""

from jumar.kernel import math
from jumar.kernel.builder import Builder
from jumar.kernel.emit import emit
from jumar.kernel.ir import Const, Kernel, Name, Param, Type, statements
from jumar.kernel.llvm import CompiledKernel, assembly, compile_kernel, compile_kernels, compile_text, kernel_key
from jumar.kernel.value import Value, Variable

__all__ = [
    "Builder", "CompiledKernel", "Const", "Kernel", "Name", "Param", "Type", "Value", "Variable",
    "assembly", "compile_kernel", "compile_kernels", "compile_text", "emit", "kernel_key", "math", "statements",
]  # fmt: skip
