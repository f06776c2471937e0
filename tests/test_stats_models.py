"""Ranking, wrapper pairs, consistency and relations, against scipy, statsmodels and by hand."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]
from statsmodels.stats.contingency_tables import mcnemar  # type: ignore[import-untyped]

from formatspan.stats.consistency import Consistency, Same, consistency, seed_noise
from formatspan.stats.intervals import spans
from formatspan.stats.pairwise import McNemar, Paired, wrapper_pairs
from formatspan.stats.panel import Missing
from formatspan.stats.ranking import Ranking, kendall_w, ranking, rankings
from formatspan.stats.relations import (
    Correlation,
    SizeSlope,
    by_family,
    correlation,
    fsi_with_psi,
    size_slope,
)
from formatspan.stats.resampling import resample
from test_stats_panel import counts, panel, simulated


def _rng() -> np.random.Generator:
    return np.random.default_rng(4)


@pytest.mark.parametrize(
    "accuracy",
    [
        [[0.9, 0.8, 0.7], [0.5, 0.6, 0.4], [0.1, 0.7, 0.3], [0.2, 0.1, 0.9]],
        [[0.9, 0.8, 0.7], [0.9, 0.6, 0.7], [0.1, 0.6, 0.7], [0.2, 0.1, 0.9]],
    ],
    ids=["no ties", "ties"],
)
def test_kendall_w_against_friedman(accuracy: list[list[float]]) -> None:
    # Friedman's statistic is k (n - 1) W; scipy's is corrected for ties.
    values = np.array(accuracy)
    statistic, _ = stats.friedmanchisquare(*values)
    assert kendall_w(values) == pytest.approx(statistic / (3 * 3))


def test_kendall_w_at_its_ends() -> None:
    order = np.array([[0.9] * 4, [0.5] * 4, [0.1] * 4])
    assert kendall_w(order) == pytest.approx(1.0)
    assert kendall_w(order[:2]) == Missing("fewer than 3 models")
    assert kendall_w(order[:, :1]) == Missing("one wrapper")
    assert kendall_w(order * 0) == Missing("all models tie under every wrapper")


def test_a_reversal_needs_both_limits() -> None:
    accuracy = np.array([[0.9, 0.5, 0.7], [0.6, 0.8, 0.7]])
    deviations = np.zeros((3, 400, 2), dtype=np.float32)
    for margin, count in ((0.25, 1), (0.35, 0)):
        deviations[1, :, 0] = margin
        found = ranking(("a", "b"), accuracy, deviations)
        pair = found.comparisons[0]
        assert pair.gaps == pytest.approx([0.3, -0.3, 0.0])
        assert pair.margin == pytest.approx(margin)
        assert (pair.reversal, len(found.reversals)) == (bool(count), count)
        assert pair.reversed_share == pytest.approx(0.5), "one of three and half a tie"
        assert found.largest_reversed_gap == pytest.approx(0.3)
        assert [tuple(i) for i in found.intervals] == [(1.0, 2.0)] * 2
        assert found.ranks.tolist() == [[1, 2, 1], [2, 1, 1]]


def test_margins_of_pairs_are_quantiles_over_wrappers() -> None:
    world = panel(simulated(_rng(), [0.5, 0.7], models=3))
    drawn = resample(world, _rng(), resamples=1000)
    found = rankings(world, drawn)["task"]
    assert isinstance(found, Ranking)
    a, b = drawn.accuracy[0][:, :, 1].astype(float), drawn.accuracy[0][:, :, 2].astype(float)
    reach = np.abs(a - b).max(axis=0)
    assert found.comparisons[2].margin == pytest.approx(np.quantile(reach, 0.95), abs=1e-6)
    assert [(c.a, c.b) for c in found.comparisons] == list(combinations(world.models, 2))


def test_rankings_by_task_and_over_tasks() -> None:
    one = simulated(_rng(), [0.2, 0.8], models=2, name="one")
    two = simulated(_rng(), [0.8, 0.2], models=2, name="two")
    world = panel(one, two).common()
    found = rankings(world, resample(world, _rng(), resamples=200))
    assert list(found) == ["one", "two", None]
    overall = found[None]
    assert isinstance(overall, Ranking)
    mean = (one.means.accuracy + two.means.accuracy) / 2
    assert overall.comparisons[0].gaps == pytest.approx(mean[0] - mean[1])
    alone = panel(simulated(_rng(), [0.2, 0.8]))
    nothing = rankings(alone, resample(alone, _rng(), resamples=20))
    assert nothing == dict.fromkeys(["task", None], Missing("fewer than 2 models"))


def test_models_without_common_examples_are_not_ranked() -> None:
    replies = np.ones((2, 2, 2), dtype=np.int64)
    replies[0, 0], replies[1, 1] = 0, 0
    world = panel(counts(replies * 0, replies, replies)).common()
    found = rankings(world, resample(world, _rng(), resamples=20))
    assert isinstance(found["task"], Missing)
    assert isinstance(found[None], Missing)


def test_wrapper_pairs_against_scipy_and_statsmodels() -> None:
    task = simulated(_rng(), [0.5, 0.7, 0.75], examples=80)
    found = wrapper_pairs(panel(task))["model0"]
    assert isinstance(found, tuple)
    y = task.y[0]
    for pair, (f, g) in zip(found, combinations(range(3), 2), strict=True):
        paired, test = pair.paired, pair.mcnemar
        assert isinstance(paired, Paired)
        assert isinstance(test, McNemar)
        reference = stats.ttest_rel(y[:, f], y[:, g])
        assert paired.p == pytest.approx(reference.pvalue)
        interval = reference.confidence_interval(0.95)
        assert (paired.low, paired.high) == pytest.approx((interval.low, interval.high))
        table = np.histogram2d(y[:, f], y[:, g], bins=2)[0]
        assert test.p == pytest.approx(mcnemar(table, exact=True).pvalue)
    tests = [p.mcnemar for p in found if isinstance(p.mcnemar, McNemar)]
    assert min(t.p_holm for t in tests) == pytest.approx(min(1, 3 * min(t.p for t in tests)))


def test_wrapper_pairs_say_what_they_cannot_test() -> None:
    same = wrapper_pairs(panel(counts([[1, 1], [0, 0]])))["model0"]
    assert isinstance(same, tuple)
    assert same[0].paired == Missing("the difference is the same on every example")
    assert same[0].mcnemar == McNemar(0, 0, 1.0, 1.0)
    seeds = wrapper_pairs(panel(counts([[2, 1], [0, 0]], [[2, 2]] * 2, [[2, 2]] * 2)))["model0"]
    assert isinstance(seeds, tuple)
    assert seeds[0].mcnemar == Missing("several draws of an example")
    twins = wrapper_pairs(panel(counts([[1, 0], [1, 1]], clusters=[0, 0])))["model0"]
    assert isinstance(twins, tuple)
    assert twins[0].paired == Missing("a task has fewer than 2 clusters of examples")
    assert twins[0].mcnemar == Missing("examples in clusters are not independent")
    assert wrapper_pairs(panel(counts(np.zeros((0, 2)))))["model0"] == Missing(
        "not indexed on any task"
    )


def test_consistency_against_all_pairs_of_draws() -> None:
    rng = _rng()
    draws = rng.integers(2, size=(15, 3, 4))  # examples × wrappers × seeds
    task = counts(draws.sum(axis=2), np.full((15, 3), 4), np.full((15, 3), 4))
    found = consistency(panel(task), [draws[None, :, :, 0]])["model0", "task"]
    assert isinstance(found, Consistency)
    between = [
        (draws[:, f, s] != draws[:, g, r]).mean()
        for f, g in combinations(range(3), 2)
        for s in range(4)
        for r in range(4)
    ]
    within = [
        (draws[:, f, s] != draws[:, f, r]).mean()
        for f in range(3)
        for s, r in combinations(range(4), 2)
    ]
    apart = [
        np.abs(draws[:, f].mean(axis=1) - draws[:, g].mean(axis=1)).mean()
        for f, g in combinations(range(3), 2)
    ]
    assert found.disagreement == pytest.approx(np.mean(between))
    assert found.seed_noise == pytest.approx(np.mean(within))
    assert found.prosa == pytest.approx(np.mean(apart))
    agree = (np.ptp(draws[:, :, 0], axis=1) == 0).mean()
    assert found.same == Same(float(agree), 15)


def test_consistency_without_seeds_or_first_draws() -> None:
    world = panel(counts([[1, 0], [1, 1]]), counts(np.zeros((0, 2)), name="none"))
    found = consistency(world)
    assert found["model0", "none"] == Missing("no examples")
    here = found["model0", "task"]
    assert isinstance(here, Consistency)
    assert here.same == Missing("not given")
    assert here.seed_noise == Missing("one draw of every example")
    assert here.prosa == here.disagreement == 0.5
    gone = [np.array([[[1, -1], [-1, 1]]]), np.zeros((1, 0, 2), dtype=np.int64)]
    again = consistency(world, gone)["model0", "task"]
    assert isinstance(again, Consistency)
    assert again.same == Missing("no example has a first draw under every wrapper")
    with pytest.raises(ValueError, match="first draws"):
        consistency(world, gone[:1])
    assert seed_noise(np.array([[1, 2]]), np.array([[2, 1]])) == pytest.approx(1.0)


def test_correlations_say_what_is_missing() -> None:
    assert correlation([1, 2], [1, 2]) == Missing("n = 2: a correlation needs 3")
    assert correlation([1, 1, 1], [1, 2, 3]) == Missing("no variation")
    world = panel(
        *(
            simulated(_rng(), [0.5 - g, 0.5 + g], parse=[0.6 - g, 0.9], name=str(g))
            for g in (0.0, 0.1, 0.3)
        )
    )
    drawn = resample(world, _rng(), resamples=20)
    fsi, psi = spans(world, drawn), spans(world, drawn, "parseability")
    found = fsi_with_psi(fsi, psi)
    assert isinstance(found, Correlation)
    assert found.r == pytest.approx(np.corrcoef(fsi.value[0], psi.value[0])[0, 1])


def test_size_slope_against_scipy() -> None:
    fsi, size = [0.5, 0.3, 0.35, 0.1], [1e9, 7e9, 8e9, 7e10]
    found = size_slope(fsi, size, ["a", "a", "b", "b"])
    assert isinstance(found, SizeSlope)
    reference = stats.linregress(np.log10(size), fsi)
    half = stats.t.ppf(0.975, 2) * reference.stderr
    assert found.slope == pytest.approx(reference.slope)
    assert found.interval == pytest.approx((reference.slope - half, reference.slope + half))
    assert found.r == pytest.approx(reference.rvalue)
    # A published table of critical values of r: 0.950 at two degrees of freedom.
    assert found.detectable_r == pytest.approx(0.950, abs=5e-4)
    steps = np.log10(7), np.log10(70 / 8)
    by_hand = (-0.2 * steps[0] - 0.25 * steps[1]) / (steps[0] ** 2 + steps[1] ** 2)
    assert found.within_families == pytest.approx(by_hand)


def test_few_models_show_nothing() -> None:
    assert size_slope([0.1, 0.2], [1, 2], "ab") == Missing("2 models: a slope over models needs 3")
    assert size_slope([0.1, 0.2, 0.3], [1, 1, 1], "abc") == Missing("all models have one size")
    lone = size_slope([0.1, 0.2, 0.3], [1, 10, 100], "abc")
    assert isinstance(lone, SizeSlope)
    assert lone.within_families == Missing("no family has models of two sizes")
    grouped = by_family({"x": 0.1, "y": 0.2, "z": 0.3}, {"x": "f", "z": "f"})
    assert {k: v.tolist() for k, v in grouped.items()} == {"f": [0.1, 0.3], "y": [0.2]}
