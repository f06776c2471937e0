"""Option texts: which option a text names."""

from __future__ import annotations

import re
from collections import deque
from functools import lru_cache

from formatspan.contracts import AnswerSpace
from formatspan.extraction.denial import denied_after, denied_before, firmly_denied
from formatspan.extraction.hits import Hit, agree
from formatspan.extraction.normalise import WORD, key, normal

_TOO_COMMON = frozenset(
    (
        "yes",
        "no",
        "true",
        "false",
        "all",
        "none",
        "both",
        "neither",
        "either",
        "it",
        "the",
        "a",
        "an",
        "i",
        "and",
        "or",
        "not",
        "this",
        "that",
        "they",
    )
)
_PRAISED = re.compile(
    r"[*_\"')\]]{0,4}\s{1,3}(?:is|are|was|would be|must be|seems)\s{1,3}"
    r"(?:(?:clearly|definitely|therefore|thus|probably|the|most|my)\s{1,3}){0,3}"
    r"(?:correct|right|best|answer|likely|plausible|appropriate)(?![A-Za-z])",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"(?:the|an?)\s+", re.IGNORECASE)


_MOST = 100
"""Only so many option texts, the last, are weighed."""

_WORD_LENGTH = 3
"""From this length on a label is a word, such as "positive", and read as its option's text."""


class Options:
    """The texts of an answer space's options, looked up whole or searched for."""

    def __init__(self, labels: tuple[str, ...], texts: tuple[str, ...]) -> None:
        self._keys: dict[str, str | None] = {}
        self._labels = {label.casefold() for label in labels if len(label) < _WORD_LENGTH}
        own: dict[str, str] = {}
        for label, text in zip(labels, texts, strict=False):
            own[label] = folded = key(normal(text))
            if folded:
                # Two options of one text cannot be told apart by it.
                self._keys[folded] = None if folded in self._keys else label
        self._own = own
        self._pattern: re.Pattern[str] | None = None

    def __bool__(self) -> bool:
        return bool(self._keys)

    def named(self, text: str, start: int, end: int) -> Hit | None:
        """The option whose text ``text[start:end]`` is, give or take case and closing points."""
        folded = key(text[start:end])
        if folded not in self._keys:
            bare = _ARTICLE.match(folded)
            folded = folded[bare.end() :] if bare else folded
        return Hit(self._keys[folded], start, end) if folded in self._keys else None

    def is_own(self, label: str, text: str) -> bool:
        """Whether ``text`` is the text of that label's option."""
        return bool(text) and self._own.get(label) == key(text)

    def starts_with_own(self, label: str, text: str) -> bool:
        """Whether ``text`` opens with the text of that label's option."""
        own = self._own.get(label, "")
        return bool(own) and key(text[: len(own) + 8]).startswith(own)

    def opening(self, text: str, start: int) -> Hit | None:
        """The option whose text stands at ``start``, the longest if several do."""
        if not self._keys:
            return None
        article = _ARTICLE.match(text, start)
        pattern = self._search_pattern()
        match = pattern.match(text, start)
        if not match and article:
            match = pattern.match(text, article.end())
        return Hit(self._keys[self._matched(match)], *match.span()) if match else None

    def alone(self, text: str) -> Hit | None:
        """The one option whose text occurs in ``text``; a conflict if several do.

        One that is called correct counts before those only named. One that is merely said not
        to do something is no answer, but the others are none either.
        """
        if not self._keys:
            return None
        found: list[Hit] = []
        praised: list[Hit] = []
        doubted: list[Hit] = []
        for match in deque(self._search_pattern().finditer(text), maxlen=_MOST):
            folded = self._matched(match)
            if folded in _TOO_COMMON or folded in self._labels:
                continue
            hit = Hit(self._keys[folded], *match.span())
            if denied_before(text, match.start()) or denied_after(text, match.end()):
                if not firmly_denied(text, *match.span()):
                    doubted.append(hit)
                continue
            found.append(hit)
            if _PRAISED.match(text, match.end()):
                praised.append(hit)
        chosen = agree(praised or (found and found + doubted))
        if chosen and chosen.value and not text[slice(*chosen[1:])].strip("-.0123456789"):
            return chosen if _only_number(text, chosen) else None
        return chosen

    def _search_pattern(self) -> re.Pattern[str]:
        if self._pattern is None:
            # Longest first, so that "north pole" is not also taken for "north".
            self._sorted = sorted(self._keys, key=len, reverse=True)
            parts = [f"({_spelling(folded)})" for folded in self._sorted]
            self._pattern = re.compile("|".join(parts), re.IGNORECASE)
        return self._pattern

    def _matched(self, match: re.Match[str]) -> str:
        return self._sorted[(match.lastindex or 1) - 1]


def _spelling(folded: str) -> str:
    """A pattern for an option's text that forgives white space and Markdown marks."""
    words = r"[\s*`]{1,8}".join(re.escape(word) for word in folded.split())
    before, after = "", ""
    if re.match(f"[{WORD}]", folded[0]):
        before = rf"(?<![{WORD}])(?<![{WORD}][.\-])" if folded[0].isdigit() else f"(?<![{WORD}])"
    if folded[0].isdigit():
        before += r"(?<![-−.,$])(?<!\d[, ])"
    if re.match(f"[{WORD}]", folded[-1]):
        after = rf"(?![{WORD}]|[.,:/]\d|%)" if folded[-1].isdigit() else rf"(?![{WORD}]|-\w)"
    return before + words + after


def _only_number(text: str, hit: Hit) -> bool:
    """Whether no number but the option's stands in the text, which would be mere chance."""
    return re.search(r"\d", text[: hit.start] + text[hit.end :]) is None


@lru_cache(maxsize=8192)
def options_of(space: AnswerSpace) -> Options:
    """The option texts of an answer space, compiled once."""
    words = all(len(label) >= _WORD_LENGTH and label.isalpha() for label in space.labels)
    return Options(space.labels, space.options or (space.labels if words else ()))
