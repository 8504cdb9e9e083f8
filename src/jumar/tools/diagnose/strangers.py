"""Is a text of another software altogether, of another maker's accelerator, a web server, a database?

In: hits of `ASCEND` and of `STRANGERS`.  Out: the fact `other-software`, where a stranger has signed and nobody of an Ascend machine has.
None of our rules is found in such a text but those that ask for the fact: an NVML that fails says nothing of an NPU's driver.
"""

from __future__ import annotations

from collections.abc import Mapping

from jumar.tools.knowledge import Fact, Hit

ASCEND = (  # signs of an Ascend machine and of what runs on it
    r"ascend|昇腾|atlas ?[2-9]\d\d|\bnpu|npu\b|_npu|\bcann\b|hccl|hccp|hccn|\bhcom|mindspore|mindspeed|mindformers|mindie|mindx|mindrecord|davinci"
    r"|\bacl(rt|nn|op|mdl|tdt)|\bacl\b|\bACL_ERROR|aclgraph|\bai ?core|\bai ?cpu|vector ?core|aivec|hisi|devmm|\bdcmi|\bdsmi|msprof|msrun"
    r"|\b(atc|tbe|plog|opp|hdk|hbm|gert|tsd|tdt|dvpp|aipp)\b|\b(GE|RUNTIME|ASCENDCL|HCCL|FE|MD|ME|DEVICE|KERNEL|ANALYZER|DRV|IDEDH|TUNE)\(\d"
    r"|\.om\b|torchair|bisheng|\b(?-i:E[A-Z]\d{4}|ERR\d{5})\b|transfer_to_npu|set_env\.sh|huawei|华为|openi\b|modelarts|910[abc]\d?\b|310p|310b"
)
STRANGERS = {  # who signs so, as he is told
    "NVIDIA GPU stack": (
        r"\bNVRM: |\bNVML\b|\bnvidia-smi\b|nvidia\.com/gpu|device driver \W?nvidia|\bnvcc fatal|ProcessGroupNCCL|\bNCCL (error|version|WARN|INFO)\b"
        r"|\bnccl\w+Error\b|\bWorkNCCL\b|\bCUDA (error:|out of memory|failure \d|kernel errors|driver version is insufficient)|\bCUDNN_STATUS_|\bcuDNN error"
        r"|\bCUBLAS_STATUS_|\bCUDA_ERROR_[A-Z]"
        r"|failed call to cuInit|\bno CUDA-capable device|failed to launch CUDA|\bTensorRT\b.{0,60}(error|fail)|\bdevice:GPU:\d"
    ),
    "AMD GPU stack (ROCm)": r"\bHIP (error:|out of memory|kernel errors)|\brocdevice\b|\bhipError[A-Z]\w+|\bHSA_STATUS_ERROR|\brocm-smi\b|\bamdgpu\b|\bRCCL\b",
    "Intel XPU or Gaudi": r"\bUR_RESULT_ERROR|\bPI_ERROR_[A-Z]|\bZE_RESULT_ERROR|\bXPU out of memory|\bhabana\b|\bhl-smi\b|\bhabanalabs\b|\bsynStatus\w+",
    "Apple GPU (MPS)": r"\bMPS backend out of memory|\bMPS allocated:",
    "Google TPU": r"\blibtpu\b|\bTPU (driver|initialization|backend|platform|worker)\b",
    "nginx": r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[(error|emerg|alert|crit|warn)\] \d+#\d+",
    "Java": (
        r"\bjava\.(lang|net|io|sql|util)\.\w+|^\s+at [\w.$/]+\([\w$]+\.java(:\d+)?\)"
        r"|org\.(apache|springframework|hibernate)\.|\bkafka\.errors\b|\bzookeeper:"
    ),
    "SQL or Redis": (
        r"\bpsycopg2?\b|\bpg_dump\b|\bPostgreSQL\b|\bInnoDB\b|\bMySQL\b|^ERROR \d{4} \(\w{5}\)|\bORA-\d{5}\b|\bredis\.exceptions\b|\bpymongo\b|\bmongod\b"
        r"|\bdjango\.db\b|\bsqlalchemy\.exc\b|\bFATAL: +(password|role|database|sorry|remaining)\b"
    ),
    "Node.js": r"\bnpm (ERR!|error)|\bnode:internal/|\berror TS\d{4}:|^Error: listen E[A-Z]+|\bUnhandledPromiseRejection",
    "Go runtime": r"^goroutine \d+ \[|^panic: runtime error:",
    "Rust compiler": r"^error\[E\d{4}\]:",
    "ssh": r"\bsshd\[\d+\]|\bkex_exchange_identification",
    "systemd": r"\bsystemd\[1\]: .{0,80}(failed|Failed)",
    "pylint or flake8": r"^\S*:?\d*:?\d*:? ?[EFWCR]\d{3,4}:? .*(\([a-z-]+\)|> \d+ characters\))$",
    "ffmpeg": r"^\[(libx264|libx265|aac|h264|hevc|mp4|matroska|rtsp) @ 0x",
}


def other_software(hits: Mapping[str, tuple[Hit, ...]]) -> list[Fact]:
    """The fact that a text is of another software, with the one that signed first."""
    if hits.get(ASCEND):
        return []
    signed = [(found[0].moment, name, found) for name, pattern in STRANGERS.items() if (found := hits.get(pattern, ()))]
    if not signed:
        return []
    moment, name, found = min(signed, key=lambda one: one[0])
    return [Fact("other-software", {"software": name}, tuple(hit.evidence for hit in found[:3]), moment)]
