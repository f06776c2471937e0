"""Does the order of the models depend on the wrapper? (The method document, section 9.)

All models are compared on the examples indexed for all of them: `Panel.common` first, then
`resample`, then `rankings`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from formatspan.stats.indices import Array, Range
from formatspan.stats.panel import CONFIDENCE, SAME, Array32, Missing, Panel
from formatspan.stats.resampling import Resamples

FEWEST_FOR_W = 3
"""Models from which on Kendall's W says something."""


class Comparison(NamedTuple):
    """Two models a, b over all wrappers, by D = A_a - A_b."""

    a: str
    b: str
    gaps: Array
    """D by wrapper, fractions of 1."""
    margin: float
    """c of the max-T limits D ± c, simultaneous over wrappers."""
    reversal: bool
    """One wrapper has the limits wholly above zero and another wholly below."""
    reversed_share: float
    """Share of wrappers that order the two the other way than most do, ties half; descriptive."""
    reversed_gap: float
    """max over wrappers f, g of min(D_f, -D_g), 0 where the order never changes."""


class Ranking(NamedTuple):
    """Order of the models on one task, or on the mean over tasks."""

    models: tuple[str, ...]
    ranks: Array
    """Rank 1 is best, shape (models, wrappers); those that tie share the better rank."""
    intervals: tuple[Range, ...]
    """Best and worst rank of each model over wrappers."""
    kendall_w: float | Missing
    """Agreement of wrappers on the order: 1 the same, 0 none; tie-corrected."""
    comparisons: tuple[Comparison, ...]
    """Every two models."""

    @property
    def reversals(self) -> tuple[Comparison, ...]:
        """The pairs whose order is shown to reverse."""
        return tuple(c for c in self.comparisons if c.reversal)

    @property
    def largest_reversed_gap(self) -> float:
        """The largest over all pairs, 0 where no order changes."""
        return max((c.reversed_gap for c in self.comparisons), default=0.0)


def rankings(
    panel: Panel, resamples: Resamples, *, confidence: float = CONFIDENCE
) -> dict[str | None, Ranking | Missing]:
    """Ranking on every task, and under the key None on the mean over tasks.

    Args:
        panel: From `Panel.common`.
        resamples: Of that panel.
        confidence: Of the limits over the wrappers of one pair.
    """
    compared = [m for m in range(len(panel.models)) if panel.indexed[m].any()]
    names = tuple(panel.models[m] for m in compared)
    found: dict[str | None, Ranking | Missing] = {}
    means: list[Array] = []
    draws: list[Array32] = []
    for t, task in enumerate(panel.tasks):
        if len(compared) < 2 or not panel.indexed[compared, t].all():
            found[task.name] = Missing(_reason(len(compared)))
            continue
        means.append(task.means.accuracy[compared])
        draws.append(resamples.accuracy[t][:, :, compared])
        found[task.name] = ranking(names, means[-1], draws[-1], confidence=confidence)
    found[None] = (
        ranking(names, np.mean(means, axis=0), _mean(draws), confidence=confidence)
        if means
        else Missing(_reason(len(compared)))
    )
    return found


def _reason(models: int) -> str:
    return "fewer than 2 models" if models < 2 else "no example is indexed for all models"


def _mean(draws: list[Array32]) -> Array32:
    total = draws[0].copy()
    for more in draws[1:]:
        total += more
    return total / np.float32(len(draws))


def ranking(
    models: tuple[str, ...],
    accuracy: Array,
    deviations: Array32,
    *,
    confidence: float = CONFIDENCE,
) -> Ranking:
    """Ranking from means and their resampled deviations.

    Args:
        models: Names.
        accuracy: A, shape (models, wrappers).
        deviations: A* - A + noise, shape (wrappers, resamples, models).
        confidence: Of the limits over the wrappers of one pair.
    """
    better = accuracy[None] > accuracy[:, None] + SAME
    ranks = 1.0 + better.sum(axis=1)
    intervals = tuple(Range(float(r.min()), float(r.max())) for r in ranks)
    comparisons = [
        comparison
        for a in range(len(models) - 1)
        for comparison in _compare(models, accuracy, deviations, a, confidence)
    ]
    return Ranking(models, ranks, intervals, kendall_w(accuracy), tuple(comparisons))


def _compare(
    models: tuple[str, ...], accuracy: Array, deviations: Array32, a: int, confidence: float
) -> list[Comparison]:
    """Model a with every later one."""
    reach = np.zeros((deviations.shape[1], len(models) - a - 1), dtype=np.float32)
    for drawn in deviations:
        np.maximum(reach, np.abs(drawn[:, a, None] - drawn[:, a + 1 :]), out=reach)
    margins = np.quantile(reach, confidence, axis=0)
    gaps = accuracy[a] - accuracy[a + 1 :]
    return [
        _comparison(models[a], name, gaps[i], float(margins[i]))
        for i, name in enumerate(models[a + 1 :])
    ]


def _comparison(a: str, b: str, gaps: Array, margin: float) -> Comparison:
    high, low = float(gaps.max()), float(gaps.min())
    tied = (np.abs(gaps) <= SAME).sum() / 2
    ahead = float((gaps > SAME).sum() + tied) / len(gaps)
    return Comparison(
        a=a,
        b=b,
        gaps=gaps,
        margin=margin,
        reversal=high - margin > 0 and low + margin < 0,
        reversed_share=min(ahead, 1 - ahead),
        reversed_gap=max(0.0, min(high, -low)),
    )


def kendall_w(accuracy: Array) -> float | Missing:
    """Kendall's coefficient of concordance of wrappers on the order of models, tie-corrected.

    Args:
        accuracy: A, shape (models, wrappers).

    Source: Kendall and Babington Smith, Ann. Math. Statist. 10 (1939) 275; ties as in Siegel
    and Castellan, Nonparametric Statistics (1988), section 9.7.
    """
    items, judges = accuracy.shape
    if items < FEWEST_FOR_W:
        return Missing(f"fewer than {FEWEST_FOR_W} models")
    if judges < 2:
        return Missing("one wrapper")
    below = (accuracy[None] < accuracy[:, None] - SAME).sum(axis=1)
    tied = (np.abs(accuracy[None] - accuracy[:, None]) <= SAME).sum(axis=1)
    ranks = below + (tied + 1) / 2
    spread = float(((ranks.sum(axis=1) - judges * (items + 1) / 2) ** 2).sum())
    # Each of t tied items contributes t² - 1, so a group of t contributes t³ - t.
    ties = float((tied**2 - 1).sum())
    most = judges**2 * (items**3 - items) - judges * ties
    return 12 * spread / most if most > 0 else Missing("all models tie under every wrapper")
