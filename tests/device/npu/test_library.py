import pytest

from jumar.base import DTYPES
from jumar.device.npu import library
from jumar.device.npu.library import FAMILIES, aclnn_ops, column, find_aclnn, find_ge, find_primitive, ge_ops


def test_an_operator_says_what_is_behind_it_and_where_it_runs():
    softmax = find_aclnn("aclnnSoftmax")
    assert softmax.kinds == ("SoftmaxV2",)
    assert {"310p", "910b", "950"} <= softmax.on
    assert softmax.takes("bf16")
    assert not softmax.takes("i32")
    assert softmax.source.startswith("cann/")
    assert find_aclnn("aclnnNothing") is None


def test_a_kernel_of_the_binary_package_has_no_family():
    assert find_ge("Conv2D").on == frozenset()
    assert "310p" in find_ge("MatMulV3").on
    assert find_ge("Nothing") is None


def test_a_name_that_was_guessed_says_so():
    evidence = {find_primitive(name).evidence for name in ("Abs", "ACos")}
    assert evidence == {"inferred", "conflict"}


def test_tables_hold_only_families_that_we_know_and_no_row_of_the_toolkit():
    for op in (*aclnn_ops(), *ge_ops()):
        assert op.on <= set(FAMILIES), op
        assert "third-party" not in op.source
    assert sum(1 for _ in aclnn_ops()) > 1000
    assert sum(1 for _ in ge_ops()) > 1200


def test_element_types_are_ours_where_we_have_them():
    names = {t for op in aclnn_ops() for types in op.dtypes.values() for t in types}
    assert {"f32", "f16", "bf16", "i64", "u8", "bool", "c64"} <= names & set(DTYPES)
    assert not names & {"FLOAT", "FLOAT16", "BFLOAT16", "INT8", "UINT8"}


@pytest.mark.parametrize(
    ("family", "name"), [("Ascend910B", "910b"), ("Ascend910_93", "910_93"), ("Ascend310P", "310p"), ("Ascend910_95", "950")]
)
def test_families_have_a_column(family, name):
    assert column(family) == name
    assert name in FAMILIES


def test_a_table_is_read_once_and_only_when_it_is_asked_for():
    library._rows.cache_clear()
    find_aclnn("aclnnSoftmax")
    find_aclnn("aclnnAdd")
    assert library._rows.cache_info().misses == 1
