"""A small GPT, trained letter by letter on a text, then taught another text by LoRA: only small matrices beside the frozen ones learn.

Data: --data FILE (any UTF-8 text) and --tune FILE for the second phase. Without them the texts are reports made by a small grammar.
    python gpt_text.py [--data FILE] [--steps 240] [--tune-steps 120] [--mode graph|pynative] [--seed 1]
"""

import argparse
import time

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal, Zero, initializer

WEATHER = ("in the morning the {0} lay {1} over the {2}", "by noon a {1} {0} came up the {2}", "all night the {0} was {1} on the {2}")
VOYAGE = ("we rowed the {0} {1} past the {2}", "a {1} {0} waited below the {2}", "the {0} turned {1} at the {2}")
WORDS = {
    WEATHER: (
        "fog rain wind snow sun cloud".split(),
        "grey soft cold heavy bright still".split(),
        "valley harbour road forest field".split(),
    ),
    VOYAGE: ("boat ferry raft barge".split(), "slowly swiftly alone laden".split(), "lighthouse bridge island mill".split()),
}


def invent(kind, count, rng):
    lines = (rng.choice(kind).format(*(rng.choice(words) for words in WORDS[kind])) for _ in range(count))
    return "".join(f"{line}.\n" for line in lines)


class Lora(nn.Cell):
    """A Dense layer held still, and beside it the product of two small matrices that learns."""

    def __init__(self, dense, rank=4, alpha=8.0):
        super().__init__()
        self.dense = dense
        self.lora_a = Parameter(initializer(Normal(0.05), (rank, dense.in_channels)), name="lora_a")
        self.lora_b = Parameter(initializer(Zero(), (dense.out_channels, rank)), name="lora_b")
        self.scale = alpha / rank

    def construct(self, x):
        return self.dense(x) + ops.matmul(ops.matmul(x, self.lora_a.T), self.lora_b.T) * self.scale


class Block(nn.Cell):
    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm((width,), epsilon=1e-5), nn.LayerNorm((width,), epsilon=1e-5)
        self.qkv = nn.Dense(width, 3 * width)
        self.out = nn.Dense(width, width)
        self.up, self.down = nn.Dense(width, 4 * width), nn.Dense(4 * width, width)
        self.gelu = nn.GELU()
        self.future = Tensor(np.triu(np.full((length, length), -1e4, np.float32), 1))

    def attend(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads).transpose(2, 0, 3, 1, 4)
        scores = ops.matmul(q, k.swapaxes(-1, -2)) * (width // self.heads) ** -0.5 + self.future[:length, :length]
        y = ops.matmul(ops.softmax(scores, axis=-1), v)
        return self.out(y.transpose(0, 2, 1, 3).reshape(batch, length, width))

    def construct(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.down(self.gelu(self.up(self.norm2(x))))


class Gpt(nn.Cell):
    def __init__(self, vocabulary, width, layers, heads, length):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.CellList([Block(width, heads, length) for _ in range(layers)])
        self.norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.head = nn.Dense(width, vocabulary, has_bias=False)
        self.numbers = Tensor(np.arange(length, dtype=np.int32))

    def construct(self, tokens):
        x = self.tokens(tokens) + self.places(self.numbers[: tokens.shape[1]])
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def build(args):
    return Gpt(args.vocabulary, args.width, args.layers, args.heads, args.length)


def add_lora(net):
    """Everything stands still but the small matrices beside qkv and out."""
    for parameter in net.get_parameters():
        parameter.requires_grad = False
    for block in net.blocks:
        block.qkv, block.out = Lora(block.qkv), Lora(block.out)
    for name, parameter in net.parameters_and_names():
        parameter.name = name  # a cell set into another one late does not know where it is
    return net


def train(net, text, args, steps, rate, rng):
    """The loss of each step, on windows of the text drawn by `rng`."""
    data = np.array([args.numbers[c] for c in text], np.int32)
    optimizer = nn.AdamWeightDecay(net.trainable_params(), rate, beta2=0.99, weight_decay=0.01)

    def forward(tokens, wanted):
        logits = net(tokens)
        return ops.cross_entropy(logits.reshape(-1, logits.shape[-1]), wanted.reshape(-1))

    grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)

    def step(tokens, wanted):
        loss, grads = grad_fn(tokens, wanted)
        grads = ops.clip_by_global_norm(grads, 1.0)
        optimizer(grads)
        return loss

    if args.mode == "graph":
        step = ms.jit(step)
    net.set_train()
    losses, start = [], time.time()
    for i in range(steps):
        at = rng.randint(0, len(data) - args.length - 1, args.batch)[:, None] + np.arange(args.length + 1)
        losses.append(float(step(Tensor(data[at[:, :-1]]), Tensor(data[at[:, 1:]])).asnumpy()))
        if i % 30 == 29 or i == 0:
            print(f"step {i + 1:4}  loss {losses[-1]:.4f}  {time.time() - start:.1f} s")
    return losses


def write(net, args, prompt, count=80):
    """The text that the network finds most likely after `prompt`."""
    net.set_train(False)
    letters = sorted(args.numbers)
    tokens = [args.numbers[c] for c in prompt]
    for _ in range(count):
        seen = np.zeros((1, args.length), np.int32)  # one shape for all, so that there is one graph
        part = tokens[-args.length :]
        seen[0, : len(part)] = part
        tokens.append(int(net(Tensor(seen)).asnumpy()[0, len(part) - 1].argmax()))
    return "".join(letters[t] for t in tokens)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--tune-steps", type=int, default=120)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--tune-rate", type=float, default=5e-3)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--data", default="")
    parser.add_argument("--tune", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=["graph", "pynative"], default="graph")
    args = parser.parse_args(argv)
    ms.set_seed(args.seed)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)

    rng = np.random.RandomState(args.seed)
    texts = []
    for path, kind in ((args.data, WEATHER), (args.tune, VOYAGE)):
        if path:
            with open(path, encoding="utf-8") as file:
                texts.append(file.read())
        else:
            texts.append(invent(kind, 400, rng))
    args.numbers = {letter: i for i, letter in enumerate(sorted(set("".join(texts))))}
    args.vocabulary = len(args.numbers)
    net = build(args)
    print(f"{len(texts[0])} letters, {args.vocabulary} different; {sum(p.size for p in net.trainable_params())} weights")
    losses = train(net, texts[0], args, args.steps, args.rate, rng)
    prompt = texts[0][:12]
    print(write(net, args, prompt))

    if args.tune_steps:
        add_lora(net)
        print(f"LoRA: {sum(p.size for p in net.trainable_params())} weights learn, the others stand still")
        losses += train(net, texts[1], args, args.tune_steps, args.tune_rate, rng)
        print(write(net, args, texts[1][:8]))
    return losses


if __name__ == "__main__":
    main()
