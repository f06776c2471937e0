"""JSON replies: whole, fenced, inside other text, or in need of repair."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import json_repair

from formatspan.extraction.hits import Hit, Reader, agree
from formatspan.records import Answer

_KEYS = (
    "final_answer",
    "finalanswer",
    "correct_answer",
    "answer_choice",
    "choice",
    "option",
    "label",
    "letter",
    "value",
    "result",
)
_OPENING = re.compile(r'\{\s*"')
_STRUCTURE = re.compile(r'\\.|["{}]', re.DOTALL)
_MAX_REPAIR = 4000
_MAX_DEPTH = 4
_MAX_FAILED = 50


class Doubled(dict[str, Any]):
    """An object in which a key stands twice with different values."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    return Doubled(plain)


def _no_constant(name: str) -> Any:  # noqa: ANN401 - never returns
    raise ValueError(name)


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)


def decode(text: str) -> Any:  # noqa: ANN401 - any JSON
    """The JSON value that the text is, untouched; None if it is none."""
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value if end == len(text) else None


class Value(NamedTuple):
    """A value under the asked key, and its object's place in the text."""

    value: Any
    start: int
    end: int


def objects(text: str) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Complete JSON objects in a text, tried at each ``{"``, outermost first."""
    at, wasted, failed = 0, 0, 0
    while opening := _OPENING.search(text, at):
        start = opening.start()
        at = start + 1
        try:
            value, end = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            # Bounds the work on texts that open many objects and close none.
            wasted += error.pos - start
            failed += 1
        except (ValueError, RecursionError):
            return
        else:
            yield value, start, end
            at = end
        if failed > _MAX_FAILED or wasted > 4 * len(text) + 1000:
            return


def find(value: object, key: str, depth: int = 0) -> list[Any]:
    """Values under ``key``, in either case, of an object or of those nested in it."""
    if depth > _MAX_DEPTH:
        return []
    if isinstance(value, list):
        return [found for item in value[:50] for found in find(item, key, depth + 1)]
    if not isinstance(value, dict):
        return []
    folded = key.casefold()
    own = [v for k, v in value.items() if k.strip().casefold() == folded]
    return own or [found for item in value.values() for found in find(item, key, depth + 1)]


def usual(value: dict[str, Any]) -> list[Any]:
    """What an object without the asked key gives: a usual other key's value, or its only one."""
    known = [v for k, v in value.items() if k.strip().casefold().replace(" ", "_") in _KEYS]
    return known or (list(value.values()) if len(value) == 1 else [])


def regions(text: str) -> tuple[list[tuple[int, int]], int | None]:
    """Brace-balanced regions, and where one opens that the text's end cuts off.

    Quotation marks inside a region shield the braces between them.
    """
    found: list[tuple[int, int]] = []
    depth, start, quoted = 0, 0, False
    for match in _STRUCTURE.finditer(text):
        mark = match[0]
        if depth and mark == '"':
            quoted = not quoted
        elif mark == "{" and not quoted:
            start = start if depth else match.start()
            depth += 1
        elif mark == "}" and not quoted and depth:
            depth -= 1
            if not depth:
                found.append((start, match.end()))
    return found, start if depth else None


@lru_cache(maxsize=64)
def _keyed(key: str) -> re.Pattern[str]:
    return re.compile(rf"""["']?{re.escape(key)}["']?\s{{0,8}}[:=]\s{{0,8}}""", re.IGNORECASE)


def cut_off(text: str, key: str, *, asked: bool) -> bool:
    """Whether the text ends inside a JSON object.

    Args:
        text: A reply.
        key: The asked key.
        asked: Whether JSON was asked; otherwise only an object with the key is taken for one.
    """
    if "{" not in text:
        return False
    end = text.rstrip().removesuffix("```").rstrip()
    start = regions(text)[1]
    if start is None or end.endswith("}"):
        return False
    rest = text[start + 1 : start + 200].lstrip()
    if asked:
        return not rest or rest[0] in "\"'" or _keyed(key).match(rest) is not None
    return _keyed(key).match(rest) is not None and "\n\n" not in end[start:]


def read_whole(text: str, start: int, end: int, key: str, reader: Reader) -> Hit | None:
    """The answer of a text that is one JSON object with the asked key."""
    value = decode(text[start:end].strip())
    if not isinstance(value, dict):
        return None
    given = [v for k, v in value.items() if k.strip().casefold() == key.casefold()]
    if isinstance(value, Doubled):
        given = [v for v, _, _ in _doubled(text[start:end], key)] or given
    found = [_scalar(v, reader, reader.whole) for v in given]
    return _placed(found, text, start, end, key)


def _doubled(text: str, key: str) -> Iterator[Value]:
    """Each value that stands behind the key, for objects that repeat it."""
    for match in re.finditer(rf'"{re.escape(key)}"\s{{0,8}}:\s{{0,8}}', text, re.IGNORECASE):
        try:
            value, end = _DECODER.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            continue
        yield Value(value, match.end(), end)


Whole = Callable[[str, int, int], Hit | None]


def _scalar(value: object, reader: Reader, whole: Whole) -> Hit | None:
    """The answer of one JSON value; positions are filled in later."""
    if isinstance(value, str):
        return whole(value, 0, len(value))
    answer: Answer | None = reader.json_value(value)
    return None if answer is None else Hit(answer, 0, 1)


def _placed(found: list[Hit | None], text: str, start: int, end: int, key: str) -> Hit | None:
    """The hits' agreement, at the place of the last value behind the key."""
    if not found or None in found:
        return None
    hit = agree([h for h in found if h])
    first, last = place(text, start, end, key)
    return hit._replace(start=first, end=last) if hit else None


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[^\s,}\]]+', re.DOTALL)


