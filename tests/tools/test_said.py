"""Every error that doctor, diagnose, explain, compat and snapshot can raise is written in English and in Chinese."""

from __future__ import annotations

import ast
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.tools.helpers import jumar

from jumar.base import StackError
from jumar.tools.cli import cli

ROOT = Path(__file__).resolve().parents[2] / "src" / "jumar"
ROOMS = ("device/ascend", "tools/doctor", "tools/diagnose", "tools/files", "tools/knowledge", "tools/verdict")
COMMANDS = ("compat", "compat_terminal", "explain", "explained", "language", "snapshot")
FILES = sorted([file for room in ROOMS for file in (ROOT / room).rglob("*.py")] + [ROOT / f"tools/{name}.py" for name in COMMANDS])
ERRORS = {"StackError", *(kind.__name__ for kind in StackError.__subclasses__())}
CHINESE = re.compile(r"[\u4e00-\u9fff]")
COMMAND = re.compile(r"(jumar|mkdir|rm|--)\W?")  # what stands in a hint as it is in every language


def unsaid(source: str) -> list[str]:
    """The errors of a file without Chinese: `line: why`."""
    tree = ast.parse(source)
    found = []
    for function, call in _raised(tree):
        what = call.args[0] if call.args else None
        if not (_said(what) or (isinstance(what, ast.Name) and what.id in _said_names(function))):
            found.append(f"{call.lineno}: what went wrong must be Said(en, zh)")
        hint = next((keyword.value for keyword in call.keywords if keyword.arg == "hint"), None)
        for text in _english(hint, function):
            if text and not COMMAND.match(text):
                found.append(f"{call.lineno}: hint must be Said(en, zh) or a command, got {text!r}")
    found += [
        f"{call.lineno}: the second text of Said must be Chinese" for call in _calls(tree, {"Said"}) if not _said(call) and _worded(call)
    ]
    return found


def _calls(tree: ast.AST, names: set[str]) -> Iterator[ast.Call]:
    return (n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in names)


def _worded(said: ast.Call) -> bool:
    """Has the second text words of its own?   f"{path}：{why.zh}" only puts others together, Said(str(error), str(error)) passes on what others say."""
    zh = said.args[-1]
    parts = zh.values if isinstance(zh, ast.JoinedStr) else [zh]
    return any(isinstance(part, ast.Constant) and re.search(r"[A-Za-z]", str(part.value)) for part in parts)


def _raised(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.Call]]:
    """Each call that makes an error of ours, with the innermost function around it."""

    def below(node: ast.AST, function: ast.AST) -> Iterator[tuple[ast.AST, ast.Call]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id in ERRORS:
                yield function, child
            yield from below(child, child if isinstance(child, ast.FunctionDef) else function)

    return below(tree, tree)


def _said(node: ast.AST | None) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Said"
        and len(node.args) == 2
        and any(isinstance(n, ast.Constant) and CHINESE.search(str(n.value)) for n in ast.walk(node.args[1]))
    )


def _said_names(function: ast.AST) -> set[str]:
    """Parameters that are Said: whoever calls is watched by the type checker and by this file."""
    if not isinstance(function, ast.FunctionDef):
        return set()
    return {
        a.arg for a in (*function.args.args, *function.args.kwonlyargs) if isinstance(a.annotation, ast.Name) and a.annotation.id == "Said"
    }


