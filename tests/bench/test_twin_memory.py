"""The bench of memory: its models are what their names say, and its plans stand between the bound and the sum."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import twin_memory as bench


def test_bert_large_and_resnet50_have_their_published_numbers_of_weights():
    bert, resnet = bench.bert_large(1), bench.resnet50(1)
    assert sum(w.type.size for w in bert.weights) == pytest.approx(335e6, rel=0.005)
    assert sum(w.type.size for w in resnet.weights) == pytest.approx(25.56e6, rel=0.001)


def test_a_plan_is_at_the_bound_and_saves_more_than_was_published():
    row = bench.row("BERT, two layers", bench.bert_large(8, layers=2, words=1000), "adamw", "O0")
    assert row.any <= row.bound <= row.planned <= row.counted <= min(row.pools.values()) <= row.total
    assert row.planned <= 1.05 * row.any
    assert row.saving(row.total) > bench.PUBLISHED
    assert row.saving(row.total, whole=True) < row.saving(row.total)
    assert row.cheap < row.planned and row.traffic < 0.15
    assert len(bench.table([row]).splitlines()) == 3
