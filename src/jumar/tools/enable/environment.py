"""What machine this is: the first layer that `jumar enable` tells of.

In: the device room.  Out: `Environment`.
"""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path

from jumar.device import find_cann, host
from jumar.tools.enable.facts import Environment

_SHOWN = ("jumar", "numpy", "llvmlite", "onnx")


def find_environment() -> Environment:
    """The machine as found; nothing is started or loaded on it."""
    target, cann = host(), find_cann()
    npu = str(cann).splitlines()[0]
    return Environment(
        cpu=_model_name() or target.cpu,
        architecture=target.architecture,
        cores=target.cores,
        vector_bits=target.vector_bits,
        instruction_set=_instruction_sets(target.features),
        l1_nbytes=target.l1_nbytes,
        l2_nbytes=target.l2_nbytes,
        l3_nbytes=target.l3_nbytes,
        memory_nbytes=target.memory_nbytes,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.release()}",
        versions={name: _version(name) for name in _SHOWN},
        npu=npu,
        looked=cann.looked,
    )


def _instruction_sets(features: str) -> str:
    """The few features that decide speed, in the words of the manuals."""
    on = {f[1:] for f in features.split(",") if f.startswith("+")}
    names = {
        "sse4.2": "SSE4.2", "avx": "AVX", "f16c": "F16C", "fma": "FMA", "avx2": "AVX2", "avx512f": "AVX-512", "avx512vnni": "VNNI",
        "avx512bf16": "BF16", "avx512fp16": "FP16", "amx-int8": "AMX", "neon": "NEON", "dotprod": "DotProd", "fullfp16": "FP16",
        "i8mm": "I8MM", "bf16": "BF16", "sve": "SVE", "sme": "SME",
    }  # fmt: skip
    return " ".join(shown for name, shown in names.items() if name in on)


def _model_name() -> str:
    """The name that the CPU gives itself, where the system says."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.lower().startswith("model name")), "")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "source"
