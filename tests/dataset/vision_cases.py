"""Pictures, operations and what MindSpore 2.10 makes of them: `vision_expected.json` was written by `python vision_cases.py` where MindSpore is.

In: a vision module (MindSpore's or ours).  Out: for each case the kind, type and shape of the result, its bytes' digest (uint8) or some of its values (float).
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

EXPECTED = Path(__file__).with_name("vision_expected.json")


def inputs() -> dict[str, Any]:
    from PIL import Image

    draws = np.random.RandomState(3)
    yy, xx = np.mgrid[0:37, 0:53]
    img = (np.stack([yy * 5, xx * 4, (yy + xx) * 2], -1) + draws.randint(0, 50, (37, 53, 3))).clip(0, 255).astype("uint8")
    gray = img[..., 0].copy()
    return {
        "img": img, "gray": gray, "gray3": gray[..., None], "f": (img / 255).astype("float32"), "f64": img / 255.0,
        "chw": img.transpose(2, 0, 1).copy(), "bat": np.stack([img] * 3), "pil": Image.fromarray(img), "pgray": Image.fromarray(gray),
    }  # fmt: skip


def cases() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []

    def add(text: str, *names: str) -> None:
        found.extend((text, name) for name in names)

    for size in ("32", "(20,30)", "(50,80)", "64", "(37,53)", "(74,106)", "(18,26)"):
        for inter in ("BILINEAR", "NEAREST", "BICUBIC", "AREA"):
            add(f"V.Resize({size},I.{inter})", "img", "gray", "f")
        for inter in ("BILINEAR", "NEAREST", "BICUBIC", "ANTIALIAS"):
            add(f"V.Resize({size},I.{inter})", "pil")
    add("V.Resize(32)", "f64", "gray3", "bat")
    add("V.Resize((20,30),I.PILCUBIC)", "img")
    add("V.CenterCrop(20)", "img", "pil", "gray")
    add("V.CenterCrop((31,60))", "img", "pil")
    add("V.Crop((3,5),(10,12))", "img", "pil")
    for border in ("CONSTANT", "EDGE", "REFLECT", "SYMMETRIC"):
        add(f"V.Pad((1,2,3,4),7,B.{border})", "img", "pil", "gray")
        add(f"V.Pad((3,5),(1,2,3),B.{border})", "img", "pil")
        add(f"V.PadToSize((50,60),None,(1,2,3),B.{border})", "img")
        add(f"V.PadToSize(60,(2,3),5,B.{border})", "img")
    add("V.HorizontalFlip()", "img", "pil")
    add("V.VerticalFlip()", "img", "pil")
    add("V.Rescale(1/255,0.5)", "img", "f", "gray")
    add("V.Normalize([121.,115,100],[70.,68,71])", "img")
    add("V.Normalize([121.,115,100],[70.,68,71],is_hwc=False)", "chw")
    add("V.Normalize([.4,.5,.6],[.2,.3,.4])", "f", "f64")
    add("V.HWC2CHW()", "img", "f", "gray", "gray3")
    add("V.ToTensor()", "img", "pil", "gray", "pgray", "f")
    add("V.ToTensor(np.float16)", "img")
    add("V.ToType(np.float32)", "img")
    add("V.ToNumpy()", "pil")
    add("V.ToPIL()", "img")
    add("V.Grayscale()", "pil")
    add("V.Grayscale(3)", "pil")
    for kernel in ("3", "(3,5)", "5,2.0", "(5,3),(1.0,3.0)"):
        add(f"V.GaussianBlur({kernel})", "img", "pil", "f")
    for angle in ("30", "45", "90", "-17"):
        add(f"V.Rotate({angle})", "img", "pil")
        add(f"V.Rotate({angle},I.BILINEAR)", "img", "pil")
        add(f"V.Rotate({angle},I.BILINEAR,True)", "img", "pil")
        add(f"V.Rotate({angle},I.NEAREST,False,(10,5),3)", "img", "pil")
    for inter in ("NEAREST", "BILINEAR"):
        add(f"V.Affine(15,[0.2,0.1],1.1,[1,1],I.{inter})", "img", "pil")
        add(f"V.Affine(-30,[0,0],0.8,[10,-5],I.{inter},9)", "img")
        add(f"V.Perspective([[0,0],[52,0],[52,36],[0,36]],[[5,3],[50,2],[48,30],[2,33]],I.{inter})", "img")
    for factor in ("0", "0.5", "1", "1.7"):
        for name in ("Brightness", "Contrast", "Saturation", "Sharpness"):
            add(f"V.Adjust{name}({factor})", "img", "f")
            if name != "Sharpness":
                add(f"V.Adjust{name}({factor})", "pil")
        add(f"V.AdjustGamma({factor}+0.1)", "img", "f", "pil")
    for factor in ("0.1", "-0.3", "0.5", "0"):
        add(f"V.AdjustHue({factor})", "img", "pil")
    add("V.AutoContrast()", "img", "pil")
    add("V.AutoContrast(10.)", "img", "pil")
    add("V.AutoContrast(10.,[10,20])", "img", "pil")
    add("V.Equalize()", "img", "pil")
    add("V.Invert()", "img", "pil")
    for bits in ("1", "4", "8"):
        add(f"V.Posterize({bits})", "img", "pil")
    add("V.Solarize(128)", "img", "pil")
    add("V.Solarize((50,200))", "img")
    add("V.RandomSolarize((100,100))", "img")
    add("V.RandomPosterize((3,3))", "img")
    for name in (
        "RandomInvert(1.)",
        "RandomEqualize(1.)",
        "RandomAutoContrast(0.,None,1.)",
        "RandomHorizontalFlip(1.)",
        "RandomVerticalFlip(1.)",
    ):
        add(f"V.{name}", "img", "pil")
    add("V.RandomGrayscale(1.)", "pil")
    add("V.RandomAdjustSharpness(2.,1.)", "img", "pil")
    add("V.RandomColorAdjust((1.5,1.5),(1,1),(1,1),(0,0))", "img")
    add("V.RandomColorAdjust((1,1),(1.5,1.5),(1,1),(0,0))", "img")
    add("V.RandomColorAdjust((1,1),(1,1),(.5,.5),(0,0))", "img")
    add("V.RandomRotation((30,30))", "img", "pil")
    add("V.RandomRotation((30,30),I.BILINEAR,True)", "img", "pil")
    add("V.RandomAffine((15,15))", "img", "pil")
    add("V.RandomCrop((37,53))", "img", "pil")
    add("V.RandomResizedCrop((20,20),(1,1),(1,1))", "img")
    add("V.ResizedCrop(2,3,20,30,(24,24))", "img", "pil")
    add("V.ResizedCrop(2,3,20,30,24,I.NEAREST)", "img")
    for mode in ("RGB2BGR", "RGB2GRAY", "BGR2GRAY", "RGB2RGBA"):
        add(f"V.ConvertColor(V.ConvertMode.COLOR_{mode})", "img")
    add("V.ConvertColor(V.ConvertMode.COLOR_GRAY2RGB)", "gray")
    add("V.RgbToHsv(True)", "f", "img")
    add("V.RgbToHsv()", "chw")
    add("V.HsvToRgb(True)", "f")
    add("V.FiveCrop(20)", "pil")
    add("V.TenCrop(20)", "pil")
    add("V.TenCrop(20,True)", "pil")
    add("V.SlicePatches(2,3)", "img")
    add("V.SlicePatches(2,3,V.SliceMode.DROP)", "img")
    add("V.Erase(3,4,10,12,(1,2,3))", "img")
    add("V.Erase(3,4,10,12,5)", "f")
    return found


def made(V: Any, text: str, value: Any) -> Any:
    """What an operation, written as text, makes of a copy of a picture."""
    return eval(text, {"V": V, "I": V.Inter, "B": V.Border, "np": np})(value.copy())


def facts(result: Any) -> list[dict[str, Any]]:
    """What is kept of a result."""
    found = []
    for one in result if isinstance(result, (tuple, list)) else [result]:
        array = np.asarray(one)
        fact: dict[str, Any] = {"pil": not isinstance(one, np.ndarray), "type": str(array.dtype), "shape": list(array.shape)}
        if array.dtype == np.uint8:
            fact["sha"] = hashlib.sha1(array.tobytes()).hexdigest()[:16]
            fact["some"] = array.reshape(-1)[:: max(1, array.size // 12)][:12].tolist()
        else:
            fact["some"] = [float(f"{v:.9g}") for v in array.astype(np.float64).reshape(-1)[:: max(1, array.size // 12)][:12]]
            fact["mean"] = float(f"{array.astype(np.float64).mean():.9g}")
        found.append(fact)
    return found


if __name__ == "__main__":
    import mindspore.dataset.vision as real

    pictures = inputs()
    EXPECTED.write_text(
        "{\n" + ",\n".join(f"{json.dumps(t + ' | ' + n)}: {json.dumps(facts(made(real, t, pictures[n])))}" for t, n in cases()) + "\n}\n"
    )
