"""Memory of a graph on a chip: what it is made of, its plan, the pool's history, and what is said where it does not fit."""

from dataclasses import dataclass

import numpy as np
import pytest
from tests.compiler.graphs import transformer
from tests.compiler.npu import conv, image, zoo
from tests.compiler.test_training import step
from tests.compiler.test_training import transformer as transformer_model

from jumar.base import CompileError, Loc, TensorType, f32, i32
from jumar.compiler.passes.formats import assign_formats
from jumar.compiler.passes.fuse_npu import fuse_npu
from jumar.compiler.passes.precision import Precision
from jumar.compiler.passes.select import select
from jumar.compiler.twin.forecast import TwinOptions, forecast
from jumar.compiler.twin.memory import HCCL_BUFFER_NBYTES, WORKSPACE, chip_pad_nbytes, device_memory, reserve, workspace_nbytes
from jumar.compiler.twin.memory_trace import peak_nbytes, trace_of
from jumar.compiler.twin.tasks import launches
from jumar.compiler.twin.train_memory import Training
from jumar.device.npu import Operand, Task
from jumar.device.npu.allocator import GIB, MIB, DeviceMemoryError
from jumar.device.npu.chip import find_chip
from jumar.ir import Graph, Node, constant, f32t, param
from jumar.operators import Gelu, MatMul, Relu, Reshape, add


@dataclass(frozen=True, eq=False)
class Kernel:
    """A launch, as far as memory asks."""

    task: Task
    nodes: tuple[Node, ...] = ()
    reads: tuple[int | None, ...] = ()

    @property
    def slots(self):
        return (0,) * len(self.reads)

    @property
    def writes(self):
        return self.nodes or (constant(np.float32(0)),)


