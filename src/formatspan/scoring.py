"""From an extraction to a score: correct means parsed and equal by value."""

from __future__ import annotations

from formatspan.contracts import AnswerSpace, Contract
from formatspan.extraction import extract_with
from formatspan.records import Answer, Level, Score, Status


def equal(value: Answer | None, gold: Answer) -> bool:
    """Whether an extracted answer is the right one: numbers by value, all else by identity.

    True is not 1: an answer of another kind than the gold answer is never right.
    """
    if isinstance(value, bool) or isinstance(gold, bool):
        return value is gold
    return value == gold


def score(
    text: str,
    finish_reason: str | None,
    contract: Contract,
    space: AnswerSpace,
    gold: Answer,
    level: Level,
    question: str | None = None,
) -> Score:
    """Score one reply at one level; only here does the gold answer meet the reply."""
    found = extract_with(contract, space, text, finish_reason, level, question)
    parsed = found.status is Status.OK
    return Score(found.status, found.value, parsed, parsed and equal(found.value, gold))
