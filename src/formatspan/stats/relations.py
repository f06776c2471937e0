"""Relations between figures over pairs or models, with what few of them cannot show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from formatspan.counting import counted
from formatspan.stats.distributions import t_quantile
from formatspan.stats.indices import Array, Range
from formatspan.stats.intervals import Spans
from formatspan.stats.panel import SAME, Missing


class Correlation(NamedTuple):
    """Pearson's r. No interval: cells and pairs share models and tasks."""

    r: float
    n: int


class SizeSlope(NamedTuple):
    """Mean FSI on log10 of the number of parameters, over models."""

    slope: float
    """Change of FSI for ten times the parameters."""
    interval: Range
    """95%, t with n - 2 degrees of freedom: as if the models were drawn independently."""
    r: float
    n: int
    detectable_r: float
    """The smallest correlation that this many models could tell from 0 at 5%."""
    within_families: float | Missing
    """The slope with a level of its own for each family."""


def correlation(x: ArrayLike, y: ArrayLike) -> Correlation | Missing:
    """Pearson's r of two figures, unweighted."""
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(a) < 3:
        return Missing(f"n = {len(a)}: a correlation needs 3")
    if np.ptp(a) <= SAME or np.ptp(b) <= SAME:
        return Missing("no variation")
    a, b = a - a.mean(), b - b.mean()
    r = float(a @ b / math.sqrt(float(a @ a) * float(b @ b)))
    return Correlation(min(1.0, max(-1.0, r)), len(a))


def fsi_with_psi(fsi: Spans, psi: Spans) -> Correlation | Missing:
    """Correlation of FSI with PSI over model-task pairs."""
    both = fsi.there & psi.there
    return correlation(fsi.value[both], psi.value[both])


def by_family(values: Mapping[str, float], families: Mapping[str, str]) -> dict[str, Array]:
    """A figure's values by model family, in the order of appearance."""
    found: dict[str, list[float]] = {}
    for model, value in values.items():
        found.setdefault(families.get(model, model), []).append(value)
    return {name: np.array(v) for name, v in found.items()}


def size_slope(
    fsi: Sequence[float], parameters: Sequence[float], families: Sequence[str]
) -> SizeSlope | Missing:
    """Slope of mean FSI on the size of models.

    Args:
        fsi: Mean FSI by model, fractions of 1.
        parameters: Number of parameters by model, positive.
        families: Family by model.
    """
    size, value = np.log10(np.asarray(parameters, dtype=np.float64)), np.asarray(fsi)
    n = len(size)
    if n < 3:
        return Missing(f"{counted(n, 'model')}: a slope over models needs 3")
    if np.ptp(size) <= SAME:
        return Missing("all models have one size")
    x, y = size - size.mean(), value - value.mean()
    slope = float(x @ y / (x @ x))
    residual = y - slope * x
    t = t_quantile(0.975, n - 2)
    half = t * math.sqrt(float(residual @ residual) / (n - 2) / float(x @ x))
    found = correlation(size, value)
    return SizeSlope(
        slope=slope,
        interval=Range(slope - half, slope + half),
        r=found.r if isinstance(found, Correlation) else 0.0,
        n=n,
        detectable_r=t / math.sqrt(t * t + n - 2),
        within_families=_within(size, value, families),
    )


def _within(size: Array, value: Array, families: Sequence[str]) -> float | Missing:
    groups = np.unique(list(families), return_inverse=True)[1]
    count = np.bincount(groups)
    x, y = (v - (np.bincount(groups, weights=v) / count)[groups] for v in (size, value))
    if x @ x <= SAME:
        return Missing("no family has models of two sizes")
    return float(x @ y / (x @ x))
