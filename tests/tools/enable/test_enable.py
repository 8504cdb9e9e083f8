"""`jumar enable` from the outside: what it says, what it writes, and what bad input gets."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from tests.frontend.build import model as build
from tests.models.net import Net
from tests.tools.helpers import ROOT, jumar, small_network, unknown_operators

from jumar.base import ToolError
from jumar.tools.enable.console import Teller
from jumar.tools.enable.facts import DimFact
from jumar.tools.enable.inputs import Chosen, parse_input
from jumar.tools.enable.job import Options, about_sizes, enable, setting
from jumar.tools.enable.page import page


@pytest.fixture(scope="module")
def enabled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict, str]:
    """One run on the small network: its folder, its JSON, its progress."""
    folder = tmp_path_factory.mktemp("enable")
    small_network(folder / "small.onnx")
    done = jumar("enable", "small.onnx", "--dim", "batch=2", "--out", "out", "--json", "--runs", "5", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout), done.stderr


def test_every_layer_is_told(enabled: tuple[Path, dict, str]) -> None:
    _, _, said = enabled
    for layer in ("environment", "model", "graph engine", "compile time", "memory", "numerics", "speed", "written"):
        assert re.search(rf"^{layer} ", said, re.MULTILINE), layer
    assert "free dimension batch = 2 (given by --dim)" in said
    assert "agrees" in said


def test_json_holds_figures_of_every_layer(enabled: tuple[Path, dict, str]) -> None:
    _, report, _ = enabled
    assert report["environment"]["cores"] >= 1
    assert report["environment"]["looked"]
    assert report["model"]["node_count"] == 10
    assert report["model"]["inputs"][0]["chosen"] == "f32[2, 3, 16, 16]"
    assert report["passes"][0]["before"] > report["passes"][-1]["after"]
    assert report["compile"]["cold_s"] > 0
    assert report["memory"]["peak_nbytes"] >= report["memory"]["bound_nbytes"] > 0
    assert report["memory"]["over_bound"] <= 1.10
    assert report["numerics"]["within"]
    assert report["speed"]["median_ms"] > 0
    assert report["speed"]["peak_gflops_per_s"] > 0
    assert len(report["speed"]["steps"]) == report["compile"]["steps"]


class _Outside(HTMLParser):
    """Finds whatever a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [f"{tag} {name}={value}" for name, value in attrs if name in ("src", "href") and value and not value.startswith("#")]


def test_the_page_needs_no_other_file(enabled: tuple[Path, dict, str]) -> None:
    folder, _, _ = enabled
    text = (folder / "out" / "report.html").read_text(encoding="utf-8")
    parser = _Outside()
    parser.feed(text)
    assert parser.found == []
    assert "@import" not in text
    assert "url(" not in text
    assert text.count('<svg class="chart"') == 3  # live bytes, arena, timeline
    assert '<svg class="graph"' in text


def test_stages_are_saved_and_parse_back(enabled: tuple[Path, dict, str]) -> None:
    from jumar.compiler import load_graph

    folder, _, _ = enabled
    stages = sorted((folder / "out" / "stages").rglob("*.graph"))
    assert len(stages) > 5
    assert load_graph(stages[0]).params[0].type.dims == (2, 3, 16, 16)


