"""Lenient: an unambiguous answer anywhere, in a fixed order of evidence."""

from __future__ import annotations

from formatspan.contracts import AnswerSpace, Contract
from formatspan.extraction import boxes, json_reply
from formatspan.extraction.cues import last_cue, own_cue, praised_label
from formatspan.extraction.hits import Finding, Hit, Reader, agree
from formatspan.extraction.normalise import line_bounds, normal

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

    return json_reply.search(text, contract.key, reader, value, only_key=contract.shape != "json")


def from_text(text: str, contract: Contract, space: AnswerSpace, reader: Reader) -> Finding | None:
    """The last cue; a box; the whole reply, its last or first line; the only answer named."""
    prose = reader.prose(text)
    if not prose.strip() and text.strip():
        return Finding(Hit(None, 0, len(text)))  # nothing but the prompt's own alternatives
    boxed = boxes.boxes(text) if "\\" in text else []
    if boxed and contract.shape == "boxed":
        return _last_box(text, boxed, reader)
    patterns = own_cue(contract.before) + praised_label(space.labels)
    return (
        last_cue(prose, reader, patterns)
        or _last_box(text, boxed, reader)
        # A box that cannot be read is the reply's answer still; nothing beside it is.
        or (None if boxed else _lines(prose, space, reader) or reader.anywhere(prose))
    )


def _last_box(text: str, boxed: list[boxes.Box], reader: Reader) -> Finding | None:
    """The answer in the last box. Boxes are conclusions, so the last one counts."""
    hits = [boxes.read(text, box, reader, leniently=True) for box in boxed]
    if not hits or hits[-1] is None:
        return None
    if len(boxed) > 1 and boxed[-1].start - boxed[-2].end < _SIDE_BY_SIDE:
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
    if space.kind == "number" and last:
        return Finding(last)  # the lines above may be the figures it was worked out from
    both = agree([hit for hit in (first, last) if hit])
    return Finding(both) if both else None
