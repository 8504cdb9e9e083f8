"""A U-Net that finds shapes: each pixel of an image is background, disc, square or triangle.

Data: noisy images with shapes, drawn here, or --data FILE.npz with `images` [n, h, w] in 0..255 and `masks` [n, h, w] (0..3).
    python unet_segment.py [--steps 200] [--size 48] [--mode graph|pynative] [--seed 1]
"""

import argparse
import time

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

CLASSES = ("background", "disc", "square", "triangle")


def draw(count, size, rng):
    """Images [n, 1, size, size] in 0..1 and masks [n, size, size]."""
    rows, columns = np.mgrid[:size, :size]
    images, masks = np.empty((count, size, size), np.float32), np.zeros((count, size, size), np.int32)
    for image, mask in zip(images, masks):
        for kind in rng.randint(1, 4, rng.randint(1, 4)):
            y, x, r = rng.randint(8, size - 8), rng.randint(8, size - 8), rng.randint(5, size // 4)
            if kind == 1:
                inside = (rows - y) ** 2 + (columns - x) ** 2 <= r * r
            elif kind == 2:
                inside = (abs(rows - y) < r) & (abs(columns - x) < r)
            else:
                inside = (rows - y < r) & (rows - y > 2 * abs(columns - x) - r)
            mask[inside] = kind
        light = rng.uniform(0.4, 1.0, 4) * (np.arange(4) > 0)
        image[:] = light[mask] + 0.15 * rng.standard_normal((size, size))
    return images[:, None], masks


class Twice(nn.Cell):
    """Two 3x3 convolutions."""

    def __init__(self, channels_in, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, has_bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, has_bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def construct(self, x):
        x = ops.relu(self.bn1(self.conv1(x)))
        return ops.relu(self.bn2(self.conv2(x)))


class UNet(nn.Cell):
    def __init__(self, width=16, depth=3, classes=4):
        super().__init__()
        widths = [width * 2**i for i in range(depth + 1)]
        self.first = Twice(1, width)
        self.pool = nn.MaxPool2d(2, 2)
        self.down = nn.CellList([Twice(widths[i], widths[i + 1]) for i in range(depth)])
        self.up = nn.CellList([nn.Conv2dTranspose(b, a, 2, stride=2) for a, b in zip(widths[-2::-1], widths[:0:-1])])
        self.join = nn.CellList([Twice(2 * a, a) for a in widths[-2::-1]])
        self.last = nn.Conv2d(width, classes, 1, has_bias=True)

    def construct(self, x):
        x = self.first(x)
        kept = [x]
        for down in self.down:
            x = down(self.pool(x))
            kept.append(x)
        for i, (up, join) in enumerate(zip(self.up, self.join)):
            x = join(ops.concat((kept[-2 - i], up(x)), 1))
        return self.last(x)


class SegmentLoss(nn.Cell):
    """Cross entropy plus one minus the Dice coefficient."""

    def __init__(self, classes=4):
        super().__init__()
        self.classes = classes
        self.cross_entropy = nn.CrossEntropyLoss()

    def construct(self, logits, masks):
        chance = ops.softmax(logits, axis=1)
        wanted = ops.one_hot(masks, self.classes, Tensor(1.0, ms.float32), Tensor(0.0, ms.float32), axis=1)
        common = (chance * wanted).sum(axis=(0, 2, 3))
        dice = (2 * common + 1) / (chance.sum(axis=(0, 2, 3)) + wanted.sum(axis=(0, 2, 3)) + 1)
        return self.cross_entropy(logits, masks) + 1 - dice.mean()


def build(args):
    return UNet(args.width)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=48)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--data", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=["graph", "pynative"], default="graph")
    args = parser.parse_args(argv)
    ms.set_seed(args.seed)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)

    if args.data:
        with np.load(args.data) as file:
            images, masks = file["images"][:, None].astype(np.float32) / 255, file["masks"].astype(np.int32)
    else:
        images, masks = draw(200, args.size, np.random.RandomState(args.seed))
    test = max(args.batch, len(images) // 5)
    net = build(args)
    optimizer = nn.Adam(net.trainable_params(), 4e-3)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, SegmentLoss()), optimizer).set_train()
    losses, start = [], time.time()
    for i in range(args.steps):
        at = test + i * args.batch % (len(images) - test - args.batch + 1)
        losses.append(float(step(Tensor(images[at : at + args.batch]), Tensor(masks[at : at + args.batch])).asnumpy()))
        if i % 40 == 39 or i == 0:
            print(f"step {i + 1:4}  loss {losses[-1]:.4f}  {time.time() - start:.1f} s")

    net.set_train(False)
    found = np.concatenate(
        [net(Tensor(images[i : i + args.batch])).asnumpy().argmax(1) for i in range(0, test - args.batch + 1, args.batch)]
    )
    masks = masks[: len(found)]
    for i, name in enumerate(CLASSES):
        both, either = ((found == i) & (masks == i)).sum(), ((found == i) | (masks == i)).sum()
        print(f"  {name:10} intersection over union {both / max(1, either):.2f}")
    return losses


if __name__ == "__main__":
    main()
