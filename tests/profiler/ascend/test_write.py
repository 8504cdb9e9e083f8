"""A predicted profile has the files, the columns and the spelling of Ascend's own, says that it is predicted, and adds up."""

import csv
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.profiler.ascend.steps import AT_US, CHIP, line, lives
from tests.tools.helpers import small_network

from jumar.base import ToolError
from jumar.compiler import TwinOptions, forecast
from jumar.device.npu import timeline
from jumar.frontend import load
from jumar.profiler.ascend import write_forecast, write_op_summary, write_profile

FORMATS = Path(os.environ.get("SHARED", Path(__file__).resolve().parents[4] / "shared")) / "facts" / "formats"
PIPES = (
    "aicore_time(us),aic_total_cycles,aic_mac_time(us),aic_mac_ratio,aic_scalar_time(us),aic_scalar_ratio,aic_mte1_time(us),aic_mte1_ratio,"
    "aic_mte2_time(us),aic_mte2_ratio,aic_fixpipe_time(us),aic_fixpipe_ratio,aic_icache_miss_rate,aiv_time(us),aiv_total_cycles,aiv_vec_time(us),"
    "aiv_vec_ratio,aiv_scalar_time(us),aiv_scalar_ratio,aiv_mte2_time(us),aiv_mte2_ratio,aiv_mte3_time(us),aiv_mte3_ratio,aiv_icache_miss_rate,"
    "cube_utilization(%)"
)


@pytest.fixture(params=["sunk", "stepwise", "eager"])
def profile(request, tmp_path):
    return write_profile(
        tmp_path,
        line(request.param, 2),
        name="net 1",
        rank=1,
        ranks=2,
        lives=lives(2),
        resident_nbytes=1 << 20,
        reserved_nbytes=1 << 30,
        at_us=AT_US,
    )


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_folder_is_named_as_tools_expect(profile):
    assert profile.name == "net-1_rank1_20250109074803704_ascend_pt"
    assert sorted(p.name for p in profile.iterdir()) == [
        "ASCEND_PROFILER_OUTPUT", "PROF_000001_20250109074803704_JUMAR", "profiler_info_1.json", "profiler_metadata.json",
    ]  # fmt: skip
    assert sorted(p.name for p in (profile / "ASCEND_PROFILER_OUTPUT").iterdir()) == [
        "api_statistic.csv", "communication.json", "communication_matrix.json", "kernel_details.csv", "memory_record.csv", "op_statistic.csv",
        "operator_details.csv", "operator_memory.csv", "step_trace_time.csv", "trace_view.json",
    ]  # fmt: skip


