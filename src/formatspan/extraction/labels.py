"""Option labels: where one stands in a text, and where a letter is only a letter."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

from formatspan.extraction.hits import Hit
from formatspan.extraction.normalise import ALNUM, UNBROKEN, WORD

AFTER = rf"(?![{ALNUM}+#]|_+[{ALNUM}]|'[a-z]|-\w|\.[A-Za-z](?![{WORD}])|[.,:/]\d|%)"
"""What must not follow a label: the rest of a word, of a number, of ``D.C.`` or of ``C++``."""

# Behind "A" these go on about the answer; any other word makes it an article. Fewer do behind "I".
_GOES_ON = re.compile(
    r"(?:and|or|because|since|is|was|as|but|not|with|for|which|due|where|while|given|so|if|"
    r"would|should|must|seems|who|that|has|have|oder|und|ist|ou|et|est|o|y|es)\b"
    r"(?!\s+(?:been|not been)\b)"
)
_PRONOUN_GOES_ON = re.compile(
    r"(?:and|or|because|since|is|as|but|not|with|for|which|due|where|while|given|so)\b"
)
_WORD_BEHIND = re.compile(rf"[ \t]+(?=[{WORD}])")
_CLOSING = r"[)\]}.\"'*_`$\\]{0,6}"
_LIST = (
    rf"{_CLOSING}\s{{0,3}}(?:,\s{{0,3}}(?:and\s|or\s|&)?|[/&|]|\b(?:and|or|vs\.?|oder|und|ou|et|o|y)\s|或|和|、|还是|還是)"
    r"\s{0,3}(?:(?:maybe|perhaps|possibly|even)\s)?"
)
_NOUN = r"(?:(?:option|choice|answer|letter)\s+)?"
_RUN_MARK = (
    r"\s{0,3}(?:[,;/&|+]|-|—|and\b|or\b|to\b|through\b|或|和|、|と)\s{0,3}(?:(?:and|or)\s+)?"
    r"|\s{1,3}"
)
_LONGEST_RUN = 400
_ROW_END = re.compile(
    r"[.;?!](?=\s|$)|\n|,?\s+(?=(?:so|thus|therefore|hence|I|(?:(?:the|final|correct|my|best)\s)*"
    r"(?:answer|ans|solution|choice))\b)",
    re.IGNORECASE,
)
_MAX_ROWS = 200


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
            r"^[ \t>*_-]{0,8}(?i:(?:options|choices):\s?)?[(\[]?(?i:(?:option|choice)\s)?"
            rf"({self.any})"
            r"[*_]{0,3}[)\].:][*_]{0,3}(?=[ \t]+\S|\s*\Z)",
            re.MULTILINE,
        )
        self._inline = re.compile(
            rf"{UNBROKEN}[(\[]?(?:(?:option|choice)\s)?({self.any})[)\].:=][ \t]{{1,3}}(?=[\w$-])"
        )
        piece = rf"[(\[*_\"'$]{{0,4}}(?:{self.any}){AFTER}[)\]*_\"'$.]{{0,4}}"
        self._run = re.compile(rf"(?>{piece})(?>(?:{_RUN_MARK})(?>{piece}))+", re.IGNORECASE)
        names = [re.escape(n) for n in labels]
        self._all = re.compile(
            UNBROKEN + r",\s?".join(names[:-1]) + rf",?\s(?:or|and)\s{names[-1]}{AFTER}"
        )
        self._capital = re.compile(f"{UNBROKEN}{self.any}{AFTER}")
        self._single = re.compile(rf"(?:{self.any}){AFTER}", re.IGNORECASE)

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

    def run(self, text: str, start: int, end: int) -> Hit | None:
        """The label that ``text[start:end]`` repeats; several side by side are a conflict."""
        if end - start > _LONGEST_RUN or not self._run.fullmatch(text, start, end):
            cluster = self.cluster(text, start)
            return cluster if cluster and cluster.end == end else None
        named = {self.of(match[0]) for match in self._single.finditer(text, start, end)}
        return Hit(named.pop() if len(named) == 1 else None, start, end)

    def cluster(self, text: str, start: int) -> Hit | None:
        """Several labels run together, such as ``CB``: a conflict."""
        match = self._cluster.match(text, start) if self._cluster else None
        if match and 1 < len(set(match[0])) == len(match[0]):
            return Hit(None, *match.span())
        return None

    def listing(self, text: str) -> tuple[int, int] | None:
        """Where the options are listed again, from the first label on, on lines or on one."""
        if "\n" in text:
            rows = list(self._marker.finditer(text))
            for i, row in enumerate(rows):
                run = self._rows_in_order(text, rows[i:], gap=2)
                if run >= 2:
                    line_end = text.find("\n", rows[i + run - 1].end())
                    return row.start(), len(text) if line_end < 0 else line_end
        return self._listed_inline(text)

    def vocabulary(self, text: str) -> tuple[int, int] | None:
        """Where the labels are named as what may be answered, if one stands behind it."""
        if len(self.names) < 3:
            return None
        match = self._all.search(text)
        return match.span() if match and self._capital.search(text, match.end()) else None

    def _listed_inline(self, text: str) -> tuple[int, int] | None:
        """A list of at least three options, or of all, on one line."""
        rows = list(islice(self._inline.finditer(text), _MAX_ROWS))
        for i, row in enumerate(rows):
            if row[1] != self.names[0]:
                continue
            run = self._rows_in_order(text, rows[i:], gap=0)
            if run >= min(3, len(self.names)) and run >= 2:
                end = _ROW_END.search(text, rows[i + run - 1].end())
                return row.start(), end.start() if end else len(text)
        return None

    def _rows_in_order(self, text: str, rows: list[re.Match[str]], gap: int) -> int:
        """How many rows from the first on carry the labels in order, close together."""
        run = 0
        for row, name in zip(rows, self.names, strict=False):
            if row[1] != name:
                break
            if run and text.count("\n", rows[run - 1].start(1), row.start(1)) > gap:
                break
            run += 1
        return run


def is_article(text: str, start: int, end: int) -> bool:
    """Whether ``a``, ``A`` or ``I`` at ``[start, end)`` belongs to the sentence around it."""
    if text[start:end] not in ("a", "A", "i", "I"):
        return False
    gap = _WORD_BEHIND.match(text, end)
    if not gap:
        return False
    goes_on = _GOES_ON if text[start] in "aA" else _PRONOUN_GOES_ON
    return goes_on.match(text, gap.end()) is None


@lru_cache(maxsize=256)
def labels_of(names: tuple[str, ...]) -> Labels:
    """The labels of an answer space, compiled once."""
    return Labels(names)
