"""The paper's own rule: first option letter, boolean map, last number."""

from __future__ import annotations

import re
from functools import lru_cache

from formatspan.contracts import AnswerSpace
from formatspan.extraction.hits import Hit
from formatspan.extraction.numerals import numerals

_BOOLEAN = re.compile(r"(?<!\w)(?:(yes|true)|no|false)(?!\w)", re.IGNORECASE)


@lru_cache(maxsize=256)
def _label(names: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")


def read(text: str, space: AnswerSpace) -> Hit | None:
    """The answer under the rule, whatever the contract."""
    if space.kind == "choice":
        match = _label(space.labels).search(text)
        return Hit(match[0], *match.span()) if match else None
    if space.kind == "boolean":
        match = _BOOLEAN.search(text)
        return Hit(match[1] is not None, *match.span()) if match else None
    last = None
    for found in numerals(text, 0, len(text)):
        last = found if found.value is not None else last
    return Hit(*last) if last else None
