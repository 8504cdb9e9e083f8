"""The options of `jumar enable` that speak of NPUs: `--soc`, `--compare`, `--precision` and their like, and what contradicts what.

In: options as typed.  Out: `TwinRequest`; completions for the shell.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from jumar.base import ToolError
from jumar.compiler import PRECISION_MODES, PRECISION_SYNONYMS, Training, TwinOptions, check_precision, parse_precision, read_switches
from jumar.device.npu import find_chip
from jumar.tools.enable.twin import TwinRequest
from jumar.tools.soc import complete_soc

TRAINING_SIZES = ("recompute", "accumulate", "data", "tensor", "shard")


def parse_twin(
    socs: tuple[str, ...],
    compare: str,
    precision: str | None,
    mixlist: Path | None,
    mode: str | None,
    strict: bool,
    fusion_switch: Path | None,
    numerics: bool,
    twin_only: bool,
    train: str = "",
    autofuse: bool = False,
) -> TwinRequest | None:
    """What is asked of the twin; None without --soc, and then no other option of it may be given."""
    if not socs:
        given = {
            "--compare": compare, "--precision": precision, "--mixlist": mixlist, "--mode": mode, "--strict": strict, "--fusion-switch": fusion_switch,
            "--numerics": numerics, "--twin-only": twin_only, "--train": train, "--autofuse": autofuse,
        }  # fmt: skip
        for name, value in given.items():
            if value:
                shown = name if value is True else f"{name} {value}"
                hint = "for example --soc Ascend910B4; `jumar soc list` lists the chips"
                raise ToolError(f"enable: {shown} must come with --soc, got it alone", hint=hint, code="twin-options")
        return None
    names = [*socs, *(n for n in compare.split(",") if n.strip())]
    found = list({chip.name: chip for chip in map(find_chip, names)}.values())
    options = TwinOptions()
    options = replace(options, strict=strict, mode=mode or options.mode, autofuse=autofuse)
    if precision or mixlist:
        said = precision or "allow_mix_precision"  # a list of operators means mixed precision
        options = replace(options, precision=parse_precision(f"{said},mixlist={mixlist}" if mixlist else said))
        for chip in found:
            check_precision(options.precision, chip)
    if fusion_switch:
        options = replace(options, switches=read_switches(fusion_switch))
    return TwinRequest(tuple(found), options, twin_only, numerics, training=parse_training(train) if train else None)


def parse_training(text: str) -> Training:
    """`adamw`, or with more: `momentum,O2,data=8,shard=1,recompute=12,accumulate=4`.

    >>> parse_training("adamw,O2,accumulate=4").accumulate
    4
    """
    optimizer, *more = (part.strip() for part in text.split(","))
    found: dict[str, Any] = {}
    for part in more:
        name, equals, value = part.partition("=")
        if not equals and part[:1] == "O":
            found["amp"] = part
        elif name in TRAINING_SIZES and value.isdigit():
            found[name] = int(value)
        elif part == "cheap":
            found["cheap"] = True
        else:
            known = f"O0 to O3, cheap, {', '.join(f'{n}=NUMBER' for n in TRAINING_SIZES)}"
            raise ToolError(
                f"--train: behind the optimizer must stand {known}, got {part!r}",
                hint="for example adamw,O2,accumulate=4",
                code="twin-options",
            )
    return Training(optimizer, **found)


def complete_precision(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Modes of ATC's and MindSpore's."""
    return [CompletionItem(name) for name in (*PRECISION_MODES, *PRECISION_SYNONYMS) if name.startswith(incomplete)]


def complete_socs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The last name of a list with commas."""
    before, comma, last = incomplete.rpartition(",")
    return [CompletionItem(f"{before}{comma}{item.value}", help=item.help) for item in complete_soc(ctx, param, last)]
