"""The noise floor: the range that exchangeable wrappers would show (method, section 7).

Wrapper labels are permuted within each example. That tests exchangeability, which unequal
variances or correlations also break, so it is not the test of equal accuracy, and its mean is
shown beside FSI, never subtracted. It grows with the number of wrappers.

Rows whose wrappers agree shift all wrappers alike and cannot matter. Rows of one multiset of
counts are exchangeable with each other, so only how often each arrangement occurs is drawn.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations
from typing import NamedTuple

import numpy as np

from formatspan.stats.indices import Counts
from formatspan.stats.panel import Missing, Panel, TaskCounts

PERMUTATIONS = 10_000
MOST_WRAPPERS_LISTED = 5
"""Up to so many, all arrangements of a row's counts are listed (at most 120)."""
GATHERED = 4
"""Up to so many rows an arrangement, drawing each row is faster than drawing counts."""
COMMON_COUNT = 1_000_000
"""Largest common multiple of the replies per example that is compared without rounding."""
CHUNK = 4_000_000


class Floor(NamedTuple):
    """What permuted labels show for one model on one task."""

    mean: float
    """Mean range of accuracy, a fraction of 1."""
    p: float
    """(1 + permutations with a range at least FSI) / (1 + permutations)."""


def noise_floor(
    panel: Panel, rng: np.random.Generator, *, count: int = PERMUTATIONS
) -> dict[tuple[str, str], Floor | Missing]:
    """Noise floor of every (model, task).

    Args:
        panel: Counts of replies.
        rng: Source of randomness.
        count: Permutations of the whole table of examples.
    """
    found: dict[tuple[str, str], Floor | Missing] = {}
    for m, model in enumerate(panel.models):
        for t, task in enumerate(panel.tasks):
            found[model, task.name] = panel.missing(m, t) or floor_of(
                *_scores_of(task, m), rng, count=count
            )
    return found


def _scores_of(task: TaskCounts, model: int) -> tuple[Counts, int]:
    rows = task.indexed[model]
    if task.credit:
        return np.rint(task.y[model, rows] * COMMON_COUNT).astype(np.int64), COMMON_COUNT
    return integer_scores(task.correct[model, rows], task.replies[model, rows])


def floor_of(
    scores: Counts, unit: int, rng: np.random.Generator, *, count: int = PERMUTATIONS
) -> Floor:
    """Noise floor of one table of examples × wrappers, at least one of each.

    Args:
        scores: Integers; see `integer_scores`.
        unit: The score of an example that is right in all its replies.
        rng: Source of randomness.
        count: Permutations.
    """
    observed = int(np.ptp(scores.sum(axis=0)))
    ranges = _ranges(scores, rng, count)
    reached = int((ranges >= observed).sum())
    return Floor(float(ranges.mean()) / (unit * len(scores)), (1 + reached) / (1 + count))


def integer_scores(correct: Counts, replies: Counts) -> tuple[Counts, int]:
    """Mean correctness times a common unit, so that equal sums are equal integers.

    The unit is the least common multiple of the numbers of replies, or 10^6 (scores are then
    rounded) where that multiple is larger.
    """
    unit = math.lcm(*(int(r) for r in np.unique(replies)))
    if unit <= COMMON_COUNT:
        return correct * (unit // replies), unit
    return np.rint(correct * (COMMON_COUNT / replies)).astype(np.int64), COMMON_COUNT


def _ranges(scores: Counts, rng: np.random.Generator, count: int) -> Counts:
    """Ranges of the permuted column sums, shape (count,)."""
    varying = scores[np.ptp(scores, axis=1) > 0]
    values = np.unique(varying)
    if len(values) == 2:
        sums = _two_valued((varying == values[1]).sum(axis=1), scores.shape[1], rng, count)
        return np.asarray(np.ptp(sums, axis=1) * (values[1] - values[0]))
    sums = np.zeros((count, scores.shape[1]), dtype=np.int64)
    kinds = Counter(map(tuple, np.sort(varying, axis=1).tolist()))
    for kind, rows in kinds.items():
        if len(kind) <= MOST_WRAPPERS_LISTED:
            sums += _arranged(kind, rows, rng, count)
        else:
            _add_shuffled(sums, kind, rows, rng)
    return np.asarray(np.ptp(sums, axis=1))


def _two_valued(high: Counts, wrappers: int, rng: np.random.Generator, count: int) -> Counts:
    """Rows with the high value in each column, where rows hold ``high`` of them at random.

    Column by column: of the rows that still have j to place in w columns, a binomial number
    with probability j / w place one in the next. Costs nothing more for more examples.
    """
    waiting = np.tile(np.bincount(high, minlength=wrappers + 1), (count, 1))
    to_place = np.arange(wrappers + 1)
    sums = np.empty((count, wrappers), dtype=np.int64)
    for column in range(wrappers):
        placed = rng.binomial(waiting, np.minimum(to_place / (wrappers - column), 1.0))
        sums[:, column] = placed.sum(axis=1)
        waiting -= placed
        waiting[:, :-1] += placed[:, 1:]
    return sums


def _arranged(kind: tuple[int, ...], rows: int, rng: np.random.Generator, count: int) -> Counts:
    """Column sums of some rows of one multiset, arranged at random; shape (count, wrappers)."""
    table = np.array(sorted(set(permutations(kind))), dtype=np.int64)
    if rows < GATHERED * len(table):
        sums = np.zeros((count, len(kind)), dtype=np.int64)
        for _ in range(rows):
            sums += table.take(rng.integers(len(table), size=count), axis=0)
        return sums
    drawn = rng.multinomial(rows, np.full(len(table), 1 / len(table)), size=count)
    return np.asarray(drawn @ table)


def _add_shuffled(sums: Counts, kind: tuple[int, ...], rows: int, rng: np.random.Generator) -> None:
    """Add what `_arranged` would give, for multisets with too many arrangements to list."""
    step = max(1, CHUNK // sums.size)
    for start in range(0, rows, step):
        shape = (len(sums), min(step, rows - start), len(kind))
        copies = np.broadcast_to(np.array(kind, dtype=np.int64), shape)
        sums += rng.permuted(copies, axis=2).sum(axis=1)
