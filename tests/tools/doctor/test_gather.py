"""This machine is read without a change and without an import of what is installed; tools that are missing or hang cost nothing."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.field.machines import KERNELS, KINDS, NODES, TOOLKIT, environment, smi, write_root

from jumar.tools.doctor.checks import facts
from jumar.tools.doctor.commands import ask, run
from jumar.tools.doctor.examine import examine
from jumar.tools.doctor.gather import _entry, gather
from jumar.tools.doctor.layout import texts
from jumar.tools.doctor.machine import Listing, Machine, Output, Text
from jumar.tools.doctor.readings import listings

ENV = {line.partition("=")[0]: line.partition("=")[2] for line in environment().splitlines()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_root(tmp_path)


def answers(**outputs: str):  # type: ignore[no-untyped-def]
    def runner(arguments: Sequence[str], limit_s: float) -> Output | None:
        command = " ".join(arguments)
        text = outputs.get(arguments[0].replace("-", "_"))
        return Output(command, Text(command, text), 0) if text is not None else None

    return runner


def findings(root: Path, env: dict[str, str] = ENV, **outputs: str) -> list[str]:
    outputs.setdefault("npu_smi", smi())
    verdict = examine(gather(root, env, answers(**outputs))).verdict
    return [f.rule.name for f in (*verdict.findings, *verdict.followed)]


def test_a_healthy_host_has_no_finding(root: Path) -> None:
    found = findings(root)
    assert [name for name in found if "numpy" not in name] == []


def test_what_is_gathered_names_its_place(root: Path) -> None:
    machine = gather(root, ENV, answers(npu_smi=smi()))
    assert machine.whole and not machine.here
    assert machine.files["/usr/local/Ascend/driver/version.info"].keys()["Version"].evidence.line == 1
    assert machine.listings["/dev"].entry("davinci0") is not None
    assert machine.identity.container is not None and machine.identity.container.value == "no"
    assert f"/{TOOLKIT}/8.1.RC1/{KERNELS}" in machine.listings
    assert "pytest" in machine.packages


def test_nodes_that_are_gone_are_found(root: Path) -> None:
    for name in NODES:
        (root / "dev" / name).unlink()
    (root / "proc/modules").write_text("nf_tables 1 0 - Live 0x0\n")
    found = findings(root, npu_smi="")
    assert "machine-driver-modules-missing" in found and "machine-device-nodes-missing" in found


def test_a_container_without_nodes_is_found(root: Path) -> None:
    for name in NODES:
        (root / "dev" / name).unlink()
    (root / ".dockerenv").touch()
    assert findings(root, npu_smi="dcmi module initialize failed. ret is -8005")[0] == "machine-container-nodes-missing"


def test_a_shell_that_did_not_source_cann_is_found(root: Path) -> None:
    found = findings(root, {"PATH": "/usr/bin", "LD_LIBRARY_PATH": "/usr/local/Ascend/driver/lib64"})
    assert "machine-cann-not-sourced" in found


def test_a_cann_home_that_is_gone_is_found(root: Path) -> None:
    assert "machine-cann-home-gone" in findings(root, {**ENV, "ASCEND_HOME_PATH": f"/{TOOLKIT}/7.0.0"})


def test_a_rank_table_that_is_gone_is_found(root: Path) -> None:
    assert "machine-rank-table-gone" in findings(root, {**ENV, "RANK_TABLE_FILE": "/data/hccl.json"})


def test_a_rank_table_is_read_where_its_variable_points(root: Path) -> None:
    (root / "data").mkdir()
    (root / "data/hccl.json").write_text(KINDS["rank-table"].files["hccl.json"])
    assert "machine-rank-table-bad" in findings(root, {**ENV, "RANK_TABLE_FILE": "/data/hccl.json"})


def test_a_card_that_is_named_but_absent_is_found(root: Path) -> None:
    assert "machine-visible-device-absent" in findings(root, {**ENV, "ASCEND_RT_VISIBLE_DEVICES": "0,5"})


def test_a_port_that_listens_in_hccls_range_is_found(root: Path) -> None:
    (root / "proc/net").mkdir()
    (root / "proc/net/tcp").write_text("  sl  local_address rem_address   st\n   0: 00000000:EA61 00000000:0000 0A 00000000:00000000\n")
    assert "machine-hccl-port-taken" in findings(root, {**ENV, "RANK_SIZE": "8"})


def test_secrets_and_variables_of_others_are_not_kept(root: Path) -> None:
    env = {**ENV, "ASCEND_API_KEY": "x", "AWS_SECRET": "y", "MY_OWN": "z"}
    assert {"ASCEND_API_KEY", "AWS_SECRET", "MY_OWN"}.isdisjoint(gather(root, env, None).environment)


def test_a_machine_without_an_npu_says_so_in_one_line_and_is_healthy(tmp_path: Path) -> None:
    examined = examine(gather(tmp_path, {"PATH": "/usr/bin"}, None))
    assert examined.verdict.machine.startswith("No Ascend NPU here")
    assert examined.verdict.exit_code == 0
    assert examined.verdict.levels == ()


def test_a_command_that_hangs_is_ended_and_said_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "npu-smi"
    tool.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    start = time.monotonic()
    output = run(["npu-smi", "info"], 0.3)
    assert output is not None and output.code == 124
    assert time.monotonic() - start < 10
    assert "no answer within 0.3 s" in output.text.text


def test_a_command_that_is_not_there_is_no_output() -> None:
    assert run(["no-such-tool-of-anyone"], 1) is None


def test_each_card_is_asked_and_the_kernels_log_is_cut_to_its_lines() -> None:
    asked: list[str] = []

    def runner(arguments: Sequence[str], limit_s: float) -> Output | None:
        command = " ".join(arguments)
        asked.append(command)
        text = {"npu-smi": smi(), "dmesg": "[1.0] usb 1-1: new\n[2.0] [ascend] [devdrv] [f 1] x\n"}.get(arguments[0])
        return Output(command, Text(command, text), 0) if text else None

    outputs = {o.command: o.text.text for o in ask((0, 1), runner)}
    assert {"npu-smi info -t board -i 0", "npu-smi info -t health -i 1"} <= set(outputs)
    assert outputs["dmesg"] == "[2.0] [ascend] [devdrv] [f 1] x"
    assert not any("reset" in a or " -s " in a or "set" in a.split() for a in asked), "nothing that changes a setting is asked"


def test_facts_keep_the_order_of_the_checks(root: Path) -> None:
    found = facts(gather(root, {**ENV, "HCCL_CONNECT_TIMEOUT": "5"}, answers(npu_smi=smi())))
    assert [f.moment.line for f in found] == list(range(len(found)))
    assert "hccl-value-invalid" in {f.name for f in found}
    assert json.dumps([dict(f.values) for f in found])


def test_the_numbers_of_a_node_are_gathered_and_survive_a_collection() -> None:
    entry = _entry("/dev", Path("/dev/null"), 2)
    assert entry.device == (1, 3) and " 1, 3 null" in entry.evidence.text
    machine = Machine(listings={"/dev": Listing("ls -la /dev", (entry,))})
    written = Text("listings.txt", texts(machine)["listings.txt"].partition("\n")[2])
    assert [e.device for e in listings(written, "ls -la /dev")["/dev"].entries] == [(1, 3)]
