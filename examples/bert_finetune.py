"""BERT, small: pre-trained on sentences with words left out, saved, and fine-tuned to tell praise from complaint.

Data: sentences made from a small grammar with negations ("the film was not boring" is praise), or --data FILE with lines
`sentence<TAB>0|1`. The first phase writes the checkpoint that the second one starts from; --checkpoint FILE skips the first.
    python bert_finetune.py [--pretrain 150] [--steps 100] [--mode graph|pynative] [--seed 1]
"""

import argparse
import os
import tempfile
import time

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

PAD, CLS, MASK, UNKNOWN = 0, 1, 2, 3
LENGTH = 16
GOOD = "brilliant moving funny clever warm gripping lovely honest".split()
BAD = "boring dull clumsy cold endless empty noisy false".split()
THINGS = "film story music cast ending camera dialogue book play song".split()
LINKS = "was seemed felt looked".split()


def invent(count, rng):
    """Sentences and whether they praise."""
    found = []
    for _ in range(count):
        parts, praise = [], bool(rng.randint(2))
        for i in range(1 + rng.randint(2)):
            negated = rng.rand() < 0.4
            word = rng.choice(GOOD if praise != negated else BAD)
            parts += ["and"] * i + ["the", rng.choice(THINGS), rng.choice(LINKS)] + ["not"] * negated + ["very"] * rng.randint(2) + [word]
        found.append((" ".join(parts), int(praise)))
    return found


def encode(sentences, words):
    """Token numbers [n, LENGTH] int32, with CLS in front and PAD behind."""
    tokens = np.full((len(sentences), LENGTH), PAD, np.int32)
    tokens[:, 0] = CLS
    for row, (sentence, _) in zip(tokens, sentences):
        numbers = [words.get(word, UNKNOWN) for word in sentence.split()][: LENGTH - 1]
        row[1 : 1 + len(numbers)] = numbers
    return tokens


class Attention(nn.Cell):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = nn.Dense(width, width), nn.Dense(width, width), nn.Dense(width, width)
        self.out = nn.Dense(width, width)
        self.dropout = nn.Dropout(p=dropout)

    def split(self, x):
        batch, length, width = x.shape
        return x.reshape(batch, length, self.heads, width // self.heads).transpose(0, 2, 1, 3)

    def construct(self, x, mask):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = ops.matmul(q, k.swapaxes(-1, -2)) / (q.shape[-1] ** 0.5) + mask
        y = ops.matmul(self.dropout(ops.softmax(scores, axis=-1)), v)
        return self.out(y.transpose(0, 2, 1, 3).reshape(x.shape))


class Layer(nn.Cell):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.attention = Attention(width, heads, dropout)
        self.norm1 = nn.LayerNorm((width,), epsilon=1e-12)
        self.up = nn.Dense(width, 4 * width)
        self.gelu = nn.GELU()
        self.down = nn.Dense(4 * width, width)
        self.norm2 = nn.LayerNorm((width,), epsilon=1e-12)
        self.dropout = nn.Dropout(p=dropout)

    def construct(self, x, mask):
        x = self.norm1(x + self.dropout(self.attention(x, mask)))
        return self.norm2(x + self.dropout(self.down(self.gelu(self.up(x)))))


class Bert(nn.Cell):
    def __init__(self, vocabulary, width, layers, heads, dropout):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(LENGTH, width)
        self.norm = nn.LayerNorm((width,), epsilon=1e-12)
        self.dropout = nn.Dropout(p=dropout)
        self.layers = nn.CellList([Layer(width, heads, dropout) for _ in range(layers)])
        self.places = Tensor(np.arange(LENGTH, dtype=np.int32)[None])

    def construct(self, tokens):
        mask = (tokens == PAD).astype(ms.float32).reshape(-1, 1, 1, LENGTH) * -1e4
        x = self.dropout(self.norm(self.words(tokens) + self.positions(self.places)))
        for layer in self.layers:
            x = layer(x, mask)
        return x


class MaskedWords(nn.Cell):
    """Pre-training: which word was here?"""

    def __init__(self, bert, vocabulary, width):
        super().__init__()
        self.bert = bert
        self.head = nn.Dense(width, vocabulary)

    def construct(self, tokens, wanted):
        logits = self.head(self.bert(tokens))
        return ops.cross_entropy(logits.reshape(-1, logits.shape[-1]), wanted.reshape(-1), ignore_index=-1)


class Classifier(nn.Cell):
    """Fine-tuning: two classes from the first token."""

    def __init__(self, bert, width):
        super().__init__()
        self.bert = bert
        self.pooler = nn.Dense(width, width, activation="tanh")
        self.head = nn.Dense(width, 2)

    def construct(self, tokens):
        return self.head(self.pooler(self.bert(tokens)[:, 0]))


class Warmup(nn.learning_rate_schedule.LearningRateSchedule):
    """Up from zero in the first tenth, then linearly down to zero."""

    def __init__(self, rate, steps):
        super().__init__()
        self.rate, self.steps, self.warm = rate, float(steps), max(1.0, steps / 10)

    def construct(self, global_step):
        step = global_step.astype(ms.float32) + 1
        return self.rate * ops.minimum(step / self.warm, (self.steps + 1 - step) / (self.steps + 1 - self.warm))


def optimizer_for(net, rate, steps):
    """AdamWeightDecay; no decay for biases and norms."""
    plain = [p for p in net.trainable_params() if p.name.endswith(("bias", "gamma", "beta"))]
    decayed = [p for p in net.trainable_params() if not p.name.endswith(("bias", "gamma", "beta"))]
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]
    return nn.AdamWeightDecay(groups, Warmup(rate, steps), beta2=0.99)


