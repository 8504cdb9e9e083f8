"""Which versions a text states: issue reports, environment lists, file names, images, tool headers, version files, logs.

In: any text.  Out: `Stated` values in the order of the text; `versions_stated` makes one version per component of them.
Not taken: what is only demanded ("requires CANN 8.5", ">= 9.0"), dates, addresses, sizes, other vendors' drivers.
Names are looked for first, then what follows a name; every repetition is bounded, so that time grows with the text's length alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from jumar.device.ascend.versions import VERSION, Version, market_of_inner, parse_version, read_version


@dataclass(frozen=True)
class Stated:
    """A component and its version, as `text[start:]` states it.   wanted: it is demanded, not what is there."""

    component: str
    version: Version
    start: int
    wanted: bool = False


_SOC = r"(?:[a-z0-9_]{1,12})"
_PACKAGES = tuple(
    "numpy scipy protobuf decorator sympy cffi attrs pyyaml psutil absl-py transformers tokenizers triton onnxruntime onnx te hccl setuptools ray "  # noqa: SIM905
    "deepspeed accelerate peft megatron-core sglang lmdeploy ms-swift paddlepaddle mooncake cmake msprobe "
    "modelscope opencv-python-headless opencv-python".split()
)
_NAMES: tuple[tuple[str, str], ...] = (  # component, spellings; the longer stands before what it starts with
    ("kernels", rf"(?:atlas-a3-)?(?:ascend[-_ ])?cann[-_ ](?:{_SOC}[-_ ])?(?:kernels?|ops)(?:[-_]{_SOC}(?=_))?|opp_kernel(?!_)"),
    ("nnal", r"(?:ascend[-_ ])?(?:cann[-_ ])?nnal(?:/atb)?|ascend-cann-atb|atb"),
    ("cann", r"(?:ascend[-_ ]?)?cann(?:[-_ ](?:toolkit|nnae|nnrt))?|ascend[-_ ](?:toolkit(?:_install\.info)?|nnae|nnrt)"),
    ("cann-inner", r"software package(?:\s?\([^()\n]{1,60}\))?"),
    (
        "driver",
        rf"(?:ascend-hdk-{_SOC}-|atlas-a3-hdk-|a\d{{3}}[a-z]?-(?:[a-z0-9]{{1,12}}-){{0,3}})?(?:npu[-_ ]|ascend[-_ ]|hdk[-_ ]|npu)?"
        r"(?:driver(?:\s?(?:/|&|and)\s?firmware)?(?:/version\.info)?|驱动(?:\s?[/&和与及、]?\s?固件)?)"
        r"|(?:ascend[-_ ])?hdk(?!-[a-z0-9_]{1,12}-npu)|(?:ascend/)?driver/version\.info|software(?=[ _]version)",
    ),
    (
        "firmware",
        rf"(?:ascend-hdk-{_SOC}-|atlas-a3-hdk-|a\d{{3}}[a-z]?-(?:[a-z0-9]{{1,12}}-){{0,3}})?(?:npu[-_ ]|ascend[-_ ]|hdk[-_ ])?"
        r"(?:firmware(?:/version\.info)?|固件)",
    ),
    ("npu-smi", r"npu[-_]smi"),
    ("torch_npu", r"(?:py)?torch[-_ ]?npu|ascend/pytorch"),
    ("pta", r"framework[ _-]?pt[ _-]?adapter|pta"),
    ("torchvision", r"torchvision(?:[-_]npu)?"),
    ("torchaudio", r"torchaudio"),
    ("torch", r"(?:py)?torch"),
    ("vllm-mindspore", r"vllm[-_ ]?mindspore"),
    ("vllm-ascend", r"vllm[-_ ]?ascend"),
    ("vllm", r"vllm|llm engine"),
    ("mindspore-lite", r"mindspore[-_ ]?lite"),
    ("mindspore", r"(?:__)?mindspore(?:[-_ ](?:ascend|dev|gpu|cpu))?"),
    ("mindformers", r"mind(?:spore[-_ ]trans)?formers"),
    ("mindspeed", r"mindspeed(?:[-_ ](?:llm|mm|rl|core))?"),
    ("mindie", r"(?:ascend[-_ ])?mindie(?:[-_ ](?:llm|service|server|motor|rt|torch|sd))?"),
    ("python", r"python(?:3(?![.\d]))?|py[-_]?(?=3\.\d)"),
    ("triton-ascend", r"triton[-_ ]ascend"),
    ("onnxruntime-cann", r"onnxruntime[-_]cann"),
    ("glibc", r"glibc(?!_)|libc6|gnu libc\)"),
    ("gcc", r"gcc|g\+\+"),
    *((name, name.replace("-", "[-_]")) for name in _PACKAGES),
)
COMPONENTS = tuple(name for name, _ in _NAMES)  # whose versions a text can state
_MAJORS: Mapping[str, tuple[int, int]] = {  # what a component's first number can be; guards against sizes, addresses and other products
    "cann": (1, 20), "kernels": (1, 20), "nnal": (1, 20), "cann-inner": (1, 20), "driver": (20, 60), "firmware": (1, 60), "npu-smi": (1, 60),
    "torch_npu": (1, 7), "torch": (0, 4), "python": (2, 4), "mindspore": (0, 5), "vllm": (0, 3), "vllm-ascend": (0, 3), "mindie": (1, 9),
    "pta": (2, 40), "mindspeed": (0, 30), "glibc": (2, 2),
}  # fmt: skip

_CHARS = r"[ \t:=_\-/|(（)）：@\"'`\[\]*【】「」]{0,50}"
_WORDS = (
    r"(?:versions?(?![a-z])|ver\.?(?![a-z])|release[sd]?|running|upgrade|installed|is|are|the|in use|used|info|build|adapter|package"
    r"|api server|community|commercial|edition|toolkit|__version__|</?t[dh]>|'s|and kernels?|\([^()\n]{1,40}\)"
    r"|版本号?|社区版|商[用业]版|软件包|当前|使用的?|为|是|的|r(?=\d))"
)
_NEXT_LINE = r"\s{0,20}\n\s{0,8}[\"']?(?:package_)?version[\"']?\s{0,8}[:=]\s{0,8}[\"']?"  # pip show, version files
_JSON = r"[\"'],\s{0,20}[\"']version[\"']\s{0,4}:\s{0,4}[\"']"
_REPL = r"\.__version__\)?[\s:=\"'`]{0,12}"
_TRIAL = r"(?: rc\d{1,2}(?:\.(?:alpha|beta)\d{1,4})?(?![.\d]))?"  # "CANN 8.1 RC1"
_AFTER_TEXT = rf"(?:{_REPL}|{_NEXT_LINE}|{_JSON}|(?:{_CHARS}{_WORDS}){{0,4}}{_CHARS})"
_NUMBER = rf"{VERSION}{_TRIAL}"
_END = r"(?![a-z0-9])(?!\s{0,2}(?:[kmgt]i?b?|ms|us|s|%|°|w|hz|[kmg]hz|seconds?|x)(?![a-z0-9]))"
_WHOLE = r"(?:(?![a-z])|(?<=\)))"  # the name ends here
_NAME = r"(?:(?<![a-z0-9_.\-])|(?<=\d[-_]))(?:" + "|".join(f"(?P<n{i}>{pattern})" for i, (_, pattern) in enumerate(_NAMES)) + f"){_WHOLE}"
_SECOND = "(?:" + "|".join(f"(?P<m{i}>{pattern})" for i, (_, pattern) in enumerate(_NAMES)) + f"){_WHOLE}"

_FIND_NAME = re.compile(_NAME, re.IGNORECASE)
_AFTER = re.compile(rf"{_AFTER_TEXT}(?P<v>{_NUMBER}){_END}", re.IGNORECASE)
_HEADER = re.compile(rf"npu-smi\s{{1,20}}v?\S{{1,30}}\s{{1,40}}version:\s{{0,4}}(?P<v>{_NUMBER})", re.IGNORECASE)
_RUNNING = re.compile(rf"([a-z_]{{2,20}}?)_(?:running|installed)_version=\[(?P<w>{_NUMBER}):(?P<v>{_NUMBER})\]", re.IGNORECASE)
_BARE_FILE = re.compile(
    rf"^version=(?P<v>{_NUMBER})\n(?:[\w.]{{1,40}}=.{{0,300}}\n){{0,12}}?(?P<k>ascendhal_version|compatible_version_fw|compatible_version_drv)=",
    re.IGNORECASE | re.MULTILINE,
)
_DIR = re.compile(rf"\bversion_dir\s?=\s?(?P<v>{_NUMBER})", re.IGNORECASE)
_EXAMPLE = re.compile(r"(?:e\.g\.?,?|for example,?|such as|例如|比如|如)\s?\Z", re.IGNORECASE)
_TAG = re.compile(r"(?<=[\d\w]-)py3\.?(?P<v>\d{1,2})(?=[-\s\"'`)]|\Z)", re.IGNORECASE)  # of an image: -py3.10, -py311
_BARE_CANN = re.compile(r"(?<![\w.\-/:\[])[89]\.\d\.RC\d(?:\.(?:alpha|beta)\d{1,4}|\.B\d{2,4})?(?![\w\-])")
_DEMANDED = re.compile(
    r"(?:requires?|required|needs?|at least|expect(?:s|ed)?|recommend(?:s|ed)?|supports?|supported|compatible with"
    r"|(?:up|down)grad(?:e|ing) (?:the )?(?:\w{1,20} ){0,2}?to|升级[到至为]|降级[到至为]|需要|要求|推荐|建议|支持|适配|配套)[^\n.;，。；]{0,16}\Z",
    re.IGNORECASE,
)
_OR_LATER = re.compile(r"\+(?!\w)|\s{0,2}(?:or|and)\s(?:later|newer|above|higher|up)|\s{0,2}及?以上|\s{0,2}及之后", re.IGNORECASE)
_OTHERS = re.compile(r"(?:nvidia|cuda|gpu|amd|rocm|intel|mellanox|mlx\d?|graphics)[^\n]{0,12}\Z", re.IGNORECASE)

# a line without any of these states no version: for readers of long logs (RE2 syntax)
STATES_A_VERSION = (
    r"(?i)cann|torch|mindspore|mindie|vllm|nnal|atb|driver|firmware|npu.?smi|python|pta|adapter|hdk|glibc|gcc|numpy"
    r"|_version=|ascend-toolkit|驱动|固件|software"
)


def component_versions(text: str, *, wanted: bool = False) -> tuple[Stated, ...]:
    """The versions that `text` states, in its order.   wanted: those that it only demands, too.

    >>> [(s.component, str(s.version)) for s in component_versions("torch_npu 2.7.1 on CANN 8.3.RC1, driver: 25.3.rc1")]
    [('torch_npu', '2.7.1'), ('cann', '8.3.RC1'), ('driver', '25.3.rc1')]
    """
    found = {(s.start, s.component): s for s in _stated(text)}
    taken = sorted(found.values(), key=lambda s: (s.start, s.component))
    return tuple(s for s in taken if wanted or not s.wanted)


def versions_stated(text: str) -> dict[str, Version]:
    """One version per component: the first that is stated, or a later, fuller spelling of the same.

    >>> {c: str(v) for c, v in versions_stated("CANN 8.1 ... Ascend-cann-toolkit_8.1.RC1_linux-aarch64.run").items()}
    {'cann': '8.1.RC1'}
    """
    chosen: dict[str, Version] = {}
    for stated in component_versions(text):
        known = chosen.get(stated.component)
        if known is None or (len(stated.version.text) > len(known.text) and stated.version.text.lower().startswith(known.text.lower())):
            chosen[stated.component] = stated.version
    if "npu-smi" in chosen:  # it comes with the driver
        chosen.setdefault("driver", chosen["npu-smi"])
    return chosen


def _stated(text: str) -> Iterator[Stated]:
    ends: set[int] = set()
    slash = text.rfind("/")
    for name in _FIND_NAME.finditer(text):
        if name.start() < slash and (pair := _pair().match(text, name.start())):
            for group, component in (("v", _component(pair, "n")), ("w", _component(pair, "m"))):
                yield from _one(component, pair, group, name.start(), text)
            ends |= {pair.start("v"), pair.start("w")}
        elif (after := _AFTER.match(text, name.end())) and after.start("v") not in ends:
            for stated in _one(_component(name, "n"), after, "v", name.start(), text):
                yield stated
                if stated.component == "cann-inner" and (release := market_of_inner(stated.version)):  # MindSpore's warning names it so
                    yield Stated("cann", release, stated.start, stated.wanted)
            ends.add(after.start("v"))
    for header in _HEADER.finditer(text):
        yield from _one("driver", header, "v", header.start("v"), text)
    for line in _RUNNING.finditer(text):
        if line[1].lower() in ("toolkit", "runtime", "compiler", "opp_kernel"):
            component = "kernels" if line[1].lower() == "opp_kernel" else "cann"
            yield from _one(component, line, "v", line.start("v"), text)
            if component == "cann":
                yield from _one("cann-inner", line, "w", line.start("w"), text)
    for block in _BARE_FILE.finditer(text):
        yield from _one("firmware" if block["k"].lower().endswith("drv") else "driver", block, "v", block.start(), text)
    for line in _DIR.finditer(text):
        yield from _one("cann", line, "v", line.start("v"), text)
    for tag in _TAG.finditer(text):
        yield Stated("python", parse_version(f"3.{tag['v']}"), tag.start())
    for bare in _BARE_CANN.finditer(text):
        if bare.start() not in ends:
            yield from _one("cann", bare, "", bare.start(), text)


@cache
def _pair() -> re.Pattern[str]:
    """Two names before two versions.   Compiled for a text that has a slash: it is half of what all patterns here take."""
    both = rf"{_NAME}\s?[/&]\s?{_SECOND}{_AFTER_TEXT}(?P<v>{_NUMBER})\s{{0,3}}/\s{{0,3}}(?P<w>{_NUMBER}){_END}"
    return re.compile(both, re.IGNORECASE)


def _component(found: re.Match[str], letter: str) -> str:
    return next(name for i, (name, _) in enumerate(_NAMES) if found[f"{letter}{i}"] is not None)


def _one(component: str, found: re.Match[str], group: str, start: int, text: str) -> Iterator[Stated]:
    """The Stated of a match, if its number can be a version of that component."""
    written = found[group or 0]
    if " " in written:
        written = written.replace(" ", ".")
    version = read_version(written)
    low, high = _MAJORS.get(component, (0, 99))
    if version is None or not low <= version.major <= high or len(version.release) < 2:
        return
    if len(version.release) == 4 and version.major in (10, 127) and not version.stages:
        return
    if component == "firmware" and len(version.release) < 3 and version.major < 20:
        return
    if component == "python" and version.minor > 30:
        return
    before = text[max(0, start - 60) : start]
    if component == "driver" and _OTHERS.search(before.rpartition("\n")[2]):
        return
    if _EXAMPLE.search(before):
        return
    end = found.end(group) if group else found.end()
    demanded = bool(_DEMANDED.search(before.rpartition("\n")[2]) or _OR_LATER.match(text, end))
    yield Stated(component, version, start, demanded)
