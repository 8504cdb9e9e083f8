"""The OCR example reads what the package reads with ONNX Runtime: the same lines, character by character."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from jumar.tools.examples import ocr

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("rapidocr_onnxruntime") is None, reason="the package rapidocr-onnxruntime is not installed"
    ),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def ours() -> object:
    return ocr.reader()


@pytest.fixture(scope="module")
def theirs() -> object:
    return ocr.reader(None)


@pytest.mark.parametrize("path", ocr.PICTURES, ids=lambda p: p.stem)
def test_text_and_boxes_are_those_of_onnxruntime(path: Path, ours: object, theirs: object, tmp_path: Path) -> None:
    assert callable(ours)
    assert callable(theirs)
    picture = ocr.read_picture(path)
    got, wanted = ours(picture), theirs(picture)
    assert [line.text for line in got] == [line.text for line in wanted]
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a.box, b.box, atol=1.0)
        assert abs(a.score - b.score) < 1e-3
    ocr.annotate(picture, got, tmp_path / "read.png")
    assert ocr.read_picture(tmp_path / "read.png").shape[0] >= picture.shape[0]


def test_the_notice_is_read_in_chinese_and_english(ours: object) -> None:
    assert callable(ours)
    text = [line.text for line in ours(ocr.read_picture(ocr.PICTURES[1]))]
    assert "上升器必须扣好保险，两人互相检查" in text
    assert any("thunderstorms" in line for line in text)
