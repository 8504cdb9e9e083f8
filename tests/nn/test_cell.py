"""Cells: what they own under which names, in which order, and what a call does.   Names and texts were recorded from MindSpore 2.10."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from jumar import context, nn
from jumar.frontend import Parameter, ParameterTuple, Tensor
from jumar.frontend import dtype as types
from jumar.frontend.guards import EPOCH


def param(name: str | None = None, value: float = 1.0) -> Parameter:
    return Parameter(Tensor(np.full(2, value, np.float32)), name=name)


class Inner(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = param()
        self.v = param("explicit")
        self.fc = nn.Dense(2, 3)
        self.pt = ParameterTuple([param(), param("x")])
        self.lst = [nn.Dense(1, 1)]
        self.seq = nn.SequentialCell(nn.Dense(2, 2), nn.SequentialCell([nn.Dense(1, 1)]))
        self.cl = nn.CellList([nn.Dense(1, 1), nn.ReLU()])
        self.last = param()


OWN = ["w", "explicit", "Parameter$1", "x", "last"]
BELOW = [
    "fc.weight", "fc.bias", "seq.0.weight", "seq.0.bias", "seq.1.0.weight", "seq.1.0.bias", "cl.0.weight", "cl.0.bias",
]  # fmt: skip


def names(cell: nn.Cell) -> list[str]:
    return [p.name for p in cell.get_parameters()]


def test_own_parameters_come_before_those_of_children() -> None:
    assert names(Inner()) == OWN + BELOW


def test_paths_are_of_attributes_where_names_are_explicit() -> None:
    assert [n for n, _ in Inner().parameters_and_names()] == ["w", "v", "Parameter$1", "x", "last", *BELOW]


def test_a_child_gets_dotted_paths_even_over_explicit_names() -> None:
    class Outer(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.sub = Inner()

    assert names(Outer())[:5] == ["sub.w", "sub.v", "sub.Parameter$1", "sub.x", "sub.last"]


def test_cells_added_to_an_attached_list_have_no_prefix_but_full_paths() -> None:
    class Outer(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.seq = nn.SequentialCell()
            self.seq.append(nn.Dense(1, 1))
            self.cl = nn.CellList()
            self.cl.append(nn.Dense(1, 1))
            self.insert_child_to_cell("ch", nn.Dense(1, 1))

    cell = Outer()
    assert names(cell) == ["0.weight", "0.bias", "0.weight", "0.bias", "weight", "bias"]
    assert [n for n, _ in cell.parameters_and_names()] == [
        "seq.0.weight", "seq.0.bias", "cl.0.weight", "cl.0.bias", "ch.weight", "ch.bias"
    ]  # fmt: skip


def test_a_shared_cell_is_walked_once() -> None:
    shared = nn.Dense(2, 2)
    seq = nn.SequentialCell(shared, shared)
    assert names(seq) == ["1.weight", "1.bias"]
    assert [n for n, _ in seq.cells_and_names()] == ["", "0"]


def test_cells_and_names_are_in_order_of_assignment() -> None:
    assert [n for n, _ in Inner().cells_and_names()] == ["", "fc", "seq", "seq.0", "seq.1", "seq.1.0", "cl", "cl.0", "cl.1"]
    assert list(Inner().name_cells()) == ["fc", "seq", "cl"]


@pytest.mark.parametrize(
    ("first", "second", "error", "text"),
    [
        (param, lambda: 1, TypeError, "Parameter 'w' already exists in network, can not assign this type: '<class 'int'>' as a parameter."),
        (nn.ReLU, lambda: 3, TypeError, "Sub cell 'w' already exists in network, can not assign this type: '<class 'int'>' as a cell."),
        (nn.ReLU, param, KeyError, "Cannot insert another parameter with the same name"),
        (param, nn.ReLU, KeyError, "Cannot insert another child cell with the same name"),
    ],
)
def test_an_attribute_stays_of_its_kind(first: Any, second: Any, error: type[Exception], text: str) -> None:
    cell = nn.Cell()
    cell.w = first()
    with pytest.raises(error) as found:
        cell.w = second()
    assert text in str(found.value)


def test_a_tensor_assigned_to_a_parameter_is_its_new_value() -> None:
    cell = nn.Cell()
    cell.w = param()
    epoch = EPOCH[0]
    cell.w = Tensor(np.zeros(2, np.float32))
    assert isinstance(cell.w, Parameter)
    assert cell.w.asnumpy().tolist() == [0.0, 0.0]
    assert EPOCH[0] == epoch  # the structure is what it was


def test_none_empties_an_attribute() -> None:
    cell = nn.Cell()
    cell.w, cell.c = param(), nn.ReLU()
    cell.w, cell.c = None, None
    assert (cell.w, cell.c, names(cell), list(cell.cells())) == (None, None, [], [])


def test_changes_of_structure_are_counted() -> None:
    cell = nn.SequentialCell(nn.ReLU())
    for change in (lambda: cell.append(nn.ReLU()), cell.set_train, lambda: setattr(cell, "k", 1), lambda: cell._cells.pop("1")):
        before = EPOCH[0]
        change()
        assert EPOCH[0] > before


def test_without_init_of_cell_children_are_refused() -> None:
    class Bad(nn.Cell):
        def __init__(self) -> None:
            self.x = nn.ReLU()

    with pytest.raises(AttributeError, match=r"super\(\).__init__\(\) must be called"):
        Bad()


def test_a_missing_attribute_is_named() -> None:
    with pytest.raises(AttributeError, match="The 'ReLU' object has no attribute 'foo'"):
        _ = nn.ReLU().foo


def test_training_is_off_until_it_is_set_and_recurses() -> None:
    cell = Inner()
    assert not cell.training
    assert cell.set_train() is cell
    assert cell.seq[1][0].training
    assert cell.fc.get_flags() == {"training": True}


def test_repr_is_mindspores() -> None:
    text = repr(nn.SequentialCell(nn.Dense(2, 3, activation="relu"), nn.MaxPool2d(2, 2)))
    assert text == (
        "SequentialCell(\n  (0): Dense(\n    input_channels=2, output_channels=3, has_bias=True, activation=ReLU()\n    (activation): ReLU()\n  )\n"
        "  (1): MaxPool2d(kernel_size=2, stride=2, pad_mode=VALID)\n)"
    )


def test_containers_index_slice_insert_and_delete() -> None:
    cells = nn.CellList([nn.Dense(1, 1), nn.ReLU(), nn.Dense(2, 2)])
    del cells[0]
    cells.insert(1, nn.Dense(5, 5))
    assert [type(c).__name__ for c in cells] == ["ReLU", "Dense", "Dense"]
    assert names(cells) == ["1.weight", "1.bias", "2.weight", "2.bias"]
    assert isinstance(cells[0:2], nn.CellList)
    with pytest.raises(IndexError, match=r"range \[-3, 3\)"):
        _ = cells[5]
    with pytest.raises(TypeError, match="each cell must be subclass of Cell, but got int"):
        nn.CellList([1])


def test_cell_dict_is_a_dict_of_cells() -> None:
    cells = nn.CellDict([("a", nn.Dense(1, 1)), ["b", nn.ReLU()]])
    cells["c"] = nn.Dense(2, 2)
    assert (list(cells), len(cells), "a" in cells, names(cells)) == (["a", "b", "c"], 3, True, ["a.weight", "a.bias", "c.weight", "c.bias"])
    assert isinstance(cells.pop("b"), nn.ReLU)


def test_state_dict_round_trip_and_its_errors() -> None:
    cell = nn.SequentialCell(nn.Dense(2, 3))
    cell.register_buffer("b", Tensor([1.0]))
    state = {k: Tensor(v.asnumpy() + 1) for k, v in cell.state_dict().items()}
    assert list(state) == ["b", "0.weight", "0.bias"]
    assert str(cell.load_state_dict(state)) == "<All keys matched successfully>"
    assert cell.b.asnumpy().tolist() == [2.0]
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "b"'):
        cell.load_state_dict({"x": Tensor([1.0])})
    found = cell.load_state_dict({"x": Tensor([1.0])}, strict=False)
    assert (found.missing_keys, found.unexpected_keys) == (["b", "0.weight", "0.bias"], ["x"])


def test_hooks_see_and_change_inputs_and_outputs() -> None:
    cell = nn.ReLU()
    seen: list[Any] = []
    cell.register_forward_pre_hook(lambda c, inputs: seen.append(inputs))
    handle = cell.register_forward_hook(lambda c, inputs, output: output * 2)
    assert cell(Tensor([3.0])).asnumpy().tolist() == [6.0]
    handle.remove()
    assert cell(Tensor([3.0])).asnumpy().tolist() == [3.0]
    assert len(seen) == 2


def test_backward_hooks_change_gradients() -> None:
    from jumar.frontend.grad import grad

    cell = nn.ReLU()
    order: list[str] = []

    def before(c: Any, grads: Any) -> Any:
        order.append("output")
        return (grads[0] * 3,)

    def after(c: Any, grads: Any, out: Any) -> Any:
        order.append("input")
        return (grads[0] * 5,)

    cell.register_backward_pre_hook(before)
    cell.register_backward_hook(after)
    assert grad(lambda x: cell(x).sum())(Tensor([2.0, -1.0])).asnumpy().tolist() == [15.0, 0.0]
    assert order == ["output", "input"]


def test_a_cell_with_bprop_has_that_gradient() -> None:
    from jumar.frontend.grad import grad

    class Odd(nn.Cell):
        def construct(self, x: Any) -> Any:
            return x * 2

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout * 7,)

    assert grad(lambda x: Odd()(x).sum())(Tensor([2.0])).asnumpy().tolist() == [7.0]


class Mixed(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.g = Parameter(Tensor(np.ones(2, np.float32)))
        self.d = nn.Dense(2, 2).to_float(types.float16)

    def construct(self, x: Any) -> Any:
        return self.d(x) * self.g, self.g + 0, self.d(x)


@pytest.mark.parametrize("mode", [context.PYNATIVE_MODE, context.GRAPH_MODE])
def test_to_float_casts_inputs_and_parameters_of_the_cell_that_runs(mode: int) -> None:
    before = context.MODE
    context.set_context(mode=mode)
    try:
        x = Tensor(np.ones((1, 2), np.float32))
        assert [str(t.dtype) for t in Mixed()(x)] == ["Float32", "Float32", "Float16"]
        cell = Mixed().to_float(types.float16)
        assert [str(t.dtype) for t in cell(x)] == ["Float16"] * 3
        assert cell.g.dtype is types.float32
    finally:
        context.set_context(mode=before)


def test_to_float_knows_three_types() -> None:
    with pytest.raises(ValueError, match=r"must be mstype\.float32, mstype\.float16 or mstype\.bfloat16"):
        nn.ReLU().to_float(types.int32)


def test_cells_are_copied_and_pickled_with_their_parameters() -> None:
    cell = nn.Dense(2, 2)
    for other in (copy.deepcopy(cell), pickle.loads(pickle.dumps(cell))):
        assert other.weight is not cell.weight
        np.testing.assert_array_equal(other.weight.asnumpy(), cell.weight.asnumpy())
        assert names(other) == names(cell)


def test_update_parameters_name_and_prefixes() -> None:
    cell = Inner()
    cell.update_parameters_name("pre.")
    cell.update_cell_prefix()
    assert names(cell)[:2] == ["pre.w", "pre.v"]
    assert cell.seq[1][0].param_prefix == "seq.1.0"


def test_duplicate_names_are_found_when_asked_for() -> None:
    cell = nn.Cell()
    cell.a, cell.b = param("n"), param("n")
    assert names(cell) == ["n", "n"]
    with pytest.raises(ValueError, match="its name 'n' already exists"):
        cell.check_names()


def test_a_misspelt_layer_is_put_right() -> None:
    with pytest.raises(AttributeError, match="did you mean"):
        _ = nn.Conv2D


def test_to_changes_the_type_of_floats() -> None:
    cell = nn.SequentialCell(nn.Dense(2, 2))
    cell.register_buffer("b", Tensor([1.0]))
    cell.register_buffer("i", Tensor([1]))
    assert cell.to(types.float16) is cell
    assert [t.dtype for t in (*cell.get_parameters(), *cell.buffers())] == [types.float16] * 3 + [types.int64]


def test_captured_cells_notice_hooks_types_and_children() -> None:
    before = context.MODE
    context.set_context(mode=context.GRAPH_MODE)
    try:

        class Net(nn.Cell):
            def __init__(self) -> None:
                super().__init__()
                self.act = nn.ReLU()
                self.k = 1.0

            def construct(self, x: Any) -> Any:
                return self.act(x) * self.k

        net, x = Net(), Tensor([2.0])
        assert net(x).asnumpy().tolist() == [2.0]
        handle = net.register_forward_hook(lambda c, inputs, output: output * 10)
        assert net(x).asnumpy().tolist() == [20.0]
        handle.remove()
        net.k = 3.0
        assert net(x).asnumpy().tolist() == [6.0]
        net.act = nn.HShrink(5.0)
        assert net(x).asnumpy().tolist() == [0.0]
        assert net.to_float(types.float16)(x).dtype is types.float16
    finally:
        context.set_context(mode=before)
