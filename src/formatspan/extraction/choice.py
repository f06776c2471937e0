"""Choice replies: a label, or an option's text."""

from __future__ import annotations

import re

from formatspan.contracts import AnswerSpace, Contract
from formatspan.extraction.denial import denied_after
from formatspan.extraction.hits import Finding, Hit
from formatspan.extraction.labels import AFTER, Labels, is_article, labels_of
from formatspan.extraction.mentions import mentions_of
from formatspan.extraction.normalise import WORD, peel, peel_item
from formatspan.extraction.options import Options, options_of
from formatspan.records import Answer

_FILLERS = (
    "is|are|be|was|would|should|must|definitely|clearly|therefore|thus|likely|probably|most|"
    "simply|actually|indeed|either|both|option|choice|letter|answer|statement|alternative|"
    "the|correct|best|right|option:|la|le|die|el|opción|lettre|letra|a letra|lettera|opção|opzione"
)
_LEAD = re.compile(
    rf"""(?:[\s:=*_`"'(\[{{<$>~|#→-]{{1,16}}|\\[(\[]|\\(?:boxed|text\w{{0,2}}|math\w{{2}})\{{"""
    rf"""|(?:{_FILLERS})(?=[\s:*"'(])|选项|選項|是|为|為|は|、){{0,8}}+""",
    re.IGNORECASE,
)
_SEPARATOR = r"[)\]*_\"'`.:,;=\s—-]{1,12}"
_OPTION = re.compile(r"(?:option|choice|letter|选项|選項)[\s*_:(\[\"']{0,6}", re.IGNORECASE)
_NOUN = re.compile(
    r"(?:the\s+)?(?:option|choice|answer|letter|选项|選項)[\s*_:(\[\"']{0,6}", re.IGNORECASE
)


_REASON = re.compile(
    r"[)\]*_\"'.]{0,4}"
    r"(?:,?\s{1,3}(?:because|since)|,\s{1,3}(?:as|not|rather than|instead of))(?!\w)",
    re.IGNORECASE,
)


