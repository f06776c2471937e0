"""Labels mentioned in prose: which of them the writer stands by."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from formatspan.extraction import denial
from formatspan.extraction.corrections import kept
from formatspan.extraction.hits import Hit, agree
from formatspan.extraction.labels import AFTER, Labels, is_article
from formatspan.extraction.normalise import ALNUM, UNBROKEN, WORD

_CONCLUDES = re.compile(
    r"(?:\bso|\btherefore|\bthus|\bhence|\bthink|\bbelieve|\bsay|\bguess|\bis|\bbe|\bit's|\bbut|"
    r"\bhowever|"
    r"\bthat's|\bwith|\bpick|\bchoose|\bselect|\bprefer|\bonly|\bdefinitely|\bcertainly|"
    r"\b(?:sure|confident|convinced)(?: that)?|"
    r"\bprobably|\blikely|\bsurely|\bclearly|\bobviously|\bundoubtedly|\bleaves|\bleaving|\bmeans|\bist|"
    r"\best(?: la)?|\bes(?: la)?|\bto|=>|->|→|所以|因此|只有)"
    r"[,:]?\s{0,3}"
    r"(?:(?:option|choice|answer|letter|the|it's|it is|definitely|probably|most likely)\s)*$",
    re.IGNORECASE,
)
_JOINS = re.compile(
    r"\b(?:and|or|both|either|between|versus|vs\.?)\s+(?:(?:maybe|perhaps|possibly|even)\s+)?$",
    re.IGNORECASE,
)
_CLAUSE_START = re.compile(r"(?:^|[\n.!?;:,—])[\s*_>✅✔☑👉➡→★-]*$")
_MAX_TOKENS = 200
"""Only so many labels, the last, are weighed: a reply with more is not read for its prose."""


class Mention(NamedTuple):
    """A label in prose."""

    hit: Hit
    concluded: bool
    """Whether the words before it draw a conclusion."""


class Mentions:
    """Finds the labels that a text mentions and does not reject."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self._token = re.compile(
            rf"(?P<lead>(?<![{WORD}])(?:option|choice|answer|letter)\s{{1,2}}|选项|選項|選択肢)?"
            rf"(?P<open>[(\[\"'*_`$]{{0,4}}){UNBROKEN}(?<![A-Z]\.)(?P<label>{labels.any}){AFTER}"
            r"(?P<close>[)\]\"'*_`.:,;!?$]{0,4})",
            re.IGNORECASE,
        )
        closing = r"[)\]\"'*_`.$]{0,4}"
        other = rf"[(\[*_\"']{{0,3}}(?:{labels.any})(?![{ALNUM}]){closing}"
        also = rf"(?:\s{{0,2}}(?:,\s{{0,2}}(?:and|or|nor)|,|and|or|nor|&|/)\s{{0,2}}{other}){{0,6}}"
        self._denied_after = re.compile(
            rf"{closing}(?:{also})\s{{0,3}}{denial.AFTER}", re.IGNORECASE
        )
        self._another = re.compile(rf"{UNBROKEN}({labels.any}){closing},\s{{1,2}}$")
        self._chain = re.compile(
            rf"{closing}(?:\s{{0,2}},\s{{0,2}}{other}){{0,6}}"
            rf"(?:\s{{0,2}},?\s{{0,2}}(?:and|or|nor|&|/)\s{{0,2}}{other})",
            re.IGNORECASE,
        )

    def settle(self, text: str) -> Hit | None:
        """The label concluded with, else the only one mentioned; a conflict of several."""
        tokens = deque(self._token.finditer(text), maxlen=_MAX_TOKENS)
        found = list(self._standing(text, tokens))
        hits = kept(text, [m.hit for m in found])
        concluded = [m.hit for m in found[len(found) - len(hits) :] if m.concluded]
        return agree(concluded) or agree(hits)

    def _standing(self, text: str, tokens: Iterable[re.Match[str]]) -> Iterator[Mention]:
        """The mentions that nothing denies, alone or in a list: "neither A, B nor C"."""
        denied_to = -1
        for match in tokens:
            if match.start("label") < denied_to:
                continue
            if denial.denied_before(text, match.start()):
                chain = self._chain.match(text, match.end("label"))
                denied_to = chain.end() if chain else denied_to
                continue
            mention = self._mention(text, match)
            if mention and not self._denied_after.match(text, match.end("label")):
                yield mention

    def _mention(self, text: str, match: re.Match[str]) -> Mention | None:
        start, end = match.span("label")
        label = self._labels.of(match["label"])
        if label is None or (not match["open"] and is_article(text, start, end)):
            return None
        before = text[max(0, match.start() - 40) : match.start()]
        concluded = _CONCLUDES.search(before) is not None
        marked = _is_marked(before, match)
        if not (marked or self._is_bare_answer(text, before, match, concluded)):
            return None
        hit = Hit(label, start, end)
        undecided = (concluded or not marked) and self._labels.listed(text, hit)
        if not (marked or concluded):
            # "A, B are true" names several, whatever stands before the first.
            another = self._another.search(before)
            undecided = undecided or (another is not None and another[1] != match["label"])
        return Mention(Hit(None, start, end) if undecided else hit, concluded)

    def _is_bare_answer(
        self, text: str, before: str, match: re.Match[str], concluded: bool
    ) -> bool:
        """Whether an undecorated capital stands where an answer would, unlike "vitamin C"."""
        label = match["label"]
        if not label.isalpha() or not label.isupper():
            return False
        ends = bool(match["close"]) or _ENDS.match(text, match.end()) is not None
        if label == "I" and not (concluded and match["close"][:1] in (".", "!", "")):
            return False
        if concluded or _JOINS.search(before):
            return ends or label not in ("A", "I") or _goes_on(text, match.end())
        starts = _CLAUSE_START.search(before) is not None
        return starts and (ends or _goes_on(text, match.end()))


def _is_marked(before: str, match: re.Match[str]) -> bool:
    """Whether brackets, bold type, a noun or a list marker make a letter a label."""
    opening, closing = match["open"], match["close"]
    if match["lead"]:
        return True
    if opening and closing:
        pairs = (("(", ")"), ("[", "]"), ("**", "**"))
        if any(a in opening and b in closing for a, b in pairs):
            return True
        quoted = any(q in opening and q in closing for q in "\"'`$")
        return quoted and not match["label"].islower()
    # "B)" marks a list's item unless it closes a bracket opened before.
    if closing[:1] == ")" and before.count("(") <= before.count(")"):
        return not match["label"].islower()
    at_line_start = not before.strip(" \t>*_") or before.rstrip(" \t>*_").endswith("\n")
    return at_line_start and closing[:1] in (")", ".", ":") and not match["label"].islower()


_AFTER_LABEL = re.compile(
    r"\s(?:(?:and|or|because|since|is|was|as|but|not|would|must|should|seems|looks|-|—|for sure|"
    r"for certain|of course|obviously|probably|definitely|I think|I believe)(?![A-Za-z])|\()"
)
_ENDS = re.compile(r"[^\w\n]{0,6}(?:\n|\Z)")


def _goes_on(text: str, end: int) -> bool:
    return _AFTER_LABEL.match(text, end) is not None


@lru_cache(maxsize=256)
def mentions_of(labels: Labels) -> Mentions:
    """The mentions of a set of labels, compiled once."""
    return Mentions(labels)
