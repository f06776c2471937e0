"""Does an example come out the same under all wrappers? (The method document, section 7.)

FSI compares means: wrappers can have one accuracy and disagree on half of the examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from formatspan.stats.indices import Array, Counts
from formatspan.stats.panel import Missing, Panel, TaskCounts


class Same(NamedTuple):
    """Examples with the same correctness under all wrappers in their first draw (seed 0)."""

    share: float
    examples: int
    """Examples with a first draw under every wrapper."""


class Consistency(NamedTuple):
    """Agreement of one model's wrappers on one task; probabilities."""

    same: Same | Missing
    disagreement: float
    """That random seeds of two random wrappers disagree on an example."""
    seed_noise: float | Missing
    """That two different seeds of one wrapper disagree: what disagreement would be if the
    wrappers did nothing."""
    prosa: float
    """Mean over examples and wrapper pairs of |Y_f - Y_g|, ProSA's score of sensitivity.
    Source: Zhuo et al., arXiv 2410.12405, section 2. With one seed it equals disagreement."""


def consistency(
    panel: Panel, first: Sequence[Counts] | None = None
) -> dict[tuple[str, str], Consistency | Missing]:
    """Agreement of wrappers of every (model, task).

    Args:
        panel: Counts of replies.
        first: Correctness of the first draw (seed 0) by task, shape (models, examples,
            wrappers): 1, 0, or -1 where it has no reply. None where it is not known.

    Raises:
        ValueError: ``first`` has other shapes than the panel.
    """
    if first is not None and [f.shape for f in first] != [t.correct.shape for t in panel.tasks]:
        raise ValueError("expected one array of first draws a task, in the shape of its counts")
    return {
        (model, task.name): panel.missing(m, t)
        or _of_pair(task, m, first[t][m] if first is not None else None)
        for m, model in enumerate(panel.models)
        for t, task in enumerate(panel.tasks)
    }


def _of_pair(task: TaskCounts, model: int, first: Counts | None) -> Consistency:
    rows = task.indexed[model]
    return Consistency(
        same=Missing("not given") if first is None else same_everywhere(first),
        disagreement=disagreement(task.y[model, rows]),
        seed_noise=seed_noise(task.correct[model, rows], task.replies[model, rows]),
        prosa=prosa(task.y[model, rows]),
    )


def same_everywhere(first: Counts) -> Same | Missing:
    """Share of examples whose first draws agree; -1 is no reply. Examples × wrappers."""
    complete = first[(first >= 0).all(axis=1)]
    if len(complete) == 0:
        return Missing("no example has a first draw under every wrapper")
    return Same(float((np.ptp(complete, axis=1) == 0).mean()), len(complete))


def disagreement(y: Array) -> float:
    """Mean over examples and pairs of Y_f (1 - Y_g) + Y_g (1 - Y_f); two wrappers at least."""
    wrappers = y.shape[1]
    total = y.sum(axis=1)
    both = total**2 - (y**2).sum(axis=1)
    return float((((wrappers - 1) * total - both) / (wrappers * (wrappers - 1) / 2)).mean())


def seed_noise(correct: Counts, replies: Counts) -> float | Missing:
    """Mean over examples and wrappers with two draws of 2 k (r - k) / (r (r - 1))."""
    several = replies > 1
    if not several.any():
        return Missing("one draw of every example")
    k, r = correct[several], replies[several]
    return float((2 * k * (r - k) / (r * (r - 1))).mean())


def prosa(y: Array) -> float:
    """Mean over examples and pairs of |Y_f - Y_g|; two wrappers at least."""
    wrappers = y.shape[1]
    # In sorted order the k-th value is added k times and taken away wrappers - 1 - k times.
    times = 2 * np.arange(wrappers) - (wrappers - 1)
    return float((np.sort(y, axis=1) @ times).mean() / (wrappers * (wrappers - 1) / 2))
