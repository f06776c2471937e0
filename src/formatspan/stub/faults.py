"""The ways in which endpoints fail, each as a function from the right reply to a faulty one.

Every kind was seen in the field. *Disguises* hold the answer in an unusual form: a client must
read it. All others hold none: a client must ask again, and never take one for an answer.
"""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from time import time
from typing import Any

from formatspan.stub.http import Told, response
from formatspan.stub.settings import Settings

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Good:
    """The reply that would have been right."""

    body: Body
    settings: Settings
    said: str = ""
    """What an error text repeats of the request; empty unless the stub echoes."""


Fault = Callable[[Good], Told]


def _json(body: object, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Told:
    return Told(response(status, json.dumps(body).encode(), headers))


def _error(good: Good, status: int, message: str, **more: object) -> Body:
    return {"error": {"code": status, "message": message + good.said, **more}}


def _status(status: int, message: str, **more: object) -> Fault:
    return lambda good: _json(_error(good, status, message, **more), status)


def _page(status: int) -> Fault:
    def made(good: Good) -> Told:
        page = f"<!doctype html><html><h1>{status}</h1>{good.said}</html>"
        return Told(response(status, page.encode(), kind="text/html"))

    return made


def _limited(good: Good) -> Told:
    wait = (("retry-after", f"{good.settings.retry_after_s:g}"),)
    return _json(_error(good, 429, "Rate limit reached, slow down"), 429, wait)


def _limited_until(good: Good) -> Told:
    # Held against the server's own clock, so that it works with any.
    due = time() + good.settings.retry_after_s
    dates = (formatdate(time(), usegmt=True), formatdate(due, usegmt=True))
    when = (("date", dates[0]), ("retry-after", dates[1]))
    return _json(_error(good, 503, "Overloaded"), 503, when)


def _limited_reset(good: Good) -> Told:
    wait_ms = round(good.settings.retry_after_s * 1000)
    left = ("x-ratelimit-remaining-requests", "0")
    reset = (left, ("x-ratelimit-reset-requests", f"{wait_ms}ms"))
    return _json(_error(good, 429, "Rate limit reached for requests per min"), 429, reset)


def _changed(**keys: object) -> Fault:
    """The right body with top-level keys replaced."""
    return lambda good: _json({**good.body, **keys})


def _choice(**keys: object) -> Fault:
    """The right body with keys of its choice replaced; None as a message drops it."""

    def made(good: Good) -> Told:
        body = copy.deepcopy(good.body)
        body["choices"][0].update(keys)
        return _json(body)

    return made


def _message(change: Callable[[Body], None]) -> Fault:
    def made(good: Good) -> Told:
        body = copy.deepcopy(good.body)
        change(body["choices"][0]["message"])
        return _json(body)

    return made


def _cut(good: Good) -> Told:
    data = json.dumps(good.body).encode()
    return Told(response(200, data[: len(data) // 2]))


def _dropped(good: Good) -> Told:
    data = json.dumps(good.body).encode()
    return Told(response(200, data[: len(data) // 2], length=len(data)), close=True)


def _reset(good: Good) -> Told:
    data = json.dumps(good.body).encode()
    return Told(response(200, data[:20], length=len(data)), reset=True)


def _garbled(good: Good) -> Told:
    good.body["choices"][0]["message"]["content"] += "é"
    return Told(response(200, json.dumps(good.body, ensure_ascii=False).encode("latin-1")))


def _utf16(good: Good) -> Told:
    return Told(response(200, json.dumps(good.body).encode("utf-16")))


def _false_gzip(good: Good) -> Told:
    packed = gzip.compress(json.dumps(good.body).encode())[:-12]
    return Told(response(200, packed, (("content-encoding", "gzip"),)))


def _huge(good: Good) -> Told:
    count = good.settings.huge_bytes
    return Told(response(200, b"", length=count), padding=count)


def _hang(good: Good) -> Told:
    return Told(b"", after_s=good.settings.hang_s, close=True)


def _stall(good: Good) -> Told:
    return Told(response(200, b"{", length=1000), last_s=good.settings.hang_s, close=True)


def _call(message: Body) -> None:
    call = {"name": "answer", "arguments": json.dumps({"text": message["content"]})}
    message.update(content=None, tool_calls=[{"id": "1", "type": "function", "function": call}])


def _parts(message: Body) -> None:
    text = message["content"]
    half = len(text) // 2
    message["content"] = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Which one?"}]},
        {"type": "text", "text": text[:half]},
        {"type": "text", "text": text[half:]},
    ]


def _without_usage(good: Good) -> Told:
    return _json({key: value for key, value in good.body.items() if key != "usage"})


def _chunked(good: Good) -> Told:
    data = json.dumps(good.body).encode()
    half = len(data) // 2
    parts = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (data[:half], data[half:], b""))
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    return Told(head + parts)


def _marked(good: Good) -> Told:
    return Told(response(200, b"\xef\xbb\xbf \n\n" + json.dumps(good.body).encode()))


DISGUISES: dict[str, Fault] = {
    "parts": _message(_parts),
    "reasoning": _message(lambda m: m.update(reasoning_content="Let me see.")),
    "no_usage": _without_usage,
    "null_error": _changed(error=None),
    "chunked": _chunked,
    "byte_order_mark": _marked,
}
"""The answer in an unusual form."""

KINDS: dict[str, Fault] = {
    "rate_limit": _limited,
    "rate_limit_date": _limited_until,
    "rate_limit_reset": _limited_reset,
    "server": _status(500, "Internal error"),
    "bad_gateway": _page(502),
    "overloaded": _status(503, "Overloaded"),
    "proxy_timeout": _page(524),
    "error_in_200": lambda g: _json(_error(g, 502, "Provider returned error")),
    "limit_in_200": lambda g: _json({**_error(g, 429, "slow down"), "choices": None}),
    "null_choices": _changed(choices=None),
    "no_choices": lambda g: _json({k: v for k, v in g.body.items() if k != "choices"}),
    "empty_choices": _changed(choices=[]),
    "null_message": _choice(message=None),
    "choice_error": _choice(error={"code": 502, "message": "broke off"}),
    "finish_error": _choice(finish_reason="error"),
    "null_content": _message(lambda m: m.update(content=None)),
    "odd_content": _message(lambda m: m.update(content=42)),
    "tool_call": _message(_call),
    "html": _page(200),
    "empty_body": lambda _: Told(response(200, b"")),
    "cut_json": _cut,
    "latin1": _garbled,
    "utf16": _utf16,
    "false_gzip": _false_gzip,
    "huge": _huge,
    "disconnect": lambda _: Told(b"", close=True),
    "drop": _dropped,
    "reset": _reset,
    "not_http": lambda _: Told(b"SSH-2.0-OpenSSH_9.9\r\n\r\n", close=True),
    "hang": _hang,
    "stall": _stall,
    **DISGUISES,
}
"""Every kind of fault by name."""
