"""The command `jumar enable`: options in, the job, and what goes to stdout.

In: arguments.  Out: `Options` for job.py; with --json one JSON document on stdout and everything else on stderr.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from jumar.base import ToolError
from jumar.device.npu import LAUNCH_MODES
from jumar.tools.enable.console import Teller
from jumar.tools.enable.example import EXAMPLES
from jumar.tools.enable.inputs import once, parse_dim, parse_input
from jumar.tools.enable.job import Options, enable
from jumar.tools.enable.settings import check_settings
from jumar.tools.enable.twin_options import complete_precision, complete_socs, parse_twin
from jumar.tools.soc import complete_soc


@click.command()
@click.argument("model", required=False, type=click.Path(path_type=Path))
@click.option(
    "--input",
    "-i",
    "inputs",
    multiple=True,
    metavar="NAME=FILE.npy|SHAPE",
    help="Values of an input, or its shape: x=photo.npy, x=1,3,224,224.",
)
@click.option("--dim", "-d", "dims", multiple=True, metavar="NAME=NUMBER", help="Size of a free dimension: batch=1.")
@click.option("--out", "-o", type=click.Path(path_type=Path), help="Folder for report, stages and package.  [default: jumar-out/MODEL]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout; progress goes to stderr.")
@click.option("--threads", type=click.IntRange(0), default=0, help="Threads; 0 means the cores that this process may use.")
@click.option("--runs", type=click.IntRange(1), default=30, show_default=True, help="Runs that are timed.")
@click.option("--no-numerics", is_flag=True, help="Leave out the comparison with the reference, which runs in NumPy.")
@click.option(
    "--soc",
    "socs",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_soc,
    help="What would this NPU do with it? Ascend910B4, 310P3 ...; may be given several times.",
)
@click.option("--compare", metavar="NAME,NAME", default="", shell_complete=complete_socs, help="With --soc: more NPUs to compare with.")
@click.option(
    "--precision",
    metavar="MODE[,SWITCH]",
    shell_complete=complete_precision,
    help="With --soc: force_fp16 (ATC's default), allow_mix_precision, must_keep_origin_dtype,hf32=on, O2 ...",
)
@click.option(
    "--mixlist", type=click.Path(path_type=Path), help="With --soc: black, white and gray operators of mixed precision (ATC's JSON)."
)
@click.option("--mode", type=click.Choice(LAUNCH_MODES), help="With --soc: how kernels are launched.  [default: sunk]")
@click.option("--strict", is_flag=True, help="With --soc: an operator that the chip lacks, or a model that does not fit, is an error.")
@click.option("--fusion-switch", type=click.Path(path_type=Path), help="With --soc: fusion rules on and off (ATC's fusion_switch.cfg).")
@click.option("--autofuse", is_flag=True, help="With --soc: CANN's AutoFuse is on.")
@click.option(
    "--numerics", is_flag=True, help="With --soc: compute the chip's arithmetic here, and name the nodes that lose accuracy or overflow."
)
@click.option(
    "--train",
    metavar="OPTIMIZER[,O2,...]",
    default="",
    help="With --soc: plan the memory of a training step, too: adamw, momentum,O2,accumulate=4 ...",
)
@click.option("--twin-only", is_flag=True, help="With --soc: forecast only; nothing is compiled, run or measured here.")
@click.option("--example", type=click.Choice(sorted(EXAMPLES)), help="Take a bundled example in place of MODEL.")
@click.option("--picture", type=click.Path(path_type=Path), help="With --example ocr: read this picture.")
def command(
    model: Path | None,
    inputs: tuple[str, ...],
    dims: tuple[str, ...],
    out: Path | None,
    as_json: bool,
    threads: int,
    runs: int,
    no_numerics: bool,
    socs: tuple[str, ...],
    compare: str,
    precision: str | None,
    mixlist: Path | None,
    mode: str | None,
    strict: bool,
    fusion_switch: Path | None,
    numerics: bool,
    train: str,
    autofuse: bool,
    twin_only: bool,
    example: str | None,
    picture: Path | None,
) -> None:
    """Take MODEL (an ONNX file) through every layer: import, graph engine, operators, kernels, memory plan, runtime; verify it against
    a reference, time it, and write a report that explains each layer. With --soc the report also says what an Ascend NPU would do with it."""
    teller = Teller(quiet=as_json)
    if example and model:
        raise ToolError(f"enable: either MODEL or --example must be given, got both: {model} and {example}", code="enable-model")
    if picture and not example:
        raise ToolError(f"enable: --picture must come with --example, got {picture} alone", hint="--example ocr", code="enable-model")
    twin = parse_twin(socs, compare, precision, mixlist, mode, strict, fusion_switch, numerics, twin_only, train, autofuse)
    settings = check_settings()
    if example:
        with teller.running():
            document = EXAMPLES[example](out or Path("jumar-out") / example, picture, teller, threads, runs, not no_numerics, twin)
    else:
        if model is None:
            raise ToolError(
                "enable: MODEL must be given, got none", hint="jumar enable model.onnx, or jumar enable --example ocr", code="enable-model"
            )
        options = Options(
            model,
            out or Path("jumar-out") / (model.stem or "model"),
            tuple(map(parse_input, once("--input", inputs))),
            tuple(map(parse_dim, once("--dim", dims))),
            threads,
            runs,
            not no_numerics,
            notes=settings,
            twin=twin,
        )
        with teller.running():
            document = enable(options, teller).as_json()
    if as_json:
        json.dump(document, sys.stdout, indent=1, ensure_ascii=False)
        sys.stdout.write("\n")
