"""How near is the twin's time for a whole model to what people measured on the card?

Question: predicted / measured, a row of published measurements each: the geometric mean, and the share within a factor 1.6.
The last answer: bench/results/twin-models.json and docs/twin/models.md, which docs/generate.py writes from it; misses are in the table.
Usage: python bench/twin_models.py [--data ../shared/data] [--models FOLDER] [--only TEXT ...] [--list] [--json] [--out bench/results/twin-models.json]
  --models: where the networks' ONNX files are kept (about 9 GB; bench/twin_networks.py writes those that are missing, which takes PyTorch,
    torchvision, timm and transformers).  --only: rows whose id or model has that text.  --groups: of those below.  --append: keeps the
    rows of OUT that are not forecast now.  --list: what would be compared, and why the rest is not.

Which rows are compared was decided before the first ratio was looked at, and is not changed by ratios:
  inference: a row of 310P3 whose latency is batch / throughput, measured by ais_bench without data loading, of a model that its row and its
    repository name (ModelZoo-PyTorch, the folder in the row's source), with an input size that the row or that folder's README or export script
    writes down.  Where a README offers several sizes and the row does not say which, the input is unknown, and the row is listed apart.
  int8: the same, but the README quantises the model before it is converted.   dynamic: models rewritten to leave out padding (their time
    depends on the data), listed apart and not compared.
  training: a step of a graph that is loaded into the device whole, so that the host takes no part ("device-bound" in the table).
  kernels: the sum of kernel times of a profiled step, against the sum of ours.
  bound: a training step that includes data loading and the exchange of gradients: our time of the device alone must be below it.
Rows that the table itself calls host-bound, weak or inconsistent are not compared.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import statistics
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import twin_networks
import twin_training

ROOT = Path(__file__).resolve().parents[1]

WITHIN = 1.6
COMPARED = ("inference", "int8", "training", "kernels", "bound")


@dataclass(frozen=True)
class Row:
    """One measurement.   time_ms: of one batch, or of one step."""

    id: str
    model: str
    chip: str
    batch: int
    time_ms: float
    seq: int
    usable_for: str
    source: str


@dataclass(frozen=True)
class Case:
    """Which network a model of the table is.   seq: tokens where the row has none; source: where its size is written; group: of COMPARED.

    optimizer, precision: of a training step."""

    network: str
    source: str
    seq: int = 0
    group: str = "inference"
    note: str = ""
    optimizer: str = ""
    precision: str = "O2"


IMAGENET = "torchvision's network, 224x224 in the export script"
CASES: dict[str, Case] = {
    "AlexNet": Case("alexnet", "README: torchvision, 3x224x224"),
    "DBNet_MobileNetV3": Case(
        "dbnet_mobilenet_v3", "README: 3x736x1280, PaddleOCR det_mv3_db", note="the conversion of the uint8 image (AIPP) is left out"
    ),
    "Densenet121_Pytorch_Infer": Case("densenet121", IMAGENET),
    "InceptionV3_for_Pytorch": Case("inception_v3", "README: torchvision, 3x299x299"),
    "MobileNetV2_for_Pytorch": Case("mobilenet_v2", IMAGENET),
    "MobileNetV3_for_Pytorch": Case("mobilenet_v3_small", "README: mbv3_small, ImageNet", note="as torchvision has it"),
    "MobileNetV3_large_100": Case("mobilenetv3_large_100", "README: 3x224x224"),
    "Nested_UNet": Case("nested_unet", "README: 3x96x96, nearest upsampling"),
    "ResNeXt50": Case("resnext50_32x4d", IMAGENET),
    "Resnet101_Pytorch_Infer": Case("resnet101", IMAGENET),
    "Resnet18_for_PyTorch": Case("resnet18", IMAGENET),
    "Rosetta_MobileNetV3": Case("rosetta_mobilenet_v3", "README: 3x32x100"),
    "Rosetta_Resnet34_vd": Case("rosetta_resnet34_vd", "README: 3x32x100"),
    "SSD-MobileNetV2": Case("ssd_mobilenet_v2", "export script: 3x300x300"),
    "Shufflenetv2_for_Pytorch": Case("shufflenet_v2_x1_0", "export script: torchvision x1_0, 3x224x224"),
    "SwinTransformer_for_Pytorch": Case("swin_base_patch4_window12_384", "README: swin_base_patch4_window12_384"),
    "ViT_base / ViT_base_patch16_384": Case("vit_base_patch16_384", "the row"),
    "ViT_base / ViT_base_patch32_224": Case("vit_base_patch32_224", "the row"),
    "ViT_base / ViT_base_patch32_384": Case("vit_base_patch32_384", "the row"),
    "Wide_ResNet50_2_for_Pytorch": Case("wide_resnet50_2", IMAGENET),
    "Wide_ResNet101_2": Case("wide_resnet101_2", IMAGENET),
    "YoloX_Tiny_for_Pytorch": Case("yolox_tiny", "README: 3x640x640", note="without the suppression of boxes (BatchNMS)"),
    "YoloXs_for_Pytorch": Case("yolox_s", "README: 3x640x640"),
    "wav2vec2": Case("wav2vec2_base", "README: ATC with 100000 samples"),
    "Bert_Base_Chinese_for_Pytorch / Bert-Base-Chinese": Case("bert_chinese_mask", "README: seq 384, masked words with argmax", 384),
    "sentiment_classification / bert_sentiment": Case("bert_chinese_class", "README: seq 256", 256),
    "sequence_labeling / Bert-Base-Chinese": Case("bert_chinese_tokens", "README: seq 256", 256),
    "Bert_Base_Uncased_for_Pytorch": Case("bert_base_span", "ATC script: seq 512", 512),
    "Bert_Uncased_Huggingface BERT-Base static": Case("bert_base_span", "the row"),
    "Bert_Uncased_Huggingface BERT-Large static": Case("bert_large_span", "the row"),
    "bert_large_NER": Case("bert_large_tokens", "README: seq 512", 512),
    "albert": Case("albert_base_class", "the row; README: albert_base_v2"),
    "roberta": Case("roberta_base_class", "README: seq 70", 70),
    "roberta / 静态": Case("roberta_base_class", "the row"),
    "Resnet50_mlperf": Case("resnet50_int8", IMAGENET, group="int8", note="README quantises (AMCT)"),
    "VGG16_SSD_for_PyTorch": Case("ssd_vgg16_int8", "README: 3x300x300", group="int8", note="README quantises (AMCT)"),
}
# MindSpore's scripts for both: ResNet-50 at O2 with keep_batchnorm_fp32=False, BERT with compute_type float16, which is O3 here
SUNK = Case("resnet50", "the row: v1.5, 224x224", group="training", optimizer="momentum", precision="O3")
LARGE = Case("bert_large_pretrain", "the row; 20 masked words", 128, "training", "the optimiser is taken as Adam", "adam", "O3")
STEPS: dict[str, Case] = {  # training, by row
    "E594": SUNK,
    "E595": SUNK,
    "E597": LARGE,
    "E598": LARGE,
    "E599": Case("resnet50", "the row", group="bound", optimizer="momentum", precision="O3"),
    "E608": Case(
        "alexnet",
        "the row: torchvision, 224x224",
        group="kernels",
        note="without dropout; SGD with momentum",
        optimizer="momentum",
        precision="must_keep_origin_dtype",
    ),
}
VISION = {  # mindcv's names whose networks torchvision or timm has: steps with data loading and exchange of gradients, an upper bound
    "convnext_tiny": "convnext_tiny", "efficientnet_b0": "efficientnet_b0", "googlenet": "googlenet", "inception_v3": "inception_v3",
    "mobilenet_v3_small_100": "mobilenet_v3_small", "mobilenet_v3_large_100": "mobilenetv3_large_100", "res2net50": "res2net50_26w_4s",
    "repvgg_a0": "repvgg_a0", "resnet50": "resnet50", "resnetv2_50": "resnetv2_50", "resnext50_32x4d": "resnext50_32x4d",
    "shufflenet_v2_x0_5": "shufflenet_v2_x0_5", "squeezenet1_0": "squeezenet1_0", "vgg13": "vgg13", "vgg19": "vgg19",
    "swin_tiny": "swin_tiny_patch4_window7_224", "mnasnet_075": "mnasnet_075", "poolformer_s12": "poolformer_s12",
    "visformer_tiny": "visformer_tiny",
}  # fmt: skip
CHIPS = {"910B": "910B2"}  # the table's names that are a family: the card of the Atlas 800T A2 and 900 A2
APART = {
    "Bert_Base_Cased_SST2": "input unknown: README compiles for 64 and 128 tokens and does not say which is timed",
    "Bert_Uncased_Huggingface BERT-Base dynamic-shape dataset run": "dynamic: padding left out by a library of transformers; depends on the data",
    "Bert_Uncased_Huggingface BERT-Large dynamic-shape dataset run": "dynamic: padding left out by a library of transformers; depends on the data",
    "roberta / 动态": "dynamic: padding left out by a library of transformers; depends on the data",
    "Conformer_Ti": "not built: a network of its own repository",
    "RARE_MobileNetV3": "not built: rectifies by a thin-plate spline and decodes in a loop",
    "RARE_Resnet34_vd": "not built: rectifies by a thin-plate spline and decodes in a loop",
    "Starnet_Resnet34": "not built: rectifies by a thin-plate spline and has recurrent layers",
    "StarNet_MobileNetV3": "not built: rectifies by a thin-plate spline and has recurrent layers",
    "EAST_MobileNetV3": "not built",
    "PSE_MobileNetV3": "not built",
    "3D_Nested_Unet": "not built: nnU-Net's three-dimensional UNet++",
    "Retinanet_Resnet18": "not built: README quantises, and suppression of boxes is part of the file",
    "YoloF_for_Pytorch": "input unknown: README quantises and gives no size",
}
UNKNOWN_ROWS = dict.fromkeys(
    ("E208", "E209", "E211"), "input unknown: the folder has several Swin variants, and the row does not say which"
)


@dataclass
class Answer:
    """A row with what the twin says.   bound: what holds the step back; parts: share of the time by what limits kernels."""

    id: str
    model: str
    network: str
    chip: str
    group: str
    batch: int
    seq: int
    measured_ms: float
    predicted_ms: float
    low_ms: float
    high_ms: float
    ratio: float
    bound: str
    kernels: int
    parts: dict[str, float] = field(default_factory=dict)
    source: str = ""
    note: str = ""


def rows(path: Path) -> list[Row]:
    """The table's rows that have a time of one batch or step."""
    with path.open(encoding="utf-8", newline="") as file:
        return [row for line in csv.DictReader(file) if (row := _row(line)) is not None]


