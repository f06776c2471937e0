"""Everything that the statistics say of one panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from formatspan.inference.facts import Kind, facts
from formatspan.inference.models import (
    difference_rows,
    model_rows,
    order_of,
    rank_rows,
    reversal_rows,
)
from formatspan.inference.pairs import Given, Key, best_rows, pair_rows, wrapper_pair_rows
from formatspan.stats import decomposition, intervals
from formatspan.stats.indices import Counts
from formatspan.stats.panel import Panel
from formatspan.stats.resampling import resample

SEED = 0
"""Of every resampling: the same store gives the same figures."""
RESAMPLES = 10_000


@dataclass(frozen=True)
class Inference:
    """Rows by model, and by model and task, of one decoding mode."""

    models: Mapping[str, Mapping[str, Any]]
    pairs: Mapping[Key, Mapping[str, Any]]
    best: Mapping[Key, Mapping[str, float]]
    """Bootstrap probability that a wrapper is the best one, by model and task, then wrapper."""
    wrapper_pairs: Sequence[Mapping[str, Any]]
    ranks: Sequence[Mapping[str, Any]]
    reversals: Sequence[Mapping[str, Any]]
    differences: Sequence[Mapping[str, Any]]
    facts: Mapping[str, Any]


def infer(
    panel: Panel,
    first: Sequence[Counts] | None = None,
    kinds: Mapping[str, Kind] | None = None,
) -> Inference:
    """Every interval, test, decomposition and rank of a panel.

    Args:
        panel: Counts of replies.
        first: Correctness of first draws, see `first_draws`; None where it is not known.
        kinds: Family and size by model, where stated.
    """
    rng = np.random.default_rng(SEED)
    drawn = resample(panel, rng, resamples=RESAMPLES)
    fsi, psi = (intervals.spans(panel, drawn, m) for m in ("accuracy", "parseability"))
    given = Given(panel, drawn, fsi, psi, decomposition.decompositions(panel), first)
    pairs = pair_rows(given, rng)
    order = order_of(panel, rng, RESAMPLES)
    return Inference(
        models=model_rows(given, pairs, order),
        pairs=pairs,
        best=best_rows(panel, drawn),
        wrapper_pairs=wrapper_pair_rows(panel),
        ranks=rank_rows(order),
        reversals=reversal_rows(order),
        differences=difference_rows(given),
        # A seed of its own, so that the same regression elsewhere has the same interval.
        facts=facts(given, order, kinds or {}, np.random.default_rng(SEED)),
    )
