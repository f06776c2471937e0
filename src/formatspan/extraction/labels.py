"""Option labels: where one stands in a text, and where a letter is only a letter."""

from __future__ import annotations

import re
from functools import lru_cache

from formatspan.extraction.hits import Hit
from formatspan.extraction.normalise import WORD

AFTER = rf"(?![{WORD}+#]|'[a-z]|-\w|\.[A-Za-z](?![{WORD}])|[.,:/]\d|%)"
"""What must not follow a label: the rest of a word, of a number, of ``D.C.`` or of ``C++``."""

# Behind "A" or "I" these go on about the answer; any other word makes them article or pronoun.
_GOES_ON = re.compile(
    r"(?:and|or|because|since|is|was|as|but|not|with|for|which|due|where|while|given|so|if|"
    r"would|should|must|seems|who|that|has|have)\b(?!\s+(?:been|not been)\b)"
)
_WORD_BEHIND = re.compile(rf"[ \t]+(?=[{WORD}])")
_CLOSING = r"[)\]}.\"'*_`$\\]{0,6}"
_LIST = (
    rf"{_CLOSING}\s{{0,3}}(?:,\s{{0,3}}(?:and\s|or\s|&)?|[/&|]|\band\s|\bor\s|\bvs\.?\s|或|和|、)"
    r"\s{0,3}"
)
_NOUN = r"(?:(?:option|choice|answer|letter)\s+)?"


class Labels:
    """The labels of an answer space, compiled for searching."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.names = labels
        folded = [label.casefold() for label in labels]
        # Labels that differ only in case are told apart by it.
        self._fold = {f: n for f, n in zip(folded, labels, strict=True) if folded.count(f) == 1}
        self._fold |= {n: n for n in labels}
        longest_first = sorted(labels, key=len, reverse=True)
        self.any = "(?:" + "|".join(re.escape(n) for n in longest_first) + ")"
        self._at = re.compile(f"{self.any}{AFTER}", re.IGNORECASE)
        self._listed = re.compile(
            rf"{_LIST}{_NOUN}[(\[*\"'$]{{0,4}}({self.any}){AFTER}", re.IGNORECASE
        )
        letters = [n for n in labels if len(n) == 1 and n.isalpha() and n.isupper()]
        self._cluster = re.compile(rf"[{''.join(letters)}]{{2,6}}(?![{WORD}])") if letters else None
        self._marker = re.compile(
            rf"^[ \t>*_-]{{0,8}}[(\[]?(?:(?:option|choice)\s)?({self.any})"
            r"[*_]{0,3}[)\].:][*_]{0,3}(?=[ \t])",
            re.MULTILINE,
        )

    def of(self, text: str) -> str | None:
        """The label that ``text`` is, in either case."""
        return self._fold.get(text) or self._fold.get(text.casefold())

    def at(self, text: str, start: int) -> Hit | None:
        """The label standing at ``start``; not the article "a" nor the pronoun "I"."""
        match = self._at.match(text, start)
        label = self.of(match[0]) if match else None
        if not match or label is None or is_article(text, match.start(), match.end()):
            return None
        return Hit(label, *match.span())

    def listed(self, text: str, hit: Hit) -> bool:
        """Whether another label is named in one breath with that of ``hit``."""
        end = hit.end
        while match := self._listed.match(text, end):
            small_a = match[1].islower() and text[hit.start : hit.end].isupper()
            if small_a or is_article(text, *match.span(1)):
                return False
            if self.of(match[1]) != hit.value:
                return True
            end = match.end()
        return False

    def cluster(self, text: str, start: int) -> Hit | None:
        """Several labels run together, such as ``CB``: a conflict."""
        match = self._cluster.match(text, start) if self._cluster else None
        if match and 1 < len(set(match[0])) == len(match[0]):
            return Hit(None, *match.span())
        return None

    def listing(self, text: str) -> tuple[int, int] | None:
        """The lines that list the options again, from the first label on."""
        rows = list(self._marker.finditer(text))
        for i, row in enumerate(rows):
            run = 0
            while (
                run < min(len(self.names), len(rows) - i)
                and rows[i + run][1] == self.names[run]
                and (
                    run == 0
                    or text.count("\n", rows[i + run - 1].start(1), rows[i + run].start(1)) <= 2
                )
            ):
                run += 1
            if run >= 2:
                line_end = text.find("\n", rows[i + run - 1].end())
                return row.start(), len(text) if line_end < 0 else line_end
        return None


def is_article(text: str, start: int, end: int) -> bool:
    """Whether ``a``, ``A`` or ``I`` at ``[start, end)`` belongs to the sentence around it."""
    if text[start:end] not in ("a", "A", "i", "I"):
        return False
    gap = _WORD_BEHIND.match(text, end)
    return bool(gap) and _GOES_ON.match(text, gap.end() if gap else end) is None


@lru_cache(maxsize=256)
def labels_of(names: tuple[str, ...]) -> Labels:
    """The labels of an answer space, compiled once."""
    return Labels(names)
