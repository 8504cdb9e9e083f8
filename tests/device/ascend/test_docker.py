"""What a container gets of an NPU is read from inspect, from the command and from listings, and what it lacks is named."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.device.ascend import (
    DeviceMap,
    Mount,
    check_container,
    inside_container,
    parse_docker_inspect,
    parse_docker_run,
)

GOOD = """# start it
sudo docker run -itd --name=npu --net host --shm-size=16g \\
    --device /dev/davinci0 --device=/dev/davinci7:/dev/davinci7:rwm \\
    --device=/dev/davinci_manager --device=/dev/devmm_svm --device=/dev/hisi_hdc \\
    # the driver
    -v /usr/local/Ascend/driver:/usr/local/Ascend/driver:ro -v/usr/local/dcmi:/usr/local/dcmi \\
    --mount type=bind,source=/data,target=/data,readonly \\
    --cap-add=SYS_PTRACE --group-add HwHiAiUser -u 1000:1000 -e ASCEND_VISIBLE_DEVICES=0,7 -e SECRET=x \\
    "quay.io/ascend/cann:8.1" bash -c "python a.py" && echo done
"""


def test_a_run_command_is_taken_apart() -> None:
    (one,) = parse_docker_run(GOOD)
    assert (one.source, one.image, one.name, one.network, one.shm_size, one.line) == (
        "run",
        "quay.io/ascend/cann:8.1",
        "npu",
        "host",
        "16g",
        2,
    )
    assert one.device_ids == (0, 7) and one.devices[1] == DeviceMap("/dev/davinci7", "/dev/davinci7", "rwm")
    assert one.mounts == (
        Mount("/usr/local/Ascend/driver", "/usr/local/Ascend/driver", True),
        Mount("/usr/local/dcmi", "/usr/local/dcmi"),
        Mount("/data", "/data", True),
    )
    assert (one.capabilities, one.groups, one.user, one.visible) == (("SYS_PTRACE",), ("HwHiAiUser",), "1000:1000", "0,7")
    assert one.command == ("bash", "-c", "python a.py") and one.environment == {"ASCEND_VISIBLE_DEVICES": "0,7"}
    assert check_container(one) == ()


def said(command: str) -> list[str]:
    return [one.what for one in check_container(parse_docker_run(command)[0])]


def test_what_is_missing_is_named() -> None:
    assert said("docker run -it ubuntu:22.04 bash") == [
        "a chip must be mapped (--device /dev/davinci0), got none",
        "/dev/davinci_manager must be mapped",
        "/dev/devmm_svm must be mapped (with new drivers /dev/asdrv_svm)",
        "/dev/hisi_hdc must be mapped",
        "/usr/local/Ascend/driver/lib64 must be mounted: the driver's libraries of the host",
    ]
    base = "docker run --device=/dev/davinci_manager --device=/dev/asdrv_svm --device=/dev/hisi_hdc"
    base += " -v /usr/local/Ascend/driver/lib64/:/usr/local/Ascend/driver/lib64/"
    assert said(f"{base} --device=/dev/davinci1:/dev/davinci1:r -e ASCEND_VISIBLE_DEVICES=0-1 img") == [
        "ASCEND_VISIBLE_DEVICES names 0, but /dev/davinci0 is not mapped",
        "/dev/davinci1 must be mapped to read and write, got r",
    ]
    assert said("docker run --privileged -v /usr/local/Ascend/driver:/usr/local/Ascend/driver img") == []


def test_the_ascend_runtime_maps_by_itself() -> None:
    assert said("docker run --runtime=ascend -e ASCEND_VISIBLE_DEVICES=0-3 img") == []
    assert said("docker run --runtime=ascend img") == ["ASCEND_VISIBLE_DEVICES must name devices, else the ascend runtime maps none"]
    assert said("docker run --runtime=runc -e ASCEND_VISIBLE_DEVICES=0 img") == [
        "runtime must be ascend for ASCEND_VISIBLE_DEVICES to map devices, got runc"
    ]
    assert said("docker run --runtime=ascend -e ASCEND_VISIBLE_DEVICES=first img") == [
        "ASCEND_VISIBLE_DEVICES must list ids (0,1 or 0-3), got 'first'"
    ]


@pytest.mark.parametrize(
    ("command", "kind"), [("docker run -it --name", "option"), ("docker run -it", "image"), ('docker run -e "A=1 img', "quotes")]
)
def test_a_command_that_is_cut_is_complained_of(command: str, kind: str) -> None:
    assert kind in [one.kind for one in parse_docker_run(command)[0].complaints]


INSPECT = [
    {
        "Name": "/npu",
        "State": {"Running": True},
        "Config": {"Image": "cann:8.1", "User": "", "Env": ["ASCEND_VISIBLE_DEVICES=3", "PATH=/bin", "A=b=c"], "Cmd": ["bash"]},
        "HostConfig": {
            "Privileged": False,
            "Runtime": "runc",
            "NetworkMode": "host",
            "IpcMode": "private",
            "ShmSize": 67108864,
            "CapAdd": ["CAP_SYS_ADMIN"],
            "GroupAdd": None,
            "Binds": ["/usr/local/dcmi:/usr/local/dcmi:ro"],
            "Devices": [{"PathOnHost": "/dev/davinci3", "PathInContainer": "/dev/davinci0", "CgroupPermissions": "rwm"}],
        },
        "Mounts": [{"Type": "bind", "Source": "/a", "Destination": "/b", "RW": False}],
    }
]


def test_an_inspected_container_has_the_same_fields() -> None:
    (one,) = parse_docker_inspect("$ docker inspect npu\n" + json.dumps(INSPECT, indent=2))
    assert (one.image, one.name, one.running, one.runtime, one.shm_size, one.visible) == ("cann:8.1", "npu", True, "runc", "67108864", "3")
    assert one.devices == (DeviceMap("/dev/davinci3", "/dev/davinci0"),) and one.device_ids == (3,)
    assert one.mounts == (Mount("/a", "/b", True), Mount("/usr/local/dcmi", "/usr/local/dcmi", True))
    assert one.capabilities == ("SYS_ADMIN",) and one.groups == () and one.complaints == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1 column 1: the text is empty"),
        ("[]", "line 1: docker inspect: it must be an array of objects, got an array"),
        ("[{}]", "line 1: docker inspect: HostConfig and Config must be there"),
        ('[{"Name": "/a"', "line 1 column 15: the text must go on with a comma or }, it ends"),
    ],
)
def test_what_is_no_inspection_says_why(text: str, said: str) -> None:
    assert f"{parse_docker_inspect(text)[0].complaints[0]}" == said


@pytest.mark.parametrize(
    ("cgroup", "known", "kind"),
    [
        ("12:devices:/docker/0123", {}, "docker"),
        ("0::/system.slice/docker-0123.scope", {}, "docker"),
        ("4:memory:/kubepods/besteffort/pod1", {"dockerenv": True}, "kubernetes"),
        ("0::/", {}, ""),
        ("0::/", {"dockerenv": True}, "docker"),
        ("0::/", {"mounts": "600 500 0:50 / / rw - overlay overlay rw"}, "container"),
        ("0::/system.slice/containerd.service", {}, ""),
        ("", {"environment": {"container": "podman"}}, "podman"),
        ("", {"environment": {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}}, "kubernetes"),
    ],
)
def test_evidence_tells_whether_this_is_a_container(cgroup: str, known: dict[str, object], kind: str) -> None:
    found = inside_container(cgroup, **known)  # type: ignore[arg-type]
    assert found.kind == kind and bool(found) == bool(kind) == bool(found.evidence)


PIECES = (GOOD + json.dumps(INSPECT, indent=1)).splitlines() + GOOD.split() + ["docker run", "'", "\\", "--", "[{", "-v"]


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.text(max_size=1000),
        st.lists(st.sampled_from(PIECES), max_size=60).map("\n".join),
        st.lists(st.sampled_from(PIECES)).map(" ".join),
    )
)
def test_no_text_raises(text: str) -> None:
    for one in (*parse_docker_run(text), *parse_docker_run(f"docker run {text}"), *parse_docker_inspect(text)):
        check_container(one)
    inside_container(text, mounts=text)


@pytest.mark.parametrize(
    "text",
    [
        "docker run " * 20_000,
        "docker run '" + "a " * 2000,
        ("-v a:b \\\n" * 3000),
        "[{" * 3000,
    ],
)
def test_hostile_texts_take_no_time(text: str) -> None:
    began = time.perf_counter()
    parse_docker_run(text)
    parse_docker_inspect(text)
    assert time.perf_counter() - began < 5
