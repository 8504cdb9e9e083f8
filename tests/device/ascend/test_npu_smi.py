"""Every output of npu-smi parses to values: all samples by hand-written figures, dressed and damaged ones, and any text at all."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.device.ascend import Npu, NpuSmi, busy, health_findings, parse_npu_smi, soc_of

SAMPLES = Path(__file__).parent / "samples" / "npu_smi"
NAMES = sorted(path.name for path in SAMPLES.glob("*.txt"))


def sample(number: int) -> str:
    (path,) = SAMPLES.glob(f"{number:02d}_*.txt")
    return path.read_text(encoding="utf-8")


def smi(number: int) -> NpuSmi:
    return parse_npu_smi(sample(number))


def row(npu: Npu) -> tuple[object, ...]:
    return (npu.npu, npu.chip, npu.device, npu.soc, npu.generation, npu.health, npu.power_w, npu.temperature_c, npu.bus_id)


def memory(npu: Npu) -> tuple[int | None, ...]:
    return (
        npu.hugepages_used,
        npu.hugepages_total,
        npu.memory_used_mb,
        npu.memory_total_mb,
        npu.hbm_used_mb,
        npu.hbm_total_mb,
    )


def test_there_are_34_samples() -> None:
    assert len(NAMES) == 34


@pytest.mark.parametrize("name", NAMES)
def test_every_sample_parses_without_a_complaint(name: str) -> None:
    found = parse_npu_smi((SAMPLES / name).read_text(encoding="utf-8"))
    assert found.complaints == () and not found.empty


TABLES = {  # sample -> (tool, driver, layout), rows, memories
    1: (
        ("24.1.rc3", "24.1.rc3", "910"),
        [
            (0, 0, None, "Ascend910B1", "910b", "OK", 94.6, 49.0, "0000:C1:00.0"),
            (1, 0, None, "Ascend910B1", "910b", "OK", 97.8, 48.0, "0000:01:00.0"),
        ],
        [(0, 0, 0, 0, 3373, 65536), (0, 0, 0, 0, 3367, 65536)],
    ),
    2: (
        ("25.0.rc1.1", "25.0.rc1.1", "910"),
        [(0, 0, None, "Ascend910B2", "910b", "OK", 94.5, 44.0, "0000:C1:00.0")],
        [(0, 0, 0, 0, 3404, 65536)],
    ),
    3: (
        ("25.3.rc1", "25.3.rc1", "910"),
        [(4, 0, None, "Ascend910B4", "910b", "OK", 82.5, 50.0, "0000:01:00.0")],
        [(0, 0, 0, 0, 2871, 32768)],
    ),
    4: (
        ("26.0.rc1", "26.0.rc1", "910"),
        [
            (3, 0, None, "Ascend910B3", "910b", "OK", 91.8, 33.0, "0000:82:00.0"),
            (4, 0, None, "Ascend910B3", "910b", "OK", 88.0, 36.0, "0000:01:00.0"),
        ],
        [(0, 0, 0, 0, 59693, 65536), (0, 0, 0, 0, 59690, 65536)],
    ),
    5: (
        ("25.2.1", "25.2.1", "A3"),
        [
            (0, 0, 0, "Ascend910_93", "910_93", "OK", 166.5, 38.0, "0000:9D:00.0"),
            (0, 1, 1, "Ascend910_93", "910_93", "OK", None, 37.0, "0000:9F:00.0"),
            (1, 0, 2, "Ascend910_93", "910_93", "OK", 168.1, 37.0, "0000:99:00.0"),
        ],
        [(0, 0, 0, 0, 3131, 65536), (0, 0, 0, 0, 2886, 65536), (0, 0, 0, 0, 3125, 65536)],
    ),
    6: (
        ("24.1.0.3", "24.1.0.3", "910"),
        [
            (0, 0, None, "Ascend910B", "910", "OK", 69.3, 41.0, "0000:C1:00.0"),
            (1, 0, None, "Ascend910B", "910", "OK", 66.0, 36.0, "0000:81:00.0"),
        ],
        [(0, 0, 1424, 13553, 5, 32768), (0, 0, 1530, 15665, 4, 32768)],
    ),
    7: (
        ("23.0.rc3", "23.0.rc2.3", "910"),
        [(0, 0, None, "", "910", "OK", 73.4, 44.0, "0000:C1:00.0"), (1, 0, None, "", "910", "OK", 69.6, 39.0, "0000:81:00.0")],
        [(1123, 1123, 4565, 15137, 30710, 32768), (1123, 1123, 4483, 15137, 30710, 32768)],
    ),
    8: (
        ("25.2.0", "25.2.0", "310"),
        [
            (0, 0, 0, "Ascend310P3", "310p", "OK", None, 48.0, "0000:01:00.0"),
            (32, 0, 1, "Ascend310P3", "310p", "OK", None, 50.0, "0000:02:00.0"),
        ],
        [(0, 0, 1851, 21527, None, None), (0, 0, 1852, 21527, None, None)],
    ),
    9: (
        ("23.0.5", "23.0.5", "310"),
        [(i, 0, i, "Ascend310B1", "310b", "Alarm", 0.0, t, f"0000:1{i + 1}:00.0") for i, t in enumerate((49.0, 54.0, 54.0))],
        [(15, 15, 600, 7578, None, None), (15, 15, 597, 7578, None, None), (15, 15, 570, 7578, None, None)],
    ),
    10: (
        ("x.x.x", "x.x.x", "950"),
        [(0, 0, None, "", "950", "OK", 204.4, 56.0, "0000:91:00.0")],
        [(0, 0, 0, 0, 4439, 86016)],
    ),
    38: (
        ("25.2.0", "25.2.0", "310"),
        [(0, 0, 0, "Ascend310B4", "310b", "OK", 10.4, 66.0, "")],
        [(15, 15, 957, 10810, None, None)],
    ),
}


@pytest.mark.parametrize("number", list(TABLES))
def test_a_table_gives_versions_cards_and_memory(number: int) -> None:
    found = smi(number)
    versions, rows, memories = TABLES[number]
    assert (found.tool, found.driver, found.layout) == versions
    assert [row(npu) for npu in found.npus] == rows
    assert [memory(npu) for npu in found.npus] == memories


FAILURES = {11: -8005, 12: -8020, 13: -8001}


@pytest.mark.parametrize("number", list(FAILURES))
def test_a_refusal_gives_its_code(number: int) -> None:
    found = smi(number)
    assert found.failure_code == FAILURES[number]
    assert found.failures[-1].kind == "dcmi" and f"ret is {FAILURES[number]}" in found.failures[-1].text
    assert [one.kind for one in found.failures[:-1]] == ([] if number == 13 else ["driver-log-level"])


def test_a_missing_npu_smi_is_a_failure_without_a_code() -> None:
    (failure,) = smi(14).failures
    assert (failure.kind, failure.code, failure.line) == ("not-found", None, 1)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("-bash: npu-smi：未找到命令", "not-found"),
        ("sh: 1: npu-smi: not found", "not-found"),
        ("zsh: command not found: npu-smi", "not-found"),
        ('OCI runtime exec failed: exec: "npu-smi": executable file not found in $PATH', "not-found"),
        ("npu-smi: error while loading shared libraries: libdrvdsmi_host.so: cannot open shared object file", "library"),
        ("bash: /usr/local/bin/npu-smi: Permission denied", "permission"),
        ("Failed to query the board information. ret = -8003", "query"),
        ("npu get board failed. ret is -8015", "dcmi"),
        ("This device does not support setting reset.", "unsupported"),
    ],
)
def test_other_wordings_of_a_refusal_are_known(text: str, kind: str) -> None:
    assert [one.kind for one in parse_npu_smi(text).failures] == [kind]


def test_processes_are_listed_with_the_idle_cards() -> None:
    found = smi(15)
    assert [(p.npu, p.chip, p.pid, p.name, p.memory_mb) for p in found.processes] == [
        (14, 0, 650, "VLLMWorker_TP", 59035),
        (15, 0, 687, "VLLMWorker_TP", 59035),
    ]
    assert found.idle == (2,) and found.processes_listed
    assert smi(10).idle == (0,) and smi(1).idle == (0, 1)


PROPERTIES: dict[int, tuple[str, int | None, int | None, dict[str, object]]] = {
    20: ("board", 0, None, {"software_version": "23.0.5", "firmware_version": "7.1.0.7.220", "compatibility": "OK", "chip_count": 1}),
    21: ("board", 0, None, {"software_version": "24.1.RC2", "model": None, "serial_number": "0" * 16, "faulty_chip_count": 0}),
    22: ("board", 0, 0, {"chip_name": "xxx", "firmware_version": "7.1.0.7.220", "pcb_id": None, "pcie_bus_info": "0000:61:00.0"}),
    23: ("health", 0, 0, {"health": "OK", "error_code": None, "error_information": None}),
    24: ("health", 2, 0, {"health": "Warning", "error_code": "80818C00"}),
    25: ("health", 0, None, {"health": "OK", "error_code": None}),
    26: ("current-fault-event", 0, None, {"fault_event_count": 1}),
    27: ("ecc", 1, 0, {"hbm_double_bit_error_count": 0, "hbm_double_bit_isolated_pages_count": 0, "ddr_single_bit_error_count": 0}),
    28: ("usages", 0, 0, {"ddr_capacity_mb": 13553, "hbm_capacity_mb": 32768, "ddr_usage_rate_percent": 6, "ddr_hugepages_total_pages": 0}),
    29: ("usages", 0, None, {"hbm_capacity_mb": 131072, "ctrlcpu_usage_rate_percent": 40, "npu_utilization_percent": 0}),
    30: ("common", 0, 0, {"aicore_freq_mhz": 900, "aicore_count": 30, "temperature_c": 41, "npu_real_time_power_w": 71.7}),
    31: ("common", 0, 0, {"hbm_usage_rate_percent": 91, "aicore_curfreq_mhz": 1800, "aicore_count": 20, "temperature_c": 46}),
    32: ("memory", 0, None, {"hbm_capacity_mb": 131072, "hbm_clock_speed_mhz": 3200, "hbm_temperature_c": 63, "hbm_manufacturer_id": "0x5A"}),
    36: ("watch", 0, None, {"pwr_w": 290.4, "temp_c": 51, "ctrl_cpu_percent": 16, "memory_percent": 3, "npu_util_percent": 0}),
}  # fmt: skip


@pytest.mark.parametrize("number", list(PROPERTIES))
@pytest.mark.parametrize("with_command", [True, False])
def test_a_form_gives_typed_values_and_its_kind_also_without_the_command(number: int, with_command: bool) -> None:
    text = sample(number)
    kind, npu, chip, values = PROPERTIES[number]
    found = parse_npu_smi(text if with_command else text.split("\n", 1)[1]).properties[0]
    assert found.kind == kind
    if with_command or "npu_id" in found.values:
        assert (found.npu, found.chip) == (npu, chip)
    assert {name: found.values[name] for name in values} == values


def test_the_board_gives_driver_and_firmware() -> None:
    found = smi(20)
    assert (found.driver, found.firmware, found.compatibility) == ("23.0.5", "7.1.0.7.220", "OK")
    assert smi(21).compatibility == ""  # RC boards do not tell it


def test_a_second_chip_of_one_output_is_its_own() -> None:
    main, controller = smi(31).properties
    assert main.values["temperature_c"] == 46 and "chip_name" not in main.values
    assert controller.values == {"chip_name": "mcu", "temperature_c": 40}


def test_events_have_their_code() -> None:
    (silent,) = smi(24).events
    assert (silent.npu, silent.chip, silent.hex, silent.severity) == (2, 0, "0x80818C00", None)
    (fault,) = smi(26).events
    assert (fault.npu, fault.hex, fault.severity) == (0, "0x81AF8000", 2)


def test_several_error_codes_are_several_events() -> None:
    text = "$ npu-smi info -t health -i 1\n  Health Status : Alarm\n  Error Code : 80E01801 80818C00\n  Error Information : a, b\n"
    assert [one.hex for one in parse_npu_smi(text).events] == ["0x80E01801", "0x80818C00"]


def test_memory_by_process_is_a_process() -> None:
    (process,) = smi(33).processes
    assert (process.npu, process.chip, process.pid, process.name, process.memory_mb) == (0, None, 395864, "power_test", 5118)


def test_the_list_and_the_mapping() -> None:
    found = smi(34)
    assert [one.kind for one in found.properties] == ["list", "list"]
    assert found.properties[0].values == {"total_count": 1} and found.properties[1].values["product_name"] == "A5 PCIe Card"
    (mapped,) = found.mapping
    assert (mapped.npu, mapped.slot, mapped.chip, mapped.phy_id, mapped.logic_id, mapped.name) == (0, 0, 0, 0, None, "xxx")


def test_the_older_mapping_has_logic_ids_and_a_controller() -> None:
    text = "NPU ID    Chip ID    Chip Logic ID    Chip Name\n0         0          0                Ascend 310P3\n0         1          -      Mcu\n"
    rows = parse_npu_smi(text).mapping
    assert [(m.npu, m.chip, m.logic_id, m.name) for m in rows] == [(0, 0, 0, "Ascend 310P3"), (0, 1, None, "Mcu")]


def test_the_topology_is_a_matrix() -> None:
    (topology,) = smi(35).topologies
    assert topology.devices == tuple(f"NPU{i}" for i in range(8))
    assert topology.links[0] == ("X", "UB", "UB", "UB", "SYS", "SYS", "SYS", "SYS") and len(topology.links) == 8
    assert topology.affinity[0] == "0-63,128-191" and topology.affinity[7] == "64-127,192-255"


def test_watch_gives_a_line_for_each_card() -> None:
    assert [(one.npu, one.values["pwr_w"]) for one in smi(36).properties] == [(0, 290.4), (1, 292.1), (2, 291.2)]


def test_the_help_tells_which_types_there_are() -> None:
    found = smi(37)
    assert found.types[:4] == ("board", "flash", "memory", "usages") and found.types[-1] == "pkcs-enable" and len(found.types) == 40
    assert "driver" not in found.types and found.commands == ("watch", "proc", "-h, --help", "-m", "-l", "-t")


# ---- what follows


def test_a_card_full_of_memory_without_a_process_is_held_elsewhere() -> None:
    first, second = busy(smi(4))
    assert first.held and first.processes == () and first.elsewhere_mb == 59693 - 4600
    assert second.npu == 4


def test_idle_cards_are_not_held() -> None:
    for number in (1, 2, 3, 5, 6, 8, 9, 10, 38):
        assert not any(one.held for one in busy(smi(number))), number


def test_a_process_explains_the_memory() -> None:
    first, _ = busy(smi(7))
    assert first.processes[0].pid == 139667 and first.elsewhere_mb == 0 and first.held


def test_processes_without_a_table_of_cards_are_holders_too() -> None:
    assert [(one.npu, one.processes[0].pid, one.used_mb) for one in busy(smi(15))] == [(14, 650, None), (15, 687, None)]


@pytest.mark.parametrize(
    ("number", "kinds"),
    [(1, []), (7, ["versions"]), (9, ["health"] * 3), (20, []), (24, ["health", "event"]), (26, ["event"]), (27, []), (31, [])],
)
def test_what_is_not_well_is_found(number: int, kinds: list[str]) -> None:
    assert [one.kind for one in health_findings(smi(number))] == kinds


def test_double_bit_errors_a_throttled_clock_and_a_wrong_pair_are_found() -> None:
    text = sample(27).replace("HBM Double Bit Error Count               : 0", "HBM Double Bit Error Count               : 3")
    text += sample(31).replace("curFreq(MHZ)            : 1800", "curFreq(MHZ)            : 800")
    text += sample(20).replace(": OK", ": NOK")
    found = health_findings(parse_npu_smi(text))
    assert [(one.kind, one.text) for one in found] == [
        ("ecc", "NPU 1: hbm_double_bit_error_count 3"),
        ("throttled", "NPU 0: AI Core runs at 800 of 1800 MHz under load"),
        ("compatibility", "NPU 0: driver and firmware: Compatibility NOK"),
    ]


@pytest.mark.parametrize(
    ("name", "soc", "generation"),
    [
        ("910A", "Ascend910A", "910"),
        ("910ProB", "Ascend910ProB", "910"),
        ("910B", "Ascend910B", "910"),
        ("910B2C", "Ascend910B2C", "910b"),
        ("910B4-1", "Ascend910B4-1", "910b"),
        ("910B7", "Ascend910B7", "910b"),
        ("Ascend910_9392", "Ascend910_9392", "910_93"),
        ("910C", "Ascend910_93", "910_93"),
        ("310", "Ascend310", "310"),
        ("310P", "Ascend310P", "310p"),
        ("310P1", "Ascend310P1", "310p"),
        ("Ascend950PR", "Ascend950PR", "950"),
        ("xxx", "", ""),
        ("Mcu", "", ""),
    ],
)
def test_a_name_tells_the_chip_and_its_generation(name: str, soc: str, generation: str) -> None:
    assert soc_of(name) == (soc, generation)


# ---- dressed and damaged


def dressed(text: str) -> list[str]:
    lines = text.splitlines()
    return [
        text.replace("\n", "\r\n"),
        "\n".join(f"\x1b[32m{line}\x1b[0m" for line in lines),
        "\n".join(f"[rank3]: {line}" for line in lines),
        "\n".join(f"2026-01-02 10:11:12,345 INFO worker.py:7 {line}" for line in lines),
        "\n".join(f"2026-01-02 | INFO | main:run - {line}" for line in lines),
        "\n".join(f"> {line}   " for line in lines),
        "\n\n".join(lines),
        "root@node:/# npu-smi info\n" + text + "root@node:/# ls\n",
        "\ufeff" + text,
    ]


@pytest.mark.parametrize("number", [*(n for n in TABLES if n != 38), 15])
def test_a_dressed_table_says_the_same(number: int) -> None:
    plain = smi(number)
    for text in dressed(sample(number)):
        found = parse_npu_smi(text)
        assert [row(npu) + memory(npu) for npu in found.npus] == [row(npu) + memory(npu) for npu in plain.npus], text
        assert [(p.npu, p.chip, p.pid, p.memory_mb) for p in found.processes] == [
            (p.npu, p.chip, p.pid, p.memory_mb) for p in plain.processes
        ]
        assert (found.tool, found.driver, found.layout, found.complaints) == (plain.tool, plain.driver, plain.layout, ())


@pytest.mark.parametrize("width", [64, 72, 80, 90])
@pytest.mark.parametrize("number", [1, 4, 5, 6, 7, 10])
def test_rows_that_a_narrow_terminal_broke_are_one_again(number: int, width: int) -> None:
    lines = [piece.rstrip() for line in sample(number).splitlines() for piece in (line[:width], line[width:])]
    plain, found = smi(number), parse_npu_smi("\n".join(lines))
    assert [row(npu) + memory(npu) for npu in found.npus] == [row(npu) + memory(npu) for npu in plain.npus]
    assert (found.tool, found.driver, found.complaints) == (plain.tool, plain.driver, ())
    assert [(p.npu, p.pid, p.memory_mb) for p in found.processes] == [(p.npu, p.pid, p.memory_mb) for p in plain.processes]


def test_old_tables_name_a_310_and_have_no_huge_pages() -> None:
    text = """+------------------------------------------------------------------------------+
