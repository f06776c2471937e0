"""Replies that run on: the model invents a further question after its answer."""

from __future__ import annotations

import re
from typing import NamedTuple

_QUESTION = re.compile(
    r"^[ \t>*_#]{0,8}(?:(?:next|new|another)\s)?(?:question|q|problem|exercise|example(?=[ ]?\d)|"
    r"frage|pregunta|"
    r"问题|問題|题目|題目)[ ]?\d{0,4}[*_]{0,3}[ ]?[:：.)][*_]{0,3}[ \t]*(?P<text>[^\n]{0,400})",
    re.IGNORECASE | re.MULTILINE,
)
_TURN = re.compile(
    r"^[ \t>*_#]{0,8}(?:user|human|instruction|passage|context|input|assistant)[*_]{0,3}[ ]?[:：]"
    r"|^#{2,4}[ ](?:instruction|input|question|problem)\b",
    re.IGNORECASE | re.MULTILINE,
)
_SPACES = re.compile(r"\W+")


class Turn(NamedTuple):
    """Where another turn seems to begin."""

    start: int
    certain: bool
    """Whether it asks something else than the item; else it is one only after an answer."""


def next_turn(text: str, start: int, end: int, question: str | None) -> Turn | None:
    """The first line that opens another turn, unless the reply begins with it."""
    other = None
    asked = _flat(question) if question else ""
    for match in _QUESTION.finditer(text, start, end):
        said = _flat(match["text"])
        if asked and said and (asked.startswith(said) or said.startswith(asked)):
            continue
        if text[start : match.start()].strip():
            other = Turn(match.start(), certain=bool(asked and said))
            break
    turn = _TURN.search(text, start, other.start if other else end)
    if turn and text[start : turn.start()].strip():
        return Turn(turn.start(), certain=False)
    return other


def _flat(text: str) -> str:
    return _SPACES.sub(" ", text[:400]).strip().casefold()
