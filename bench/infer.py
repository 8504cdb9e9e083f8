"""How fast is a whole model on our runtime, against ONNX Runtime and OpenVINO?

Question: latency at batch as given, same threads, same process, in turns; ratio = our median / the best rival's, per turn.
Machine, versions and the last answer: bench/results/infer-*.md (each written by this script together with its .json).
Usage: python bench/infer.py [MODEL ...] [--threads 1,2] [--rounds 9] [--out bench/results/infer-NAME]
  MODEL: a file; a network of tests/models/zoo.py (resnet50 ...); ppocr_det, ppocr_cls, ppocr_rec, nudenet, minilm.  Default: the named ones.
  Files in the folder $ONNX_MODELS are found by name; NAME_in.npz beside a file holds its inputs.
Every turn sleeps first, so that a rival's spinning threads are gone, then warms up with one run.  Outputs are checked in the same process.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

NAMED = (
    "resnet50", "mobilenet_v3_large", "yolov5s", "unet", "vit_b_16", "bert_base", "gpt2_prefill", "gpt2_decode", "mlp",
    "ppocr_det", "ppocr_cls", "ppocr_rec", "nudenet", "minilm",
)  # fmt: skip
Arrays = dict[str, np.ndarray]
Run = Callable[[], list[np.ndarray]]


@dataclass
class Row:
    """One model at one number of threads."""

    model: str
    threads: int
    median_ms: dict[str, float] = field(default_factory=dict)
    spread_ms: dict[str, tuple[float, float]] = field(default_factory=dict)  # p10, p90
    ratio: float = 0.0
    ratio_spread: tuple[float, float] = (0.0, 0.0)  # lowest and highest of the rounds
    best: str = ""
    max_error: float = 0.0
    correct: bool = False
    note: str = ""


def find_model(name: str, folder: Path) -> tuple[Path, Arrays | None]:
    """The file of a model, and its inputs where they come with it."""
    kept = os.environ.get("ONNX_MODELS", "")
    for path in (Path(name), Path(kept) / f"{name}.onnx", Path(kept) / f"{name}_b1.onnx") if kept else (Path(name),):
        if path.suffix == ".onnx" and path.is_file():
            inputs = path.with_name(f"{path.stem}_in.npz")
            return path, dict(np.load(inputs)) if inputs.is_file() else None
    rng = np.random.default_rng(0)
    package = {
        "ppocr_det": "rapidocr_onnxruntime",
        "ppocr_cls": "rapidocr_onnxruntime",
        "ppocr_rec": "rapidocr_onnxruntime",
        "nudenet": "nudenet",
    }
    shipped = {
        "ppocr_det": ("models/ch_PP-OCRv4_det_infer.onnx", (1, 3, 736, 1280)),
        "ppocr_cls": ("models/ch_ppocr_mobile_v2.0_cls_infer.onnx", (6, 3, 48, 192)),
        "ppocr_rec": ("models/ch_PP-OCRv4_rec_infer.onnx", (6, 3, 48, 320)),
        "nudenet": ("320n.onnx", (1, 3, 320, 320)),
    }
    if name in shipped:
        spec = importlib.util.find_spec(package[name])
        if spec is None or spec.origin is None:
            raise FileNotFoundError(f"{name}: the package {package[name]} is not installed")
        file, shape = shipped[name]
        path = Path(spec.origin).parent / file
        import onnx

        first = onnx.load(path, load_external_data=False).graph.input[0].name
        return path, {first: rng.random(shape, dtype=np.float32)}
    from tests.models import minilm, zoo

    model, arrays = minilm.build() if name == "minilm" else zoo.build(name)
    path = folder / f"{name}.onnx"
    path.write_bytes(model.SerializeToString())
    return path, arrays


def ours(path: Path, inputs: Arrays, threads: int) -> Run:
    import jumar

    model = jumar.load(path, target="cpu", threads=threads)
    return lambda: model.run(None, inputs)


def onnxruntime(path: Path, inputs: Arrays, threads: int) -> Run:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)


def openvino(path: Path, inputs: Arrays, threads: int) -> Run:
    import openvino as ov

    core = ov.Core()
    model = core.read_model(str(path))
    shapes = {port.any_name: list(inputs[port.any_name].shape) for port in model.inputs}
    model.reshape(shapes)
    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = core.compile_model(model, "CPU", settings)
    request = compiled.create_infer_request()

    def run() -> list[np.ndarray]:
        request.infer(inputs, share_inputs=True)
        return [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]

    return run


ENGINES = {"jumar": ours, "onnxruntime": onnxruntime, "openvino": openvino}


def measure(name: str, path: Path, inputs: Arrays, threads: int, rounds: int, turn_s: float) -> Row:
    """Builds all engines, checks that they agree, and times them in turns."""
    row = Row(name, threads)
    runs: dict[str, Run] = {}
    for engine, make in ENGINES.items():
        try:
            runs[engine] = make(path, inputs, threads)
            runs[engine]()
        except ModuleNotFoundError:
            row.note += f"{engine} is not installed; "
        except Exception as error:  # a rival that fails is noted, and the others measured
            runs.pop(engine, None)
            row.note += f"{engine}: {type(error).__name__}: {str(error).splitlines()[0][:160]}; "
    if "onnxruntime" in runs and "jumar" in runs:
        wanted, got = runs["onnxruntime"](), runs["jumar"]()
        pairs = [(np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in zip(wanted, got, strict=True)]
        row.max_error = max(float(np.abs(a - b).max(initial=0.0)) for a, b in pairs)
        row.correct = all(np.allclose(b, a, rtol=1e-3, atol=1e-4) for a, b in pairs)
    times: dict[str, list[list[float]]] = {engine: [] for engine in runs}
    for at in range(rounds):
        order = list(runs)
        order = order[at % len(order) :] + order[: at % len(order)] if order else []
        for engine in order:
            times[engine].append(_turn(runs[engine], turn_s))
    for engine, turns in times.items():
        flat = [t for turn in turns for t in turn]
        row.median_ms[engine] = float(np.median(flat))
        row.spread_ms[engine] = (float(np.percentile(flat, 10)), float(np.percentile(flat, 90)))
    rivals = {e: t for e, t in row.median_ms.items() if e != "jumar"}
    if rivals and "jumar" in runs:
        row.best = min(rivals, key=lambda e: rivals[e])
        each = [float(np.median(mine) / min(np.median(times[e][i]) for e in rivals)) for i, mine in enumerate(times["jumar"])]
        row.ratio, row.ratio_spread = float(np.median(each)), (min(each), max(each))
    return row


def _turn(run: Run, seconds: float) -> list[float]:
    """Times in ms of as many runs as fit, at least three."""
    time.sleep(0.02)
    run()
    found: list[float] = []
    end = time.perf_counter() + seconds
    while len(found) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        found.append((time.perf_counter() - start) * 1e3)
    return found


def machine() -> dict[str, Any]:
    """What it was measured on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    cpu = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())
    versions = {}
    for name in ("numpy", "llvmlite", "onnxruntime", "openvino"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "absent"
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "load_before": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
        **versions,
    }


