"""ResNet-50 on CIFAR-10 in mixed precision: Model with amp_level="O2", a loss scale that adapts, callbacks and checkpoints.

Data: --data FOLDER with the binary version of CIFAR-10 (data_batch_1.bin ... test_batch.bin). Without it the images are SYNTHETIC:
ten kinds of coloured stripes with noise, enough to see the loss fall; the accuracy says nothing about CIFAR-10.
    python resnet50_cifar10.py [--data FOLDER] [--steps 20] [--amp O2] [--loss-scale dynamic|fixed|none] [--mode graph|pynative] [--seed 1]
MindSpore itself refuses a loss scale on the CPU: there give --loss-scale none.
"""

import argparse

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from mindspore.dataset import vision
from mindspore.train import (
    Callback,
    CheckpointConfig,
    DynamicLossScaleManager,
    FixedLossScaleManager,
    LossMonitor,
    Model,
    ModelCheckpoint,
    TimeMonitor,
)

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


class Bottleneck(nn.Cell):
    """1x1, 3x3, 1x1 with a way around them."""

    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 1)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride=stride, pad_mode="pad", padding=1)
        self.bn2 = nn.BatchNorm2d(channels)
        self.conv3 = nn.Conv2d(channels, channels * 4, 1)
        self.bn3 = nn.BatchNorm2d(channels * 4)
        self.relu = nn.ReLU()
        self.down = None
        if stride != 1 or channels_in != channels * 4:
            self.down = nn.SequentialCell([nn.Conv2d(channels_in, channels * 4, 1, stride=stride), nn.BatchNorm2d(channels * 4)])

    def construct(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        if self.down is not None:
            x = self.down(x)
        return self.relu(x + y)


class ResNet50(nn.Cell):
    """For images of 32x32: a first convolution of 3x3 and no pooling."""

    def __init__(self, blocks=(3, 4, 6, 3), width=64, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, pad_mode="pad", padding=1)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        stages, channels = [], width
        for i, count in enumerate(blocks):
            for j in range(count):
                stages.append(Bottleneck(channels, width * 2**i, 2 if i > 0 and j == 0 else 1))
                channels = width * 2**i * 4
        self.blocks = nn.SequentialCell(stages)
        self.head = nn.Dense(channels, classes)

    def construct(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.blocks(x)
        return self.head(ops.mean(x, (2, 3)))


class Synthetic:
    """Coloured stripes: the label decides their direction, their width and their colour."""

    def __init__(self, count, seed):
        rng = np.random.RandomState(seed)
        self.labels = rng.randint(0, 10, count).astype(np.int32)
        rows, columns = np.mgrid[:32, :32]
        self.images = np.empty((count, 3, 32, 32), np.float32)
        for image, label in zip(self.images, self.labels):
            angle, wave = label * np.pi / 10, 0.4 + 0.1 * (label % 3)
            stripes = np.sin(wave * (rows * np.cos(angle) + columns * np.sin(angle)) + rng.uniform(0, 6))
            colour = np.array([np.cos(label), np.sin(label), 0.5])[:, None, None]
            image[:] = stripes * colour + 0.8 * rng.standard_normal((3, 32, 32))

    def __getitem__(self, index):
        return self.images[index], self.labels[index]

    def __len__(self):
        return len(self.labels)


def dataset(args, usage):
    if not args.data:
        count = args.steps * args.batch if usage == "train" else 4 * args.batch
        found = ds.GeneratorDataset(Synthetic(min(count, 3200), args.seed + (usage == "test")), ["image", "label"], shuffle=False)
        return found.batch(args.batch, drop_remainder=True)
    found = ds.Cifar10Dataset(args.data, usage=usage, shuffle=usage == "train")
    moves = [vision.RandomCrop(32, 4), vision.RandomHorizontalFlip()] if usage == "train" else []
    scale = [vision.Rescale(1 / 255, 0), vision.Normalize(MEAN, STD), vision.HWC2CHW()]
    found = found.map(moves + scale, "image").map(lambda label: label.astype(np.int32), "label")
    return found.batch(args.batch, drop_remainder=True)


class Losses(Callback):
    """Keeps the loss of each step, and ends the training after so many."""

    def __init__(self, steps):
        self.steps, self.values = steps, []

    def on_train_step_end(self, run_context):
        outputs = run_context.original_args().net_outputs
        loss = outputs[0] if isinstance(outputs, tuple) else outputs  # with a loss scale: (loss, overflow, scale)
        self.values.append(float(loss.asnumpy()))
        if len(self.values) >= self.steps:
            run_context.request_stop()


def build(args):
    return ResNet50(width=args.width)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=64, help="channels of the first stage (64 is ResNet-50)")
    parser.add_argument("--rate", type=float, default=0.005, help="the highest learning rate")
    parser.add_argument("--amp", choices=["O0", "O1", "O2", "O3"], default="O2")
    parser.add_argument("--loss-scale", choices=["dynamic", "fixed", "none"], default="dynamic")
    parser.add_argument("--checkpoints", default="", help="folder to keep checkpoints in")
    parser.add_argument("--data", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=["graph", "pynative"], default="graph")
    args = parser.parse_args(argv)
    ms.set_seed(args.seed)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)

    train_set, test_set = dataset(args, "train"), dataset(args, "test")
    per_epoch = train_set.get_dataset_size()
    epochs = -(-args.steps // per_epoch)
    if not args.data:
        print("no --data: the images are synthetic stripes")
    print(f"{per_epoch} steps an epoch, {epochs} epochs, amp {args.amp}, loss scale {args.loss_scale}")
    net = build(args)
    # up to the full rate in the first fifth, then down along half a cosine
    progress = np.arange(args.steps) / args.steps
    rates = args.rate * np.minimum(1, 5 * progress + 0.02) * (1 + np.cos(np.pi * progress)) / 2
    rates = np.append(rates, [0.0] * (epochs * per_epoch - args.steps)).astype(np.float32).tolist()
    if args.loss_scale == "dynamic":
        manager = DynamicLossScaleManager(init_loss_scale=2**16, scale_window=50)
    else:
        manager = FixedLossScaleManager(1024.0, drop_overflow_update=False) if args.loss_scale == "fixed" else None
    # a fixed scale is undone by the optimiser, an adapting one by the train step
    undo = 1024.0 if args.loss_scale == "fixed" else 1.0
    optimizer = nn.Momentum(net.trainable_params(), rates, 0.9, weight_decay=5e-4, loss_scale=undo)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    metrics = {"top1": nn.Top1CategoricalAccuracy()}
    model = Model(net, loss, optimizer, metrics=metrics, amp_level=args.amp, loss_scale_manager=manager)
    losses = Losses(args.steps)
    callbacks = [LossMonitor(max(1, args.steps // 10)), TimeMonitor(), losses]
    if args.checkpoints:
        config = CheckpointConfig(save_checkpoint_steps=per_epoch, keep_checkpoint_max=2)
        callbacks.append(ModelCheckpoint("resnet50", args.checkpoints, config))
    model.train(epochs, train_set, callbacks=callbacks, dataset_sink_mode=False)
    print(f"accuracy on the test set after {len(losses.values)} steps: {model.eval(test_set, dataset_sink_mode=False)['top1']:.1%}")
    return losses.values


if __name__ == "__main__":
    main()
