"""Both regressions against statsmodels on the same rows, and the wild bootstrap refitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]

from formatspan.stats.effects import Error, Slope, slope
from formatspan.stats.generation import GenerationRegression, generation_regression
from formatspan.stats.panel import Missing, Panel
from formatspan.stats.regression import (
    CellRegression,
    CellTable,
    accuracy_on_parseability,
    cell_regression,
    cells_of,
)
from formatspan.stats.relations import Correlation
from formatspan.stats.wild import Wild, wild_bootstrap
from test_stats_panel import counts, panel, simulated


def _rng() -> np.random.Generator:
    return np.random.default_rng(11)


def _world(examples: int = 30, seeds: int = 2) -> Panel:
    """Three models, three tasks, four wrappers; parseability differs by model and wrapper."""
    rng = _rng()
    tasks = []
    for t in range(3):
        rates = 0.3 + 0.7 * rng.random((3, 4))
        parts = [
            simulated(
                rng, rates[m] * 0.7, parse=rates[m].tolist(), examples=examples + 5 * t, seeds=seeds
            )
            for m in range(3)
        ]
        replies = np.concatenate([p.replies for p in parts])
        replies[0, 0, 0] = 1  # one failure, so that weights differ
        parsed = np.minimum(np.concatenate([p.parsed for p in parts]), replies)
        correct = np.minimum(np.concatenate([p.correct for p in parts]), parsed)
        codes = np.arange(examples + 5 * t) // 2
        tasks.append(counts(correct, parsed, replies, clusters=codes.tolist(), name=f"t{t}"))
    return panel(*tasks)


def _design(columns: list[np.ndarray], regressor: np.ndarray) -> np.ndarray:
    levels = [(c[:, None] == np.unique(c)[1:]).astype(float) for c in columns]
    return np.column_stack([regressor, np.ones(len(regressor)), *levels])


def _statsmodels(cells: CellTable, **covariance: Any) -> Any:  # noqa: ANN401 - untyped library
    design = _design([cells.model, cells.task, cells.wrapper], cells.parseability)
    return sm.WLS(cells.accuracy, design, weights=cells.weight).fit(use_t=True, **covariance)


def test_cell_regression_against_statsmodels() -> None:
    cells = cells_of(_world())
    found = cell_regression(cells, _rng())
    assert isinstance(found, CellRegression)
    plain = _statsmodels(cells)
    assert found.beta == pytest.approx(plain.params[0])
    assert (found.cells, found.df) == (36, int(plain.df_resid))
    assert found.partial_r2 == pytest.approx(
        plain.tvalues[0] ** 2 / (plain.tvalues[0] ** 2 + plain.df_resid)
    )
    by_task, by_wrapper = cells.model * 3 + cells.task, cells.model * 4 + cells.wrapper
    fits = {
        "classical": plain,
        "HC1": _statsmodels(cells, cov_type="HC1"),
        "model-task": _statsmodels(cells, cov_type="cluster", cov_kwds={"groups": by_task}),
        "model-wrapper": _statsmodels(cells, cov_type="cluster", cov_kwds={"groups": by_wrapper}),
    }
    for name, fit in fits.items():
        error = found.errors[name]
        assert isinstance(error, Error)
        assert error.se == pytest.approx(fit.bse[0]), name
        assert (error.low, error.high) == pytest.approx(tuple(fit.conf_int()[0])), name
        assert error.p == pytest.approx(fit.pvalues[0]), name
    wrapper = found.errors["model-wrapper"]
    task = found.errors["model-task"]
    assert isinstance(wrapper, Error)
    assert isinstance(task, Error)
    assert (wrapper.clusters, wrapper.df, wrapper.reliable) == (12, 11, True)
    assert (task.clusters, task.reliable) == (9, False)


def test_forced_beta_is_the_regression_of_the_counterfactual() -> None:
    cells = cells_of(_world())
    found = cell_regression(cells, _rng())
    assert isinstance(found, CellRegression)
    again = _statsmodels(cells._replace(accuracy=cells.forced))
    assert found.forced_beta == pytest.approx(again.params[0])
    assert 0.4 < found.forced_beta < 0.9, "about C̄"


def test_leaving_out_against_refits() -> None:
    cells = cells_of(_world())
    found = cell_regression(cells, _rng())
    assert isinstance(found, CellRegression)
    left = found.left_out
    for m, name in enumerate(cells.models):
        refit = _statsmodels(cells.take(np.flatnonzero(cells.model != m)))
        assert left.models[name] == pytest.approx(refit.params[0])
    refit = _statsmodels(cells.take(np.flatnonzero(cells.task != 1)))
    assert left.tasks["t1"] == pytest.approx(refit.params[0])
    betas = np.array(
        [_statsmodels(cells.take(np.delete(np.arange(36), i))).params[0] for i in range(36)]
    )
    assert (left.cells_low, left.cells_high) == pytest.approx((betas.min(), betas.max()))
    most = int(np.abs(betas - found.beta).argmax())
    assert left.influential == cells.name(most)
    assert left.without_influential == pytest.approx(betas[most])


def test_a_slope_that_hangs_on_one_cell_says_so() -> None:
    right = np.ones((2, 20, 3), dtype=np.int64)
    right[:, ::3, 1] = 0
    parsed = np.ones_like(right)
    parsed[0, :10, 2] = 0
    world = panel(
        counts(right * parsed, parsed, name="t0"),
        counts(right, name="t1"),
        counts(right, name="t2"),
    )
    found = cell_regression(cells_of(world), _rng())
    assert isinstance(found, CellRegression)
    assert found.left_out.influential == ("model0", "t0", "structured")
    assert found.left_out.without_influential == Missing(
        "not estimable: P does not vary within the effects"
    )


def test_dimensions_with_one_level_are_dropped() -> None:
    world = _world()
    single = Panel(world.models, world.wrappers, world.tasks[:1])
    found = cell_regression(cells_of(single), _rng())
    assert isinstance(found, CellRegression)
    assert found.dropped == ("task",)
    fit = cells_of(single)
    design = _design([fit.model, fit.wrapper], fit.parseability)
    again = sm.WLS(fit.accuracy, design, weights=fit.weight).fit()
    assert found.beta == pytest.approx(again.params[0])


@pytest.mark.parametrize(
    ("world", "reason"),
    [
        (panel(counts(np.zeros((0, 2)))), "not estimable: no cells"),
        (
            panel(counts([[[1, 0], [1, 1]], [[0, 0], [1, 0]]])),
            "not estimable: P does not vary within the effects",
        ),
        (
            panel(counts([[1, 0]], [[1, 0]])),
            "not estimable: P does not vary within the effects",
        ),
        (
            panel(counts([[[1, 0]], [[1, 1]]], [[[1, 0]], [[1, 1]]])),
            "not estimable: as many parameters as cells",
        ),
    ],
)
def test_what_cannot_be_estimated_says_why(world: Panel, reason: str) -> None:
    report = accuracy_on_parseability(world, _rng())
    assert report.regression == Missing(reason)


def test_all_wrong_is_no_error() -> None:
    parsed = np.array([[[1, 0, 1]] * 3, [[0, 1, 1]] * 3, [[1, 1, 0]] * 3])
    report = accuracy_on_parseability(panel(counts(parsed * 0, parsed)), _rng())
    assert report.r == Missing("no variation")
    assert isinstance(report.regression, CellRegression)
    assert report.regression.beta == 0.0
    assert report.regression.partial_r2 == 0.0


def test_correlation_over_cells() -> None:
    world = _world()
    report = accuracy_on_parseability(world, _rng())
    cells = cells_of(world)
    assert isinstance(report.r, Correlation)
    assert isinstance(report.forced_r, Correlation)
    assert report.r.r == pytest.approx(np.corrcoef(cells.parseability, cells.accuracy)[0, 1])
    assert report.forced_r.r == pytest.approx(np.corrcoef(cells.parseability, cells.forced)[0, 1])


def _fit(cells: CellTable) -> Slope:
    fit = slope(
        cells.accuracy,
        cells.parseability,
        cells.weight,
        (cells.model, cells.task, cells.wrapper),
    )
    assert isinstance(fit, Slope)
    return fit


def _refitted_p(cells: CellTable, codes: np.ndarray, signs: np.ndarray, null: float) -> float:
    """The same bootstrap by refitting every resample with statsmodels."""
    kwds = {"cov_type": "cluster", "cov_kwds": {"groups": codes}}
    design = _design([cells.model, cells.task, cells.wrapper], cells.parseability)
    observed = sm.WLS(cells.accuracy, design, weights=cells.weight).fit(**kwds)
    t = abs(observed.params[0] - null) / observed.bse[0]
    response = cells.accuracy - null * cells.parseability
    restricted = sm.WLS(response, design[:, 1:], weights=cells.weight).fit()
    groups = np.unique(codes, return_inverse=True)[1]
    reached = 0
    for sign in signs:
        drawn = restricted.fittedvalues + restricted.resid * sign[groups]
        again = sm.WLS(drawn + null * cells.parseability, design, weights=cells.weight).fit(**kwds)
        reached += abs(again.params[0] - null) / again.bse[0] >= t
    return (1 + reached) / (1 + len(signs))


@pytest.mark.parametrize("clusters", [12, 36])
def test_wild_bootstrap_against_refits(clusters: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = cells_of(_world())
    codes = cells.model * 4 + cells.wrapper if clusters == 12 else np.arange(36)
    signs = _rng().choice([-1.0, 1.0], size=(99, clusters))
    monkeypatch.setattr("formatspan.stats.wild._signs", lambda *_: signs)
    found = wild_bootstrap(_fit(cells), codes, _rng(), resamples=99)
    assert isinstance(found, Wild)
    assert found.clusters == clusters
    assert found.p == _refitted_p(cells, codes, signs, 0.0)
    assert isinstance(found.low, float)
    assert isinstance(found.high, float)
    assert _refitted_p(cells, codes, signs, found.low + 1e-6) > 0.05
    assert _refitted_p(cells, codes, signs, found.low - 1e-6) <= 0.05
    assert _refitted_p(cells, codes, signs, found.high - 1e-6) > 0.05
    assert _refitted_p(cells, codes, signs, found.high + 1e-6) <= 0.05


def test_wild_bootstrap_without_clusters_or_end() -> None:
    cells = cells_of(_world())
    assert wild_bootstrap(_fit(cells), cells.model * 0, _rng()) == Missing("fewer than 2 clusters")
    two = wild_bootstrap(_fit(cells), cells.model // 2, _rng(), resamples=999)
    assert isinstance(two, Wild)
    assert not two.reliable
    assert isinstance(two.low, float | Missing)


def _rows(world: Panel) -> dict[str, np.ndarray]:
    """One row a generation, as the regression is written down."""
    rows = []
    for t, task in enumerate(world.tasks):
        for m, i, f in np.argwhere(task.replies > 0):
            if task.indexed[m, i]:
                k, p, r = (a[m, i, f] for a in (task.correct, task.parsed, task.replies))
                example = t * 1000 + task.clusters[i]
                for j in range(r):
                    rows.append((m, t, f, example, j < k, j < p))
    names = ("model", "task", "wrapper", "example", "correct", "parsed")
    return dict(zip(names, np.array(rows, dtype=float).T, strict=True))


def test_generation_regression_against_statsmodels() -> None:
    world = _world(examples=12)
    rows = _rows(world)
    design = _design([rows["model"], rows["task"], rows["wrapper"]], rows["parsed"])
    found = generation_regression(world)
    assert isinstance(found, GenerationRegression)
    for name, groups in (
        ("task-example", rows["example"]),
        ("model-wrapper", rows["model"] * 10 + rows["wrapper"]),
    ):
        fit = sm.OLS(rows["correct"], design).fit(
            use_t=True, cov_type="cluster", cov_kwds={"groups": groups}
        )
        error = found.errors[name]
        assert isinstance(error, Error)
        assert found.conditional_accuracy == pytest.approx(fit.params[0])
        assert error.se == pytest.approx(fit.bse[0]), name
        assert (error.low, error.high) == pytest.approx(tuple(fit.conf_int()[0])), name
        assert error.clusters == len(np.unique(groups))
    assert (found.generations, found.parameters) == (len(rows["model"]), design.shape[1])


@pytest.mark.parametrize(
    ("world", "reason"),
    [
        (panel(counts(np.zeros((0, 2)))), "not estimable: no generations"),
        (
            panel(counts([[1, 0], [0, 1]])),
            "not estimable: parsed does not vary within the effects",
        ),
        (
            panel(counts([[1, 0]], [[1, 0]])),
            "not estimable: parsed does not vary within the effects",
        ),
    ],
)
def test_generation_regression_says_why_not(world: Panel, reason: str) -> None:
    assert generation_regression(world) == Missing(reason)
