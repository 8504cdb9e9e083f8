"""Of a long log each kind of line is looked at, not each line; what speaks of a failure is looked at for longer."""

from __future__ import annotations

from pathlib import Path

from jumar.tools.diagnose.diagnose import diagnose
from jumar.tools.diagnose.shapes import FEW, MANY, Shapes
from jumar.tools.diagnose.sources import opened
from jumar.tools.knowledge.rule import compiled


def looked_at(text: str) -> list[int]:
    block = text.encode()
    return Shapes(compiled("error")).fresh(block, block.split(b"\n"))


def test_lines_that_differ_in_numbers_only_are_one_kind() -> None:
    assert looked_at("\n".join(f"step {i} loss {i / 7} at 0x{i:x}" for i in range(1000))) == list(range(FEW))


def test_lines_of_a_failure_are_looked_at_for_longer() -> None:
    assert looked_at("\n".join(f"error code {i}" for i in range(2 * MANY))) == list(range(MANY))


def test_a_new_kind_of_line_is_always_looked_at() -> None:
    assert looked_at("\n".join([*(f"step {i}" for i in range(1000)), "something else"]))[-1] == 1000


def test_an_error_deep_in_a_long_log_is_found_with_its_line_and_time(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    routine = "".join(f"2025-11-21 01:00:{i % 60:02d},125 [INFO] step {i} loss {i % 10}\n" for i in range(150_000))
    log.write_text(f"{routine}The device urgent heartbeat is lost! (device=3)\n{routine}")
    verdict = diagnose(opened((log,)).sources)
    assert verdict.layer == "driver_firmware"
    assert verdict.findings[0].evidence[0].line == 150_001
    assert verdict.lines == 300_001
