"""Operations on pictures: the pixels are MindSpore's (see vision_cases.py); random ones follow from the seed."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest

import jumar.dataset as ds
from jumar.dataset import transforms, vision
from jumar.dataset.vision import resample

pytest.importorskip("PIL")
from tests.dataset import vision_cases

EXPECTED = json.loads(vision_cases.EXPECTED.read_text()) if vision_cases.EXPECTED.exists() else {}
# where OpenCV's vector code rounds the other way now and then; nowhere by more than one grey level
CLOSE = ("AdjustHue", "AdjustSharpness(1.7)", "AdjustContrast(1.7)", "AdjustSaturation(1.7)", "Rotate(20,I.BICUBIC)")


@pytest.fixture(scope="module")
def pictures() -> dict[str, Any]:
    return vision_cases.inputs()


@pytest.mark.parametrize("text, name", vision_cases.cases(), ids=lambda v: v)
def test_pixels_are_those_of_mindspore(text, name, pictures):
    expected = EXPECTED[f"{text} | {name}"]
    for want, have in zip(expected, vision_cases.facts(vision_cases.made(vision, text, pictures[name])), strict=True):
        assert (want["pil"], want["type"], want["shape"]) == (have["pil"], have["type"], have["shape"])
        if "sha" in want and not text.startswith(tuple(f"V.{c}" for c in CLOSE)):
            assert want["sha"] == have["sha"]
        elif "sha" in want:
            assert np.abs(np.array(want["some"]) - np.array(have["some"])).max() <= 1
        else:
            np.testing.assert_allclose(have["some"], want["some"], rtol=2e-6, atol=1e-6)
            np.testing.assert_allclose(have["mean"], want["mean"], rtol=1e-5, atol=1e-6)


def test_opencv_resizes_as_we_do(pictures):
    cv2 = pytest.importorskip("cv2")
    for h, w in ((20, 30), (50, 80), (74, 106), (36, 20), (18, 26), (200, 300)):
        ours = resample.exact(pictures["img"], h, w, vision.Inter.BILINEAR)
        assert np.array_equal(ours, cv2.resize(pictures["img"], (w, h), interpolation=cv2.INTER_LINEAR))
    assert resample.fast() is cv2


def test_resizing_needs_no_opencv(pictures, monkeypatch):
    with_opencv = vision.Resize((50, 80))(pictures["img"])
    monkeypatch.setattr(resample, "fast", lambda: None)
    assert np.array_equal(vision.Resize((50, 80))(pictures["img"]), with_opencv)


def encoded(image: np.ndarray, form: str) -> np.ndarray:
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(image).save(out, form)
    return np.frombuffer(out.getvalue(), np.uint8)


def test_decode_makes_rgb_of_whatever_is_in_the_file(pictures):
    image, grey = pictures["img"], pictures["gray"]
    assert np.array_equal(vision.Decode()(encoded(image, "PNG")), image)
    assert np.array_equal(vision.Decode()(encoded(grey, "PNG")), np.dstack([grey] * 3))
    assert np.array_equal(vision.Decode()(encoded(np.dstack([image, grey]), "PNG")), image)
    assert vision.Decode(to_pil=True)(encoded(image, "JPEG")).size == (53, 37)
    assert np.array_equal(vision.Decode()(np.array([encoded(image, "PNG").tobytes()])), image)  # as MindRecord gives bytes
    with pytest.raises(ds.DataFault, match="must be a picture"):
        vision.Decode()(np.arange(20, dtype=np.uint8))
    with pytest.raises(ds.DataTypeFault, match="bytes of a picture"):
        vision.Decode()(image)


def test_files_are_written_and_read(tmp_path, pictures):
    vision.write_png(str(tmp_path / "a.png"), pictures["img"])
    assert np.array_equal(vision.read_image(str(tmp_path / "a.png")), pictures["img"])
    vision.write_jpeg(str(tmp_path / "a.jpg"), pictures["img"], 95)
    assert np.abs(vision.read_image(str(tmp_path / "a.jpg")).astype(int) - pictures["img"]).mean() < 12
    assert vision.read_image(str(tmp_path / "a.png"), vision.ImageReadMode.GRAYSCALE).shape == (37, 53, 1)


RANDOM = [
    "RandomCrop(20)", "RandomCrop((40,60),4,True)", "RandomResizedCrop(16)", "RandomHorizontalFlip()", "RandomVerticalFlip()", "RandomRotation(30)",
    "RandomAffine(20,(0.1,0.1),(0.8,1.2),5)", "RandomPerspective(0.5,1.0,vision.Inter.BILINEAR)", "RandomColorAdjust(0.4,0.4,0.4,0.1)",
    "RandomColor()", "RandomSharpness()", "RandomPosterize((1,8))", "RandomSolarize()", "RandomLighting(0.5)", "RandomEqualize()", "RandomInvert()",
    "RandomAutoContrast()", "RandomGrayscale(0.5)", "RandomAdjustSharpness(2.0)", "RandomResize(20)", "CutOut(8,2)", "AutoAugment()",
    "AutoAugment(vision.AutoAugmentPolicy.CIFAR10)", "AutoAugment(vision.AutoAugmentPolicy.SVHN)", "RandAugment()", "TrivialAugmentWide()",
    "UniformAugment([vision.Invert(), vision.Equalize(), vision.HorizontalFlip()])",
    "RandomSelectSubpolicy([[(vision.Invert(), 0.5)], [(vision.HorizontalFlip(), 1.0)]])",
]  # fmt: skip


@pytest.mark.parametrize("text", RANDOM)
def test_random_operations_follow_from_the_seed_and_the_row(text, pictures):
    op = eval("vision." + text)

    def results(seed: int, workers: int = 1) -> list[bytes]:
        ds.config.set_seed(seed)
        data = ds.GeneratorDataset([pictures["img"]] * 24, ["x"], shuffle=False).map(op, "x", num_parallel_workers=workers)
        return [r[0].tobytes() for r in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]

    try:
        first = results(1)
        assert first == results(1) == results(1, 3)
        assert len(set(first)) > 1
        assert first != results(2)
    finally:
        ds.config.set_seed(ds.config.DEFAULT_SEED)


def test_random_crop_decode_resize_is_a_crop_of_the_file(pictures):
    out = vision.RandomCropDecodeResize(16)(encoded(pictures["img"], "PNG"))
    assert out.shape == (16, 16, 3) and out.dtype == np.uint8
    whole = vision.RandomCropDecodeResize((37, 53), (1, 1), (53 / 37, 53 / 37))(encoded(pictures["img"], "PNG"))
    assert np.array_equal(whole, pictures["img"])


def test_random_erasing_erases_a_part_of_a_tensor(pictures):
    tensor = vision.ToTensor()(pictures["img"])
    out = vision.RandomErasing(1.0, value=2.0)(tensor)
    part = (out == 2.0).all(0)
    assert 0.02 * part.size * 0.5 < part.sum() < 0.4 * part.size
    assert np.array_equal(out[:, ~part], tensor[:, ~part])
    noise = vision.RandomErasing(1.0, value="random")(tensor)
    assert not np.array_equal(noise, tensor)


def test_mixup_and_cutmix_keep_the_sum_of_labels(pictures):
    images = pictures["bat"]
    labels = np.eye(5, dtype=np.float32)[[0, 2, 4]]
    mixed, soft = vision.MixUpBatch(0.5)(images, labels)
    assert mixed.shape == images.shape
    np.testing.assert_allclose(soft.sum(1), 1, rtol=1e-6)
    for form, batch in ((vision.ImageBatchFormat.NHWC, images), (vision.ImageBatchFormat.NCHW, images.transpose(0, 3, 1, 2))):
        cut, soft = vision.CutMixBatch(form, 1.0, 1.0)(batch, labels)
        assert cut.shape == batch.shape
        np.testing.assert_allclose(soft.sum(1), 1, rtol=1e-6)
    with pytest.raises(ds.DataFault, match="one-hot"):
        vision.MixUpBatch()(images, np.array([0, 1, 2]))


def test_boxes_move_with_the_picture(pictures):
    image = pictures["img"]
    boxes = np.array([[5, 6, 10, 12], [30, 2, 8, 8]], np.float32)
    flipped, moved = vision.RandomHorizontalFlipWithBBox(1.0)(image, boxes)
    assert np.array_equal(flipped, image[:, ::-1])
    assert moved.tolist() == [[38, 6, 10, 12], [15, 2, 8, 8]]
    _, moved = vision.RandomVerticalFlipWithBBox(1.0)(image, boxes)
    assert moved.tolist() == [[5, 19, 10, 12], [30, 27, 8, 8]]
    small, moved = vision.ResizeWithBBox((74, 106))(image, boxes)
    assert small.shape == (74, 106, 3)
    assert moved[0].tolist() == [10, 12, 20, 24]
    part, moved = vision.RandomCropWithBBox(20)(image, boxes)
    assert part.shape == (20, 20, 3) and (moved[:, :2] >= 0).all() and (moved[:, 0] + moved[:, 2] <= 20).all()
    with pytest.raises(ds.DataFault, match="inside of the picture"):
        vision.RandomHorizontalFlipWithBBox()(image, np.array([[50, 0, 10, 10]]))


def test_a_whole_training_pipeline_gives_batches(tmp_path, pictures):
    for label in ("cat", "dog"):
        (tmp_path / label).mkdir()
        for i in range(3):
            vision.write_jpeg(str(tmp_path / label / f"{i}.jpg"), pictures["img"])
    data = ds.ImageFolderDataset(str(tmp_path)).map(
        [vision.RandomCropDecodeResize(24), vision.RandomHorizontalFlip(), vision.Normalize([120.0] * 3, [60.0] * 3), vision.HWC2CHW()],
        "image",
    )
    data = data.map(transforms.OneHot(2), "label").batch(3).map(vision.CutMixBatch(vision.ImageBatchFormat.NCHW), ["image", "label"])
    for images, labels in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
        assert images.shape == (3, 3, 24, 24) and images.dtype == np.float32
        assert labels.shape == (3, 2) and labels.dtype == np.float32


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: vision.Resize(0), "size must be within"),
        (lambda: vision.Resize(2, "bilinear"), "interpolation must be an Inter"),
        (lambda: vision.Normalize([1.0], [0.0]), "std must not be zero"),
        (lambda: vision.RandomCrop(50)(np.zeros((10, 10, 3), np.uint8)), "no larger than the picture 10 x 10"),
        (lambda: vision.RandomHorizontalFlip(2), "prob must be within"),
        (lambda: vision.HWC2CHW()(np.zeros(5)), "image must be numbers"),
        (lambda: vision.FiveCrop(3)(np.zeros((5, 5, 3), np.uint8)), "must be a PIL image"),
        (lambda: vision.GaussianBlur(4), "must be odd"),
    ],
)
def test_what_is_wrong_is_said(make, words):
    with pytest.raises(ds.DataFault, match=words):
        make()