def chain(lengths, place=""):
    """Kernels that read one another, each with a result of so many MiB."""
    x = param("x", f32t(1, MIB // 4))
    nodes, kernels = [x], []
    for i, size in enumerate(lengths):
        nodes.append(Node(Relu(), (nodes[-1],), f32t(size, MIB // 4), Loc("net.py", 10 + i)))
        operand = Operand((size, MIB // 4), f32)
        task = Task("Relu", (operand,), (operand,), label=f"relu_{i}", place=place or f"net.py:{10 + i}")
        kernels.append(Kernel(task, (nodes[-1],), (i - 1 if i else -1,)))
    return Graph("chain", (x,), (nodes[-1],)), kernels


CHIP = find_chip("Ascend910B4")


def test_a_chain_needs_two_values_at_its_widest():
    graph, kernels = chain([1, 2, 8, 4, 1])
    found = device_memory(kernels, graph, CHIP)
    assert found.fits
    assert found.bound_nbytes == found.arena_nbytes == 12 * MIB + 2 * 512, "32 B more for each value, in whole 512 B"
    assert found.unshared_nbytes == 16 * MIB + 5 * 512
    assert found.live_nbytes == (MIB, 3 * MIB, 10 * MIB, 12 * MIB, 5 * MIB)
    assert (found.peak, [h.label for h in found.at_peak]) == (3, ["relu_2 f32[8, 262144] ND", "relu_3 f32[4, 262144] ND"])
    assert found.at_peak[0].place == "net.py:12"
    assert {p.name: p.nbytes for p in found.parts} == {"inputs": MIB, "values in shared places": found.arena_nbytes}
    assert found.needed_nbytes == sum(p.nbytes for p in found.parts)
    assert found.usable_nbytes == CHIP.memory_nbytes - sum(p.nbytes for p in found.reserved)
    assert 0 < found.saving < 0.3
    assert "sharing saves" in found.text and "relu_2" in found.text


def test_operator_by_operator_the_pool_takes_more_than_the_plan():
    graph, kernels = chain([1, 2, 8, 4, 1])
    planned = device_memory(kernels, graph, CHIP)
    eager = device_memory(kernels, graph, CHIP, mode="pynative", framework="torch_npu")
    assert eager.history is not None and eager.plan is None
    assert eager.needed_nbytes == eager.history.peak_reserved_nbytes >= planned.needed_nbytes
    one = device_memory(kernels, graph, CHIP, mode="pynative")
    assert one.history.rules.name == "mindspore" and one.needed_nbytes == 2 * GIB, "a block for weights, one for values"


def test_an_output_stands_to_the_end_through_views():
    x = param("x", f32t(4, 8))
    y = Relu()(x)
    z = Gelu()(y)
    operand = Operand((4, 8), f32)
    kernels = [
        Kernel(Task("Relu", (operand,), (operand,)), (y,), (-1,)),
        Kernel(Task("Gelu", (operand,), (operand,)), (z,), (0,)),
        Kernel(Task("Relu", (operand,), (operand,)), (), (1,)),
    ]
    found = device_memory(kernels, Graph("g", (x,), (Reshape((32,))(y), z)), CHIP)
    assert found.live_nbytes == (128, 256, 384)


def test_each_kind_of_workspace_is_alive_for_one_launch():
    operand = Operand((64, 64, 3, 3), f32)
    task = Task("Conv2DBackpropFilter", (operand,), (operand,))
    assert workspace_nbytes(task, CHIP) == operand.nbytes
    assert all(asks(task, CHIP) > 0 for asks in WORKSPACE.values())
    graph, kernels = chain([1, 1])
    kernels.append(Kernel(task, (), (1,)))
    found = device_memory(kernels, graph, CHIP)
    assert [h.kind for h in found.at_peak].count("workspace") <= 1
    assert found.live_nbytes[-1] == 1 * MIB + 2 * operand.nbytes


def test_weights_are_counted_once_and_so_is_what_a_step_updates():
    w, x = constant(np.ones((256, 256), np.float32)), param("x", f32t(4, 256))
    found = device_memory((), Graph("g", (x,), (MatMul()(MatMul()(x, w), w),)), CHIP)
    assert {p.name: p.nbytes for p in found.parts}["weights"] == 256 * 256 * 4
    p = param("p", f32t(256, 256))
    step = Graph("step", (x, p), (MatMul()(x, p), add(p, p)), updates=((1, 1),))
    parts = {part.name: part.nbytes for part in device_memory((), step, CHIP).parts}
    assert parts["weights and state"] == p.type.nbytes and parts["inputs"] == x.type.nbytes


def test_communicators_take_two_buffers_each_out_of_what_mindspore_leaves():
    none, usable = reserve(CHIP, "mindspore", 0)
    some, usable_with = reserve(CHIP, "mindspore", 2)
    assert usable == usable_with, "1/16 of the memory holds four buffers of 200 MB"
    assert {p.name: p.nbytes for p in some}["communication"] == 4 * HCCL_BUFFER_NBYTES
    many, least = reserve(CHIP, "mindspore", 16)
    assert least < usable and "max_device_memory" in many[-1].note
    assert sum(p.nbytes for p in none) + usable == CHIP.memory_nbytes
    assert reserve(CHIP, "acl", 0)[1] > usable
    assert reserve(CHIP, "torch_npu", 1)[1] == reserve(CHIP, "torch_npu", 0)[1] - 2 * HCCL_BUFFER_NBYTES


def test_the_first_generation_offers_all_its_memory_and_the_950_pads_nothing():
    assert "system" not in {p.name for p in reserve(find_chip("Ascend910A"), "acl", 0)[0]}
    assert (chip_pad_nbytes(CHIP), chip_pad_nbytes(find_chip("Ascend950PR_9599"))) == (32, 0)


def test_a_model_that_does_not_fit_says_where_and_how_much():
    graph, kernels = chain([1, 40_000, 4])
    found = device_memory(kernels, graph, CHIP)
    assert not found.fits and "does not fit" in found.text
    with pytest.raises(CompileError, match=r"must fit into 28\.71 GiB usable, got 39\.07 GiB") as caught:
        found.check()
    assert "relu_1" in str(caught.value) and "net.py:11" in str(caught.value) and caught.value.code == "npu-memory"
    eager = device_memory(kernels, graph, CHIP, mode="pynative", framework="torch_npu")
    with pytest.raises(DeviceMemoryError, match="for relu_1"):
        eager.check()


def test_training_is_planned_from_the_forward_graph():
    found = device_memory((), transformer(), CHIP, training=Training(amp="O2"))
    assert {p.name for p in found.parts} == {"weight", "copy", "state", "input", "values in shared places"}
    assert found.training == Training(amp="O2")
    cut = device_memory((), transformer(), CHIP, training=Training(data=8, shard=3))
    assert "gathered weights" in {p.name for p in cut.parts} and "communication" in {p.name for p in cut.reserved}
    assert "divided by the tensor-parallel devices" in device_memory((), transformer(), CHIP, training=Training(tensor=2)).text


@pytest.mark.parametrize(
    "options, said", [({"mode": "eager"}, "mode must be graph or pynative"), ({"framework": "jax"}, "framework must be one of")]
)
def test_unknown_modes_and_frameworks_are_named(options, said):
    with pytest.raises(CompileError, match=said):
        device_memory((), transformer(), CHIP, **options)


def launched(graph, chip):
    """The graph as the device runs it."""
    selection = select(graph, chip)
    formats = assign_formats(selection, chip)
    return launches(selection, formats, fuse_npu(selection, formats, chip), chip), selection.graph


@pytest.mark.parametrize("name", ["Ascend310P3", "Ascend910B4"])
def test_values_and_weights_are_counted_in_the_formats_that_the_device_stores_them_in(name):
    """An image of three channels takes sixteen, and so do the filters that read it."""
    chip = find_chip(name)
    x = image(3, 32)
    y = conv(conv(x, 20), 32)
    row, graph = launched(Graph("net", (x,), (y,)), chip)
    found = device_memory(row, graph, chip, framework="acl")
    plain = device_memory((), graph, chip, framework="acl")
    sizes = {p.name: p.nbytes for p in found.parts}
    assert sizes["weights"] > {p.name: p.nbytes for p in plain.parts}["weights"]
    stored = [o for launch in row for o in launch.task.outputs if o.format == "NC1HWC0"]
    assert any(o.shape[1] * o.shape[4] == 32 for o in stored), "twenty channels are two blocks of sixteen"
    assert found.bound_nbytes >= max(o.nbytes for o in stored)
    assert found.needed_nbytes == sum(sizes.values())
    assert found.at_peak[0].label.endswith("NC1HWC0")


@pytest.mark.parametrize("name", ["Ascend310P3", "Ascend910B4"])
def test_a_network_fits_with_less_than_it_would_without_sharing(name):
    chip = find_chip(name)
    row, graph = launched(zoo("resnet50"), chip)
    found = device_memory(row, graph, chip)
    assert found.fits and found.saving > 0.8
    assert {p.name: p.nbytes for p in found.parts}["weights"] == pytest.approx(25.5e6 * 2, rel=0.02)
    eager = device_memory(row, graph, chip, mode="pynative", framework="torch_npu")
    assert found.needed_nbytes < eager.needed_nbytes < 2 * found.needed_nbytes
    assert sum(f.active_nbytes for f in eager.history.figures) > 0


def test_a_training_step_writes_over_its_parameters_and_holds_them_once():
    """The step of test_training.py through every stage of the twin: weights and moments stand, their new values take nothing."""
    graph = step(transformer_model, param("x", TensorType((3, 40), i32)), "adam")
    found = forecast(graph, CHIP, TwinOptions(training=True, framework="mindspore", precision=Precision("must_keep_origin_dtype"))).memory
    kept = sum(graph.params[p].type.nbytes for _, p in graph.updates)
    assert {p.name: p.nbytes for p in found.parts}["weights and state"] == kept
    assert sum(h.nbytes for h in found.at_peak) <= found.bound_nbytes
    whole = trace_of(graph).trace
    assert found.bound_nbytes < 1.5 * peak_nbytes(whole)
    assert found.live_nbytes[-1] < kept, "at the end only what is no update is new"


def test_a_script_that_trains_operator_by_operator_has_all_gradients_at_once():
    y = x = param("x", f32t(1, 64))
    for _ in range(12):
        y = Relu()(MatMul()(y, constant(np.ones((64, 64), np.float32))))
    graph = Graph("wide", (x,), (y,))
    eager = device_memory((), graph, CHIP, mode="pynative", framework="torch_npu", training=Training("sgd"))
    used_up = device_memory((), graph, CHIP, training=Training("sgd"))
    assert eager.bound_nbytes > used_up.bound_nbytes
    assert eager.history is not None and eager.needed_nbytes == eager.history.peak_reserved_nbytes
