"""`jumar run SCRIPT [ARGUMENTS]`: runs a script that imports mindspore, with Jumar in its place.

In: a script, or `-m MODULE`, and its arguments.  Out: what the script does, with its exit code; tracebacks with frames of Jumar folded; with --explain, at the
end, what was captured and compiled, why again, and where the time went.
"""

from __future__ import annotations

import builtins
import importlib.util
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import click

from jumar.base import ToolError, recording
from jumar.tools.alias import as_mindspore, missing
from jumar.tools.folded import traceback_text
from jumar.tools.run_report import Report, document, report_text, write_json

INTERRUPTED = 130


@click.command(
    "run",
    context_settings={"allow_interspersed_args": False},
    short_help="Run a script that imports mindspore.",
)
@click.option("--mode", type=click.Choice(["graph", "pynative"]), help="Run in this mode, whatever the script sets.")
@click.option(
    "--soc", metavar="NAME", help="Run on the twin of this Ascend chip, whatever device the script sets: 910B4.  Values are computed here."
)
@click.option(
    "--numerics",
    is_flag=True,
    help="On the twin: compute the chip's arithmetic here, too, and name the lines that overflow or lose accuracy.",
)
@click.option("--explain", is_flag=True, help="Say at the end what was captured and compiled, why again, and where the time went.")
@click.option("--explain-json", type=click.Path(dir_okay=False, path_type=Path), help="Write the same as JSON into this file.")
@click.option("--full-traceback", is_flag=True, help="Show every frame of a traceback.")
@click.option("-m", "module", is_flag=True, help="SCRIPT is the name of a module, as in `python -m`.")
@click.argument("script", type=click.Path())
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    script: str, arguments: tuple[str, ...], mode: str | None, soc: str | None, numerics: bool, explain: bool, explain_json: Path | None,
    full_traceback: bool, module: bool,
) -> None:  # fmt: skip
    """Run a Python script that imports mindspore, with Jumar in its place.

    \b
    jumar run train.py --epochs 3
    jumar run --mode graph --explain train.py
    jumar run --soc 910B4 --explain train.py
    jumar run --soc 910B4 --numerics train.py
    jumar run -m mypackage.train
    """
    if explain_json is not None and not explain_json.absolute().parent.is_dir():
        raise ToolError(f"run: --explain-json must be in a folder that exists, got {explain_json}", code="out-folder")
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the script may have its own
    start = _module(script) if module else _file(Path(script))
    as_mindspore()
    if mode is not None:
        from jumar.context import force_mode  # noqa: PLC0415  (a script that never uses a context does not pay for it)

        force_mode(mode)
    if soc is not None:
        from jumar.context import force_soc  # noqa: PLC0415  (see above)

        force_soc(soc)
    if numerics:
        from jumar.frontend import twin  # noqa: PLC0415  (see above)

        twin.keep_inputs()
        explain = True
    terminal = os.dup(2) if explain else -1  # the script may send its own stderr elsewhere before it ends
    sys.argv = [script, *arguments]
    begun_s = time.perf_counter()
    with recording() as record:
        code = _run(start, full_traceback)
    if explain or explain_json is not None:
        found = document(Report(script, record, time.perf_counter() - begun_s))
        if numerics and not (found.get("twin") or {}).get("numerics"):
            hint = "--soc NAME names a chip" if not found.get("twin") else "--mode graph captures the script's cells"
            click.echo(f"run: --numerics found no graph that ran on the twin of an Ascend chip; {hint}", err=True)
        if explain:
            sys.stderr.flush()
            os.write(terminal, f"{report_text(found)}\n".encode())
        if explain_json is not None:
            write_json(found, explain_json)
    sys.exit(code)


def _file(path: Path) -> Callable[[], None]:
    """What runs a file as `__main__`."""
    if not path.is_file():
        raise ToolError(f"run: script must be a file, got {path}", hint="`-m` runs a module by its name", code="script-missing")
    source = path.read_bytes()

    def start() -> None:
        sys.path[0] = str(path.resolve().parent)
        main = ModuleType("__main__")
        main.__dict__.update(__file__=str(path), __builtins__=builtins, __cached__=None)
        sys.modules["__main__"] = main
        exec(compile(source, str(path), "exec"), main.__dict__)

    return start


def _module(name: str) -> Callable[[], None]:
    """What runs a module as `__main__`."""
    sys.path[0] = os.getcwd()
    as_mindspore()  # finding a module imports the packages that it is in
    try:
        found = importlib.util.find_spec(name)
        if found is not None and found.submodule_search_locations is not None:
            found = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        raise ToolError(f"run: module must be there, got {name} ({error})", code="script-missing") from error
    if found is None or found.origin is None or found.loader is None:
        raise ToolError(f"run: module must be there, got {name}", code="script-missing")
    spec, origin = found, found.origin

    def start() -> None:
        sys.argv[0] = origin
        main = importlib.util.module_from_spec(spec)
        main.__dict__.update(__name__="__main__", __builtins__=builtins)
        sys.modules["__main__"] = main
        exec(compile(Path(origin).read_bytes(), origin, "exec"), main.__dict__)

    return start


def _run(start: Callable[[], None], full_traceback: bool) -> int:
    """Runs it.   The exit code that Python would give it."""
    try:
        start()
    except SystemExit as stop:
        return _exit_code(stop)
    except KeyboardInterrupt as error:
        _say(error, full_traceback)
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except BaseException as error:
        _say(error, full_traceback)
        return 1
    return 0


def _exit_code(stop: SystemExit) -> int:
    if stop.code is None or isinstance(stop.code, int):
        return stop.code or 0
    click.echo(str(stop.code), err=True)
    return 1


def _say(error: BaseException, full: bool) -> None:
    sys.stdout.flush()
    hook = sys.excepthook
    if hook is not sys.__excepthook__:  # the script has its own
        hook(type(error), error, error.__traceback__)
        return
    text = traceback_text(error, full=full, skip=_frames_above(error))
    if isinstance(error, ModuleNotFoundError) and (hint := missing(error)):
        text += f"\n  hint: {hint}"
    click.echo(text, err=True)


def _frames_above(error: BaseException) -> int:
    """Frames of this file, which started the script."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((i for i, f in enumerate(frames) if f.filename != __file__), len(frames))
