"""An Ascend host as its own files and tools describe it: versions, cards, networks, error codes; texts in, typed values out.

In: texts that npu-smi, hccn_tool, the packages' version files and logs hold.  Out: values that know what they mean and precise complaints.
Nothing is started, nothing is sent.  Each name is imported when it is first asked for, so that a deployed model does not wait for tables.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from jumar.device.ascend.cann import Cann, find_cann

if TYPE_CHECKING:
    from jumar.device.ascend.codes import (
        FAMILIES,
        Code,
        Mention,
        codes_in,
        codes_of,
        families_named,
        find_code,
        known_codes,
        near_codes,
        out_of_range,
    )
    from jumar.device.ascend.compat import Pairing, declared_pairings, judge, pairings
    from jumar.device.ascend.compat_table import near_releases, releases
    from jumar.device.ascend.complaint import Complaint, plain_lines
    from jumar.device.ascend.confinement import (
        Confinement,
        device_allowed,
        in_user_namespace,
        parse_confinement,
        parse_device_rules,
        root_outside,
    )
    from jumar.device.ascend.device_nodes import DeviceListing, DeviceNode, parse_devices, visible_ids
    from jumar.device.ascend.dmesg import DriverLine, DriverTexts, InstallLine, KernelModule, parse_driver_texts
    from jumar.device.ascend.docker import (
        Container,
        DeviceMap,
        Inside,
        Mount,
        check_container,
        inside_container,
        parse_docker_inspect,
        parse_docker_run,
    )
    from jumar.device.ascend.hccn import Hccn, HccnDevice, LinkChange, LinkHistory, Optical, Ping, Tls, check_hccn, parse_hccn
    from jumar.device.ascend.json_lines import Entry, read_json
    from jumar.device.ascend.matching import Contradiction, MatchingSet, Step, matching_set, steps
    from jumar.device.ascend.npu_smi import Failure, HealthFinding, Holding, NpuSmi, busy, health_findings, parse_npu_smi
    from jumar.device.ascend.npu_smi_forms import FaultEvent, Mapped, Process, Properties, Topology
    from jumar.device.ascend.npu_smi_tables import Npu, soc_of
    from jumar.device.ascend.packages import chip_family, first_cann_of_chip, package_of, soc_of_kernels_package
    from jumar.device.ascend.rank_table import RankAddress, RankDevice, RankServer, RankTable, SuperPod, parse_rank_table
    from jumar.device.ascend.rank_table_checks import check_rank_table
    from jumar.device.ascend.stated import COMPONENTS, STATES_A_VERSION, Stated, component_versions, versions_stated
    from jumar.device.ascend.version_files import VersionFile, parse_version_file, read_version_files, versions_of_files
    from jumar.device.ascend.versions import Range, Version, parse_version, read_version, within

_FACES: dict[str, str] = {  # where each name lives: file -> its names
    "codes": "FAMILIES Code Mention codes_in codes_of families_named find_code known_codes near_codes out_of_range",
    "compat": "Pairing declared_pairings judge pairings",
    "compat_table": "near_releases releases",
    "complaint": "Complaint plain_lines",
    "confinement": "Confinement device_allowed in_user_namespace parse_confinement parse_device_rules root_outside",
    "device_nodes": "DeviceListing DeviceNode parse_devices visible_ids",
    "dmesg": "DriverLine DriverTexts InstallLine KernelModule parse_driver_texts",
    "docker": "Container DeviceMap Inside Mount check_container inside_container parse_docker_inspect parse_docker_run",
    "hccn": "Hccn HccnDevice LinkChange LinkHistory Optical Ping Tls check_hccn parse_hccn",
    "json_lines": "Entry read_json",
    "matching": "Contradiction MatchingSet Step matching_set steps",
    "npu_smi": "Failure HealthFinding Holding NpuSmi busy health_findings parse_npu_smi",
    "npu_smi_forms": "FaultEvent Mapped Process Properties Topology",
    "npu_smi_tables": "Npu soc_of",
    "packages": "chip_family first_cann_of_chip package_of soc_of_kernels_package",
    "rank_table": "RankAddress RankDevice RankServer RankTable SuperPod parse_rank_table",
    "rank_table_checks": "check_rank_table",
    "stated": "COMPONENTS STATES_A_VERSION Stated component_versions versions_stated",
    "version_files": "VersionFile parse_version_file read_version_files versions_of_files",
    "versions": "Range Version parse_version read_version within",
}
_PLACES = {name: file for file, names in _FACES.items() for name in names.split()}

__all__ = [
    "COMPONENTS",
    "Cann",
    "Code",
    "Complaint",
    "Confinement",
    "Container",
    "Contradiction",
    "DeviceListing",
    "DeviceMap",
    "DeviceNode",
    "DriverLine",
    "DriverTexts",
    "Entry",
    "FAMILIES",
    "Failure",
    "FaultEvent",
    "Hccn",
    "HccnDevice",
    "HealthFinding",
    "Holding",
    "Inside",
    "InstallLine",
    "KernelModule",
    "LinkChange",
    "LinkHistory",
    "Mapped",
    "MatchingSet",
    "Mention",
    "Mount",
    "Npu",
    "NpuSmi",
    "Optical",
    "Pairing",
    "Ping",
    "Process",
    "Properties",
    "Range",
    "RankAddress",
    "RankDevice",
    "RankServer",
    "RankTable",
    "STATES_A_VERSION",
    "Stated",
    "Step",
    "SuperPod",
    "Tls",
    "Topology",
    "Version",
    "VersionFile",
    "busy",
    "check_container",
    "check_hccn",
    "check_rank_table",
    "chip_family",
    "codes_in",
    "codes_of",
    "component_versions",
    "declared_pairings",
    "device_allowed",
    "families_named",
    "find_cann",
    "find_code",
    "first_cann_of_chip",
    "health_findings",
    "in_user_namespace",
    "inside_container",
    "judge",
    "known_codes",
    "matching_set",
    "near_releases",
    "near_codes",
    "out_of_range",
    "package_of",
    "pairings",
    "parse_confinement",
    "parse_device_rules",
    "parse_devices",
    "parse_docker_inspect",
    "parse_docker_run",
    "parse_driver_texts",
    "parse_hccn",
    "parse_npu_smi",
    "parse_rank_table",
    "parse_version",
    "parse_version_file",
    "plain_lines",
    "read_json",
    "read_version",
    "read_version_files",
    "releases",
    "root_outside",
    "soc_of",
    "soc_of_kernels_package",
    "steps",
    "versions_of_files",
    "versions_stated",
    "visible_ids",
    "within",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value
