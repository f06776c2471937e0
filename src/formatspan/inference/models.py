"""Rows of every model, of every two models, and of their order under each wrapper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from formatspan.inference.pairs import Given, Key
from formatspan.inference.plain import columns, limits
from formatspan.stats import decomposition, intervals, ranking
from formatspan.stats.panel import Missing, Panel
from formatspan.stats.resampling import Resamples, resample


class Order(NamedTuple):
    """How the models compare, by mean accuracy over tasks."""

    ranking: ranking.Ranking | Missing
    wrappers: tuple[str, ...]
    accuracy: dict[Key, float]
    """By model and wrapper, on the examples indexed for all models."""
    by_task: dict[str, ranking.Ranking | Missing]


def model_rows(
    given: Given, pairs: Mapping[Key, Mapping[str, Any]], order: Order
) -> dict[str, dict[str, Any]]:
    """Columns of every model: means over its tasks."""
    fsi_at, psi_at = intervals.mean_intervals(given.fsi), intervals.mean_intervals(given.psi)
    ranks = _rank_limits(order)
    rows = {}
    for model in given.panel.models:
        mine = [row for (name, _), row in pairs.items() if name == model]
        shared = decomposition.model_parts(dict(given.parts), model)
        tests = [r["p_holm"] for r in mine if r["p_holm"] is not None]
        low, high = ranks.get(model, (None, None))
        rows[model] = {
            **limits("fsi", fsi_at[model]),
            **limits("psi", psi_at[model]),
            **{key: _mean([r[key] for r in mine]) for key in _MEANS},
            "p_equal_min_holm": min(tests, default=None),
            **columns(shared, compliance="compliance_part", conditional="conditional_part"),
            "compliance_share": _share(shared),
            "rank_low": low,
            "rank_high": high,
        }
    return rows


_MEANS = ("noise_floor", "fsi_forced", "same_share", "disagreement", "seed_noise", "prosa")


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return float(np.mean(known)) if known else None


def _share(parts: decomposition.Parts | Missing) -> float | None:
    """The compliance part over FSI; None where there is no span to share out."""
    if isinstance(parts, Missing) or parts.fsi <= 0:
        return None
    return parts.compliance / parts.fsi


def order_of(panel: Panel, rng: np.random.Generator, resamples: int) -> Order:
    """Ranks on the examples that are indexed for all models."""
    common = panel.common()
    drawn: Resamples = resample(common, rng, resamples=resamples)
    found = ranking.rankings(common, drawn)
    shared = [t for i, t in enumerate(common.tasks) if common.indexed[:, i].any()]
    accuracy = {
        (model, wrapper): float(np.mean([t.means.accuracy[m, w] for t in shared]))
        for m, model in enumerate(panel.models)
        for w, wrapper in enumerate(panel.wrappers)
        if shared
    }
    by_task = {task: r for task, r in found.items() if task is not None}
    return Order(found[None], panel.wrappers, accuracy, by_task)


def _rank_limits(order: Order) -> dict[str, tuple[float, float]]:
    if isinstance(order.ranking, Missing):
        return {}
    spans = zip(order.ranking.models, order.ranking.intervals, strict=True)
    return {model: (float(span[0]), float(span[1])) for model, span in spans}


def rank_rows(order: Order) -> list[dict[str, Any]]:
    """Rank of every model under every wrapper."""
    found = order.ranking
    if isinstance(found, Missing):
        return []
    return [
        {
            "model": model,
            "wrapper": wrapper,
            "rank": float(found.ranks[m, w]),
            "accuracy": order.accuracy[model, wrapper],
        }
        for m, model in enumerate(found.models)
        for w, wrapper in enumerate(order.wrappers)
    ]


def reversal_rows(order: Order) -> list[dict[str, Any]]:
    """Every two models, and the wrappers under which each is furthest ahead."""
    if isinstance(order.ranking, Missing):
        return []
    return [
        {
            "model_a": found.a,
            "model_b": found.b,
            "certain": found.reversal,
            "wrapper_for": order.wrappers[int(np.argmax(found.gaps))],
            "wrapper_against": order.wrappers[int(np.argmin(found.gaps))],
            "largest_gap": float(found.gaps.max()),
            "smallest_gap": float(found.gaps.min()),
            "margin": found.margin,
            "reversed_share": found.reversed_share,
            "reversed_gap": found.reversed_gap,
        }
        for found in order.ranking.comparisons
    ]


def difference_rows(given: Given) -> list[dict[str, Any]]:
    """Difference of mean FSI and of mean PSI of every two models, with its interval."""
    fsi, psi = intervals.differences(given.fsi), intervals.differences(given.psi)
    return [
        {
            "model_a": a,
            "model_b": b,
            **columns(found, value="fsi_difference", low="fsi_low", high="fsi_high"),
            **columns(psi[a, b], value="psi_difference", low="psi_low", high="psi_high"),
            "note": found.reason if isinstance(found, Missing) else None,
        }
        for (a, b), found in fsi.items()
    ]
