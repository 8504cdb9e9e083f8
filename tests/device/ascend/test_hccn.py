"""hccn_tool's outputs and hccn.conf become ports, and what is wrong with them is said with device and line."""

from __future__ import annotations

import time
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.device.ascend import check_hccn, parse_hccn

ALL = """$ hccn_tool -i 0 -net_health -g
net health status: Init
$ hccn_tool -i 0 -link -g
link status: UP
$ hccn_tool -i 0 -optical -g
optical info:
present              : present
Tx Power             : 1.4035 mW
Rx Power             : 0.0189 mW
TxPower High Thres   : 3.5481 mW
TxPower Low Thres    : 0.2818 mW
RxPower High Thres   : 3.5481 mW
RxPower Low Thres    : 0.1445 mW
Tx Los Flag          : 0x0
Rx Los Flag          : 0xff
$ hccn_tool -i 0 -tls -g | grep switch
dev_id:0, tls switch[0](0:disable, 1:enable), tls preconfigured[1](0:non-preset, 1:preset), tls alarm time threshold[60]days
$ hccn_tool -i 0 -fec -g
fec mode: rs FEC mode
$ hccn_tool -i 0 -ip -g
ipaddr:10.0.0.10
netmask:255.255.255.0
$ hccn_tool -i 0 -gateway -g
default gateway:10.0.0.1, Iface:eth0
$ hccn_tool -i 0 -mtu -g
mtu:1500
$ hccn_tool -i 0 -stat -g
packet statistics:
mac_tx_mac_pause_num:0
roce_qp_status_err_num:7
nic_tx_all_pkg_num:122404
$ hccn_tool -i 0 -link_stat -g
[device 0]current time        : Wed Jun  7 10:08:28 2023
[device 0]link up count       : 2
[device 0]link change records :
[device 0]    Tue Jun  6 16:32:12 2023    LINK UP
[device 0]    Tue Jun  6 16:32:10 2023    LINK DOWN
$ hccn_tool -i 0 -ping -g address 10.0.0.11
device 0 PING 10.0.0.11
3 packets transmitted, 1 received, 66.67% packet loss
$ hccn_tool -i 1 -link -g
link status: DOWN
$ hccn_tool -i 1 -tls -g
dev_id:1, tls switch[1](0:disable, 1:enable)
$ hccn_tool -i 1 -ip -g
ipaddr:10.0.0.10
netmask:255.255.255.0
"""


def test_every_form_becomes_a_value_of_its_device() -> None:
    found = parse_hccn(ALL)
    assert found.complaints == () and [one.device for one in found.devices] == [0, 1]
    zero = found.devices[0]
    assert (zero.health, zero.link, zero.fec, zero.ip, zero.netmask) == ("Init", "UP", "rs FEC mode", "10.0.0.10", "255.255.255.0")
    assert (zero.gateway, zero.mtu, zero.assumed) == ("10.0.0.1", 1500, False)
    assert zero.optical is not None and zero.optical.present
    assert (zero.optical.tx_power_mw, zero.optical.rx_power_mw, zero.optical.rx_low_mw, zero.optical.rx_los) == (
        1.4035,
        0.0189,
        0.1445,
        255,
    )
    assert zero.tls is not None and (zero.tls.on, zero.tls.preset, zero.tls.alarm_days) == (False, True, 60)
    assert zero.counters == {"mac_tx_mac_pause_num": 0, "roce_qp_status_err_num": 7, "nic_tx_all_pkg_num": 122404}
    assert zero.history is not None and zero.history.now == datetime(2023, 6, 7, 10, 8, 28) and zero.history.up_count == 2
    assert [(change.at, change.up) for change in zero.history.changes] == [
        (datetime(2023, 6, 6, 16, 32, 12), True),
        (datetime(2023, 6, 6, 16, 32, 10), False),
    ]
    assert [(ping.address, ping.sent, ping.received) for ping in zero.pings] == [("10.0.0.11", 3, 1)]


def test_what_is_wrong_is_said_with_device_and_line() -> None:
    assert [(one.line, one.kind, one.what) for one in check_hccn(parse_hccn(ALL))] == [
        (2, "netdetect-unset", "device 0: net health is Init: no netdetect address is set, so it tells nothing about the link"),
        (6, "optical-power", "device 0: Rx power must be 0.1445 to 3.5481 mW, got 0.0189"),
        (6, "optical-signal", "device 0: Rx signal is lost on lanes 0xff"),
        (40, "ping-lost", "device 0: ping 10.0.0.11: 1 of 3 packets came back"),
        (30, "counter", "device 0: roce_qp_status_err_num must be 0, got 7"),
        (42, "link-down", "device 1: link status must be UP, got DOWN: cable, optical module or switch"),
        (0, "tls-mixed", "tls switch must be the same on all devices, got on: 1; off: 0"),
        (46, "ip-twice", "device 1: address 10.0.0.10 must be unique, device 0 has it too"),
    ]


