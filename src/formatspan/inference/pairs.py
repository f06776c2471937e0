"""Rows of every model and task, and of every two wrappers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from formatspan.inference.plain import columns, limits
from formatspan.stats import decomposition, intervals, permutation, variance
from formatspan.stats.consistency import Consistency, consistency
from formatspan.stats.forced import forced
from formatspan.stats.indices import Counts
from formatspan.stats.pairwise import wrapper_pairs
from formatspan.stats.panel import Missing, Panel
from formatspan.stats.resampling import Resamples

Key = tuple[str, str]
Parts = Mapping[Key, decomposition.Decomposition | Missing]


class Given(NamedTuple):
    """What the rows of a panel are made of."""

    panel: Panel
    drawn: Resamples
    fsi: intervals.Spans
    psi: intervals.Spans
    parts: Parts
    first: Sequence[Counts] | None
    """Correctness of first draws, where known."""


def pair_rows(given: Given, rng: np.random.Generator) -> dict[Key, dict[str, Any]]:
    """Columns of every model and task."""
    panel = given.panel
    fsi_at, psi_at = intervals.pair_intervals(given.fsi), intervals.pair_intervals(given.psi)
    equal, floor = intervals.equal_accuracy(given.fsi), permutation.noise_floor(panel, rng)
    spread, without = variance.wrapper_variance(panel), forced(panel)
    same = consistency(panel, given.first)
    return {
        key: {
            **limits("fsi", interval),
            **limits("psi", psi_at[key]),
            **columns(equal[key], p="p_equal", p_holm="p_holm"),
            **columns(floor[key], mean="noise_floor", p="noise_p"),
            **columns(spread[key], variance="wrapper_variance", sigma="sigma_wrapper"),
            **columns(without[key], fsi="fsi_forced"),
            **_consistency(same[key]),
            **_parts(given.parts[key], panel.wrappers),
        }
        for key, interval in fsi_at.items()
    }


def _consistency(found: Consistency | Missing) -> dict[str, Any]:
    same = found if isinstance(found, Missing) else found.same
    noise = found if isinstance(found, Missing) else found.seed_noise
    return {
        "same_share": None if isinstance(same, Missing) else same.share,
        **columns(found, disagreement="disagreement", prosa="prosa"),
        "seed_noise": None if isinstance(noise, Missing) else noise,
    }


def _parts(found: decomposition.Decomposition | Missing, wrappers: Sequence[str]) -> dict[str, Any]:
    if isinstance(found, Missing):
        return dict.fromkeys((*_PARTS.values(), *_SUPPORT.values(), "best", "worst", "flags"))
    few = "fewer than 10 parsed replies under the worst or best wrapper"
    return {
        **columns(found.parts, **_PARTS),
        **columns(found.support, **_SUPPORT),
        "best": ", ".join(wrappers[i] for i in found.best),
        "worst": ", ".join(wrappers[i] for i in found.worst),
        "flags": few if found.few_parsed else None,
    }


_PARTS = {
    "compliance": "compliance_part",
    "conditional": "conditional_part",
    "compliance_at_worst": "compliance_part_at_worst",
    "compliance_at_best": "compliance_part_at_best",
}
_SUPPORT = {"examples": "support_n", "best": "support_best", "worst": "support_worst"}


def best_rows(panel: Panel, drawn: Resamples) -> dict[Key, dict[str, float]]:
    """Bootstrap probability that a wrapper is the best one, by model and task, then wrapper."""
    return {
        (model, task.name): dict(zip(panel.wrappers, map(float, best[m]), strict=True))
        for task, best in zip(panel.tasks, drawn.best, strict=True)
        for m, model in enumerate(panel.models)
    }


def wrapper_pair_rows(panel: Panel) -> list[dict[str, Any]]:
    """Every two wrappers of every model, over its indexed tasks."""
    return [
        {
            "model": model,
            "wrapper_a": pair.first,
            "wrapper_b": pair.second,
            "difference": pair.difference,
            **columns(pair.paired, low="low", high="high", p="p", p_holm="p_holm"),
            **columns(pair.mcnemar, only_first="only_a", only_second="only_b"),
            **columns(pair.mcnemar, p="mcnemar_p", p_holm="mcnemar_p_holm"),
            "note": pair.paired.reason if isinstance(pair.paired, Missing) else None,
        }
        for model, found in wrapper_pairs(panel).items()
        for pair in (() if isinstance(found, Missing) else found)
    ]
