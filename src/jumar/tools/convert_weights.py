"""`jumar convert-weights IN OUT`: weights of PyTorch under MindSpore's names.

In: a `.pt`/`.pth` state dict or a `.safetensors` file; the network they are for, if given.  Out: a `.ckpt` or `.safetensors` file, and a report.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

import click

from jumar.base import ToolError
from jumar.frontend import wrap
from jumar.tools.alias import as_mindspore
from jumar.train import save_checkpoint
from jumar.train.convert import Line, TorchFile, matched, read_values, renamed, values


class _Given:
    """An array that is read already."""

    def __init__(self, array: Any) -> None:
        self.array, self.shape = array, array.shape

    def read(self) -> Any:
        return self.array


@click.command()
@click.argument("source", type=click.Path(exists=True, dir_okay=False))
@click.argument("target", type=click.Path(dir_okay=False))
@click.option("--net", metavar="MODULE:FACTORY", help="The network the weights are for; names and shapes are checked against it.")
@click.option("--all", "show_all", is_flag=True, help="List every tensor, not only what needs a look.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
def command(source: str, target: str, net: str | None, show_all: bool, as_json: bool) -> None:
    """Turn PyTorch weights (.pt, .pth, .safetensors) into a MindSpore checkpoint (.ckpt, .safetensors).

    Nothing in the file is run: its pickle is read by a reader that knows tensors only.
    """
    kind = os.path.splitext(target)[1][1:]
    if kind not in ("ckpt", "safetensors"):
        raise ToolError(f"convert-weights: OUT must end with .ckpt or .safetensors, got {target}", code="convert-weights")
    tensors: dict[str, Any]
    if source.endswith(".safetensors"):
        tensors = {n: _Given(v) for n, v in read_values(source, format="safetensors").items()}
    else:
        tensors = dict(TorchFile(source).tensors)
    missing: list[str] = []
    if net is None:
        lines = renamed(tensors)
    else:
        lines, missing = matched(tensors, list(_network(net).get_parameters()))
    arrays = values(tensors, lines)
    if not arrays:
        raise ToolError(
            f"convert-weights: a tensor must match, got none of {len(tensors)}", hint="is --net the right network?", code="convert-weights"
        )
    save_checkpoint({n: wrap(a) for n, a in arrays.items()}, target, format=kind)
    if as_json:
        rows = [{"from": x.source, "to": x.target, "shape": list(x.shape), "note": x.note} for x in lines.values()]
        click.echo(json.dumps({"out": target, "written": len(arrays), "missing": missing, "tensors": rows}, indent=1, ensure_ascii=False))
    else:
        _report(list(lines.values()), missing, len(arrays), target, show_all)


def _network(name: str) -> Any:
    module, _, factory = name.partition(":")
    if not module or not factory:
        raise ToolError(f"convert-weights: --net must be MODULE:FACTORY, got {name!r}", code="convert-weights")
    sys.path.insert(0, os.getcwd())
    as_mindspore()  # networks are MindSpore code
    try:
        make = getattr(importlib.import_module(module), factory)
    except (ImportError, AttributeError) as error:
        raise ToolError(f"convert-weights: --net must be importable, got {error}", code="convert-weights") from error
    return make()


def _report(lines: list[Line], missing: list[str], written: int, target: str, show_all: bool) -> None:
    shown = [x for x in lines if show_all or x.note]
    width = max((len(x.source) for x in shown), default=0)
    for x in shown:
        arrow = f"-> {x.target}" if x.target else "left out"
        click.echo(f"{x.source.ljust(width)}  {arrow}{f'   ({x.note})' if x.note else ''}")
    for name in missing:
        click.echo(f"{name}: no tensor for it")
    click.echo(f"{written} of {len(lines)} tensors written to {target}{f', {len(missing)} parameters without one' if missing else ''}")
