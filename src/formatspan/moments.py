"""The time as records hold it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache


def utc_now() -> str:
    """UTC now in ISO 8601, to the millisecond: ``2026-11-30T12:00:00.125+00:00``."""
    return _written(time.time_ns() // 1_000_000)


@lru_cache(maxsize=4)
def _written(milliseconds: int) -> str:
    # Where many requests are sent, many of them are sent at the same moment.
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
