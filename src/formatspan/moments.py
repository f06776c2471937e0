"""The time as records hold it."""

from __future__ import annotations

import time
from functools import lru_cache


def utc_now() -> str:
    """UTC now in ISO 8601, to the millisecond: ``2026-11-30T12:00:00.125+00:00``."""
    seconds, milliseconds = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_to_the_second(seconds)}.{milliseconds:03d}+00:00"


@lru_cache(maxsize=4)
def _to_the_second(seconds: int) -> str:
    # Many moments are taken in a second, and its date takes long to write.
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
