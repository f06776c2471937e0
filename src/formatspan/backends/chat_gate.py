"""How many requests may be in flight to a model, found out while they are.

The limit doubles while that pays, then is left alone and tried again now and then; a 429 or 503
halves it and makes it grow step by step (additive increase, multiplicative decrease, as TCP
does). A wait that the endpoint asks for holds everybody back, not only who was told: the gates
of all models behind one endpoint and key are siblings. Refusals that come whatever the load
(`formatspan.backends.chat_strays`) do neither. A reply that is long overdue gives up its place: it
hangs somewhere, which is no load.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import deque
from collections.abc import Awaitable, Callable
from weakref import WeakSet, WeakValueDictionary

from msgspec import Struct

from formatspan.backends.chat_strays import Strays

Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], float]

START = 16
"""Requests in flight at first."""
PAYS = 1.1
"""A doubled limit pays if it brings this much more replies a second."""
HOLD_ROUNDS = 16
"""Rounds after which a limit that did not pay is tried again; a round is as many replies as may
be in flight."""
PATIENCE_S = 60.0
"""Latency up to which the limit grows: beyond it, more requests only wait in another queue."""
STRIKE_S = 1.0
"""Half the first window of the pause after a 429 that names no time; it doubles with each in a
row."""
STRIKE_CAP_S = 30.0
OVERDUE_TIMES = 8.0
"""Times the usual latency after which a reply is overdue."""
OVERDUE_S = 2.0
"""Seconds before which none is."""
SMOOTHING = 1 / 32
"""Weight of the latest reply in the usual latency."""


class Ticket(Struct, frozen=True, gc=False):
    """What a request was let through with."""

    number: int
    at: float
    """When, by the gate's clock."""
    epoch: int
    """Refusals of one epoch count once."""
    low: bool
    """It was sent at a limit so low that load would not explain a refusal."""


