"""FSI and PSI with their intervals and nothing else: for a subset, or for another level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from formatspan.inference.plain import columns, limits
from formatspan.stats import intervals
from formatspan.stats.indices import Array
from formatspan.stats.panel import Missing, Panel
from formatspan.stats.resampling import resample

BRIEF_RESAMPLES = 10_000


@dataclass(frozen=True)
class Brief:
    """Columns by model, and by model and task."""

    models: Mapping[str, Mapping[str, Any]]
    pairs: Mapping[tuple[str, str], Mapping[str, Any]]


def brief(panel: Panel, seed: int, *, resamples: int = BRIEF_RESAMPLES) -> Brief:
    """The spans of a panel with max-T intervals."""
    drawn = resample(panel, np.random.default_rng(seed), resamples=resamples)
    fsi, psi = (intervals.spans(panel, drawn, m) for m in ("accuracy", "parseability"))
    fsi_at, psi_at = intervals.pair_intervals(fsi), intervals.pair_intervals(psi)
    return Brief(
        models=_models(panel, fsi, psi),
        pairs={k: limits("fsi", v) | limits("psi", psi_at[k]) for k, v in fsi_at.items()},
    )


def _models(panel: Panel, fsi: intervals.Spans, psi: intervals.Spans) -> dict[str, dict[str, Any]]:
    fsi_at, psi_at = intervals.mean_intervals(fsi), intervals.mean_intervals(psi)
    rows = {}
    for m, model in enumerate(panel.models):
        there = [t for t, yes in zip(panel.tasks, panel.indexed[m], strict=True) if yes]
        means: list[Array] = [t.means.accuracy[m] for t in there]
        rows[model] = {
            "tasks": len(there),
            "n": int(sum(t.means.n[m] for t in there)),
            "accuracy": float(np.mean(means)) if means else None,
            **_estimate("fsi", fsi_at[model]),
            **_estimate("psi", psi_at[model]),
        }
    return rows


def _estimate(name: str, found: intervals.Estimate | Missing) -> dict[str, Any]:
    return columns(found, value=name, low=f"{name}_low", high=f"{name}_high")
