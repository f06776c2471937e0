"""Reads the reply of an OpenAI-compatible chat endpoint, trusting none of it.

`parse_reply` is pure: status, headers and body in, a `Reply` or a `Fault` out. The format is
https://platform.openai.com/docs/api-reference/chat/object as vLLM, llama.cpp, OpenRouter and
others serve it, which is: nearly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import urljoin, urlsplit

import msgspec
from msgspec import Struct

from formatspan.backends.chat_fault import Fault, clip, fault_of
from formatspan.backends.chat_json import decoded
from formatspan.records import FailureKind, Generation


class Usage(Struct, frozen=True, gc=False):
    """Tokens and cost as the endpoint counted them; None where it did not say."""

    prompt_tokens: int | None = None
    """Cached tokens included."""
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None
    """US dollars."""


class Reply(Struct, frozen=True, gc=False):
    """What an endpoint replied; an empty text is a reply too."""

    text: str
    finish_reason: str | None
    finish_reason_raw: str | None = None
    reasoning: str | None = None
    usage: Usage = Usage()
    served_model: str | None = None
    provider: str | None = None
    fingerprint: str | None = None
    response_id: str | None = None
    hollow: bool = False
    """Nothing stands where the text should: null, or a tool call that nobody offered. Worth
    asking again a few times; what comes last counts, as a reply of no text."""


Parsed = Reply | Fault


_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None
"""The store's integers have 64 bits."""


class _Details(Struct, gc=False):
    cached_tokens: _Count = None
    reasoning_tokens: _Count = None


class _Counts(Struct, gc=False):
    """Token counts and cost under the names that endpoints give them."""

    prompt_tokens: _Count = None
    input_tokens: _Count = None
    completion_tokens: _Count = None
    output_tokens: _Count = None
    total_tokens: _Count = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: _Count = None
    cache_read_input_tokens: _Count = None
    cache_creation_input_tokens: _Count = None
    cost: Annotated[float, msgspec.Meta(ge=0, lt=1e9)] | None = None


