"""Reading text: the detection, direction and recognition models of PP-OCRv4, as the package `rapidocr-onnxruntime` ships them.

In: a picture.  Out: lines with their boxes and scores, and the picture with the boxes drawn.  The package's own pre- and post-processing is
used as it is; only what runs the three models is exchanged, so that any difference in the text would be the runtime's.
page.png is a photograph of a printed page; notice.jpg is a rendered notice, bent and lit like a photograph (tests/tools/make_notice.py).
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jumar.base import Array, ToolError
from jumar.frontend import Model, load

HERE = Path(__file__).parent
PICTURES = (HERE / "page.png", HERE / "notice.jpg")
ABOUT = {"page.png": "a photograph of a printed page", "notice.jpg": "a rendered notice, bent and lit like a photograph"}
_PARTS = ("ch_ppocr_det.text_detect", "ch_ppocr_cls.text_cls", "ch_ppocr_rec.text_recognize")


@dataclass(frozen=True)
class Line:
    """One recognised line.   box: its corners [4, 2] in the picture."""

    text: str
    score: float
    box: Array = field(compare=False)


class Session:
    """What the package expects of a session, on our runtime.   fed: the first input of each model, for those who want to look closer."""

    fed: dict[str, tuple[str, Array]] = {}
    threads: int | None = None

    def __init__(self, config: dict[str, Any]) -> None:
        self.path = Path(str(config["model_path"]))
        self.model: Model = load(self.path, target="cpu", threads=self.threads)
        self.metadata = self.model.metadata

    def __call__(self, batch: Array) -> list[Array]:
        name = self.get_input_names()[0]
        Session.fed.setdefault(str(self.path), (name, np.array(batch)))
        results: list[Array] = self.model.run(None, {name: batch})
        return results

    def get_input_names(self) -> list[str]:
        return [p.name for p in self.model.inputs]

    def get_output_names(self) -> list[str]:
        return [p.name for p in self.model.outputs]

    def have_key(self, key: str = "character") -> bool:
        return key in self.metadata

    def get_character_list(self, key: str = "character") -> list[str]:
        return str(self.metadata[key]).splitlines()


def models() -> tuple[Path, Path, Path]:
    """The three model files: detection, direction, recognition."""
    folder = _package() / "models"
    return (folder / "ch_PP-OCRv4_det_infer.onnx", folder / "ch_ppocr_mobile_v2.0_cls_infer.onnx", folder / "ch_PP-OCRv4_rec_infer.onnx")


def reader(session: Callable[[dict[str, Any]], Any] | None = Session) -> Callable[[Array], list[Line]]:
    """A function from a picture [height, width, 3] (BGR) to lines.   session: what runs the models; None: the package's own, ONNX Runtime."""
    _package()
    with _exchanged(session):
        try:
            engine = importlib.import_module("rapidocr_onnxruntime").RapidOCR()
        except ImportError as error:
            raise _missing(f"it could not be imported: {error}") from error

    def read(picture: Array) -> list[Line]:
        found, _ = engine(picture)
        return [Line(text, float(score), np.asarray(box, np.float64)) for box, text, score in found or []]

    return read


@contextmanager
def _exchanged(session: Callable[[dict[str, Any]], Any] | None) -> Iterator[None]:
    """While open, the package makes its sessions by `session`."""
    if session is None:
        yield
        return
    modules = [importlib.import_module(f"rapidocr_onnxruntime.{part}") for part in _PARTS]
    before = [m.OrtInferSession for m in modules]
    for m in modules:
        m.OrtInferSession = session  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for m, original in zip(modules, before, strict=True):
            m.OrtInferSession = original  # type: ignore[attr-defined]


def read_picture(path: Path) -> Array:
    """The picture [height, width, 3], blue first as OpenCV has it."""
    _package()
    import cv2  # noqa: PLC0415  (comes with the extra `examples`)

    picture = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR) if path.is_file() else None
    if picture is None:
        raise ToolError(
            f"{path}: must be a picture that can be read, got {'no such file' if not path.exists() else 'something else'}",
            code="example-picture",
        )
    result: Array = np.asarray(picture)
    return result


def annotate(picture: Array, lines: list[Line], path: Path) -> None:
    """Writes the picture with a numbered box around each line."""
    import cv2  # noqa: PLC0415  (comes with the extra `examples`)

    scale = max(1, round(900 / picture.shape[1]))  # small pictures are enlarged so that the numbers can be read
    shown = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
    margin = 44
    shown = cv2.copyMakeBorder(shown, 0, 0, margin, 0, cv2.BORDER_CONSTANT, value=(255, 255, 255))
    for number, line in enumerate(lines, 1):
        corners = np.asarray(line.box * scale + (margin, 0)).astype(np.int32)
        cv2.polylines(shown, [corners], True, (40, 120, 0), 2, cv2.LINE_AA)
        left, middle = int(corners[:, 0].min()), int(corners[:, 1].mean())
        cv2.line(shown, (margin - 8, middle), (left, middle), (40, 120, 0), 1, cv2.LINE_AA)
        cv2.putText(shown, str(number), (6, middle + 7), cv2.FONT_HERSHEY_SIMPLEX, 0.7, (30, 30, 180), 2, cv2.LINE_AA)
    ok, raw = cv2.imencode(path.suffix, shown)
    assert ok, f"OpenCV writes {path.suffix}"
    path.write_bytes(raw.tobytes())


def _package() -> Path:
    spec = importlib.util.find_spec("rapidocr_onnxruntime")
    if spec is None or spec.origin is None:
        raise _missing("it is not installed")
    return Path(spec.origin).parent


def _missing(why: str) -> ToolError:
    return ToolError(
        f"--example ocr: package rapidocr-onnxruntime must be there, got none: {why}",
        hint="pip install 'jumar[examples]', or scripts/demo, which also works on Python 3.13",
        code="example-missing",
    )
