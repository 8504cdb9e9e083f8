"""PyTorch twins of examples that MindSpore's CPU does not run as they are (a loss scale) or not in bearable time.

    python tests/examples/torch_twins.py resnet50_cifar10 --out reference/resnet50_cifar10.json -- ARGUMENTS      (needs torch and jumar)
In: an example's arguments; its data and its initial weights by the example's own code and `curve.initial`.  Out: what curve.py writes.
The twin computes in fp32: mixed precision must not move the curve by more than the tolerance.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  (as all PyTorch code has it)
from torch import nn

import jumar

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2] / "examples")]
import curve  # noqa: E402

NAMES = {"running_mean": "moving_mean", "running_var": "moving_variance"}


class Bottleneck(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(a, b, 1, bias=False), nn.BatchNorm2d(b)
        self.conv2, self.bn2 = nn.Conv2d(b, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b)
        self.conv3, self.bn3 = nn.Conv2d(b, 4 * b, 1, bias=False), nn.BatchNorm2d(4 * b)
        self.down = None
        if stride != 1 or a != 4 * b:
            self.down = nn.Sequential(nn.Conv2d(a, 4 * b, 1, stride, bias=False), nn.BatchNorm2d(4 * b))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu((x if self.down is None else self.down(x)) + y)


class ResNet50(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        stages, a = [], width
        for i, count in enumerate((3, 4, 6, 3)):
            for j in range(count):
                stages.append(Bottleneck(a, width * 2**i, 2 if i > 0 and j == 0 else 1))
                a = width * 2**i * 4
        self.blocks = nn.Sequential(*stages)
        self.head = nn.Linear(a, 10)

    def forward(self, x):
        return self.head(self.blocks(F.relu(self.bn1(self.conv1(x)))).mean((2, 3)))


def fill(net: nn.Module) -> nn.Module:
    """`net` with the weights that curve.py gives the example."""
    norms = {name for name, module in net.named_modules() if isinstance(module, nn.BatchNorm2d)}
    with torch.no_grad():
        for name, array in net.state_dict().items():
            head, _, last = name.rpartition(".")
            if head in norms:
                last = {"weight": "gamma", "bias": "beta"}.get(last, NAMES.get(last, last))
            if array.is_floating_point():
                array.copy_(torch.from_numpy(curve.initial(f"{head}.{last}", tuple(array.shape))))
    return net.train()


def resnet50_cifar10(given: list[str]) -> list[float]:
    """The losses of ResNet-50 on synthetic stripes."""
    parser = argparse.ArgumentParser()
    for name, default in (("steps", 20), ("batch", 32), ("width", 64), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=0.005)
    args, _ = parser.parse_known_args(given)
    import resnet50_cifar10 as example

    data = example.Synthetic(min(args.steps * args.batch, 3200), args.seed)
    net = fill(ResNet50(args.width))
    # as MindSpore's optimisers do, unless told otherwise: no decay for gamma and beta
    plain = [p for name, p in net.named_parameters() if "bn" in name or "down.1" in name]
    decayed = [p for name, p in net.named_parameters() if not ("bn" in name or "down.1" in name)]
    groups = [{"params": decayed, "weight_decay": 5e-4}, {"params": plain, "weight_decay": 0.0}]
    optimizer = torch.optim.SGD(groups, lr=1.0, momentum=0.9)
    progress = np.arange(args.steps) / args.steps
    rates = args.rate * np.minimum(1, 5 * progress + 0.02) * (1 + np.cos(np.pi * progress)) / 2
    losses = []
    for i, rate in enumerate(rates):
        at = i * args.batch % (len(data) // args.batch * args.batch)
        loss = F.cross_entropy(
            net(torch.from_numpy(data.images[at : at + args.batch])), torch.from_numpy(data.labels[at : at + args.batch]).long()
        )
        optimizer.zero_grad()
        loss.backward()
        for group in optimizer.param_groups:
            group["lr"] = float(np.float32(rate))
        optimizer.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("example", choices=["resnet50_cifar10"])
    parser.add_argument("--out", type=Path, required=True)
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args, given = parser.parse_args(sys.argv[1:end]), sys.argv[end + 1 :]
    jumar.as_mindspore()
    start = time.perf_counter()
    losses = {"resnet50_cifar10": resnet50_cifar10}[args.example](given)
    found = {
        "example": args.example,
        "arguments": given,
        "by": f"torch {torch.__version__}",
        "seconds": round(time.perf_counter() - start, 1),
        "losses": [float(f"{loss:.7g}") for loss in losses],
    }
    args.out.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
