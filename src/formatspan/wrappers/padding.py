r"""Token control: one length for the prompts that are compared.

Character padding is one run of U+0020. Token padding repeats a unit that adds one token each
time, since runs of spaces merge: 1,000 spaces can be 19 tokens, a repeated ``"\n "`` one each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from formatspan.errors import StudyError
from formatspan.records import Message
from formatspan.wrappers.wrapper import Rendered

Unit = Literal["chars", "tokens"]

TOKEN_UNITS: tuple[str, ...] = ("\n ", " \n", "\n", " .", " ~", " -")
"""Candidates for token padding, least visible first."""

_MAX_STEPS = 12
TOKEN_TOLERANCE = 1
"""Token counts of one budget agree within this many tokens."""


class CountsTokens(Protocol):
    """What token padding needs of a tokenizer."""

    def count(self, messages: Sequence[Message]) -> int:
        """Prompt tokens of ``messages``, chat template included."""
        ...


@dataclass(frozen=True, slots=True)
class Padded:
    """A prompt's messages at its budget."""

    messages: tuple[Message, ...]
    chars: int
    pad_chars: int
    tokens: int | None


class TooLong(StudyError):
    """A prompt is longer than its budget.

    Args:
        needed: The length it would need, in ``unit``.
        unit: Characters or tokens.
        budget: The budget it exceeds.
    """

    def __init__(self, needed: int, unit: Unit, budget: int) -> None:
        self.needed, self.unit, self.budget = needed, unit, budget
        super().__init__(f"a prompt needs {needed} {unit}, the budget is {budget}")


def length(rendered: Rendered, tokenizer: CountsTokens | None) -> int:
    """Unpadded length: characters, or tokens where a tokenizer is given."""
    return tokenizer.count(rendered.padded("")) if tokenizer else rendered.chars


def tolerance(tokenizer: CountsTokens | None) -> int:
    """By how much a prompt may exceed its budget."""
    return TOKEN_TOLERANCE if tokenizer else 0


def pad(rendered: Rendered, budget: int | None, tokenizer: CountsTokens | None) -> Padded:
    """Pad to ``budget`` characters, or tokens where a tokenizer is given; None pads nothing.

    Raises:
        TooLong: The unpadded prompt is longer than the budget.
    """
    if budget is None:
        return _finish(rendered, "", tokenizer)
    if tokenizer is None:
        if rendered.chars > budget:
            raise TooLong(rendered.chars, "chars", budget)
        return _finish(rendered, " " * (budget - rendered.chars), None)
    return _pad_tokens(rendered, budget, tokenizer)


def _finish(rendered: Rendered, padding: str, tokenizer: CountsTokens | None) -> Padded:
    messages = rendered.padded(padding)
    tokens = tokenizer.count(messages) if tokenizer else None
    return Padded(messages, rendered.chars + len(padding), len(padding), tokens)


def _pad_tokens(rendered: Rendered, budget: int, tokenizer: CountsTokens) -> Padded:
    unpadded = tokenizer.count(rendered.padded(""))
    if unpadded > budget + tolerance(tokenizer):
        raise TooLong(unpadded, "tokens", budget)
    best: Padded | None = None
    for unit in TOKEN_UNITS:
        padded = _approach(rendered, unit, budget, budget - unpadded, tokenizer)
        if best is None or _miss(padded, budget) < _miss(best, budget):
            best = padded
        if _miss(best, budget) == 0:
            break
    assert best is not None
    return best


def _approach(
    rendered: Rendered, unit: str, budget: int, guess: int, tokenizer: CountsTokens
) -> Padded:
    # One unit is meant to be one token, so the miss itself is the next step.
    repeats, best = max(0, guess), _finish(rendered, "", tokenizer)
    for _ in range(_MAX_STEPS):
        padded = _finish(rendered, unit * repeats, tokenizer)
        if _miss(padded, budget) < _miss(best, budget):
            best = padded
        step = budget - (padded.tokens or 0)
        if step == 0 or repeats + step < 0:
            break
        repeats += step
    return best


def _miss(padded: Padded, budget: int) -> int:
    return abs((padded.tokens or 0) - budget)