def build(args, kind):
    bert = Bert(args.vocabulary, args.width, args.layers, args.heads, args.dropout)
    return MaskedWords(bert, args.vocabulary, args.width) if kind == "pretrain" else Classifier(bert, args.width)


def pretrain(args, tokens, path, rng):
    net = build(args, "pretrain").set_train()
    step = nn.TrainOneStepCell(net, optimizer_for(net, 1e-3, args.pretrain))
    losses = []
    for i in range(args.pretrain):
        batch = tokens[rng.randint(0, len(tokens), args.batch)]
        hidden = (rng.rand(*batch.shape) < 0.2) & (batch > UNKNOWN)
        seen, wanted = np.where(hidden, MASK, batch).astype(np.int32), np.where(hidden, batch, -1).astype(np.int32)
        losses.append(float(step(Tensor(seen), Tensor(wanted)).asnumpy()))
        if i % 20 == 19 or i == 0:
            print(f"pre-training step {i + 1:4}  loss {losses[-1]:.4f}")
    ms.save_checkpoint(net.bert, path)
    return losses


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--pretrain", type=int, default=150)
    parser.add_argument("--checkpoint", default="")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--data", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=["graph", "pynative"], default="graph")
    args = parser.parse_args(argv)
    ms.set_seed(args.seed)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)

    rng = np.random.RandomState(args.seed)
    if args.data:
        with open(args.data, encoding="utf-8") as file:
            sentences = [(text, int(label)) for text, label in (line.rstrip("\n").split("\t") for line in file if line.strip())]
        sentences = [sentences[i] for i in rng.permutation(len(sentences))]
    else:
        sentences = invent(1200, rng)
    words = {word: i + 4 for i, word in enumerate(sorted({word for text, _ in sentences for word in text.split()}))}
    args.vocabulary = len(words) + 4
    tokens, labels = encode(sentences, words), np.array([label for _, label in sentences], np.int32)
    test = len(tokens) // 4
    print(f"{len(tokens)} sentences, {args.vocabulary} words; for example: {sentences[0][0]!r} -> {sentences[0][1]}")

    losses = []
    with tempfile.TemporaryDirectory() as folder:
        path = args.checkpoint or os.path.join(folder, "bert.ckpt")
        if not args.checkpoint:
            losses += pretrain(args, tokens[test:], path, rng)
        net = build(args, "classify")
        # both names begin with "bert.": in the file, and in the classifier that gets a new head
        missing, unused = ms.load_param_into_net(net.bert, ms.load_checkpoint(path))
        print(f"checkpoint loaded, {len(missing)} parameters missing, {len(unused)} unused")

    loss_fn = nn.CrossEntropyLoss()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss_fn), optimizer_for(net, 5e-4, args.steps))
    step.set_train()
    start = time.time()
    for i in range(args.steps):
        at = test + i * args.batch % (len(tokens) - test - args.batch + 1)
        losses.append(float(step(Tensor(tokens[at : at + args.batch]), Tensor(labels[at : at + args.batch])).asnumpy()))
        if i % 20 == 19 or i == 0:
            print(f"fine-tuning step {i + 1:4}  loss {losses[-1]:.4f}  {time.time() - start:.1f} s")
    net.set_train(False)
    guess = net(Tensor(tokens[:test])).asnumpy().argmax(1)
    print(f"test accuracy: {(guess == labels[:test]).mean():.1%}")
    for (sentence, label), found in list(zip(sentences, guess))[:3]:
        print(f"  {'praise' if found else 'complaint':9} {'' if found == label else 'WRONG'} {sentence}")
    return losses


if __name__ == "__main__":
    main()
