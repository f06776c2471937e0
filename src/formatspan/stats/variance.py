"""Variances over examples, and the spread of wrappers freed of noise (method, section 7)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from formatspan.stats.indices import Array, Counts
from formatspan.stats.panel import Missing, Panel


class WrapperVariance(NamedTuple):
    """Variance of the true accuracies over wrappers, estimated without bias."""

    variance: float
    """σ²_wrapper, never clamped: below 0 where noise alone would spread more."""
    sigma: float
    """Root of its positive part, a fraction of 1 like accuracy."""


def wrapper_variance(panel: Panel) -> dict[tuple[str, str], WrapperVariance | Missing]:
    """Var_f(A) - mean over wrapper pairs of s²(Y_f - Y_g) / (2n) of every (model, task)."""
    found: dict[tuple[str, str], WrapperVariance | Missing] = {}
    for m, model in enumerate(panel.models):
        for t, task in enumerate(panel.tasks):
            rows = task.indexed[m]
            found[model, task.name] = panel.missing(m, t) or wrapper_variance_of(
                task.y[m, rows], task.groups[rows]
            )
    return found


def wrapper_variance_of(y: Array, groups: Counts) -> WrapperVariance | Missing:
    """The same of one table of examples × wrappers, two wrappers at least."""
    covariance = mean_covariance(y, groups)
    if covariance is None:
        return Missing("one example: its variance is unknown")
    wrappers = y.shape[1]
    # Var(A_f - A_g) = S_ff + S_gg - 2 S_fg, averaged over pairs and halved.
    own = np.trace(covariance) / wrappers
    shared = (covariance.sum() - np.trace(covariance)) / (wrappers * (wrappers - 1))
    variance = float(y.mean(axis=0).var(ddof=1) - (own - shared))
    return WrapperVariance(variance, math.sqrt(max(0.0, variance)))


def mean_covariance(y: Array, groups: Counts) -> Array | None:
    """Covariance of the column means, robust to clusters, with the factor G / (G - 1).

    Where every example is its own cluster this is the sample covariance (n - 1) over n.

    Args:
        y: Examples × columns.
        groups: Cluster of each example.

    Returns:
        Shape (columns, columns); None for fewer than two clusters.
    """
    codes = np.unique(groups, return_inverse=True)[1].reshape(-1)
    count = int(codes.max()) + 1 if len(codes) else 0
    if count < 2:
        return None
    sums = np.zeros((count, y.shape[1]))
    np.add.at(sums, codes, y - y.mean(axis=0))
    return np.asarray(count / (count - 1) * (sums.T @ sums) / len(y) ** 2)
