"""What the figures of one model allow to be said, and no more.

Every sentence of a report goes through here, so that none is stronger than its interval.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import NamedTuple

from formatspan.analysis import FEW_EXAMPLES
from formatspan.report.view import Row, View

SAFE_SPAN = 0.05
"""A model is called safe if its FSI is below this with 95% confidence."""
MOST = 0.7
"""Share of a loss from which on it is called *mostly* of one kind."""
SIGNIFICANT = 0.05


class Verdict(StrEnum):
    """What can be said about a model's sensitivity to the wrapper."""

    NOTHING = "nothing measured"
    ONE_WRAPPER = "one wrapper only"
    FEW = "too few examples"
    NO_INTERVAL = "no interval"
    SAFE = "safe"
    NO_EFFECT = "no effect beyond noise"
    UNDECIDED = "undecided"
    EFFECT = "effect"


class Cause(StrEnum):
    """Where the loss between best and worst wrapper comes from."""

    UNKNOWN = "not estimated"
    COMPLIANCE = "mostly compliance"
    ABILITY = "mostly accuracy of the replies that parsed"
    BOTH = "both compliance and accuracy of the replies that parsed"


class Need(NamedTuple):
    """How many examples a task would need, by the width of today's interval."""

    now: int
    needed: int


def verdict(model: Row, view: View) -> Verdict:
    """What the figures of ``model`` allow to be said."""
    indexed = [p for p in view.of(model, "pairs") if p["n"]]
    if model["fsi"] is None or not indexed:
        return Verdict.NOTHING
    if len(view.wrappers) < 2:
        return Verdict.ONE_WRAPPER
    if max(p["n"] for p in indexed) < FEW_EXAMPLES:
        return Verdict.FEW
    if model["fsi_low"] is None or model["fsi_high"] is None:
        return Verdict.NO_INTERVAL
    return _tested(model)


def _tested(model: Row) -> Verdict:
    p = model["p_equal_min_holm"]
    some_task = p is not None and p < SIGNIFICANT
    if model["fsi_low"] > 0:
        return Verdict.EFFECT
    if some_task:  # one task differs, while the mean over tasks could still be 0
        return Verdict.UNDECIDED
    return Verdict.SAFE if model["fsi_high"] <= SAFE_SPAN else Verdict.NO_EFFECT


def cause(share: float | None) -> Cause:
    """What a share of compliance in the loss is called."""
    if share is None:
        return Cause.UNKNOWN
    if share >= MOST:
        return Cause.COMPLIANCE
    return Cause.ABILITY if share <= 1 - MOST else Cause.BOTH


def more_examples(model: Row, view: View) -> Need | None:
    """Examples a task for a clear word, or None if that has been said or cannot be foreseen.

    The interval's half-width shrinks with the root of n. Where no effect was found, the aim
    is a half-width of `SAFE_SPAN`; where one task differs, one below the estimate itself.
    """
    found = verdict(model, view)
    if found not in (Verdict.NO_EFFECT, Verdict.UNDECIDED):
        return None
    half = model["fsi_high"] - model["fsi"]
    aim = SAFE_SPAN if found is Verdict.NO_EFFECT else model["fsi"]
    smallest = min(p["n"] for p in view.of(model, "pairs") if p["n"])
    if half <= 0 or aim <= 0:
        return None
    needed = _two_digits(smallest * (half / aim) ** 2)
    return Need(smallest, needed) if needed > smallest else None


def _two_digits(value: float) -> int:
    """``value`` rounded up to two digits: a forecast has no more."""
    unit: int = 10 ** max(0, math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit
