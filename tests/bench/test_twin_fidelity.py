"""bench/fit_twin.py and bench/twin_fidelity.py: what is shipped is what the script finds, and unseen kernels are predicted as well as we say."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from jumar.device.npu.time import calibration

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture(scope="module")
def fit_twin() -> ModuleType:
    sys.path.insert(0, str(BENCH))
    return importlib.import_module("fit_twin")


@pytest.fixture(scope="module")
def rows(fit_twin: ModuleType) -> Any:
    if not fit_twin.DATA.exists():
        pytest.skip("the measured kernels are not on this machine")
    return fit_twin.read(fit_twin.DATA)


def test_the_constants_are_those_that_the_script_finds(fit_twin: ModuleType, rows: Any) -> None:
    found = fit_twin.fit(rows, np.ones(len(rows), dtype=bool))
    assert {k: pytest.approx(v, rel=0.02) for k, v in found.items()} == calibration().constants


def test_unseen_kernels_are_predicted_as_well_as_we_say(fit_twin: ModuleType, rows: Any) -> None:
    twin_fidelity = importlib.import_module("twin_fidelity")
    found = twin_fidelity.figures(fit_twin.five_fold(rows), rows.measured)
    assert found["median_error"] <= 0.22 and found["within_two"] >= 0.82 and found["spearman"] >= 0.93 and 0.93 <= found["bias"] <= 1.07


def test_a_row_never_meets_its_own_fold(fit_twin: ModuleType, rows: Any) -> None:
    row = dict(rows.raw[0])
    assert fit_twin.fold_of(row) == fit_twin.fold_of({**row, "measured_us": "1", "block_dim": "7"})


def test_what_the_device_did_is_no_feature(fit_twin: ModuleType, rows: Any) -> None:
    assert not {"block_dim", "measured_us", "tilesim_us"} & set(rows.columns)
    assert all("block_dim" not in task.attrs for task in rows.tasks)
