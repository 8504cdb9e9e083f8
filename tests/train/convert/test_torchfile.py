"""PyTorch's files: values are those of PyTorch; whatever else a file holds is refused and never run."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.train.nets import Names

from jumar.base import StackError
from jumar.train.convert import TorchFile, matched, renamed, values

torch = pytest.importorskip("torch")


def small() -> object:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        OrderedDict(
            conv=torch.nn.Conv1d(3, 4, 2),
            bn=torch.nn.BatchNorm1d(4),
            norm=torch.nn.LayerNorm(5),
            fc=torch.nn.Linear(5, 2),
            emb=torch.nn.Embedding(7, 3),
        )
    )


def archive(path: Path, data: bytes, **members: bytes) -> str:
    with zipfile.ZipFile(path, "w") as zipped:
        zipped.writestr("a/data.pkl", data)
        for name, raw in members.items():
            zipped.writestr(f"a/data/{name[1:]}", raw)
    return str(path)


def test_values_are_those_of_pytorch(tmp_path: Path) -> None:
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    tensors = {
        "f32": base, "transposed": base.t(), "part": base[1:3, ::2], "f16": base.half(), "bf16": base.bfloat16(), "i64": torch.arange(3),
        "u8": torch.arange(3, dtype=torch.uint8), "bool": torch.tensor([True, False]), "scalar": torch.tensor(2.5), "none": torch.zeros(0, 3),
        "parameter": torch.nn.Parameter(base), "f64": base.double(),
    }  # fmt: skip
    torch.save(tensors, tmp_path / "a.pt")
    file = TorchFile(str(tmp_path / "a.pt"))
    assert sorted(file.tensors) == sorted(tensors)
    for name, tensor in tensors.items():
        found = file.tensors[name].read()
        wanted = tensor.detach()
        assert found.shape == tuple(wanted.shape), name
        assert np.array_equal(found.astype(np.float64), wanted.double().numpy()), name
    file.close()


@pytest.mark.parametrize("wrap", [lambda s: s, lambda s: {"state_dict": s, "epoch": 3}, lambda s: {"model": s, "args": [1, "a"]}])
def test_the_state_dict_is_found(tmp_path: Path, wrap: object) -> None:
    state = small().state_dict()  # type: ignore[attr-defined]
    torch.save(wrap(state), tmp_path / "a.pt")  # type: ignore[operator]
    assert sorted(TorchFile(str(tmp_path / "a.pt")).tensors) == sorted(state)


def test_nothing_is_run(tmp_path: Path) -> None:
    witness = tmp_path / "ran"

    class Evil:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (witness,)

    torch.save({"w": torch.ones(2), "x": Evil()}, tmp_path / "a.pt")
    with pytest.raises(StackError, match="pickle must name tensors only, got "):
        TorchFile(str(tmp_path / "a.pt"))
    assert not witness.exists()


@pytest.mark.parametrize(
    "data, text",
    [
        (b"cos\nsystem\n(S'true'\ntR.", "got os.system"),
        (b"ctorch\nload\n.", "got torch.load"),
        (b"ccollections\nOrderedDict\n(tR}b.", "state dict, got "),
        (b"(lctorch\nFloatStorage\no.", "pickle of tensors"),
        (b"\x96" + b"\xff" * 7 + b"\x7f.", "pickle of tensors"),
        (b"q" * 10, "pickle of tensors"),
        (pickle.dumps({"a": 1}), "state dict, got a"),
    ],
)
def test_hostile_pickles_are_refused(tmp_path: Path, data: bytes, text: str) -> None:
    with pytest.raises(StackError, match=text):
        TorchFile(archive(tmp_path / "a.pt", data))


def pickled(count: int, size: tuple[int, ...], stride: tuple[int, ...], offset: int = 0, after: bytes = b"") -> bytes:
    """A state dict of one tensor, written by hand; `after` are opcodes that act on the tensor."""

    def number(n: int) -> bytes:
        return b"L%dL\n" % n

    def items(ns: tuple[int, ...]) -> bytes:
        return b"(" + b"".join(map(number, ns)) + b"t"

    storage = b"(Vstorage\nctorch\nFloatStorage\nV0\nVcpu\n" + number(count) + b"tQ"
    tensor = (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + storage
        + number(offset)
        + items(size)
        + items(stride)
        + b"I00\nccollections\nOrderedDict\n(tRtR"
    )
    return b"}(Vw\n" + tensor + after + b"u."


def test_tensors_must_lie_in_their_storage(tmp_path: Path) -> None:
    raw = np.arange(6, dtype=np.float32).tobytes()
    good = TorchFile(archive(tmp_path / "a.pt", pickled(6, (2, 3), (3, 1)), _0=raw))
    assert good.tensors["w"].read().tolist() == [[0, 1, 2], [3, 4, 5]]
    for wrong in (
        pickled(6, (2, 4), (3, 1)),
        pickled(6, (2, 3), (3, 1), 1),
        pickled(6, (1 << 40,), (0,)),
        pickled(6, (-1,), (1,)),
        pickled(6, (2,), (-1,)),
    ):
        with pytest.raises(StackError, match="tensor"):
            TorchFile(archive(tmp_path / "b.pt", wrong, _0=raw))
    lying = TorchFile(archive(tmp_path / "c.pt", pickled(1 << 40, (2, 3), (3, 1)), _0=raw))
    with pytest.raises(StackError, match="storage '0' must have"):
        lying.tensors["w"].read()


def test_attributes_of_tensors_cannot_be_set(tmp_path: Path) -> None:
    build = b"}(Vshape\n(L9999L\nL9999L\ntub"
    with pytest.raises(StackError, match="objects with attributes"):
        TorchFile(archive(tmp_path / "a.pt", pickled(6, (2, 3), (3, 1), after=build), _0=bytes(24)))


def test_other_forms_are_named(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2)}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(StackError, match="zip form"):
        TorchFile(str(tmp_path / "old.pt"))
    with zipfile.ZipFile(tmp_path / "z.pt", "w") as zipped:
        zipped.writestr("x", "y")
    with pytest.raises(StackError, match=r"one data\.pkl, got 0"):
        TorchFile(str(tmp_path / "z.pt"))
    squeezed = io.BytesIO()
    with zipfile.ZipFile(squeezed, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("a/data.pkl", b"0" * 100000)
    (tmp_path / "d.pt").write_bytes(squeezed.getvalue())
    with pytest.raises(StackError, match="stored as it is"):
        TorchFile(str(tmp_path / "d.pt"))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_damage_is_refused_or_harmless(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    plain = pickled(6, (2, 3), (3, 1))
    changed = bytearray(plain)
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    whole = bytearray(Path(archive(folder / "a.pt", bytes(changed), _0=bytes(24))).read_bytes())
    if data.draw(st.booleans()):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    (folder / "a.pt").write_bytes(bytes(whole))
    try:
        for tensor in TorchFile(str(folder / "a.pt")).tensors.values():
            tensor.read()
    except StackError:
        pass


def test_names_are_guessed_without_a_network(tmp_path: Path) -> None:
    torch.save({f"module.{n}": v for n, v in small().state_dict().items()}, tmp_path / "a.pt")  # type: ignore[attr-defined]
    lines = renamed(TorchFile(str(tmp_path / "a.pt")).tensors)
    assert {line.source.removeprefix("module."): line.target for line in lines.values()} == {
        "conv.weight": "conv.weight", "conv.bias": "conv.bias", "bn.weight": "bn.gamma", "bn.bias": "bn.beta", "bn.running_mean": "bn.moving_mean",
        "bn.running_var": "bn.moving_variance", "bn.num_batches_tracked": "", "norm.weight": "norm.gamma", "norm.bias": "norm.beta",
        "fc.weight": "fc.weight", "fc.bias": "fc.bias", "emb.weight": "emb.embedding_table",
    }  # fmt: skip


def test_a_network_decides_names_and_shapes(tmp_path: Path) -> None:
    torch.save(small().state_dict(), tmp_path / "a.pt")  # type: ignore[attr-defined]
    tensors = TorchFile(str(tmp_path / "a.pt")).tensors
    net = Names(conv__weight=(4, 3, 1, 2), bn__gamma=(4,), fc__weight=(9, 5), emb__embedding_table=(7, 3), head__weight=(1,))
    lines, missing = matched(tensors, net.params)
    assert missing == ["fc.weight", "head.weight"]
    assert lines["conv.weight"].note == "reshaped from [4, 3, 2]" and lines["fc.weight"].note == "shape must be [9, 5] for fc.weight"
    found = values(tensors, lines)
    assert sorted(found) == ["bn.gamma", "conv.weight", "emb.embedding_table"] and found["conv.weight"].shape == (4, 3, 1, 2)
