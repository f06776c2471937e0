"""One model before and after a change, or two models of two runs, on the same examples.

Both sides are resampled together: what makes an example easy or hard cancels. All limits come
from the same resamples as those of the ranges (the method document, section 7), with the same
extra noise, so that a side without any variation does not get an interval of zero width.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from formatspan.stats import intervals
from formatspan.stats.indices import Array
from formatspan.stats.intervals import Estimate
from formatspan.stats.panel import CONFIDENCE, Array32, Missing, Panel
from formatspan.stats.resampling import RESAMPLES, Resamples, resample_together


class Spans(NamedTuple):
    """A mean span on both sides, and how it changed."""

    a: Estimate
    b: Estimate
    change: Estimate
    """b - a; its margin is the quantile of the sum of both mean ranges in the same resample."""


class Change(NamedTuple):
    """What became of a model; fractions of 1, means over the tasks indexed on both sides."""

    tasks: tuple[str, ...]
    n: tuple[int, ...]
    """Examples by task, indexed on both sides."""
    accuracy_a: Array
    """By task and wrapper, shape (tasks, wrappers)."""
    accuracy_b: Array
    accuracy: Estimate
    """Change of mean accuracy over wrappers, b - a."""
    wrappers: tuple[Estimate, ...]
    """Change of accuracy under each wrapper; the limits hold for all of them at once."""
    fsi: Spans
    psi: Spans


def change(
    a: Panel,
    b: Panel,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Change | Missing:
    """Compare two panels of one model each.

    Args:
        a: Before. Tasks, examples, clusters and wrappers are the same as in ``b``.
        b: After.
        rng: Source of randomness.
        resamples: How many.
        confidence: Of every interval.
    """
    if len(a.wrappers) < 2:
        return Missing("fewer than 2 wrappers in common: there is no range")
    both = [s.indexed & t.indexed for s, t in zip(a.tasks, b.tasks, strict=True)]
    if not any(mask.any() for mask in both):
        return Missing("no example has replies under every wrapper on both sides")
    a, b = a.keep(both), b.keep(both)
    there = [i for i, mask in enumerate(both) if mask.any()]
    drawn = resample_together([a, b], rng, resamples=resamples)
    means = [np.array([p.tasks[i].means.accuracy[0] for i in there]) for p in (a, b)]
    value = (means[1] - means[0]).mean(axis=0)
    moved = _moved(drawn[0], drawn[1], there)
    every = float(np.quantile(np.abs(moved).max(axis=0), confidence))
    mean = float(np.quantile(np.abs(moved.mean(axis=0)), confidence))
    return Change(
        tasks=tuple(a.tasks[i].name for i in there),
        n=tuple(int(both[i].sum()) for i in there),
        accuracy_a=means[0],
        accuracy_b=means[1],
        accuracy=_estimate(float(value.mean()), mean),
        wrappers=tuple(_estimate(float(v), every) for v in value),
        fsi=_spans(a, b, drawn, "accuracy", confidence),
        psi=_spans(a, b, drawn, "parseability", confidence),
    )


def _moved(a: Resamples, b: Resamples, tasks: list[int]) -> Array32:
    """Resampled errors of the change of accuracy, mean over tasks; (wrappers, resamples)."""
    total = np.zeros(a.accuracy[tasks[0]].shape[:2], dtype=np.float32)
    for i in tasks:
        total += b.accuracy[i][:, :, 0] - a.accuracy[i][:, :, 0]
    return total / np.float32(len(tasks))


def _estimate(value: float, margin: float) -> Estimate:
    return Estimate(value, max(-1.0, value - margin), min(1.0, value + margin), margin)


def _spans(
    a: Panel, b: Panel, drawn: list[Resamples], measure: intervals.Measure, confidence: float
) -> Spans:
    here, there = (intervals.spans(p, d, measure) for p, d in zip((a, b), drawn, strict=True))
    known = here.there[0]
    moved = intervals.difference(there, 0, here, 0, confidence=confidence)
    assert isinstance(moved, Estimate), "both sides are indexed on the same examples"
    return Spans(
        intervals.mean_over(here, 0, known, confidence=confidence),
        intervals.mean_over(there, 0, known, confidence=confidence),
        moved,
    )
