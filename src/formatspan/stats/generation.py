"""Correct on parsed, generation by generation (the method document, section 8).

As parsed = 0 forces correct = 0, the coefficient is a *conditional accuracy*. Both are 0 or 1,
so counts by cell and example carry all that the regression on millions of rows would use.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from formatspan.stats.effects import FLAT, Error, basis_of, dummies, from_scores
from formatspan.stats.indices import Array, Counts
from formatspan.stats.panel import Missing, Panel, TaskCounts


class GenerationRegression(NamedTuple):
    """The generation-level regression with effects of model, task and wrapper."""

    conditional_accuracy: float
    """The coefficient of parsed."""
    generations: int
    parameters: int
    dropped: tuple[str, ...]
    """Dimensions with one level, which have no effects."""
    errors: dict[str, Error | Missing]
    """task-example and model-wrapper."""


class _Sums(NamedTuple):
    """Totals by cell, each of shape (models, tasks, wrappers)."""

    correct: Array
    parsed: Array
    replies: Array


class _Effects(NamedTuple):
    """What the effects alone predict by cell, shape (models, tasks, wrappers)."""

    parsed: Array
    correct: Array
    parameters: int
    dropped: tuple[str, ...]


def generation_regression(panel: Panel) -> GenerationRegression | Missing:
    """The regression over all generations of indexed examples; partial credit does not enter."""
    sums = _sums(panel)
    generations = int(sums.replies.sum())
    if generations == 0:
        return Missing("not estimable: no generations")
    effects = _effects(sums)
    xx, xy = _moments(sums, effects)
    if xx <= FLAT * generations:
        return Missing("not estimable: parsed does not vary within the effects")
    beta, parameters = xy / xx, effects.parameters + 1
    df = generations - parameters
    if df < 1:
        return Missing("not estimable: as many parameters as generations")
    by_example, by_wrapper = _scores(panel, effects, beta)
    return GenerationRegression(
        conditional_accuracy=beta,
        generations=generations,
        parameters=parameters,
        dropped=effects.dropped,
        errors={
            name: from_scores(name, beta, scores / xx, generations, df)
            for name, scores in (("task-example", by_example), ("model-wrapper", by_wrapper))
        },
    )


def _sums(panel: Panel) -> _Sums:
    shape = (len(panel.models), len(panel.tasks), len(panel.wrappers))
    sums = _Sums(*(np.zeros(shape) for _ in range(3)))
    for t, task in enumerate(panel.tasks):
        kept = task.indexed[:, :, None]
        for total, counts in zip(sums, (task.correct, task.parsed, task.replies), strict=True):
            total[:, t] = (counts * kept).sum(axis=1)
    return sums


def _effects(sums: _Sums) -> _Effects:
    """Least squares of parsed and correct on the effects, through the means of the cells."""
    there = sums.replies > 0
    codes = dict(zip(("model", "task", "wrapper"), np.nonzero(there), strict=True))
    used = {name: c for name, c in codes.items() if len(np.unique(c)) > 1}
    weights = sums.replies[there]
    basis = basis_of(dummies(len(weights), tuple(used.values())), weights)
    root = np.sqrt(weights)
    fitted = []
    for total in (sums.parsed, sums.correct):
        filled = np.zeros(there.shape)
        filled[there] = basis @ (basis.T @ (total[there] / root)) / root
        fitted.append(filled)
    return _Effects(fitted[0], fitted[1], basis.shape[1], tuple(d for d in codes if d not in used))


def _moments(sums: _Sums, effects: _Effects) -> tuple[float, float]:
    """Σ x² and Σ x y of the residuals x of parsed and y of correct."""
    h, g = effects.parsed, effects.correct
    return float(_square(sums, h).sum()), float(_cross(sums, h, g).sum())


def _square(counts: _Sums, h: Array) -> Array:
    """Σ x² by cell: replies are parsed or not."""
    return counts.parsed * (1 - h) ** 2 + (counts.replies - counts.parsed) * h**2


def _cross(counts: _Sums, h: Array, g: Array) -> Array:
    """Σ x y by cell: replies are right, parsed but wrong, or unparsed."""
    right, parsed = counts.correct, counts.parsed
    unparsed = counts.replies - parsed
    return right * (1 - h) * (1 - g) - (parsed - right) * (1 - h) * g + unparsed * h * g


def _scores(panel: Panel, effects: _Effects, beta: float) -> tuple[Array, Array]:
    """Σ x · residual by cluster of examples within task, and by model-wrapper."""
    by_example = []
    by_wrapper = np.zeros((len(panel.models), len(panel.wrappers)))
    for t, task in enumerate(panel.tasks):
        score = _task_scores(task, effects.parsed[:, t], effects.correct[:, t], beta)
        by_wrapper += score.sum(axis=1)
        seen = task.indexed.any(axis=0)
        by_example.append(_totals(task.groups[seen], score.sum(axis=(0, 2))[seen]))
    present = np.array([t.means.n > 0 for t in panel.tasks]).any(axis=0)
    return np.concatenate(by_example), by_wrapper[present].ravel()


def _task_scores(task: TaskCounts, parsed: Array, correct: Array, beta: float) -> Array:
    """Scores of one task, shape (models, examples, wrappers)."""
    h, g = parsed[:, None, :], correct[:, None, :]
    kept = task.indexed[:, :, None]
    counts = _Sums(
        *(np.asarray(c * kept, dtype=np.float64) for c in (task.correct, task.parsed, task.replies))
    )
    return np.asarray(_cross(counts, h, g) - beta * _square(counts, h))


def _totals(groups: Counts, values: Array) -> Array:
    codes = np.unique(groups, return_inverse=True)[1].reshape(-1)
    return np.asarray(np.bincount(codes, weights=values), dtype=np.float64)
