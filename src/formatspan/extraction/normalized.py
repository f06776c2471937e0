"""Normalized: the contract, give or take the ways of writing it that change nothing."""

from __future__ import annotations

import re
from functools import lru_cache

from formatspan.contracts import Contract
from formatspan.extraction import boxes, json_reply
from formatspan.extraction.cues import LABEL
from formatspan.extraction.hits import Finding, Hit, Reader
from formatspan.extraction.normalise import normal, unfenced

_MARKS = r"[\s*_`#>\"'(\[-]{0,12}"
_TAIL = re.compile(r"[\s*_`$.\\)\]}\"'!]*")
_JSON_LABEL = re.compile(r"(?:json|answer|output|response|result)\s?:\s?(?=\{|`)", re.IGNORECASE)


def read(text: str, contract: Contract, reader: Reader) -> Finding | None:
    """The answer of a normalised text that is the contract after normalisation."""
    start, end = unfenced(text, 0, len(text))
    if contract.shape == "json":
        hit = _json(text, start, end, contract, reader)
    elif contract.shape == "boxed":
        hit = _boxed(text, reader)
    elif contract.preamble:
        hit = _answer_line(text, start, end, contract, reader)
    else:
        hit = _single(text, start, end, contract, reader)
    return Finding(hit) if hit else None


def _single(text: str, start: int, end: int, contract: Contract, reader: Reader) -> Hit | None:
    """The answer, behind the contract's own opening or one leading label."""
    after = _after(contract)
    hit = None
    if not after and (optional(contract.before) or not contract.before.strip()):
        hit = reader.whole(text, start, end)
    if hit:
        return hit
    opening = _opening(contract.before).match(text, start, end)
    if not opening:
        return None
    inner = opening.end()
    if after:
        found = after.search(text, inner, end)
        if not found:
            return None
        end = found.start()
    return reader.whole(text, inner, end)


def _answer_line(text: str, start: int, end: int, contract: Contract, reader: Reader) -> Hit | None:
    """The answer behind the last answer line's opening, up to the end of the text."""
    last = None
    for last in _line_opening(contract.before).finditer(text, start, end):  # noqa: B007
        pass
    if last is None:
        one_line = "\n" not in text[start:end].strip()
        return reader.whole(text, start, end) if one_line and optional(contract.before) else None
    after = _after(contract)
    if after:
        found = after.search(text, last.end(), end)
        end = found.start() if found else last.end()
    return reader.whole(text, last.end(), end)


def _json(text: str, start: int, end: int, contract: Contract, reader: Reader) -> Hit | None:
    label = _JSON_LABEL.match(text, start, end)
    if label:
        start, end = unfenced(text, label.end(), end)
    return json_reply.read_whole(text, start, end, contract.key, reader)


def _boxed(text: str, reader: Reader) -> Hit | None:
    found = boxes.boxes(text)
    if not found or not found[-1].asked or not _TAIL.fullmatch(text, found[-1].end):
        return None
    return boxes.read(text, found[-1], reader, leniently=False)


@lru_cache(maxsize=256)
def optional(before: str) -> bool:
    """Whether a contract's opening is a mere label or mark, which normalisation takes off."""
    word = before.strip()
    return bool(word) and (LABEL.fullmatch(word) is not None or set(word) <= set("#*>_"))


@lru_cache(maxsize=256)
def _opening(before: str) -> re.Pattern[str]:
    """The contract's own opening, or a leading label, in any case and with marks around."""
    own = r"\s{0,3}".join(map(re.escape, normal(before).split()))
    label = f"(?:{LABEL.pattern})"
    if not own:
        return re.compile(_MARKS + label, re.IGNORECASE)
    # Tags and the like are part of the shape; only a label can stand for a label.
    either = f"(?:{own}|{label})" if optional(before) else own
    return re.compile(_MARKS + either, re.IGNORECASE)


@lru_cache(maxsize=256)
def _line_opening(before: str) -> re.Pattern[str]:
    return re.compile("^" + _opening(before).pattern, re.IGNORECASE | re.MULTILINE)


def _after(contract: Contract) -> re.Pattern[str] | None:
    """The contract's closing at the end of the text."""
    return _closing(contract.after) if contract.after.strip() else None


@lru_cache(maxsize=256)
def _closing(after: str) -> re.Pattern[str]:
    words = r"\s{0,3}".join(map(re.escape, normal(after).split()))
    return re.compile(words + r"[\s*_`.]{0,8}\Z", re.IGNORECASE)
