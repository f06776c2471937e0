"""Numbers side by side of which neither is the answer alone: "3 to 5", "3, 5", "2 of 3"."""

from __future__ import annotations

import re

from formatspan.extraction.amounts import COMPOUND, OWN_UNIT
from formatspan.extraction.hits import Hit
from formatspan.extraction.numerals import CURRENCY, Numeral, numerals

_MAYBE = r"(?:(?:maybe|perhaps|possibly|even|probably|about|around|more like|up to|rather)\s{1,2})?"
_NEXT = (
    r"(?:[A-Za-z]{1,2}[ ]?=[ ]?|\"\w{1,20}\"[ ]?:[ ]?)?"
    rf"[*(]{{0,3}}\\?[{CURRENCY}]?[-−]?(?=\.?\d)"
)
_RANGE = re.compile(
    rf"{OWN_UNIT}\s{{0,2}}(?:,?[ ]?(?:or|to|oder|ou|through|until|vs\.?|versus)\b|[-—±~]|\+/-|\\pm)"
    rf"\s{{0,2}}{_MAYBE}{_NEXT}",
    re.IGNORECASE,
)
_LISTED = re.compile(
    rf"{OWN_UNIT}(?:[*)]{{0,3}}[ ]?[,;&][ ]?(?:and\b)?|[ ]and\b)[ ]?{_MAYBE}{_NEXT}",
    re.IGNORECASE,
)
_SHARE = re.compile(rf"{OWN_UNIT}[ ](?:out of|of|in)[ ](?:the[ ]|every[ ])?{_NEXT}", re.IGNORECASE)
_ASIDE = re.compile(rf"{OWN_UNIT}[ ]?\([^()\d\n]{{0,20}}(?=\d)", re.IGNORECASE)
_UNKNOWN = re.compile(r"(?<![\w)])[A-Za-z]{1,2}[ ]?=[ ]?$")
CLAUSE_END = re.compile(
    rf"{OWN_UNIT}[*_)\]\"'$\\]{{0,4}}\s{{0,3}}(?:[.!?;](?!\d)|\n|\Z)", re.IGNORECASE
)
_REACH = 40
_LONGEST_LIST = 20


def together(text: str, one: Numeral, other: Numeral) -> bool:
    """Whether two numbers that follow each other are given together, with different values."""
    if one.value is not None and one.value == other.value:
        return False
    patterns = (_RANGE, _LISTED, _SHARE, COMPOUND)
    found = [match for pattern in patterns if (match := pattern.match(text, one.end))]
    if not any(other.start <= match.end() <= other.end for match in found):
        return False
    if any("=" in match[0] for match in found):
        # Two unknowns, "x = 3, y = 5"; "2x = 34, x = 17" is one that is worked out.
        return _UNKNOWN.search(text, max(0, one.start - 6), one.start) is not None
    return True


def beside(text: str, found: Numeral, *, cued: bool) -> Hit | None:
    """A conflict if a number is only the first of two that may be meant.

    Args:
        text: The text.
        found: A number.
        cued: Whether a cue points at it; without one "5 out of 10" does not say which counts.
    """
    compound = COMPOUND.match(text, found.end)
    if compound:
        return Hit(None, found.start, compound.end())
    patterns = (_RANGE,) if cued else (_RANGE, _SHARE)
    for pattern in patterns:
        other = _next(text, pattern, found)
        if other:
            return Hit(None, found.start, other.end) if other.value != found.value else None
    listed = _next(text, _LISTED, found)
    if listed and listed.value != found.value and _ends_list(text, listed):
        return Hit(None, found.start, listed.end)
    return None


def aside(text: str, found: Numeral) -> Hit | None:
    """A conflict with another number in brackets behind one that nothing points at."""
    other = _next(text, _ASIDE, found)
    if not other or other.value in (None, found.value):
        return None  # a sum in brackets says how the number came about
    return Hit(None, found.start, other.end)


def _next(text: str, pattern: re.Pattern[str], found: Numeral) -> Numeral | None:
    """The number that a pattern leads to."""
    match = pattern.match(text, found.end)
    return next(numerals(text, match.end(), match.end() + _REACH), None) if match else None


def _ends_list(text: str, last: Numeral) -> bool:
    """Whether a clause ends behind the list that ``last`` goes on with."""
    for _ in range(_LONGEST_LIST):
        if CLAUSE_END.match(text, last.end):
            return True
        following = _next(text, _LISTED, last)
        if not following:
            return False
        last = following
    return True
