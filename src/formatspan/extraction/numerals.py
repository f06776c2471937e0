r"""Numbers as people write them: signs, thousands, decimals, fractions, powers of ten.

A number starts and ends with a digit. Digits linked by operators (``6x7``, ``7:30``,
``16 - 3``, ``3-5``) are one *compound* without a value: nothing is ever evaluated, and none
of its parts is taken for the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from formatspan.extraction.normalise import ALNUM, UNBROKEN, WORD

CURRENCY = "$€£¥₹₩₽"

_GROUPED = (
    r"[1-9]\d{0,2}(?:(?:,\d{3}){1,12}(?!,?\d)|(?:\{,\}\d{3}){1,12}|(?:\\,\d{3}){1,12}"
    r"|(?:'\d{3}){1,12}(?!'?\d)|(?: \d{3}){1,12}(?! ?\d))(?:\.\d+)?"
)
_PLAIN = r"(?:\d+(?:\.\d+)?|\.\d+)"
_NUMBER = rf"(?>(?:{_GROUPED}|{_PLAIN})(?:[eE][-+−]?\d{{1,4}}(?![{WORD}]))?)"
_OPERATOR = (
    r"(?:[ ]?(?:\*\*|[-+−*×÷/^x]|\\times|\\cdot|\\div)[ ]?|[ ](?:minus|plus|times|:)[ ]|:|—)"
    r"\{?[-+−]?"
)
TOKEN = re.compile(
    rf"{UNBROKEN}(?<![.])(?<!\d,)(?<!\d')(?!(?:(?<=[A-Za-z],)|(?<=[A-Za-z], ))000(?!\d))(?:"
    r"\\[dt]?frac\{(?P<over>\d{1,30})\}\{(?P<under>\d{1,30})\}"
    r"|(?P<units>\d{1,9})[ ](?P<top>\d{1,3})/(?P<bottom>\d{1,3})(?![\d/])"
    rf"|{_NUMBER}(?P<more>(?:{_OPERATOR}{_NUMBER})*))"
)
"""One number or compound."""

_FRACTION = re.compile(r"(\d{1,30}) ?/ ?(\d{1,30})")
_POWER = re.compile(rf"({_PLAIN}) ?(?:x|×|\*|\\times|\\cdot) ?10\^\{{?([-+−]?\d{{1,3}})")
_SCALE = re.compile(r" (hundred|thousand|million|billion|trillion)\b", re.IGNORECASE)
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_GOES_ON = re.compile(r"[.,:']\d|\^(?!\{?\\circ)|[ ]?(?:√|\\sqrt|π|\\pi(?![a-z]))")
_EXPONENT = re.compile(r"\^[({]{0,2}$|√$|\\?sqrt(?:\[\d\])?[({]$|[A-Za-z)\]][ ]?[+*×÷][ ]?$")
"""What makes the digits behind it an exponent, a radicand or an operand, not a number."""
_ELLIPSIS = re.compile(r"(?:\.{2,4}|…)[ ]?\d")
_EITHER = re.compile(r"(?:±|\\pm|\+/-?)[ ]?[$€£]?$")
_SAID_SIGN = re.compile(
    r"(?:(?P<negative>negative)|(?:^|[=:(.,\n*]|\b(?:is|are|was|were|be|to|of|answer|equals?|"
    r"makes|gives|exactly|about)\b)[ ]?[*(\"]{0,3}minus)[ ]$",
    re.IGNORECASE,
)
_DATE = re.compile(r"\d+([/.:-])\d+\1\d+")
_SUFFIX = re.compile(r"[A-Za-z]+")
_SUBSCRIPT = re.compile(rf"_+[{ALNUM}]")
_ATTACHED_UNITS = frozenset(
    (
        *("kg", "g", "mg", "t", "km", "m", "cm", "mm", "mi", "ft", "in", "yd", "lb", "lbs", "oz"),
        *("l", "L", "ml", "mL", "h", "hr", "hrs", "min", "mins", "s", "sec", "secs", "ms", "days"),
        *("C", "F", "mph", "kmh", "kph", "W", "kW", "V", "Hz", "kHz", "MHz", "GHz", "GB", "MB"),
        *("KB", "usd", "USD", "eur", "EUR", "dollars", "cents", "hours"),
    )
)
_SEPARATORS = str.maketrans("", "", ", '\\{}")
_MAX_DIGITS = 320


class Numeral(NamedTuple):
    """A number in a text; ``value`` is None for a compound."""

    value: int | float | None
    start: int
    end: int


def number(digits: str) -> int | float | None:
    """The value of a plain decimal, as int where it is whole; None beyond float's range."""
    if len(digits) > _MAX_DIGITS:
        return None
    if len(digits) < 300 and digits.isdecimal():
        return int(digits)
    try:
        exact = Decimal(digits)
    except InvalidOperation:
        return None
    if abs(exact.adjusted()) > 300 and exact:
        return None
    whole = int(exact)
    return whole if whole == exact else float(exact)


