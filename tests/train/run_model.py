"""Model going on where it was killed: `python run_model.py FOLDER EPOCHS [SAVE_STEPS] [MODE]` prints a digest of all it computed."""

from __future__ import annotations

import hashlib
import sys

import numpy as np

import jumar
from jumar import dataset, nn, train


def main(folder: str, epochs: int, save_steps: int, mode: int) -> None:
    jumar.set_context(mode=mode)
    jumar.set_seed(3)
    dataset.config.set_seed(3)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((40, 6)).astype(np.float32), rng.integers(0, 3, 40).astype(np.int32)
    net = nn.SequentialCell(nn.Dense(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(p=0.3), nn.Dense(16, 3))
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    data = dataset.NumpySlicesDataset((x, y), ["x", "y"], shuffle=True).batch(8, drop_remainder=True)
    model = train.Model(net, loss, optimizer, metrics={"accuracy"}, loss_scale_manager=train.DynamicLossScaleManager(2**10, 2, 7))
    history = train.History()
    plateau = train.ReduceLROnPlateau("loss", factor=0.9, patience=1)
    model.train(epochs, data, [train.Resume(folder, save_steps), plateau, history])
    kept = [p.asnumpy().tobytes() for p in model.train_network.get_parameters()]
    manager = model._loss_scale_manager
    kept.append(repr((manager.loss_scale, manager.cur_iter, plateau.best, plateau.wait, optimizer.learning_rate.asnumpy().item())).encode())
    print(hashlib.sha256(b"".join(kept)).hexdigest(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 3, int(sys.argv[4]) if len(sys.argv) > 4 else 1)
