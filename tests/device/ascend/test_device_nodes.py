"""Listings of device nodes give ids, rights and what is absent; visible devices are ids or nothing."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.device.ascend import parse_devices, visible_ids

LISTING = """$ ls -l /dev/davinci* /dev/hisi_hdc
crw-rw---- 1 HwHiAiUser HwHiAiUser 236,   0 Nov 20 10:00 /dev/davinci0
crw-rw-rw-. 1 HwHiAiUser HwHiAiUser 236, 1 2025-11-20 10:00 /dev/davinci1
crw-rw---- 1 HwHiAiUser HwHiAiUser 235, 0 Nov 20 10:00 davinci_manager
ls: cannot access '/dev/hisi_hdc': No such file or directory
ls: 无法访问 '/dev/devmm_svm': 权限不够
"""


def test_a_listing_gives_nodes_rights_and_what_is_absent() -> None:
    found = parse_devices(LISTING)
    assert [(one.path, one.mode, one.major, one.minor) for one in found.nodes] == [
        ("/dev/davinci0", "rw-rw----", 236, 0),
        ("/dev/davinci1", "rw-rw-rw-", 236, 1),
        ("/dev/davinci_manager", "rw-rw----", 235, 0),
    ]
    assert found.device_ids == (0, 1) and found.absent == ("/dev/hisi_hdc",) and found.refused == ("/dev/devmm_svm",)
    first, second, _ = found.nodes
    assert [first.open_to("root"), first.open_to("HwHiAiUser"), first.open_to("me"), first.open_to("me", ("HwHiAiUser",))] == [
        True,
        True,
        False,
        True,
    ]
    assert second.open_to("me")


def test_a_listing_of_names_only_is_read_too() -> None:
    found = parse_devices(
        "# ls /dev | grep davinci\ndavinci0\ndavinci1\ndavinci_manager\n/dev/davinci4  /dev/hisi_hdc\nthe davinci0 card\n"
    )
    assert found.device_ids == (0, 1, 4) and found.nodes[0].open_to("me") is None
    assert parse_devices("ls: cannot access '/dev/davinci*': No such file or directory").absent == ("/dev/davinci*",)


def test_visible_ids_are_numbers_or_nothing() -> None:
    assert visible_ids("0,2-4") == (0, 2, 3, 4) and visible_ids("npu-0,Ascend910-7") == (0, 7)
    assert visible_ids("3-1") is None and visible_ids("0;1") is None


PIECES = LISTING.splitlines() + LISTING.split()


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(max_size=500), st.lists(st.sampled_from(PIECES)).map("\n".join), st.lists(st.sampled_from(PIECES)).map(" ".join)))
def test_no_text_raises(text: str) -> None:
    parse_devices(text)
    visible_ids(text)


@pytest.mark.parametrize("text", ["crw-rw---- 1 " * 5000, "ls: access " * 3000, "davinci0 " * 50_000])
def test_hostile_texts_take_no_time(text: str) -> None:
    began = time.perf_counter()
    parse_devices(f"{text}\n" * 20)
    assert time.perf_counter() - began < 5
