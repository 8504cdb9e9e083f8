"""What holds a container's processes is read of the kernel's own files, whatever else stands there."""

from __future__ import annotations

import pytest

from jumar.device.ascend import device_allowed, in_user_namespace, parse_confinement, parse_device_rules, root_outside

DOCKER = (  # of a container of Docker with one card, cgroup v1
    "c 1:5 rwm\nc 1:3 rwm\nc 1:9 rwm\nc 1:8 rwm\nc 5:0 rwm\nc 5:1 rwm\nc *:* m\nb *:* m\nc 136:* rwm\nc 236:0 rwm\nc 10:200 rwm\n"
)


@pytest.mark.parametrize(
    ("text", "device", "access", "expected"),
    [
        (DOCKER, (236, 0), "rw", True),
        (DOCKER, (236, 1), "rw", False),
        (DOCKER, (236, 1), "m", True),  # to make it is not to open it
        (DOCKER, (136, 9), "rw", True),
        ("a *:* rwm\n", (236, 1), "rw", True),
        ("b 236:1 rwm\n", (236, 1), "rw", False),
        ("c 236:1 r\n", (236, 1), "rw", False),
        ("", (236, 1), "rw", False),
        ("c 236:1", (236, 1), "rw", False),
    ],
)
def test_a_node_is_allowed_by_a_row_of_its_kind_and_numbers(text: str, device: tuple[int, int], access: str, expected: bool) -> None:
    assert device_allowed(parse_device_rules(text), *device, access) is expected


def test_what_status_does_not_tell_is_not_known() -> None:
    told = parse_confinement("Name:\tbash\nSeccomp:\t9\nCapEff:\tzz\nSeccomp_filters:\t1\n")
    assert (told.seccomp, told.no_new_privileges, told.capabilities) == ("", None, None)


@pytest.mark.parametrize(
    ("text", "inside", "root"),
    [
        ("         0          0 4294967295\n", False, 0),
        ("0 100000 65536\n", True, 100000),
        ("0 1000 1\n1 100000 65536\n", True, 1000),
        ("1000 1000 1\n", True, None),
        ("cat: /proc/self/uid_map: No such file or directory\n", False, None),
    ],
)
def test_a_user_namespace_is_known_by_its_map(text: str, inside: bool, root: int | None) -> None:
    assert (in_user_namespace(text), root_outside(text)) == (inside, root)
