"""A generative adversarial network with two optimisers: one network draws digits, the other tells drawn from real.

Data: scikit-learn's digits (8x8), or --data FILE.npz with `images` [n, 8, 8] in 0..255.
    python gan_digits.py [--steps 1200] [--mode graph|pynative] [--seed 1]
"""

import argparse

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops


class Generator(nn.Cell):
    def __init__(self, noise=16):
        super().__init__()
        self.net = nn.SequentialCell(
            nn.Dense(noise, 128), nn.LayerNorm((128,)), nn.ReLU(), nn.Dense(128, 128), nn.ReLU(), nn.Dense(128, 64), nn.Sigmoid()
        )

    def construct(self, noise):
        return self.net(noise)


class Discriminator(nn.Cell):
    def __init__(self):
        super().__init__()
        self.net = nn.SequentialCell(nn.Dense(64, 128), nn.LeakyReLU(0.2), nn.Dense(128, 64), nn.LeakyReLU(0.2), nn.Dense(64, 1))

    def construct(self, images):
        return self.net(images)


class Pair(nn.Cell):
    """Both networks, each trained with the other one held still."""

    def __init__(self):
        super().__init__()
        self.generator = Generator()
        self.discriminator = Discriminator()


def load(path):
    if path:
        with np.load(path) as file:
            images = file["images"].astype(np.float32) / 255
    else:
        from sklearn.datasets import load_digits

        images = load_digits().images.astype(np.float32) / 16
    return images.reshape(len(images), 64)


def show(images):
    """Digits as letters, side by side."""
    shades = " .:-=+*#%@"
    for row in range(8):
        print("   " + "  ".join("".join(shades[min(9, int(v * 10))] * 2 for v in image.reshape(8, 8)[row]) for image in images))


def build(args):
    return Pair()


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--data", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=["graph", "pynative"], default="graph")
    args = parser.parse_args(argv)
    ms.set_seed(args.seed)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)

    rng = np.random.RandomState(args.seed)
    images = load(args.data)
    images = images[rng.permutation(len(images))]
    pair = build(args)
    generator, discriminator = pair.generator, pair.discriminator
    g_optimizer = nn.Adam(generator.trainable_params(), 1e-3, beta1=0.5)
    d_optimizer = nn.Adam(discriminator.trainable_params(), 1e-3, beta1=0.5)
    criterion = nn.BCEWithLogitsLoss()

    def d_forward(real, noise):
        drawn = ops.stop_gradient(generator(noise))
        on_real, on_drawn = discriminator(real), discriminator(drawn)
        return (criterion(on_real, ops.ones_like(on_real)) + criterion(on_drawn, ops.zeros_like(on_drawn))) / 2

    def g_forward(noise):
        judged = discriminator(generator(noise))
        return criterion(judged, ops.ones_like(judged))

    d_grad = ms.value_and_grad(d_forward, None, d_optimizer.parameters)
    g_grad = ms.value_and_grad(g_forward, None, g_optimizer.parameters)

    def d_step(real, noise):
        loss, grads = d_grad(real, noise)
        d_optimizer(grads)
        return loss

    def g_step(noise):
        loss, grads = g_grad(noise)
        g_optimizer(grads)
        return loss

    if args.mode == "graph":
        d_step, g_step = ms.jit(d_step), ms.jit(g_step)
    pair.set_train()
    losses = []
    for i in range(args.steps):
        at = i * args.batch % (len(images) - args.batch + 1)
        noise = Tensor(rng.standard_normal((args.batch, 16)).astype(np.float32))
        d_loss, g_loss = d_step(Tensor(images[at : at + args.batch]), noise), g_step(noise)
        losses.append(float(d_loss.asnumpy()) + float(g_loss.asnumpy()))
        if i % 150 == 149 or i == 0:
            print(f"step {i + 1:4}  discriminator {float(d_loss.asnumpy()):.4f}  generator {float(g_loss.asnumpy()):.4f}")

    pair.set_train(False)
    print("drawn:")
    show(generator(Tensor(rng.standard_normal((4, 16)).astype(np.float32))).asnumpy())
    return losses


if __name__ == "__main__":
    main()
