"""The memory plan: no two lives that meet overlap, and the peak is near the bound."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.compiler import Life, plan
from jumar.compiler.plan import ALIGN

LIVES = st.lists(
    st.builds(
        lambda nbytes, first, length: Life(nbytes, first, first + length),
        st.integers(1, 5000),
        st.integers(0, 30),
        st.integers(0, 12),
    ),
    max_size=40,
)


@given(LIVES)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_lives_that_meet_do_not_overlap(lives):
    found = plan(lives)
    for i, a in enumerate(lives):
        assert found.offsets[i] % ALIGN == 0
        assert found.offsets[i] + a.nbytes <= found.nbytes
        for j, b in enumerate(lives[:i]):
            if a.first <= b.last and b.first <= a.last:
                assert found.offsets[i] + a.nbytes <= found.offsets[j] or found.offsets[j] + b.nbytes <= found.offsets[i]


@given(LIVES)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_bound_is_the_largest_sum_of_live_bytes(lives):
    found = plan(lives)
    expected = max((sum(x.nbytes for x in lives if x.first <= step <= x.last) for step in range(50)), default=0)
    assert found.bound == expected
    assert found.nbytes >= expected
    assert max(found.live_nbytes, default=0) == expected


@pytest.mark.parametrize("seed", range(8))
def test_peak_of_a_network_like_graph_is_within_a_tenth_of_the_bound(seed):
    r = random.Random(seed)
    lives = [
        Life(r.choice([1, 2, 4, 8, 16, 100, 300]) * 1024 * r.randint(1, 8), i, i + r.choice([1, 1, 1, 2, 2, 3, 5, 20])) for i in range(150)
    ]
    found = plan(lives)
    assert found.ratio <= 1.10
    assert found.total_nbytes == sum(x.nbytes for x in lives)


def test_plan_is_the_same_each_time():
    lives = [Life(100 * (i % 7 + 1), i, i + i % 5) for i in range(60)]
    assert plan(lives).offsets == plan(lives).offsets


def test_plan_of_nothing_is_empty():
    found = plan([])
    assert (found.nbytes, found.bound, found.ratio, found.saving) == (0, 0, 1.0, 0.0)


def test_largest_lives_come_first():
    assert [x.nbytes for x in plan([Life(1, 0, 0), Life(3, 0, 0), Life(2, 0, 0)]).largest(2)] == [3, 2]
