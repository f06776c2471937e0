"""The time as records hold it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache


def utc_now() -> str:
    """UTC now in ISO 8601, to the millisecond: ``2026-11-30T12:00:00.125+00:00``."""
    second, millisecond = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_written(second)}.{millisecond:03d}+00:00"


@lru_cache(maxsize=1)
def _written(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
