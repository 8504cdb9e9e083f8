"""The packages that install each component, by chip and release, and the chips that a release of CANN drives.

In: a component, its version, a chip's name.  Out: names of files and pip requirements, read by matching.py; the chip of a kernels package.
Up to 8.5.0.alpha002 the operators came as `Ascend-cann-kernels-<chip>`, from 8.5.0 on as `Ascend-cann-<chip>-ops` (CANN's installation guides).
"""

from __future__ import annotations

import re

from jumar.device.ascend.versions import Version, parse_version

OPS_SINCE = parse_version("8.5.0-beta.1")  # 8.5.0.alpha002 still had kernels
_CHIP_SINCE = (
    ("950dt", "9.1.0", "CANN 9.1.0 release notes"),
    ("950", "9.0.0", "CANN 9.0.0 release notes"),
)


def chip_family(name: str) -> str:
    """The family whose packages a chip takes: 910, 910b (A2), 910_93 (A3), 310, 310p, 310b, 950; empty where the name is none.

    >>> chip_family("Ascend910B4"), chip_family("Ascend910_9391"), chip_family("310P3"), chip_family("910ProB")
    ('910b', '910_93', '310p', '910')
    """
    plain = re.sub(r"[\s\-]", "", name.lower().removeprefix("ascend"))
    for start, family in (
        ("910_95", "950"), ("910_93", "910_93"), ("910c", "910_93"), ("a3", "910_93"), ("910b", "910b"), ("a2", "910b"), ("910", "910"),
        ("310p", "310p"), ("310b", "310b"), ("310", "310"), ("950", "950"),
    ):  # fmt: skip
        if plain.startswith(start):
            return family
    return ""


def soc_of_kernels_package(name: str) -> str:
    """The chip family that a package of operators is for, by its file name; empty where it is no such package.

    >>> soc_of_kernels_package("Ascend-cann-kernels-910b_8.0.RC1_linux.run"), soc_of_kernels_package("Atlas-A3-cann-kernels_8.3.RC1_linux-aarch64.run")
    ('910b', '910_93')
    """
    found = re.search(r"(?i)cann-kernels-([a-z0-9]{2,8}|910_93)(?=_|\.|-|\s|\Z)", name) or re.search(
        r"(?i)(?:cann|atlas)-([a-z0-9_]{2,8})-(?:cann-kernels|ops)", name
    )
    return chip_family(found[1]) if found else ""


def package_of(component: str, version: Version, *, soc: str = "", arch: str = "aarch64") -> str:
    """The name of the file, or the pip requirement, that installs a component.

    >>> package_of("kernels", parse_version("8.1.RC1"), soc="910B4"), package_of("kernels", parse_version("8.5.0"), soc="910B4", arch="x86_64")
    ('Ascend-cann-kernels-910b_8.1.RC1_linux-aarch64.run', 'Ascend-cann-910b-ops_8.5.0_linux-x86_64.run')
    """
    family = chip_family(soc)
    chip = {"910_93": "A3", "": "<chip>"}.get(family, family)
    hdk = "Atlas-A3-hdk" if chip == "A3" else f"Ascend-hdk-{chip}"
    match component:
        case "driver":
            return f"{hdk}-npu-driver_{version.text.lower()}_linux-{arch}.run"
        case "firmware":
            number = version.text if version.major < 20 else "<7.x.y.z.n>"
            return f"{hdk}-npu-firmware_{number}.run"
        case "cann":
            return f"Ascend-cann-toolkit_{version}_linux-{arch}.run"
        case "kernels" if version >= OPS_SINCE:
            return f"Ascend-cann-{chip}-ops_{version}_linux-{arch}.run"
        case "kernels" if chip == "A3":
            return f"Atlas-A3-cann-kernels_{version}_linux-{arch}.run"
        case "kernels":
            return f"Ascend-cann-kernels-{chip}_{version}_linux-{arch}.run"
        case "nnal":
            return f"Ascend-cann-nnal_{version}_linux-{arch}.run"
        case "mindie":
            return f"Ascend-mindie_{version}_linux-{arch}.run"
        case "python":
            return f"python {version.major}.{version.minor}"
        case _:
            return f"{component.replace('_', '-')}=={version}"


def first_cann_of_chip(name: str) -> tuple[Version, str] | None:
    """The release of CANN that first drives a chip, and the source; None where no source says it.

    >>> str(first_cann_of_chip("Ascend950DT_9591")[0])
    '9.1.0'
    """
    plain = name.lower().removeprefix("ascend").replace("-", "_")
    for start, release, source in _CHIP_SINCE:
        if plain.startswith(start):
            return parse_version(release), source
    return None
