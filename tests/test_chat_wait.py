"""How long endpoints ask to wait, in all the ways in which they say it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from formatspan.backends.chat_fault import WAIT_CAP_S, fault_of
from formatspan.backends.chat_wait import asked_wait
from formatspan.records import FailureKind

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOW_S = NOW.timestamp()


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, None),
        ({"x-ratelimit-limit-requests": "60"}, None),
        # OpenAI's durations: the limit that is used up counts, not the one that is not.
        ({"x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-reset-tokens": "20ms"}, 0.02),
        ({"x-ratelimit-reset-requests": "1h2m3.5s"}, 3723.5),
        (
            {
                "x-ratelimit-remaining-requests": "14000",
                "x-ratelimit-reset-requests": "8h",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "7.5s",
            },
            7.5,
        ),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "12s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "3s",
            },
            12.0,
        ),
        ({"x-ratelimit-reset-requests": "8h", "x-ratelimit-reset-tokens": "2s"}, 2.0),
        # Anthropic's dates.
        (
            {
                "anthropic-ratelimit-requests-remaining": "12",
                "anthropic-ratelimit-requests-reset": "2026-01-01T09:00:00Z",
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-tokens-reset": "2026-01-01T00:00:21Z",
            },
            21.0,
        ),
        # OpenRouter's milliseconds, others' seconds since 1970, the draft's plain seconds.
        ({"x-ratelimit-reset": str(round((NOW_S + 30) * 1000))}, 30.0),
        ({"x-ratelimit-reset": str(round(NOW_S + 30))}, 30.0),
        ({"ratelimit-reset": "17"}, 17.0),
        ({"x-ratelimit-reset-requests-day": "86000"}, 86000.0),
        ({"x-ratelimit-reset": str(round(NOW_S - 30))}, 0.0),
        # Retry-After stands before all of them.
        ({"retry-after": "3", "x-ratelimit-reset-requests": "6m0s"}, 3.0),
        ({"x-ratelimit-reset": "soon"}, None),
        ({"x-ratelimit-reset": ""}, None),
    ],
)
def test_headers(headers: dict[str, str], wait_s: float | None) -> None:
    found = asked_wait(headers, "", NOW)
    assert found == (None if wait_s is None else pytest.approx(wait_s))


@pytest.mark.parametrize(
    ("wording", "wait_s"),
    [
        ("Please try again in 20s.", 20.0),
        ("Please try again in 6m12.5s. Visit", 372.5),
        ("retry in 12.5s", 12.5),
        ("Try again in 134ms", 0.134),
        ("retryDelay: 31s", 31.0),
        ("Please retry after 2 minutes", 120.0),
        ("slow down", None),
        ("40 requests in 60s are allowed", None),
    ],
)
def test_words(wording: str, wait_s: float | None) -> None:
    assert asked_wait({}, wording, NOW) == wait_s


@pytest.mark.parametrize(
    ("headers", "due"),
    [
        ({"retry-after": "32400"}, "2026-01-01 09:00 UTC"),
        ({"retry-after": "Thu, 01 Jan 2026 09:00:00 GMT"}, "2026-01-01 09:00 UTC"),
        ({"x-ratelimit-reset": str(round((NOW_S + 32400) * 1000))}, "2026-01-01 09:00 UTC"),
        ({"retry-after": "31536000"}, "2027-01-01 00:00 UTC"),
    ],
)
def test_long_waits_stop_the_model_and_say_until_when(headers: dict[str, str], due: str) -> None:
    for status in (429, 503, 529):
        found = fault_of(status, {"message": "slow down"}, headers, NOW)
        assert (found.kind, found.fatal, found.retry) == (FailureKind.QUOTA, True, False)
        assert f"resume after {due}" in found.message


def test_headers_that_a_gateway_passes_on_in_the_body() -> None:
    metadata = {"headers": {"X-RateLimit-Reset": str(round((NOW_S + 32400) * 1000))}}
    error = {"message": "Rate limit exceeded: free-models-per-day", "metadata": metadata}
    found = fault_of(429, error, {}, NOW)
    assert found.fatal and "resume after 2026-01-01 09:00 UTC" in found.message


@pytest.mark.parametrize(
    "text", ["1e30", "9" * 9, "9" * 30, "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT"]
)
def test_a_wait_without_end_is_no_wait(text: str) -> None:
    found = fault_of(429, None, {"retry-after": text}, NOW)
    assert (found.kind, found.fatal) == (FailureKind.QUOTA, True)
    assert "wait for more than a year" in found.message


@pytest.mark.parametrize("text", ["-5", "soon", "nan", "inf", "1e", "0x10", "\u0665", ""])
def test_a_wait_that_cannot_be_read_is_none(text: str) -> None:
    found = fault_of(429, None, {"retry-after": text}, NOW)
    assert (found.wait_s, found.retry, found.fatal) == (None, True, False)


def test_a_daily_quota_without_a_time() -> None:
    found = fault_of(429, {"message": "Limit reached on requests per day"}, {}, NOW)
    assert found.fatal and "does not say until when" in found.message


@pytest.mark.parametrize(
    ("status", "error", "busy", "upstream"),
    [
        (429, {"message": "slow down"}, True, False),
        (503, None, True, False),
        (529, None, True, False),
        (429, {"message": "x", "metadata": {"provider_name": "P1"}}, True, True),
        (500, None, False, False),
        (400, None, False, False),
    ],
)
def test_who_must_hold_back(status: int, error: object, busy: bool, upstream: bool) -> None:
    found = fault_of(status, error, {}, NOW)
    assert (found.busy, found.upstream) == (busy, upstream)


def test_a_short_wait_is_waited_out() -> None:
    found = fault_of(429, None, {"retry-after": str(WAIT_CAP_S)}, NOW)
    assert (found.wait_s, found.retry, found.fatal) == (WAIT_CAP_S, True, False)
