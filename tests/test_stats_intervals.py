"""The resampling engine and max-T intervals: known spreads, hand-worked and exact cases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import skellam  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from formatspan.stats import resampling
from formatspan.stats.intervals import (
    Contrast,
    Equality,
    Estimate,
    contrast,
    differences,
    equal_accuracy,
    mean_intervals,
    pair_intervals,
    spans,
)
from formatspan.stats.panel import Missing
from formatspan.stats.resampling import resample, resample_together
from formatspan.stats.simple import holm
from test_stats_panel import counts, panel, simulated


def _rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_deviations_spread_as_the_formula_says() -> None:
    # Variance of a bootstrap mean s²(n-1)/n², plus that of (Poisson - Poisson)/n: 2/n².
    task = simulated(_rng(), [0.5, 0.8, 0.9], seeds=3)
    drawn = resample(panel(task), _rng(), resamples=20_000).accuracy[0][:, :, 0]
    y = task.y[0]
    expected = np.sqrt(y.var(axis=0) / 200 + 2 / 200**2)
    assert drawn.std(axis=1) == pytest.approx(expected, rel=0.02)
    assert drawn.mean(axis=1) == pytest.approx([0, 0, 0], abs=0.001)


def test_noise_has_the_distribution_of_a_difference_of_two_poissons() -> None:
    values = np.arange(-6, 7)
    expected = skellam.pmf(values, 1, 1)
    table = [(v == resampling.NOISE).mean() for v in values]
    assert table == pytest.approx(expected, abs=2**-16)
    drawn = resampling._noise(_rng(), (200_000,))
    assert [(drawn == v).mean() for v in values] == pytest.approx(expected, abs=0.004)


def test_examples_of_one_cluster_move_together() -> None:
    single = simulated(_rng(), [0.5, 0.8], examples=100)
    twice = np.repeat(single.correct, 2, axis=1)
    doubled = counts(twice, clusters=list(np.repeat(np.arange(100), 2)))
    alone = resample(panel(single), _rng(5), resamples=500)
    together = resample(panel(doubled), _rng(5), resamples=500)
    assert together.accuracy[0] == pytest.approx(alone.accuracy[0], abs=1e-6)


def test_models_share_resamples_and_tasks_do_not() -> None:
    one = simulated(_rng(), [0.5, 0.8])
    both = counts(np.concatenate([one.correct, one.correct]))
    drawn = resample(panel(both, both), _rng(), resamples=4000).accuracy
    assert np.corrcoef(drawn[0][0, :, 0], drawn[0][0, :, 1])[0, 1] > 0.9
    assert abs(np.corrcoef(drawn[0][0, :, 0], drawn[1][0, :, 0])[0, 1]) < 0.06


def test_panels_drawn_together_are_paired() -> None:
    world = panel(simulated(_rng(), [0.5, 0.8]))
    first, second = resample_together([world, world], _rng(), resamples=2000)
    assert np.corrcoef(first.accuracy[0][0, :, 0], second.accuracy[0][0, :, 0])[0, 1] > 0.9
    assert resample_together([], _rng()) == []
    with pytest.raises(ValueError, match="different examples"):
        resample_together([world, panel(counts([[1, 0]]))], _rng())
    with pytest.raises(ValueError, match="same tasks"):
        resample_together([world, panel(counts([[1, 0]], name="other"))], _rng())


def test_panels_drawn_as_alone_are_what_they_are_alone() -> None:
    worlds = [panel(simulated(_rng(i), [0.7, 0.5], examples=30)) for i in range(3)]
    together = resample_together(worlds, _rng(), resamples=50, as_alone=True)
    for world, drawn in zip(worlds, together, strict=True):
        alone = resample(world, _rng(), resamples=50)
        assert np.array_equal(alone.accuracy, drawn.accuracy)
        assert np.array_equal(alone.parseability, drawn.parseability)
    assert not np.array_equal(
        resample_together(worlds, _rng(), resamples=50)[1].accuracy, together[1].accuracy
    )


def test_the_same_seed_gives_the_same_figures() -> None:
    world = panel(simulated(_rng(), [0.5, 0.8]))
    first, second = (resample(world, _rng(3), resamples=300) for _ in range(2))
    assert pair_intervals(spans(world, first)) == pair_intervals(spans(world, second))


def test_probability_of_being_best_against_enumeration() -> None:
    # Three draws with replacement of +1, +1, -1: more pluses in 20 of 27 cases.
    odd = resample(panel(counts([[1, 0], [1, 0], [0, 1]])), _rng(), resamples=20_000)
    assert odd.best[0][0] == pytest.approx([20 / 27, 7 / 27], abs=0.01)
    # Two draws of +1, -1: a tie, which is shared, in half of the cases.
    tie = resample(panel(counts([[1, 0], [0, 1]])), _rng(), resamples=20_000)
    assert tie.best[0][0] == pytest.approx([0.5, 0.5], abs=0.01)
    assert resample(panel(counts([[1, 1]])), _rng(), resamples=9).best[0][0].tolist() == [0.5, 0.5]


def test_failures_leave_resampled_means_unbiased() -> None:
    # Half of the examples are not indexed; the deviations are those of the other half.
    task = simulated(_rng(), [0.5, 0.8], examples=100)
    replies = task.replies.copy()
    replies[:, ::2, 0] = 0
    held = counts(np.minimum(task.correct, replies), np.minimum(1, replies), replies)
    drawn = resample(panel(held), _rng(), resamples=20_000).accuracy[0][:, :, 0]
    expected = np.sqrt(task.y[0, 1::2].var(axis=0) / 50 + 2 / 50**2)
    assert drawn.std(axis=1) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("correct", "value", "low", "high"),
    [([[1, 0]], 1.0, 0.0, 1.0), ([[1, 1]], 0.0, 0.0, 1.0), ([[0, 0]], 0.0, 0.0, 1.0)],
)
def test_one_example_says_nothing(
    correct: list[list[int]], value: float, low: float, high: float
) -> None:
    world = panel(counts(correct))
    found = pair_intervals(spans(world, resample(world, _rng(), resamples=500)))
    estimate = found["model0", "task"]
    assert isinstance(estimate, Estimate)
    assert estimate[:3] == (value, low, high)


def test_cells_without_variation_keep_a_width() -> None:
    world = panel(counts(np.zeros((200, 5)), np.zeros((200, 5))))
    drawn = resample(world, _rng(), resamples=2000)
    for measure in ("accuracy", "parseability"):
        estimate = pair_intervals(spans(world, drawn, measure))["model0", "task"]
        assert isinstance(estimate, Estimate)
        assert (estimate.value, estimate.low) == (0.0, 0.0)
        assert 0.01 < estimate.high < 0.05


def test_what_cannot_be_indexed_has_a_reason_everywhere() -> None:
    world = panel(counts(np.zeros((0, 3))), counts([[1, 0, 1]] * 30, name="other"))
    found = spans(world, resample(world, _rng(), resamples=100))
    assert pair_intervals(found)["model0", "task"] == Missing("no examples")
    assert equal_accuracy(found)["model0", "task"] == Missing("no examples")
    assert isinstance(mean_intervals(found)["model0"], Estimate)
    empty = panel(counts(np.zeros((0, 3))))
    found = spans(empty, resample(empty, _rng(), resamples=100))
    assert mean_intervals(found) == {"model0": Missing("no examples")}
    lone = panel(counts([[1], [0]]))
    found = spans(lone, resample(lone, _rng(), resamples=100))
    assert mean_intervals(found) == {"model0": Missing("one wrapper: there is no range")}


def test_margins_are_quantiles_of_the_ranges_that_section_7_names() -> None:
    tasks = [simulated(_rng(t), [0.4, 0.6], models=2, name=f"t{t}") for t in range(3)]
    world = panel(*tasks)
    found = spans(world, resample(world, _rng(), resamples=2000))
    mean = mean_intervals(found)["model0"]
    apart = differences(found)["model0", "model1"]
    assert isinstance(mean, Estimate)
    assert isinstance(apart, Estimate)
    ranges = found.ranges.astype(float).mean(axis=1)
    assert mean.margin == pytest.approx(np.quantile(ranges[0], 0.95), abs=1e-6)
    assert apart.margin == pytest.approx(np.quantile(ranges[0] + ranges[1], 0.95), abs=1e-6)
    assert apart.value == pytest.approx(found.value[0].mean() - found.value[1].mean())


def test_differences_use_the_tasks_that_both_have() -> None:
    full = simulated(_rng(), [0.4, 0.6], models=2, name="full")
    half = simulated(_rng(2), [0.2, 0.9], models=2, name="half")
    replies = half.replies.copy()
    replies[1] = 0
    part = counts(half.correct * replies, half.parsed * replies, replies, name="half")
    world = panel(full, part)
    found = spans(world, resample(world, _rng(), resamples=200))
    apart = differences(found)["model0", "model1"]
    assert isinstance(apart, Estimate)
    assert apart.value == pytest.approx(found.value[0, 0] - found.value[1, 0])
    nothing = panel(counts(np.zeros((2, 3, 2)), np.zeros((2, 3, 2)), np.zeros((2, 3, 2))))
    found = spans(nothing, resample(nothing, _rng(), resamples=50))
    assert differences(found) == {("model0", "model1"): Missing("no task is indexed on both sides")}


def test_contrast_by_hand() -> None:
    means = {"a": Estimate(0.6, 0.5, 0.7, 0.1), "b": Estimate(0.2, 0.1, 0.3, 0.1)}
    found = contrast(means)
    assert isinstance(found, Contrast)
    assert (found.largest, found.smallest) == ("a", "b")
    assert found.ratio == pytest.approx(3.0)
    assert found.bounds == pytest.approx((0.5 / 0.3, 0.7 / 0.1))
    zero = Estimate(0.05, 0.0, 0.15, 0.1)
    assert contrast(means | {"c": zero}) == Missing("not estimable: the interval of c touches 0")
    assert contrast({"a": zero}) == Missing("a contrast needs two models with indices")


def test_equality_counts_the_ranges() -> None:
    world = panel(simulated(_rng(), [0.5, 0.55, 0.6], models=4))
    found = spans(world, resample(world, _rng(), resamples=999))
    tested = [e for e in equal_accuracy(found).values() if isinstance(e, Equality)]
    by_hand = (1 + (found.ranges[:, 0] > found.value - 1e-6).sum(axis=1)) / 1000
    assert [e.p for e in tested] == pytest.approx(by_hand)
    adjusted = multipletests(by_hand, method="holm")[1]
    assert [e.p_holm for e in tested] == pytest.approx(adjusted)


def test_holm_against_statsmodels() -> None:
    p = np.array([0.04, 0.001, 0.03, 0.5, 0.001, 0.9])
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])
    assert holm(np.zeros(0)).tolist() == []
