"""What went wrong at an endpoint, and what follows: wait and ask again, give up, or stop.

Statuses follow RFC 9110; how vendors word an error is from their documentation
(https://platform.openai.com/docs/guides/error-codes,
https://openrouter.ai/docs/api-reference/errors) and from reports of other tools. The wording
counts before the status, since gateways pass a content filter off as 403 or 502, a missing
model as 400, and an exhausted account as 429.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from formatspan.backends.chat_adapt import refused_parameter
from formatspan.backends.chat_wait import WAIT_MOST_S, asked_wait
from formatspan.backends.http_trouble import PROXY_LOGIN
from formatspan.records import FailureKind

MESSAGE_CHARS = 600
"""Longest message kept of a fault."""

WAIT_CAP_S = 120.0
"""Longest wait that an endpoint may ask for; beyond it the model's queue stops. Asking earlier
than told would only be refused again."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One attempt without a reply."""

    kind: FailureKind
    message: str
    retry: bool = False
    """It can heal: the same request may be sent again."""
    fatal: bool = False
    """Every further request to the model would fail alike."""
    wait_s: float | None = None
    """Seconds that the endpoint asked to wait; None if it did not."""
    busy: bool = False
    """The endpoint is overloaded or limits the rate: everybody should hold back."""
    slow: bool = False
    """It took its whole time to come: the next one will as well."""
    upstream: bool = False
    """A provider behind the endpoint said it, so that it holds for this model only."""
    param: str | None = None
    """The parameter that the model does not take."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """A wording that decides whatever the status says, among ``statuses``."""

    kind: FailureKind
    pattern: re.Pattern[str]
    statuses: frozenset[int] | None = None
    fatal: bool = False


def _words(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


_REFUSALS = frozenset({400, 401, 402, 403, 404, 422, 429})
_RULES = (
    _Rule(
        FailureKind.CONTENT_FILTER,
        _words(
            r"content[_ ](filter|policy|management)",
            r"\bflagged\b",
            r"safety system",
            r"requires moderation",
            r"data_inspection_failed",
        ),
    ),
    _Rule(
        FailureKind.CONTEXT_OVERFLOW,
        _words(
            r"context[_ ](length|window|size)",
            r"prompt is too long",
            r"(input|prompt)( tokens)? exceeds?",
        ),
        # Never a 429: "too large" is then about tokens a minute.
        frozenset({400, 413, 422, 500, 502}),
    ),
    _Rule(
        FailureKind.NOT_FOUND,
        _words(
            r"model_not_found",
            r"not a valid model",
            r"\b(unknown|invalid|no such) model\b",
            r"\bmodel\b.{0,120}\b(does not exist|not found)",
        ),
        frozenset({400, 403, 404, 422}),
        fatal=True,
    ),
    _Rule(
        FailureKind.AUTH,
        _words(r"invalid_api_key", r"api key not valid", r"(invalid|incorrect|missing) api key"),
        _REFUSALS,
        fatal=True,
    ),
    _Rule(FailureKind.QUOTA, _words(r"insufficient_quota"), _REFUSALS, fatal=True),
)
_QUOTA = _words(
    r"current quota",
    r"insufficient (credit|balance|fund)",
    r"per[- ]day|daily|\b[TR]PD\b",
    r"(key|spend(ing)?|usage|billing|credit) limit",
    r"out of credit",
    r"billing",
)
_DAILY = _words(r"per[- ]day|daily|\b[TR]PD\b")
_SHORT_LIMIT = _words(r"per[ _-]?(minute|second)", r"retry in [\d.]+ ?s\b")

_STATUS_OF_NAME = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "too_many_requests": 429,
    "insufficient_quota": 429,
    "server_error": 500,
    "internal_server_error": 500,
    "api_error": 500,
    "service_unavailable": 503,
    "overloaded_error": 529,
    "timeout": 504,
    "timeout_error": 504,
    "invalid_request_error": 400,
    "unsupported_parameter": 400,
    "unsupported_value": 400,
    "badrequesterror": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "notfounderror": 404,
    "model_not_found": 404,
}
"""Statuses of the error codes and types that come instead of one, in a reply with status 200."""

_OF_STATUS: dict[int, tuple[FailureKind, bool, bool]] = {
    400: (FailureKind.REFUSED_PARAMETERS, False, False),
    401: (FailureKind.AUTH, False, True),
    402: (FailureKind.QUOTA, False, True),
    403: (FailureKind.AUTH, False, True),
    404: (FailureKind.NOT_FOUND, False, True),
    405: (FailureKind.NOT_FOUND, False, True),
    407: (FailureKind.PROXY, False, True),
    408: (FailureKind.TIMEOUT, True, False),
    409: (FailureKind.SERVER, True, False),
    410: (FailureKind.NOT_FOUND, False, True),
    413: (FailureKind.CONTEXT_OVERFLOW, False, False),
    422: (FailureKind.REFUSED_PARAMETERS, False, False),
    425: (FailureKind.SERVER, True, False),
    501: (FailureKind.REFUSED_PARAMETERS, False, False),
    504: (FailureKind.TIMEOUT, True, False),
    522: (FailureKind.TIMEOUT, True, False),
    524: (FailureKind.TIMEOUT, True, False),
}
"""Kind, can heal, fatal. Other statuses below 500 refuse the request, others from 500 on heal."""

_BUSY = frozenset({429, 503, 529})
"""Statuses that mean too much at once."""
_USUAL = frozenset({400, 401, 402, 403, 404, 408, 413, 422, 429})
_REFUSED = FailureKind.REFUSED_PARAMETERS


def fault_of(status: int, error: object, headers: Mapping[str, str], now: datetime) -> Fault:
    """The fault that an error object stands for.

    Args:
        status: HTTP status of the reply.
        error: The body's error object; a text, None or anything else is taken too.
        headers: Response headers, names in lower case.
        now: The time, for a Retry-After that is a date.
    """
    details = _details(error)
    effective = _effective_status(status, details)
    wording = _wording(details)
    where = f"HTTP {status}" if effective == status else f"HTTP {status} with error {effective}"
    message = clip(": ".join(filter(None, (where, _meaning(effective), wording))))
    for rule in _RULES:
        if (rule.statuses is None or effective in rule.statuses) and rule.pattern.search(wording):
            return Fault(rule.kind, message, fatal=rule.fatal)
    if effective in _BUSY:
        return _held_back(effective, details, wording, message, headers, now)
    kind, retry, fatal = _of_status(effective)
    if effective == 403 and _is_exhausted(wording):
        return Fault(FailureKind.QUOTA, message, fatal=True)
    wait_s = asked_wait(headers, "", now) if retry else None
    if wait_s is not None and wait_s > WAIT_CAP_S:
        return _resume_later(message, wait_s, now)
    param = refused_parameter(details, wording) if kind is _REFUSED else None
    return Fault(kind, message, retry, fatal, wait_s, param=param)


def _of_status(status: int) -> tuple[FailureKind, bool, bool]:
    refused = (FailureKind.REFUSED, False, False)
    default = (FailureKind.SERVER, True, False) if status >= 500 else refused
    return _OF_STATUS.get(status, default)


def _meaning(status: int) -> str:
    """What an unusual status says, which few know by heart."""
    if status == 407:
        return f"the answer of a proxy: {PROXY_LOGIN}"
    known = status in _USUAL or not 400 <= status < 500
    return "" if known or status not in set(HTTPStatus) else HTTPStatus(status).phrase


def _held_back(
    status: int,
    details: Mapping[str, Any],
    wording: str,
    message: str,
    headers: Mapping[str, str],
    now: datetime,
) -> Fault:
    """The fault of a refusal for load or rate; a long or daily one stops the model."""
    metadata = _metadata(details)
    passed_on = metadata.get("headers")
    if isinstance(passed_on, Mapping):
        headers = {**{str(k).lower(): str(v) for k, v in passed_on.items()}, **headers}
    wait_s = asked_wait(headers, wording, now)
    if status == 429 and _is_exhausted(wording):
        return _resume_later(message, wait_s, now)
    if wait_s is not None and wait_s > WAIT_CAP_S:
        return _resume_later(message, wait_s, now)
    kind = FailureKind.RATE_LIMIT if status == 429 else FailureKind.SERVER
    named = bool(metadata.get("provider_name"))
    return Fault(kind, message, retry=True, wait_s=wait_s, busy=True, upstream=named)


def _is_exhausted(wording: str) -> bool:
    return bool(_QUOTA.search(wording)) and not _SHORT_LIMIT.search(wording)


def _resume_later(message: str, wait_s: float | None, now: datetime) -> Fault:
    """A quota that no waiting in this session heals, with the time to come back."""
    if wait_s is not None:
        if wait_s < WAIT_MOST_S:
            due = (now + timedelta(seconds=wait_s)).strftime("%Y-%m-%d %H:%M UTC")
            message = clip(f"asks to wait {wait_s:.0f} s, resume after {due}; {message}")
        else:
            message = clip(
                f"asks to wait for more than a year, as if by mistake: try again later; {message}"
            )
    elif _DAILY.search(message):
        message = clip(
            f"a daily quota is used up, the endpoint does not say until when (many renew at "
            f"00:00 UTC); {message}"
        )
    return Fault(FailureKind.QUOTA, message, fatal=True, wait_s=wait_s)


def clip(text: str, most: int = MESSAGE_CHARS) -> str:
    """``text`` on one line, cut to ``most`` characters, without control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * most]).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _details(error: object) -> Mapping[str, Any]:
    if isinstance(error, list) and error:
        return _details(error[0])
    if isinstance(error, Mapping):
        return error
    return {"message": error} if isinstance(error, str) else {}


