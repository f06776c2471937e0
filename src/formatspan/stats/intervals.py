"""Max-T intervals of ranges over wrappers, and the test of equal accuracy (method, section 7).

A percentile bootstrap of max - min lies above zero by construction. Here the range R* of the
centred resampled means bounds how far an observed range can lie from the true one: |FSI - true|
is at most the range of the errors, so FSI ± c covers when c is the 95% quantile of R*.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from formatspan.stats.indices import Array, Counts, Range
from formatspan.stats.panel import CONFIDENCE, Array32, Mask, Missing, Panel
from formatspan.stats.resampling import SAME32, Resamples
from formatspan.stats.simple import holm

Measure = Literal["accuracy", "parseability"]


class Estimate(NamedTuple):
    """A figure with its interval; fractions of 1."""

    value: float
    low: float
    high: float
    margin: float
    """c, the half width before the interval is cut off at what is possible."""


class Spans(NamedTuple):
    """FSI (of accuracy) or PSI (of parseability) of every pair, with its resampled ranges."""

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    n: Counts
    """Indexed examples, shape (models, tasks)."""
    value: Array
    """Shape (models, tasks); 0 where there is none."""
    ranges: Array32
    """R*, shape (models, tasks, resamples)."""
    missing: tuple[tuple[Missing | None, ...], ...]
    """Why a pair has no range; by model, by task."""

    @property
    def there(self) -> Mask:
        """Pairs with a range; shape (models, tasks)."""
        flags = [[reason is None for reason in row] for row in self.missing]
        return np.array(flags, dtype=bool).reshape(self.value.shape)


class Equality(NamedTuple):
    """Test of equal accuracy under all wrappers."""

    p: float
    p_holm: float
    """Adjusted over all tested pairs."""


class Contrast(NamedTuple):
    """How many times as sensitive the most sensitive model is as the least."""

    largest: str
    smallest: str
    ratio: float
    bounds: Range
    """What the two intervals give: lower by upper, upper by lower."""


def spans(panel: Panel, resamples: Resamples, measure: Measure = "accuracy") -> Spans:
    """Ranges over wrappers of every pair: FSI for ``accuracy``, PSI for ``parseability``."""
    shape = (len(panel.models), len(panel.tasks))
    n = np.array([t.means.n for t in panel.tasks], dtype=np.int64).reshape(shape[::-1]).T
    value = np.zeros(shape)
    drawn: tuple[Array32, ...] = getattr(resamples, measure)
    ranges = np.zeros((*shape, drawn[0].shape[1] if drawn else 0), dtype=np.float32)
    for t, task in enumerate(panel.tasks):
        if panel.wrappers:
            value[:, t] = np.ptp(getattr(task.means, measure), axis=1)
            ranges[:, t] = np.ptp(drawn[t], axis=0).T
    missing = tuple(tuple(panel.missing(m, t) for t in range(shape[1])) for m in range(shape[0]))
    return Spans(panel.models, tuple(t.name for t in panel.tasks), n, value, ranges, missing)


def pair_intervals(
    found: Spans, *, confidence: float = CONFIDENCE
) -> dict[tuple[str, str], Estimate | Missing]:
    """FSI or PSI of every (model, task) with its max-T interval."""
    margins = _quantile(found.ranges, confidence)
    return {
        (model, task): found.missing[m][t]
        or _within(float(found.value[m, t]), float(margins[m, t]), 0.0)
        for m, model in enumerate(found.models)
        for t, task in enumerate(found.tasks)
    }


def mean_intervals(
    found: Spans, *, confidence: float = CONFIDENCE
) -> dict[str, Estimate | Missing]:
    """Mean FSI or PSI of every model over its tasks; c is the quantile of the mean range."""
    return {
        model: mean_over(found, m, there, confidence=confidence)
        if (there := found.there[m]).any()
        else Missing(_reasons(found, m))
        for m, model in enumerate(found.models)
    }


def mean_over(found: Spans, model: int, tasks: Mask, *, confidence: float = CONFIDENCE) -> Estimate:
    """Mean FSI or PSI of one model over some of its tasks, one at least."""
    margin = _quantile(found.ranges[model, tasks].mean(axis=0), confidence)
    return _within(float(found.value[model, tasks].mean()), float(margin), 0.0)


def _reasons(found: Spans, model: int) -> str:
    reasons = dict.fromkeys(m.reason for m in found.missing[model] if m)
    return "; ".join(reasons) or "no tasks"


def differences(
    found: Spans, *, confidence: float = CONFIDENCE
) -> dict[tuple[str, str], Estimate | Missing]:
    """Difference of mean FSI or PSI of every two models, over the tasks both have."""
    return {
        (found.models[a], found.models[b]): difference(found, a, found, b, confidence=confidence)
        for a, b in combinations(range(len(found.models)), 2)
    }


def difference(
    here: Spans, a: int, there: Spans, b: int, *, confidence: float = CONFIDENCE
) -> Estimate | Missing:
    """Mean span of model ``a`` here minus that of model ``b`` there, over their common tasks.

    c is the quantile of the sum of both mean ranges in the same resample; so both spans come
    from one call of `resample_together` (or are the same).
    """
    both = here.there[a] & there.there[b]
    if not both.any():
        return Missing("no task is indexed on both sides")
    value = here.value[a, both].mean() - there.value[b, both].mean()
    total = here.ranges[a, both].mean(axis=0) + there.ranges[b, both].mean(axis=0)
    return _within(float(value), float(_quantile(total, confidence)), -1.0)


def contrast(means: Mapping[str, Estimate | Missing]) -> Contrast | Missing:
    """Largest over smallest mean FSI between models, from `mean_intervals`.

    Missing when the smaller's interval touches 0: the ratio is then not estimable.
    """
    known = {name: e for name, e in means.items() if isinstance(e, Estimate)}
    if len(known) < 2:
        return Missing("a contrast needs two models with indices")
    largest = max(known, key=lambda name: known[name].value)
    smallest = min(known, key=lambda name: known[name].value)
    top, bottom = known[largest], known[smallest]
    if bottom.low <= 0:
        return Missing(f"not estimable: the interval of {smallest} touches 0")
    bounds = Range(top.low / bottom.high, top.high / bottom.low)
    return Contrast(largest, smallest, top.value / bottom.value, bounds)


def equal_accuracy(found: Spans) -> dict[tuple[str, str], Equality | Missing]:
    """Test that all wrappers have the same accuracy, for every pair; Holm over the pairs.

    p = (1 + #{R* >= FSI}) / (1 + resamples).
    """
    reached = (found.ranges >= found.value[:, :, None] - SAME32).sum(axis=2)
    p = (1 + reached) / (1 + found.ranges.shape[2])
    adjusted = np.ones_like(p)
    adjusted[found.there] = holm(p[found.there])
    return {
        (model, task): found.missing[m][t] or Equality(float(p[m, t]), float(adjusted[m, t]))
        for m, model in enumerate(found.models)
        for t, task in enumerate(found.tasks)
    }


def _within(value: float, margin: float, least: float) -> Estimate:
    return Estimate(value, max(least, value - margin), min(1.0, value + margin), margin)


def _quantile(draws: Array32, confidence: float) -> Array:
    """Quantile over the last axis; 0 of no draws at all."""
    if draws.shape[-1] == 0:
        return np.zeros(draws.shape[:-1])
    return np.asarray(np.quantile(draws, confidence, axis=-1), dtype=np.float64)
