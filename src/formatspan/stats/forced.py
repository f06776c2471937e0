"""What scoring alone forces: accuracy cannot exceed the share parsed (method, section 7).

The counterfactual A' = C̄ · P keeps one conditional accuracy for all wrappers of a pair, so any
relation between A' and P comes from scoring. The signed difference between a figure for A and
for A' says how C varies over wrappers; it is not an effect of format.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from formatspan.stats.indices import Array
from formatspan.stats.panel import Missing, Panel


class Forced(NamedTuple):
    """The counterfactual of one model on one task."""

    conditional: float
    """C̄ = Σ_f A_f / Σ_f P_f (without credit); 0 where nothing parsed."""
    accuracy: Array
    """A' by wrapper; its mean over wrappers is that of A."""
    fsi: float
    """FSI' = C̄ · PSI."""


def forced(panel: Panel) -> dict[tuple[str, str], Forced | Missing]:
    """Counterfactual of every (model, task)."""
    return {
        (model, task.name): panel.missing(m, t)
        or forced_of(task.means.accuracy[m], task.means.parseability[m], task.credit)
        for m, model in enumerate(panel.models)
        for t, task in enumerate(panel.tasks)
    }


def forced_of(accuracy: Array, parseability: Array, credit: float = 0.0) -> Forced:
    """Counterfactual from A and P by wrapper.

    Where an unparsed reply scores ``credit``, A' = C̄ · P + credit · (1 - P).
    """
    parsed = float(parseability.sum())
    gain = float((accuracy - credit).sum()) / parsed if parsed else 0.0
    counterfactual = credit + gain * parseability
    fsi = abs(gain) * float(np.ptp(parseability))
    return Forced(gain + credit if parsed else 0.0, counterfactual, fsi)
