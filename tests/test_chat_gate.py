"""How many requests are in flight, and who waits for whom; all in virtual time."""

from __future__ import annotations

import asyncio
import random

import pytest

from formatspan.backends.chat_gate import START, Gate, Siblings, siblings
from virtual_time import VirtualTime


class Server:
    """An endpoint with so many slots; beyond them it queues, or refuses."""

    def __init__(self, time: VirtualTime, slots: int, *, refuses: bool = False) -> None:
        self.time, self.slots, self.refuses = time, slots, refuses
        self.busy = self.most = self.refused = 0
        self.free = asyncio.Semaphore(slots)

    async def serve(self) -> bool:
        """Whether there was a reply, after a second."""
        if self.refuses and self.busy >= self.slots:
            self.refused += 1
            await self.time.sleep(0.01)
            return False
        self.busy += 1
        self.most = max(self.most, self.busy)
        async with self.free:
            await self.time.sleep(1.0)
        self.busy -= 1
        return True


async def drive(time: VirtualTime, gate: Gate, server: Server, requests: int, width: int) -> None:
    """So many requests by so many workers; a refused one comes again."""
    left = [requests]

    async def work() -> None:
        while left[0] > 0:
            left[0] -= 1
            good = False
            while not good:
                ticket = await gate.enter()
                assert ticket is not None
                good = await server.serve()
                gate.leave(ticket, good=good, busy=not good)

    await time.run(*(work() for _ in range(width)))


async def test_the_limit_grows_while_that_pays() -> None:
    time = VirtualTime()
    gate, server = Gate(256, clock=time.clock, sleep=time.sleep), Server(time, 1000)
    await drive(time, gate, server, 3000, 256)
    assert gate.limit == 256
    assert server.most == 256
    assert time.now < 3000 / 256 + 12, "it took a few rounds to get there"


async def test_the_limit_stays_where_more_brings_nothing() -> None:
    time = VirtualTime()
    gate, server = Gate(256, clock=time.clock, sleep=time.sleep), Server(time, START)
    await drive(time, gate, server, 2000, 256)
    assert gate.limit <= 2 * START
    assert server.most <= 2 * START


async def test_refusals_shrink_the_limit_and_it_hovers_below_them() -> None:
    time = VirtualTime()
    gate, server = Gate(256, clock=time.clock, sleep=time.sleep), Server(time, 40, refuses=True)
    await drive(time, gate, server, 4000, 256)
    assert gate.limit <= 44
    assert server.refused < 400, "few of 4,000 requests meet a refusal"
    assert time.now < 2 * 4000 / 40, "and most of the 40 slots are used"


async def test_refusals_of_one_volley_count_once() -> None:
    time = VirtualTime()
    gate = Gate(64, clock=time.clock, sleep=time.sleep)
    tickets = [await gate.enter() for _ in range(16)]
    for ticket in tickets:
        assert ticket is not None
        gate.leave(ticket, busy=True)
    assert gate.limit == 8
    late = await gate.enter()
    assert late is not None
    gate.leave(late, busy=True)
    assert gate.limit == 4
    for _ in range(9):
        ticket = await gate.enter()
        assert ticket is not None
        gate.leave(ticket, busy=True)
    assert gate.limit == 1, "one request is always let through"


async def test_a_pause_holds_everybody_back() -> None:
    time = VirtualTime()
    gate = Gate(64, clock=time.clock, sleep=time.sleep)
    gate.pause(95)
    gate.pause(10)

    async def enter() -> float:
        assert await gate.enter() is not None
        return time.now

    assert await time.run(*(enter() for _ in range(5))) == [95.0] * 5


async def test_who_has_sat_a_pause_out_does_not_wait_again() -> None:
    time = VirtualTime()
    gate = Gate(64, clock=time.clock, sleep=time.sleep)
    until = gate.pause(95)
    assert await gate.enter(until) is not None
    assert time.slept == []


async def test_pauses_without_a_time_grow_and_are_jittered() -> None:
    time = VirtualTime()
    gate = Gate(64, clock=time.clock, sleep=time.sleep, rng=random.Random(1))
    tops = []
    for _ in range(8):
        draws = [gate.strike_s() for _ in range(200)]
        assert min(draws) < 0.1 * max(draws), "full jitter starts at nothing"
        tops.append(max(draws))
        ticket = await gate.enter()
        assert ticket is not None
        gate.leave(ticket, busy=True)
    assert tops[0] <= 1 < tops[1] <= 2 < tops[2] <= 4
    assert tops[-1] <= 30
    ticket = await gate.enter()
    assert ticket is not None
    gate.leave(ticket, good=True)
    assert gate.strike_s() <= 1


async def test_a_closed_gate_sends_all_away() -> None:
    time = VirtualTime()
    gate = Gate(1, clock=time.clock, sleep=time.sleep)
    assert await gate.enter() is not None
    waiting = [asyncio.create_task(gate.enter()) for _ in range(3)]
    await asyncio.sleep(0)
    gate.close()
    assert await asyncio.gather(*waiting) == [None] * 3
    assert await gate.enter() is None


async def test_a_turn_is_not_lost_with_a_request_that_is_given_up() -> None:
    time = VirtualTime()
    gate = Gate(1, clock=time.clock, sleep=time.sleep)
    ticket = await gate.enter()
    assert ticket is not None
    first, second = (asyncio.create_task(gate.enter()) for _ in range(2))
    await asyncio.sleep(0)
    gate.leave(ticket)
    first.cancel()
    assert await second is not None
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_slow_endpoints_are_not_flooded() -> None:
    time = VirtualTime()
    gate = Gate(256, clock=time.clock, sleep=time.sleep)

    async def work() -> None:
        for _ in range(4):
            ticket = await gate.enter()
            assert ticket is not None
            await time.sleep(50)  # grows with nothing, but one answer takes this long
            gate.leave(ticket, good=True)

    await time.run(*(work() for _ in range(64)))
    assert gate.limit == START


def test_siblings_are_those_of_one_endpoint_and_key() -> None:
    one, two = siblings("http://h/v1", "KEY"), siblings("http://h/v1", "KEY")
    assert one is two
    assert siblings("http://h/v1", "OTHER") is not one
    assert siblings("http://g/v1", "KEY") is not one
    assert isinstance(one, Siblings)
