"""What holds a container is named with the way out, or it is said that it cannot be read."""

from __future__ import annotations

from pathlib import Path

from tests.field.machines import INSIDE, NODES, Kind, host, write_folder

from jumar.tools.doctor.examine import examine
from jumar.tools.doctor.foreign import foreign

STATUS = "Name:\tbash\nNoNewPrivs:\t0\nCapEff:\t00000000a80425fb\nSeccomp:\t2\n"  # what Docker leaves to root


def test_of_a_list_of_cgroup_1_the_nodes_that_it_lacks_are_named(tmp_path: Path) -> None:
    listed = "root@job:/# cat /sys/fs/cgroup/devices/devices.list\nc 1:3 rwm\nc *:* m\nc 236:1 rwm\n"
    files = host(**{"pasted.txt": listed, "proc/1/cgroup": INSIDE, "lsmod.txt": "", "proc/self/status": STATUS})
    verdict = examine(foreign(write_folder(Kind("devices.list", files), tmp_path))).verdict
    finding = verdict.findings[0]
    assert finding.rule.name == "machine-device-cgroup-refuses" and verdict.layer == "container"
    lacking = [name for i, name in enumerate(NODES) if i != 1]
    assert " ".join(f"--device=/dev/{name}" for name in lacking) in finding.fix("en")[0]
    assert [e.text.split()[-1] for e in finding.evidence] == [lacking[0], "rwm"]
    assert {c.name: (c.value, c.state) for c in verdict.components}["container"] == ("seccomp filter, device cgroup v1", "bad")


def test_of_cgroup_2_it_is_said_that_no_file_shows_its_list(tmp_path: Path) -> None:
    mounts = "31 24 0:27 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n"
    copied = {"proc/self/mountinfo": mounts, "proc/1/cgroup": INSIDE, "lsmod.txt": "", "proc/self/status": STATUS}
    for more, told in (({}, True), ({"access.txt": "$ access\n/dev/davinci0 rw: ok\n"}, False)):
        folder = tmp_path / str(told)
        folder.mkdir()
        verdict = examine(foreign(write_folder(Kind("cgroup 2", host(**copied, **more)), folder))).verdict
        shown = {c.name: c.value for c in verdict.components}["container"]
        assert ("no file shows its list" in shown) is told and "device cgroup v2" in shown
        assert not verdict.findings
