"""Indices as curves over the length cap (the method document, section 10).

The reply at cap k is the first k tokens of the reply at any larger cap, so one run at a large
cap gives every smaller one by cutting and scoring again; the caller does that and gives a panel
for each cap.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from formatspan.stats.indices import Array
from formatspan.stats.intervals import Estimate, mean_intervals, spans
from formatspan.stats.panel import Missing, Panel
from formatspan.stats.resampling import RESAMPLES, resample

CURVE_RESAMPLES = 2_000
"""For each cap at which replies are cut; a curve needs fewer than a printed figure."""
QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)


class Lengths(NamedTuple):
    """Lengths of replies in tokens, with the end token."""

    n: int
    mean: float
    quantiles: tuple[float, ...]
    """At QUANTILES; the first is the shortest, the last the longest."""


class Curve(NamedTuple):
    """FSI and PSI over the cap. They need not be monotone."""

    caps: tuple[int, ...]
    fsi: dict[str, tuple[Estimate | Missing, ...]]
    """Mean over tasks by model, at every cap; intervals hold at each cap by itself."""
    psi: dict[str, tuple[Estimate | Missing, ...]]
    exact: bool
    """Cut by the token ids that the backend gave; else by a tokenizer."""


def lengths(tokens: ArrayLike) -> Lengths | Missing:
    """Distribution of the lengths of replies, say of one wrapper."""
    values = np.asarray(tokens, dtype=np.float64)
    if len(values) == 0:
        return Missing("no replies")
    marks = np.quantile(values, QUANTILES, method="inverted_cdf")
    return Lengths(len(values), float(values.mean()), tuple(float(q) for q in marks))


def cut_off(tokens: ArrayLike, caps: Sequence[int]) -> Array | Missing:
    """Share of replies longer than each cap: cut off at k if and only if L > k."""
    values = np.sort(np.asarray(tokens))
    if len(values) == 0:
        return Missing("no replies")
    within = np.searchsorted(values, np.asarray(caps), side="right")
    return np.asarray(1 - within / len(values), dtype=np.float64)


def cap_curve(
    caps: Sequence[int],
    panel_at: Callable[[int], Panel],
    seed: int,
    *,
    exact: bool,
    whole: Collection[int] = (),
) -> Curve:
    """FSI and PSI at every cap.

    Args:
        caps: In tokens, in the order to show.
        panel_at: Cuts every reply at a cap, scores it again and counts.
        seed: Of the resampling at each cap, which is the same at all of them.
        exact: Whether replies are cut by the backend's own token ids.
        whole: Caps at which a model's replies are whole: their intervals are those of the run,
            from as many resamples.
    """
    fsi: dict[str, list[Estimate | Missing]] = {}
    psi: dict[str, list[Estimate | Missing]] = {}
    for cap in caps:
        panel = panel_at(cap)
        resamples = RESAMPLES if cap in whole else CURVE_RESAMPLES
        drawn = resample(panel, np.random.default_rng(seed), resamples=resamples)
        for model, estimate in mean_intervals(spans(panel, drawn)).items():
            fsi.setdefault(model, []).append(estimate)
        for model, estimate in mean_intervals(spans(panel, drawn, "parseability")).items():
            psi.setdefault(model, []).append(estimate)
    return Curve(tuple(caps), _frozen(fsi), _frozen(psi), exact)


def _frozen(
    curves: dict[str, list[Estimate | Missing]],
) -> dict[str, tuple[Estimate | Missing, ...]]:
    return {model: tuple(curve) for model, curve in curves.items()}
