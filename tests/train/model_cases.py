"""What Model does, moment by moment, to be run with MindSpore and with ours: `python model_cases.py` in MindSpore's environment prints the golden file."""

from __future__ import annotations

import json
from typing import Any

import numpy as np


def cases(ms: Any, mode: int) -> dict[str, Any]:
    """Events, losses, metrics and final weights by name."""
    nn, train, data = ms.nn, ms.train, ms.dataset
    ms.set_context(mode=mode)
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((12, 5)).astype(np.float32), rng.integers(0, 3, 12).astype(np.int32)
    first, second = rng.standard_normal((4, 5)).astype(np.float32) * 0.5, rng.standard_normal((3, 4)).astype(np.float32) * 0.5

    def network() -> Any:
        net = nn.SequentialCell(nn.Dense(5, 4, has_bias=False), nn.ReLU(), nn.Dense(4, 3, has_bias=False))
        for param, value in zip(net.get_parameters(), (first, second)):
            param.set_data(ms.Tensor(value))
        return net

    def rows() -> Any:
        return data.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(4)

    class Watch(train.Callback):
        """Notes every moment and what is known there."""

        def __init__(self) -> None:
            super().__init__()
            self.seen: list[Any] = []

        def note(self, moment: str, context: Any) -> None:
            p = context.original_args()
            known = [p.get(k) for k in ("mode", "cur_epoch_num", "cur_step_num", "batch_num", "epoch_num", "dataset_sink_mode")]
            loss = p.get("net_outputs")
            loss = loss[0] if isinstance(loss, tuple) else loss
            self.seen.append([moment, *known, None if loss is None else round(float(np.mean(loss.asnumpy())), 4)])
            self.seen[-1].append(sorted(p.get("metrics") or {}))

    for mode_name in ("train", "eval"):
        for when in ("begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end"):
            moment = f"on_{mode_name}_{when}"
            setattr(Watch, moment, lambda self, context, moment=moment: self.note(moment, context))

    found: dict[str, Any] = {}
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    for name, options in {"plain": {}, "sink": {"dataset_sink_mode": True}, "initial": {"initial_epoch": 1}}.items():
        net = network()
        optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9, weight_decay=0.01)
        model = train.Model(net, loss, optimizer, metrics={"acc", "loss"})
        watch = Watch()
        model.train(3, rows(), watch, **options)
        found[f"train {name}"] = watch.seen
        found[f"weights {name}"] = [np.round(p.asnumpy().astype(np.float64), 4).tolist() for p in net.get_parameters()]
        watch = Watch()
        result = model.eval(rows(), watch)
        found[f"eval {name}"] = [watch.seen, sorted((k, round(float(v), 4)) for k, v in result.items())]
        found[f"predict {name}"] = np.round(model.predict(ms.Tensor(x[:2])).asnumpy().astype(np.float64), 3).tolist()
    net = network()
    model = train.Model(net, loss, nn.Adam(net.trainable_params(), 0.01), metrics={"acc"})
    watch = Watch()
    model.fit(3, rows(), rows(), 2, watch)
    found["fit"] = watch.seen
    net = network()
    manager = train.FixedLossScaleManager(128.0, drop_overflow_update=False)
    model = train.Model(net, loss, nn.SGD(net.trainable_params(), 0.1, loss_scale=128.0), loss_scale_manager=manager)
    watch = Watch()
    model.train(1, rows(), [watch])
    found["loss scale"] = watch.seen

    class Stop(Watch):
        def on_train_step_end(self, context: Any) -> None:
            self.note("on_train_step_end", context)
            if context.original_args().cur_step_num == 4:
                context.request_stop()

    net = network()
    watch = Stop()
    train.Model(net, loss, nn.SGD(net.trainable_params(), 0.1)).train(3, rows(), [watch])
    found["stop"] = watch.seen
    keys: set[str] = set()
    train.Model(net, loss, nn.SGD(net.trainable_params(), 0.1)).train(
        1, rows(), train.LambdaCallback(on_train_step_end=lambda c: keys.update(c.original_args().keys()))
    )
    found["keys"] = sorted(keys)
    return found


if __name__ == "__main__":
    import mindspore

    both = {str(mode): cases(mindspore, mode) for mode in (0, 1)}
    assert both["0"].keys() == both["1"].keys()
    print("GOLDEN " + json.dumps(both))