class ChoiceReader:
    """Reads a label of the space, or the text of one of its options."""

    def __init__(self, contract: Contract, space: AnswerSpace) -> None:
        self._by_text = contract.form == "text"
        self._space = space
        self._exact = _exact_answers(contract, space)
        self._labels: Labels = labels_of(space.labels)
        self._options: Options = options_of(space)
        self._head = re.compile(f"({self._labels.any})({_SEPARATOR})", re.IGNORECASE)
        self._next = re.compile(rf"(?<![{WORD}]){self._labels.any}[).\]:](?=\s)")
        self._behind = re.compile(rf"[(\[]\s?({self._labels.any})\s?[)\]]\Z", re.IGNORECASE)
        self._or_else = re.compile(
            rf"(?:or|and)\s[\s(*\"']{{0,4}}(?:option\s)?{self._labels.any}{AFTER}", re.IGNORECASE
        )

    def exact(self, body: str) -> Answer | None:
        """The label whose asked form ``body`` is."""
        return self._exact.get(body)

    def exact_json(self, value: object) -> Answer | None:
        """As :meth:`exact`; labels are strings even where they are digits."""
        return self._exact.get(value) if isinstance(value, str) else None

    def json_value(self, value: object) -> Answer | None:
        """The label that a JSON number is."""
        return self._labels.of(str(value)) if type(value) is int else None

    def whole(self, text: str, start: int, end: int) -> Hit | None:
        """A label, or a label and its own option's text; the text itself where it is asked."""
        start, end = peel_item(text, start, end)
        if self._by_text:
            return self._options.named(text, start, end) or self._labelled(text, start, end)
        label = self._labels.of(text[start:end])
        if label:
            return Hit(label, start, end)
        noun = _OPTION.match(text, start, end)
        if noun:
            label = self._labels.of(text[noun.end() : end])
            start = noun.end()
        return Hit(label, start, end) if label else self._labelled(text, start, end)

    def _labelled(self, text: str, start: int, end: int) -> Hit | None:
        """A label followed by an option's text: its own, or another's, which is a conflict."""
        head = self._head.match(text, start, end)
        label = self._labels.of(head[1]) if head else None
        if not head or not label or not self._options:
            return None
        if self._options.is_own(label, text[head.end() : end]):
            return Hit(label, *head.span(1))
        other = self._options.named(text, *peel(text, head.end(), end))
        if other is None or (not head[2].strip() and is_article(text, *head.span(1))):
            return None
        return Hit(label if other.value == label else None, start, end)

    def whole_leniently(self, text: str, start: int, end: int) -> Hit | None:
        """As :meth:`whole`, or "Option B", an option's text, a label with any text behind it."""
        hit = self.whole(text, start, end)
        if hit:
            return hit
        start, end = peel_item(text, start, end)
        label = self._labels.of(text[start:end])
        if label:
            return Hit(label, start, end)
        noun = _NOUN.match(text, start, end)
        if noun and (label := self._labels.of(text[noun.end() : end])):
            return Hit(label, noun.end(), end)
        return (
            self._labels.run(text, start, end)
            or self._options.named(text, start, end)
            or self._bracketed(text, start, end)
            or self._explained(text, start, end)
        )

    def _bracketed(self, text: str, start: int, end: int) -> Hit | None:
        """An option's text and a label in brackets behind it, which must be its own."""
        closing = 1 if text[end : end + 1] in (")", "]") else 0  # taken off as a closing mark
        behind = self._behind.search(text, max(start, end - 12), end + closing)
        named = self._options.named(text, start, behind.start()) if behind else None
        if not behind or not named:
            return None
        label = self._labels.of(behind[1])
        return Hit(label if label == named.value else None, start, end)

    def _explained(self, text: str, start: int, end: int) -> Hit | None:
        """A label, a list mark and words of the model's own, on one line."""
        head = self._head.match(text, start, end)
        label = self._labels.of(head[1]) if head else None
        if not head or not label or not _marks_item(head):
            return None
        rest = text[head.end() : end]
        if "\n" in rest or denied_after(text, head.end(1)):
            return None
        following = self._next.search(rest)
        if following:
            same = self._labels.of(following[0].rstrip(").]:")) == label
            denied = denied_after(rest, following.end() - 1)
            return None if same or denied else Hit(None, start, end)
        own = self._labels.of(rest.strip(" .*_()\"'"))
        if (own and own != label) or self._or_else.match(rest):
            return Hit(None, start, end)  # "A: C" may stand for "Answer: C"
        other = self._options.opening(text, head.end())
        if other and other.value != label and not self._options.starts_with_own(label, rest):
            return Hit(None, start, end)
        return Hit(label, *head.span(1))

    def after_cue(self, text: str, start: int) -> Hit | None:
        """The label or option text behind a cue; two in one breath are a conflict."""
        lead = _LEAD.match(text, start)
        at = lead.end() if lead else start
        named = self._options.opening(text, at)
        hit = self._labels.at(text, at)
        if hit is None:
            return self._confirmed(text, named) or self._several(text, at)
        if named and named.end > hit.end and not self._own_follows(text, hit):
            # The label is itself the first word of an option's text, as in "C major".
            return named
        if denied_after(text, hit.end):
            return None
        several = self._labels.listed(text, hit) or self._row(text, hit)
        return Hit(None, *hit[1:]) if several else hit

    def _several(self, text: str, at: int) -> Hit | None:
        return self._labels.cluster(text, at) or self._labels.run(text, at, _line_end(text, at))

    def _row(self, text: str, hit: Hit) -> bool:
        """Whether other labels and nothing else fill the rest of the line: "D C"."""
        if text[hit.end : hit.end + 1] != " ":
            return False
        run = self._labels.run(text, hit.start, _line_end(text, hit.end))
        return run is not None and run.value is None

    def _own_follows(self, text: str, hit: Hit) -> bool:
        head = self._head.match(text, hit.start)
        return bool(head) and self._options.starts_with_own(
            str(hit.value), text[head.end() : head.end() + 400] if head else ""
        )

    def _confirmed(self, text: str, named: Hit | None) -> Hit | None:
        """An option's text behind a cue, unless a second one is named beside it."""
        if not named:
            return None
        if denied_after(text, named.end):
            return None
        beside = re.compile(r"\s{1,3}(?:or|and)\s{1,3}").match(text, named.end)
        other = self._options.opening(text, beside.end()) if beside else None
        return Hit(None, *named[1:]) if other and other.value != named.value else named

    def prose(self, text: str) -> str:
        """The text with a list of the options blanked out."""
        rows = self._labels.listing(text) or self._labels.vocabulary(text)
        if not rows:
            return text
        return text[: rows[0]] + " " * (rows[1] - rows[0]) + text[rows[1] :]

    def anywhere(self, text: str) -> Finding | None:
        """The label mentioned, or the option whose text is named alone."""
        reasoned = self._reasoned(text)
        hit = reasoned or mentions_of(self._labels).settle(text) or self._options.alone(text)
        return Finding(hit, explicit=_opens(text, hit)) if hit else None

    def _reasoned(self, text: str) -> Hit | None:
        """The label or option text that opens the reply and is then argued for."""
        start, _ = peel(text, 0, len(text))
        for hit in (self._labels.at(text, start), self._options.opening(text, start)):
            if hit and _REASON.match(text, hit.end):
                return hit
        return None


def _marks_item(head: re.Match[str]) -> bool:
    """Whether what stands behind a label makes it that of an item: "B)", "b - the second"."""
    if re.match(r"[*_]{0,3}[)\].:][*_]{0,3}\s", head[2]):
        return True
    dash = re.fullmatch(r"[*_]{0,3}\s[-—]\s", head[2]) and head[1].islower() and head[1] != "i"
    return bool(dash) and re.match(r"[A-Za-z]{2}", head.string[head.end() :]) is not None


def _line_end(text: str, at: int) -> int:
    newline = text.find("\n", at, at + 400)
    return newline if newline >= 0 else min(len(text), at + 401)


def _opens(text: str, hit: Hit) -> bool:
    """Whether the reply begins with the hit, which its later words would only explain."""
    return not text[: hit.start].strip(" \t\n*_\"'([")


def _exact_answers(contract: Contract, space: AnswerSpace) -> dict[str, str]:
    """The strict forms and their labels; a text that two options share is no answer."""
    if contract.form == "label":
        return {label: label for label in space.labels}
    texts = [text.strip() for text in space.options]
    return {t: n for t, n in zip(texts, space.labels, strict=False) if texts.count(t) == 1}
