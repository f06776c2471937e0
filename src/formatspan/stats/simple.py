"""Means, shares and their errors: the small formulas that tools get wrong at the edges."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from formatspan.stats.distributions import normal_quantile
from formatspan.stats.indices import Array, Counts, Range
from formatspan.stats.panel import Missing

Z95 = normal_quantile(0.975)


class MeanError(NamedTuple):
    """A mean with its standard error."""

    mean: float
    se: float | Missing
    """s / √n with n - 1 in s."""
    n: int


class Pooled(NamedTuple):
    """The two averages over tasks, which answer different questions."""

    macro: float
    """Mean of the tasks' means: every task counts the same."""
    micro: float
    """Mean over all examples: large tasks count more."""


class Clusters(NamedTuple):
    """Cluster codes; a missing id is a cluster of its own, and is counted."""

    codes: Counts
    missing: int


def mean_error(scores: ArrayLike) -> MeanError | Missing:
    """Mean and standard error of independent scores; no error from one score."""
    values = np.asarray(scores, dtype=np.float64)
    n = len(values)
    if n == 0:
        return Missing("n = 0")
    se = float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else Missing("n < 2")
    return MeanError(float(values.mean()), se, n)


def consistent_error(scores: ArrayLike, se: float) -> bool:
    """Whether a stored error can be right: it is 0 if and only if all scores are equal."""
    values = np.asarray(scores, dtype=np.float64)
    return bool((np.ptp(values) == 0 if len(values) else True) == (se == 0))


def wilson(successes: int, n: int) -> Range | Missing:
    """Wilson's 95% interval of a share; never of zero width, at 0 and at n either.

    Source: Wilson, JASA 22 (1927) 209; Brown, Cai and DasGupta, Statist. Sci. 16 (2001) 101.
    """
    if n == 0:
        return Missing("n = 0")
    share, z2 = successes / n, Z95 * Z95
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 / (1 + z2 / n) * np.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    low = 0.0 if successes == 0 else float(centre - half)
    return Range(low, 1.0 if successes == n else float(centre + half))


def pooled(scores: Sequence[ArrayLike]) -> Pooled | Missing:
    """Macro and micro average over tasks; a task without a right answer is a 0, not absent."""
    tasks = [np.asarray(s, dtype=np.float64) for s in scores if np.size(s)]
    if not tasks:
        return Missing("no scores")
    macro = float(np.mean([t.mean() for t in tasks]))
    return Pooled(macro, float(np.concatenate(tasks).mean()))


def stratified_error(errors: Sequence[float | None], weights: Sequence[float]) -> float | Missing:
    """Standard error of a weighted mean over fixed tasks: √Σ (share · se)².

    The spread *between* tasks is no part of it: the tasks are what they are. A task without a
    standard error leaves the group without one.
    """
    if not errors or sum(weights) <= 0:
        return Missing("no tasks")
    known = [e for e in errors if e is not None]
    if len(known) < len(errors):
        return Missing(f"{len(errors) - len(known)} of {len(errors)} tasks have no standard error")
    shares = np.asarray(weights, dtype=np.float64) / sum(weights)
    return float(np.sqrt(((shares * np.asarray(known)) ** 2).sum()))


def clusters(ids: Sequence[Hashable | None]) -> Clusters:
    """Codes 0, 1, 2, … in the order of appearance; None and NaN are clusters of their own."""
    # NaN is the one value that differs from itself.
    absent = [name is None or name != name for name in ids]
    known: dict[Hashable, int] = {}
    codes = [
        known.setdefault(object() if gone else name, len(known))
        for name, gone in zip(ids, absent, strict=True)
    ]
    return Clusters(np.array(codes, dtype=np.int64), sum(absent))


def cluster_error(scores: ArrayLike, codes: Counts) -> MeanError | Missing:
    """Mean over all scores; error robust to clusters, with the factor G / (G - 1).

    With equally many scores a cluster it equals the standard error of the clusters' means. The
    error holds sampling noise within clusters already. Source: Liang and Zeger, Biometrika 73
    (1986) 13; Miller, arXiv 2411.00640, section 2.2.
    """
    values = np.asarray(scores, dtype=np.float64)
    if len(values) == 0:
        return Missing("n = 0")
    mean = float(values.mean())
    sums = np.bincount(np.unique(codes, return_inverse=True)[1], weights=values - mean)
    groups = len(sums)
    if groups < 2:
        return MeanError(mean, Missing("fewer than 2 clusters"), len(values))
    se = np.sqrt(groups / (groups - 1) * (sums**2).sum()) / len(values)
    return MeanError(mean, float(se), len(values))


def pass_at(k: int, correct: Counts, draws: Counts) -> float | Missing:
    """Unbiased pass@k: mean over examples of 1 - C(n - c, k) / C(n, k).

    Args:
        k: Draws of which one must be right, at least 1.
        correct: Right draws by example.
        draws: Draws by example.

    Source: Chen et al., arXiv 2107.03374, section 2.1.
    """
    if k < 1:
        raise ValueError(f"pass@k needs k >= 1, got {k}")
    right, n = np.asarray(correct), np.asarray(draws)
    if len(n) == 0 or int(n.min()) < k:
        return Missing(f"pass@{k} needs at least {k} draws of every example")
    steps = np.arange(k)
    left = np.maximum(n - right, 0)[:, None] - steps
    fail = np.prod(np.maximum(left, 0) / (n[:, None] - steps), axis=1)
    return float(1 - fail.mean())


def holm(p: Array) -> Array:
    """Holm's step-down adjusted p-values, in the given order.

    Source: Holm, Scand. J. Statist. 6 (1979) 65.
    """
    if len(p) == 0:
        return np.asarray(p, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