| npu-smi 1.8.21.2                     Version: 20.2.2.spc001                       |
+-------------------+-----------------+------------------------------------------------------+
| NPU     Name      | Health          | Power(W)          Temp(C)                            |
| Chip    Device    | Bus-Id          | AICore(%)         Memory-Usage(MB)                   |
+===================+=================+======================================================+
| 3       310       | OK              | 12.8              45                                 |
| 1       5         | 0000:05:00.0    | 7                 2621 / 8192                        |
+===================+=================+======================================================+
"""
    (npu,) = parse_npu_smi(text).npus
    assert row(npu) == (3, 1, 5, "Ascend310", "310", "OK", 12.8, 45.0, "0000:05:00.0") and npu.utilisation == 7
    assert memory(npu) == (None, None, 2621, 8192, None, None)


def test_the_tool_tells_its_version_alone() -> None:
    assert parse_npu_smi("$ npu-smi -v\nnpu-smi version: 24.1.rc3").tool == "24.1.rc3"


def test_a_reset_that_is_refused_is_a_failure_and_no_complaint() -> None:
    found = parse_npu_smi("$ npu-smi set -t reset -i 0 -c 0\nThis device does not support setting reset.")
    assert [one.kind for one in found.failures] == ["unsupported"] and found.complaints == ()


def test_ids_of_a_super_pod_are_numbers() -> None:
    text = (
        "$ npu-smi info -t spod-info -i 0 -c 0\n        SDID                           : 12\n        Super Pod ID                   : 0\n"
    )
    (one,) = parse_npu_smi(text).of("spod-info")
    assert one.values == {"sdid": 12, "super_pod_id": 0}


def test_blanks_between_cells_may_be_lost() -> None:
    text = "\n".join(" ".join(line.split()) for line in sample(1).splitlines())
    assert [row(npu) + memory(npu) for npu in parse_npu_smi(text).npus] == [row(npu) + memory(npu) for npu in smi(1).npus]


@pytest.mark.parametrize("number", [1, 4, 5, 6, 8, 10])
def test_a_table_without_its_header_is_read_by_its_rows(number: int) -> None:
    rows = [line for line in sample(number).splitlines() if line.startswith("|")][3:]
    found = parse_npu_smi("\n".join(rows))
    assert [npu.generation for npu in found.npus] == [npu.generation for npu in smi(number).npus]
    assert [memory(npu) for npu in found.npus] == [memory(npu) for npu in smi(number).npus]


def test_a_row_that_is_cut_off_is_complained_of_with_its_line() -> None:
    lines = sample(1).splitlines()
    lines[7] = lines[7][:70]  # ends within Memory-Usage
    found = parse_npu_smi("\n".join(lines))
    assert [(one.line, one.kind) for one in found.complaints] == [(8, "row-cut")]
    assert found.complaints[0].what == "npu-smi: NPU 0 must have HBM-Usage, the row ends before"
    assert found.npus[0].hbm_total_mb is None and found.npus[1].hbm_total_mb == 65536


def test_a_table_that_ends_after_a_first_row_is_complained_of() -> None:
    found = parse_npu_smi("\n".join(sample(3).splitlines()[:7]))
    assert [(one.line, one.kind) for one in found.complaints] == [(7, "row-missing")]
    assert found.npus[0].name == "910B4" and found.npus[0].bus_id == ""


def test_a_strange_row_is_complained_of_and_others_stay() -> None:
    text = sample(1).replace("| 0                         | 0000:C1:00.0  | 0  ", "| what                      | is this       | 0  ")
    found = parse_npu_smi(text)
    assert [one.kind for one in found.complaints] == ["row", "row-missing"]
    assert found.npus[1].hbm_used_mb == 3367


def test_a_number_that_is_none_is_complained_of() -> None:
    found = parse_npu_smi(sample(30).replace(": 41", ": warm"))
    assert [(one.line, one.what) for one in found.complaints] == [(11, "npu-smi: Temperature(C) must be a number, got 'warm'")]
    assert found.properties[0].values["temperature_c"] is None


def test_all_samples_in_one_text_give_what_each_gives() -> None:
    everything = parse_npu_smi("\n".join(sample(int(name[:2])) for name in NAMES))
    one_by_one = [parse_npu_smi((SAMPLES / name).read_text(encoding="utf-8")) for name in NAMES]
    assert everything.complaints == ()
    assert [row(n) + memory(n) for n in everything.npus] == [row(n) + memory(n) for one in one_by_one for n in one.npus]
    assert [p.values for p in everything.properties if p.kind != "watch"] == [
        p.values for one in one_by_one for p in one.properties if p.kind != "watch"
    ]
    assert len({npu.table for npu in everything.npus}) == len(TABLES)
    assert [f.code for f in everything.failures] == [f.code for one in one_by_one for f in one.failures]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        "I ran npu-smi info in the container and it hangs",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "| NVIDIA-SMI 535.1   Driver Version: 535.1   CUDA Version: 12.2 |\n|  0  NVIDIA A100   On | 00000000:00:04.0 Off |   0 |",
        "epoch: 1 loss : 0.5\nTraceback: x",
    ],
)
def test_other_texts_give_one_complaint_and_no_values(text: str) -> None:
    found = parse_npu_smi(text)
    assert found.npus == () and found.properties == () and [one.kind for one in found.complaints] == ["nothing"]


# ---- any text

ALL = "\n".join((SAMPLES / name).read_text(encoding="utf-8") for name in NAMES)
PIECES = ALL.splitlines() + ALL.split()


def check(text: str) -> None:
    began = time.perf_counter()
    found = parse_npu_smi(text)
    busy(found)
    health_findings(found)
    assert time.perf_counter() - began < 2 + len(text) / 50_000  # a runaway pattern takes minutes


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.text(max_size=2000),
        st.lists(st.sampled_from(PIECES), max_size=60).map("\n".join),
        st.lists(st.sampled_from(PIECES)).map(" ".join),
    )
)
def test_no_text_raises(text: str) -> None:
    check(text)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(ALL)), st.integers(0, 3000), st.randoms(use_true_random=False))
def test_cut_and_shuffled_samples_do_not_raise(start: int, length: int, rng: random.Random) -> None:
    piece = ALL[start : start + length]
    lines = piece.splitlines()
    rng.shuffle(lines)
    mangled = list(piece)
    for _ in range(len(mangled) // 20):
        mangled[rng.randrange(len(mangled))] = rng.choice("|:+-=/0 9\n\r\x1bA(٣")
    for text in (piece, "\n".join(lines), "".join(mangled)):
        check(text)


@pytest.mark.parametrize(
    "hard",
    [
        lambda: "|" * 200_000,
        lambda: "npu-smi info " + "$" * 50_000,
        lambda: "| 0 " + " " * 100_000 + "910B1 | OK |",
        lambda: "NPU ID" + " " * 100_000 + ": 0",
        lambda: ("a" * 3999 + "\n") * 100,
        lambda: ("- / " * 999 + "\n") * 100,
        lambda: "Process id: 1 Process name: " * 10_000,
        lambda: "| " + "9" * 100_000 + " | OK | 1 2 3 / 4 |",
        lambda: "\x1b]" * 100_000,
        lambda: (": " * 1999 + "\n") * 50,
    ],
)
def test_hostile_lines_take_no_time(hard: Callable[[], str]) -> None:
    check(hard())
