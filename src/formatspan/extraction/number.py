"""Number replies: a value, however it is written."""

from __future__ import annotations

import re

from formatspan.extraction.hits import Finding, Hit
from formatspan.extraction.normalise import peel
from formatspan.extraction.numerals import CURRENCY, TOKEN, Numeral, number, numeral, numerals
from formatspan.records import Answer

_TOO_LARGE = 10**300
_EXACT = re.compile(r"-?[0-9]{1,300}(?:\.[0-9]{1,300})?")
_HEAD = re.compile(
    rf"(?:(?:minus|negative)[ ]|[-+−—]?(?:(?<=−)[ ])?)(?:(?:US|CA|AU|A|C)?\\?[{CURRENCY}])?[ ]?[-−]?",
    re.IGNORECASE,
)
_STOP = (
    "is|are|was|were|or|and|not|to|than|at|if|but|minus|plus|times|because|since|so|which|the|"
    "that|it|more|less|point|out|of|over|in|instead|rather|hundred|thousand|million|billion|trillion|dozen|x|th|"
    "st|nd|rd|k|b|through|until|per"
)
_POWER_OF = r"(?:\^?\{?[23]\}?)?"
_WORD = rf"(?!(?:{_STOP})\b|m\b(?![\^/23]))[^\W\d_]{{1,24}}+{_POWER_OF}\.?"
_DEGREES = r"\^?\{?(?:\\circ|\\degree|°)\}?[ ]?[CF]?"
_LATEX_WORD = rf"\\[,; ]?[ ]?\\(?:text|math)\w{{0,4}}\{{[ ]?[^{{}}\d]{{1,24}}\}}{_POWER_OF}"
_UNIT = re.compile(
    rf"[ ]{{0,3}}(?:\\?(?:%|{_DEGREES}|[{CURRENCY}]|(?:per[ ])?{_WORD}(?:(?:[ /·-]{{1,3}}|[ ]per[ ])"
    rf"{_WORD}){{0,3}})|{_LATEX_WORD})?",
    re.IGNORECASE,
)
_WORDS = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3}")
_MINUS = ("-", "−", "—", "minus", "negative")
_LEAD = re.compile(
    r"""(?:[\s:=*_`"'(\[{<>~|#→≈]{1,16}|\\[(\[]|\\(?:boxed|text\w{0,2}|math\w{2})\{|\\?\$"""
    r"""|(?:is|be|was|are|about|approximately|approx\.?|roughly|around|exactly|therefore|thus|simply|"""
    r"""equal|equals|to|a|an|the|total|of|likely|probably|definitely|just|only|so|now|then|between|from|either|both|"""
    r"""[a-zA-Z][ ]?=)(?=[\s:*"'($0-9-])|是|は|为|為){0,10}+""",
    re.IGNORECASE,
)
_OWN_UNIT = rf"(?:[ ]{{0,2}}(?:%|{_DEGREES}|[{CURRENCY}]|{_WORD}(?:[ ]{_WORD})?))?"
_MAYBE = r"(?:(?:maybe|perhaps|possibly|even|probably|about|around|more like|up to|rather)\s{1,2})?"
_START = (
    rf"(?:[A-Za-z]{{1,2}}[ ]?=[ ]?|\"\w{{1,20}}\"[ ]?:[ ]?)?[*(]{{0,3}}\\?[{CURRENCY}]?[-−]?(?=\.?\d)"
)
_BESIDE = re.compile(
    rf"{_OWN_UNIT}\s{{0,2}}(?:,?[ ]?(?:or|to|oder|ou|through|until)\b|[-—±~]|\+/-|\\pm)\s{{0,2}}{_MAYBE}"
    + _START,
    re.IGNORECASE,
)
"""A range, or a second number that may be meant instead."""
_LISTED = re.compile(
    rf"{_OWN_UNIT}(?:[*)]{{0,3}}[ ]?[,;&][ ]?(?:and\b)?|[ ]and\b)[ ]?{_MAYBE}{_START}", re.IGNORECASE
)
"""A second number beside the first, of which neither is the answer alone."""
_SHARE = re.compile(
    rf"{_OWN_UNIT}[ ](?:out of|of|in)[ ](?:the[ ]|every[ ])?{_START}", re.IGNORECASE
)
_MEASURE = (
    r"(?:h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?|days?|weeks?|months?|years?|ft|foot|feet|in|"
    r"inch|inches|yards?|miles?|km|cm|lbs?|pounds?|oz|ounces?|kg|grams?|dollars?|cents?|quarters?|"
    r"dimes?|nickels?|euros?|gallons?|quarts?|pints?|cups?|degrees?)"
)
_COMPOUND = re.compile(
    rf"(?:[ ]?{_MEASURE}\b\.?,?[ ](?:and[ ])?|['°][ ]?)(?=\d{{1,4}}[ ]?(?:{_MEASURE}\b|['\"]))",
    re.IGNORECASE,
)
"""The bigger part of an amount in two units, such as "5 hours" before "30 minutes"."""
_CLAUSE_END = re.compile(rf"{_OWN_UNIT}[*_)\]\"'$\\]{{0,4}}\s{{0,3}}(?:[.!?;](?!\d)|\n|\Z)", re.IGNORECASE)
_MONEY = re.compile(
    r"(?:(?P<main>\d{1,9})[ ](?:dollars?|euros?|pounds?)|[$€£](?P<sign>\d{1,9}))[ ]?(?:,|and)?[ ]"
    r"(?P<sub>\d{1,2})[ ](?:cents?|pence|p)\b",
    re.IGNORECASE,
)
_INDEX = re.compile(r"[ \t>*_-]{0,8}\(?\d{1,3}[.)](?=[ \t]+[^\s\d])")
_NOT_MEANT = re.compile(
    r"(?:\bnot|n't|\brather than|\binstead of|\bthan|\bout of|\bstep|\bquestion|\bproblem|\bexample|"
    r"\bequation|\bfigure|\btable|\bcase|\bexercise|\bparagraph)\s+(?:the\s+)?#?\(?$",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(
    r"(?:[=≈]|\b(?:is|are|was|were|makes?|making|equals?|gives?|gets?|totals?|leaves?|yields?|"
    r"becomes?|comes? to|amounts? to|total of|sum of|answer))[:*\s]*"
    rf"(?:(?:about|approximately|roughly|exactly|a total of|equal to|only|now|just)\s+)?"
    rf"[*(\[\"'\\~≈{CURRENCY}−+-]*$",
    re.IGNORECASE,
)
_LONGEST_LIST = 20
_UNDECIDED = re.compile(
    r"\b(?:cannot|can't|unable|unknown|not (?:enough|clear|possible|sure|certain)|sorry|"
    r"insufficient|impossible|don't know|undetermined)\b",
    re.IGNORECASE,
)


class NumberReader:
    """Reads one number by value."""

    def exact(self, body: str) -> Answer | None:
        """A plain decimal and nothing else."""
        return number(body) if _EXACT.fullmatch(body) else None

    def exact_json(self, value: object) -> Answer | None:
        """A finite JSON number, as int where it is whole."""
        if type(value) is int:
            return value if abs(value) < _TOO_LARGE else None
        if type(value) is float and abs(value) < 1e300:
            return int(value) if value.is_integer() else value
        return None

    json_value = exact_json

    def whole(self, text: str, start: int, end: int) -> Hit | None:
        """A number in digits, with a currency or a unit sign or word."""
        hit = self.whole_leniently(text, start, end)
        if hit and hit.value is not None and _WORDS.search(text, hit.start, hit.end):
            return None
        return hit

    def whole_leniently(self, text: str, start: int, end: int) -> Hit | None:
        """A number in any notation, with its unit."""
        if "frac{" not in text[start:end]:  # whose braces are not decoration
            start, end = peel(text, start, end)
        if text[start : start + 2] in ("- ", "+ "):
            # A list's bullet or a minus: the sign cannot be known.
            return Hit(None, start, end) if text[start + 2 : end].strip().isdigit() else None
        head = _HEAD.match(text, start, end)
        token = TOKEN.match(text, head.end() if head else start, end)
        found = numeral(text, token, start) if token else None
        if not found:
            return None
        if not _UNIT.fullmatch(text, found.end, end):
            several = _with_money(text, found) or _beside(text, found, None)
            return several if several and _UNIT.fullmatch(text, several.end, end) else None
        negative = head is not None and any(sign in head[0].lower() for sign in _MINUS)
        if negative and found.value is not None and found.value > 0:
            found = found._replace(value=-found.value)
        return Hit(found.value, head.start() if head else found.start, found.end)

    def after_cue(self, text: str, start: int) -> Hit | None:
        """The number behind a cue, or behind the last ``=`` of the sum that stands there."""
        lead = _LEAD.match(text, start)
        at = lead.end() if lead else start
        head = _HEAD.match(text, at)
        token = TOKEN.match(text, head.end() if head else at)
        found = numeral(text, token, start) if token else None
        if not found:
            return None
        equation = _right_side(text, found)
        if equation:
            return Hit(*equation)
        return _with_money(text, found) or _beside(text, found, at) or Hit(*found)

    def prose(self, text: str) -> str:
        """The text itself: numbers of an echoed question cannot be told apart."""
        return text

    def anywhere(self, text: str) -> Finding | None:
        """The number that the last line with numbers concludes with."""
        end = len(text)
        while end > 0:
            start = text.rfind("\n", 0, end) + 1
            hit = _line_answer(text, start, end)
            if hit:
                return Finding(hit, explicit=False)
            if _UNDECIDED.search(text, start, end):
                return None
            end = start - 1
        return None


def _right_side(text: str, found: Numeral) -> Numeral | None:
    """What stands behind the last ``=`` of the line, if the number opens an equation."""
    if not re.compile(r"[^\n=.]{0,40}=").match(text, found.end):
        return None
    newline = text.find("\n", found.end, found.end + 200)
    stop = newline if newline >= 0 else found.end + 200
    sign = text.rfind("=", found.end, stop)
    return next(numerals(text, sign + 1, stop), None)


def _line_answer(text: str, start: int, end: int) -> Hit | None:
    """The number that a line concludes with, else its last one."""
    index = _INDEX.match(text, start, end)
    meant = [
        n
        for n in numerals(text, index.end() if index else start, end)
        if not _NOT_MEANT.search(text, max(start, n.start - 24), n.start)
    ]
    if not meant:
        return None
    at = next((i for i in reversed(range(len(meant))) if _is_concluded(text, meant[i], start)), -1)
    chosen = meant[at]
    money = [_with_money(text, n) for n in meant[at - 1 :][:2]] if len(meant) > 1 else []
    if any(money):
        return next(hit for hit in money if hit)
    before = meant[meant.index(chosen) - 1] if chosen is not meant[0] else None
    if before and _together(text, before, chosen):
        return Hit(None, before.start, chosen.end)
    return _beside(text, chosen, None) or Hit(*chosen)


def _together(text: str, one: Numeral, other: Numeral) -> bool:
    """Whether two numbers of a line exclude each other: "3 to 5", "3, 5", "2 of 3"."""
    if one.value is not None and one.value == other.value:
        return False
    patterns = (_BESIDE, _LISTED, _SHARE, _COMPOUND)
    found = [match.end() for pattern in patterns if (match := pattern.match(text, one.end))]
    return any(other.start <= end <= other.end for end in found)


def _beside(text: str, found: Numeral, cued: int | None) -> Hit | None:
    """A conflict if the number is only the first of two that may be meant.

    Args:
        text: The text.
        found: A number.
        cued: Where its cue ended; without one, "5 out of 10" does not say which counts.
    """
    match = _BESIDE.match(text, found.end) or _COMPOUND.match(text, found.end)
    listed = None if match else _LISTED.match(text, found.end)
    if cued is None and not match and not listed:
        match = _SHARE.match(text, found.end)
    match = match or listed
    other = next(numerals(text, match.end(), match.end() + 40), None) if match else None
    if not other or other.value == found.value:
        return None
    if listed and not _ends_list(text, other):
        return None
    return Hit(None, found.start, other.end)


def _ends_list(text: str, other: Numeral) -> bool:
    """Whether a clause ends behind the last number of a list."""
    for _ in range(_LONGEST_LIST):
        if _CLAUSE_END.match(text, other.end):
            return True
        match = _LISTED.match(text, other.end)
        following = next(numerals(text, match.end(), match.end() + 40), None) if match else None
        if not following:
            return False
        other = following
    return True


def _with_money(text: str, found: Numeral) -> Hit | None:
    """Dollars and cents together, such as "5 dollars and 50 cents"."""
    at = found.start + (text[found.start : found.start + 1] == "-")
    at -= at > 0 and text[at - 1] in "$€£"
    match = _MONEY.match(text, at)
    if not match or found.value is None or found.value < 0:
        return None
    main = match["main"] or match["sign"]
    return Hit(number(f"{main}.{match['sub']:0>2}"), at, match.end())


def _is_concluded(text: str, found: Numeral, floor: int) -> bool:
    return _CONCLUDES.search(text, max(floor, found.start - 40), found.start) is not None