def numerals(text: str, start: int, end: int) -> Iterator[Numeral]:
    """Numbers and compounds of ``text[start:end]`` in order."""
    for match in TOKEN.finditer(text, start, end):
        found = numeral(text, match, start)
        if found:
            yield found


def numeral(text: str, match: re.Match[str], floor: int = 0) -> Numeral | None:
    """The number that a :data:`TOKEN` is with what surrounds it; None if it is part of a word.

    Args:
        text: The text matched.
        match: A match of :data:`TOKEN`.
        floor: Nothing before this offset is looked at.
    """
    start, end = match.span()
    sign, start = _sign(text, start, floor)
    if not sign or _in_word(text, end) or _EXPONENT.search(text, max(floor, start - 8), start):
        return None
    if _GOES_ON.match(text, end):
        # A version or a power is no number at all; a list is a compound.
        return None if text[end] in ".^ √π\\" else Numeral(None, start, end)
    if dozens := _DOZENS.match(text, end):
        return Numeral(None, start, dozens.end())
    if _ELLIPSIS.match(text, end) or _EITHER.search(text, max(floor, start - 6), start):
        return Numeral(None, start, end)
    value = _value(match)
    if value is _NOTHING:
        return None
    scale = _SCALE.match(text, end)
    if value is not None and scale:
        value, end = number(f"{value}e{_SCALES[scale[1].lower()]}"), scale.end()
    return Numeral(value if value is None else sign * value, start, end)


_DOZENS = re.compile(r"[ -]dozens?\b", re.IGNORECASE)
_NOTHING = float("nan")


def _value(match: re.Match[str]) -> int | float | None:
    """The value of a token, None for a compound, ``_NOTHING`` for a date or a version."""
    token = match[0]
    if match["over"]:
        return _ratio(match["over"], match["under"])
    if match["units"]:
        part = _ratio(match["top"], match["bottom"])
        return None if part is None else number(str(int(match["units"]) + part))
    if not match["more"]:
        value = number(token.replace("−", "-").translate(_SEPARATORS))
        return _NOTHING if value is None else value
    fraction = _FRACTION.fullmatch(token)
    if fraction:
        return _ratio(fraction[1], fraction[2])
    power = _POWER.fullmatch(token)
    if power:
        return number(f"{power[1]}e{power[2].replace('−', '-')}")
    return _NOTHING if _DATE.fullmatch(token) or "^" in token or "**" in token else None


def _ratio(over: str, under: str) -> int | float | None:
    """A fraction's value, as int where it is whole; None for a zero denominator."""
    top, bottom = int(over), int(under)
    if not bottom:
        return None
    return top // bottom if top % bottom == 0 else top / bottom


def _in_word(text: str, end: int) -> bool:
    """Whether the digits that end here go on as a word that is no unit: 3rd, 5k, 7pm, 2D."""
    suffix = _SUFFIX.match(text, end)
    if suffix:
        return suffix[0] not in _ATTACHED_UNITS
    return _SUBSCRIPT.match(text, end) is not None


def _sign(text: str, start: int, floor: int) -> tuple[int, int]:
    """The sign before the digits (0 if a hyphen ties them to a word), and where it starts."""
    at = start
    while at > floor and text[at - 1] in CURRENCY + "\\":
        at -= 1
    if at == floor:
        return 1, start
    mark = text[at - 1]
    if mark == " ":
        return _distant_sign(text, start, at, floor)
    if mark == "(" and text[max(floor, at - 2) : at - 1] in ("-", "−"):
        return -1, at - 1
    if mark not in "-+−—":
        return 1, start
    before = text[at - 2] if at - 2 >= floor else " "
    if before.isalpha() and mark == "-":
        return 0, start
    if before.isalnum() or before in ")]}%":
        return 1, start
    return (1 if mark == "+" else -1), at - 1


def _distant_sign(text: str, start: int, at: int, floor: int) -> tuple[int, int]:
    """A minus and a space before the digits: a sign behind ``=``, ``:`` or as U+2212."""
    said = _SAID_SIGN.search(text[max(floor, at - 24) : at])
    if said:
        return -1, at - (9 if said["negative"] else 6)
    window = text[max(floor, at - 12) : at].rstrip(" ")
    mark = window[-1:]
    before = window[:-1].rstrip(" ")[-1:]
    negative = (mark == "−" and not before.isalnum()) or (
        mark == "-" and bool(before) and before in "=:("
    )
    place = text.rfind(mark, floor, at) if negative else start
    return (-1 if negative else 1), place
