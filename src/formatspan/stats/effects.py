"""One slope beside fixed effects: the least squares that both regressions share.

By the theorem of Frisch, Waugh and Lovell the slope of P beside the effects is that of the
residuals of A on the residuals of P; leverages, scores and sandwich errors follow from these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from formatspan.stats.distributions import t_quantile, t_two_sided
from formatspan.stats.indices import Array, Counts
from formatspan.stats.panel import CONFIDENCE, Missing

FEW_CLUSTERS = 10
"""With fewer, errors by cluster are not reliable."""
FLAT = 1e-20
"""Less than this share of a sum of squares is rounding."""


class Error(NamedTuple):
    """A standard error of the slope and what follows from it."""

    name: str
    se: float
    df: int
    """Degrees of freedom of t."""
    low: float
    high: float
    p: float
    """Of no slope, two-sided."""
    clusters: int | None = None
    reliable: bool = True
    """At least ten clusters."""


class Slope(NamedTuple):
    """A fitted slope, everything scaled by the roots of the weights."""

    beta: float
    x: Array
    """Residuals of the regressor on the effects, shape (rows,)."""
    y: Array
    """Residuals of the response on the effects."""
    basis: Array
    """Orthonormal basis of the effects, shape (rows, rank)."""
    df: int
    """Rows less parameters."""

    @property
    def xx(self) -> float:
        """Σ x²."""
        return float(self.x @ self.x)

    @property
    def residual(self) -> Array:
        """Residuals of the full fit."""
        return self.y - self.beta * self.x

    @property
    def leverage(self) -> Array:
        """Diagonal of the hat matrix, effects and slope."""
        return np.asarray((self.basis**2).sum(axis=1) + self.x**2 / self.xx)


def dummies(rows: int, codes: Sequence[Counts]) -> Array:
    """An intercept and a column for every level that occurs; collinear columns do no harm."""
    columns = [np.ones((rows, 1))]
    columns += [(c[:, None] == np.unique(c)).astype(float) for c in codes]
    return np.hstack(columns)


def basis_of(columns: Array, weights: Array) -> Array:
    """Orthonormal basis of columns scaled by √weight, shape (rows, rank)."""
    # The decomposition by R alone finds the rank, and is small.
    q, r = np.linalg.qr(columns * np.sqrt(weights)[:, None])
    u, s, _ = np.linalg.svd(r)
    return np.asarray(q @ u[:, s > s[0] * max(columns.shape) * np.finfo(float).eps])


def slope(
    response: Array, regressor: Array, weights: Array, codes: Sequence[Counts]
) -> Slope | Missing:
    """Weighted least squares of the response on the regressor and effects.

    Args:
        response: Shape (rows,).
        regressor: Shape (rows,).
        weights: Positive, shape (rows,).
        codes: Levels of each effect, each of shape (rows,).
    """
    if len(response) == 0:
        return Missing("not estimable: no cells")
    root = np.sqrt(weights)
    basis = basis_of(dummies(len(response), codes), weights)
    df = len(response) - basis.shape[1] - 1
    x, y = (v * root - basis @ (basis.T @ (v * root)) for v in (regressor, response))
    if y @ y <= FLAT * (weights @ response**2):
        y = np.zeros_like(y)
    if x @ x <= FLAT * (weights @ regressor**2):
        return Missing("not estimable: P does not vary within the effects")
    if df < 1:
        return Missing("not estimable: as many parameters as cells")
    return Slope(float(x @ y / (x @ x)), x, y, basis, df)


def classical(fit: Slope) -> Error:
    """Standard error under equal variance of the scaled residuals."""
    variance = float(fit.residual @ fit.residual) / fit.df / fit.xx
    return error("classical", fit.beta, variance, fit.df)


def hc1(fit: Slope) -> Error:
    """Robust to unequal variance, with n / (n - k). Source: White (1980); MacKinnon and White."""
    rows = len(fit.x)
    variance = rows / fit.df * float(((fit.x * fit.residual) ** 2).sum()) / fit.xx**2
    return error("HC1", fit.beta, variance, fit.df)


def clustered(name: str, fit: Slope, codes: Counts) -> Error | Missing:
    """Robust to clusters; see `from_scores`."""
    groups = np.unique(codes, return_inverse=True)[1]
    scores = np.bincount(groups, weights=fit.x * fit.residual)
    return from_scores(name, fit.beta, scores / fit.xx, len(fit.x), fit.df)


def from_scores(name: str, beta: float, scores: Array, rows: int, df: int) -> Error | Missing:
    """Error from the clusters' scores over Σ x², with G / (G - 1) · (n - 1) / (n - k).

    t with G - 1 degrees of freedom. Source: Cameron and Miller, J. Human Resources 50 (2015)
    317, sections II and VI.
    """
    count = len(scores)
    if count < 2:
        return Missing(f"{name}: fewer than 2 clusters")
    variance = count / (count - 1) * (rows - 1) / df * float((scores**2).sum())
    found = error(name, beta, variance, count - 1)
    return found._replace(clusters=count, reliable=count >= FEW_CLUSTERS)


def error(name: str, beta: float, variance: float, df: int) -> Error:
    """Interval and p from a variance; an exact fit has an interval of no width and says p = 0."""
    se = float(np.sqrt(variance))
    half = t_quantile((1 + CONFIDENCE) / 2, df) * se
    p = t_two_sided(beta / se, df) if se > 0 else float(beta == 0)
    return Error(name, se, df, beta - half, beta + half, p)
