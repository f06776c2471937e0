"""The noise floor against complete enumeration."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import permutation_test  # type: ignore[import-untyped]

from formatspan.stats.panel import Missing
from formatspan.stats.permutation import Floor, floor_of, integer_scores, noise_floor
from test_stats_panel import counts, panel, simulated


def _rng() -> np.random.Generator:
    return np.random.default_rng(7)


def _exact(y: np.ndarray, fixed: int = 0) -> tuple[float, float]:
    """Mean range and share of at least the observed one; the first rows may stay as they are."""
    rows = [[tuple(r)] if i < fixed else list(permutations(r)) for i, r in enumerate(y)]
    ranges = np.array([np.ptp(np.array(t).mean(axis=0)) for t in product(*rows)])
    return float(ranges.mean()), float((ranges >= np.ptp(y.mean(axis=0)) - 1e-12).mean())


@pytest.mark.parametrize(
    ("correct", "replies"),
    [
        ([[1, 0, 0], [1, 1, 0], [1, 0, 0], [1, 1, 1]], 1),
        ([[3, 0, 1], [2, 2, 0], [3, 1, 0]], 3),
        ([[3, 1, 1], [2, 2, 0], [3, 1, 0]], [[3, 3, 2], [3, 2, 3], [3, 3, 3]]),
        ([[2, 0, 1]] * 4, 2),
    ],
    ids=["one draw", "several draws", "failures", "equal rows"],
)
def test_against_enumeration(correct: list[list[int]], replies: list[list[int]] | int) -> None:
    right = np.array(correct)
    made = np.broadcast_to(np.array(replies), right.shape)
    mean, p = _exact(right / made)
    found = floor_of(*integer_scores(right, made), _rng(), count=20_000)
    assert found.mean == pytest.approx(mean, abs=0.005)
    assert found.p == pytest.approx(p, abs=0.012)


def test_more_wrappers_than_are_listed() -> None:
    # One row may stay as it is, since only relative labels matter.
    right = np.array([[0, 1, 2, 3, 4, 5], [5, 5, 3, 1, 0, 0]])
    mean, p = _exact(right / 5, fixed=1)
    found = floor_of(right, 5, _rng(), count=20_000)
    assert found.mean == pytest.approx(mean, abs=0.005)
    assert found.p == pytest.approx(p, abs=0.012)


def test_many_rows_of_one_kind_are_drawn_as_counts() -> None:
    right = np.array([[2, 0, 1]] * 300 + [[1, 1, 1]] * 50)
    found = floor_of(right, 2, _rng(), count=4000)
    # Permuted rows have mean 1/2 and variance 1/6; a mean of 350 of three, range 1.6926 sd.
    sd = np.sqrt(300 / 6 * 3 / 2) / 350
    assert found.mean == pytest.approx(1.6926 * sd, rel=0.03)
    assert found.p == pytest.approx(1 / 4001)


def test_two_wrappers_against_scipy() -> None:
    y = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [1, 0], [1, 1], [0, 0], [1, 0]])
    exact = permutation_test(
        (y[:, 0], y[:, 1]),
        lambda a, b: abs(a.sum() - b.sum()),
        permutation_type="samples",
        alternative="greater",
        n_resamples=np.inf,
        vectorized=False,
    )
    found = floor_of(y, 1, _rng(), count=20_000)
    assert found.p == pytest.approx(exact.pvalue, abs=0.01)


def test_no_variation_is_no_range_and_p_one() -> None:
    same = np.ones((5, 3), dtype=np.int64)
    assert floor_of(same, 1, _rng(), count=10) == Floor(0.0, 1.0)


def test_scores_are_exact_until_the_common_multiple_is_huge() -> None:
    scores, unit = integer_scores(np.array([[1, 1]]), np.array([[2, 3]]))
    assert (scores.tolist(), unit) == ([[3, 2]], 6)
    replies = np.array([[2, 3, 5, 7, 11, 13, 17, 19]])
    scores, unit = integer_scores(replies, replies)
    assert (scores.tolist(), unit) == ([[10**6] * 8], 10**6)


def test_every_pair_of_a_panel() -> None:
    world = panel(simulated(_rng(), [0.5] * 5, models=2), counts(np.zeros((2, 0, 5)), name="none"))
    found = noise_floor(world, _rng(), count=2000)
    assert found["model0", "none"] == Missing("no examples")
    floor = found["model1", "task"]
    assert isinstance(floor, Floor)
    assert 0.05 < floor.mean < 0.09


def test_partial_credit_is_permuted_too() -> None:
    # Scores 1, 0.25 and 0: row sums are fixed, so two rows give ranges by hand.
    task = replace(counts([[1, 0], [1, 0]], [[1, 0], [1, 1]]), credit=0.25)
    found = noise_floor(panel(task), _rng(), count=20_000)["model0", "task"]
    assert isinstance(found, Floor)
    assert found.mean == pytest.approx((1.75 / 2 + 0.25 / 2) / 2, abs=0.005)
    assert found.p == pytest.approx(0.5, abs=0.012)