def test_every_file_that_can_says_that_it_is_predicted(profile):
    said = "predicted by the twin of jumar, not measured"
    for name in ("profiler_info_1.json", "profiler_metadata.json"):
        known = json.loads((profile / name).read_text())["jumar"]
        assert known["kind"] == said and known["soc"] == "Ascend910B4"
        assert known["latency_us"][1] < known["latency_us"][0] < known["latency_us"][2]
    assert said in (profile / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").read_text()
    assert "measured" not in (profile / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").read_text()


def test_kernel_details_has_the_columns_of_cann_8_3(profile):
    text = (profile / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").read_bytes().decode()
    header = (
        "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim,"
        "Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats,Context ID,"
        + PIPES
    )
    first, second, *_ = text.split("\r\n")
    assert first == header
    assert re.search(r",AI_CORE,\d{16}\.\d{3}\t,60\.000,", second), "a tab stands before the comma after a time"
    assert '"""4096,2048;256,2048;""",FLOAT16;FLOAT16;DT_UNDEFINED,ND;FRACTAL_NZ;NULL,"""4096,256""",DT_BF16,ND,N/A,' in second


def test_a_kernel_has_the_pipes_of_its_unit_and_none_that_is_made_up(profile):
    matmul, softmax, unique, *_, reduce = rows(profile / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv")
    assert (matmul["aicore_time(us)"], matmul["aic_mac_time(us)"], matmul["aic_mac_ratio"], matmul["aic_mte2_ratio"]) == (
        "57.0",
        "40.0",
        "0.702",
        "0.6",
    )
    assert matmul["aic_total_cycles"] == str(round(57 * CHIP.clock_hz / 1e6 * 20))
    assert matmul["cube_utilization(%)"] == f"{57 / 60 * 100 * 20 / CHIP.cube_cores:.1f}"
    assert (matmul["aic_fixpipe_time(us)"], matmul["aic_icache_miss_rate"], matmul["aiv_vec_time(us)"]) == ("N/A", "N/A", "0.0")
    assert (softmax["Block Dim"], softmax["aiv_time(us)"], softmax["aiv_vec_time(us)"], softmax["aicore_time(us)"]) == (
        "40",
        "19.0",
        "5.0",
        "0.0",
    )
    assert (unique["Accelerator Core"], unique["Block Dim"], unique["aiv_time(us)"]) == ("AI_CPU", "0", "0.0")
    assert (reduce["Name"], reduce["Type"], reduce["Accelerator Core"]) == ("hcom_allReduce__001_0_1", "hcom_allReduce_", "COMMUNICATION")
    assert {reduce[c] for c in PIPES.split(",")} == {"N/A"}


def test_what_runs_on_the_host_is_no_kernel(profile):
    assert "NonZero" not in (profile / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").read_text()


def test_a_sunk_graph_is_one_operator_of_the_host_and_what_runs_there(tmp_path):
    sunk, eager = (
        rows(write_profile(tmp_path / m, line(m), at_us=AT_US) / "ASCEND_PROFILER_OUTPUT" / "operator_details.csv")
        for m in ("sunk", "eager")
    )
    assert [r["Name"] for r in sunk] == ["model (whole graph)", "NonZero_3"]
    assert [r["Name"] for r in eager] == ["layer/MatMul", "SoftmaxV2_1", "Unique_2", "NonZero_3", "sum"]
    assert float(sunk[0]["Device Total Duration(us)"]) == 174.0 and float(sunk[0]["Device Total Duration With AICore(us)"]) == 84.0
    assert eager[0]["Call Stack"] == "m.onnx:MatMul_0"


def test_the_step_adds_up(profile):
    (step,) = rows(profile / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv")
    assert step["Device_id"] == "1"
    parts = {k: float(v) for k, v in step.items()}
    assert parts["Computing"] + parts["Communication(Not Overlapped)"] + parts["Free"] == pytest.approx(parts["Stage"], abs=0.01)
    assert parts["Computing"] == pytest.approx(174, abs=0.01)
    kinds = rows(profile / "ASCEND_PROFILER_OUTPUT" / "op_statistic.csv")
    assert [k["OP Type"] for k in kinds] == ["Unique", "MatMulV2", "SoftmaxV2", "Add"]
    assert sum(float(k["Ratio(%)"]) for k in kinds) == pytest.approx(100, abs=0.01)


def test_the_trace_has_the_processes_and_arrows_that_tools_look_for(profile):
    events = json.loads((profile / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").read_text())
    names = {e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    assert names == {"Python", "CANN", "Ascend Hardware", "Communication", "Overlap Analysis"}
    assert all(isinstance(e["ts"], str) and re.fullmatch(r"\d{16}\.\d{3}", e["ts"]) for e in events if e["ph"] != "M")
    kernels = {e["ts"] for e in events if e.get("cat") is None and e["ph"] == "X" and e["pid"] == 100}
    ends = [e for e in events if e.get("cat") == "async_npu" and e["ph"] == "f"]
    assert len(kernels) == 4 and {e["ts"] for e in ends} == kernels
    assert all(e["id"] == int(e["ts"].replace(".", "")) for e in ends)
    starts = [e for e in events if e["ph"] == "s"]
    assert {(e["cat"], e["id"]) for e in starts} == {(e["cat"], e["id"]) for e in events if e["ph"] == "f"}


def test_collectives_say_what_they_send(profile):
    (name, entry), (total, _) = json.loads((profile / "ASCEND_PROFILER_OUTPUT" / "communication.json").read_text())["step0"][
        "collective"
    ].items()
    assert (name, total) == ("hcom_allReduce__001_0_1@1", "Total Op Info")
    times, links = entry["Communication Time Info"], entry["Communication Bandwidth Info"]
    assert times["Transit Time(ms)"] + times["Idle Time(ms)"] == pytest.approx(times["Elapse Time(ms)"])
    assert links["HCCS"]["Size Distribution"] == {"58.7203": [2, pytest.approx(times["Transit Time(ms)"])]}
    assert links["HCCS"] == links["SDMA"] and links["RDMA"]["Transit Size(MB)"] == 0
    matrix = json.loads((profile / "ASCEND_PROFILER_OUTPUT" / "communication_matrix.json").read_text())["step0"]["collective"]
    assert {k: sorted(v) for k, v in matrix.items()} == {"allreduce-top1@1": ["1-0", "1-1"], "allreduce-total@1": ["1-0", "1-1"]}


def test_memory_rises_and_falls_with_the_tensors(profile):
    memory = rows(profile / "ASCEND_PROFILER_OUTPUT" / "operator_memory.csv")
    assert [m["Name"] for m in memory][:2] == ["layer/MatMul", "SoftmaxV2_1"]
    assert float(memory[0]["Size(KB)"]) == 4096 * 256 * 2 / 1024
    assert memory[0]["Release Time(us)"].endswith("\t") and memory[-1]["Release Time(us)"] == ""
    record = rows(profile / "ASCEND_PROFILER_OUTPUT" / "memory_record.csv")
    assert {r["Component"] for r in record} == {"PTA", "APP"}
    assert all(float(r["Total Allocated(MB)"] or 1) >= 1 and float(r["Total Reserved(MB)"]) == 1024 for r in record)


def test_without_collectives_or_lives_there_are_no_empty_files(tmp_path):
    root = write_profile(tmp_path, line(), flavour="ms", at_us=AT_US)
    assert root.name == "model_rank0_20250109074803704_ascend_ms"
    found = {p.name for p in (root / "ASCEND_PROFILER_OUTPUT").iterdir()}
    assert not found & {"communication.json", "communication_matrix.json", "operator_memory.csv", "memory_record.csv"}
    assert "ms_version" in json.loads((root / "profiler_info_0.json").read_text())


@pytest.mark.parametrize("mode", ["sunk", "eager"])
def test_a_forecast_is_written_with_its_memory(tmp_path, mode):
    small_network(tmp_path / "model.onnx")
    found = forecast(load(tmp_path / "model.onnx").graph(dims={"batch": 1}), CHIP, TwinOptions(mode=mode))
    output = write_forecast(tmp_path, found, name="small", at_us=AT_US) / "ASCEND_PROFILER_OUTPUT"
    kernels = rows(output / "kernel_details.csv")
    assert [k["Type"] for k in kernels] == [launch.task.kind for launch in found.launches]
    reserved = {float(r["Total Reserved(MB)"]) for r in rows(output / "memory_record.csv")}
    assert reserved == {found.memory.needed_nbytes / 2**20}
    kept = [r["Name"] for r in rows(output / "operator_memory.csv") if not r["Release Time(us)"]]
    assert kept == [kernels[-1]["Name"]], "only the output outlives the step"


def test_op_summary_is_the_same_table_under_other_names(tmp_path):
    path = write_op_summary(tmp_path, line(), at_us=AT_US)
    assert path.name == "op_summary_20250109074803.csv"
    first = rows(path)[0]
    assert list(first)[:12] == [
        "Device_id", "Model ID", "Task ID", "Stream ID", "Op Name", "OP Type", "OP State", "Task Type", "Task Start Time(us)", "Task Duration(us)",
        "Task Wait Time(us)", "Block Dim",
    ]  # fmt: skip
    assert (first["Op Name"], first["OP State"], first["Task Duration(us)"]) == ("layer/MatMul", "static", "60.000")


def test_options_that_make_no_sense_are_refused(tmp_path):
    with pytest.raises(ToolError, match="flavour must be one of pt, ms, got 'db'"):
        write_profile(tmp_path, line(), flavour="db")
    with pytest.raises(ToolError, match="rank must be 0 to 1, got 2"):
        write_profile(tmp_path, line(), rank=2, ranks=2)


def test_an_empty_step_can_be_written(tmp_path):
    root = write_profile(tmp_path, timeline((), (), CHIP), at_us=AT_US)
    assert len(rows(root / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv")) == 0


@pytest.mark.skipif(not FORMATS.exists(), reason="the samples of real profiles are not beside this checkout")
@pytest.mark.parametrize("name", ["kernel_details.csv", "op_statistic.csv", "step_trace_time.csv"])
def test_headers_are_those_of_the_sample(profile, name):
    sample = FORMATS / "profile_sample" / "rank0_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / name
    ours = profile / "ASCEND_PROFILER_OUTPUT" / name
    assert ours.read_text().splitlines()[0] == sample.read_text().splitlines()[0]


@pytest.mark.skipif(not FORMATS.exists(), reason="the notes on real profiles are not beside this checkout")
@pytest.mark.parametrize(
    "name", ["api_statistic.csv", "operator_details.csv", "operator_memory.csv", "memory_record.csv", "kernel_details.csv"]
)
def test_headers_are_those_of_the_notes(profile, name):
    assert (profile / "ASCEND_PROFILER_OUTPUT" / name).read_text().splitlines()[0] in (FORMATS / "profiler_formats.md").read_text()


MSPROF = os.environ.get("MSPROF_ANALYZE") or shutil.which("msprof-analyze")


@pytest.mark.slow
@pytest.mark.skipif(not MSPROF, reason="msprof-analyze is not installed: set $MSPROF_ANALYZE to it, or run scripts/check-profile")
def test_msprof_analyze_reads_what_we_write(tmp_path):
    """Its exit status is 0 whatever happens: only its output files count."""
    first, _ = (write_profile(tmp_path / "job", line("sunk", 2), name="net", rank=r, ranks=2, lives=lives(2)) for r in range(2))
    other = write_profile(tmp_path / "other", line("eager"), name="net", lives=lives())
    for arguments, pattern in (
        (["advisor", "all", "-d", first], "mstt_advisor_*.html"),
        (["compare", "-d", first, "-bp", other], "performance_comparison_result_*.xlsx"),
        (["cluster", "-m", "all", "-d", tmp_path / "job"], "cluster_analysis_output/cluster_step_trace_time.csv"),
    ):
        out = tmp_path / arguments[0]
        subprocess.run(
            [MSPROF, *map(str, arguments), "-o", str(out), "--force"], check=True, capture_output=True, cwd=tmp_path, timeout=300
        )
        assert list(out.glob(pattern)), f"msprof-analyze {arguments[0]} wrote nothing"
