"""Numbers written as words, up to the thousands, put into digits.

The digits take the words' own place, with zeros before them: every offset stays as it is, and
what reads digits (cues, units, "twelve or thirteen") reads words as well.
"""

from __future__ import annotations

import re
from itertools import pairwise

from formatspan.extraction.amounts import OWN_UNIT
from formatspan.extraction.normalise import ENDED, UNBROKEN

_ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TEENS = [
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_VALUES = (
    {word: i for i, word in enumerate([*_ONES, *_TEENS])}
    | {word: 10 * i for i, word in enumerate(_TENS, start=2)}
    | {"a": 1}
)
_DIGIT = re.compile(r"\d")
_ANY = re.compile(
    r"zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|teen|ty|hundred|thousand",
    re.IGNORECASE,
)
_ONE = "|".join(_ONES[1:])
_SMALL = rf"(?:(?:{'|'.join(_TENS)})(?:[ -](?:{_ONE}))?|{'|'.join(_TEENS)}|{_ONE})"
_AND = r"(?:,?[ ]and[ ]|,?[ -])"
_HUNDREDS = rf"(?:(?:a|{_SMALL})[ -]hundred(?:{_AND}{_SMALL})?)"
_BELOW = rf"(?:{_HUNDREDS}|{_SMALL})"
_NUMBER = re.compile(
    rf"{UNBROKEN}(?<!\w[-'])(?:(?:a|{_BELOW})[ -]thousand(?:{_AND}{_BELOW})?|{_BELOW}|zero)"
    rf"{ENDED}(?!-\w|')(?P<thousands>(?:,[ ]?000(?!\d)){{0,3}})",
    re.IGNORECASE,
)
_DIGIT_BESIDE = re.compile(r"\d[ -]$"), re.compile(r"[ -]\d")
_ENDS_PHRASE = re.compile(
    rf"{OWN_UNIT}[*_]{{0,3}}(?:[ ]?(?:[.,;!?](?!\d)|[()])|\s{{0,3}}(?:\n|\Z)|[ ](?:because|since|"
    r"in all|in total|altogether|left|remaining|total|overall|and|or|to|no|i mean|or rather)\b"
    r"|[ ]?[-—])",
    re.IGNORECASE,
)
"""Behind a number word that counts beside digits: not "two numbers: 3 and 4"."""
_COMES_TO_ONE = re.compile(
    r"(?:\b(?:is|are|was|makes?|equals?|leaves?|gives?|no|so|thus)|[:=,(])[ ]?$", re.IGNORECASE
)
_PART = re.compile(r"[a-z]+")
_STANDS_FOR_SOMETHING = re.compile(
    r"\b(?:no|any|every|some|each|the|this|that|which|an?|right|correct|best|wrong|first|last|"
    r"second|third|only|other|another|good|not|by)[ ]$",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"[ ](?:of|another|can|could|should|must|may|might|will|would|is|was|has|had|who|that|which|"
    r"who's|needs?|knows?|by|at|or more|day|way|by one)\b",
    re.IGNORECASE,
)
_NOT_WHOLE = re.compile(
    r"[ -](?:point|to the power|more than|less than|dozens?|score|hundreds?|thousands?|half|"
    r"halves|thirds?|quarters?|fourths?|"
    r"fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?|hundredths?|over|squared|cubed|"
    r"and[ ](?:an?|one|two|three)[ -](?:half|third|quarter|fourth|fifth|eighth|tenth)s?)\b",
    re.IGNORECASE,
)
"""Behind a number: it is only the beginning of another, or of a share."""


def in_digits(text: str) -> str | None:
    """``text``, of the same length, with its number words in digits.

    Returns:
        None where there are no number words, or such as are not understood; beside digits, words
        that do not end a phrase stay.
    """
    if not _ANY.search(text):
        return None
    found = [match for match in _NUMBER.finditer(text) if not _is_pronoun(text, match)]
    if _DIGIT.search(text):
        found = [match for match in found if _counts_beside_digits(text, match)]
        if any(_is_beside_digits(text, match) for match in found):
            return None
    if not found or any(_NOT_WHOLE.match(text, match.end()) for match in found):
        return None
    if any(text[a.end() : b.start()] in (" ", "-") for a, b in pairwise(found)):
        return None  # a year, a telephone number, somebody who counts
    pieces, end = [], 0
    for match in found:
        value = _value(match[0]) * 1000 ** match["thousands"].count("000")
        pieces += [text[end : match.start()], str(value).zfill(len(match[0]))]
        end = match.end()
    return "".join((*pieces, text[end:]))


def _counts_beside_digits(text: str, match: re.Match[str]) -> bool:
    """Whether number words end a phrase; and whether "one" is a number for sure."""
    if not _ENDS_PHRASE.match(text, match.end()):
        return False
    before = text[max(0, match.start() - 10) : match.start()]
    return match[0].casefold() != "one" or _COMES_TO_ONE.search(before) is not None


def _is_beside_digits(text: str, match: re.Match[str]) -> bool:
    """Whether digits stand right before or behind number words, as in "20 twenty"."""
    before, behind = _DIGIT_BESIDE
    near = before.search(text, max(0, match.start() - 2), match.start())
    return (near or behind.match(text, match.end())) is not None


def _is_pronoun(text: str, match: re.Match[str]) -> bool:
    """Whether "one" stands for somebody or something: "no one", "the one", "one of them"."""
    if match[0].casefold() != "one":
        return False
    before = text[max(0, match.start() - 10) : match.start()]
    if _STANDS_FOR_SOMETHING.search(before):
        return True
    return _GOES_ON.match(text, match.end()) is not None


def _value(words: str) -> int:
    total = group = 0
    for word in _PART.findall(words.casefold()):
        if word == "hundred":
            group *= 100
        elif word == "thousand":
            total, group = 1000 * group, 0
        else:
            group += _VALUES.get(word, 0)  # "and"
    return total + group
