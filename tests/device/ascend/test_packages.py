"""The packages of a chip and a release have the names under which they are published."""

from __future__ import annotations

import pytest

from jumar.device.ascend import chip_family, first_cann_of_chip, package_of, parse_version, soc_of_kernels_package


@pytest.mark.parametrize(
    "component, version, soc, name",
    [
        ("kernels", "8.1.RC1", "Ascend910B4", "Ascend-cann-kernels-910b_8.1.RC1_linux-aarch64.run"),
        ("kernels", "8.5.0.alpha002", "A3", "Atlas-A3-cann-kernels_8.5.0.alpha002_linux-aarch64.run"),
        ("kernels", "8.5.0", "910_9391", "Ascend-cann-A3-ops_8.5.0_linux-aarch64.run"),
        ("kernels", "9.0.0", "310P3", "Ascend-cann-310p-ops_9.0.0_linux-aarch64.run"),
        ("cann", "8.5.1", "", "Ascend-cann-toolkit_8.5.1_linux-aarch64.run"),
        ("driver", "25.3.RC1", "910B3", "Ascend-hdk-910b-npu-driver_25.3.rc1_linux-aarch64.run"),
        ("driver", "25.3.RC1", "A3", "Atlas-A3-hdk-npu-driver_25.3.rc1_linux-aarch64.run"),
        ("firmware", "7.5.0.1.129", "910", "Ascend-hdk-910-npu-firmware_7.5.0.1.129.run"),
        ("torch_npu", "2.5.1.post1", "", "torch-npu==2.5.1.post1"),
    ],
)
def test_a_package_has_its_published_name(component: str, version: str, soc: str, name: str) -> None:
    assert name == package_of(component, parse_version(version), soc=soc)


@pytest.mark.parametrize(
    "name, family",
    [
        ("Ascend-cann-kernels-910b_8.0.RC1.alpha003_linux.run", "910b"),
        ("Ascend-cann-kernels-910_8.0.RC1_linux-aarch64.run", "910"),
        ("Ascend-cann-kernels-310p-8.0.0", "310p"),
        ("Atlas-A3-cann-kernels_8.3.RC1_linux-aarch64.run", "910_93"),
        ("Ascend-cann-A3-ops_8.5.0_linux-aarch64.run", "910_93"),
        ("Ascend-cann-310b-ops-8.5.0", "310b"),
        ("cann-950-ops", "950"),
        ("Ascend-cann-toolkit_8.1.RC1_linux-aarch64.run", ""),
    ],
)
def test_a_kernels_package_says_its_chip(name: str, family: str) -> None:
    assert family == soc_of_kernels_package(name)


@pytest.mark.parametrize("component, version", [("kernels", "8.1.RC1"), ("kernels", "9.0.0")])
@pytest.mark.parametrize("soc", ["910", "910b", "910_93", "310p", "310b"])
def test_the_name_of_a_package_leads_back_to_its_chip(component: str, version: str, soc: str) -> None:
    assert soc == soc_of_kernels_package(package_of(component, parse_version(version), soc=soc))


def test_families_of_chips() -> None:
    names = {
        "Ascend910A": "910",
        "910ProB": "910",
        "Ascend910B2C": "910b",
        "Ascend910_9362": "910_93",
        "Ascend910_9579": "950",
        "950PR_9599": "950",
        "310": "310",
        "Atlas": "",
    }
    assert names == {n: chip_family(n) for n in names}


def test_the_first_release_for_a_chip_is_known_where_notes_say_it() -> None:
    for name, release in (("Ascend950PR_9599", "9.0.0"), ("Ascend950DT_9591", "9.1.0")):
        found = first_cann_of_chip(name)
        assert found is not None and release == str(found[0]) and found[1]
    assert first_cann_of_chip("Ascend910B3") is None
