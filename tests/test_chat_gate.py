"""How many requests are in flight, and who waits for whom; all in virtual time."""

from __future__ import annotations

import asyncio
import random

import pytest

from formatspan.backends.chat_gate import OVERDUE_S, START, Gate, Siblings, siblings
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


class Moody:
    """An endpoint that refuses a share of all requests, however few there are."""

    def __init__(self, time: VirtualTime, share: float) -> None:
        self.time, self.share, self.rng = time, share, random.Random(3)
        self.sent = self.refused = 0

    async def ask(self, gate: Gate) -> None:
        """Ask until there is a reply, as the backend does: a refusal asks for a second's wait."""
        good, sat_out = False, -1.0
        while not good:
            ticket = await gate.enter(sat_out)
            assert ticket is not None
            await self.time.sleep(0.1)
            self.sent += 1
            good = self.rng.random() >= self.share
            gate.leave(ticket, good=good, busy=not good)
            if not good:
                self.refused += 1
                sat_out = gate.pause(1.0)
                await self.time.sleep(1.0)


async def by_many(time: VirtualTime, gate: Gate, server: Moody, requests: int) -> None:
    left = [requests]

    async def work() -> None:
        while left[0] > 0:
            left[0] -= 1
            await server.ask(gate)

    await time.run(*(work() for _ in range(256)))


@pytest.mark.parametrize("share", [0.04, 0.3])
async def test_refusals_that_come_whatever_the_load_do_not_slow_a_run(share: float) -> None:
    time = VirtualTime()
    gate = Gate(256, clock=time.clock, sleep=time.sleep, rng=random.Random(1))
    await by_many(time, gate, Moody(time, share), 6000)
    assert gate.limit >= 64
    assert time.now < 60, "a hundred replies a second and more"


async def test_an_endpoint_that_is_limited_after_all_is_heeded_soon() -> None:
    time = VirtualTime()
    gate = Gate(256, clock=time.clock, sleep=time.sleep, rng=random.Random(1))
    server = Moody(time, 0.04)
    await by_many(time, gate, server, 3000)
    before, server.share = gate.limit, 1.0
    lone = 0
    while gate.limit == before:
        lone += 1
        ticket = await gate.enter(time.now + 100)
        assert ticket is not None
        gate.leave(ticket, busy=True)
        until = gate.pause(50)
    assert 1 < lone <= 6
    assert gate.limit == before / 2

    async def enter() -> float:
        assert await gate.enter() is not None
        return time.now

    assert await time.run(enter()) == [until], "everybody waits again"


async def test_an_endpoint_that_refuses_nearly_all_is_limited() -> None:
    time = VirtualTime()
    gate = Gate(256, clock=time.clock, sleep=time.sleep, rng=random.Random(1))
    await by_many(time, gate, Moody(time, 0.8), 100)
    assert gate.limit <= 4


async def test_siblings_are_spared_what_the_gate_is_spared() -> None:
    time = VirtualTime()
    gates = [Gate(256, clock=time.clock, sleep=time.sleep, rng=random.Random(1)) for _ in range(2)]
    family = Siblings()
    family.gates.update(gates)
    await by_many(time, gates[0], Moody(time, 0.04), 3000)
    ticket = await gates[0].enter()
    assert ticket is not None
    gates[0].leave(ticket, busy=True)
    family.pause(50)
    gates[0].pause(50)

    async def enter() -> float:
        assert await gates[1].enter() is not None
        return time.now

    now = time.now
    assert await time.run(enter()) == [now]
    family.pause(50)
    assert await time.run(enter()) == [now + 50], "a later pause is one for all again"


async def test_replies_that_hang_do_not_hold_their_places() -> None:
    time = VirtualTime()
    gate = Gate(START + 4, clock=time.clock, sleep=time.sleep)

    async def reply() -> None:
        ticket = await gate.enter()
        assert ticket is not None
        await time.sleep(0.1)
        gate.leave(ticket, good=True)

    await time.run(*(reply() for _ in range(4)))
    hanging = [await gate.enter() for _ in range(START)]
    began = time.now
    await time.run(*(reply() for _ in range(12)))
    assert OVERDUE_S <= time.now - began < OVERDUE_S + 1
    assert gate.in_flight == START
    more = [asyncio.create_task(gate.enter()) for _ in range(5)]
    await asyncio.sleep(0)
    assert gate.in_flight == START + 4, "never more than the most"
    for ticket in hanging:
        assert ticket is not None
        gate.leave(ticket)
    assert None not in await asyncio.gather(*more)
    assert gate.in_flight == 5


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
