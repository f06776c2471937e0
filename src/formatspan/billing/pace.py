"""How fast a run's models have answered: replies a second while anything was asked."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from formatspan.store import Store

FROM = 20
"""Replies from which a pace is believed."""
PAUSE_S = 30.0
"""Seconds without any request under way that end a session: they are no part of the pace."""

_REPLIES = """
SELECT g.started_at, g.latency_s FROM generations g WHERE g.request IN
  (SELECT request FROM points WHERE model = ? AND copy_of IS NULL)
AND g.started_at != '' AND g.latency_s IS NOT NULL ORDER BY g.started_at
"""


class Pace(NamedTuple):
    """Replies, and the seconds in which they were asked for."""

    replies: int
    seconds: float

    def time_for(self, replies: float) -> float:
        """Seconds that so many more would take."""
        return replies * self.seconds / self.replies


def measured_pace(store: Store, model: str) -> Pace | None:
    """The pace of a model's replies in a run; None where there are too few to tell.

    Replies of batches do not count: nobody knows how long each took.
    """
    pace = pace_of((t, s) for t, s in store.connection.execute(_REPLIES, (model,)))
    return pace if pace.replies >= FROM and pace.seconds > 0 else None


def pace_of(replies: Iterable[tuple[str, float]]) -> Pace:
    """The pace of replies given as start (ISO 8601) and latency in seconds, by start."""
    number, busy = 0, 0.0
    until: float | None = None
    for text, latency_s in replies:
        start = datetime.fromisoformat(text).timestamp()
        end = start + latency_s
        if until is None or start - until > PAUSE_S:
            busy += latency_s
        else:
            busy += max(0.0, end - until)
        until = end if until is None else max(until, end)
        number += 1
    return Pace(number, busy)