def place(text: str, start: int, end: int, key: str) -> tuple[int, int]:
    """Where in ``text[start:end]`` the value behind the last such key stands, as written."""
    quoted = text.rfind(f'"{key}"', start, end)
    last = _keyed(key).match(text, quoted, end) if quoted >= 0 else None
    if last is None:
        last = next(iter(deque(_keyed(key).finditer(text, start, end), maxlen=1)), None)
    token = _TOKEN.match(text, last.end(), end) if last else None
    return token.span() if token else (start, end)


class Search(NamedTuple):
    """What JSON in a text says; ``seen`` even if the value under the key is no answer."""

    hit: Hit | None
    seen: bool


def search(text: str, key: str, reader: Reader, lenient: Whole, *, only_key: bool) -> Search:
    """The answer of the complete objects in a text, repaired where none parses as it stands.

    Args:
        text: A reply or a part of it.
        key: The asked key.
        reader: Reads scalars.
        lenient: Reads strings.
        only_key: Whether other keys than the asked one are no answer.
    """
    found = list(objects(text))
    hits = [hit for item in found for hit in _given(text, key, item, reader, lenient)]
    if not hits and not only_key:
        hits = [
            _located(v, reader, lenient, (text, start, end, key))
            for value, start, end in found
            for v in usual(value)
        ]
    if not hits:
        hits = list(_repaired(text, key, reader, lenient))
    if not hits:
        return Search(None, seen=False)
    return Search(agree([h for h in hits if h]) if any(hits) else None, seen=True)


def _given(
    text: str, key: str, item: tuple[dict[str, Any], int, int], reader: Reader, lenient: Whole
) -> list[Hit | None]:
    """What one object says under the asked key, each time it stands there."""
    value, start, end = item
    given = find(value, key)
    if isinstance(value, Doubled):
        given = [v for v, _, _ in _doubled(text[start:end], key)] or given
    return [_located(v, reader, lenient, (text, start, end, key)) for v in given]


def _located(
    value: object, reader: Reader, lenient: Whole, place: tuple[str, int, int, str]
) -> Hit | None:
    inner = value if isinstance(value, list) else [value]
    if isinstance(value, dict):
        inner = find(value, place[3]) or usual(value)
    found = [_scalar(v, reader, lenient) for v in inner[:50]]
    return _placed(found, *place)


def _repaired(text: str, key: str, reader: Reader, lenient: Whole) -> Iterator[Hit | None]:
    """Answers of regions that name the key but do not parse. Never of a cut-off one."""
    closed, opened = regions(text)
    if opened is not None and text.rstrip().removesuffix("```").rstrip().endswith("}"):
        closed.append((opened, len(text)))
    tried = [r for r in closed if r[1] - r[0] <= _MAX_REPAIR and _keyed(key).search(text, *r)]
    for start, end in tried[-5:]:
        value = _mended(text[start:end])
        if isinstance(value, dict):
            for found in find(value, key):
                hit = _located(found, reader, lenient, (text, start, end, key))
                yield hit if hit and _stands(text, start, end, key, hit, reader) else None


def _mended(text: str) -> object:
    try:
        return json_repair.loads(text)
    except Exception:  # a third party's parser must not end a scoring run
        return None


def _stands(text: str, start: int, end: int, key: str, hit: Hit, reader: Reader) -> bool:
    """Whether the raw text behind the key says what the repair says, which may drop digits."""
    if isinstance(hit.value, str | bool):
        return True
    match = _keyed(key).search(text, start, end)
    raw = re.split(
        r"""[,;\s]\s*["']?\w+["']?\s*:|[}\n]|//|/\*""", text[match.end() : end] if match else ""
    )
    read = reader.whole_leniently(raw[0].rstrip(" ,;"), 0, len(raw[0].rstrip(" ,;")))
    return read is not None and read.value == hit.value