class _Message(Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: Any = None
    function_call: Any = None


class _Choice(Struct, gc=False):
    message: _Message
    finish_reason: str | None = None
    error: Any = None


class _Completion(Struct, gc=False):
    """What is read of a body that is as it should be; of any other it is put together."""

    choices: tuple[_Choice, ...]
    usage: _Counts | None = None
    model: str | None = None
    provider: str | None = None
    system_fingerprint: str | None = None
    id: str | None = None
    object: Any = None
    error: Any = None


_completion = msgspec.json.Decoder(_Completion).decode

_WRITTEN = re.compile(r"\s*\d{1,19}(?:\.\d{0,20})?\s*", re.ASCII)
"""A count or a sum of money in quotes."""

_FINISHES = {
    "stop": ("stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed"),
    "length": ("length", "max_tokens", "max_output_tokens", "model_length"),
    "content_filter": ("content_filter", "content_filtered", "safety", "recitation", "blocklist"),
}
_FINISH_OF = {raw: finish for finish, raws in _FINISHES.items() for raw in raws}
# The model ended its turn by itself; that it called a tool instead of answering leaves the
# text empty.
_FINISH_OF |= {"tool_calls": "stop", "function_call": "stop"}


def parse_reply(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    now: datetime | None = None,
    *,
    url: str = "",
) -> Parsed:
    """The reply or the fault in one HTTP response.

    Args:
        status: HTTP status.
        headers: Response headers, names in any case.
        body: Decompressed body, whole.
        now: The time, for a Retry-After that is a date; by default the clock's.
        url: What was asked, which a redirect may be relative to.
    """
    if status < 300 and (sound := _sound_completion(body)) is not None:
        return _reply(sound)
    parsed = parse_body(status, headers, body, now, url=url)
    patched = parsed if isinstance(parsed, Fault) else _patched(parsed, headers, now)
    return patched if isinstance(patched, Fault) else _reply(patched)


def _sound_completion(body: bytes) -> _Completion | None:
    """A body that is in every part as it should be; None for those that take more patience."""
    try:
        found = _completion(body)
    except (ValueError, RecursionError):
        return None
    if not found.choices or found.error or found.object == "error":
        return None
    choice = found.choices[0]
    return None if choice.error or choice.finish_reason == "error" else found


def parse_body(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    now: datetime | None = None,
    *,
    url: str = "",
) -> dict[str, Any] | Fault:
    """The object or the fault in one HTTP response, whatever the object is about.

    Arguments as `parse_reply`.
    """
    if 300 <= status < 400:
        return Fault(
            FailureKind.REDIRECTED, _redirected(status, _lowered(headers), url), fatal=True
        )
    parsed = _object(body)
    if isinstance(parsed, Fault):
        if status < 400:
            where = "" if status == 200 else f"HTTP {status}: "
            return replace(parsed, message=clip(where + parsed.message))
        error: object = body.decode("utf-8", "replace")
    else:
        error = _error_in(parsed, status)
        if error is None and status < 400:
            return parsed
    return fault_of(status, error, _lowered(headers), now or datetime.now(UTC))


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _redirected(status: int, headers: Mapping[str, str], url: str) -> str:
    """Where a redirect leads, and what to do; none is followed.

    Another host would be given the key, and POST may become GET.
    """
    target = headers.get("location", "")
    if not target:
        return f"HTTP {status}: neither a reply nor a place where one is: mend base_url"
    try:
        parts = urlsplit(urljoin(url, target))
        host = parts.netloc.rpartition("@")[2]
        where = f"{parts.scheme}://{host}{parts.path}" if host else parts.path
    except ValueError:
        where = target
    if where == url:
        return clip(f"HTTP {status}: redirected to itself, {where!r}, without end: mend base_url")
    base, found, _ = where.rpartition("/chat/completions")
    if found and where.endswith(found) and clip(where) == where:
        advice = f"if you trust it, the base_url is {base}"
    else:
        advice = "mend base_url"
    return clip(f"HTTP {status}: redirected to {where!r}, which is not followed: {advice}")


def _object(body: bytes) -> dict[str, Any] | Fault:
    try:
        parsed = decoded(body)
    except (ValueError, RecursionError) as error:
        text = f"expected JSON, received {_start(body)}{_stumbled(error)}"
        return Fault(FailureKind.MALFORMED, text, retry=True)
    if isinstance(parsed, list) and len(parsed) == 1:
        parsed = parsed[0]  # as Google's endpoint wraps its errors
    if not isinstance(parsed, dict):
        text = f"expected an object, received {_start(body)}"
        return Fault(FailureKind.MALFORMED, text, retry=True)
    return parsed


def _stumbled(error: Exception) -> str:
    """What is wrong further on than a body's start shows."""
    if isinstance(error, RecursionError):
        return " (nested too deeply)"
    if isinstance(error, json.JSONDecodeError) and error.pos > 0:
        return f" ({error.msg.removesuffix(' at')} at character {error.pos})"
    return ""


def _start(body: bytes) -> str:
    """How a body begins that is not as expected, or why nobody can tell."""
    if not body.strip():
        return "an empty body"
    wide = json.detect_encoding(body).upper()
    if not wide.startswith("UTF-8"):
        return f"a body in {wide}: expected UTF-8, or a charset in Content-Type"
    start = repr(clip(body[:400].decode("utf-8", "replace"), 100))
    try:
        body.decode()
    except UnicodeDecodeError as error:
        odd = f"byte 0x{body[error.start]:02x} at {error.start} is not UTF-8"
        return f"{start} ({odd}, and Content-Type names no charset that has it)"
    return start


def _error_in(body: Mapping[str, Any], status: int) -> object:
    """The error object of a body under any of its names, or None."""
    if body.get("error"):
        return body["error"]
    if body.get("object") == "error":
        return body
    if status < 400:
        return None
    for key in ("errors", "detail", "message"):
        if body.get(key):
            return body if key == "message" else _as_error(body[key])
    return None


def _as_error(value: object) -> object:
    return value if isinstance(value, str | Mapping) else {"message": json.dumps(value)}


def _patched(
    body: Mapping[str, Any], headers: Mapping[str, str], now: datetime | None
) -> _Completion | Fault:
    """A body that is not as it should be, as far as it holds a reply."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return _malformed("choices", choices)
    raw = choice.get("finish_reason")
    if choice.get("error") or raw == "error":
        moment = now or datetime.now(UTC)
        return fault_of(200, choice.get("error"), _lowered(headers), moment)
    message = choice.get("message")
    if not isinstance(message, dict):
        return _malformed("message", message)
    content = message.get("content")
    if not (content is None or isinstance(content, str | list)):
        return _malformed("content", content)
    text, thoughts = _read_content(content)
    apart = _string(message.get("reasoning_content")) or _string(message.get("reasoning"))
    told = _Message(
        content=None if content is None else text,
        reasoning=apart or thoughts,
        refusal=_string(message.get("refusal")),
        tool_calls=message.get("tool_calls"),
        function_call=message.get("function_call"),
    )
    return _Completion(
        choices=(_Choice(told, _string(raw)),),
        usage=_counts(body.get("usage")),
        model=_string(body.get("model")),
        provider=_string(body.get("provider")),
        system_fingerprint=_string(body.get("system_fingerprint")),
        id=_string(body.get("id")),
    )


def _malformed(name: str, value: object) -> Fault:
    shown = clip(repr(value), 100)
    message = f"a reply without an answer: {name} is {shown}"
    return Fault(FailureKind.MALFORMED, message, retry=True)


def _reply(told: _Completion) -> Parsed:
    message, raw = told.choices[0].message, told.choices[0].finish_reason
    finish = _FINISH_OF.get(raw.lower()) if raw else None
    text, reasoning = message.content, message.reasoning_content or message.reasoning or None
    if finish == "content_filter" and not text:
        return Fault(FailureKind.CONTENT_FILTER, clip(f"finish reason {raw}, no text"))
    missing = text is None or bool(message.tool_calls or message.function_call)
    # A structured refusal comes in a field of its own, beside an empty content.
    text = text or message.refusal or ""
    return Reply(
        text=text,
        finish_reason=finish,
        finish_reason_raw=raw,
        reasoning=reasoning,
        usage=Usage() if told.usage is None else _usage(told.usage),
        served_model=told.model,
        provider=told.provider,
        fingerprint=told.system_fingerprint,
        response_id=told.id,
        hollow=missing and not (text or reasoning) and finish != "length",
    )


def _read_content(content: str | list[Any] | None) -> tuple[str, str]:
    """Text and thoughts of a message's content, a text or a list of typed parts."""
    parts = content if isinstance(content, list) else [content]
    text, thoughts = [], []
    for part in parts:
        if isinstance(part, str):
            text.append(part)
        elif isinstance(part, dict) and part.get("type") in ("text", "output_text"):
            text.append(_string(part.get("text")) or "")
        elif isinstance(part, dict) and part.get("type") in ("thinking", "reasoning"):
            thoughts.append(_thought(part))
    return _sound("".join(text)), _sound("".join(thoughts))


def _thought(part: Mapping[str, Any]) -> str:
    inner = part.get("thinking") or part.get("reasoning") or part.get("text")
    return _read_content(inner)[0] if isinstance(inner, str | list) else ""


def read_usage(usage: object) -> Usage:
    """Token counts and cost under the names that endpoints give them, as far as they are some."""
    return _usage(_counts(usage))


def _usage(counts: _Counts) -> Usage:
    """The counts by one name each.

    ``cached_tokens`` in ``prompt_tokens_details`` are part of ``prompt_tokens``;
    Anthropic's ``cache_read_input_tokens`` come on top of them, which shows where they are
    more than the prompt, or in the total.
    """
    prompt, completion = counts.prompt_tokens, counts.completion_tokens
    prompt = counts.input_tokens if prompt is None else prompt
    completion = counts.output_tokens if completion is None else completion
    details, thinking = counts.prompt_tokens_details, counts.completion_tokens_details
    inside = None if details is None else details.cached_tokens
    inside = counts.prompt_cache_hit_tokens if inside is None else inside
    on_top = counts.cache_read_input_tokens
    if inside is None and on_top is not None and prompt is not None:
        written, total = counts.cache_creation_input_tokens or 0, counts.total_tokens or 0
        if on_top > prompt or total >= prompt + (completion or 0) + on_top + written:
            prompt += on_top + written
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=on_top if inside is None else inside,
        reasoning_tokens=None if thinking is None else thinking.reasoning_tokens,
        cost=counts.cost,
    )


