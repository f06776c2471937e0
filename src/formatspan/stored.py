"""Records as they stand in a store's columns, and back."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import structs

from formatspan.records import Generation, Message, as_jsonable

FIELDS = Generation.__struct_fields__
"""Of a reply, in the order of its columns; the first one names its request."""
PACKED_FROM = 1024
"""Bytes from which a body is compressed. Below, that would save a tenth of a store, most of which
are prompts, and take a tenth of a run's processor time."""

Row = list[Any]
"""The values of a row."""

_SURROGATES = re.compile("[\ud800-\udfff]")
_AS_JSON = ("token_ids", "logprobs", "adaptations")


def json_text(record: object) -> str:
    """A record as JSON."""
    # ASCII output: lone surrogates in a data file survive, and SQLite never sees them.
    return json.dumps(as_jsonable(record), ensure_ascii=True, separators=(",", ":"))


def sound(text: str) -> str:
    """Lone surrogates, which UTF-8 cannot hold, become U+FFFD."""
    return _SURROGATES.sub("\ufffd", text)


_read_messages = msgspec.json.Decoder(tuple[Message, ...]).decode


def messages_of(text: str) -> tuple[Message, ...]:
    """Messages as they are stored."""
    try:
        return _read_messages(text)
    except msgspec.DecodeError:  # half a surrogate pair
        return msgspec.convert(json.loads(text), tuple[Message, ...])


def messages_text(messages: tuple[Message, ...]) -> str:
    """Messages as `messages_of` reads them."""
    try:
        return msgspec.json.encode(messages).decode()
    except UnicodeEncodeError:  # half a surrogate pair, which only escapes can spell
        return json_text(messages)


_JSON_AT = tuple(FIELDS.index(name) for name in _AS_JSON)
_BODY_AT = FIELDS.index("body")
_TEXT_AT = tuple(
    FIELDS.index(name)
    for name in (
        *("text", "reasoning", "finish_reason_raw", "served_model", "provider"),
        *("fingerprint", "response_id"),
    )
)
"""What the endpoint wrote."""


def row_of(number: int, generation: Generation) -> Row:
    """A reply to the request of that number, as it is stored."""
    values: Row = list(structs.astuple(generation))
    values[0] = number
    for at in _JSON_AT:
        if values[at] is not None:
            values[at] = json_text(values[at]) if values[at] else "[]"
    if values[_BODY_AT] is not None:
        values[_BODY_AT] = _packed(values[_BODY_AT])
    for at in _TEXT_AT:
        if values[at] and not values[at].isascii():
            values[at] = sound(values[at])
    return values


def _packed(body: bytes) -> str | bytes:
    """A body as it is stored: a usual one as text, for all to read; others compressed."""
    if len(body) < PACKED_FROM:
        try:
            return body.decode()
        except UnicodeDecodeError:
            pass
    return zlib.compress(body)


def _unpacked(stored: str | bytes) -> bytes:
    return stored.encode() if isinstance(stored, str) else zlib.decompress(stored)


def generation_of_row(request_id: str, row: Sequence[Any]) -> Generation:
    """The reply in a row of `row_of`."""
    values = dict(zip(FIELDS, (request_id, *row[1:]), strict=True))
    for name in _AS_JSON:
        values[name] = None if values[name] is None else tuple(json.loads(values[name]))
    if values["body"] is not None:
        values["body"] = _unpacked(values["body"])
    return Generation(**values)
