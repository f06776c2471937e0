r"""``\boxed{…}``: where boxes are and what they hold."""

from __future__ import annotations

import re
from typing import NamedTuple

from formatspan.extraction.hits import Hit, Reader

_BRACE = re.compile(r"\\(?:boxed|fbox|framebox)\s?\{|\\.|[{}]", re.DOTALL)
_LATEX = re.compile(
    r"\\(?:text\w{0,2}|math\w{2}|mbox|boxed|fbox)\{([^{}]*)\}|\\([$%#&_ ])|\\[,;!:]|\{(,)\}"
)


class Box(NamedTuple):
    """A box: its whole extent and its inside."""

    start: int
    end: int
    inside: tuple[int, int]
    closed: bool
    asked: bool = True
    r"""Whether it is a ``\boxed{…}``, not one of its kin such as ``\fbox{…}``."""


def boxes(text: str) -> list[Box]:
    """The outermost boxes of a text in order, and one that the text's end leaves open."""
    found: list[Box] = []
    opened: list[tuple[int, int, bool]] = []
    for match in _BRACE.finditer(text):
        mark = match[0]
        if mark.endswith("{") and mark != "\\{":
            opened.append((match.start(), match.end(), len(mark) > 1))
        elif mark == "}" and opened:
            start, inside, is_box = opened.pop()
            if is_box:
                while found and found[-1].start > start:
                    found.pop()
                asked = text.startswith("\\boxed", start)
                found.append(
                    Box(start, match.end(), (inside, match.start()), closed=True, asked=asked)
                )
    left = [start for start, _, is_box in opened if is_box]
    if left and (not found or left[-1] > found[-1].start):
        found.append(Box(left[-1], len(text), (left[-1], len(text)), closed=False))
    return found


def plain(inside: str) -> str:
    r"""A box's inside without ``\text{}`` and escapes."""
    return _LATEX.sub(lambda m: m[1] or m[2] or m[3] or "", inside).strip()


def read(text: str, box: Box, reader: Reader, *, leniently: bool) -> Hit | None:
    """The answer inside a closed box."""
    if not box.closed:
        return None
    inside = plain(text[slice(*box.inside)])
    whole = reader.whole_leniently if leniently else reader.whole
    hit = whole(inside, 0, len(inside))
    if hit is None and leniently and "=" in inside:
        hit = whole(inside, inside.rindex("=") + 1, len(inside))
    return hit._replace(start=box.start, end=box.end) if hit else None
