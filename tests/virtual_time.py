"""Time that passes only when everybody sleeps: for tests of what waits, without waiting."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Coroutine
from typing import Any

SETTLE = 50
"""Turns of the loop after which everybody who can run has run."""


class VirtualTime:
    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self._due: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        waiter = asyncio.get_running_loop().create_future()
        heapq.heappush(self._due, (self.now + seconds, next(self._order), waiter))
        await waiter

    async def run(self, *work: Coroutine[Any, Any, Any]) -> list[Any]:
        """Run all to their end, moving time on whenever nobody can go on without."""
        tasks = [asyncio.ensure_future(w) for w in work]
        while not all(task.done() for task in tasks):
            for _ in range(SETTLE):
                await asyncio.sleep(0)
            if self._due and not all(task.done() for task in tasks):
                self.now, _, waiter = heapq.heappop(self._due)
                if not waiter.done():
                    waiter.set_result(None)
        return [task.result() for task in tasks]
