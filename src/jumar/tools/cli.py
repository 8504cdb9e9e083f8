"""`jumar`: the command line. Each command is one file of this room, imported when it is called.

In: arguments.  Out: text on stdout, progress and errors on stderr; exit code 0, 2 for what the user can mend, 130 for Ctrl-C, 143
for SIGTERM; with --json an error is a JSON document on stdout, too.
Commands are imported late so that `run-package` stands on base, device and runtime alone, and `--help` is quick.
"""

from __future__ import annotations

try:  # Ctrl-C in the first tenth of a second has no traceback either
    import errno
    import functools
    import importlib
    import json
    import signal
    import sys
    from collections.abc import Mapping
    from types import FrameType
    from typing import TYPE_CHECKING, Any, NoReturn

    import click
except KeyboardInterrupt:
    raise SystemExit(130) from None

if TYPE_CHECKING:
    from jumar.base import StackError

COMMANDS = {  # name: (module, one line for --help)
    "run": ("jumar.tools.run_script", "Run a Python script that imports mindspore."),
    "train-check": ("jumar.tools.train_check", "Say why a training script does not converge."),
    "convert-weights": ("jumar.tools.convert_weights", "Turn PyTorch weights into a MindSpore checkpoint."),
    "enable": ("jumar.tools.enable.command", "Take an ONNX model through every layer and explain each."),
    "run-package": ("jumar.tools.run_package", "Run a compiled package on inputs from files."),
    "tune": ("jumar.tools.tune", "Measure the plans of a model's layers on this machine and keep the faster ones."),
    "soc": ("jumar.tools.soc", "List the Ascend chips that are known, and show one with the source of every figure."),
    "doctor": ("jumar.tools.doctor.command", "Say which layer of an Ascend machine is at fault, with the proof and the way out."),
    "diagnose": ("jumar.tools.diagnose.command", "Say which layer is at fault in logs, with the line that proves it and the way out."),
    "compat": ("jumar.tools.compat", "Say whether driver, firmware, CANN, framework and Python fit, and which set does."),
    "snapshot": (
        "jumar.tools.snapshot",
        "Keep the versions of this machine before an upgrade; say afterwards what changed, and the way back.",
    ),
    "ops": ("jumar.tools.ops", "List the operators and what each can do."),
    "explain": ("jumar.tools.explain", "Explain an error code: Jumar's own, or one of any layer of an Ascend host."),
    "cache": ("jumar.tools.cache", "Show or clear the compile cache."),
    "settings": ("jumar.tools.settings", "List the settings, their values and where they come from."),
    "completion": ("jumar.tools.completion", "Say how to switch on shell completion."),
}


class _Commands(click.Group):
    """Finds a command in COMMANDS and imports its file."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command), f"{cmd_name}: its module has a click command named `command`"
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from jumar.base import nearest  # noqa: PLC0415  (see _stack_error)

            hint = nearest(args[0], list(COMMANDS))
            ctx.fail(f"no such command: {args[0]}{f'; {hint}' if hint else ''}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def _show_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"jumar {version()}")
        ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Print the version and stop.")
def cli() -> None:
    """A compiler stack for neural networks: MindSpore scripts and ONNX models in, own machine code out, every layer explained."""


def version() -> str:
    """The installed version, or `source` where Jumar runs from a checkout."""
    from importlib import metadata  # noqa: PLC0415  (20 ms)

    try:
        return metadata.version("jumar")
    except metadata.PackageNotFoundError:
        return "source"


def main(arguments: list[str] | None = None) -> None:
    """The program: runs the command and turns errors into exit codes."""
    as_json = "--json" in (sys.argv[1:] if arguments is None else arguments)
    answering: dict[str, str] = {}  # filled in by lang_option of the command, once it knows its language
    try:
        signal.signal(signal.SIGTERM, functools.partial(_terminate, answering))
        code = cli.main(args=arguments, prog_name="jumar", standalone_mode=False, obj=answering)
    except _stack_error() as error:
        click.echo(str(error), err=True)
        if as_json:
            click.echo(json.dumps({"error": _document(error)}, indent=1, ensure_ascii=False))
        sys.exit(2)
    except MemoryError as error:
        what = f"memory must hold what the command reads and makes, got {error or 'no more'}"
        click.echo(f"StackError: {_told(answering, 'memory').format(what=what)}", err=True)
        if as_json:
            click.echo(json.dumps({"error": {"type": "MemoryError", "what": what, "code": "memory"}}, indent=1))
        sys.exit(2)
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo(_told(answering, "stopped"), err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        if as_json:
            click.echo(json.dumps({"error": {"type": type(error).__name__, "what": error.format_message()}}, indent=1))
        sys.exit(error.exit_code)
    except BrokenPipeError:  # `jumar ops | head`
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        click.echo(f"StackError: {_told(answering, 'room').format(why=error.strerror)}", err=True)
        sys.exit(2)
    except Exception as error:  # whoever reads the document must not get an empty one; the traceback follows on stderr
        if as_json:
            document = {"type": type(error).__name__, "what": f"{error}: this is our bug", "code": "our-bug"}
            click.echo(json.dumps({"error": document}, indent=1))
        raise
    sys.exit(code if isinstance(code, int) else 0)


def _stack_error() -> type[StackError]:
    from jumar.base import StackError  # noqa: PLC0415  (0.1 s, since it brings NumPy: --help and a good end need none)

    return StackError


_ENDS = {  # how a command can end without an error of its own
    "stopped": ("stopped: nothing was left half-written", "已停止：没有留下写到一半的文件"),
    "memory": (
        "{what}\n  hint: smaller inputs (--dim, --input), fewer files at a time\n  more: jumar explain memory",
        "内存不足，放不下该命令读取和生成的内容\n  提示：用更小的输入（--dim、--input），或一次少给一些文件\n  详见：jumar explain memory",
    ),
    "room": ("output must have room, got {why}", "输出的磁盘空间不足"),
}


def _told(answering: Mapping[str, str], end: str) -> str:
    """How it ended, in the language of the answer; English where the command knows no other."""
    return _ENDS[end][answering.get("lang") == "zh"]


def _terminate(answering: Mapping[str, str], _number: int, _frame: FrameType | None) -> NoReturn:
    """SIGTERM unwinds as Ctrl-C does, so that every `finally` cleans up."""
    click.echo(_told(answering, "stopped"), err=True)
    sys.exit(143)


def _document(error: StackError) -> dict[str, Any]:
    return {
        "type": type(error).__name__,
        "layer": error.layer,
        "what": error.told(error.what),
        "at": str(error.loc) if error.loc else "",
        "hint": error.told(error.hint),
        "code": error.code,
        "while": [error.told(doing) for doing in error.context],
    }


if __name__ == "__main__":
    main()
