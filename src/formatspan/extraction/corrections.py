"""Answers that are taken back for another without a mark: "12, no, 13", "Yes. Wait, no."."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from formatspan.extraction.amounts import OWN_UNIT
from formatspan.extraction.hits import Hit
from formatspan.extraction.neighbours import CLAUSE_END
from formatspan.extraction.numerals import CURRENCY, Numeral, numerals

_WORD = (
    r"(?:no|nope|wait|sorry|oops|actually|correction|i mean|i meant|or rather|rather|"
    r"scratch that|make (?:that|it))"
)
_GAP = r"(?:[,:.!?…]{1,3}\s{0,3}|\s{0,3}(?:—|--?)\s{0,3}|\s{1,3})"
_LEADS = (
    r"(?:(?:it's|it is|that's|that is|this is|it should be|it must be|should be|must be|make that|"
    r"the (?:(?:correct|right|final|actual) )?(?:answer|result|total) is)[:]?\s{1,3})?"
)
_TAKEN_BACK = (
    # Without a point or a comma before it, one word alone may go on with the sentence.
    rf"(?:\s{{0,3}}(?:[,;:.!?…]{{1,3}}|—|--?)\s{{0,3}}{_WORD}"
    r"|\s{1,3}(?:no[, ]|i mean\b|or rather\b))"
    rf"(?:{_GAP}{_WORD}){{0,3}}(?:{_GAP}|(?<=[, ])){_LEADS}"
)
_CORRECTION = re.compile(
    rf"{OWN_UNIT}[*_)\]\"'$}}\\]{{0,4}}{_TAKEN_BACK}"
    rf"(?=[*_(\[\"'$\\]{{0,4}}[{CURRENCY}]?[-−]?\.?\d)",
    re.IGNORECASE,
)
_BETWEEN = re.compile(
    rf"[*_$)\]\\]{{0,4}}{_TAKEN_BACK}(?:(?:it|this|that)\s)?[*_$(\[\\]{{0,4}}", re.IGNORECASE
)
_REACH = 40
_MOST = 10
"""Only so many corrections in a row are followed."""


def corrected(text: str, found: Numeral) -> Numeral | None:
    """The number that ``found`` is taken back for; None if it is not.

    A clause must end behind it: "12, no 13 is needed" takes nothing back.
    """
    last = None
    for _ in range(_MOST):
        match = _CORRECTION.match(text, (last or found).end)
        following = match and next(numerals(text, match.end(), match.end() + _REACH), None)
        if not (match and following and _starts(text, match.end(), following)):
            break
        last = following
    return last if last and CLAUSE_END.match(text, last.end) else None


def takes_back(between: str) -> bool:
    """Whether words between two answers take the first back for the second."""
    return _BETWEEN.fullmatch(between) is not None


def kept(text: str, hits: Sequence[Hit]) -> list[Hit]:
    """Hits, in the order of the text, without those before the last that is taken back."""
    first = 0
    for i, (one, other) in enumerate(pairwise(hits)):
        if one.value != other.value and takes_back(text[one.end : other.start]):
            first = i + 1
    return list(hits[first:])


def _starts(text: str, at: int, found: Numeral) -> bool:
    """Whether nothing but marks stands before a number."""
    return not text[at : found.start].strip("*_([\"'$\\ ")
