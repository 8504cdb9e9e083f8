"""Small predicted steps for the tests of this room."""

from jumar.base import bf16, f16, f32
from jumar.device.npu import AI_CPU, COMMUNICATION, CUBE, HOST, VECTOR, Operand, Prediction, Task, Timeline, collective, find_chip, timeline
from jumar.profiler.ascend import lives_of

CHIP = find_chip("Ascend910B4")
AT_US = 1_736_408_883_704_643.0


def tasks(ranks: int = 1) -> tuple[list[Task], list[Prediction]]:
    """A product, a softmax with an absent input, an AI CPU kernel, one on the host, and with several ranks an all-reduce."""
    wide, x = Operand((4096, 2048), f16), Operand((4096, 256), bf16)
    absent = Operand((), None)
    pipes = {"cube": 40.0, "mte2": 34.2, "scalar": 5.0, "fixed": 3.0}
    matmul = Task(
        "MatMulV2", (wide, Operand((256, 2048), f16, "FRACTAL_NZ"), absent), (x,), core=CUBE, label="layer/MatMul", place="m.onnx:MatMul_0"
    )
    found = [
        (matmul, Prediction(60.0, 50.0, 72.0, "cube", pipes, block_dim=20, flops=4.3e9)),
        (Task("SoftmaxV2", (x,), (x,), core=VECTOR), _vector(20.0, {"vector": 5.0, "mte2": 11.4, "mte3": 5.7, "fixed": 1.0})),
        (Task("Unique", (x,), (x,), core=AI_CPU), Prediction(90.0, 50.0, 200.0, "ai cpu")),
        (Task("NonZero", (x,), (x,), core=HOST), Prediction(10.0, 5.0, 20.0, "host")),
        (Task("Add", (x, x), (x,), core=VECTOR, label="sum"), _vector(4.0, {"vector": 0.5, "mte2": 2.0, "mte3": 1.0, "fixed": 1.0})),
    ]
    if ranks > 1:
        gradient = Operand((29_360_128,), f32)
        task = Task("all_reduce", (gradient,), (gradient,), attrs={"ranks": ranks}, core=COMMUNICATION)
        found.append((task, collective("all_reduce", gradient.nbytes, ranks, CHIP)))
    return [t for t, _ in found], [p for _, p in found]


def line(mode: str = "sunk", ranks: int = 1) -> Timeline:
    return timeline(*tasks(ranks), CHIP, mode=mode)


def lives(ranks: int = 1):
    found, _ = tasks(ranks)
    return lives_of(found, [(i - 1,) for i in range(len(found))])


def _vector(time_us: float, pipes: dict[str, float]) -> Prediction:
    return Prediction(time_us, time_us * 0.75, time_us * 1.3, "mte2", pipes, block_dim=40)
