"""Every text that the samples hold is recognised for what it is; what is changed at random gives a machine or a line, never a traceback, and soon."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from tests.field.machines import KINDS, MACHINES, SAMPLES, smi, write_folder

from jumar.base import ToolError
from jumar.tools.doctor.checks import facts
from jumar.tools.doctor.foreign import foreign
from jumar.tools.doctor.recognise import kind_of

FIELD = Path(__file__).resolve().parents[3] / "../shared/facts/field"

COLLECT_ENV = f"""Collecting environment information...
PyTorch version: 2.5.1
Is debug build: False

OS: Ubuntu 22.04.5 LTS (aarch64)
Libc version: glibc-2.35
Python version: 3.10.15 (main, Nov 27 2024, 06:51:55) [GCC 11.4.0] (64-bit runtime)

Versions of relevant libraries:
[pip3] numpy==1.26.4
[pip3] torch==2.5.1
[pip3] torch-npu==2.6.0
[conda] Could not collect
vLLM Version: 0.7.3
vLLM Ascend Version: 0.7.3

ENV Variables:
ASCEND_HOME_PATH=/usr/local/Ascend/ascend-toolkit/latest
LD_LIBRARY_PATH=/usr/local/Ascend/ascend-toolkit/latest/lib64:/usr/local/Ascend/driver/lib64

NPU:
{smi("24.1.rc3")}
CANN:
package_name=Ascend-cann-toolkit
version=8.1.RC1
innerversion=V100R001C21SPC001B238
compatible_version=[V100R001C15],[V100R001C18],[V100R001C19],[V100R001C20],[V100R001C21]
arch=aarch64
os=linux
path=/usr/local/Ascend/ascend-toolkit/8.1.RC1/aarch64-linux
"""


@pytest.mark.parametrize(
    "name, kind",
    [
        ("01_910B1_24.1.rc3_idle.txt", "npu-smi"),
        ("11_container_minus_8005.txt", "npu-smi"),
        ("20_t_board_910_first_generation_23.0.5.txt", "npu-smi"),
        ("driver_version.info_24.1.rc3", "file:/usr/local/Ascend/driver/version.info"),
        ("firmware_version.info_24.1.rc3", "file:/usr/local/Ascend/firmware/version.info"),
        ("etc_ascend_install.info", "file:/etc/ascend_install.info"),
        ("ascend_toolkit_install.info_8.1.RC1", "toolkit"),
        ("latest_version.cfg_8.1.RC1", "version.cfg"),
        ("compiler_version.info_8.1.RC1", "component"),
        ("opp_kernel_version.info_8.1.RC1", "component"),
        ("bad_duplicate_device_ip.json", "rank-table"),
    ],
)
def test_a_sample_is_recognised_by_its_content_alone(name: str, kind: str) -> None:
    assert kind_of("x", (SAMPLES / name).read_text(encoding="utf-8")) == kind


@pytest.mark.parametrize(
    "text, kind",
    [
        ("PATH=/bin\nHOME=/root\nASCEND_HOME_PATH=/a\n", "env"),
        ('declare -x PATH="/bin"\ndeclare -x HOME="/root"\n', "env"),
        ("torch==2.5.1\ntorch_npu==2.5.1\n", "pip"),
        ("# packages in environment at /opt/conda:\n#\nnumpy 1.26.4 py310\n", "pip"),
        ("Module                  Size  Used by\nxfs 1 0\n", "lsmod"),
        ("[    1.0] [ascend] [devdrv] [f 1] x\n", "dmesg"),
        ('[{"HostConfig": {"Devices": []}}]', "docker-inspect"),
        ("docker run -it img bash", "docker-run"),
        ("Linux n 5.10.0 #1 SMP aarch64 GNU/Linux", "uname"),
        ("crw-rw---- 1 root root 1, 2 Nov  3 10:00 davinci0\n", "ls"),
        ("net health status: Success\n", "hccn"),
        ("Traceback (most recent call last):\nImportError: libhccl.so: cannot open\n", "log"),
        ("what I did: it failed\n", "log"),
    ],
)
def test_outputs_of_common_commands_are_recognised(text: str, kind: str) -> None:
    assert kind_of("x", text) == kind


def test_a_report_of_collect_env_is_a_machine(tmp_path: Path) -> None:
    (tmp_path / "issue.txt").write_text(COLLECT_ENV)
    machine = foreign(tmp_path / "issue.txt")
    assert machine.identity.glibc is not None and machine.identity.glibc.value == "2.35"
    assert machine.identity.python is not None and machine.identity.python.value == "3.10.15"
    assert machine.packages["torch-npu"].value == "2.6.0"
    assert machine.variable("ASCEND_HOME_PATH").endswith("latest")
    names = {f.name for f in facts(machine)}
    assert {"soc-910b", "torch-npu-for-other-torch", "driver-version"} <= names


@pytest.mark.skipif(not FIELD.is_dir(), reason="the field's samples are not at hand")
def test_every_npu_smi_sample_is_recognised() -> None:
    for path in sorted((FIELD / "samples").glob("*.txt")):
        assert kind_of("x", path.read_text(encoding="utf-8"), "npu-smi info") == "npu-smi"


@pytest.mark.parametrize("seed", range(12))
def test_texts_that_are_changed_at_random_never_break_the_doctor(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    kind = chance.choice(MACHINES)
    write_folder(kind, tmp_path)
    for path in [p for p in tmp_path.rglob("*") if p.is_file()]:
        data = bytearray(path.read_bytes())
        for _ in range(chance.randrange(8)):
            at = chance.randrange(len(data))
            match chance.randrange(4):
                case 0:
                    data[at] = chance.randrange(256)
                case 1:
                    del data[at : at + chance.randrange(40)]
                case 2:
                    data[at:at] = bytes(chance.choices(b"0123456789.[]{}=:,\"' \n-%/|", k=30))
                case 3:
                    data[at:at] = data[at : at + 50]
            data = data or bytearray(b"x")
        path.write_bytes(bytes(data))
    try:
        facts(foreign(tmp_path))
    except ToolError:
        pass


@pytest.mark.parametrize(
    "line",
    [" " * 300_000, "[" * 300_000, "a@" * 150_000, "/dev/davinci" * 30_000, "1" * 300_000, "A=" * 150_000, "| " * 150_000, "- 1 " * 80_000],
)
def test_a_file_that_is_one_long_line_is_read_in_a_moment(line: str, tmp_path: Path) -> None:
    write_folder(KINDS["healthy"], tmp_path)
    for name in ("env.txt", "npu-smi.txt", "ls_dev.txt", "pip_list.txt", "usr/local/Ascend/driver/version.info", "x.log", "df.txt"):
        file = tmp_path / name
        file.write_text((file.read_text() if file.exists() else "Filesystem 1 Use%\n") + line + "\n")
    start = time.perf_counter()
    facts(foreign(tmp_path))
    assert time.perf_counter() - start < 20
