"""What CANN's operator types are made of: the family of a kernel, its vector work an element, its stages.

In: an operator type as a profile or the compiler names it (`SoftmaxV2`, `aclnnInplaceAdd`, `ConcatD`), and kinds.csv.  Out: `Kind`, read by work.py.
The numbers come from what the operator computes (its formula and the instructions that the vector unit has for it), none is fitted.
A name that is not listed is read by its parts: `FooNormGrad` is a norm, `ForeachFoo` an elementwise kernel over lists.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib import resources

# families: what shapes the time of a kernel
ELEMENTWISE, FOREACH, OPTIMISER, FILL, COPY, SLICE, TRANSPOSE, TRANSDATA = (
    "elementwise", "foreach", "optimiser", "fill", "copy", "slice", "transpose", "transdata",
)  # fmt: skip
REDUCE, NORM, SOFTMAX, ROPE, GLU, GATHER, SCATTER, SORT, POOL, RESAMPLE = (
    "reduce", "norm", "softmax", "rope", "glu", "gather", "scatter", "sort", "pool", "resample",
)  # fmt: skip
MATMUL, CONV, ATTENTION, RECURRENT, RANDOM, COMMUNICATE, META = "matmul", "conv", "attention", "recurrent", "random", "communicate", "meta"


@dataclass(frozen=True)
class Kind:
    """What is known of an operator type before its shapes.   name: without CANN's suffixes (`Softmax`); family: one of those above.

    ops: vector instructions an element (a division, root or exponential counts as two: half the lanes).
    stages: parts of the kernel that wait for each other (a softmax: maximum, exponential, sum, quotient).
    listed: kinds.csv has it; else family and ops were guessed from the name or, where that says nothing, left to the shapes (family empty).
    """

    name: str
    family: str
    ops: float = 1.0
    stages: int = 1
    listed: bool = True


# names by their parts, the first that fits counts: parts, family, ops, stages
_PARTS: tuple[tuple[str, str, float, int], ...] = (
    ("Foreach", FOREACH, 2, 1),
    ("MatMul Matmul Gemm GEMM", MATMUL, 0, 1),
    ("Dispatch Combine AllReduce AllGather AllToAll AlltoAll ReduceScatter Hcom hcom", COMMUNICATE, 0, 1),
    ("AttentionScoreGrad AttentionGrad", ATTENTION, 30, 6),
    ("Attention Attn MLA", ATTENTION, 14, 5),
    ("Mla", MATMUL, 0, 1),
    ("Indexer", ATTENTION, 14, 5),
    ("Conv", CONV, 0, 1),
    ("TopK Sort Unique NMS Suppression", SORT, 1, 3),
    ("Rope Rotary", ROPE, 8, 1),
    ("Random Normal_ Uniform Bernoulli GenMask DSA StatelessNormal", RANDOM, 20, 1),
    ("SoftmaxGrad", SOFTMAX, 6, 4),
    ("Softmax CrossEntropy", SOFTMAX, 8, 5),
    ("Norm", NORM, 8, 4),
    ("BN", NORM, 4, 2),
    ("wiglu wiGlu Glu GLU", GLU, 8, 1),
    ("TransData", TRANSDATA, 0, 1),
    ("Transpose Permute", TRANSPOSE, 0, 1),
    ("Scatter Segment IndexPut KvCache Kvcache KVCache Cache", SCATTER, 0, 1),
    ("Embedding Gather Index", GATHER, 0, 1),
    ("Routing MoeToken", GATHER, 1, 1),
    ("Mask", ELEMENTWISE, 3, 1),
    ("Adam Lamb", OPTIMISER, 10, 1),
    ("Momentum", OPTIMISER, 3, 1),
    ("Apply", OPTIMISER, 8, 1),
    ("Pool", POOL, 2, 1),
    ("Resize Upsample Interp Sampler ROI Roi", RESAMPLE, 8, 1),
    ("Reduce", REDUCE, 2, 2),
    ("Cum Arg Hist", REDUCE, 3, 2),
    ("Sum Mean", REDUCE, 1, 2),
    ("Slice Split Concat Pad Broadcast", SLICE, 0, 1),
    ("Copy Move Memcpy", COPY, 0, 1),
    ("Fill Like", FILL, 1, 1),
    ("RNN LSTM GRU", RECURRENT, 20, 4),
    ("Quant LossGrad", ELEMENTWISE, 5, 1),
    ("Loss", REDUCE, 5, 2),
    ("Grad", ELEMENTWISE, 5, 1),
)
# CANN has no kernel of these for 64-bit integers: they go to the AI CPU (seen in profiles of 910B and A3, the rest after their documented types)
AI_CPU_I64 = frozenset(
    """FloorDiv FloorMod Mod TruncateDiv Div Pad MirrorPad ScatterElements ScatterAdd ScatterNd Sort TopK Pow Cumsum Cumprod ReduceProd Reverse
    SearchSorted InTopK""".split()  # noqa: SIM905  (a list of names reads better so)
)
AI_CPU_ALWAYS = frozenset(
    """Unique UniqueWithCounts UniqueConsecutive NonMaxSuppression Multinomial RandomChoiceWithMask Bincount BroadcastGradientArgs ConcatOffset
    Cholesky MatrixInverse Logdet Svd Qr Eig CTCLoss Assert StatelessRandperm DataFormatDimMap SparseToDense Histogram""".split()  # noqa: SIM905
)

_SUFFIXES = re.compile(r"(?<=[A-Za-z0-9])(?:V\d+|AiCore|AICore|Ext\d?|Def)$|(?<=[a-z])D$")


@cache
def table() -> dict[str, Kind]:
    """kinds.csv, by name; a second name of a kind leads to it."""
    text = (resources.files("jumar.device.npu") / "kinds.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    found = {r["kind"]: Kind(r["kind"], r["family"], float(r["ops"]), int(r["stages"])) for r in rows if not r["same_as"]}
    return found | {r["kind"]: found[r["same_as"]] for r in rows if r["same_as"]}


def _stripped(name: str) -> str:
    """The name without prefixes of an interface and suffixes of a version."""
    name = re.sub(r"^(aclnn|te_|ascendc_)", "", name.rsplit("/", maxsplit=1)[-1])
    while name not in table() and (shorter := _SUFFIXES.sub("", name)) != name:
        name = shorter
    return name


@lru_cache(maxsize=4096)
def kind_of(kind: str, alternative: str = "") -> Kind:
    """What is known of an operator type, by its CANN name or by a second, canonical one.

    >>> kind_of("SoftmaxV2").name, kind_of("ConcatD").family, kind_of("FooNormGrad").listed
    ('Softmax', 'slice', False)
    """
    names = [_stripped(raw) for raw in (kind, alternative) if raw]
    for name in names:
        if found := table().get(name):
            return found
        if bare := table().get(name.removeprefix("Inplace")):
            return replace(bare, listed=False)
    for name in names:
        if name.endswith("Grad") and (base := table().get(_stripped(name.removesuffix("Grad")))):
            return replace(base, name=name, ops=2 * base.ops, listed=False)
        for parts, family, ops, stages in _PARTS:
            if any(part in name for part in parts.split()):
                backward = name.endswith("Grad") and family not in (ELEMENTWISE, ATTENTION, SOFTMAX)
                return Kind(name, family, 2 * ops if backward else ops, stages, listed=False)
    return Kind(names[0] if names else "", "", 2, 1, listed=False)