def markdown(rows: list[Row], facts: dict[str, Any]) -> str:
    """The table, with the machine on top."""
    engines = [e for e in ENGINES if any(e in r.median_ms for r in rows)]
    lines = [
        "# Whole models: our runtime, ONNX Runtime, OpenVINO",
        "",
        f"{facts['cpu']}, {facts['cores']} cores, load {facts['load_before']:.2f} at the start; {facts['system']}; Python {facts['python']}; {facts['date']}.",
        f"onnxruntime {facts['onnxruntime']}, openvino {facts['openvino']}, llvmlite {facts['llvmlite']}, numpy {facts['numpy']}.",
        "Median ms of a run (p10 to p90); ratio = ours / the best rival, median over the rounds (lowest to highest): below 1 we are faster.",
        "",
        "| model | threads | " + " | ".join(engines) + " | ratio | best rival | outputs | note |",
        "|---|---|" + "---|" * len(engines) + "---|---|---|---|",
    ]
    for r in rows:
        cells = [f"{r.median_ms[e]:.3g} ({r.spread_ms[e][0]:.3g} to {r.spread_ms[e][1]:.3g})" if e in r.median_ms else "" for e in engines]
        ratio = f"**{r.ratio:.2f}** ({r.ratio_spread[0]:.2f} to {r.ratio_spread[1]:.2f})" if r.ratio else ""
        verdict = f"{'agree' if r.correct else 'differ'}, {r.max_error:.1g}" if "jumar" in r.median_ms else ""
        lines.append(f"| {r.model} | {r.threads} | {' | '.join(cells)} | {ratio} | {r.best} | {verdict} | {r.note} |")
    slower = [r for r in rows if r.ratio]
    if slower:
        mean = float(np.exp(np.mean([np.log(r.ratio) for r in slower])))
        worst = max(slower, key=lambda r: r.ratio)
        lines += ["", f"Geometric mean of the ratios {mean:.2f}; the worst is {worst.ratio:.2f} ({worst.model}, {worst.threads} threads)."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=NAMED)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--turn", type=float, default=0.25, help="seconds of one turn")
    parser.add_argument("--out", type=Path, help="writes OUT.json and OUT.md")
    arguments = parser.parse_args()
    facts, rows = machine(), []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.models or NAMED:
            try:
                path, inputs = find_model(name, Path(folder))
            except (FileNotFoundError, KeyError) as error:
                print(f"{name}: left out: {error}", flush=True)
                continue
            assert inputs is not None, f"{name}: a file needs its inputs in {path.stem}_in.npz"
            for threads in map(int, arguments.threads.split(",")):
                row = measure(path.stem if "/" in name else name, path, inputs, threads, arguments.rounds, arguments.turn)
                rows.append(row)
                shown = "  ".join(f"{e} {t:.3g}" for e, t in row.median_ms.items())
                print(
                    f"{row.model:20} {threads} threads  {shown}  ratio {row.ratio:.2f}  error {row.max_error:.1g}  {row.note}", flush=True
                )
                gc.collect()
    text = markdown(rows, facts)
    print("\n" + text)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.with_suffix(".json").write_text(json.dumps({"machine": facts, "rows": [asdict(r) for r in rows]}, indent=1) + "\n")
        arguments.out.with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
