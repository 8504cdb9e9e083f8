"""Training steps of YOLOv5s, from scratch or from weights that come from PyTorch.

    jumar convert-weights yolov5s.pth yolov5s.ckpt            once: names and layouts of a PyTorch state dict become MindSpore's
    python yolov5s_step.py --weights yolov5s.ckpt [--steps 20] [--size 128] [--mode graph|pynative] [--seed 1]
Data: images with coloured boxes drawn here, or --data FILE.npz with `images` [n, 3, s, s] in 0..255 and `boxes` [m, 6]
(image, class, and centre x, centre y, width, height as parts of the image).
"""

import argparse
import time

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ANCHORS = np.array([[[10, 13], [16, 30], [33, 23]], [[30, 61], [62, 45], [59, 119]], [[116, 90], [156, 198], [373, 326]]], np.float32)
STRIDES = (8, 16, 32)
BALANCE = (4.0, 1.0, 0.4)  # small objects are seen by many cells: their scale counts more


class Conv(nn.Cell):
    def __init__(self, a, b, k=1, s=1, p=None):
        super().__init__()
        self.conv = nn.Conv2d(a, b, k, s, pad_mode="pad", padding=k // 2 if p is None else p)
        self.bn = nn.BatchNorm2d(b, eps=1e-3, momentum=0.97)
        self.act = nn.SiLU()

    def construct(self, x):
        return self.act(self.bn(self.conv(x)))


class Bottleneck(nn.Cell):
    def __init__(self, c, shortcut):
        super().__init__()
        self.cv1, self.cv2 = Conv(c, c), Conv(c, c, 3)
        self.shortcut = shortcut

    def construct(self, x):
        y = self.cv2(self.cv1(x))
        return x + y if self.shortcut else y


class C3(nn.Cell):
    def __init__(self, a, b, n, shortcut=True):
        super().__init__()
        self.cv1, self.cv2, self.cv3 = Conv(a, b // 2), Conv(a, b // 2), Conv(b, b)
        self.m = nn.SequentialCell([Bottleneck(b // 2, shortcut) for _ in range(n)])

    def construct(self, x):
        return self.cv3(ops.concat((self.m(self.cv1(x)), self.cv2(x)), 1))


class SPPF(nn.Cell):
    def __init__(self, a, b):
        super().__init__()
        self.cv1, self.cv2 = Conv(a, a // 2), Conv(a * 2, b)
        self.pool = nn.MaxPool2d(5, 1, pad_mode="same")

    def construct(self, x):
        x = self.cv1(x)
        y = self.pool(x)
        z = self.pool(y)
        return self.cv2(ops.concat((x, y, z, self.pool(z)), 1))


class Upsample(nn.Cell):
    def construct(self, x):
        return ops.interpolate(x, size=(2 * x.shape[2], 2 * x.shape[3]), mode="nearest")


class Concat(nn.Cell):
    def construct(self, x):
        return ops.concat(x, 1)


class Detect(nn.Cell):
    """For each scale [batch, 3 anchors, rows, columns, 5 + classes]."""

    def __init__(self, classes, widths):
        super().__init__()
        self.m = nn.CellList([nn.Conv2d(c, 3 * (5 + classes), 1, has_bias=True) for c in widths])

    def construct(self, xs):
        found = []
        for conv, x in zip(self.m, xs):
            y = conv(x)
            n, c, h, w = y.shape
            found.append(y.reshape(n, 3, c // 3, h, w).transpose(0, 1, 3, 4, 2))
        return tuple(found)


class Yolo(nn.Cell):
    """The layers under the numbers that they have in PyTorch's state dict; `sources` says whose outputs each one takes."""

    def __init__(self, classes=80, width=32):
        super().__init__()
        w = [width * 2**i for i in range(5)]
        layers = [
            (Conv(3, w[0], 6, 2, 2), -1), (Conv(w[0], w[1], 3, 2), -1), (C3(w[1], w[1], 1), -1), (Conv(w[1], w[2], 3, 2), -1),
            (C3(w[2], w[2], 2), -1), (Conv(w[2], w[3], 3, 2), -1), (C3(w[3], w[3], 3), -1), (Conv(w[3], w[4], 3, 2), -1),
            (C3(w[4], w[4], 1), -1), (SPPF(w[4], w[4]), -1),
            (Conv(w[4], w[3]), -1), (Upsample(), -1), (Concat(), (-1, 6)), (C3(w[4], w[3], 1, False), -1),
            (Conv(w[3], w[2]), -1), (Upsample(), -1), (Concat(), (-1, 4)), (C3(w[3], w[2], 1, False), -1),
            (Conv(w[2], w[2], 3, 2), -1), (Concat(), (-1, 14)), (C3(w[3], w[3], 1, False), -1),
            (Conv(w[3], w[3], 3, 2), -1), (Concat(), (-1, 10)), (C3(w[4], w[4], 1, False), -1),
            (Detect(classes, w[2:]), (17, 20, 23)),
        ]  # fmt: skip
        self.model = nn.CellList([layer for layer, _ in layers])
        self.sources = tuple(source for _, source in layers)

    def construct(self, x):
        outputs = []
        for layer, source in zip(self.model, self.sources):
            if isinstance(source, tuple):
                x = layer(tuple([x if i == -1 else outputs[i] for i in source]))
            else:
                x = layer(x)
            outputs.append(x)
        return x


def ciou(xy, wh, box):
    """Complete intersection over union of boxes given by centre and size; [..., 2], [..., 2], [..., 4] -> [...]."""
    other_xy, other_wh = box[..., :2], box[..., 2:]
    low, high = xy - wh / 2, xy + wh / 2
    other_low, other_high = other_xy - other_wh / 2, other_xy + other_wh / 2
    inner = ops.relu(ops.minimum(high, other_high) - ops.maximum(low, other_low))
    common = inner[..., 0] * inner[..., 1]
    iou = common / (wh[..., 0] * wh[..., 1] + other_wh[..., 0] * other_wh[..., 1] - common + 1e-7)
    hull = ops.maximum(high, other_high) - ops.minimum(low, other_low)
    apart = ops.square(other_xy - xy).sum(-1) / (ops.square(hull).sum(-1) + 1e-7)
    turn = (4 / np.pi**2) * ops.square(ops.atan(other_wh[..., 0] / (other_wh[..., 1] + 1e-7)) - ops.atan(wh[..., 0] / (wh[..., 1] + 1e-7)))
    alpha = ops.stop_gradient(turn / (turn - iou + 1 + 1e-7))
    return iou - apart - alpha * turn


class Loss(nn.Cell):
    """Boxes, objectness and classes; the cells that answer for an object are chosen before, by NumPy."""

    def __init__(self, classes, size):
        super().__init__()
        self.anchors = [Tensor((ANCHORS[i] / STRIDES[i]).reshape(1, 3, 1, 1, 2)) for i in range(3)]
        self.gain_object, self.gain_class = (size / 640) ** 2, 0.5 * classes / 80

    def construct(self, outputs, targets):
        loss = 0.0
        for out, target, anchor, balance in zip(outputs, targets, self.anchors, BALANCE):
            mask, box, kinds = target[..., 0], target[..., 1:5], target[..., 5:]
            count = mask.sum() + 1e-6
            xy, wh = ops.sigmoid(out[..., :2]) * 2 - 0.5, ops.square(ops.sigmoid(out[..., 2:4]) * 2) * anchor
            iou = ciou(xy, wh, box)
            there = ops.stop_gradient(ops.relu(iou)) * mask
            loss += 0.05 * ((1 - iou) * mask).sum() / count
            loss += balance * self.gain_object * cross_entropy(out[..., 4], there).mean()
            loss += self.gain_class * (cross_entropy(out[..., 5:], kinds).mean(-1) * mask).sum() / count
        return loss * outputs[0].shape[0]


def cross_entropy(x, y):
    """Binary cross entropy of logits, element by element."""
    return ops.relu(x) - x * y + ops.log(1 + ops.exp(-ops.abs(x)))


class WithLoss(nn.Cell):
    def __init__(self, net, loss):
        super().__init__()
        self.net, self.loss = net, loss

    def construct(self, images, small, middle, large):
        return self.loss(self.net(images), (small, middle, large))


def assign(boxes, batch, size, classes):
    """Per scale [batch, 3, rows, columns, 1 + 4 + classes]: whether this anchor answers here, for which box (in cells), of which class."""
    targets = []
    for anchors, stride in zip(ANCHORS, STRIDES):
        cells = size // stride
        target = np.zeros((batch, 3, cells, cells, 5 + classes), np.float32)
        for image, kind, *place in boxes:
            x, y, w, h = np.array(place) * cells
            for a, (anchor_w, anchor_h) in enumerate(anchors / stride):
                if max(w / anchor_w, anchor_w / w, h / anchor_h, anchor_h / h) >= 4:
                    continue
                column, row = int(x), int(y)
                sides = [(0, 0), (-1 if x - column < 0.5 else 1, 0), (0, -1 if y - row < 0.5 else 1)]  # the two nearest cells answer, too
                for i, j in sides:
                    if 0 <= column + i < cells and 0 <= row + j < cells:
                        cell = target[int(image), a, row + j, column + i]
                        cell[:5] = 1, x - column - i, y - row - j, w, h
                        cell[5:] = np.arange(classes) == kind
        targets.append(target)
    return targets


def draw(count, size, classes, rng):
    """Images [count, 3, size, size] in 0..1 and their boxes; the class is the colour."""
    colours = np.random.RandomState(7).uniform(0.2, 1, (classes, 3)).astype(np.float32)
    images, boxes = (0.2 * rng.rand(count, 3, size, size)).astype(np.float32), []
    for n in range(count):
        for _ in range(rng.randint(1, 4)):
            kind, (w, h) = rng.randint(min(classes, 8)), rng.uniform(0.15, 0.5, 2)
            x, y = rng.uniform(w / 2, 1 - w / 2), rng.uniform(h / 2, 1 - h / 2)
            rows, columns = slice(int((y - h / 2) * size), int((y + h / 2) * size)), slice(int((x - w / 2) * size), int((x + w / 2) * size))
            images[n, :, rows, columns] = colours[kind][:, None, None]
            boxes.append((n, kind, x, y, w, h))
    return images, np.array(boxes, np.float32)


def build(args):
    return Yolo(args.classes, args.width)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--size", type=int, default=128, help="a multiple of 32")
    parser.add_argument("--classes", type=int, default=80)
    parser.add_argument("--width", type=int, default=32, help="channels of the first layer (32 is the s model)")
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--weights", default="", help="checkpoint made by jumar convert-weights")
    parser.add_argument("--data", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=["graph", "pynative"], default="graph")
    args = parser.parse_args(argv)
    ms.set_seed(args.seed)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)

    if args.data:
        with np.load(args.data) as file:
            images, boxes = file["images"].astype(np.float32) / 255, file["boxes"]
    else:
        images, boxes = draw(4 * args.batch, args.size, args.classes, np.random.RandomState(args.seed))
    net = build(args)
    if args.weights:
        missing, unused = ms.load_param_into_net(net, ms.load_checkpoint(args.weights))
        print(f"weights from {args.weights}: {len(missing)} parameters missing, {len(unused)} unused")
    weights = [p for p in net.trainable_params() if p.name.endswith(".weight")]
    others = [p for p in net.trainable_params() if not p.name.endswith(".weight")]
    groups = [{"params": weights, "weight_decay": 5e-4}, {"params": others, "weight_decay": 0.0}]
    optimizer = nn.SGD(groups, args.rate, momentum=0.937, nesterov=True)
    step = nn.TrainOneStepCell(WithLoss(net, Loss(args.classes, args.size)), optimizer).set_train()
    print(f"{sum(p.size for p in net.trainable_params()) / 1e6:.2f} million weights, {args.batch} images of {args.size}x{args.size} a step")
    losses = []
    for i in range(args.steps):
        at = i * args.batch % (len(images) - args.batch + 1)
        mine = boxes[(boxes[:, 0] >= at) & (boxes[:, 0] < at + args.batch)] - [at, 0, 0, 0, 0, 0]
        targets = assign(mine, args.batch, args.size, args.classes)
        start = time.time()
        losses.append(float(step(Tensor(images[at : at + args.batch]), *map(Tensor, targets)).asnumpy()))
        if i % 5 == 4 or i == 0:
            print(f"step {i + 1:3}  loss {losses[-1]:.4f}  {time.time() - start:.2f} s")
    return losses


if __name__ == "__main__":
    main()
