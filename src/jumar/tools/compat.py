"""`jumar compat`: do driver, firmware, CANN, framework and Python fit, which set would, and what to change in which order.

In: versions as options, or what is installed here (version files, pip's metadata).  Out: pairs with their verdicts, a set, steps; or JSON.
Exit code 0 where nothing is outside, 1 where something is, 2 where nothing is known.  Nothing is ever installed or run.
"""

from __future__ import annotations

import json
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from jumar.base import Language, Said, ToolError, during, told
from jumar.device.ascend import (
    MatchingSet,
    Pairing,
    Version,
    VersionFile,
    chip_family,
    find_cann,
    first_cann_of_chip,
    matching_set,
    near_releases,
    pairings,
    parse_version,
    read_version,
    read_version_files,
    releases,
    versions_of_files,
)
from jumar.device.npu import find_chip
from jumar.tools.compat_terminal import Answer, named, show
from jumar.tools.language import lang_option
from jumar.tools.soc import complete_soc

_WHEELS = {  # component -> its distributions
    "mindspore": ("mindspore", "mindspore-ascend"),
    "torch": ("torch",),
    "torch_npu": ("torch-npu",),
    "vllm": ("vllm",),
    "vllm-ascend": ("vllm-ascend",),
    "mindspeed": ("mindspeed",),
    "triton-ascend": ("triton-ascend",),
    "mindspore-lite": ("mindspore-lite",),
    "vllm-mindspore": ("vllm-mindspore",),
}
_OPTIONS = (
    ("cann", "CANN, such as 8.1.RC1."), ("mindspore", "MindSpore, such as 2.6.0."), ("torch-npu", "torch_npu, such as 2.5.1.post1."),
    ("torch", "PyTorch, such as 2.5.1."), ("driver", "The driver (Ascend HDK), such as 25.0.RC1."),
    ("firmware", "The firmware: 7.x.y.z.n, or the HDK's number."), ("vllm-ascend", "vllm-ascend, such as 0.9.1."), ("vllm", "vLLM, such as 0.9.1."),
    ("mindie", "MindIE, such as 2.1.RC1."), ("mindspeed", "MindSpeed, such as 2.0.0."),
    ("kernels", "CANN's operator package (kernels, ops from 8.5.0 on), with CANN's number."), ("nnal", "NNAL (ATB), with CANN's number."),
    ("python", "Python, such as 3.10."),
)  # fmt: skip


_BARE = Said(
    "a bare 910B is npu-smi's name of the first generation (910A, 910ProB); for Atlas A2 name 910B1, 910B2, 910B3 or 910B4",
    "单独的 910B 是 npu-smi 对第一代（910A、910ProB）的叫法；Atlas A2 请写 910B1、910B2、910B3 或 910B4",
)


_FOLLOWERS = {
    "cann": ("kernels", "nnal"),
    "torch_npu": ("torch",),
    "vllm-ascend": ("vllm",),
}  # what changes with a part whose number it carries


@dataclass(frozen=True)
class Here:
    """What is installed on this machine."""

    versions: Mapping[str, Version]
    files: tuple[VersionFile, ...]
    is_host: bool  # a driver or a CANN is here


