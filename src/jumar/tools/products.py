"""How the parts of an Ascend machine are called where they are told to somebody: `cann` is CANN, `python` is Python.

In: a component, as tables and version files name it.  Out: `product`, `release_range`, read by compat_terminal.py, diagnose and doctor.
"""

from __future__ import annotations

_NAMES = {
    "cann": "CANN", "nnal": "NNAL", "mindspore": "MindSpore", "vllm": "vLLM", "mindie": "MindIE", "mindspeed": "MindSpeed", "python": "Python",
    "torch": "torch", "mindspore-lite": "MindSpore Lite", "pta": "FrameworkPTAdapter",
}  # fmt: skip
_NAMES_ZH = {"driver": "驱动", "firmware": "固件", "kernels": "算子包"}


def product(component: str, lang: str = "en") -> str:
    """The name of a component's product.

    >>> product("cann"), product("torch_npu"), product("driver", "zh")
    ('CANN', 'torch_npu', '驱动')
    """
    return (_NAMES_ZH.get(component) if lang == "zh" else None) or _NAMES.get(component, component)


def release_range(token: str) -> str:
    """A word of the compatibility table as people write it.

    >>> release_range("3.9..3.11"), release_range("8.1.RC1")
    ('3.9-3.11', '8.1.RC1')
    """
    return token.replace("..", "-")
