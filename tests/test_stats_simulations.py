"""What the intervals and tests promise, simulated where the truth is known.

Runs of a simulation are the models of one panel: they share the resampled examples, which
saves time and biases nothing. The short versions run always; those marked slow are the figures
in docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from formatspan.stats.effects import Error, Slope, clustered, slope
from formatspan.stats.intervals import Equality, equal_accuracy, pair_intervals, spans
from formatspan.stats.panel import Panel
from formatspan.stats.permutation import Floor, noise_floor
from formatspan.stats.resampling import resample
from formatspan.stats.wild import Wild, wild_bootstrap
from test_stats_panel import panel, simulated

FLAT = [0.5] * 5
NEAR_PERFECT = [1.0, 1.0, 1.0, 1.0, 0.985]


def _spread(fsi: float) -> list[float]:
    return [0.5 - fsi / 2, 0.5, 0.5, 0.5, 0.5 + fsi / 2]


def _worlds(
    accuracy: Sequence[float], *, runs: int, seeds: int, at_once: int = 250, shared: float = 0.6
) -> list[Panel]:
    rng = np.random.default_rng(2026)
    return [
        panel(simulated(rng, accuracy, models=at_once, seeds=seeds, shared=shared))
        for _ in range(max(1, runs // at_once))
    ]


def _coverage(accuracy: Sequence[float], *, runs: int, seeds: int, resamples: int) -> float:
    """Share of max-T intervals that hold the true FSI."""
    rng, truth, hits = np.random.default_rng(7), float(np.ptp(accuracy)), []
    for world in _worlds(accuracy, runs=runs, seeds=seeds):
        found = pair_intervals(spans(world, resample(world, rng, resamples=resamples)))
        hits += [e.low <= truth <= e.high for e in found.values()]  # type: ignore[union-attr]
    return float(np.mean(hits))


@pytest.mark.parametrize("accuracy", [_spread(0.0), _spread(0.1), NEAR_PERFECT], ids=str)
def test_max_t_covers(accuracy: list[float]) -> None:
    assert _coverage(accuracy, runs=500, seeds=1, resamples=500) >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [1, 5])
@pytest.mark.parametrize("fsi", [0.0, 0.05, 0.1, 0.3])
def test_max_t_covers_slow(fsi: float, seeds: int) -> None:
    found = _coverage(_spread(fsi), runs=4000, seeds=seeds, resamples=2000)
    print(f"coverage at FSI {fsi}, {seeds} seeds: {found:.3f}")
    assert found >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [1, 5])
@pytest.mark.parametrize("least", [0.995, 0.985, 0.97])
def test_max_t_covers_near_perfect_cells_slow(least: float, seeds: int) -> None:
    found = _coverage([1.0] * 4 + [least], runs=4000, seeds=seeds, resamples=2000)
    print(f"coverage at 1, 1, 1, 1, {least}, {seeds} seeds: {found:.3f}")
    assert found >= 0.93


def _rejections(*, runs: int, seeds: int, resamples: int) -> float:
    rng, rejected = np.random.default_rng(7), []
    for world in _worlds(FLAT, runs=runs, seeds=seeds):
        found = equal_accuracy(spans(world, resample(world, rng, resamples=resamples)))
        rejected += [e.p <= 0.05 for e in found.values() if isinstance(e, Equality)]
    return float(np.mean(rejected))


def test_equal_accuracy_keeps_its_size() -> None:
    assert _rejections(runs=500, seeds=1, resamples=500) <= 0.075


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [1, 5])
def test_equal_accuracy_keeps_its_size_slow(seeds: int) -> None:
    found = _rejections(runs=4000, seeds=seeds, resamples=2000)
    print(f"size of the test at 5%, {seeds} seeds: {found:.3f}")
    assert found <= 0.06


def test_a_percentile_bootstrap_never_covers_zero() -> None:
    # Why there is no percentile interval of a range: at true FSI 0 it lies above 0 each time.
    rng = np.random.default_rng(3)
    y = simulated(rng, FLAT, models=200).y
    weights = rng.multinomial(200, np.full(200, 1 / 200), size=400) / 200
    means = np.tensordot(weights, y, axes=(1, 1))  # resamples × models × wrappers
    low = np.quantile(np.ptp(means, axis=2), 0.025, axis=0)
    assert (low > 0).all()
    assert np.ptp(y.mean(axis=1), axis=1).mean() == pytest.approx(0.068, abs=0.005)


def _mean_floor(wrappers: int, runs: int, count: int) -> float:
    world = panel(simulated(np.random.default_rng(1), [0.5] * wrappers, models=runs))
    found = noise_floor(world, np.random.default_rng(2), count=count)
    return float(np.mean([f.mean for f in found.values() if isinstance(f, Floor)]))


@pytest.mark.parametrize(("wrappers", "expected"), [(2, 0.032), (5, 0.067), (10, 0.088)])
def test_the_floor_grows_with_the_number_of_wrappers(wrappers: int, expected: float) -> None:
    # The figures in brackets in section 7.
    assert _mean_floor(wrappers, runs=30, count=300) == pytest.approx(expected, abs=0.003)


@pytest.mark.slow
def test_the_permutation_test_is_not_one_of_equal_accuracy_slow() -> None:
    # Two pairs of wrappers that go together and one that does not: means equal, not exchangeable.
    rng, rejected = np.random.default_rng(9), []
    for _ in range(8):
        luck = rng.random((250, 200, 2))
        columns = np.stack([luck[..., 0]] * 4 + [luck[..., 1]], axis=2)
        noisy = np.where(rng.random(columns.shape) < 0.9, columns, rng.random(columns.shape))
        task = simulated(rng, FLAT, models=250)
        world = panel(type(task)("t", (noisy < 0.5) * 1, task.parsed, task.replies, task.clusters))
        found = noise_floor(world, rng, count=1000)
        rejected += [f.p <= 0.05 for f in found.values() if isinstance(f, Floor)]
    size = float(np.mean(rejected))
    print(f"size of the permutation test under equal accuracy, unequal correlations: {size:.3f}")
    assert size > 0.08


class _Coverages:
    """How often each interval of β holds the true one."""

    def __init__(self) -> None:
        self.hits: dict[str, list[bool]] = {"model-task": [], "model-wrapper": [], "wild": []}

    def add(self, name: str, low: object, high: object, truth: float) -> None:
        below = not isinstance(low, float) or low <= truth
        self.hits[name].append(below and (not isinstance(high, float) or truth <= high))

    def __getitem__(self, name: str) -> float:
        return float(np.mean(self.hits[name]))


def _regression_coverages(runs: int, resamples: int) -> _Coverages:
    """Four models, seven tasks, five wrappers; collapses run through all tasks of a model."""
    rng, found, beta = np.random.default_rng(12), _Coverages(), 0.7
    model, task, wrapper = (c.ravel() for c in np.indices((4, 7, 5)))
    weights = np.full(140, 1000.0)
    for _ in range(runs):
        collapse = rng.normal(0, 0.2, (4, 5))[model, wrapper]
        parse = 0.7 + collapse + rng.normal(0, 0.05, 140)
        shock = rng.normal(0, 0.1, (4, 5))[model, wrapper]
        accuracy = beta * parse + 0.05 * task + shock + rng.normal(0, 0.05, 140)
        fit = slope(accuracy, parse, weights, (model, task, wrapper))
        assert isinstance(fit, Slope)
        for name, codes in (
            ("model-task", model * 7 + task),
            ("model-wrapper", model * 5 + wrapper),
        ):
            error = clustered(name, fit, codes)
            assert isinstance(error, Error)
            found.add(name, error.low, error.high, beta)
        wild = wild_bootstrap(fit, model * 5 + wrapper, rng, resamples=resamples)
        assert isinstance(wild, Wild)
        found.add("wild", wild.low, wild.high, beta)
    return found


def test_clusters_by_model_and_task_cover_too_rarely() -> None:
    found = _regression_coverages(runs=200, resamples=199)
    assert found["model-task"] < 0.75
    assert found["wild"] >= 0.89


@pytest.mark.slow
def test_clusters_by_model_and_task_cover_too_rarely_slow() -> None:
    found = _regression_coverages(runs=2000, resamples=999)
    print({name: round(found[name], 3) for name in found.hits})
    assert found["model-task"] < 0.7
    assert found["wild"] >= 0.92