def _row(line: Mapping[str, str]) -> Row | None:
    batch, value = line["batch_per_device"], float(line["value"] or "nan")
    per_device = float(line["per_device_value"] or "nan")
    if not batch.isdigit() or not value > 0:
        return None
    if line["unit"] == "ms/step":
        time_ms = value
    elif line["unit"] == "us":
        time_ms = value / 1000
    elif "/s" in line["unit"] and per_device > 0 and "token" not in line["unit"]:
        time_ms = int(batch) / per_device * 1000
    else:
        return None
    words = line["input"].split()
    seq = int(words[words.index("seq") + 1]) if "seq" in words else 0
    return Row(line["id"], line["model"], line["soc_family"], int(batch), time_ms, seq, line["usable_for"], line["source"])


def sorted_out(row: Row) -> tuple[str, Case | None, str]:
    """The group of a row, which network it is, and why not where it is none."""
    if row.usable_for.startswith("whole-model inference latency"):
        if row.id in UNKNOWN_ROWS:
            return "apart", None, UNKNOWN_ROWS[row.id]
        case = CASES.get(row.model)
        if case is None:
            return "apart", None, APART.get(row.model, "not built")
        if not (case.seq or row.seq) and twin_networks.NETWORKS[case.network].seq:
            return "apart", None, "input unknown: no number of tokens"
        return case.group, case, ""
    if row.id in STEPS:
        return STEPS[row.id].group, STEPS[row.id], ""
    if row.usable_for.endswith("upper bound on time"):
        network = VISION.get(row.model)
        if network is None:
            return "apart", None, "not built: an upper bound only"
        return "bound", Case(network, "the row", group="bound", optimizer="momentum"), ""
    return "apart", None, f"not compared: {row.usable_for}"


