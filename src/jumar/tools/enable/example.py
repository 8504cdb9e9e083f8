"""Bundled examples of `jumar enable`: whole applications, then each of their models through every layer.

In: the folder to write into, and what was asked for.  Out: files, lines on the terminal, and one document for --json.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jumar.tools.enable.console import Teller
from jumar.tools.enable.job import Options, enable
from jumar.tools.enable.twin import TwinRequest
from jumar.tools.examples import ocr

Example = Callable[[Path, Path | None, Teller, int, int, bool, TwinRequest | None], dict[str, Any]]

_MODELS = ("detection", "direction", "recognition")


def ocr_example(
    out: Path, picture: Path | None, teller: Teller, threads: int, runs: int, numerics: bool, twin: TwinRequest | None = None
) -> dict[str, Any]:
    """Reads the pictures with PP-OCRv4, then enables its three models on what the first picture gave them."""
    teller.working("environment", "loading PP-OCRv4")
    ocr.Session.fed.clear()
    ocr.Session.threads = threads or None
    read = ocr.reader()
    out.mkdir(parents=True, exist_ok=True)
    pictures: list[dict[str, Any]] = []
    for path in (picture,) if picture else ocr.PICTURES:
        teller.working("environment", f"reading {path.name}")
        image = ocr.read_picture(path)
        lines = read(image)
        annotated = out / f"{path.stem}-read.png"
        ocr.annotate(image, lines, annotated)
        teller.line("picture", f"{path.name} ({ocr.ABOUT.get(path.name, 'yours')}): {len(lines)} lines, drawn in {annotated}")
        for number, line in enumerate(lines, 1):
            teller.line("", f"{number:2}  {line.text}   ({line.score:.3f})")
        pictures.append({"picture": str(path), "annotated": str(annotated), "lines": [{**asdict(x), "box": x.box.tolist()} for x in lines]})
    reports = {}
    for name, model in zip(_MODELS, ocr.models(), strict=True):
        teller.line("", "")
        arrays = (ocr.Session.fed[str(model)],) if str(model) in ocr.Session.fed else ()
        source = f"as read from {Path(pictures[0]['picture']).name}"
        options = Options(
            model,
            out / name,
            threads=threads,
            runs=runs,
            numerics=numerics,
            arrays=arrays,
            source=source,
            title=f"PP-OCRv4 {name}",
            twin=twin,
        )
        reports[name] = enable(options, teller).as_json()
    return {"example": "ocr", "pictures": pictures, "models": reports}


EXAMPLES: dict[str, Example] = {"ocr": ocr_example}
