"""Is the span a matter of scoring? (The method document, section 11, "The falsifier".)

The same generations scored otherwise, or a constrained decoder, are an *arm*. Each side's limits
are its own, those that it has without the other; the difference comes from both drawn together.
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


class Sides(NamedTuple):
    """The spans of the same models on the same tasks, in two arms."""

    normalized: Spans
    arm: Spans


def verdicts(
    alone: Sides, together: Sides | None = None, *, confidence: float = CONFIDENCE
) -> dict[str, Verdict | Missing]:
    """Verdict for every model, by name.

    Args:
        alone: Each side as it is drawn without the other: the limits.
        together: The same, from one `resample_together`: the difference. None where ``alone``
            is that.
        confidence: Of every interval.
    """
    models = alone.normalized.models
    drawn = together or alone
    return {model: _verdict(alone, drawn, m, confidence) for m, model in enumerate(models)}


def _verdict(alone: Sides, together: Sides, m: int, confidence: float) -> Verdict | Missing:
    apart = difference(together.normalized, m, together.arm, m, confidence=confidence)
    if isinstance(apart, Missing):
        return apart
    both = alone.normalized.there[m] & alone.arm.there[m]
    here, there = (mean_over(side, m, both, confidence=confidence) for side in alone)
    return judge(here, there, apart, float(alone.normalized.n[m, both].mean()))


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