def _english(node: ast.AST | None, function: ast.AST) -> Iterator[str]:
    """The beginnings of the texts that a hint may be, of a local name: those of what it is set to."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            yield text
        case ast.JoinedStr():
            yield ast.unparse(node)
        case ast.BoolOp(values=values):
            for value in values:
                yield from _english(value, function)
        case ast.IfExp(body=body, orelse=orelse):
            yield from _english(body, function)
            yield from _english(orelse, function)
        case ast.Name(id=name):
            for inner in ast.walk(function):
                if isinstance(inner, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in inner.targets):
                    yield from _english(inner.value, function)
        case _:
            pass


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_error_of_these_rooms_is_said_in_both_languages(file: Path) -> None:
    assert [] == unsaid(file.read_text(encoding="utf-8"))


def test_the_rooms_raise_errors_at_all() -> None:
    assert sum(1 for file in FILES for _ in _calls(ast.parse(file.read_text(encoding="utf-8")), ERRORS)) > 30


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("raise ToolError('gone')", "1: what went wrong must be Said(en, zh)"),
        ("raise DeviceError(Said(*both))", "1: what went wrong must be Said(en, zh)"),
        ("raise wrong(Said('gone', 'gone'))", "1: the second text of Said must be Chinese"),
        ("raise ToolError(Said('gone', '已不在'), hint='look at it')", "1: hint must be Said(en, zh) or a command, got 'look at it'"),
        ("def f(what: str): return ToolError(what)", "1: what went wrong must be Said(en, zh)"),
        ("def f(x):\n hint = nearest(x, y) or 'look'\n raise ToolError(Said('gone', '已不在'), hint=hint)", "3: hint must be"),
    ],
)
def test_an_error_without_chinese_is_found(source: str, why: str) -> None:
    (found,) = unsaid(source)
    assert found.startswith(why)


def test_an_error_with_chinese_and_a_command_as_its_hint_passes() -> None:
    assert [] == unsaid("def f(what: Said): return ToolError(what, hint='jumar snapshot save')")
    assert [] == unsaid("raise ToolError(Said(f'{x} is gone', f'{x} 已不在'), hint=nearest(x, y) or 'jumar explain')")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("doctor --from nowhere", ["nowhere：无法读取：文件或目录不存在", "提示：检查路径和权限"]),
        ("doctor --from empty", ["empty：其中没有可读的文本文件（没有文件）", "提示：要复制的文件见 jumar explain doctor-from"]),
        (
            "doctor --from notes",
            [
                "notes：其中没有任何昇腾机器的信息，无法检查",
                "提示：要复制的文件见 jumar explain doctor-from；只有日志时：jumar diagnose LOG",
            ],
        ),
        ("doctor --collect a.zip", ["a.zip：文件名必须以 .tar.gz 结尾（写出的就是这种格式）", "提示：--collect a.tar.gz"]),
        ("diagnose nowhere", ["nowhere：文件无法读取：文件或目录不存在"]),
        ("diagnose cut.gz", ["cut.gz：其中没有可读的文本（cut.gz：只读到中断处（内容不完整））"]),
        ("diagnose notes/buy.txt --html nowhere/a.html", ["--html：无法写入 nowhere/a.html：文件或目录不存在"]),
        (
            "compat --soc H100",
            ["compat：--soc 必须是昇腾芯片，不能是 'H100'", "提示：例如 Ascend910B3、Ascend910_9391（A3）、310P3、310B4、910A"],
        ),
        ("compat --cann new", ["version：'new' 不是版本号", "当时正在读取 --cann"]),
        (
            "explain brodcast",
            ["explain：没有这个错误码：'brodcast'", "提示：是否指 broadcast 或 bit-cast？", "详见：jumar explain explain-code"],
        ),
        ("snapshot diff a/b", ["snapshot：名字只能由字母、数字和 . _ + - 组成，不能是 'a/b'", "提示：例如 before-8.2"]),
        ("snapshot diff nothing", ["snapshot：没有名为 'nothing' 的快照", "提示：jumar snapshot save"]),
    ],
)
def test_a_command_fails_in_the_language_that_it_would_have_answered_in(
    command: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("notes").mkdir()
    Path("notes/buy.txt").write_text("buy milk\n")
    Path("cut.gz").write_bytes(gzip.compress(b"error")[:11])
    settings = {"LC_ALL": "zh_CN.UTF-8", "JUMAR_SNAPSHOT_DIR": str(tmp_path / "kept")}
    error = CliRunner(env=settings).invoke(cli, command.split(), standalone_mode=False).exception
    assert isinstance(error, StackError), error
    assert [] == [part for part in expected if part not in str(error)], str(error)
    english = CliRunner(env=settings).invoke(cli, [*command.split(), "--lang", "en"], standalone_mode=False).exception
    assert not CHINESE.search(str(english))


@pytest.mark.parametrize(
    ("lang", "what", "hint"),
    [
        ("zh", "nowhere：无法读取：文件或目录不存在", "检查路径和权限"),
        ("en", "nowhere: must be readable, got No such file or directory", "check the path and its permissions"),
    ],
)
def test_an_error_document_is_in_the_language_of_the_answer(lang: str, what: str, hint: str, tmp_path: Path) -> None:
    document = json.loads(jumar("doctor", "--from", "nowhere", "--json", "--lang", lang, cwd=tmp_path).stdout)["error"]
    assert (what, hint, "doctor-from") == (document["what"], document["hint"], document["code"])


def test_what_was_left_out_is_noted_in_the_language_of_the_answer(tmp_path: Path) -> None:
    (tmp_path / "cut.log.gz").write_bytes(gzip.compress(b"RuntimeError: x\n" * 99)[:-12])
    assert "cut.log.gz：只读到中断处（内容不完整）" in jumar("diagnose", "cut.log.gz", "--lang", "zh", cwd=tmp_path).stdout
    assert (
        "cut.log.gz: read up to where it breaks off (it ends too early)"
        in jumar("diagnose", "cut.log.gz", "--lang", "en", cwd=tmp_path).stdout
    )
