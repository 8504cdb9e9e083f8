"""How src/jumar/tools/examples/notice.jpg was made: a notice in Chinese and English, rendered, then bent as a camera would see it.

It is no photograph, and says so wherever it is shown; page.png beside it is one.  Needs Pillow, OpenCV and Noto Sans CJK (OFL).
Usage: python tests/tools/make_notice.py FONT.ttc OUT.jpg
"""

from __future__ import annotations

import sys

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

LINES = (
    (56, "攀岩安全须知"),
    (34, "Climbing safety notice"),
    (30, "出发前检查绳索、主锁和安全带"),
    (26, "Check rope, carabiners and harness before you start"),
    (30, "上升器必须扣好保险，两人互相检查"),
    (26, "Lock the ascender and check your partner"),
    (30, "雷雨天气禁止攀登，请立即下撤"),
    (26, "No climbing in thunderstorms: descend at once"),
    (30, "紧急电话：119  营地：0571-8820-1234"),
)


def render(font: str) -> np.ndarray:
    """The flat sheet."""
    sheet = Image.new("RGB", (1000, 720), (246, 243, 235))
    draw = ImageDraw.Draw(sheet)
    draw.rectangle((24, 24, 975, 695), outline=(150, 40, 30), width=4)
    y = 56
    for size, text in LINES:
        draw.text((80, y), text, font=ImageFont.truetype(font, size), fill=(30, 32, 40))
        y += int(size * 1.9)
    return np.asarray(sheet)


def photograph(sheet: np.ndarray) -> np.ndarray:
    """Perspective, a lamp from one side, a soft lens, sensor noise."""
    rng = np.random.default_rng(7)
    height, width = 820, 1120
    source = np.array([(0, 0), (1000, 0), (1000, 720), (0, 720)], np.float32)
    target = np.array([(96, 62), (1040, 38), (1076, 770), (50, 742)], np.float32)
    table = np.full((height, width, 3), (96, 84, 72), np.uint8)
    warp = cv2.getPerspectiveTransform(source, target)
    bent = cv2.warpPerspective(sheet, warp, (width, height), dst=table, borderMode=cv2.BORDER_TRANSPARENT, flags=cv2.INTER_AREA)
    rows, columns = np.mgrid[0:height, 0:width]
    light = 1.05 - 0.42 * np.hypot((columns - 330) / width, (rows - 240) / height)
    lit = cv2.GaussianBlur(bent.astype(np.float32) * light[..., None], (0, 0), 0.8)
    return np.clip(lit + rng.normal(0, 3.0, lit.shape), 0, 255).astype(np.uint8)


if __name__ == "__main__":
    Image.fromarray(photograph(render(sys.argv[1]))).save(sys.argv[2], quality=82)