def _counts(usage: object) -> _Counts:
    """What are counts in a usage that may hold anything."""
    if not isinstance(usage, dict):
        return _Counts()
    found: dict[str, Any] = {name: _count(usage.get(name)) for name in _PLAIN_COUNTS}
    for name in ("prompt_tokens_details", "completion_tokens_details"):
        if isinstance(inner := usage.get(name), dict):
            found[name] = _Details(*(_count(inner.get(n)) for n in _Details.__struct_fields__))
    return _Counts(**found, cost=_dollars(usage.get("cost")))


_PLAIN_COUNTS = tuple(
    name for name in _Counts.__struct_fields__ if name != "cost" and not name.endswith("_details")
)


def _count(value: object) -> int | None:
    number = _number(value)
    if number is None or not 0 <= number < 2**63 or number != int(number):
        return None
    return int(number)


def _dollars(value: object) -> float | None:
    number = _number(value)
    return float(number) if number is not None and 0 <= number < 1e9 else None


def _number(value: object) -> int | float | None:
    """A number, also where it came as text; some gateways put all they count in quotes."""
    if isinstance(value, str) and _WRITTEN.fullmatch(value):
        return float(value) if "." in value else int(value)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _string(value: object) -> str | None:
    return _sound(value) if isinstance(value, str) else None


def _sound(text: str) -> str:
    # JSON can escape half a surrogate pair, which no UTF-8 store can hold.
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def generation_of(
    reply: Reply,
    request_id: str,
    *,
    attempts: int = 1,
    adaptations: tuple[str, ...] = (),
    started_at: str = "",
    latency_s: float | None = None,
    cost: float | None = None,
    cost_source: str | None = None,
    body: bytes | None = None,
) -> Generation:
    """The record of a reply: what the endpoint said, and what only the one who asked knows.

    The arguments behind ``reply`` are fields of `Generation`.
    """
    usage = reply.usage
    return Generation(
        request_id=request_id,
        text=reply.text,
        finish_reason=reply.finish_reason,
        finish_reason_raw=reply.finish_reason_raw,
        reasoning=reply.reasoning,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_tokens=usage.cached_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        served_model=reply.served_model,
        provider=reply.provider,
        fingerprint=reply.fingerprint,
        response_id=reply.response_id,
        attempts=attempts,
        adaptations=adaptations,
        started_at=started_at,
        latency_s=latency_s,
        cost=cost,
        cost_source=cost_source,
        body=body,
    )
