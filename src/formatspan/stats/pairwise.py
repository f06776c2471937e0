"""Two wrappers on the same examples: paired differences and McNemar's test.

An unpaired test of two accuracies on the same examples throws their correlation away and can
come to the opposite conclusion.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from formatspan.stats.distributions import sign_test, t_quantile, t_two_sided
from formatspan.stats.indices import Array
from formatspan.stats.panel import CONFIDENCE, Missing, Panel, TaskCounts
from formatspan.stats.simple import holm
from formatspan.stats.variance import mean_covariance


class McNemar(NamedTuple):
    """Exact test on the examples that only one of two wrappers got right, over all tasks."""

    only_first: int
    only_second: int
    p: float
    p_holm: float
    """Adjusted over the model's pairs of wrappers that were tested."""


class Paired(NamedTuple):
    """Error of a paired difference, robust to clusters of examples."""

    se: float
    df: int
    """Clusters less tasks."""
    low: float
    high: float
    p: float
    p_holm: float


class WrapperPair(NamedTuple):
    """Two wrappers of one model."""

    first: str
    second: str
    difference: float
    """Mean over tasks of A_first - A_second, a fraction of 1."""
    paired: Paired | Missing
    mcnemar: McNemar | Missing
    """Only where every example has one draw and is its own cluster."""


def wrapper_pairs(panel: Panel) -> dict[str, tuple[WrapperPair, ...] | Missing]:
    """All pairs of wrappers of every model, over its indexed tasks.

    For one task give a panel of that task alone.
    """
    return {model: _pairs(panel, m) for m, model in enumerate(panel.models)}


def _pairs(panel: Panel, model: int) -> tuple[WrapperPair, ...] | Missing:
    tasks = [t for t, there in zip(panel.tasks, panel.indexed[model], strict=True) if there]
    if not tasks:
        return Missing("not indexed on any task")
    chosen = list(combinations(range(len(panel.wrappers)), 2))
    accuracy = np.mean([t.means.accuracy[model] for t in tasks], axis=0)
    covariance = _covariance(tasks, model)
    df = sum(len(np.unique(t.groups[t.indexed[model]])) - 1 for t in tasks)
    paired = _adjust_paired([_paired(accuracy, covariance, df, f, g) for f, g in chosen])
    mcnemar = _adjust_mcnemar([_mcnemar(tasks, model, f, g) for f, g in chosen])
    return tuple(
        WrapperPair(
            panel.wrappers[f], panel.wrappers[g], float(accuracy[f] - accuracy[g]), with_error, test
        )
        for (f, g), with_error, test in zip(chosen, paired, mcnemar, strict=True)
    )


def _covariance(tasks: list[TaskCounts], model: int) -> Array | None:
    """Covariance of the wrappers' mean accuracies over tasks, which are independent."""
    parts = []
    for task in tasks:
        rows = task.indexed[model]
        part = mean_covariance(task.y[model, rows], task.groups[rows])
        if part is None:
            return None
        parts.append(part)
    return np.asarray(np.sum(parts, axis=0) / len(tasks) ** 2)


def _paired(accuracy: Array, covariance: Array | None, df: int, f: int, g: int) -> Paired | Missing:
    if covariance is None:
        return Missing("a task has fewer than 2 clusters of examples")
    variance = float(covariance[f, f] + covariance[g, g] - 2 * covariance[f, g])
    if variance <= 1e-15:
        return Missing("the difference is the same on every example")
    se = variance**0.5
    difference = float(accuracy[f] - accuracy[g])
    half = t_quantile((1 + CONFIDENCE) / 2, df) * se
    p = t_two_sided(difference / se, df)
    return Paired(se, df, max(-1.0, difference - half), min(1.0, difference + half), p, p)


def _mcnemar(tasks: list[TaskCounts], model: int, f: int, g: int) -> McNemar | Missing:
    first = second = 0
    for task in tasks:
        rows = task.indexed[model]
        if (task.replies[model, rows][:, [f, g]] != 1).any():
            return Missing("several draws of an example")
        if len(np.unique(task.groups[rows])) < rows.sum():
            return Missing("examples in clusters are not independent")
        right = task.correct[model, rows]
        first += int((right[:, f] > right[:, g]).sum())
        second += int((right[:, g] > right[:, f]).sum())
    p = sign_test(first, first + second)
    return McNemar(first, second, p, p)


def _adjust_paired(found: list[Paired | Missing]) -> list[Paired | Missing]:
    adjusted = iter(holm(np.array([f.p for f in found if isinstance(f, Paired)])))
    return [f._replace(p_holm=float(next(adjusted))) if isinstance(f, Paired) else f for f in found]


def _adjust_mcnemar(found: list[McNemar | Missing]) -> list[McNemar | Missing]:
    adjusted = iter(holm(np.array([f.p for f in found if isinstance(f, McNemar)])))
    return [
        f._replace(p_holm=float(next(adjusted))) if isinstance(f, McNemar) else f for f in found
    ]