class Forecasts:
    """The twin's answers, one network at a time: the file is read once for all its batches."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, ("", False)
        self.model: Any = None

    def forecast(self, row: Row, case: Case) -> Any:
        """The forecast of a row's network, at its batch, on its chip."""
        from jumar.compiler.passes.precision import Precision
        from jumar.compiler.twin.forecast import TwinOptions, forecast
        from jumar.device.npu import find_chip
        from jumar.frontend.model import load

        steps = bool(case.optimizer)
        if self.name != (case.network, steps):
            self.name = (case.network, steps)
            self.model = load(str(twin_networks.write(case.network, self.folder, training=steps)))
        dims = {"batch": row.batch} | ({"seq": row.seq or case.seq} if twin_networks.NETWORKS[case.network].seq else {})
        graph, chip = self.model.graph(dims=dims), find_chip(CHIPS.get(row.chip, row.chip))
        if not case.optimizer:
            return forecast(graph, chip, TwinOptions())
        step = twin_training.training_step(graph, case.optimizer)
        mode = "eager" if case.group == "kernels" else "sunk"
        return forecast(step, chip, TwinOptions(precision=Precision(mode=case.precision), mode=mode, training=True))

    def of(self, row: Row, case: Case) -> Answer:
        """The row with what the twin says."""
        found = self.forecast(row, case)
        line = found.timeline
        total = sum(line.by_bottleneck.values()) or 1.0
        parts = {name: round(us / total, 3) for name, us in line.by_bottleneck.items()}
        time_ms, low_ms, high_ms = (us / 1000 for us in (line.latency_us, line.low_us, line.high_us))
        if case.group == "kernels":
            scale = total / line.latency_us
            time_ms, low_ms, high_ms = total / 1000, low_ms * scale, high_ms * scale
        elif case.optimizer:
            time_ms, low_ms, high_ms = (1000 / steps for steps in line.throughput())
            low_ms, high_ms = sorted((low_ms, high_ms))
        return Answer(
            row.id, row.model, case.network, found.chip.name, case.group, row.batch, row.seq or case.seq, row.time_ms, time_ms, low_ms, high_ms,
            time_ms / row.time_ms, line.bound, len(line.tasks), parts, case.source, case.note,
        )  # fmt: skip


