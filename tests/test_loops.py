"""Coroutines run to their end, and what Ctrl-C does to them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator

import pytest

from formatspan.loops import on_interrupt, run_to_end

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
HANG_S = 60.0
Run = Callable[[Coroutine[None, None, int]], int]


@pytest.fixture(autouse=True)
def as_python_has_it() -> Iterator[None]:
    """Ctrl-C is not ignored, as in what a shell starts in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def _alone(coroutine: Coroutine[None, None, int]) -> int:
    return run_to_end(coroutine)


def _within_a_loop(coroutine: Coroutine[None, None, int]) -> int:
    async def outer() -> int:
        return run_to_end(coroutine)

    return asyncio.run(outer())


both = pytest.mark.parametrize("run", [_alone, _within_a_loop])


async def _ends_by(act: asyncio.Event) -> int:
    await asyncio.wait_for(act.wait(), HANG_S)
    return 7


@both
def test_a_result_and_an_error_come_out(run: Run) -> None:
    async def fails() -> int:
        raise LookupError("so")

    async def works() -> int:
        return 7

    assert run(works()) == 7
    with pytest.raises(LookupError, match="so"):
        run(fails())


@both
def test_ctrl_c_ends_what_does_not_ask_for_it(run: Run) -> None:
    ended = []

    async def waits() -> int:
        asyncio.get_running_loop().call_soon(_press)
        try:
            await asyncio.sleep(HANG_S)
        except asyncio.CancelledError:
            ended.append(True)
            raise
        return 0

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run(waits())
    assert ended == [True]
    assert signal.getsignal(signal.SIGINT) is before


@both
def test_ctrl_c_does_what_is_asked_for_each_time(run: Run) -> None:
    heard: list[int] = []

    async def waits() -> int:
        twice = asyncio.Event()

        def act() -> None:
            heard.append(len(heard))
            asyncio.get_running_loop().call_soon(_press if len(heard) == 1 else twice.set)

        with on_interrupt(act):
            _press()
            return await _ends_by(twice)

    assert run(waits()) == 7
    assert heard == [0, 1]


def test_further_signals_do_the_same() -> None:
    async def waits() -> int:
        done = asyncio.Event()
        with on_interrupt(done.set, signal.SIGTERM):
            os.kill(os.getpid(), signal.SIGTERM)
            return await _ends_by(done)

    before = signal.getsignal(signal.SIGTERM)
    assert run_to_end(waits()) == 7
    assert signal.getsignal(signal.SIGTERM) is before
