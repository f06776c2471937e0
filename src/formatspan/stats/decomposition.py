"""What a gap in accuracy between wrappers is made of (the method document, section 7).

A = P · C: the share parsed times the accuracy among what parsed. The gap between the best and
the worst wrapper splits exactly into a *compliance* and a *conditional-accuracy* part. Source:
Kitagawa, J. Am. Statist. Assoc. 50 (1955) 1168, with two factors.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

import numpy as np

from formatspan.stats.indices import Array, Counts
from formatspan.stats.panel import SAME, Missing, Panel, TaskCounts

FEW_PARSED = 10
"""Fewer parsed replies under the best or the worst wrapper are flagged."""


class Support(NamedTuple):
    """Accuracy among parsed replies on the examples that parsed under both wrappers."""

    examples: int
    best: float
    worst: float


class Parts(NamedTuple):
    """FSI split into two signed parts that add up to it. Averages over tied pairs."""

    fsi: float
    compliance: float
    """(P_b - P_w) · (C_b + C_w) / 2."""
    conditional: float
    """(C_b - C_w) · (P_b + P_w) / 2."""
    compliance_at_worst: float
    """(P_b - P_w) · C_w, one end point of the compliance part."""
    compliance_at_best: float
    """(P_b - P_w) · C_b, the other."""


NONE = Parts(0.0, 0.0, 0.0, 0.0, 0.0)


class Decomposition(NamedTuple):
    """Parts of one model's FSI on one task."""

    parts: Parts
    shares: tuple[float, float] | Missing
    """Compliance and conditional part over FSI; missing where FSI is 0."""
    best: tuple[int, ...]
    """Wrappers with the highest A (several where tied)."""
    worst: tuple[int, ...]
    parsed: int
    """Fewest parsed replies among these wrappers."""
    few_parsed: bool
    support: Support | Missing


def decompositions(panel: Panel) -> dict[tuple[str, str], Decomposition | Missing]:
    """Decomposition of FSI of every (model, task)."""
    return {
        (model, task.name): panel.missing(m, t) or decompose(task, m)
        for m, model in enumerate(panel.models)
        for t, task in enumerate(panel.tasks)
    }


def decompose(task: TaskCounts, model: int) -> Decomposition:
    """Decomposition of one model's FSI on a task where it is indexed."""
    accuracy, parseability = task.means.accuracy[model], task.means.parseability[model]
    best = _ties(accuracy, float(accuracy.max()))
    worst = _ties(accuracy, float(accuracy.min()))
    pairs = list(product(best, worst))
    varies = float(np.ptp(accuracy)) > SAME
    # Under partial credit A - credit = P · (C - credit), which splits in the same way.
    earned = accuracy - task.credit
    parts = mean_parts(split(earned, parseability, b, w) for b, w in pairs) if varies else NONE
    some = task.indexed[model]
    parsed, correct = task.parsed[model, some], task.correct[model, some]
    fewest = int(parsed.sum(axis=0)[[*best, *worst]].min())
    shares = (parts.compliance / parts.fsi, parts.conditional / parts.fsi) if varies else None
    return Decomposition(
        parts=parts,
        shares=shares or Missing("FSI = 0"),
        best=best,
        worst=worst,
        parsed=fewest,
        few_parsed=fewest < FEW_PARSED,
        support=_mean_support([common_support(correct, parsed, b, w) for b, w in pairs]),
    )


def _ties(values: Array, value: float) -> tuple[int, ...]:
    return tuple(int(i) for i in np.flatnonzero(np.abs(values - value) <= SAME))


def split(accuracy: Array, parseability: Array, b: int, w: int) -> Parts:
    """A_b - A_w in two parts; where nothing parsed, C is taken from the other wrapper."""
    p_b, p_w = float(parseability[b]), float(parseability[w])
    if max(p_b, p_w) == 0:
        return NONE
    known_b = float(accuracy[b]) / p_b if p_b else None
    known_w = float(accuracy[w]) / p_w if p_w else known_b
    c_w = known_w or 0.0
    c_b = c_w if known_b is None else known_b
    gap = p_b - p_w
    return Parts(
        fsi=float(accuracy[b] - accuracy[w]),
        compliance=gap * (c_b + c_w) / 2,
        conditional=(c_b - c_w) * (p_b + p_w) / 2,
        compliance_at_worst=gap * c_w,
        compliance_at_best=gap * c_b,
    )


def mean_parts(parts: Iterable[Parts]) -> Parts:
    """Averages, over tied pairs or over tasks: the parts still add up to the mean FSI."""
    return Parts(*(float(v) for v in np.array(list(parts)).mean(axis=0)))


def model_parts(
    found: dict[tuple[str, str], Decomposition | Missing], model: str
) -> Parts | Missing:
    """Mean parts of a model over its indexed tasks."""
    known = [d.parts for (m, _), d in found.items() if m == model and isinstance(d, Decomposition)]
    return mean_parts(known) if known else Missing("not indexed on any task")


def common_support(correct: Counts, parsed: Counts, b: int, w: int) -> Support | Missing:
    """Accuracy among parsed replies on examples with a parsed reply under both wrappers.

    Args:
        correct: Correct replies, examples × wrappers.
        parsed: Parsed replies, examples × wrappers.
        b: One wrapper.
        w: The other.

    Returns:
        Per wrapper the mean over these examples of correct / parsed.
    """
    both = (parsed[:, b] > 0) & (parsed[:, w] > 0)
    if not both.any():
        return Missing("no example parsed under both wrappers")
    ratio = correct[both][:, [b, w]] / parsed[both][:, [b, w]]
    return Support(int(both.sum()), float(ratio[:, 0].mean()), float(ratio[:, 1].mean()))


def _mean_support(found: list[Support | Missing]) -> Support | Missing:
    """Average over tied pairs, with the fewest examples among them."""
    known = [s for s in found if isinstance(s, Support)]
    if not known:
        return found[0]
    mean = np.array([(s.best, s.worst) for s in known]).mean(axis=0)
    return Support(min(s.examples for s in known), float(mean[0]), float(mean[1]))