def geometric_mean(ratios: Iterable[float]) -> float:
    logs = [math.log(r) for r in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def statistics_of(answers: Sequence[Answer]) -> dict[str, Any]:
    """By row, and by model (the median ratio of its rows), so that a model with many rows counts once."""
    ratios = [a.ratio for a in answers]
    models: dict[str, list[float]] = {}
    for a in answers:
        models.setdefault(a.model, []).append(a.ratio)
    medians = [statistics.median(found) for found in models.values()]
    inside = [a.low_ms <= a.measured_ms <= a.high_ms for a in answers]
    return {
        "rows": len(ratios),
        "geometric_mean": geometric_mean(ratios),
        f"within_{WITHIN}": _share(ratios),
        "models": len(medians),
        "geometric_mean_by_model": geometric_mean(medians),
        f"within_{WITHIN}_by_model": _share(medians),
        "measured_within_interval": sum(inside) / len(inside) if inside else math.nan,
    }


def _share(ratios: Sequence[float]) -> float:
    return sum(1 / WITHIN <= r <= WITHIN for r in ratios) / len(ratios) if ratios else math.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--models", type=Path, default=Path("twin-models"))
    parser.add_argument("--only", action="append", default=[], metavar="TEXT")
    parser.add_argument("--groups", default=",".join(COMPARED))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--append", action="store_true", help="keeps the rows of OUT that are not forecast now")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    path = args.data / "e2e_times.csv"
    if not path.is_file():
        parser.error(f"--data must be a folder with e2e_times.csv, got {args.data}")
    wanted, apart = [], {}
    for row in rows(path):
        group, case, why = sorted_out(row)
        if args.only and not any(text.lower() in f"{row.id} {row.model}".lower() for text in args.only):
            continue
        if case is not None and group in args.groups.split(","):
            wanted.append((row, case))
        else:
            apart[row.id] = {"model": row.model, "chip": row.chip, "why": why or f"group {group} is left out"}
    if args.list:
        for row, case in wanted:
            print(
                f"{row.id:6}{case.group:11}{row.model[:44]:46}{case.network:32}b{row.batch:<4}{row.seq or case.seq or '':<5}{case.source}"
            )
        for key, found in apart.items():
            print(f"{key:6}{'-':11}{found['model'][:44]:46}{found['why']}")
        return
    answers, failed = run(wanted, args.models, quiet=args.json)
    if args.append and args.out and args.out.is_file():
        now = {a.id for a in answers} | set(failed)
        answers += [Answer(**row) for row in json.loads(args.out.read_text(encoding="utf-8"))["rows"] if row["id"] not in now]
        answers.sort(key=lambda a: int(a.id[1:]))
        apart = {row: found for row, found in apart.items() if row not in {a.id for a in answers}}
    report = {
        "statistics": {g: statistics_of([a for a in answers if a.group == g]) for g in COMPARED if any(a.group == g for a in answers)},
        "rows": [asdict(a) for a in answers],
        "failed": failed,
        "apart": apart,
    }
    if args.out:
        args.out.write_text(json.dumps(rounded(report), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if args.json:
        print(json.dumps(rounded(report), ensure_ascii=False))
        return
    for group, found in report["statistics"].items():
        print(group, " ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in found.items()))
    for key, why in failed.items():
        print(f"{key}: {why}")


def run(wanted: Sequence[tuple[Row, Case]], folder: Path, *, quiet: bool = False) -> tuple[list[Answer], dict[str, str]]:
    """The answers in the table's order, and what failed."""
    forecasts, found, failed = Forecasts(folder), {}, {}
    for row, case in sorted(wanted, key=lambda pair: pair[1].network):
        began = time.perf_counter()
        try:
            answer = forecasts.of(row, case)
        except Exception as error:
            failed[row.id] = f"{row.model} ({case.network}): {type(error).__name__}: {str(error).splitlines()[0][:200]}"
            if not quiet:
                print(f"{row.id:6}{row.model[:40]:42}{failed[row.id]}", flush=True)
            continue
        found[row.id] = answer
        if not quiet:
            print(line_of(answer), f"{time.perf_counter() - began:.1f} s", flush=True)
    return [found[row.id] for row, _ in wanted if row.id in found], failed


def line_of(a: Answer) -> str:
    where = f"b{a.batch}" + (f" s{a.seq}" if a.seq else "")
    interval = f"[{a.low_ms:.3g}, {a.high_ms:.3g}]"
    return f"{a.id:6}{a.model[:40]:42}{where:11}{a.chip:7}{a.measured_ms:9.3f}{a.predicted_ms:9.3f} {interval:18}{a.ratio:6.2f} {a.bound:16}{a.kernels:5}"


def rounded(value: Any) -> Any:
    """Four figures of every float: more would say more than the forecast knows."""
    if isinstance(value, float):
        return float(f"{value:.4g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list | tuple) else value


if __name__ == "__main__":
    main()
