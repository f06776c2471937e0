"""Figures of the run as a whole, as plain data; what cannot be had is its reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from formatspan.inference.models import Order
from formatspan.inference.pairs import Given
from formatspan.inference.plain import plain_data
from formatspan.stats import intervals, relations
from formatspan.stats.generation import generation_regression
from formatspan.stats.indices import Array
from formatspan.stats.intervals import Estimate
from formatspan.stats.panel import Missing
from formatspan.stats.ranking import Ranking
from formatspan.stats.regression import accuracy_on_parseability

FEW_MODELS = 4
"""Up to so many models, a report says what so few cannot show."""


class Kind(NamedTuple):
    """What a study states of a model."""

    family: str | None
    size_b: float | None
    """Billions of parameters."""


def facts(
    given: Given, order: Order, kinds: Mapping[str, Kind], rng: np.random.Generator
) -> dict[str, Any]:
    """By topic."""
    means = intervals.mean_intervals(given.fsi)
    known = {m: e.value for m, e in means.items() if isinstance(e, Estimate)}
    return {
        "accuracy on parseability": plain_data(accuracy_on_parseability(given.panel, rng)),
        "correct on parsed, by generation": plain_data(generation_regression(given.panel)),
        "contrast of FSI": plain_data(intervals.contrast(means)),
        "FSI with PSI": plain_data(relations.fsi_with_psi(given.fsi, given.psi)),
        "FSI and size": _size(known, kinds),
        "FSI by family": _families(known, kinds),
        "ranking": _ranking(order),
    }


def _size(fsi: Mapping[str, float], kinds: Mapping[str, Kind]) -> Any:  # noqa: ANN401 - JSON
    sized = {m: size for m in fsi if (size := kinds[m].size_b if m in kinds else None)}
    if not sized:
        return plain_data(Missing("no model states its size"))
    families = [kinds[m].family or m for m in sized]
    parameters = [1e9 * size for size in sized.values()]
    return plain_data(relations.size_slope([fsi[m] for m in sized], parameters, families))


def _families(fsi: Mapping[str, float], kinds: Mapping[str, Kind]) -> Any:  # noqa: ANN401 - JSON
    stated = {m: k.family for m, k in kinds.items() if k.family and m in fsi}
    if not stated:
        return plain_data(Missing("no model states its family"))
    found = relations.by_family({m: fsi[m] for m in stated}, stated)
    return {
        name: {"models": len(v), "mean": float(v.mean()), **_ends(v)} for name, v in found.items()
    }


def _ends(values: Array) -> dict[str, float]:
    return {"lowest": float(values.min()), "highest": float(values.max())}


def _ranking(order: Order) -> Any:  # noqa: ANN401 - JSON
    found = order.ranking
    if isinstance(found, Missing):
        return plain_data(found)
    tasks = [name for name, r in order.by_task.items() if isinstance(r, Ranking) and r.reversals]
    return {
        "models": len(found.models),
        "pairs": len(found.comparisons),
        "reversals": len(found.reversals),
        "tasks_with_reversals": tasks,
        "kendall_w": plain_data(found.kendall_w),
        "largest_reversed_gap": found.largest_reversed_gap,
    }
