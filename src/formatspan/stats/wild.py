"""Restricted wild cluster bootstrap of one slope, with its interval by inversion.

Source: Cameron, Gelbach and Miller, Rev. Econ. Statist. 90 (2008) 414; computed from scores by
cluster as in MacKinnon, Econometrics and Statistics 25 (2023) 1. The residuals under the
hypothesis β = β₀ are linear in β₀, so the t statistics of all resamples at any β₀ come from the
same few vectors, and the hypotheses that are not rejected are found by bisection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from formatspan.stats.effects import FEW_CLUSTERS, Slope
from formatspan.stats.indices import Array, Counts
from formatspan.stats.panel import CONFIDENCE, Missing

RESAMPLES = 9_999
FEW_SIGNS = 12
"""Up to so many clusters two signs make too few resamples, and six weights are drawn."""
SIX_WEIGHTS: Array = np.array([-np.sqrt(1.5), -1.0, -np.sqrt(0.5), np.sqrt(0.5), 1.0, np.sqrt(1.5)])
"""Source: Webb, Canadian J. Economics 56 (2023) 839."""
WIDEST = 2.0**20
"""Standard errors from the slope at which the search for an end of the interval gives up."""
STEPS = 50
TIE = 1e-9
"""t statistics closer than this are equal."""


class Wild(NamedTuple):
    """Test of no slope, and the hypotheses that it would not reject."""

    p: float
    low: float | Missing
    high: float | Missing
    """Missing where the interval has no end on that side."""
    clusters: int
    reliable: bool
    """At least ten clusters."""


class _Draws(NamedTuple):
    """What every resample's t at a hypothesis β₀ is made of; each of shape (resamples,)."""

    y: Array
    """Numerator at β₀ = 0."""
    x: Array
    """What the numerator loses per unit of β₀."""
    yy: Array
    """Squared denominator: yy - 2 β₀ yx + β₀² xx."""
    yx: Array
    xx: Array


def wild_bootstrap(
    fit: Slope, codes: Counts, rng: np.random.Generator, *, resamples: int = RESAMPLES
) -> Wild | Missing:
    """Test and interval of a slope by cluster.

    Args:
        fit: The fitted slope.
        codes: Cluster of each row.
        rng: Source of randomness.
        resamples: How many; p cannot be below 1 / (1 + resamples).
    """
    groups = np.unique(codes, return_inverse=True)[1].reshape(-1)
    count = int(groups.max()) + 1
    if count < 2:
        return Missing("fewer than 2 clusters")
    drawn = _draws(fit, groups, _signs(rng, count, resamples))
    spread = float((np.bincount(groups, weights=fit.x * fit.residual) ** 2).sum())

    def p(hypothesis: float) -> float:
        observed = ((fit.beta - hypothesis) * fit.xx) ** 2
        squares = drawn.yy - 2 * hypothesis * drawn.yx + hypothesis**2 * drawn.xx
        reached = (drawn.y - hypothesis * drawn.x) ** 2 * spread >= observed * squares * (1 - TIE)
        return float(1 + reached.sum()) / (1 + resamples)

    step = float(np.sqrt(spread)) / fit.xx
    low, high = (_end(p, fit.beta, side * step) for side in (-1.0, 1.0))
    return Wild(p(0.0), low, high, count, count >= FEW_CLUSTERS)


def _signs(rng: np.random.Generator, clusters: int, resamples: int) -> Array:
    """Weights by resample and cluster, of mean 0 and variance 1."""
    if clusters <= FEW_SIGNS:
        return np.asarray(SIX_WEIGHTS[rng.integers(6, size=(resamples, clusters))])
    return np.asarray(2.0 * rng.integers(2, size=(resamples, clusters)) - 1.0)


def _draws(fit: Slope, groups: Counts, signs: Array) -> _Draws:
    """The restricted residuals are y - β₀ x; a cluster's share of them is multiplied by a sign."""
    member = (groups[:, None] == np.arange(signs.shape[1])).astype(float)
    hat = np.column_stack([fit.basis, fit.x / np.sqrt(fit.xx)])
    left = member.T @ (fit.x[:, None] * hat)

    def parts(residual: Array) -> tuple[Array, Array]:
        own = member.T @ (fit.x * residual)
        scores = np.diag(own) - left @ (member.T @ (residual[:, None] * hat)).T
        return signs @ own, signs @ scores.T

    (y, score_y), (x, score_x) = parts(fit.y), parts(fit.x)
    squares = ((a * b).sum(axis=1) for a, b in _products(score_y, score_x))
    return _Draws(y, x, *squares)


def _products(y: Array, x: Array) -> tuple[tuple[Array, Array], ...]:
    return (y, y), (y, x), (x, x)


def _end(p: Callable[[float], float], beta: float, step: float) -> float | Missing:
    """Farthest hypothesis on one side of the slope that is not rejected."""
    if step == 0:
        return beta
    inside, reach = beta, step
    while p(beta + reach) > 1 - CONFIDENCE:
        inside, reach = beta + reach, 2 * reach
        if abs(reach) > WIDEST * abs(step):
            return Missing("no hypothesis on this side is rejected")
    outside = beta + reach
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        if p(middle) > 1 - CONFIDENCE:
            inside = middle
        else:
            outside = middle
    return inside
