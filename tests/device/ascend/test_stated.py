"""Versions are found in the spellings that people, tools and packages use, and nowhere else."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.device.ascend import component_versions, parse_version, versions_stated

FOUND = [
    ("CANN 8.0.RC3", "cann 8.0.RC3"),
    ("CANN7.0.RC1", "cann 7.0.RC1"),
    ("CANN 8.1 RC1", "cann 8.1.RC1"),
    ("**CANN**: 8.0.0", "cann 8.0.0"),
    ("cann 8.3rc1", "cann 8.3rc1"),
    ("<td>CANN</td><td>8.0.0</td>", "cann 8.0.0"),
    ("Ascend-cann-toolkit_8.1.RC1_linux-aarch64.run", "cann 8.1.RC1"),
    ("/usr/local/Ascend/ascend-toolkit/8.1.RC1/aarch64-linux", "cann 8.1.RC1"),
    ("/usr/local/Ascend/cann-8.5.1/lib64", "cann 8.5.1"),
    ("ascendai/cann:8.0.rc1-910b-ubuntu22.04-py3.10", "cann 8.0.rc1, python 3.10"),
    ("tested on 8.1.RC1.B080.", "cann 8.1.RC1.B080"),
    ("package_name=Ascend-cann-toolkit\nversion=8.5.1\ninnerversion=V100R001C25SPC002B220", "cann 8.5.1"),
    ("toolkit_running_version=[7.7.0.1.238:8.1.RC1]", "cann-inner 7.7.0.1.238, cann 8.1.RC1"),
    ("opp_kernel_running_version=[7.7.0.1.238:8.1.RC1]", "kernels 8.1.RC1"),
    ("Ascend-cann-kernels-910b_8.0.RC1.alpha003_linux.run", "kernels 8.0.RC1.alpha003"),
    ("Atlas-A3-cann-kernels_8.3.RC1_linux-aarch64.run", "kernels 8.3.RC1"),
    ("Atlas-A3-hdk-npu-driver_25.3.rc1_linux-aarch64.run", "driver 25.3.rc1"),
    ("Ascend-cann-910b-ops_8.5.0_linux-aarch64.run", "kernels 8.5.0"),
    ("Ascend-cann-nnal_8.1.RC1_linux-aarch64.run", "nnal 8.1.RC1"),
    ("    Ascend-cann-atb Version : 8.1.RC1.B150", "nnal 8.1.RC1.B150"),
    ("torch-npu==2.5.1", "torch_npu 2.5.1"),
    ("torch_npu-2.5.1.post1.dev20250619-cp310-cp310-manylinux_2_28_aarch64.whl", "torch_npu 2.5.1.post1.dev20250619"),
    ("Name: torch-npu\nVersion: 2.5.1", "torch_npu 2.5.1"),
    ("torch                    2.5.1+cpu", "torch 2.5.1+cpu"),
    ("| torch | 2.5.1 |", "torch 2.5.1"),
    ('{"name": "torch", "version": "2.5.1"}', "torch 2.5.1"),
    (">>> torch.__version__\n'2.8.0+cpu'", "torch 2.8.0+cpu"),
    ("torch-2.5.1+cpu.dist-info", "torch 2.5.1+cpu"),
    ("PyTorch/torch_npu 2.10.0 / 2.10.0.post4", "torch 2.10.0, torch_npu 2.10.0.post4"),
    ("vllm/vllm-ascend: v0.9.1/v0.9.1rc1", "vllm 0.9.1, vllm-ascend 0.9.1rc1"),
    ("PyTorch version: 2.5.1\nPython version: 3.10.17 (main, x)\nLibc version: glibc-2.35", "torch 2.5.1, python 3.10.17, glibc 2.35"),
    (
        "vLLM Version: 0.9.2.dev0+g4c905a4.empty (git sha: x)\nvLLM Ascend Version: 0.9.2rc1",
        "vllm 0.9.2.dev0+g4c905a4.empty, vllm-ascend 0.9.2rc1",
    ),
    ("quay.io/ascend/vllm-ascend:v0.9.1rc1-310p", "vllm-ascend 0.9.1rc1"),
    ("quay.io/ascend/vllm-ascend:v0.11.0rc0-a3", "vllm-ascend 0.11.0rc0"),
    ("Initializing a V1 LLM engine (v0.9.1) with config: x", "vllm 0.9.1"),
    ("ascendhub/mindie:1.0.0-800I-A2-py311-openeuler24.03-lts", "mindie 1.0.0, python 3.11"),
    ("PTA: 7.1.RC1.B020", "pta 7.1.RC1.B020"),
    ("| npu-smi 25.2.2                 Version: 25.2.2 |", "npu-smi 25.2.2, driver 25.2.2"),
    ("Driver Version: 23.0.3", "driver 23.0.3"),
    ("driver/firmware: 25.2.0", "driver 25.2.0"),
    ("Ascend HDK 25.0.RC1", "driver 25.0.RC1"),
    (
        "Ascend-hdk-910b-npu-driver_24.1.rc3_linux-aarch64.run\nAscend-hdk-910b-npu-firmware_7.5.0.1.129.run",
        "driver 24.1.rc3, firmware 7.5.0.1.129",
    ),
    ("驱动版本：24.1.rc3，固件版本 7.5.0.1.129，CANN版本为8.0.RC2", "driver 24.1.rc3, firmware 7.5.0.1.129, cann 8.0.RC2"),
    ("Software Version : 24.1.rc3\nFirmware Version : 7.5.0.1.129", "driver 24.1.rc3, firmware 7.5.0.1.129"),
    ("Version=24.1.rc3\nascendhal_version=7.35.23\n", "driver 24.1.rc3"),
    ("Version=7.5.0.1.129\nfirmware_version=1.0\ncompatible_version_drv=[23.0.0,23.0.0.]", "firmware 7.5.0.1.129"),
    (
        "MindSpore version 2.6.0 and Ascend AI software package (Ascend Data Center Solution)version 8.2 does not match",
        "mindspore 2.6.0, cann 8.2, cann-inner 8.2",
    ),
    ("mindspore_ascend-1.8.1-cp37-cp37m-linux_aarch64.whl", "mindspore 1.8.1"),
    ("MindSpore r2.3, python=3.9", "mindspore 2.3, python 3.9"),
    ("-- MindSpore version (source or binary): 2.3.0\n-- Python version (e.g., Python 3.7.5) : 3.9.18", "mindspore 2.3.0, python 3.9.18"),
    ("pytorch_2.1.0-cann_7.0.1.1-py_3.9-euler_2.10.7-aarch64-snt9b", "torch 2.1.0, cann 7.0.1.1, python 3.9"),
    ("torch2.1.0+torch_npu2.1.0.post6", "torch 2.1.0, torch_npu 2.1.0.post6"),
    ("CANN's version is 8.1.RC1", "cann 8.1.RC1"),
    ("Version=7.7.0.1.238\nversion_dir=8.1.RC1\n", "cann 8.1.RC1"),
    ("CANN版本：CANN 8.0.RC2", "cann 8.0.RC2"),
    ("驱动版本号 V23.0.RC2", "driver 23.0.RC2"),
    ("Successfully installed mindspore-2.6.0 numpy-1.26.4", "mindspore 2.6.0, numpy 1.26.4"),
    ("$ cat /usr/local/Ascend/driver/version.info\nVersion=24.1.rc3", "driver 24.1.rc3"),
    ("gcc version 7.3.0 (GCC)", "gcc 7.3.0"),
    ("ldd (GNU libc) 2.28", "glibc 2.28"),
    ("/opt/lib/python3.10/site-packages/numpy/core", "python 3.10"),
]
NOT_FOUND = [
    "cann 2024.10.12",
    "driver 192.0.2.1 port 10.0.2.15",
    "driver 10.0.2.15",
    "python 2025-01-01 10.2",
    "python:2025-02-25-18:43:29.395.610",
    "nvidia driver 25.54.03",
    "17.79 GiB allocated by PyTorch 5.50 GiB",
    "PyTorch 512.00 MB",
    "torch 2.x and CANN 8.x",
    "/models/Qwen2.5-VL-7B-Instruct",
    "version `GLIBC_2.27' not found",
    "requires CANN 8.5.0",
    "CANN 8.5.0 or later",
    "CANN 8.5.0 及以上",
    "torch>=2.1.0",
    "please upgrade the driver to 25.2.0: upgrade to driver 25.2.0",
    "torchdata 0.9.0",
    "torch-npu~=2.5.0",
    "torch-npu!=2.5.0",
    "至少需要 CANN 8.2.RC1",
    "driver 5.10.0-60",
    "intel-extension-for-pytorch 2.1.0",
]


@pytest.mark.parametrize("text, expected", FOUND)
def test_a_version_is_found_in_the_spelling(text: str, expected: str) -> None:
    found = component_versions(text)
    assert expected == ", ".join(f"{s.component} {s.version}" for s in found)
    assert all(0 <= s.start < len(text) for s in found)


@pytest.mark.parametrize("text", NOT_FOUND)
def test_what_states_no_version_gives_none(text: str) -> None:
    assert () == component_versions(text)


def test_what_is_demanded_is_told_apart() -> None:
    (stated,) = component_versions("this model needs CANN 8.5.0 or later", wanted=True)
    assert ("cann", parse_version("8.5.0"), True) == (stated.component, stated.version, stated.wanted)


def test_the_fuller_spelling_of_the_same_version_is_kept() -> None:
    found = versions_stated("CANN 8.1, python 3.10\nAscend-cann-toolkit_8.1.RC1_linux-aarch64.run\nPython 3.10.17\nCANN 8.2.RC1")
    assert {"cann": "8.1.RC1", "python": "3.10.17"} == {c: str(v) for c, v in found.items()}


def test_npu_smi_stands_for_its_driver_where_no_driver_is_stated() -> None:
    assert "23.0.0" == str(versions_stated("CANN 7.0.0, npu-smi 23.0.0")["driver"])


@pytest.mark.parametrize(
    "piece",
    [
        "1.1",
        "torch ",
        "driver/",
        "torch:",
        "Version=24.1\n",
        "(a)",
        "torch (e.g. torch ",
        "software package (",
        "-py3",
        "cann-",
        " ",
        "a=b\n",
    ],
)
def test_time_grows_with_the_length_alone(piece: str) -> None:
    def seconds(count: int) -> float:
        start = time.perf_counter()
        component_versions("torch" + piece * count)
        return time.perf_counter() - start

    seconds(100)
    assert seconds(16_000) < 40 * max(seconds(2_000), 0.002)


@given(st.text(alphabet="cantorhpyv0123.-_ \n=:[]/RC驱动", max_size=200))
def test_no_text_breaks_the_search(text: str) -> None:
    for stated in component_versions(text, wanted=True):
        assert stated.version == parse_version(str(stated.version))
