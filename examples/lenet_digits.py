"""LeNet-5 on handwritten digits, with Model.train: from images to a test accuracy above 98 % in under a minute.

Data: scikit-learn's digits (1797 images of 8x8, scaled up to 32x32), or --data FILE.npz with `images` [n, h, w] in 0..255 and `labels` [n].
Each image is moved by up to three pixels each time it is seen, else 1400 images are too few.
    python lenet_digits.py [--steps 900] [--mode graph|pynative] [--seed 1]
"""

import argparse

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.common.initializer import Normal
from mindspore.train import Callback, LossMonitor, Model, TimeMonitor


class LeNet5(nn.Cell):
    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(16 * 5 * 5, 120, weight_init=Normal(0.02))
        self.fc2 = nn.Dense(120, 84, weight_init=Normal(0.02))
        self.fc3 = nn.Dense(84, classes, weight_init=Normal(0.02))

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.flatten(x)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


class Losses(Callback):
    """Keeps the loss of each step, and ends the training after so many."""

    def __init__(self, steps):
        self.steps = steps
        self.values = []

    def on_train_step_end(self, run_context):
        self.values.append(float(run_context.original_args().net_outputs.asnumpy()))
        if len(self.values) >= self.steps:
            run_context.request_stop()


class Moved:
    """The images in a new order each epoch, each moved by up to three pixels; the random numbers are NumPy's, the same everywhere."""

    def __init__(self, images, labels, seed):
        self.images, self.labels, self.seed, self.epoch = images, labels, seed, 0

    def __len__(self):
        return len(self.images)

    def __iter__(self):
        self.epoch += 1
        rng = np.random.RandomState(self.seed * 1000 + self.epoch)
        for i in rng.permutation(len(self.images)):
            down, right = rng.randint(0, 7, 2)
            yield np.pad(self.images[i], ((0, 0), (3, 3), (3, 3)))[:, down : down + 32, right : right + 32], self.labels[i]


def enlarge(image, size=32):
    """An image scaled up to size x size, linear between pixels."""
    at = np.clip((np.arange(size) + 0.5) * len(image) / size - 0.5, 0, len(image) - 1)
    low = np.floor(at).astype(int)
    high, part = np.minimum(low + 1, len(image) - 1), (at - low).astype(np.float32)
    image = image[low] * (1 - part)[:, None] + image[high] * part[:, None]
    return image[:, low] * (1 - part) + image[:, high] * part


def load(path, seed):
    """Images [n, 1, 32, 32] in 0..1 and labels; the order is NumPy's, so that every run sees the same one."""
    if path:
        with np.load(path) as file:
            images, labels = file["images"].astype(np.float32) / 255, file["labels"].astype(np.int32)
    else:
        from sklearn.datasets import load_digits

        digits = load_digits()
        images, labels = digits.images.astype(np.float32) / 16, digits.target.astype(np.int32)
    images = np.stack([enlarge(image) for image in images])
    order = np.random.RandomState(seed).permutation(len(images))
    return images[order, None], labels[order]


def build(args):
    return LeNet5()


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=900)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=0.003, help="the learning rate at the start")
    parser.add_argument("--data", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=["graph", "pynative"], default="graph")
    args = parser.parse_args(argv)
    ms.set_seed(args.seed)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)

    images, labels = load(args.data, args.seed)
    test = len(images) // 5
    train_set = ds.GeneratorDataset(Moved(images[test:], labels[test:], args.seed), ["image", "label"], shuffle=False)
    train_set = train_set.batch(args.batch, drop_remainder=True)
    test_set = ds.NumpySlicesDataset((images[:test], labels[:test]), ["image", "label"], shuffle=False).batch(60)
    print(f"{len(images) - test} images to train on, {test} to test with, {train_set.get_dataset_size()} steps an epoch")

    net = build(args)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    per_epoch = train_set.get_dataset_size()
    rates = nn.cosine_decay_lr(0.0, args.rate, args.steps, per_epoch, -(-args.steps // per_epoch))
    optimizer = nn.Adam(net.trainable_params(), rates)
    model = Model(net, loss, optimizer, metrics={"accuracy"})
    losses = Losses(args.steps)
    callbacks = [LossMonitor(per_epoch), TimeMonitor(), losses]
    model.train(-(-args.steps // per_epoch), train_set, callbacks=callbacks, dataset_sink_mode=False)
    accuracy = model.eval(test_set, dataset_sink_mode=False)["accuracy"]
    print(f"test accuracy after {len(losses.values)} steps: {accuracy:.2%}")
    return losses.values


if __name__ == "__main__":
    main()