def test_the_package_runs_without_compiler_and_gives_what_onnxruntime_gives(enabled: tuple[Path, dict, str]) -> None:
    folder, _, _ = enabled
    x = np.random.default_rng(5).standard_normal((2, 3, 16, 16), dtype=np.float32)
    np.save(folder / "x.npy", x)
    done = jumar("run-package", "out", "--input", "x=x.npy", "--out", "results", "--time", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("y: f32[2, 5]")
    session = onnxruntime.InferenceSession(folder / "small.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(np.load(folder / "results" / "y.npy"), session.run(None, {"x": x})[0], rtol=1e-3, atol=1e-4)


def test_run_package_loads_base_device_and_runtime_alone(enabled: tuple[Path, dict, str]) -> None:
    folder, _, _ = enabled
    code = (
        "import sys\nfrom jumar.tools.cli import cli\ncli.main(['run-package', 'out'], standalone_mode=False)\n"
        "print(sorted({m.split('.')[1] for m in sys.modules if m.startswith('jumar.')}), 'llvmlite' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT / "src")}
    )
    assert done.stdout.splitlines()[-1] == "['base', 'device', 'runtime', 'tools', 'version'] False"


def test_run_package_says_which_input_is_wrong(enabled: tuple[Path, dict, str]) -> None:
    folder, _, _ = enabled
    np.save(folder / "bad.npy", np.zeros((1, 3, 8, 8), np.float32))
    done = jumar("run-package", "out", "-i", "x=bad.npy", cwd=folder)
    assert done.returncode == 2
    assert "inputs must be one of [x: f32[2, 3, 16, 16]], got [f32[1, 3, 8, 8]]" in done.stderr
    assert "hint: a package holds the sizes that it was compiled for; for these: jumar enable MODEL.onnx --input x=1,3,8,8" in done.stderr
    np.save(folder / "half.npy", np.zeros((2, 3, 16, 16), np.float16))
    assert (
        "hint: convert x: numpy.save(path, array.astype('float32'))" in jumar("run-package", "out", "-i", "x=half.npy", cwd=folder).stderr
    )
    done = jumar("run-package", "out", "-i", "z=bad.npy", cwd=folder)
    assert "--input: name must be one of x, got 'z'" in done.stderr


def test_a_model_in_pieces_is_told_as_that_and_gets_no_package(tmp_path: Path) -> None:
    net = Net("cut", seed=1)
    y = net.op("Relu", net.op("MatMul", net.input("x", (3, 4)), net.normal(4, 6, std=1.0)))
    places = net.op("Transpose", net.op("NonZero", y), perm=[1, 0])
    model = net.model({"y": net.op("Exp", net.op("GatherND", y, places))})
    (tmp_path / "cut.onnx").write_bytes(model.SerializeToString())
    done = jumar("enable", "cut.onnx", "--out", "out", "--json", "--runs", "3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["numerics"]["within"]
    assert report["memory"]["arenas"] == 2
    assert report["memory"]["total_nbytes"] >= 4 * (3 * 6 + 12), "both pieces are counted"
    assert report["speed"]["between_ms"] > 0
    assert any("cut into 2 native pieces" in w for w in report["warnings"])
    assert any("no package was written" in w for w in report["warnings"])
    run = jumar("run-package", "out", cwd=tmp_path)
    assert run.returncode == 2
    assert "run-package: out must hold model.jmr, got a folder without it" in run.stderr


def refused(folder: Path, *arguments: str) -> str:
    """The message of a run that must fail with exit code 2, say no traceback and leave nothing behind."""
    before = set(folder.rglob("*"))
    done = jumar("enable", *arguments, "--out", "out", cwd=folder)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert set(folder.rglob("*")) == before, "nothing may be left half-written"
    return done.stderr


def test_random_bytes_are_not_an_onnx_file(tmp_path: Path) -> None:
    (tmp_path / "noise.onnx").write_bytes(np.random.default_rng(0).bytes(5000))
    said = refused(tmp_path, "noise.onnx")
    assert said.startswith("ImportFault: [frontend] noise.onnx: file must be an ONNX model, got bytes that begin with ")
    assert "more: jumar explain file-not-onnx" in said


def test_a_truncated_model_is_named_as_that(tmp_path: Path) -> None:
    whole = small_network(tmp_path / "whole.onnx").read_bytes()
    (tmp_path / "cut.onnx").write_bytes(whole[: len(whole) // 2])
    said = refused(tmp_path, "cut.onnx")
    assert said.startswith(f"ImportFault: [frontend] cut.onnx: file must be complete, got {len(whole) // 2} bytes where a field needs ")
    assert "hint: fetch or export the file again" in said


def test_unknown_operators_are_all_listed_with_the_nearest(tmp_path: Path) -> None:
    unknown_operators(tmp_path / "unknown.onnx")
    said = refused(tmp_path, "unknown.onnx")
    assert said.startswith("ImportFault: [frontend] unknown.onnx: operators must be supported, got 2 that are not:")
    assert re.search(r"ai\.onnx Sofmax \(opset 17\) at second; did you mean Softmax", said)
    assert re.search(r"acme\.nn MyConv \(opset 1\) at third", said)


@pytest.mark.parametrize(
    ("arguments", "wording"),
    [
        (["small.onnx", "--input", "y=1,3,16,16"], "--input: name must be one of x, got 'y'"),
        (["small.onnx", "--input", "x=1,3,16"], "--input: x must be f32[batch, 3, 16, 16], got shape [1, 3, 16]"),
        (["small.onnx", "--input", "x=1,4,16,16"], "--input: x must be f32[batch, 3, 16, 16], got 4 for dimension 1"),
        (["small.onnx", "--input", "x=half.npy"], "--input: x must be f32, got f16[1, 3, 16, 16] from half.npy"),
        (["small.onnx", "--input", "x=none.npy"], "--input: none.npy must be a NumPy file (.npy) that can be read"),
        (["small.onnx", "--input", "x=2,3,16,16", "--dim", "batch=3"], "dimension batch must be one number, got 2 from x and 3 (given by --dim)"),
        (["small.onnx", "--dim", "bach=1"], "--dim: name must be one of batch, got 'bach'"),
        (["small.onnx", "--dim", "batch=0"], "--dim: must be NAME=NUMBER with a number of at least 1, got 'batch=0'"),
        (["small.onnx", "--input", "x"], "--input: must be NAME=FILE.npy or NAME=SHAPE, got 'x'"),
        (["small.onnx", "--dim", "batch=2", "--dim", "batch=3"], "--dim: batch must be given once, got 'batch=2' and 'batch=3'"),
        (["small.onnx", "--dim", "batch=99999999999"], "of memory, got "),
        (["small.onnx", "--picture", "x.png"], "enable: --picture must come with --example, got x.png alone"),
        (["missing.onnx"], "missing.onnx: file must exist and be readable"),
        ([], "enable: MODEL must be given, got none"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_said_in_one_sentence(tmp_path: Path, arguments: list[str], wording: str) -> None:
    small_network(tmp_path / "small.onnx")
    np.save(tmp_path / "half.npy", np.zeros((1, 3, 16, 16), np.float16))
    assert wording in refused(tmp_path, *arguments)


def test_a_wrong_cpu_is_an_error_and_no_abort(tmp_path: Path) -> None:
    done = jumar("enable", str(small_network(tmp_path / "small.onnx")), "--json", cwd=tmp_path, JUMAR_CPU="potato")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert (error["type"], error["code"]) == ("DeviceError", "setting-value")
    assert "got 'potato'" in error["what"]


def test_an_error_with_made_up_sizes_says_so() -> None:
    chosen = Chosen({}, (), (DimFact("n", 16, "not given: a small number"), DimFact("m", 2, "given by --dim")))
    with pytest.raises(ToolError) as caught, about_sizes(chosen):
        raise ToolError("x", hint="first")
    assert caught.value.hint == "first; these sizes were made up: n=16; try others with --dim NAME=NUMBER or --input NAME=SHAPE"


def test_a_model_of_constants_and_one_without_dimensions(tmp_path: Path) -> None:
    teller = Teller(quiet=True)
    sr = build("g (int64[3] x, int64 sr) => (int64[3] y) { y = Add(x, sr) }")
    (tmp_path / "sr.onnx").write_bytes(sr.SerializeToString())
    options = Options(tmp_path / "sr.onnx", tmp_path / "sr", (parse_input("sr=16000"),), runs=2)
    report = enable(options, teller)
    assert report.numerics is not None and report.numerics.within
    assert report.model.inputs[1].source == "16000, given by --input"
    text = build("g (string[2] s, float[2] x) => (string[2] y, float[2] z) { y = Identity(s) \n z = Relu(x) }")
    (tmp_path / "s.onnx").write_bytes(text.SerializeToString())
    np.save(tmp_path / "s.npy", np.array(["hello", "wörld"]))
    report = enable(Options(tmp_path / "s.onnx", tmp_path / "s", (parse_input(f"s={tmp_path / 's.npy'}"),), runs=2), teller)
    assert "no package was written: 1 output of the model is handed on in Python, outside native code" in report.warnings
    const = build("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Identity(w) }")
    (tmp_path / "c.onnx").write_bytes(const.SerializeToString())
    with setting(JUMAR_CACHE="0"):
        report = enable(Options(tmp_path / "c.onnx", tmp_path / "c", runs=2), teller)
    assert "no package was written: nothing is left to run, since every output is a constant or an input" in report.warnings
    assert report.compile is not None and report.compile.cached_s is None
    assert "from the cache" not in page(report).replace("<dt>From the cache</dt>", "").lower()


def test_a_folder_with_other_files_is_not_touched(tmp_path: Path) -> None:
    small_network(tmp_path / "small.onnx")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    assert "must be new, empty, or written by `jumar enable`, got a folder with other files" in refused(tmp_path, "small.onnx")


def hear_interrupts() -> None:
    """A shell starts what it puts into the background deaf to SIGINT, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_sigterm_leave_nothing_half_written(number: signal.Signals, code: int, tmp_path: Path) -> None:
    small_network(tmp_path / "small.onnx")
    command = [sys.executable, "-m", "jumar.tools", "enable", "small.onnx", "--out", "out", "--runs", "1000000"]
    environment = {"PYTHONPATH": str(ROOT / "src"), "HOME": str(tmp_path), "JUMAR_CACHE_DIR": str(tmp_path / "cache")}
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        preexec_fn=hear_interrupts,  # noqa: PLW1509
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("numerics"):
                break
        time.sleep(0.5)
        assert list(tmp_path.glob(".out*.part"))
        process.send_signal(number)
        rest = process.stdout.read()
        assert process.wait(60) == code
    assert "stopped: nothing was left half-written" in rest
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out*"))
