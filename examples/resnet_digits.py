"""A small ResNet on scikit-learn's digits, written as functions: value_and_grad, gradient clipping, cosine learning rate, jit.

Data: digits of 8x8, scaled up to 16x16, or --data FILE.npz with `images` [n, h, w] in 0..255 and `labels` [n].
    python resnet_digits.py [--steps 120] [--mode graph|pynative] [--seed 1]
"""

import argparse
import time

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops


class Block(nn.Cell):
    """Two 3x3 convolutions with a way around them."""

    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride=stride, pad_mode="pad", padding=1)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, pad_mode="pad", padding=1)
        self.bn2 = nn.BatchNorm2d(channels)
        self.down = None
        if stride != 1 or channels_in != channels:
            self.down = nn.SequentialCell(nn.Conv2d(channels_in, channels, 1, stride=stride), nn.BatchNorm2d(channels))

    def construct(self, x):
        y = ops.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.down is not None:
            x = self.down(x)
        return ops.relu(x + y)


class ResNet(nn.Cell):
    def __init__(self, widths=(16, 32, 64), classes=10):
        super().__init__()
        self.stem = nn.SequentialCell(nn.Conv2d(1, widths[0], 3), nn.BatchNorm2d(widths[0]), nn.ReLU())
        blocks, channels = [], widths[0]
        for i, width in enumerate(widths):
            blocks.append(Block(channels, width, 1 if i == 0 else 2))
            channels = width
        self.blocks = nn.SequentialCell(blocks)
        self.head = nn.Dense(channels, classes)

    def construct(self, x):
        x = self.blocks(self.stem(x))
        return self.head(ops.mean(x, (2, 3)))


def load(path, seed):
    if path:
        with np.load(path) as file:
            images, labels = file["images"].astype(np.float32) / 255, file["labels"].astype(np.int32)
    else:
        from sklearn.datasets import load_digits

        digits = load_digits()
        images, labels = digits.images.astype(np.float32).repeat(2, axis=1).repeat(2, axis=2) / 16, digits.target.astype(np.int32)
    order = np.random.RandomState(seed).permutation(len(images))
    return images[order, None], labels[order]


def build(args):
    return ResNet()


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--data", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=["graph", "pynative"], default="graph")
    args = parser.parse_args(argv)
    ms.set_seed(args.seed)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)

    images, labels = load(args.data, args.seed)
    test = len(images) // 5
    train_images, train_labels = images[test:], labels[test:]
    net = build(args)
    rates = nn.cosine_decay_lr(0.001, 0.1, args.steps, 1, args.steps)
    optimizer = nn.Momentum(net.trainable_params(), rates, momentum=0.9, weight_decay=1e-4)
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.05)

    def forward(image, label):
        logits = net(image)
        return loss_fn(logits, label), logits

    grad_fn = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)

    def step(image, label):
        (loss, logits), grads = grad_fn(image, label)
        grads = ops.clip_by_global_norm(grads, 5.0)
        optimizer(grads)
        return loss, (logits.argmax(axis=1) == label).astype(ms.float32).mean()

    if args.mode == "graph":
        step = ms.jit(step)
    net.set_train()
    losses, start = [], time.time()
    for i in range(args.steps):
        at = i * args.batch % (len(train_images) - args.batch + 1)
        loss, right = step(Tensor(train_images[at : at + args.batch]), Tensor(train_labels[at : at + args.batch]))
        losses.append(float(loss.asnumpy()))
        if i % 20 == 19 or i == 0:
            print(f"step {i + 1:4}  loss {losses[-1]:.4f}  right in this batch {float(right.asnumpy()):.0%}  {time.time() - start:.1f} s")

    net.set_train(False)
    predicted = np.concatenate([net(Tensor(images[i : min(i + 60, test)])).asnumpy().argmax(1) for i in range(0, test, 60)])
    print(f"test accuracy after {args.steps} steps: {(predicted == labels[:test]).mean():.2%}")
    return losses


if __name__ == "__main__":
    main()
