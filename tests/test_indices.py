"""Indices against hand-worked figures and independent formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from formatspan.stats.indices import (
    Cells,
    bootstrap_over_tasks,
    failure_bounds,
    indices,
    token_spread,
    wins,
)


def _cells(correct: list[list[int]], parsed: list[list[int]], seeds: int = 1) -> Cells:
    full = np.full(np.shape(correct), seeds)
    return Cells(np.array(correct), np.array(parsed), full, full)


def test_indices_by_hand() -> None:
    # Wrapper 1: right 3 of 4, all parsed. Wrapper 2: right 1 of 4, 2 parsed.
    found = indices(
        _cells([[1, 1], [1, 0], [1, 0], [0, 0]], [[1, 1], [1, 0], [1, 1], [1, 0]]), 0.25
    )
    assert found is not None
    assert found.n == 4
    assert found.accuracy == pytest.approx([0.75, 0.25])
    assert found.parseability == pytest.approx([1.0, 0.5])
    assert found.conditional == pytest.approx([0.75, 0.5])
    assert (found.fsi, found.psi) == pytest.approx((0.5, 0.5))
    assert found.nfsi == pytest.approx(0.5 / (0.5 + 1e-6))
    assert found.rfsi == pytest.approx(0.5 / 0.75)
    assert found.cfsi == pytest.approx((0.75 - 0.25) / 0.75)
    assert found.clipped == 0


def test_clipping_below_chance_is_counted() -> None:
    found = indices(_cells([[1, 0], [1, 0]], [[1, 1], [1, 1]]), 0.5)
    assert found is not None
    assert (found.cfsi, found.clipped) == (1.0, 1)


def test_nothing_right_is_no_division_by_zero() -> None:
    found = indices(_cells([[0, 0]], [[0, 0]]), 0.0)
    assert found is not None
    assert (found.fsi, found.psi, found.nfsi, found.rfsi, found.cfsi) == (0, 0, 0, 0, 0)
    assert np.isnan(found.conditional).all()


def test_an_example_without_a_reply_under_one_wrapper_is_not_indexed() -> None:
    replies = np.array([[1, 1], [1, 0]])
    cells = Cells(np.array([[1, 0], [1, 0]]), replies, replies, np.ones((2, 2), dtype=np.int64))
    found = indices(cells, 0.0)
    assert found is not None
    assert (found.n, found.fsi) == (1, 1.0)
    assert failure_bounds(cells) == pytest.approx((0.5, 1.0))


def test_a_failed_seed_keeps_the_example() -> None:
    # Field case d011's kind: a failed request is neither wrong nor a reason to drop the row.
    cells = Cells(np.array([[2, 1]]), np.array([[2, 1]]), np.array([[2, 1]]), np.array([[2, 2]]))
    found = indices(cells, 0.0)
    assert found is not None
    assert (found.n, found.fsi) == (1, 0.0)
    assert found.bounds == pytest.approx((0.0, 0.5))


def test_no_indexed_example_is_none() -> None:
    none = np.zeros((3, 2), dtype=np.int64)
    assert indices(Cells(none, none, none, none + 1), 0.25) is None


@given(
    hnp.arrays(np.int64, (9, 4), elements=st.integers(0, 3)),
    hnp.arrays(np.int64, (9, 4), elements=st.integers(0, 3)),
    st.floats(0, 0.5),
)
def test_ranges_and_identities(parsed: np.ndarray, raw: np.ndarray, chance: float) -> None:
    correct = np.minimum(raw, parsed)
    full = np.full(parsed.shape, 3)
    found = indices(Cells(correct, parsed, full, full), chance)
    assert found is not None
    assert 0 <= found.fsi <= 1
    assert 0 <= found.cfsi <= 1
    assert 0 <= found.rfsi <= 1
    assert found.bounds == pytest.approx((found.fsi, found.fsi)), "nothing is missing"
    some = found.parseability > 0
    assert (found.parseability * found.conditional)[some] == pytest.approx(found.accuracy[some])


@given(hnp.arrays(np.float64, 5, elements=st.sampled_from([0.0, 0.25, 0.5, 1.0])))
def test_wins_add_up_to_one_and_ties_share(accuracy: np.ndarray) -> None:
    won = wins(accuracy)
    assert won.sum() == pytest.approx(1.0)
    assert set(won[won > 0]) == {1 / (accuracy == accuracy.max()).sum()}


def test_bootstrap_over_tasks_against_enumeration() -> None:
    # Two tasks: the mean is 0, 0.5 or 1 with probability 1/4, 1/2, 1/4.
    interval = bootstrap_over_tasks(np.array([0.0, 1.0]), np.random.default_rng(1))
    assert interval == (0.0, 1.0)
    narrow = bootstrap_over_tasks(np.array([0.4, 0.4, 0.4]), np.random.default_rng(1))
    assert narrow == pytest.approx((0.4, 0.4))
    assert bootstrap_over_tasks(np.array([0.4]), np.random.default_rng(1)) is None


def test_token_spread_by_hand() -> None:
    tokens = np.array([[100.0, 105.0], [100.0, 100.0], [np.nan, 3.0]])
    found = token_spread(tokens)
    assert found[:2] == pytest.approx([5 / 102.5, 0.0])
    assert np.isnan(found[2])
