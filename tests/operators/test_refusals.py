"""What does not fit is refused when an operator is applied, by an error of ours that names the operator: no bare exception, no silence.

The samples of every definition are changed one piece at a time.  What is refused, is by `OpError`; what is accepted, the reference must
be able to compute, in the type that was inferred.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from tests.operators.test_definitions import CASES, STATIC, every_sample

from jumar.base import Array, OpError, TensorType, type_of
from jumar.ir import Op, Sample, check_inputs, f32t, param
from jumar.operators import Compress, Softmax, Source, Unique

AXES = {"axis", "axes"}


def changed_attributes(op: type[Op], sample: Sample) -> Iterator[dict[str, Any]]:
    """Every attribute that is a number, numbers or a word as another one that may or may not fit."""
    made = op(**sample.attributes)
    for f in fields(made):  # type: ignore[arg-type]
        value = getattr(made, f.name)
        for other in _others(value):
            yield {**sample.attributes, f.name: other}


def _others(value: Any) -> list[Any]:
    match value:
        case bool():
            return [not value]
        case int():
            return [v for v in (0, -1, -2, 1, 2, 7, 99, -99) if v != value]
        case str():
            return ["", "nonsense"]
        case tuple() if value and all(isinstance(v, int) and not isinstance(v, bool) for v in value):
            at_each = [(*value[:i], v, *value[i + 1 :]) for i in range(len(value)) for v in (0, -1, -99, 7)]
            return [*at_each, value[:-1], (*value, 1), (value[0],) * len(value), ()]
        case tuple() if value:
            return [value[:-1], (*value, value[0]), ()]
    return []


def changed_types(types: list[TensorType]) -> Iterator[list[TensorType]]:
    """Inputs too few and too many, of other ranks, and of other sizes."""
    yield types[:-1]
    if types:
        yield [*types, types[-1]]
    for i, t in enumerate(types):
        others = [t.with_shape((*t.shape, 2)), t.with_shape((1, *t.shape)), t.with_shape(t.shape[1:]), t.with_shape(t.shape[:-1])]
        others += [t.with_shape((*t.shape[:d], size, *t.shape[d + 1 :])) for d in range(t.rank) for size in (t.dims[d] + 1, 0)]
        yield from ([*types[:i], other, *types[i + 1 :]] for other in others if other != t)


def check(op: type[Op], attributes: dict[str, Any], arrays: list[Array]) -> str:
    """What is wrong with how an operator takes attributes and inputs; empty where nothing is."""
    try:
        made = op(**attributes)
        node = made(*(param(f"x{i}", type_of(a)) for i, a in enumerate(arrays)))
    except OpError as error:
        return "" if error.what.startswith(op.name) and error.code not in ("", "op-inputs") else f"unclear: {error.what}"
    except Exception as error:  # of any kind: the point of the test
        return f"{type(error).__name__}: {error}"
    try:
        with np.errstate(all="ignore"):
            results = made.reference(*arrays)
    except OpError as error:  # indices, which only the values tell
        return "" if error.code == "index-range" else f"accepted, then {error.what}"
    except Exception as error:
        return f"accepted, then {type(error).__name__}: {error}"
    types, several = (node.type, results) if isinstance(node.type, tuple) else ((node.type,), (results,))
    found = [np.asarray(r).shape for r in several]
    return "" if found == [t.shape for t in types] else f"accepted as {types}, computed {found}"


def arrays_of(sample: Sample, types: list[TensorType]) -> list[Array]:
    """The sample's arrays, but for inputs whose type has changed: those are drawn, indices as zeros."""
    own = [np.asarray(a) for a in sample.arrays()]
    drawn = [np.asarray(a) for a in Sample(tuple(types), low=sample.low, high=sample.high).arrays()]
    kept = [own[i] if i < len(own) and type_of(own[i]) == t else None for i, t in enumerate(types)]
    return [d * 0 if k is None and t.dtype.is_integer else d if k is None else k for k, d, t in zip(kept, drawn, types, strict=True)]


@every_sample
def test_attributes_that_do_not_fit_are_refused(op: type[Op], sample: Sample) -> None:
    arrays = [np.asarray(a) for a in sample.arrays()]
    wrong = {str(a): found for a in changed_attributes(op, sample) if (found := check(op, a, arrays))}
    assert wrong == {}


@every_sample
def test_inputs_that_do_not_fit_are_refused(op: type[Op], sample: Sample) -> None:
    types = [type_of(np.asarray(a)) for a in sample.arrays()]
    wrong = {str(t): found for t in changed_types(types) if (found := check(op, sample.attributes, arrays_of(sample, t)))}
    assert wrong == {}


@pytest.mark.parametrize("op, sample", [c for c in STATIC if AXES & {f.name for f in fields(c.values[0])}])
def test_an_axis_out_of_range_or_named_twice_is_refused_by_name(op: type[Op], sample: Sample) -> None:
    given = sample.attributes.get("x_shape", sample.attributes.get("shape") if issubclass(op, Source) else None)
    rank = len(given) if given is not None else np.asarray(sample.arrays()[0]).ndim
    params = [param(f"x{i}", type_of(np.asarray(a))) for i, a in enumerate(sample.arrays())]
    for axis in (rank, -rank - 1, 99):
        name = "axis" if hasattr(op(**sample.attributes), "axis") else "axes"
        tries = [axis] if name == "axis" else [(axis,), (0, axis), (0, 0), (0, -rank)]
        for value in tries:
            with pytest.raises(OpError) as caught:
                op(**{**sample.attributes, name: value})(*params)
            assert caught.value.code == "axis-range" and caught.value.what.startswith(f"{op.name}: ")


@pytest.mark.parametrize("op, sample", [c for c in CASES if getattr(c.values[0], "data_dependent", False)])
def test_data_dependent_operators_refuse_what_does_not_fit(op: type[Op], sample: Sample) -> None:
    """They never enter a graph: who runs them checks their inputs, and the reference the rest."""
    arrays = [np.asarray(a) for a in sample.arrays()]
    tries = [(a, arrays) for a in changed_attributes(op, sample)]
    tries += [(sample.attributes, arrays_of(sample, t)) for t in changed_types([type_of(a) for a in arrays])]
    wrong = {}
    for attributes, inputs in tries:
        try:
            check_inputs(op.name, op.signature, [type_of(a) for a in inputs])
            op(**attributes).reference(*inputs)
        except OpError as error:
            if not error.what.startswith(op.name):
                wrong[f"{attributes} {[type_of(a) for a in inputs]}"] = error.what
        except Exception as error:
            wrong[f"{attributes} {[type_of(a) for a in inputs]}"] = repr(error)
    assert wrong == {}


def test_an_axis_of_a_data_dependent_operator_is_refused_by_name() -> None:
    x = np.ones((2, 3), np.float32)
    for axis in (2, -3, 99):
        for run in (lambda axis=axis: Unique(axis).reference(x), lambda axis=axis: Compress(axis).reference(x, np.ones(2, np.bool_))):
            with pytest.raises(OpError) as caught:
                run()
            assert caught.value.code == "axis-range"


def test_a_softmax_axis_past_the_rank_is_refused() -> None:
    with pytest.raises(OpError, match=r"softmax: axes must be distinct and within -2..1, got \(2,\)"):
        Softmax(axis=2)(param("x", f32t(2, 3)))
