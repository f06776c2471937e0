"""The parts of FSI, what scoring forces, and the noise-corrected variance."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from formatspan.stats.decomposition import (
    Decomposition,
    Parts,
    Support,
    common_support,
    decompose,
    decompositions,
    model_parts,
    split,
)
from formatspan.stats.forced import Forced, forced, forced_of
from formatspan.stats.panel import Missing
from formatspan.stats.variance import (
    WrapperVariance,
    mean_covariance,
    wrapper_variance,
    wrapper_variance_of,
)
from test_stats_panel import counts, panel, simulated


def test_parts_by_hand() -> None:
    # P 1 and 0.4, C 0.75 and 0.5: gap 0.55 = 0.6 · 0.625 + 0.25 · 0.7.
    found = split(np.array([0.75, 0.2]), np.array([1.0, 0.4]), 0, 1)
    assert found == pytest.approx(Parts(0.55, 0.375, 0.175, 0.3, 0.45))


def test_a_wrapper_that_never_parsed_takes_c_from_the_other() -> None:
    # Everything is then compliance.
    assert split(np.array([0.6, 0.0]), np.array([0.8, 0.0]), 0, 1) == pytest.approx(
        Parts(0.6, 0.6, 0.0, 0.6, 0.6)
    )
    assert split(np.array([0.0, 0.0]), np.array([0.0, 0.0]), 0, 1) == Parts(0, 0, 0, 0, 0)
    # P_w > 0 but nothing right there: a conditional part of full size is left.
    assert split(np.array([0.5, 0.0]), np.array([0.5, 0.5]), 0, 1) == pytest.approx(
        Parts(0.5, 0.0, 0.5, 0.0, 0.0)
    )


def test_ties_are_averaged_over_tied_pairs() -> None:
    # Wrappers 2 and 3 tie for worst: one for lack of parsing, one for wrong answers.
    right = [[1, 0, 0]] * 20
    found = decompose(counts(right, [[1, 0, 1]] * 20), 0)
    assert found.best == (0,)
    assert found.worst == (1, 2)
    assert found.parts == pytest.approx(Parts(1.0, 0.5, 0.5, 0.5, 0.5))
    assert found.shares == pytest.approx((0.5, 0.5))
    assert (found.parsed, found.few_parsed) == (0, True)
    assert found.support == Support(20, 1.0, 0.0)


def test_no_span_has_no_shares() -> None:
    found = decompose(counts([[1, 1], [0, 0]] * 10, [[1, 1], [0, 1]] * 10), 0)
    assert found.parts == pytest.approx(Parts(0, 0, 0, 0, 0))
    assert found.shares == Missing("FSI = 0")
    unparsed = decompose(counts([[0, 0]] * 3, [[0, 0]] * 3), 0)
    assert unparsed.parts == Parts(0, 0, 0, 0, 0)
    assert unparsed.support == Missing("no example parsed under both wrappers")


def test_common_support_by_hand() -> None:
    correct = np.array([[2, 1], [0, 0], [1, 0], [2, 2]])
    parsed = np.array([[2, 2], [1, 1], [1, 0], [2, 2]])
    found = common_support(correct, parsed, 0, 1)
    assert found == pytest.approx(Support(3, 2 / 3, 0.5))


@given(
    hnp.arrays(np.int64, (6, 4), elements=st.integers(0, 2)),
    hnp.arrays(np.int64, (6, 4), elements=st.integers(0, 2)),
)
def test_parts_add_up_for_any_counts(parsed: np.ndarray, raw: np.ndarray) -> None:
    task = counts(np.minimum(raw, parsed), parsed, np.full(parsed.shape, 2))
    found = decompose(task, 0).parts
    assert found.compliance + found.conditional == pytest.approx(found.fsi, abs=1e-12)
    assert found.fsi == pytest.approx(np.ptp(task.means.accuracy[0]), abs=1e-12)
    ends = (found.compliance_at_worst, found.compliance_at_best)
    assert min(ends) - 1e-12 <= found.compliance <= max(ends) + 1e-12


def test_mean_parts_of_a_model() -> None:
    world = panel(
        counts([[1, 0]] * 10, name="parsed"),
        counts([[1, 0]] * 10, [[1, 0]] * 10, name="unparsed"),
        counts(np.zeros((0, 2)), name="none"),
    )
    found = decompositions(world)
    assert found["model0", "none"] == Missing("no examples")
    assert isinstance(found["model0", "parsed"], Decomposition)
    assert model_parts(found, "model0") == pytest.approx(Parts(1.0, 0.5, 0.5, 0.5, 0.5))
    assert model_parts(found, "other") == Missing("not indexed on any task")


def test_what_scoring_forces_by_hand() -> None:
    # C̄ = (0.6 + 0.1) / (1.0 + 0.4) = 0.5; PSI 0.6.
    found = forced_of(np.array([0.6, 0.1]), np.array([1.0, 0.4]))
    assert found.conditional == pytest.approx(0.5)
    assert found.accuracy == pytest.approx([0.5, 0.2])
    assert found.fsi == pytest.approx(0.5 * 0.6)
    assert forced_of(np.zeros(2), np.zeros(2)).fsi == 0.0
    cells = forced(panel(counts([[1, 0]] * 4), counts(np.zeros((0, 2)), name="none")))
    assert isinstance(cells["model0", "task"], Forced)
    assert cells["model0", "none"] == Missing("no examples")


def test_variance_against_the_formula_over_pairs() -> None:
    task = simulated(np.random.default_rng(3), [0.4, 0.5, 0.8], seeds=2)
    y = task.y[0]
    noise = [(y[:, f] - y[:, g]).var(ddof=1) / (2 * len(y)) for f, g in combinations(range(3), 2)]
    found = wrapper_variance(panel(task))["model0", "task"]
    assert isinstance(found, WrapperVariance)
    assert found.variance == pytest.approx(y.mean(axis=0).var(ddof=1) - np.mean(noise))
    assert found.sigma == pytest.approx(np.sqrt(found.variance))


def test_variance_is_unbiased_and_never_clamped() -> None:
    # True accuracies 0.5 ± 0.05 have variance 0.0025 · 4 / 3 with n - 1.
    rng = np.random.default_rng(5)
    for accuracy in ([0.5] * 5, [0.45, 0.55, 0.45, 0.55, 0.5]):
        task = simulated(rng, accuracy, models=600, examples=100)
        found = [wrapper_variance_of(y, task.groups) for y in task.y]
        values = np.array([f.variance for f in found if isinstance(f, WrapperVariance)])
        error = values.std() / np.sqrt(len(values))
        assert values.mean() == pytest.approx(np.var(accuracy, ddof=1), abs=4 * error)
    assert (values < 0).any()


def test_one_example_has_no_variance() -> None:
    assert wrapper_variance(panel(counts([[1, 0]]))) == {
        ("model0", "task"): Missing("one example: its variance is unknown")
    }


def test_covariance_of_means_against_statsmodels() -> None:
    rng = np.random.default_rng(2)
    y = rng.random((40, 2))
    groups = rng.integers(12, size=40)
    found = mean_covariance(y, groups)
    assert found is not None
    for column in range(2):
        fit = sm.OLS(y[:, column], np.ones(40)).fit(cov_type="cluster", cov_kwds={"groups": groups})
        assert found[column, column] == pytest.approx(fit.bse[0] ** 2)
    own = mean_covariance(y, np.arange(40))
    assert own == pytest.approx(np.cov(y.T) / 40)


def test_partial_credit_splits_exactly() -> None:
    # An unparsed reply scores 0.25. P 1 and 0.4, C 0.75 and 0.5: A 0.75 and 0.35.
    correct = [[1, 1]] * 4 + [[1, 0]] * 11 + [[0, 0]] * 5
    parsed = [[1, 1]] * 8 + [[1, 0]] * 12
    task = replace(counts(correct, parsed), credit=0.25)
    assert task.means.accuracy[0] == pytest.approx([0.75, 0.35])
    found = decompose(task, 0).parts
    # 0.6 · (0.625 - 0.25) and 0.25 · 0.7.
    assert found == pytest.approx(Parts(0.4, 0.225, 0.175, 0.15, 0.3))
    counterfactual = forced(panel(task))["model0", "task"]
    assert isinstance(counterfactual, Forced)
    # C̄ = (15 + 4) / (20 + 8).
    assert counterfactual.conditional == pytest.approx(19 / 28)
    assert counterfactual.accuracy == pytest.approx([19 / 28, 0.4 * 19 / 28 + 0.6 * 0.25])
    assert counterfactual.fsi == pytest.approx(np.ptp(counterfactual.accuracy))
