"""The time as records hold it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from formatspan.moments import utc_now


def test_it_is_now_to_the_millisecond() -> None:
    before = datetime.now(UTC)
    texts = [utc_now() for _ in range(1000)]
    after = datetime.now(UTC)
    moments = [datetime.fromisoformat(text) for text in texts]
    assert before - timedelta(milliseconds=1) <= min(moments) <= max(moments) <= after
    assert moments == sorted(moments)
    assert all(len(text) == len("2026-11-30T12:00:00.125+00:00") for text in texts)