def _effective_status(status: int, details: Mapping[str, Any]) -> int:
    """The body's numeric code, else the HTTP status, else what a named code stands for.

    An error without any code inside a reply with status 200 is taken for the gateway's (502).
    """
    for key in ("code", "status"):
        code = str(details.get(key, ""))
        if re.fullmatch(r"[45]\d\d", code):
            return int(code)
    if status >= 400:
        return status
    names = (str(details.get(key, "")).lower() for key in ("code", "type"))
    return next((_STATUS_OF_NAME[name] for name in names if name in _STATUS_OF_NAME), 502)


def _wording(details: Mapping[str, Any]) -> str:
    """Everything an error says: its message and, behind gateways, what the provider said."""
    inner = _metadata(details)
    named = {
        "code": details.get("code"),
        "type": details.get("type"),
        "param": details.get("param"),
        "provider": inner.get("provider_name"),
        "reasons": inner.get("reasons"),
    }
    parts = [_text(details.get("message")), _text(inner.get("raw"))]
    parts += [f"{name} {_text(value)}" for name, value in named.items() if _text(value)]
    return "; ".join(part for part in parts if part)


def _metadata(details: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = details.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _text(value: object) -> str:
    return "" if value is None else clip(str(value), MESSAGE_CHARS // 2)
