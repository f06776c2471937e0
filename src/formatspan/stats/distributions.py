"""The few distribution functions in use, typed, from scipy.special (light to import)."""

from __future__ import annotations

from scipy import special  # type: ignore[import-untyped]


def normal_quantile(p: float) -> float:
    """Quantile of the standard normal distribution."""
    return float(special.ndtri(p))


def t_quantile(p: float, df: float) -> float:
    """Quantile of Student's t distribution with ``df`` degrees of freedom."""
    return float(special.stdtrit(df, p))


def t_two_sided(t: float, df: float) -> float:
    """Probability of a value at least as far from 0 as ``t``."""
    return float(2 * special.stdtr(df, -abs(t)))


def sign_test(k: int, n: int) -> float:
    """Two-sided exact p of k successes in n fair trials; 1 without trials."""
    if n == 0:
        return 1.0
    return min(1.0, float(2 * special.bdtr(min(k, n - k), n, 0.5)))
