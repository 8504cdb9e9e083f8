"""Rank tables of every version become values, and each fault is named with server, device and rank."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.device.ascend import check_rank_table, parse_rank_table, read_json

SAMPLES = Path(__file__).parent / "samples" / "rank_table"
NAMES = sorted(path.name for path in SAMPLES.glob("*.json"))


def text_of(name: str) -> str:
    return (SAMPLES / name).read_text(encoding="utf-8")


EXPECTED: dict[str, tuple[str, int | None, list[tuple[str, int, int, str]], list[tuple[int, str]]]] = {
    # form, count, some ranks (server, rank, device, address), complaints
    "bad_duplicate_device_ip.json": ("1.0", 1, [("node_0", 0, 0, "192.168.1.8"), ("node_0", 1, 1, "192.168.1.8")], [(14, "ip-twice")]),
    "bad_not_ready.json": ("1.0", 0, [], [(2, "status")]),
    "bad_rank_ids_crossed.json": ("1.0", 2, [("node_0", 3, 1, "192.168.1.9"), ("node_1", 1, 0, "192.168.2.8")], [(6, "rank-id-crossed")]),
    "k8s_hccl.json_A2.json": ("1.0", 1, [("192.0.2.10", 0, 0, "192.168.101.10"), ("192.0.2.10", 1, 1, "192.168.102.10")], []),
    "mindspore_1server_8p.json": ("1.0", 1, [("192.0.2.11", 0, 0, "192.1.27.6"), ("192.0.2.11", 7, 7, "192.4.28.6")], []),
    "old_template2_group_list.json": ("groups", None, [("node_0", 0, 0, "192.168.1.8"), ("node_1", 1, 1, "192.168.1.9")], []),
    "v1.0_910_and_300IDuo.json": ("1.0", 2, [("node_0", 1, 1, "192.168.1.9"), ("node_1", 3, 1, "192.168.2.9")], []),
    "v1.0_A2_with_device_port.json": ("1.0", 2, [("node_0", 0, 0, "192.168.1.8"), ("node_1", 2, 0, "192.168.2.8")], []),
    "v1.2_A3_super_pods.json": ("1.2", 4, [("node_0", 0, 0, "192.168.1.6"), ("node_3", 15, 3, "192.168.4.9")], []),
    "v2.0_950.json": ("2.0", None, [("", 0, 0, "")], []),
}  # fmt: skip


def test_there_are_ten_samples() -> None:
    assert NAMES == sorted(EXPECTED)


@pytest.mark.parametrize("name", NAMES)
def test_every_sample_gives_its_ranks_and_its_faults(name: str) -> None:
    form, count, ranks, faults = EXPECTED[name]
    table = parse_rank_table(text_of(name))
    assert (table.form, table.server_count, table.complaints) == (form, count, ())
    shown = [(server.server_id, device.rank, device.device_id, device.device_ip) for server, device in table.ranks]
    assert shown[:1] == ranks[:1] or ranks[0] in shown
    assert all(rank in shown for rank in ranks)
    assert [(one.line, one.kind) for one in check_rank_table(table)] == faults


def test_faults_name_server_device_and_rank() -> None:
    said = [one.what for name in NAMES for one in check_rank_table(parse_rank_table(text_of(name)))]
    assert said == [
        "server node_0, device 1 (rank 1): device_ip 192.168.1.8 must be unique, server node_0, device 0 (rank 0) has it too",
        "status must be completed, got 'initializing': the job's controller has not filled the table yet",
        "server node_0: its rank_ids must follow one another, got 0, 3: 1, 2 are on node_1",
    ]


def test_a_table_of_super_pods_has_all_its_fields() -> None:
    table = parse_rank_table(text_of("v1.2_A3_super_pods.json"))
    server, device = table.ranks[5]
    assert (server.server_id, server.host_ip, len(table.ranks), table.version) == ("node_1", "172.16.0.101", 16, "1.2")
    assert (device.rank, device.super_device_id, device.device_port, device.backup_ip, device.backup_port, device.host_port) == (
        5, 5, 16666, "192.168.2.6", 16667, 16666,
    )  # fmt: skip
    assert [(pod.super_pod_id, pod.servers) for pod in table.super_pods] == [("0", ("node_0", "node_1")), ("1", ("node_2", "node_3"))]


def test_a_table_of_950_has_layers() -> None:
    ((_, device),) = parse_rank_table(text_of("v2.0_950.json")).ranks
    assert (device.rank, device.local_id, device.device_port, device.host_port) == (0, 0, 16666, 60001)
    assert [(one.layer, one.network, one.address, one.plane) for one in device.addresses] == [
        (0, "az0-rack0-pod0", "172.16.0.10", ""),
        (1, "az0", "172.16.0.15", "plane0"),
        (1, "az0", "172.16.0.5", "plane1"),
    ]
    assert device.addresses[1].ports == ("0/4", "0/5", "0/6", "0/7")


def test_what_kubernetes_adds_is_kept() -> None:
    (server,) = parse_rank_table(text_of("k8s_hccl.json_A2.json")).servers
    assert (server.host_ip, server.container_ip, server.others) == ("192.0.2.10", "192.168.149.10", {"hardware_type": "800I-A2-32G"})


# ---- one fault at a time

Change = Callable[[dict[str, Any]], object]


def broken(name: str, change: Change) -> list[tuple[str, str]]:
    data = json.loads(text_of(name))
    change(data)
    return [(one.kind, one.what) for one in check_rank_table(parse_rank_table(json.dumps(data)))]


A2, A3, V2, OLD = "v1.0_A2_with_device_port.json", "v1.2_A3_super_pods.json", "v2.0_950.json", "old_template2_group_list.json"


def at(data: dict[str, Any], server: int, device: int) -> dict[str, Any]:
    found: dict[str, Any] = data["server_list"][server]["device"][device]
    return found


@pytest.mark.parametrize(
    ("name", "change", "faults"),
    [
        (A2, lambda d: d.pop("status"), [("status", "status must be there and be completed")]),
        (A2, lambda d: d.update(status="done"), [("status", "status must be completed, got 'done'")]),
        (A2, lambda d: d.update(server_count="3"), [("count", "server_count must be 2, as many as server_list has, got 3")]),
        (A2, lambda d: d.pop("server_count"), [("count", "server_count must be there and be 2")]),
        (
            A2,
            lambda d: d.update(server_count=2),
            [("type", "the table: server_count must be a string in version 1.0 and 1.2, got the number 2")],
        ),
        (A2, lambda d: d.update(server_count="two"), [("number", "the table: server_count must be a whole number, got the string 'two'")]),
        (A2, lambda d: d.pop("version"), [("version", "version must be there and be 1.0")]),
        (A2, lambda d: d.update(version="3.1"), [("version", "version must be 1.0, 1.2 or 2.0, got '3.1'")]),
        (A2, lambda d: d.update(version="2.0"), [("version", "version 2.0 must have rank_list, got server_list")]),
        (
            A2,
            lambda d: d.update(version="1.2"),
            [("version", "version 1.2 must have super_pod_list; without super pods write version 1.0")],
        ),
        (A3, lambda d: d.update(version="1.0"), [("version", "super_pod_list must have version 1.2, got 1.0")]),
        (
            A2,
            lambda d: at(d, 1, 0).update(rank_id="0"),
            [
                (
                    "rank-id-twice",
                    "server node_1, device 0 (rank 0): rank_id 0 must be unique, server node_0, device 0 (rank 0) has it too",
                ),
                ("rank-id-gap", "rank_id must be 0 to 3 without a gap, 2 is missing"),
            ],
        ),
        (
            A2,
            lambda d: at(d, 1, 1).update(rank_id="9"),
            [
                ("rank-id-range", "server node_1, device 1 (rank 9): rank_id must be 0 to 3, got 9"),
                ("rank-id-gap", "rank_id must be 0 to 3 without a gap, 3 is missing"),
            ],
        ),
        (
            A2,
            lambda d: at(d, 0, 0).pop("rank_id"),
            [
                ("missing", "server node_0, device 0 (rank ?): rank_id must be there"),
                ("rank-id-gap", "rank_id must be 0 to 3 without a gap, 0 is missing"),
            ],
        ),
        (
            A2,
            lambda d: at(d, 0, 0).update(rank_id=0),
            [("type", "server node_0, device 0 (rank 0): rank_id must be a string in version 1.0 and 1.2, got the number 0")],
        ),
        (
            A2,
            lambda d: at(d, 0, 1).update(device_id="0"),
            [
                (
                    "device-id-twice",
                    "server node_0, device 0 (rank 1): device_id 0 and device_port 16667 must be once in a server, rank 0 has it too",
                )
            ],
        ),
        (A2, lambda d: at(d, 0, 1).update(device_id="0", device_port="16668", device_ip="192.168.1.8"), []),
        (
            A2,
            lambda d: at(d, 0, 0).pop("device_ip"),
            [
                (
                    "device-ip-missing",
                    "server node_0, device 0 (rank 0): device_ip must be there, it is needed between servers (see /etc/hccn.conf)",
                )
            ],
        ),
        (
            A2,
            lambda d: at(d, 0, 0).update(device_ip="10.0.0.300"),
            [("ip", "server node_0, device 0 (rank 0): device_ip must be an IP address, got '10.0.0.300'")],
        ),
        (
            A2,
            lambda d: at(d, 0, 0).update(device_ip="127.0.0.1"),
            [("ip", "server node_0, device 0 (rank 0): device_ip must be an address of the port, got 127.0.0.1")],
        ),
        (
            A2,
            lambda d: at(d, 0, 0).update(device_port="70000"),
            [("port", "server node_0, device 0 (rank 0): device_port must be 1 to 65535, got 70000")],
        ),
        (
            A2,
            lambda d: d["server_list"][1].update(server_id="node_0"),
            [("server-twice", "server node_0: server_id must be unique, line 1 has it too")],
        ),
        (A2, lambda d: d["server_list"][1].pop("server_id"), [("server-id", "server 1: server_id must be there")]),
        (
            A2,
            lambda d: d["server_list"][1].update(server_id="n" * 65),
            [("server-id", f"server {'n' * 20}...: server_id must have at most 64 characters, got 65")],
        ),
        (
            A3,
            lambda d: d["super_pod_list"].reverse(),
            [("super-pod-order", "super pod 0: its ranks must come after those of super pod 1, got 0 before 8")],
        ),
        (A3, lambda d: d["super_pod_list"][1]["server_list"].pop(), [("super-pod", "server node_3: it must be in a super pod")]),
        (
            A3,
            lambda d: at(d, 1, 0).update(super_device_id="0"),
            [
                (
                    "super-device-id",
                    "super pod 0, server node_1, device 0 (rank 4): super_device_id 0 must be unique in a super pod, "
                    "server node_0, device 0 (rank 0) has it too",
                )
            ],
        ),
        (
            A3,
            lambda d: at(d, 0, 0).update(backup_device_ip="192.168.1.6"),
            [("backup-ip", "server node_0, device 0 (rank 0): backup_device_ip must be another device's, got its own 192.168.1.6")],
        ),
        (V2, lambda d: d.update(rank_count=2), [("count", "rank_count must be 1, as many as rank_list has, got 2")]),
        (
            V2,
            lambda d: d["rank_list"][0].update(rank_id="0"),
            [("type", "rank 0: rank_id must be a number in version 2.0, got the string '0'")],
        ),
        (
            V2,
            lambda d: d["rank_list"][0].update(level_list=[]),
            [("device-ip-missing", "device 0 (rank 0): level_list must give an address, got none")],
        ),
        (OLD, lambda d: d.update(group_count="2"), [("count", "group_count must be 1, as many as group_list has, got 2")]),
        (
            OLD,
            lambda d: d["group_list"][0].update(device_count="3"),
            [("count", "group hccl_world_group: device_count must be 2, as many as are listed, got 3")],
        ),
    ],
)
def test_one_fault_is_said_once_and_precisely(name: str, change: Change, faults: list[tuple[str, str]]) -> None:
    assert broken(name, change) == faults


def test_what_is_known_of_the_machines_is_checked() -> None:
    table = parse_rank_table(text_of(A2))

    def said(**known: Any) -> list[str]:
        return [one.what for one in check_rank_table(table, **known)]

    assert said(hosts=["node_0", "node_1"], devices=[0, 1], generation="910b", addresses={0: "192.168.1.8"}, server="node_0") == []
    assert said(hosts=["node_0"]) == ["server node_1: it must be one of the hosts node_0"]
    assert said(devices=[0], server="node_1") == ["server node_1, device 1 (rank 3): device_id must be one that is present (0), got 1"]
    assert said(addresses={1: "10.1.1.1"}, server="node_0") == [
        "server node_0, device 1 (rank 1): device_ip must be 10.1.1.1, which the device has (/etc/hccn.conf), got 192.168.1.9"
    ]
    assert said(generation="950") == ["version must be 2.0 for this chip (950), got 1.0"]
    assert [one.what for one in check_rank_table(parse_rank_table(text_of(A3)), generation="910b")] == [
        "version must be 1.0 for this chip (910b), got 1.2"
    ]


# ---- no JSON


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1 column 1: the text is empty"),
        ('{"status": "completed",', "line 1 column 24: the text must go on with a key in double quotes, it ends"),
        ("[1]", "line 1: a rank table must be an object, got an array"),
        ('{"a" 1}', "line 1 column 6: a colon after the key 'a' must stand here, got '1'"),
        ('{"status": "completed}\n', "line 1 column 12: a string must end on its line, got '\"completed}'"),
        ('{"version": 1.0.0}', "line 1 column 13: a number must be written as JSON does, got '1.0.0'"),
        ('{"version": one}', "line 1 column 13: a value must stand here, got 'one'"),
        ("[" * 5000, "line 1 column 42: the text must have at most 40 levels"),
    ],
)
def test_a_text_that_is_no_json_says_where(text: str, said: str) -> None:
    assert f"{parse_rank_table(text).complaints[0]}" == said


def test_comments_and_commas_are_said_and_the_rest_is_read() -> None:
    text = text_of(A2).replace('"completed",', '"completed", // ready').replace('"rank_id": "3"', '"rank_id": "3", # last')
    table = parse_rank_table(text)
    assert len(table.ranks) == 4
    assert [f"{one}" for one in table.complaints] == [
        "line 2 column 26: JSON must not hold comments",
        "line 36 column 27: JSON must not hold comments",
        "line 37 column 9: a comma must not stand before }",
    ]


def test_a_key_twice_and_python_are_said() -> None:
    _, complaints = read_json("{'a': True, \"a\": None}")
    assert [one.kind for one in complaints] == ["json-quotes", "json-word", "json-key-twice", "json-word"]


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    )
)
def test_json_is_read_as_json(value: object) -> None:
    def plain(entry: Any) -> object:
        if isinstance(entry.value, dict):
            return {key: plain(one) for key, one in entry.value.items()}
        return [plain(one) for one in entry.value] if isinstance(entry.value, list) else entry.value

    entry, complaints = read_json(json.dumps(value, ensure_ascii=False, indent=1))
    assert complaints == () and plain(entry) == value


KEYS = [
    *("status", "version", "server_count", "server_list", "server_id", "device", "device_id", "device_ip", "rank_id"),
    *("super_pod_list", "super_pod_id", "rank_list", "level_list"),
]
SCALAR = st.sampled_from(["completed", "1.0", "1.2", "2.0", "0", "1", "-1", "10.0.0.1", "", 0, 1, 2.5, None, True, "9" * 30])


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(KEYS),
        st.recursive(SCALAR, lambda inner: st.lists(st.dictionaries(st.sampled_from(KEYS), inner, max_size=5), max_size=3), max_leaves=20),
        max_size=8,
    ),
    st.integers(0, 2000),
)
def test_any_table_and_any_cut_one_gives_complaints_only(data: dict[str, Any], end: int) -> None:
    text = json.dumps(data)
    for one in (text, text[:end]):
        check_rank_table(parse_rank_table(one), generation="910b", devices=[0], hosts=["a"])


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300) | st.sampled_from(NAMES).map(text_of), st.integers(0, 5000), st.text(max_size=3))
def test_damaged_texts_do_not_raise(text: str, place: int, put: str) -> None:
    check_rank_table(parse_rank_table(text[:place] + put + text[place + 1 :]))


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(NAMES), st.randoms(use_true_random=False))
def test_shuffled_tables_do_not_raise(name: str, rng: random.Random) -> None:
    lines = text_of(name).splitlines()
    rng.shuffle(lines)
    check_rank_table(parse_rank_table("\n".join(lines)))


def test_ten_thousand_ranks_take_seconds_at_most() -> None:
    servers = [
        {
            "server_id": f"node_{s}",
            "device": [{"device_id": f"{d}", "device_ip": f"10.{s // 200}.{s % 200}.{d + 1}", "rank_id": f"{s * 8 + d}"} for d in range(8)],
        }
        for s in range(1250)
    ]
    text = json.dumps({"status": "completed", "version": "1.0", "server_count": "1250", "server_list": servers})
    began = time.perf_counter()
    assert check_rank_table(parse_rank_table(text)) == ()
    assert time.perf_counter() - began < 20