def test_the_configuration_file_gives_the_same_fields() -> None:
    text = "# ports\naddress_0=10.0.0.1\nnetmask_0=255.255.255.0\nnetdetect_0=10.0.0.254\ngateway_0=10.0.0.253\nsend_arp_status_0=1\naddress_7=10.0.0.7\n"
    found = parse_hccn(text)
    assert found.from_file and found.complaints == ()
    zero, seven = found.devices
    assert (zero.ip, zero.netmask, zero.netdetect, zero.gateway) == ("10.0.0.1", "255.255.255.0", "10.0.0.254", "10.0.0.253")
    assert zero.settings == {"send_arp_status": "1"} and (seven.device, seven.ip) == (7, "10.0.0.7")
    assert check_hccn(found) == ()


def test_a_loop_over_devices_counts_them() -> None:
    text = "# for i in {4..6}; do hccn_tool -i $i -link -g ; done\nlink status: UP\nlink status: DOWN\nlink status: UP\n"
    assert [(one.device, one.link, one.assumed) for one in parse_hccn(text).devices] == [
        (4, "UP", False),
        (5, "DOWN", False),
        (6, "UP", False),
    ]


def test_outputs_without_a_command_are_counted_and_say_so() -> None:
    found = parse_hccn("link status: UP\nlink status: DOWN\n")
    assert [(one.device, one.link, one.assumed) for one in found.devices] == [(0, "UP", True), (1, "DOWN", True)]


@pytest.mark.parametrize("dress", ["\x1b[1m{}\x1b[0m", "{}\r", "[rank0]: {}", "  {}  "])
def test_a_dressed_text_says_the_same(dress: str) -> None:
    text = "\n".join(dress.format(line) for line in ALL.splitlines())
    plain, found = parse_hccn(ALL), parse_hccn(text)
    assert [(one.link, one.ip, one.tls, one.history, one.pings) for one in found.devices] == [
        (one.link, one.ip, one.tls, one.history, one.pings) for one in plain.devices
    ]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "nothing"),
        ("loss: 0.5, speed: 3 it/s\nrank_0=1", "nothing"),
        ("$ hccn_tool -i 0 -link -g\nbash: hccn_tool: command not found", "failed"),
        ("$ hccn_tool -i 0 -link -g\nhccn_tool is busy, please try again", "failed"),
        ("$ hccn_tool -i 0 -link -g\nlink status: SIDEWAYS", "value"),
        ("[device 0]link is what", "line"),
        ("$ hccn_tool -i 0 -optical -g\noptical info:\nTx Power : strong", "value"),
    ],
)
def test_what_is_not_understood_is_a_complaint(text: str, kind: str) -> None:
    assert [one.kind for one in parse_hccn(text).complaints] == [kind]


def test_unsteady_links_are_found() -> None:
    text = "\n".join(f"[device 2] Tue Jun  6 16:32:{second:02} 2023    LINK {'UP' if second % 2 else 'DOWN'}" for second in range(8))
    assert [one.what for one in check_hccn(parse_hccn(text))] == ["device 2: the link changed 8 times"]


PIECES = ALL.splitlines() + ALL.split() + ["address_0=1", "[device 9]", ": :", "٣ packets transmitted"]


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        st.text(max_size=1000),
        st.lists(st.sampled_from(PIECES), max_size=80).map("\n".join),
        st.lists(st.sampled_from(PIECES)).map(" ".join),
    )
)
def test_no_text_raises(text: str) -> None:
    check_hccn(parse_hccn(text))


@pytest.mark.parametrize(
    "line",
    [
        "$ hccn_tool -i 0 -stat -g\n" + "\n".join(f"a_{i}:1" for i in range(30_000)),
        "hccn_tool " * 300_000,
        "link status: UP\n" * 20_000,
        "[device 0] LINK UP\n" * 20_000,
    ],
    ids=["counters", "commands", "links", "changes"],
)
def test_hostile_texts_take_no_time(line: str) -> None:
    began = time.perf_counter()
    check_hccn(parse_hccn(line))
    assert time.perf_counter() - began < 10
