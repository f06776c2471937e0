"""Tells refusals that come whatever the load from those that load brings about.

A refusal is first taken for one of load, and the limit is halved. Where refusals go on at the
same share though only half as many requests are in flight, fewer still would not end them: such
strays hold back the request that met them and nobody else. A share that rises above the known one
(a cumulative sum, Page 1954, https://doi.org/10.1093/biomet/41.1-2.100) is load again.
"""

from __future__ import annotations

EVENTS = 3
"""Refusals at low load, volleys counted once, before their share is believed."""
MOST_SHARE = 0.5
"""Share of strays at most: an endpoint that refuses more often is limited, whatever the load."""
LEAST_SHARE = 0.05
"""What is believed at least, since few refusals tell little."""
ALARM = 4.0
"""Refusals beyond what the known share allows that are load again."""


class Strays:
    """What is known of the refusals of one model."""

    def __init__(self) -> None:
        self.share = 0.0
        """Share of requests that are refused whatever the load; 0 as long as none is known."""
        self.low = 0.0
        """Half of the largest limit that met a refusal: load ends at this limit."""
        self._tried = self._refused = self._events = 0
        self._excess = 0.0

    def sent(self, limit: float) -> bool:
        """A request is under way; returns whether load would not explain a refusal of it.

        Args:
            limit: The limit now.
        """
        low = limit <= self.low
        self._tried += low
        return low

    def answered(self) -> None:
        """A request got its reply."""
        if self._excess:
            self._excess = max(0.0, self._excess - self._allowed)

    def is_stray(self, limit: float, *, low: bool, fresh: bool) -> bool:
        """Whether a refusal came in spite of low load.

        Args:
            limit: The limit now.
            low: Whether the request was sent at low load.
            fresh: Whether it is the first refusal of its volley.
        """
        self._refused += low
        if self.share:
            return not self._is_too_much(limit)
        if not fresh:
            return False
        self._events += low
        self.low = max(self.low, limit / 2)
        return self._events >= EVENTS and self._learn()

    @property
    def _allowed(self) -> float:
        return min(3 * self.share, (1 + self.share) / 2)

    def _learn(self) -> bool:
        share = self._refused / self._tried
        self._forget()
        if share <= MOST_SHARE:
            self.share = max(LEAST_SHARE, share)
        return bool(self.share)

    def _is_too_much(self, limit: float) -> bool:
        self._excess += 1 - self._allowed
        if self._excess < ALARM:
            return False
        self._forget()
        self.share, self.low = 0.0, limit / 2
        return True

    def _forget(self) -> None:
        self._tried = self._refused = self._events = 0
        self._excess = 0.0
