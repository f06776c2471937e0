"""The levels: strict first, then what normalisation forgives, then evidence anywhere.

Each level asks the one before it first, so that it accepts all that that one accepts, with
the same answer.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from formatspan.contracts import AnswerSpace, Contract
from formatspan.extraction import json_reply, lenient, normalized, paper, strict
from formatspan.extraction.boolean import BooleanReader
from formatspan.extraction.choice import ChoiceReader
from formatspan.extraction.hits import Finding, Reader
from formatspan.extraction.normalise import View, view
from formatspan.extraction.number import NumberReader
from formatspan.extraction.prepare import Reply, prepare
from formatspan.extraction.turns import next_turn
from formatspan.records import Extraction, Level, Status

_REFUSAL = re.compile(
    r"\b(?:I|we)(?:'m| am|'re| are)?(?: afraid I)?\s+(?:really |simply |just )?"
    r"(?:cannot|can't|can not|won't|will not|not able to|unable to|not going to|must decline to|"
    r"have to decline to|refuse to|decline to)\s+(?:in good conscience )?"
    r"(?:help|assist|comply|fulfil|engage|discuss|participate|support|do that|continue with this|"
    r"(?:answer|respond to) (?:that|this|your|such)|"
    r"provide (?:that|this|help|assistance|any|an answer|answers|information))"
    r"|\bnot comfortable (?:answering|helping|with)",
    re.IGNORECASE,
)
_REFUSAL_REACH = 160
_DECLINES = ("can", "n't", "not", "unable", "decline", "refuse")
_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s?\{")
_STILL_A_NUMBER = re.compile(r"[.,/:^'eE+-]{0,2}")


class Placed(NamedTuple):
    """A finding with the view whose offsets it speaks of."""

    finding: Finding
    view: View


@lru_cache(maxsize=16384)
def reader_of(contract: Contract, space: AnswerSpace) -> Reader:
    """The reader of an answer space under a contract, built once."""
    if space.kind == "choice":
        return ChoiceReader(contract, space)
    if space.kind == "boolean":
        return BooleanReader(contract)
    return NumberReader()


def extract_with(
    contract: Contract,
    space: AnswerSpace,
    text: str,
    finish_reason: str | None,
    level: Level,
    question: str | None = None,
) -> Extraction:
    """:func:`formatspan.extraction.extract` without the checks of its arguments.

    Args:
        contract: The shape asked for.
        space: The answers there are.
        text: The raw reply.
        finish_reason: As the backend gave it; ``length`` marks a cut.
        level: One of the levels.
        question: The item's question, by which an echo is told from an invented one.

    Returns:
        The extraction; spans are offsets into ``text``.
    """
    reply = prepare(text, finish_reason)
    if reply.blank:
        return _nothing(reply, level)
    if level == "paper":
        return _by_paper(reply, space)
    reader = reader_of(contract, space)
    plain = not (reply.cut or reply.header or "\n" in text)
    if plain and (finding := strict.read(reply, contract, reader)):
        # Most replies are one line and right; they need none of what follows.
        hit = finding.hit
        return Extraction(Status.OK, hit.value, (hit.start, hit.end), reply.flags)
    return _Levels(contract, space, reply, question, reader, strictly=not plain).extract(level)


def _nothing(reply: Reply, level: Level) -> Extraction:
    """A reply without visible text, or one that never left its reasoning."""
    if reply.cut:
        return Extraction(Status.TRUNCATED, flags=reply.flags)
    if reply.unclosed:
        status = Status.OFF_FORMAT if level == "strict" else Status.NO_ANSWER
        return Extraction(status, flags=reply.flags)
    return Extraction(Status.EMPTY, flags=reply.flags)


def _by_paper(reply: Reply, space: AnswerSpace) -> Extraction:
    seen = view(reply.raw, reply.start, reply.end)
    hit = paper.read(seen.text, space)
    if hit:
        return Extraction(Status.OK, hit.value, seen.raw(hit.start, hit.end), reply.flags)
    status = Status.TRUNCATED if reply.cut else Status.NO_ANSWER
    return Extraction(status, flags=reply.flags)


class _Levels:
    """One reply on its way through the levels."""

    __slots__ = ("_contract", "_question", "_reader", "_reply", "_space", "_strictly", "_turn")

    def __init__(
        self,
        contract: Contract,
        space: AnswerSpace,
        reply: Reply,
        question: str | None,
        reader: Reader,
        *,
        strictly: bool,
    ) -> None:
        self._contract, self._space = contract, space
        self._reader = reader
        self._reply = reply
        self._question = question
        self._strictly = strictly and not reply.header  # False where strict is known to fail
        self._turn = self._next_turn() if "\n" in reply.raw else None

    def extract(self, level: Level) -> Extraction:
        """The extraction at a level of the chain."""
        placed = self._upto_normalized(self._reply, level) if self._turn is None else None
        if placed is None and level == "lenient":
            placed = self._leniently()
        if placed is None:
            return self._failure(level)
        return self._success(placed, level)

    def _upto_normalized(self, reply: Reply, level: Level) -> Placed | None:
        finding = strict.read(reply, self._contract, self._reader) if self._strictly else None
        if finding:
            return Placed(finding, View(reply.raw, 0))
        if level == "strict":
            return None
        for seen in self._views(reply):
            finding = normalized.read(seen.text, self._contract, self._reader)
            if finding:
                return Placed(finding, seen)
        return None

    def _views(self, reply: Reply) -> list[View]:
        """The normalised text; for JSON the raw one before it, whose quotes may be shielded."""
        if reply.raw.isascii():
            return [View(reply.raw[reply.start : reply.end], reply.start)]
        seen = view(reply.raw, reply.start, reply.end)
        if self._contract.shape != "json":
            return [seen]
        return [View(reply.raw[reply.start : reply.end], reply.start), seen]

    def _leniently(self) -> Placed | None:
        reply = self._reply
        if self._turn is not None:
            reply = reply._replace(end=self._turn, cut=False)
            placed = self._upto_normalized(reply, "normalized")
            if placed:
                return placed
        return self._anywhere(reply)

    def _anywhere(self, reply: Reply) -> Placed | None:
        views = self._views(reply)
        for seen in views if "{" in reply.raw else ():
            said = lenient.from_json(seen.text, self._contract, self._space, self._reader)
            if said.hit:
                return Placed(Finding(said.hit), seen)
            if said.seen and self._contract.shape == "json":
                return None
        seen = views[-1]
        if self._cut_json(seen.text):
            return None
        finding = lenient.from_text(seen.text, self._contract, self._space, self._reader)
        return Placed(finding, seen) if finding else None

    def _next_turn(self) -> int | None:
        """Where the model began a turn that is not its own."""
        raw, start, end = self._reply.raw, self._reply.start, self._reply.end
        turn = next_turn(raw, start, end, self._question)
        if turn is None or turn.certain:
            return turn.start if turn else None
        head = self._reply._replace(end=turn.start, cut=False)
        return turn.start if self._anywhere(head) else None

    def _cut_json(self, text: str) -> bool:
        return json_reply.cut_off(text, self._contract.key, asked=self._contract.shape == "json")

    def _success(self, placed: Placed, level: Level) -> Extraction:
        finding, reply = placed.finding, self._reply
        start, end = placed.view.raw(finding.hit.start, finding.hit.end)
        if reply.cut and (not finding.explicit or self._touches(start, end)):
            return Extraction(Status.TRUNCATED, flags=self._flags(level, False))
        plain = level != "lenient" and not finding.changed
        flags = reply.flags if plain else self._flags(level, finding.changed)
        if finding.hit.value is None:
            status = Status.TRUNCATED if reply.cut else Status.AMBIGUOUS
            return Extraction(status, flags=flags)
        return Extraction(Status.OK, finding.hit.value, (start, end), flags)

    def _touches(self, start: int, end: int) -> bool:
        """Whether the answer may have gone on behind the cut."""
        rest = self._reply.raw[end:]
        if self._reply.raw[end - 1] == "}" and _BOX.match(self._reply.raw, start):
            return False  # a closed box is complete
        if self._space.kind == "number":
            return _STILL_A_NUMBER.fullmatch(rest) is not None
        return not rest

    def _failure(self, level: Level) -> Extraction:
        flags = self._flags(level, False)
        reply = self._reply
        cut = reply.cut or ("{" in reply.raw and self._cut_json(reply.raw[reply.start : reply.end]))
        if cut and (level == "lenient" or not self._complete()):
            return Extraction(Status.TRUNCATED, flags=flags)
        if self._refuses(level):
            return Extraction(Status.REFUSAL, flags=flags)
        return Extraction(Status.OFF_FORMAT if level == "strict" else Status.NO_ANSWER, flags=flags)

    def _complete(self) -> bool:
        """Whether a cut-off reply holds a complete answer all the same, in another form."""
        placed = self._leniently()
        return placed is not None and self._success(placed, "lenient").status is Status.OK

    def _refuses(self, level: Level) -> bool:
        """Whether the reply opens by declining and gives no answer after all."""
        opening = self._reply.raw[self._reply.start : self._reply.start + _REFUSAL_REACH]
        opening = opening.replace("’", "'")
        if not (any(word in opening for word in _DECLINES) and _REFUSAL.search(opening)):
            return False
        return level == "lenient" or self._leniently() is None

    def _flags(self, level: Level, changed: bool) -> tuple[str, ...]:
        flags = self._reply.flags
        if changed:
            flags = (*flags, "changed_answer")
        if level == "lenient" and self._echoes():
            flags = (*flags, "prompt_echo")
        return flags

    def _echoes(self) -> bool:
        """Whether the reply repeats the question or the list of options."""
        text = self._reply.raw[self._reply.start : self._reply.end]
        if "\n" in text and self._reader.prose(text) != text:
            return True
        question = self._question.strip() if self._question else ""
        return bool(question) and question in text[: len(question) + 40]