def _complete_version(_ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The releases that the tables name, the newest first."""
    component = "torch_npu" if param.name == "torch_npu" else (param.name or "").replace("_", "-")
    return [CompletionItem(str(v)) for v in reversed(releases(component)) if str(v).lower().startswith(incomplete.lower())]


_PRODUCTS = "cann|mindspore|torch[-_]?npu|pytorch|torch|vllm[-_]ascend|vllm|mindie|mindspeed|driver|hdk|nnal|python"
_TAG = re.compile(rf"(?i)(?:ascend[-_ ])?(?:{_PRODUCTS})[-_ =v]*(?=\d)")


def plain_version(text: str) -> str:
    """The version in a name or a tag that holds one.

    >>> plain_version("CANN-8.1.RC1.alpha001"), plain_version("v2.0.0_core_r0.8.0"), plain_version("8.1.RC1")
    ('8.1.RC1.alpha001', '2.0.0', '8.1.RC1')
    """
    text = _TAG.sub("", text.strip(), count=1)
    return re.sub(r"^v?(\d+(?:\.\d+)+)[_-](?:core|br|branch|pytorch|tag)[_-].*$", r"\1", text)


def _version_options(function: Any) -> Any:
    for name, about in reversed(_OPTIONS):
        function = click.option(f"--{name}", name.replace("-", "_"), metavar="V", shell_complete=_complete_version, help=about)(function)
    return function


@click.command()
@_version_options
@click.option(
    "--soc", default="", metavar="NAME", shell_complete=complete_soc, help="The chip, for the packages' names: Ascend910B3, 310P3, A3."
)
@click.option(
    "--arch", type=click.Choice(["aarch64", "x86_64"]), help="The host's architecture, for the packages' names; without it, this machine's."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@lang_option
def command(soc: str, arch: str | None, as_json: bool, lang: Language, **asked: str | None) -> None:
    """Say whether driver, firmware, CANN, framework and Python fit, and propose a set that does, with the steps to it.

    Of the versions that the options name, in any spelling, and of what is installed here; without options, of this machine alone.  It needs no
    network and no NPU; nothing is installed.

    \b
    jumar compat
    jumar compat --cann 8.1.RC1 --soc Ascend910B3
    jumar compat --torch-npu 2.5.1 --cann 8.0.RC3 --driver 24.1.rc3

    Exit code: 0 nothing is outside of what fits, 1 something is, 2 nothing is known.
    """
    if soc and not chip_family(soc):
        raise ToolError(
            Said(f"compat: --soc must be an Ascend chip, got {soc!r}", f"compat：--soc 必须是昇腾芯片，不能是 {soc!r}"),
            hint=Said(
                "such as Ascend910B3, Ascend910_9391 (A3), 310P3, 310B4, 910A", "例如 Ascend910B3、Ascend910_9391（A3）、310P3、310B4、910A"
            ),
            code="compat-soc",
        )
    if re.fullmatch(r"(?i)(?:ascend[- _]?)?910b", soc.strip()):  # npu-smi's bare name, as find_chip takes it
        click.echo(f"! {told(_BARE, lang)}", err=True)
        soc = find_chip("910A").name
    fixed: dict[str, Version] = {}
    for name, text in asked.items():
        if text:
            option = name.replace("_", "-")
            with during(Said(f"reading --{option}", f"读取 --{option}")):
                fixed[name if name == "torch_npu" else option] = parse_version(plain_version(text))
    here = installed_here()
    beside = {} if fixed and not here.is_host else here.versions
    shown = {**beside, **fixed}
    if not fixed and not any(c != "python" for c in shown):
        raise ToolError(
            Said(
                "compat: a driver, CANN or a framework must be installed here, or be named, got nothing",
                "compat：本机没有安装驱动、CANN 或框架，命令行也没有给出版本",
            ),
            hint=Said(
                "name what you have or want: jumar compat --cann 8.1.RC1 --torch-npu 2.5.1",
                "写出已有的或想要的版本：jumar compat --cann 8.1.RC1 --torch-npu 2.5.1",
            ),
            code="compat-nothing",
        )
    host = arch or {"arm64": "aarch64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    found = matching_set(fixed, beside, soc=soc, arch=host)
    others = alternatives(found, fixed, beside, soc, host)
    files = () if fixed else here.files
    answer = Answer(shown, tuple(fixed), pairings(shown, files), found, others, files, soc)
    if as_json:
        click.echo(json.dumps(document(answer), indent=1, ensure_ascii=False))
    else:
        show(answer, lang)
    if answer.exit_code:
        sys.exit(answer.exit_code)


def installed_here(root: Path = Path("/")) -> Here:
    """The versions that this machine's files and pip's metadata state."""
    cann = find_cann(root)
    files = read_version_files(root, cann.home)
    versions = versions_of_files(files)
    for component, text in (("cann", cann.version), ("driver", cann.driver)):
        if component not in versions and (version := read_version(text)):
            versions[component] = version
    is_host = bool({"cann", "driver"} & set(versions))
    for component, names in _WHEELS.items():
        for name in names:
            try:
                version = read_version(metadata.version(name))
            except metadata.PackageNotFoundError:
                continue
            if version is not None:
                versions.setdefault(component, version)
    versions["python"] = parse_version(platform.python_version().rstrip("+"))
    return Here(versions, files, is_host)


def document(answer: Answer) -> dict[str, Any]:
    """The answer for programs."""
    first = first_cann_of_chip(answer.soc) if answer.soc else None
    return {
        "versions": {c: str(v) for c, v in answer.versions.items()},
        "asked": sorted(answer.asked),
        "pairs": [_pair_document(p) for p in answer.pairs],
        **_set_document(answer.found),
        "contradiction": asdict(answer.found.contradiction) if answer.found.contradiction else None,
        "alternatives": [{"changes": component, **_set_document(one)} for component, one in answer.others],
        "unknown": list(answer.found.unknown),
        "nearest": {part: [str(v) for v in near_releases(*named(part))] for part in answer.found.unknown},
        "chip": {"name": answer.soc, "first_cann": str(first[0]), "source": first[1]} if first else None,
        "files": [{"path": f.path, "complaints": [str(c) for c in f.complaints]} for f in answer.files if f.complaints],
        "exit_code": answer.exit_code,
    }


def _set_document(found: MatchingSet) -> dict[str, Any]:
    return {
        "set": {c: str(v) for c, v in found.versions.items()},
        "set_pairs": [_pair_document(p) for p in found.pairings],
        "steps": [asdict(step) for step in found.steps],
    }


def _pair_document(pair: Pairing) -> dict[str, Any]:
    return {
        "a": pair.a,
        "a_version": str(pair.a_version),
        "b": pair.b,
        "b_version": str(pair.b_version),
        "verdict": pair.verdict,
        "wants": pair.wants,
        "wanted": list(pair.wanted),
        "nearest": pair.nearest,
        "note": pair.note,
        "source": pair.source,
    }


def alternatives(
    clash: MatchingSet, fixed: Mapping[str, Version], beside: Mapping[str, Version], soc: str, arch: str
) -> tuple[tuple[str, MatchingSet], ...]:
    """For each of those that stand in the way of a set: the set if that one may change, with the steps from what was named."""
    if clash.versions or clash.unknown:
        return ()
    if clash.contradiction:  # the two that exclude each other
        clashing = [part.partition(" ")[0] for part in (clash.contradiction.other, clash.contradiction.one)]
    else:  # no two of them exclude each other, and still no table pairs all: what only fits a range first
        near = {pair.wants for pair in pairings(fixed) if pair.verdict == "inside"}
        clashing = sorted(fixed, key=lambda component: component not in near) if len(fixed) > 1 else []
    found = []
    for component in clashing:
        if component in fixed:
            free = {component, *(c for c in _FOLLOWERS.get(component, ()) if c not in clashing)}
            rest = {c: v for c, v in fixed.items() if c not in free}
            found.append((component, matching_set(rest, {**beside, **fixed}, soc=soc, arch=arch)))
    return tuple((component, one) for component, one in found if one.versions)
