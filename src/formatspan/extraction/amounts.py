"""What stands behind a number: units, and amounts given in two of them."""

from __future__ import annotations

import re

from formatspan.extraction.hits import Hit
from formatspan.extraction.numerals import CURRENCY, Numeral, number

_STOP = (
    "is|are|was|were|or|and|not|to|than|at|if|but|minus|plus|times|because|since|so|which|the|"
    "that|it|more|less|point|out|of|over|in|instead|rather|hundred|thousand|million|billion|"
    "trillion|dozen|x|th|st|nd|rd|k|b|through|until|per"
)
_POWER = r"(?:\^?\{?[23]\}?)?"
_WORD = rf"(?!(?:{_STOP})\b|m\b(?![\^/23]))[^\W\d_]{{1,24}}+{_POWER}\.?"
_DEGREES = r"\^?\{?(?:\\circ|\\degree|°)\}?[ ]?[CF]?"
_LATEX_WORD = rf"\\[,; ]?[ ]?\\(?:text|math)\w{{0,4}}\{{[ ]?[^{{}}\d]{{1,24}}\}}{_POWER}"
UNIT = re.compile(
    rf"[ ]{{0,3}}(?:\\?(?:%|{_DEGREES}|[{CURRENCY}]|"
    rf"(?:per[ ])?{_WORD}(?:(?:[ /·-]{{1,3}}|[ ]per[ ]){_WORD}){{0,3}})|{_LATEX_WORD})?",
    re.IGNORECASE,
)
"""A unit or what is counted, or nothing: all that may follow a number that stands alone."""

OWN_UNIT = rf"(?:[ ]{{0,2}}(?:%|{_DEGREES}|[{CURRENCY}]|{_WORD}(?:[ ]{_WORD})?))?"
"""One or two words of the same, inside a sentence."""

_MEASURE = (
    r"(?:h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?|days?|weeks?|months?|years?|ft|foot|feet|"
    r"in|inch|inches|yards?|miles?|km|cm|lbs?|pounds?|oz|ounces?|kg|grams?|dollars?|cents?|"
    r"quarters?|dimes?|nickels?|euros?|gallons?|quarts?|pints?|cups?|degrees?)"
)
COMPOUND = re.compile(
    rf"(?:[ ]?{_MEASURE}(?:\b\.?,?[ ](?:and[ ])?|(?=\d))|['°][ ]?)"
    rf"(?=0*\d{{1,4}}[ ]?(?:{_MEASURE}\b|['\"]))",
    re.IGNORECASE,
)
"""The bigger part of an amount in two units, such as "5 hours" before "30 minutes"."""

_MONEY = re.compile(
    r"(?:(?P<main>\d{1,9})[ ](?:dollars?|euros?|pounds?)|[$€£](?P<sign>\d{1,9}))[ ]?(?:,|and)?[ ]"
    r"0*(?P<sub>\d{1,2})[ ](?:cents?|pence|p)\b",
    re.IGNORECASE,
)


def money(text: str, found: Numeral) -> Hit | None:
    """Dollars and cents together, such as "5 dollars and 50 cents", as one value."""
    at = found.start
    if at and text[at - 1] in "$€£":
        at -= 1
    match = _MONEY.match(text, at)
    if not match or found.value is None or found.value < 0:
        return None
    main = match["main"] or match["sign"]
    return Hit(number(f"{main}.{match['sub']:0>2}"), at, match.end())
