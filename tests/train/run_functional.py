"""A functional loop that goes on where it was killed: `python run_functional.py FOLDER EPOCHS [SAVE_STEPS]` prints a digest of all it computed."""

from __future__ import annotations

import hashlib
import os
import sys

import numpy as np

import jumar
from jumar import dataset, nn, ops
from jumar.train import TrainState


def main(folder: str, epochs: int, save_steps: int) -> None:
    jumar.set_seed(3)
    dataset.config.set_seed(3)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((40, 6)).astype(np.float32), rng.integers(0, 3, 40).astype(np.int32)
    net = nn.SequentialCell(nn.Dense(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(p=0.3), nn.Dense(16, 3))
    net.set_train()
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    data = dataset.NumpySlicesDataset((x, y), ["x", "y"], shuffle=True)
    data = data.batch(8, drop_remainder=True)

    def forward(a: object, b: object) -> object:
        return ops.cross_entropy(net(a), b)

    step = jumar.value_and_grad(forward, None, optimizer.parameters)
    state = TrainState(net=net, optimizer=optimizer, dataset=data)
    path = os.path.join(folder, "state.ckpt")
    done = state.load(path)["step"] if os.path.exists(path) else 0
    total = epochs * data.get_dataset_size()
    rows = data.create_tuple_iterator(num_epochs=-1)
    while done < total:
        for row in rows:
            _, grads = step(row[0] + noise(), row[1])
            optimizer(grads)
            done += 1
            if done % save_steps == 0:
                state.save(path, background=True, step=done)
            if done == total:
                break
    digest = hashlib.sha256(b"".join(p.asnumpy().tobytes() for p in [*net.get_parameters(), *optimizer.get_parameters()]))
    print(digest.hexdigest(), flush=True)


def noise() -> jumar.Tensor:
    """Noise of NumPy's global stream, which must go on, too."""
    return jumar.Tensor(np.random.standard_normal(6).astype(np.float32) * 0.01)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 3)
