"""Accuracy against parseability over cells (the method document, section 8).

A = β P + α_model + γ_task + δ_wrapper + ε by weighted least squares, weights the generations of
a cell. A collapse of one wrapper runs through all tasks of a model, so errors are clustered by
model-wrapper; the paper's reading, by model-task, stands beside them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from formatspan.stats.effects import (
    Error,
    Slope,
    classical,
    clustered,
    hc1,
    slope,
)
from formatspan.stats.forced import forced_of
from formatspan.stats.indices import Array, Counts
from formatspan.stats.panel import Missing, Panel, TaskCounts
from formatspan.stats.relations import Correlation, correlation
from formatspan.stats.wild import Wild, wild_bootstrap

ALONE = 1e-9
"""A cell with a leverage this close to 1 determines its own fit."""


class CellTable(NamedTuple):
    """A row a cell; arrays of shape (cells,)."""

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    wrappers: tuple[str, ...]
    accuracy: Array
    parseability: Array
    forced: Array
    """A' = C̄ · P, what scoring alone would give."""
    weight: Array
    """Generations of the indexed examples that are no copies."""
    model: Counts
    task: Counts
    wrapper: Counts

    def take(self, rows: Array | Counts) -> CellTable:
        """Some of the cells."""
        return self._replace(**{f: getattr(self, f)[rows] for f in self._fields[3:]})

    @property
    def effects(self) -> dict[str, Counts]:
        """Codes of every dimension with more than one level."""
        codes = {"model": self.model, "task": self.task, "wrapper": self.wrapper}
        return {name: c for name, c in codes.items() if len(np.unique(c)) > 1}

    def name(self, row: int) -> tuple[str, str, str]:
        """Model, task and wrapper of a cell."""
        at = (self.model[row], self.task[row], self.wrapper[row])
        return self.models[at[0]], self.tasks[at[1]], self.wrappers[at[2]]


class LeftOut(NamedTuple):
    """β without each model, each task and each cell."""

    models: dict[str, float | Missing]
    tasks: dict[str, float | Missing]
    cells_low: float
    """Lowest β without one cell."""
    cells_high: float
    influential: tuple[str, str, str]
    """Model, task and wrapper of the cell without which β changes most."""
    without_influential: float | Missing


class CellRegression(NamedTuple):
    """The cell regression. β is accuracy per parseability, both fractions of 1."""

    beta: float
    partial_r2: float
    """Share of what the effects leave of A that P explains."""
    cells: int
    df: int
    """Residual degrees of freedom."""
    dropped: tuple[str, ...]
    """Dimensions with one level, which have no effects."""
    errors: dict[str, Error | Missing]
    """classical, HC1, model-task and model-wrapper (the default)."""
    wild: Wild | Missing
    """Restricted wild cluster bootstrap by model-wrapper."""
    forced_beta: float
    """β of A' on P: what scoring alone would give."""
    left_out: LeftOut


class CellReport(NamedTuple):
    """Accuracy against parseability, with what scoring alone forces beside it."""

    r: Correlation | Missing
    """Pearson's r over cells."""
    forced_r: Correlation | Missing
    """The same of A'."""
    regression: CellRegression | Missing


def cells_of(panel: Panel) -> CellTable:
    """CellTable of all indexed pairs."""
    indexed = np.argwhere(panel.indexed)
    means = [(panel.tasks[t].means, m) for m, t in indexed]
    credits = [panel.tasks[t].credit for _, t in indexed]
    width = len(panel.wrappers)
    accuracy = _stacked([a.accuracy[m] for a, m in means])
    parseability = _stacked([a.parseability[m] for a, m in means])
    return CellTable(
        models=panel.models,
        tasks=tuple(t.name for t in panel.tasks),
        wrappers=panel.wrappers,
        accuracy=accuracy,
        parseability=parseability,
        forced=_stacked(
            [
                forced_of(a.accuracy[m], a.parseability[m], credit).accuracy
                for (a, m), credit in zip(means, credits, strict=True)
            ]
        ),
        weight=_stacked([_generations(panel.tasks[t], m) for m, t in indexed]),
        model=np.repeat(indexed[:, 0], width),
        task=np.repeat(indexed[:, 1], width),
        wrapper=np.tile(np.arange(width), len(indexed)),
    )


