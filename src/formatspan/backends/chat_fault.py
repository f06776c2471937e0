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
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

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
    401: (FailureKind.AUTH, False, True),
    402: (FailureKind.QUOTA, False, True),
    403: (FailureKind.AUTH, False, True),
    404: (FailureKind.NOT_FOUND, False, True),
    405: (FailureKind.NOT_FOUND, False, True),
    408: (FailureKind.TIMEOUT, True, False),
    409: (FailureKind.SERVER, True, False),
    413: (FailureKind.CONTEXT_OVERFLOW, False, False),
    425: (FailureKind.SERVER, True, False),
    429: (FailureKind.RATE_LIMIT, True, False),
    501: (FailureKind.REFUSED_PARAMETERS, False, False),
    504: (FailureKind.TIMEOUT, True, False),
    522: (FailureKind.TIMEOUT, True, False),
    524: (FailureKind.TIMEOUT, True, False),
}
"""Kind, can heal, fatal. Other statuses below 500 refuse the request, others from 500 on heal."""


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
    message = clip(f"{where}: {wording}" if wording else where)
    wait_s = retry_after(headers, now)
    for rule in _RULES:
        if (rule.statuses is None or effective in rule.statuses) and rule.pattern.search(wording):
            return Fault(rule.kind, message, fatal=rule.fatal)
    return _of_status(effective, wording, message, wait_s)


def _of_status(status: int, wording: str, message: str, wait_s: float | None) -> Fault:
    default = (FailureKind.SERVER, True, False)
    if status < 500:
        default = (FailureKind.REFUSED_PARAMETERS, False, False)
    kind, retry, fatal = _OF_STATUS.get(status, default)
    exhausted = _QUOTA.search(wording) and not _SHORT_LIMIT.search(wording)
    if status in (403, 429) and exhausted:
        return Fault(FailureKind.QUOTA, message, fatal=True, wait_s=wait_s)
    if retry and wait_s is not None and wait_s > WAIT_CAP_S:
        asked = clip(f"asks to wait {wait_s:.0f} s; {message}")
        return Fault(FailureKind.QUOTA, asked, fatal=True, wait_s=wait_s)
    return Fault(kind, message, retry, fatal, wait_s if retry else None)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that a reply asks to wait, or None.

    Retry-After is a number of seconds or a date (RFC 9110, section 10.2.3); a date is held
    against the server's own clock where it tells it. ``retry-after-ms`` is OpenAI's and Azure's.
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text):
            return float(text) * unit_s
    due = _date(headers.get("retry-after"))
    if due is None:
        return None
    return max(0.0, (due - (_date(headers.get("date")) or now)).total_seconds())


def _date(text: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


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
    metadata = details.get("metadata")
    inner = metadata if isinstance(metadata, Mapping) else {}
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


def _text(value: object) -> str:
    return "" if value is None else clip(str(value), MESSAGE_CHARS // 2)
