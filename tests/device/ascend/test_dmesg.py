"""The driver's own lines, its modules and its installer's log become values; other lines of the same text are passed over."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.device.ascend import parse_driver_texts

KERNEL = """[  456.343559] [ascend] [drv_pcie] [devdrv_sync_non_trans_msg_send 1239] <kworker/u385:0:15232:15232> Device is abnormal. (dev_id=5; msg_type=3)
[ascend] [devdrv] devdrv_imu_mbx3_notifier  Get mntn message. (exception_id=0xa6193215; ...)
[ascend] [ERROR] dms_get_msg_from_ts        icm send msg failed. (cmd_type=33; ret=110)
Jun  7 10:08:28 node kernel: [   12.5] [ascend] [devmm] [devmm_svm_release 617] <main:42394,42394> Release done. (module_name="SVM"; pid=42394)
[Wed Jun  7 10:08:28 2023] [ascend] [ub] [ub_link 7] Failed to read link status
[  457.0] usb 1-1: new device
[ERROR] DRV(4711,python):2024-01-05-10:11:12.123.456 [devmm_svm.c:88][ascend][curpid: 4711, 4720][drv][devmm][devmm_alloc] alloc failed. (ret=6)
"""


def test_kernel_and_user_lines_are_taken_apart() -> None:
    lines = parse_driver_texts(KERNEL).lines
    assert [(one.module, one.function, one.source_line, one.level, one.kernel, one.line) for one in lines] == [
        ("drv_pcie", "devdrv_sync_non_trans_msg_send", 1239, "", True, 1),
        ("devdrv", "devdrv_imu_mbx3_notifier", None, "", True, 2),
        ("", "dms_get_msg_from_ts", None, "ERROR", True, 3),
        ("devmm", "devmm_svm_release", 617, "", True, 4),
        ("ub", "ub_link", 7, "", True, 5),
        ("devmm", "devmm_alloc", 88, "ERROR", False, 7),
    ]
    assert [one.text.split(".")[0] for one in lines] == [
        "Device is abnormal",
        "Get mntn message",
        "icm send msg failed",
        "Release done",
        "Failed to read link status",
        "alloc failed",
    ]


def test_times_processes_and_values_are_typed() -> None:
    first, second, third, fourth, fifth, user = parse_driver_texts(KERNEL).lines
    assert (first.time_s, first.process) == (456.343559, "kworker/u385:0:15232:15232")
    assert first.values == {"dev_id": "5", "msg_type": "3"} and first.number("dev_id") == 5
    assert second.number("exception_id") == 0xA6193215 and second.time_s is None and third.number("ret") == 110
    assert fourth.values["module_name"] == "SVM" and fourth.number("module_name") is None and fourth.time_s == 12.5
    assert fifth.time == "Wed Jun  7 10:08:28 2023"
    assert (user.time, user.process, user.number("ret")) == ("2024-01-05-10:11:12.123.456", "4711,python", 6)


def test_modules_are_listed_with_and_without_the_head() -> None:
    text = "Module                  Size  Used by\ndrv_pcie_host         307200  3 drv_vascend,drv_devmm\next4                  737280  2\n"
    found = parse_driver_texts(text)
    assert [(one.name, one.nbytes, one.uses, one.by, one.of_driver) for one in found.modules] == [
        ("drv_pcie_host", 307200, 3, ("drv_vascend", "drv_devmm"), True),
        ("ext4", 737280, 2, (), False),
    ]
    found = parse_driver_texts("$ lsmod | grep drv_\ndrv_pcie_hdc_host      98304  0\nascend_udis 20480 1 drv_dms\nstep 10 20\n")
    assert [one.name for one in found.modules] == ["drv_pcie_hdc_host", "ascend_udis"] and found.modules_listed
    assert parse_driver_texts("Module                  Size  Used by\n").modules_listed


@pytest.mark.parametrize(
    ("line", "package", "code", "text"),
    [
        ("[Driver] [2024-01-05 10:11:12] [ERROR]: ERR_NO:0x0091;ERR_DES:HwHiAiUser not exists!", "Driver", 0x91, "HwHiAiUser not exists!"),
        ("ERR_NO:0x0096;ERR_DES: user not in group", "", 0x96, "user not in group"),
        (
            "[ERROR]current kernel primary version(5.10.0-136) is different from the driver(5.10.0-60).",
            "",
            None,
            "current kernel primary version(5.10.0-136) is different from the driver(5.10.0-60).",
        ),
        (
            "[Driver] [ERROR]The davinci nodes are occupied by some processes",
            "Driver",
            None,
            "The davinci nodes are occupied by some processes",
        ),
        ("[Firmware] [2024-01-05 10:11:12] [INFO]Firmware package install success!", "Firmware", None, "Firmware package install success!"),
    ],
)
def test_the_installers_lines_have_package_and_code(line: str, package: str, code: int | None, text: str) -> None:
    (found,) = parse_driver_texts(line).install
    assert (found.package, found.code, found.text) == (package, code, text)
    assert found.success == ("success" in line)


def test_other_texts_give_nothing() -> None:
    found = parse_driver_texts("[ERROR] acl set device 0 failed, errorCode = 507033\n[INFO] acl init success\nEpoch 1 2 3\n")
    assert (found.lines, found.modules, found.install, found.complaints) == ((), (), (), ())


def test_a_line_that_is_cut_is_complained_of() -> None:
    (complaint,) = parse_driver_texts("ok\n[  1.0] [ascend] [dev").complaints
    assert (complaint.line, complaint.what) == (2, "driver: after [ascend] the module must stand, got '[  1.0] [ascend] [dev'")


PIECES = KERNEL.splitlines() + KERNEL.split() + ["[ascend]", "[", "(a=", "ERR_NO:0x", "[ERROR]", "Module Size Used by", "drv_a 1 2 b"]


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.text(max_size=1000),
        st.lists(st.sampled_from(PIECES), max_size=60).map("\n".join),
        st.lists(st.sampled_from(PIECES)).map(" ".join),
    )
)
def test_no_text_raises(text: str) -> None:
    parse_driver_texts(text)


@pytest.mark.parametrize(
    "line", ["[ascend] " * 500, "[ERROR] DRV(1):" + " " * 3900, "[ascend] [a] [b 1] " + "(a=" * 1000, "ERR_NO:" * 600, "[ " * 2000]
)
def test_hostile_lines_take_no_time(line: str) -> None:
    began = time.perf_counter()
    parse_driver_texts(f"{line}\n" * 50)
    assert time.perf_counter() - began < 5
