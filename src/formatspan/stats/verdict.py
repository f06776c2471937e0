"""Is the span a matter of scoring? (The method document, section 11, "The falsifier".)

The same generations scored otherwise, or a constrained decoder, are an *arm*. Both panels come
from one `resample_together`, so that the difference is paired.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from formatspan.stats.intervals import Estimate, Spans, difference, mean_over
from formatspan.stats.panel import CONFIDENCE, Missing

Finding = Literal["collapsed", "not collapsed", "undecided", "no effect to explain"]


class Needed(NamedTuple):
    """How many examples would decide, if the figures stayed as they are."""

    examples: int
    """Mean over tasks."""
    towards: Finding


class Verdict(NamedTuple):
    """What an arm does to one model's mean FSI, over the tasks that both have."""

    finding: Finding
    normalized: Estimate
    arm: Estimate
    difference: Estimate
    """D = FSI_normalized - FSI_arm."""
    needed: Needed | Missing | None
    """Only for an undecided verdict."""


def verdicts(
    normalized: Spans, arm: Spans, *, confidence: float = CONFIDENCE
) -> dict[str, Verdict | Missing]:
    """Verdict for every model that both sides hold, by name."""
    at = {model: i for i, model in enumerate(arm.models)}
    return {
        model: _verdict(normalized, a, arm, at[model], confidence)
        for a, model in enumerate(normalized.models)
        if model in at
    }


def _verdict(normalized: Spans, a: int, arm: Spans, b: int, confidence: float) -> Verdict | Missing:
    both = normalized.there[a] & arm.there[b]
    apart = difference(normalized, a, arm, b, confidence=confidence)
    if isinstance(apart, Missing):
        return apart
    here = mean_over(normalized, a, both, confidence=confidence)
    there = mean_over(arm, b, both, confidence=confidence)
    return judge(here, there, apart, float(normalized.n[a, both].mean()))


def judge(normalized: Estimate, arm: Estimate, apart: Estimate, examples: float) -> Verdict:
    """The rule.

    Args:
        normalized: Mean FSI at the normalized level.
        arm: Mean FSI of the arm.
        apart: Their paired difference.
        examples: Indexed examples a task.
    """
    if normalized.low <= 0:
        return Verdict("no effect to explain", normalized, arm, apart, None)
    if arm.high < normalized.low / 2:
        return Verdict("collapsed", normalized, arm, apart, None)
    if arm.low > normalized.high / 2:
        return Verdict("not collapsed", normalized, arm, apart, None)
    return Verdict("undecided", normalized, arm, apart, needed(normalized, arm, examples))


def needed(normalized: Estimate, arm: Estimate, examples: float) -> Needed | Missing:
    """Examples at which margins that shrink with 1/√n would no longer overlap half of it."""
    gap = normalized.value / 2 - arm.value
    reach = arm.margin + normalized.margin / 2
    if gap == 0:
        return Missing("the arm has exactly half of the span: no number of examples decides")
    towards: Finding = "collapsed" if gap > 0 else "not collapsed"
    return Needed(math.floor(examples * (reach / gap) ** 2) + 1, towards)
