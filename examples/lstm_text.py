"""An LSTM that tells two kinds of words apart, letter by letter; words of all lengths, padded in the batch.

Data: words made of the syllables of two invented languages, or --data FILE with lines `word<TAB>0` or `word<TAB>1` (letters a to z).
    python lstm_text.py [--steps 200] [--mode graph|pynative] [--seed 1]
"""

import argparse
import time

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

SYLLABLES = (
    ("ka", "mi", "to", "shi", "no", "ra", "ku", "ha", "na", "ri", "sa", "te"),
    ("ber", "gen", "stad", "holm", "vik", "fors", "lund", "ka", "na", "ri", "by", "ost"),
)
LENGTH = 16


def invent(count, rng):
    """Words and their language, e.g. ("kamito", 0), ("lundby", 1)."""
    words = []
    for i in range(count):
        language = i % 2
        words.append(("".join(rng.choice(SYLLABLES[language], rng.randint(1, 5)))[:LENGTH], language))
    return words


def encode(words):
    """Letters as 1..26, padded with 0; [n, LENGTH] int32, lengths [n] int32, labels [n] int32."""
    letters = np.zeros((len(words), LENGTH), np.int32)
    for i, (word, _) in enumerate(words):
        letters[i, : len(word)] = [ord(c) - 96 for c in word[:LENGTH]]
    lengths = np.array([min(len(word), LENGTH) for word, _ in words], np.int32)
    return letters, lengths, np.array([label for _, label in words], np.int32)


class Classifier(nn.Cell):
    def __init__(self, hidden=64):
        super().__init__()
        self.embedding = nn.Embedding(27, 32)
        self.lstm = nn.LSTM(32, hidden, num_layers=1, batch_first=True)
        self.head = nn.Dense(hidden, 2)
        self.positions = Tensor(np.arange(LENGTH, dtype=np.int32)[None, :, None])

    def construct(self, letters, lengths):
        states, _ = self.lstm(self.embedding(letters))
        # the mean of the states at letters, not at the padding behind them
        mask = (self.positions < lengths.reshape((-1, 1, 1))).astype(ms.float32)
        mean = (states * mask).sum(axis=1) / mask.sum(axis=1)
        return self.head(mean)


def build(args):
    return Classifier()


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--data", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=["graph", "pynative"], default="graph")
    args = parser.parse_args(argv)
    ms.set_seed(args.seed)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)

    rng = np.random.RandomState(args.seed)
    if args.data:
        with open(args.data, encoding="utf-8") as file:
            words = [(word, int(label)) for word, label in (line.split("\t") for line in file if line.strip())]
    else:
        words = invent(2000, rng)
    words = [words[i] for i in rng.permutation(len(words))]
    letters, lengths, labels = encode(words)
    test = len(words) // 5

    net = build(args)
    loss_fn = nn.CrossEntropyLoss()
    optimizer = nn.Adam(net.trainable_params(), 5e-3)

    def forward(letters, lengths, labels):
        return loss_fn(net(letters, lengths), labels)

    grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)

    def step(letters, lengths, labels):
        loss, grads = grad_fn(letters, lengths, labels)
        grads = ops.clip_by_norm(grads, 1.0)
        optimizer(grads)
        return loss

    if args.mode == "graph":
        step = ms.jit(step)
    net.set_train()
    losses, start = [], time.time()
    for i in range(args.steps):
        at = test + i * args.batch % (len(words) - test - args.batch + 1)
        part = slice(at, at + args.batch)
        losses.append(float(step(Tensor(letters[part]), Tensor(lengths[part]), Tensor(labels[part])).asnumpy()))
        if i % 25 == 24 or i == 0:
            print(f"step {i + 1:4}  loss {losses[-1]:.4f}  {time.time() - start:.1f} s")

    net.set_train(False)
    guess = net(Tensor(letters[:test]), Tensor(lengths[:test])).asnumpy().argmax(1)
    print(f"test accuracy after {args.steps} steps: {(guess == labels[:test]).mean():.2%}")
    for word, label in list(zip(words, guess))[:4]:
        print(f"  {word[0]:16} language {word[1]}, guessed {label}")
    return losses


if __name__ == "__main__":
    main()
