"""Every operator's samples through its CPU schedule: equal to the reference; and a list of what runs on the host instead."""

from __future__ import annotations

import numpy as np
import pytest
from tests.operators.cpu.run import check, lower

from jumar.base import NATIVE, type_of
from jumar.ir import REGISTRY, Op, apply, param
from jumar.operators import find_schedule

OPS = [c for _, c in sorted(REGISTRY.items()) if c.samples and find_schedule("cpu", c(**c.samples[0].attributes)) is not None]
LOOSE = {"group_norm": 4, "instance_norm": 4, "layer_norm": 4, "lp_norm": 4}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", OPS, ids=lambda c: c.name)
def test_samples(kind: type[Op]) -> None:
    ran = 0
    with np.errstate(all="ignore"):
        for sample in kind.samples:
            op, arrays = kind(**sample.attributes), sample.arrays()
            expected = op.reference(*arrays)
            results = expected if isinstance(expected, tuple) else (expected,)
            if not all(type_of(np.asarray(a)).dtype in NATIVE for a in (*arrays, *results)):
                continue
            if lower(apply(op, *(param(f"x{i}", type_of(a)) for i, a in enumerate(arrays)))) is not None:
                check(op, *arrays, scale=LOOSE.get(kind.name, 1))
                ran += 1
    if not ran:
        pytest.skip(f"{kind.name}: no schedule of its own for these types; it is decomposed, or runs on the host")
