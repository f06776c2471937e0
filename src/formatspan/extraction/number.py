"""Number replies: a value, however it is written."""

from __future__ import annotations

import re

from formatspan.extraction.hits import Finding, Hit
from formatspan.extraction.normalise import peel
from formatspan.extraction.numerals import CURRENCY, TOKEN, Numeral, number, numeral, numerals
from formatspan.records import Answer

_TOO_LARGE = 10**300
_EXACT = re.compile(r"-?[0-9]{1,300}(?:\.[0-9]{1,300})?")
_HEAD = re.compile(rf"[-+−—]?(?:(?<=−)[ ])?(?:(?:US|CA|AU|A|C)?\\?[{CURRENCY}])?[ ]?[-−]?")
_STOP = (
    "is|are|was|were|or|and|not|to|than|at|if|but|minus|plus|times|because|since|so|which|the|"
    "that|it|more|less|point|out|of|over|hundred|thousand|million|billion|trillion|dozen|x|th|st|nd|rd|k|m|b"
)
_WORD = rf"(?!(?:{_STOP})\b)[^\W\d_]{{1,24}}(?:\^?[23])?\.?"
_UNIT = re.compile(
    rf"[ ]{{0,3}}\\?(?:%|°[ ]?[CF]?|[{CURRENCY}]|{_WORD}(?:[ /-]{{1,3}}{_WORD}){{0,3}})?",
    re.IGNORECASE,
)
_PLAIN_WHOLE = re.compile(r"[^a-zA-Z/*×^]*")
_LEAD = re.compile(
    r"""(?:[\s:=*_`"'(\[{<>~|#→≈]{1,16}|\\[(\[]|\\(?:boxed|text\w{0,2}|math\w{2})\{|\\?\$"""
    r"""|(?:is|be|was|are|about|approximately|approx\.?|roughly|around|exactly|therefore|thus|simply|"""
    r"""equal|equals|to|a|an|the|total|of|likely|probably|definitely|just|only|so|now|then|"""
    r"""[a-zA-Z][ ]?=)(?=[\s:*"'($0-9-])|是|は|为|為){0,10}+""",
    re.IGNORECASE,
)
_BESIDE = re.compile(
    rf"[^\n\d.,;]{{0,16}}\b(?:or|to|oder|ou)\s+[{CURRENCY}]?(?=[\d-])", re.IGNORECASE
)
_INDEX = re.compile(r"[ \t>*_-]{0,8}\(?\d{1,3}[.)](?=[ \t]+[^\s\d])")
_NOT_MEANT = re.compile(
    r"(?:\bnot|n't|\brather than|\binstead of|\bthan|\bstep|\bquestion|\bproblem|\bexample|"
    r"\bequation|\bfigure|\btable|\bcase|\bexercise|\bparagraph)\s+#?\(?$",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(
    r"(?:[=≈]|\b(?:is|are|was|were|makes?|making|equals?|gives?|gets?|totals?|leaves?|yields?|"
    r"becomes?|comes? to|amounts? to|total of|sum of|answer))[:*\s]*"
    rf"(?:(?:about|approximately|roughly|exactly|a total of|equal to|only|now|just)\s+)?"
    rf"[*(\[\"'\\~≈{CURRENCY}−+-]*$",
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
        """A plain number with thousands separators, a currency or a unit sign or word."""
        hit = self.whole_leniently(text, start, end)
        if hit and hit.value is not None and not _PLAIN_WHOLE.fullmatch(text, hit.start, hit.end):
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
        if not found or not _UNIT.fullmatch(text, found.end, end):
            return None
        negative = head is not None and ("-" in head[0] or "−" in head[0] or "—" in head[0])
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
        beside = _BESIDE.match(text, found.end)
        other = next(numerals(text, beside.end(), beside.end() + 40), None) if beside else None
        if other and other.value != found.value:
            return Hit(None, found.start, other.end)
        return Hit(*found)

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
    chosen = next((n for n in reversed(meant) if _is_concluded(text, n, start)), meant[-1])
    if len(meant) > 1 and re.search(
        r"\bor\s+\W?$", text[max(start, chosen.start - 8) : chosen.start]
    ):
        return Hit(None, chosen.start, chosen.end)
    beside = _BESIDE.match(text, chosen.end, end)
    if beside:
        return Hit(None, chosen.start, end)
    return Hit(*chosen)


def _is_concluded(text: str, found: Numeral, floor: int) -> bool:
    return _CONCLUDES.search(text, max(floor, found.start - 40), found.start) is not None
