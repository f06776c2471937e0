"""Number replies: a value, however it is written."""

from __future__ import annotations

import re

from formatspan.extraction.amounts import UNIT, money
from formatspan.extraction.corrections import corrected
from formatspan.extraction.figures import line_answer
from formatspan.extraction.hits import Finding, Hit
from formatspan.extraction.neighbours import beside
from formatspan.extraction.normalise import peel
from formatspan.extraction.numerals import CURRENCY, TOKEN, Numeral, number, numeral, numerals
from formatspan.records import Answer

_TOO_LARGE = 10**300
_EXACT = re.compile(r"-?[0-9]{1,300}(?:\.[0-9]{1,300})?")
_HEAD = re.compile(
    rf"(?:(?:minus|negative)[ ]|[-+−—]?(?:(?<=−)[ ])?)"
    rf"(?:(?:US|CA|AU|A|C)?\\?[{CURRENCY}])?[ ]?[-−]?",
    re.IGNORECASE,
)
_WORDS = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3}")
_MINUS = ("-", "−", "—", "minus", "negative")
_LEAD = re.compile(
    r"""(?:[\s:=*_`"'(\[{<>~|#→≈]{1,16}|\\[(\[]|\\(?:boxed|text\w{0,2}|math\w{2})\{|\\?\$"""
    r"""|(?:is|be|was|are|about|approximately|approx\.?|roughly|around|exactly|therefore|thus|simply|"""
    r"""equal|equals|to|a|an|the|total|of|likely|probably|definitely|just|only|so|now|then|"""
    r"""between|from|either|both|"""
    r"""[a-zA-Z][ ]?=)(?=[\s:*"'($0-9-])|是|は|为|為){0,10}+""",
    re.IGNORECASE,
)
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
        if not UNIT.fullmatch(text, found.end, end):
            several = money(text, found) or beside(text, found, cued=False)
            return several if several and UNIT.fullmatch(text, several.end, end) else None
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
        later = corrected(text, found)
        if later:
            return Hit(*later)
        equation = _right_side(text, found)
        if equation and (equation.value is not None or found.value is None):
            return Hit(*equation)
        return money(text, found) or beside(text, found, cued=True) or Hit(*found)

    def prose(self, text: str) -> str:
        """The text itself: numbers of an echoed question cannot be told apart."""
        return text

    def anywhere(self, text: str) -> Finding | None:
        """The number that the last line with numbers concludes with."""
        end = len(text)
        while end > 0:
            start = text.rfind("\n", 0, end) + 1
            hit = line_answer(text, start, end)
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
