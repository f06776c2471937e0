"""How long an endpoint asks to wait: in seconds or as a date, in headers or in words.

Retry-After is RFC 9110, section 10.2.3; ``retry-after-ms`` is OpenAI's and Azure's. Where it is
missing, the reset headers of the providers count: OpenAI's durations (``6m0s``), Anthropic's
dates, OpenRouter's milliseconds since 1970, the seconds of the IETF's draft; and last what the
message says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

WAIT_MOST_S = 400 * 86400.0
"""What any longer wait is taken for."""
_SECONDS = re.compile(r"\d{1,400}(\.\d{0,400})?(e\+?\d{1,3})?", re.ASCII | re.IGNORECASE)
"""More than the standard allows, which is whole seconds."""
_NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?")
_PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s?(ms|s|m|h|d)[a-z]*,?\s?", re.IGNORECASE)
_DURATION = re.compile(rf"(?:{_PART.pattern})+", re.IGNORECASE)
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_IN_WORDS = re.compile(
    r"(?:try again|retry|retry_?delay|resets?|available|wait)\W{1,4}(?:(?:in|after|for)\W{1,2})?"
    rf"({_DURATION.pattern})",
    re.IGNORECASE,
)
_RESET = re.compile(r"(?:x-|anthropic-)?rate-?limit-(?:(.+)-)?reset(?:-(.+))?")
_EPOCH_S, _EPOCH_MS = 1e9, 1e12


def asked_wait(headers: Mapping[str, str], wording: str, now: datetime) -> float | None:
    """Seconds that a refusal asks to wait, or None if it does not say.

    Args:
        headers: Names in lower case; those that a gateway passes on in the body included.
        wording: All that the error says.
        now: The client's time; a date is held against the server's own clock where it tells it.
    """
    for found in (retry_after(headers, now), _reset(headers, now), _in_words(wording)):
        if found is not None:
            return found
    return None


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that the Retry-After header asks to wait, or None if it is missing or unusable."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if _SECONDS.fullmatch(text):
            return min(float(text) * unit_s, WAIT_MOST_S)
    until_s = _until(_date(headers.get("retry-after")), headers, now)
    return None if until_s is None else min(until_s, WAIT_MOST_S)


def _reset(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds until a limit that is used up renews; with several, until the last of them.

    Where no limit says that it is used up, the first to renew may be the one that was met.
    """
    used_up: list[float] = []
    others: list[float] = []
    for name, text in headers.items():
        match = _RESET.fullmatch(name)
        wait_s = None if match is None else _moment(text.strip(), headers, now)
        if wait_s is not None:
            left = headers.get(name.replace("reset", "remaining"), "").strip()
            (used_up if left in ("0", "0.0") else others).append(wait_s)
    if used_up:
        return max(used_up)
    return min(others) if others else None


def _moment(text: str, headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds until a moment written as a number, a duration or a date."""
    if _NUMBER.fullmatch(text):
        number = float(text)
        if number >= _EPOCH_S:
            since = number / 1000 if number >= _EPOCH_MS else number
            server = _date(headers.get("date")) or now
            return max(0.0, since - server.timestamp())
        return number
    if _DURATION.fullmatch(text):
        return _seconds(text)
    try:
        stamp: datetime | None = datetime.fromisoformat(text)
    except ValueError:
        stamp = _date(text)
    return _until(stamp, headers, now)


def _seconds(text: str) -> float:
    return float(sum(float(n) * _UNIT_S[unit.lower()] for n, unit in _PART.findall(text)))


def _in_words(wording: str) -> float | None:
    match = _IN_WORDS.search(wording)
    return None if match is None else _seconds(match[1])


def _until(due: datetime | None, headers: Mapping[str, str], now: datetime) -> float | None:
    if due is None:
        return None
    aware = due if due.tzinfo else due.replace(tzinfo=UTC)
    return max(0.0, (aware - (_date(headers.get("date")) or now)).total_seconds())


def _date(text: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