class Gate:
    """Lets requests through; one for each model.

    Args:
        most: Requests in flight that the limit never exceeds.
        clock: Seconds that only grow.
        sleep: What waits.
        rng: Draws the jitter of pauses.
    """

    def __init__(
        self, most: int, *, clock: Clock, sleep: Sleep, rng: random.Random | None = None
    ) -> None:
        self.limit = float(min(START, most))
        self.closed = False
        """Nothing is let through any more."""
        self.in_flight = 0
        """Those that are overdue included."""
        self.spares_others = False
        """The latest refusal holds back only the request that met it."""
        self._most, self._clock, self._sleep = most, clock, sleep
        self._rng = rng or random.Random()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._holding: dict[int, Ticket] = {}
        """Requests that hold a place, the oldest first."""
        self._watching: asyncio.Task[None] | None = None
        self._numbers = itertools.count()
        self._usual_s: float | None = None
        self.until = -1.0
        """End of the latest pause, by the clock."""
        self._epoch = self._strikes = 0
        self._strays = Strays()
        self._doubling = True
        self._before = self._rate = 0.0
        self._skip = self._done = self._rounds_held = 0
        self._began = clock()

    def enter_now(self) -> Ticket | None:
        """A ticket if nothing has to be waited for."""
        if self.closed or (self.until > 0 and self.until > self._clock()) or self._free() <= 0:
            return None
        return self._let_through()

    async def enter(self, sat_out: float = -1.0) -> Ticket | None:
        """Wait for leave to send; None if there will be none.

        Args:
            sat_out: End of the pause that the request has waited for already.

        Returns:
            A ticket for `leave`.
        """
        while not self.closed:
            until = self.until
            left = until - self._clock() if until > sat_out else 0.0
            if left > 0:
                await self._sleep(left)
                sat_out = until
                continue
            if self._free() > 0:
                return self._let_through()
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            if self._watching is None:
                self._watching = asyncio.create_task(self._watch())
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake()  # the turn that was given must not be lost
                raise
        return None

    def _let_through(self) -> Ticket:
        self.in_flight += 1
        low = self._strays.sent(self.limit)
        ticket = Ticket(next(self._numbers), self._clock(), self._epoch, low)
        self._holding[ticket.number] = ticket
        return ticket

    def leave(self, ticket: Ticket, *, good: bool = False, busy: bool = False) -> None:
        """A request is over.

        Args:
            ticket: What `enter` gave.
            good: It got its reply.
            busy: The endpoint was overloaded, or limits the rate.
        """
        self.in_flight -= 1
        self._holding.pop(ticket.number, None)
        if busy:
            self._refuse(ticket)
        elif good:
            self._strikes = 0
            self._strays.answered()
            self._took(self._clock() - ticket.at)
            self._count()
        if self._waiting:
            self._wake()

    def pause(self, seconds: float) -> float:
        """Let nobody through for a while; never shortens a pause. Returns when it ends.

        After a stray refusal only the request that met it waits.
        """
        until = self._clock() + seconds
        if self.spares_others:
            self.spares_others = False
            return until
        self.until = max(self.until, until)
        return self.until

    def strike_s(self) -> float:
        """Seconds to pause after a refusal that names none: full jitter in a growing window."""
        window = min(STRIKE_CAP_S, STRIKE_S * 2 ** min(self._strikes, 10))
        return self._rng.uniform(0, window)

    def close(self) -> None:
        """Let nobody through any more."""
        self.closed = True
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def _free(self) -> int:
        """Places that are free; overdue requests still count for the hard limit."""
        return min(int(self.limit) - len(self._holding), self._most - self.in_flight)

    def _took(self, seconds: float) -> None:
        usual = seconds if self._usual_s is None else self._usual_s
        self._usual_s = usual + SMOOTHING * (seconds - usual)

    async def _watch(self) -> None:
        """Take their places from overdue requests, as long as anybody waits for one."""
        while self._waiting and not self.closed:
            left = OVERDUE_S
            if self._usual_s is not None and self._holding:
                oldest = next(iter(self._holding.values()))
                overdue = max(OVERDUE_S, OVERDUE_TIMES * self._usual_s)
                left = oldest.at + overdue - self._clock()
            if left > 0:
                await self._sleep(left)
                continue
            del self._holding[oldest.number]
            self._wake()
        self._watching = None

    def _wake(self) -> None:
        free = self._free()
        while free > 0 and self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                free -= 1

    def _refuse(self, ticket: Ticket) -> None:
        # Of all that were in flight together, one refusal counts.
        fresh, knew = ticket.epoch == self._epoch, self._strays.share > 0
        stray = self._strays.is_stray(self.limit, low=ticket.low, fresh=fresh)
        self.spares_others = stray
        if stray and not knew:
            self._grow_again()
        elif fresh and not stray:
            self._shrink()

    def _grow_again(self) -> None:
        """The limit was lowered for nothing."""
        self.limit = max(self.limit, self._strays.low)
        self._doubling, self._rate, self._rounds_held = True, 0.0, 0
        self._next_round()

    def _shrink(self) -> None:
        self._epoch += 1
        self._strikes += 1
        self._doubling = False
        self.limit = max(1.0, self.limit / 2)
        self._rate = 0.0
        self._next_round()

    def _count(self) -> None:
        """Count a reply; after a round, see whether more in flight would pay."""
        if self._skip > 0:
            self._skip -= 1
            if self._skip == 0:
                self._began = self._clock()
            return
        self._done += 1
        if self._done < max(8, int(self.limit)):
            return
        took = self._clock() - self._began
        rate = self._done / took if took > 0 else float("inf")
        full = bool(self._waiting)
        self._done, self._began = 0, self._clock()
        if full:
            self._judge(rate)

    def _judge(self, rate: float) -> None:
        if self._rounds_held > 0:
            self._rounds_held -= 1
            self._rate = rate
            return
        if not self._doubling:
            self._raise(self.limit + max(1.0, self.limit / 16), rate)
        elif self._rate and rate < self._rate * PAYS:
            self.limit = self._before
            self._rounds_held, self._rate = HOLD_ROUNDS, 0.0
            self._next_round()
        else:
            self._raise(self.limit * 2, rate)

    def _raise(self, limit: float, rate: float) -> None:
        limit = min(limit, float(self._most))
        if limit <= self.limit or limit / rate > PATIENCE_S:
            return
        self._before, self._rate, self.limit = self.limit, rate, limit
        self._next_round()

    def _next_round(self) -> None:
        """Leave out the replies to what was sent before."""
        self._skip, self._done = max(1, self.in_flight), 0


class Siblings:
    """The gates of the models behind one endpoint and key."""

    def __init__(self) -> None:
        self.gates: WeakSet[Gate] = WeakSet()

    def pause(self, seconds: float) -> None:
        """Let nobody through for a while, unless it was a stray refusal that asks for it."""
        # Whose refusal it is leaves and pauses in one go: no other gate is between the two.
        if any(gate.spares_others for gate in self.gates):
            return
        for gate in self.gates:
            gate.pause(seconds)


_SIBLINGS: WeakValueDictionary[tuple[str, str | None], Siblings] = WeakValueDictionary()


def siblings(url: str, key_env: str | None) -> Siblings:
    """The siblings of all open models with this URL and key; forgotten with the last of them."""
    found = _SIBLINGS.get((url, key_env))
    if found is None:
        found = _SIBLINGS[url, key_env] = Siblings()
    return found
