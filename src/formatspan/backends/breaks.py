r"""How real replies break a contract: the repertoire of the scripted model.

Each break turns an intended answer into a reply that the strict level refuses. Which level
reads it again, if any, is part of its definition (`BREAKS`), so that a test can choose breaks
that stay unparsed at every level, or that only the strict level refuses.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from formatspan.contracts import AnswerSpace, Contract, answers, reply, written
from formatspan.records import Answer, Level


@dataclass(frozen=True, slots=True)
class Intent:
    """The answer a scripted model means to give, and the shape it was asked for."""

    contract: Contract
    space: AnswerSpace
    answer: Answer
    other: Answer
    """A different answer of the same space."""

    @property
    def strict(self) -> str:
        """The reply as asked; with a line before the answer where the contract has room."""
        return reply(self.contract, self.space, self.answer, self.preamble)

    @property
    def bare(self) -> str:
        """The answer as written under the contract, without the shell around it."""
        return written(self.contract, self.space, self.answer)

    @property
    def preamble(self) -> str:
        """A scratchpad of one line, where the contract has one."""
        return "The options differ." if self.contract.preamble else ""


@dataclass(frozen=True, slots=True)
class Break:
    """One way to miss a contract."""

    write: Callable[[Intent], str | None]
    """The broken reply, or None where this break has no sense (a number has no option text)."""
    read_from: Level | None
    """The least lenient level that reads the answer; None: unparsed at every level."""
    cut: bool = False
    """The reply ends at the length cap instead of by itself."""


def _silence(_: Intent) -> str:
    # No digit, no lone capital and no word for true or false: not even a rule that
    # takes the first letter or the last number may find an answer in it.
    return "This question needs more thought before anything can be said."


def _chatty(intent: Intent) -> str:
    return f"Thinking it over, the answer is {intent.bare}."


def _fenced(intent: Intent) -> str:
    language = "json" if intent.contract.shape == "json" else ""
    return f"```{language}\n{intent.strict}\n```"


def _wrong_shape(intent: Intent) -> str:
    key = intent.contract.key
    if intent.contract.shape == "json":
        return f"{key}: {intent.bare}"
    return json.dumps({key: intent.bare}, ensure_ascii=False)


def _option_text(intent: Intent) -> str | None:
    if intent.space.kind != "choice" or not intent.space.options:
        return None
    index = intent.space.labels.index(str(intent.answer))
    wanted_text = intent.contract.form == "text"
    return intent.space.labels[index] if wanted_text else intent.space.options[index]


def _two_answers(intent: Intent) -> str:
    other = written(intent.contract, intent.space, intent.other)
    return f"It could be {intent.bare} or {other}."


def _cut_off(intent: Intent) -> str:
    return intent.strict[: len(intent.strict) // 2]


BREAKS: dict[str, Break] = {
    "silence": Break(_silence, None),  # prose without an answer
    "refusal": Break(lambda _: "I'm sorry, but I can't help with that.", None),
    "empty": Break(lambda _: "", None),
    "cut_off": Break(_cut_off, None, cut=True),
    "two_answers": Break(_two_answers, None),
    "chatty": Break(_chatty, "lenient"),  # the answer inside a sentence
    "option_text": Break(_option_text, "lenient"),  # the text where the label was asked
    "wrong_shape": Break(_wrong_shape, "lenient"),  # JSON for text, a field for JSON
    "bare": Break(lambda intent: intent.bare, "lenient"),  # a letter where JSON was asked
    "fenced": Break(_fenced, "normalized"),  # a code fence around the right reply
}
"""Every break by name."""


def broken(names: tuple[str, ...], start: int, intent: Intent) -> tuple[str, bool]:
    """A reply that misses the contract, and whether it was cut off.

    Args:
        names: Breaks to choose from, in order.
        start: Where in the rotation to begin; any integer.
        intent: The answer and the contract.

    Breaks that make no sense here, or that happen to be the asked form (``bare`` where a bare
    letter is asked), are passed over; ``silence`` stands in if none is left.
    """
    for step in range(len(names)):
        entry = BREAKS[names[(start + step) % len(names)]]
        text = entry.write(intent)
        if text is not None and (entry.cut or text.strip() != intent.strict.strip()):
            return text, entry.cut
    return _silence(intent), False


def other_answer(space: AnswerSpace, answer: Answer, start: int) -> Answer:
    """An answer of the space that differs from ``answer``; ``start`` chooses which."""
    if space.kind == "boolean":
        return not answer
    if space.kind == "number":
        return (
            float(answer) + 1 + start % 9
            if isinstance(answer, float)
            else int(answer) + 1 + start % 9
        )
    rest = [value for value in answers(space) if value != answer]
    return rest[start % len(rest)] if rest else answer
