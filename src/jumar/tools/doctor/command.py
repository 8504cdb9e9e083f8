"""`jumar doctor`: which layer of this machine, or of one whose files were copied, is at fault, the line that proves it, the command that mends it.

In: this machine, or --from a folder or an archive.  Out: a verdict in the terminal, as JSON or HTML; with --collect an archive of what was looked at
instead.  Exit code: 0 nothing is wrong, 1 findings, 2 could not check.  Nothing is changed and nothing is sent.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click

from jumar.base import Language, Said, ToolError, told
from jumar.tools.doctor.collect import collect, log_places
from jumar.tools.doctor.examine import examine
from jumar.tools.doctor.foreign import foreign
from jumar.tools.doctor.gather import gather
from jumar.tools.doctor.neutralise import Progress
from jumar.tools.doctor.recognise import WHAT_TO_COPY
from jumar.tools.language import lang_option
from jumar.tools.verdict import show

_NO_CARD = Said("could not check: no NPU was found (--need npu)", "无法检查：没有发现 NPU（--need npu）")
_NEUTRALISING = Said("neutralising", "脱敏")
_LONG = 1 << 20  # characters to neutralise from which on a bar is shown


@click.command()
@click.option(
    "--from",
    "source",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Files copied off another machine: a folder, an archive, or one text.",
)
@click.option(
    "--collect",
    "out",
    metavar="OUT.tar.gz",
    type=click.Path(path_type=Path),
    help="Write what is looked at, and Ascend's own newest logs, without names, addresses and secrets, into an archive; no verdict then.",
)
@click.option(
    "--log",
    "logs",
    multiple=True,
    metavar="PATH",
    type=click.Path(exists=True, path_type=Path),
    help="With --collect: a log, or a folder of logs, to put in, too; may be given several times.",
)
@click.option("--force", is_flag=True, help="With --collect: replace an archive that is there.")
@click.option("--need", type=click.Choice(["npu"]), help="Exit with 2 where there is no NPU: for scripts that demand one.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write the verdict as a page, too.")
@lang_option
def command(
    source: Path | None,
    out: Path | None,
    logs: tuple[Path, ...],
    force: bool,
    need: str | None,
    as_json: bool,
    html: Path | None,
    lang: Language,
) -> int:
    """Say what is wrong with this machine as an Ascend host, layer by layer.

    Driver, firmware, device nodes, container and rights, CANN, kernels, frameworks, Python and system libraries, HCCL, the host's network.  It
    reads version files, folders, the environment, package names and what npu-smi and hccn_tool answer.  Nothing is changed or sent.

    Three levels are tried where the part is there: driver (npu-smi), CANN (calls of libascendcl.so), framework (a sum on the device), the last two
    in processes of their own.  These calls never ran on a real NPU by us.

    \b
    jumar doctor
    jumar doctor --from node7.tar.gz
    jumar doctor --collect node7.tar.gz --log train.log

    Exit code: 0 nothing wrong, 1 findings, 2 could not check.  Without an NPU here it is 0 where all else is well (2 with --need npu).
    """
    if out is None and (logs or force):
        raise click.UsageError("--log and --force go with --collect (logs alone: jumar diagnose LOG)")
    if out is not None and html is not None:
        raise click.UsageError("--html goes with a verdict, not with --collect (then: jumar doctor --from OUT.tar.gz --html PAGE)")
    if out is not None:
        machine = foreign(source) if source else gather()
        with _progress(told(_NEUTRALISING, lang)) as progress:
            done = collect(machine, out, (*log_places(machine), *logs), force=force, progress=progress)
        document = {"path": str(out), "files": dict(done.files), "replaced": dict(done.replaced)}
        click.echo(json.dumps(document, indent=1, ensure_ascii=False) if as_json else done.told(lang))
        return 0
    examined = examine(foreign(source) if source else gather(), lang)
    if source and not examined.view.ascend and not examined.verdict.exit_code:
        raise ToolError(
            Said(
                f"{source}: must hold files of an Ascend machine, got nothing that tells of one",
                f"{source}：其中没有任何昇腾机器的信息，无法检查",
            ),
            hint=Said(f"{WHAT_TO_COPY}; a log alone: jumar diagnose LOG", f"{WHAT_TO_COPY.zh}；只有日志时：jumar diagnose LOG"),
            code="doctor-from",
        )
    show(examined.verdict, lang, as_json=as_json, html=html)
    if need and not examined.view.devices and not any(smi.read.npus for smi in examined.view.smi):
        click.echo(told(_NO_CARD, lang), err=True)
        return examined.verdict.exit_code or 2
    return examined.verdict.exit_code


@contextmanager
def _progress(label: str) -> Iterator[Progress]:
    """A bar on stderr while much is neutralised, if that is a terminal."""
    with ExitStack() as stack:
        bar: Any = None

        def tell(done: int, total: int) -> None:
            nonlocal bar
            if total < _LONG or not sys.stderr.isatty():
                return
            bar = bar or stack.enter_context(click.progressbar(length=total, label=label, file=sys.stderr))
            bar.update(done - bar.pos)

        yield tell
