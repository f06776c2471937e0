"""Lenient: an unambiguous answer anywhere, in a fixed order of evidence."""

from __future__ import annotations

import re
from itertools import islice

from formatspan.contracts import AnswerSpace, Contract
from formatspan.extraction import boxes, json_reply
from formatspan.extraction.corrections import takes_back
from formatspan.extraction.cues import choice_cues, last_cue, own_cue
from formatspan.extraction.figures import concluded_clause
from formatspan.extraction.hits import Finding, Hit, Reader, agree
from formatspan.extraction.normalise import line_bounds, normal
from formatspan.extraction.words import in_digits

_SHORT_LINE = re.compile(r"^[^\n]{1,6}$", re.MULTILINE)
_BARE = re.compile(r"(?!\s{0,3}\(?\d[.)]\s{0,3}$)(?:(?![^\W\d_])[^\n])+", re.MULTILINE)
"""A line without a letter that is no list's index."""
_RESULT = re.compile(r"(?<!#)####(?!#)(?!\s{0,3}\d{1,3}[.)]\s+[^\W\d])")
"""GSM8K's mark of the result; before an index it is a heading, such as ``#### 2. Compute``."""
_MAX_SHORT = 50
_MAX_CLOSED = 200
_SIDE_BY_SIDE = 12
"""Boxes closer than this, such as "… or …", are given together; neither replaces the other."""


def from_json(
    text: str, contract: Contract, space: AnswerSpace, reader: Reader
) -> json_reply.Search:
    """What complete or mendable JSON in the text says."""

    def value(inner: str, start: int, end: int) -> Hit | None:
        inner = normal(inner[start:end])
        whole = reader.whole_leniently(inner, 0, len(inner))
        finding = None if whole else from_text(inner, contract, space, reader)
        return whole or (finding.hit if finding else None)

    only_key = contract.shape != "json"
    said = json_reply.search(text, contract.key, reader, value, only_key=only_key)
    if said.seen or '\\"' not in text:
        return said
    # JSON written into a JSON string, or with quotation marks escaped for one.
    said = json_reply.search(
        text.replace('\\"', '"'), contract.key, reader, value, only_key=only_key
    )
    return said._replace(hit=said.hit._replace(start=0, end=len(text)) if said.hit else None)


def from_text(text: str, contract: Contract, space: AnswerSpace, reader: Reader) -> Finding | None:
    """The last cue; a box; the whole reply, its last or first line; the only answer named."""
    written, spelled = text, in_digits(text) if space.kind == "number" else None
    text = spelled or text
    prose = reader.prose(text)
    if not prose.strip() and text.strip():
        return Finding(Hit(None, 0, len(text)))  # nothing but the prompt's own alternatives
    boxed = boxes.boxes(text) if "\\" in text else []
    if boxed and contract.shape == "boxed":
        return _last_box(text, boxed, reader)
    patterns = own_cue(contract.before) + _cues(space)
    return (
        last_cue(prose, reader, patterns)
        or _closed(prose, contract.after, reader)
        or _last_box(text, boxed, reader)
        # A box that cannot be read is the reply's answer still; nothing beside it is.
        or (None if boxed else _elsewhere(prose, written, space, reader))
    )


def _elsewhere(prose: str, written: str, space: AnswerSpace, reader: Reader) -> Finding | None:
    """What a reply without cue or box gives.

    Where it has digits, words are its answer only as its last line, or where that comes to them.

    Args:
        prose: With number words in digits, of the same length as ``written``.
        written: As the reply has it.
        space: The answers there are.
        reader: Reads them.
    """
    if space.kind != "number" or prose == written:
        return _lines(prose, space, reader) or reader.anywhere(prose)
    bounds = line_bounds(prose, 0, len(prose))
    if not any(map(str.isdigit, written)):
        return _lines(prose, space, reader) or _concluded(prose, bounds)
    whole = reader.whole_leniently(prose, *bounds)
    found = Finding(whole) if whole else _concluded(prose, bounds)
    if found and prose[slice(*found.hit[1:])] != written[slice(*found.hit[1:])]:
        return found
    return _lines(written, space, reader) or reader.anywhere(written)


def _cues(space: AnswerSpace) -> tuple[re.Pattern[str], ...]:
    return (_RESULT,) if space.kind == "number" else choice_cues(space.labels)


def _concluded(text: str, line: tuple[int, int]) -> Finding | None:
    """The number that a line comes to."""
    hit = concluded_clause(text, *line)
    return Finding(hit, explicit=False) if hit else None


def _closed(text: str, after: str, reader: Reader) -> Finding | None:
    """The answer before the contract's closing, where the opening was left out or misspelt."""
    end = text.rfind(after.strip()) if after.strip() else -1
    if end < 0:
        return None
    start = max(text.rfind(mark, max(0, end - _MAX_CLOSED), end) for mark in "\n>")
    hit = reader.whole_leniently(text, max(start + 1, end - _MAX_CLOSED), end)
    return Finding(hit) if hit else None


def _last_box(text: str, boxed: list[boxes.Box], reader: Reader) -> Finding | None:
    """The answer in the last box. Boxes are conclusions, so the last one counts."""
    hits = [boxes.read(text, box, reader, leniently=True) for box in boxed]
    if not hits or hits[-1] is None:
        return None
    between = text[boxed[-2].end : boxed[-1].start] if len(boxed) > 1 else ""
    if len(boxed) > 1 and len(between) < _SIDE_BY_SIDE and not takes_back(between):
        both = agree([hit for hit in hits[-2:] if hit])
        return Finding(both) if both else None
    return Finding(hits[-1], changed=any(h and h.value != hits[-1].value for h in hits))


def _lines(text: str, space: AnswerSpace, reader: Reader) -> Finding | None:
    """The whole reply, or its last line, or the first where explanations follow."""
    start, end = line_bounds(text, 0, len(text))
    last = reader.whole_leniently(text, start, end)
    head = len(text) - len(text.lstrip())
    newline = text.find("\n", head)
    if newline < 0 or newline >= start:
        return Finding(last) if last else None
    first = reader.whole_leniently(text, head, newline)
    bare = first and first.value is not None and _BARE.fullmatch(text, head, newline)
    if space.kind == "number" and last and not bare:
        return Finding(last)  # the lines above may be the figures it was worked out from
    between = _short_lines(text, newline, start, reader) if first or last else []
    both = agree([hit for hit in (first, *between, last) if hit])
    return Finding(both) if both else None


def _short_lines(text: str, start: int, end: int, reader: Reader) -> list[Hit]:
    """What lines of a few characters between the first and the last line answer."""
    found = []
    for match in islice(_SHORT_LINE.finditer(text, start, end), _MAX_SHORT):
        hit = reader.whole_leniently(text, *match.span())
        if hit:
            found.append(hit)
    return found
