"""A multilayer perceptron on a table: scikit-learn's breast cancer data, with TrainOneStepCell and a learning rate that decays.

Data: 569 rows of 30 columns from scikit-learn, or --data FILE.csv whose last column is 0 or 1 (no header).
    python mlp_tabular.py [--steps 300] [--mode graph|pynative] [--seed 1]
"""

import argparse

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn


def load(path, seed):
    """Columns with mean 0 and variance 1, and the label as a float column."""
    if path:
        table = np.loadtxt(path, delimiter=",", dtype=np.float32)
        rows, labels = table[:, :-1], table[:, -1]
    else:
        from sklearn.datasets import load_breast_cancer

        rows, labels = load_breast_cancer(return_X_y=True)
    rows = (rows - rows.mean(0)) / (rows.std(0) + 1e-6)
    order = np.random.RandomState(seed).permutation(len(rows))
    return rows[order].astype(np.float32), labels[order, None].astype(np.float32)


def build(args):
    return nn.SequentialCell(
        nn.Dense(args.columns, 64, activation="relu"),
        nn.Dropout(p=args.dropout),
        nn.Dense(64, 32, activation="tanh"),
        nn.Dense(32, 1),
    )


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--data", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=["graph", "pynative"], default="graph")
    args = parser.parse_args(argv)
    ms.set_seed(args.seed)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)

    rows, labels = load(args.data, args.seed)
    test = len(rows) // 4
    args.columns = rows.shape[1]
    net = build(args)
    rate = nn.ExponentialDecayLR(0.01, 0.9, 50)
    optimizer = nn.Adam(net.trainable_params(), rate, weight_decay=1e-4)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.BCEWithLogitsLoss()), optimizer)
    step.set_train()
    print(f"{len(rows) - test} rows to train on, {test} to test with, {sum(p.size for p in net.trainable_params())} weights")
    losses = []
    for i in range(args.steps):
        at = test + i * args.batch % (len(rows) - test - args.batch + 1)
        loss = step(Tensor(rows[at : at + args.batch]), Tensor(labels[at : at + args.batch]))
        losses.append(float(loss.asnumpy()))
        if i % 50 == 49 or i == 0:
            print(f"step {i + 1:4}  loss {losses[-1]:.4f}")

    net.set_train(False)
    right = (net(Tensor(rows[:test])).asnumpy() > 0) == (labels[:test] > 0.5)
    print(f"test accuracy after {args.steps} steps: {right.mean():.2%}")
    return losses


if __name__ == "__main__":
    main()