def _generations(task: TaskCounts, model: int) -> Array:
    counted: Array = task.replies[model, task.indexed[model]].sum(axis=0, dtype=np.float64)
    return counted


def _stacked(columns: list[Array]) -> Array:
    return np.concatenate([np.zeros(0), *columns])


def accuracy_on_parseability(panel: Panel, rng: np.random.Generator) -> CellReport:
    """Everything of section 8 that is over cells."""
    cells = cells_of(panel)
    return CellReport(
        correlation(cells.parseability, cells.accuracy),
        correlation(cells.parseability, cells.forced),
        cell_regression(cells, rng),
    )


def cell_regression(cells: CellTable, rng: np.random.Generator) -> CellRegression | Missing:
    """The cell regression, or why it is not estimable."""
    fit = _fit(cells)
    if isinstance(fit, Missing):
        return fit
    by_wrapper = cells.model * len(cells.wrappers) + cells.wrapper
    errors: dict[str, Error | Missing] = {
        "classical": classical(fit),
        "HC1": hc1(fit),
        "model-task": clustered("model-task", fit, cells.model * len(cells.tasks) + cells.task),
        "model-wrapper": clustered("model-wrapper", fit, by_wrapper),
    }
    explained = fit.beta**2 * fit.xx
    return CellRegression(
        beta=fit.beta,
        partial_r2=float(explained / (fit.y @ fit.y)) if fit.y.any() else 0.0,
        cells=len(cells.accuracy),
        df=fit.df,
        dropped=tuple(d for d in ("model", "task", "wrapper") if d not in cells.effects),
        errors=errors,
        wild=wild_bootstrap(fit, by_wrapper, rng),
        forced_beta=_forced_beta(cells, fit),
        left_out=_left_out(cells, fit),
    )


def _fit(cells: CellTable) -> Slope | Missing:
    codes = tuple(cells.effects.values())
    return slope(cells.accuracy, cells.parseability, cells.weight, codes)


def _forced_beta(cells: CellTable, fit: Slope) -> float:
    """β of A' on P; residuals of P on the effects are orthogonal to the effects."""
    return float(fit.x @ (cells.forced * np.sqrt(cells.weight))) / fit.xx


def _left_out(cells: CellTable, fit: Slope) -> LeftOut:
    betas = _without_each_cell(cells, fit)
    known = [b for b in betas if not isinstance(b, Missing)]
    change = [np.inf if isinstance(b, Missing) else abs(b - fit.beta) for b in betas]
    most = int(np.argmax(change))
    return LeftOut(
        models=_without(cells, cells.model, cells.models),
        tasks=_without(cells, cells.task, cells.tasks),
        cells_low=min(known, default=fit.beta),
        cells_high=max(known, default=fit.beta),
        influential=cells.name(most),
        without_influential=betas[most],
    )


def _without(cells: CellTable, codes: Counts, names: tuple[str, ...]) -> dict[str, float | Missing]:
    return {names[c]: _beta(cells.take(codes != c)) for c in np.unique(codes)}


def _beta(cells: CellTable) -> float | Missing:
    fit = _fit(cells)
    return fit if isinstance(fit, Missing) else fit.beta


def _without_each_cell(cells: CellTable, fit: Slope) -> list[float | Missing]:
    """β without each cell, from leverages; refitted where a cell determines its own fit."""
    left = 1 - fit.leverage
    alone = left < ALONE
    shift = fit.x * fit.residual / np.where(alone, 1.0, left) / fit.xx
    everything = np.arange(len(left))
    return [
        _beta(cells.take(everything != i)) if alone[i] else float(fit.beta - shift[i])
        for i in everything
    ]
