"""Which of the numbers in a line is the one that the line comes to."""

from __future__ import annotations

import re
from collections import deque

from formatspan.extraction.amounts import OWN_UNIT, money
from formatspan.extraction.corrections import corrected
from formatspan.extraction.denial import denied_before
from formatspan.extraction.hits import Hit
from formatspan.extraction.neighbours import CLAUSE_END, aside, beside, together
from formatspan.extraction.numerals import CURRENCY, Numeral, numerals

_INDEX = re.compile(r"[ \t>*_-]{0,8}\(?\d{1,3}[.)](?=[ \t]+[^\s\d])")
_NOT_MEANT = re.compile(
    r"(?:\bnot|n't|\brather than|\binstead of|\bthan|\bout of|\bstep|\bquestion|\bproblem|"
    r"\bexample|\bequation|\bfigure|\btable|\bcase|\bexercise|\bparagraph|\bbox|\bday|\bweek|"
    r"\bpage|\bchapter|\bpart|\bround|\bitem|\brow)\s+(?:the\s+)?#?\(?$",
    re.IGNORECASE,
)
_DIFFERENCE = re.compile(
    rf"{OWN_UNIT}[ ](?:less|more|fewer|[a-z]{{2,8}}er)[ ]than\b", re.IGNORECASE
)
_CONCLUDES = re.compile(
    r"(?:[=≈]|\b(?:is|are|was|were|makes?|making|equals?|gives?|gets?|totals?|leaves?|yields?|"
    r"becomes?|comes? to|amounts? to|total of|sum of|answer|so|thus|hence|therefore|it's|that's))"
    r"[:,*\s]*(?:(?:about|approximately|roughly|exactly|a total of|equal to|only|now|just)\s+)?"
    rf"[*(\[\"'\\~≈±{CURRENCY}−+-]*$",
    re.IGNORECASE,
)
_SUMS_UP = re.compile(
    rf"{OWN_UNIT}[ ](?:left|remaining|in total|in all|altogether|total|overall)\b", re.IGNORECASE
)
_REASON = re.compile(
    rf"{OWN_UNIT}[*_]{{0,3}}(?:,?[ ](?:because|since)|,[ ]as)(?!\w)", re.IGNORECASE
)
_MOST = 100
"""Only so many numbers of a line, the last, are weighed."""

_BRACKETS = 80
"""How far before a number the bracket around it is looked for."""


def line_answer(text: str, start: int, end: int) -> Hit | None:
    """The number that ``text[start:end]`` concludes with, else its last one.

    Two numbers given together without such a conclusion are a conflict.
    """
    meant = _meant(text, start, end)
    if not meant:
        return None
    if not text[start : meant[0].start].strip("*_ $(") and _REASON.match(text, meant[0].end):
        return Hit(*meant[0])
    last = len(meant) - 1
    at = next((i for i in range(last, -1, -1) if _is_concluded(text, meant[i], start)), None)
    concluded = at is not None
    at = last if at is None else at
    chosen, before = meant[at], meant[at - 1] if at else None
    later = corrected(text, chosen)
    if later:
        return Hit(*later)
    amount = money(text, chosen) or (money(text, before) if before else None)
    if amount:
        return amount
    if before and chosen.value is None and not text[before.end : chosen.start].strip(" ="):
        return Hit(*before)  # "17 = 20 - 3"
    if before and together(text, before, chosen):
        return Hit(None, before.start, chosen.end)
    if concluded:
        return beside(text, chosen, cued=not _opens(text, chosen, start)) or Hit(*chosen)
    return beside(text, chosen, cued=False) or aside(text, chosen) or Hit(*chosen)


def concluded_clause(text: str, start: int, end: int) -> Hit | None:
    """The number that a clause of ``text[start:end]`` comes to and ends with.

    A number that opens the line and is taken back comes to another.
    """
    first = next(numerals(text, start, end), None)
    if first and _opens(text, first, start) and (later := corrected(text, first)):
        return Hit(*later)
    hit = line_answer(text, start, end)
    if not hit or hit.value is None:
        return hit
    found = Numeral(None, hit.start, hit.end)
    ends = CLAUSE_END.match(text, hit.end) or _SUMS_UP.match(text, hit.end)
    return hit if ends and _is_concluded(text, found, start) else None


def _meant(text: str, start: int, end: int) -> list[Numeral]:
    """The numbers that may be the answer: not denied, no list's index, no mere difference."""
    index = _INDEX.match(text, start, end)
    last = deque(numerals(text, index.end() if index else start, end), maxlen=_MOST)
    named = [
        n
        for n in last
        if not _NOT_MEANT.search(text, max(start, n.start - 24), n.start)
        and not denied_before(text, n.start)
    ]
    for secondary in (_in_brackets, _is_difference):
        named = [n for n in named if not secondary(text, n, start)] or named
    return named


def _in_brackets(text: str, found: Numeral, floor: int) -> bool:
    low = max(floor, found.start - _BRACKETS)
    return text.rfind("(", low, found.start) > text.rfind(")", low, found.start)


def _is_difference(text: str, found: Numeral, _: int) -> bool:
    return _DIFFERENCE.match(text, found.end) is not None


def _opens(text: str, found: Numeral, floor: int) -> bool:
    return not text[floor : found.start].strip()


def _is_concluded(text: str, found: Numeral, floor: int) -> bool:
    if _SUMS_UP.match(text, found.end):
        return True
    return _CONCLUDES.search(text, max(floor, found.start - 40), found.start) is not None
