"""Small formulas, curves over the length cap and verdicts: outside figures and hand-worked."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]
from scipy import stats  # type: ignore[import-untyped]
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from formatspan.stats import distributions
from formatspan.stats.cap import Lengths, cap_curve, cut_off, lengths
from formatspan.stats.intervals import Estimate, spans
from formatspan.stats.panel import Missing, Panel
from formatspan.stats.resampling import resample_together
from formatspan.stats.simple import (
    MeanError,
    Pooled,
    cluster_error,
    clusters,
    consistent_error,
    mean_error,
    pass_at,
    pooled,
    stratified_error,
    wilson,
)
from formatspan.stats.verdict import Needed, Sides, Verdict, judge, needed, verdicts
from test_stats_panel import counts, panel, simulated


@pytest.mark.parametrize(("k", "n"), [(0, 25), (25, 25), (3, 40), (1, 1), (700, 5000)])
def test_wilson_against_statsmodels(k: int, n: int) -> None:
    assert wilson(k, n) == pytest.approx(proportion_confint(k, n, method="wilson"), abs=1e-12)


def test_distributions_against_scipy_stats() -> None:
    assert distributions.normal_quantile(0.975) == pytest.approx(stats.norm.ppf(0.975))
    assert distributions.t_quantile(0.9, 4) == pytest.approx(stats.t.ppf(0.9, 4))
    assert distributions.t_two_sided(-2.1, 7) == pytest.approx(2 * stats.t.sf(2.1, 7))
    for k, n in ((3, 10), (5, 10), (0, 0)):
        expected = stats.binomtest(k, n).pvalue if n else 1.0
        assert distributions.sign_test(k, n) == pytest.approx(expected)


def test_no_scores_have_reasons() -> None:
    assert wilson(0, 0) == Missing("n = 0")
    assert mean_error([]) == Missing("n = 0")
    assert cluster_error([], np.zeros(0, dtype=np.int64)) == Missing("n = 0")
    assert pooled([[]]) == Missing("no scores")
    assert stratified_error([], []) == Missing("no tasks")
    assert pass_at(2, np.array([1]), np.array([1])) == Missing(
        "pass@2 needs at least 2 draws of every example"
    )
    with pytest.raises(ValueError, match="k >= 1"):
        pass_at(0, np.array([1]), np.array([1]))
    one = cluster_error([1, 0], np.array([3, 3]))
    assert one == MeanError(0.5, Missing("fewer than 2 clusters"), 2)


def test_errors_against_scipy_and_statsmodels() -> None:
    rng = np.random.default_rng(1)
    scores, codes = rng.random(30), rng.integers(8, size=30)
    plain, robust = mean_error(scores), cluster_error(scores, codes)
    assert isinstance(plain, MeanError)
    assert isinstance(robust, MeanError)
    assert plain.se == pytest.approx(stats.sem(scores))
    fit = sm.OLS(scores, np.ones(30)).fit(cov_type="cluster", cov_kwds={"groups": codes})
    assert robust.se == pytest.approx(fit.bse[0])
    assert consistent_error(scores, 0.1)
    assert not consistent_error(scores, 0.0)
    assert consistent_error([1, 1], 0.0)


def test_missing_cluster_ids_stand_alone() -> None:
    found = clusters(["a", None, "b", None, "a", float("nan")])
    assert found.codes.tolist() == [0, 1, 2, 3, 0, 4]
    assert found.missing == 3


def test_pass_at_k_against_all_subsets() -> None:
    draws = [[0, 1, 1, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 0]]
    for k in (1, 2, 3, 5):
        expected = np.mean([[any(s) for s in combinations(d, k)] for d in draws])
        found = pass_at(k, np.array([sum(d) for d in draws]), np.array([5, 5, 5]))
        assert found == pytest.approx(expected)


def test_stratified_error_by_hand() -> None:
    # Shares 3/4 and 1/4: √((0.75 · 0.02)² + (0.25 · 0.04)²).
    assert stratified_error([0.02, 0.04], [300, 100]) == pytest.approx(np.hypot(0.015, 0.01))
    assert pooled([[1, 1, 1, 0], [0, 0]]) == Pooled(0.375, 0.5)


def test_lengths_and_shares_cut_off_by_hand() -> None:
    tokens = [3, 5, 5, 24, 40]
    assert cut_off(tokens, [2, 3, 5, 24, 40]) == pytest.approx([1.0, 0.8, 0.4, 0.2, 0.0])
    found = lengths(tokens)
    assert isinstance(found, Lengths)
    assert (found.n, found.mean) == pytest.approx((5, 15.4))
    assert (found.quantiles[0], found.quantiles[2], found.quantiles[-1]) == (3, 5, 40)
    assert lengths([]) == cut_off([], [5]) == Missing("no replies")


def test_curves_over_the_cap_need_not_be_monotone() -> None:
    # Under cap 1 nothing is complete, under 2 one wrapper's replies, under 3 all.
    complete = {1: [0, 0], 2: [1, 0], 3: [1, 1]}

    def panel_at(cap: int) -> Panel:
        return panel(counts([complete[cap]] * 50, [complete[cap]] * 50))

    found = cap_curve([1, 2, 3], panel_at, 1, exact=True)
    for curve in (found.fsi["model0"], found.psi["model0"]):
        assert [e.value for e in curve if isinstance(e, Estimate)] == [0.0, 1.0, 0.0]
    assert found.exact


def _estimate(value: float, margin: float) -> Estimate:
    return Estimate(value, max(0.0, value - margin), min(1.0, value + margin), margin)


@pytest.mark.parametrize(
    ("normalized", "arm", "finding"),
    [
        ((0.4, 0.1), (0.05, 0.05), "collapsed"),
        ((0.4, 0.1), (0.1, 0.05), "undecided"),
        ((0.4, 0.1), (0.35, 0.05), "not collapsed"),
        ((0.08, 0.1), (0.01, 0.01), "no effect to explain"),
        ((0.08, 0.08), (0.5, 0.01), "no effect to explain"),
    ],
)
def test_the_rule(normalized: tuple[float, float], arm: tuple[float, float], finding: str) -> None:
    found = judge(_estimate(*normalized), _estimate(*arm), _estimate(0.1, 0.1), 100)
    assert found.finding == finding
    assert (found.needed is not None) == (finding == "undecided")


def test_examples_that_would_decide() -> None:
    # Gap 0.2 - 0.1; reach 0.05 + 0.1 / 2 = 0.1: the limits touch at n, so one more decides.
    assert needed(_estimate(0.4, 0.1), _estimate(0.1, 0.05), 100) in (
        Needed(101, "collapsed"),
        Needed(100, "collapsed"),
    )
    found = needed(_estimate(0.4, 0.1), _estimate(0.25, 0.05), 100)
    assert found == Needed(401, "not collapsed") or found == Needed(400, "not collapsed")
    assert isinstance(needed(_estimate(0.5, 0.1), _estimate(0.25, 0.1), 100), Missing)
    # With that many examples the margins have shrunk to where the rule decides.
    shrunk = np.sqrt(100 / 410)
    again = judge(
        _estimate(0.4, 0.1 * shrunk), _estimate(0.25, 0.05 * shrunk), _estimate(0, 0), 410
    )
    assert again.finding == "not collapsed"


def test_verdicts_of_arms_drawn_together() -> None:
    rng = np.random.default_rng(6)
    normalized = panel(simulated(rng, [0.8, 0.8, 0.2], parse=[0.9, 0.9, 0.25], models=2))
    same = normalized.tasks[0]
    lenient = panel(
        counts(np.repeat(same.correct[:, :, :1], 3, axis=2)),
    )
    drawn = resample_together([normalized, lenient, normalized], rng, resamples=2000)
    here, there, again = (
        spans(p, d) for p, d in zip((normalized, lenient, normalized), drawn, strict=True)
    )
    for found in verdicts(Sides(here, there)).values():
        assert isinstance(found, Verdict)
        assert found.finding == "collapsed"
        assert found.difference.value == pytest.approx(found.normalized.value)
        assert found.difference.margin >= max(found.normalized.margin, found.arm.margin)
    stays = verdicts(Sides(here, again)).values()
    assert {v.finding for v in stays if isinstance(v, Verdict)} == {"not collapsed"}


def test_a_verdict_on_nothing_has_a_reason() -> None:
    rng = np.random.default_rng(6)
    normalized = panel(counts([[1, 0]] * 5))
    gone = panel(counts([[0, 0]] * 5, [[0, 0]] * 5, [[0, 0]] * 5))
    drawn = resample_together([normalized, gone], rng, resamples=20)
    found = verdicts(Sides(spans(normalized, drawn[0]), spans(gone, drawn[1])))
    assert found == {"model0": Missing("no task is indexed on both sides")}
