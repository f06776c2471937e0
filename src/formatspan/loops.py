"""Running a coroutine to its end from ordinary code, also inside a notebook's running loop."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

_LOOK_S = 0.25
"""Seconds between looks of a thread that waits; on Windows, waiting hears no Ctrl-C."""


def run_to_end(coroutine: Coroutine[None, None, T]) -> T:
    """The coroutine's result; where a loop is running already, in a thread of its own.

    Raises:
        KeyboardInterrupt: Ctrl-C ended it; see `on_interrupt` for what else that can do.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run(coroutine)
    bell = _Bell()
    with bell.heard(), ThreadPoolExecutor(1, thread_name_prefix="formatspan-run") as pool:
        done = pool.submit(_run, bell.answering(coroutine))
        while not done.done():
            wait([done], _LOOK_S)
    try:
        return done.result()
    except asyncio.CancelledError:
        if bell.rung:
            raise KeyboardInterrupt from None
        raise


@contextmanager
def on_interrupt(act: Callable[[], None], *further: signal.Signals) -> Iterator[None]:
    """Within the block Ctrl-C calls ``act`` in the running loop, and does nothing else.

    Args:
        act: Called each time.
        further: Signals that do the same; heard by the main thread's loop only.
    """
    loop, bell = asyncio.get_running_loop(), _bell.get()
    if bell is not None:
        before, bell.act = bell.act, act
        try:
            yield
        finally:
            bell.act = before
        return
    with _handled(lambda: loop.call_soon_threadsafe(act), signal.SIGINT, *further):
        yield


class _Bell:
    """Brings Ctrl-C, of which only the main thread hears, to a coroutine in another one."""

    def __init__(self) -> None:
        self.rung = False
        self.act: Callable[[], object] = lambda: None
        """What Ctrl-C does, called in the coroutine's loop."""
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Ring on Ctrl-C within the block."""
        with _handled(self._ring, signal.SIGINT):
            yield

    async def answering(self, coroutine: Coroutine[None, None, T]) -> T:
        """The coroutine's result; Ctrl-C ends it unless it asks for something else."""
        _bell.set(self)
        task = asyncio.ensure_future(coroutine)
        self.act, self._loop = task.cancel, asyncio.get_running_loop()
        if self.rung:
            task.cancel()
        return await task

    def _ring(self) -> None:
        self.rung = True
        if self._loop is not None:
            with suppress(RuntimeError):  # it is closed: all is over
                self._loop.call_soon_threadsafe(lambda: self.act())


_bell: ContextVar[_Bell | None] = ContextVar("_bell", default=None)
"""What tells the running coroutine of Ctrl-C, where the main thread waits for it."""


@contextmanager
def _handled(act: Callable[[], object], *signals: signal.Signals) -> Iterator[None]:
    """Call ``act`` on these signals within the block, where this is the thread that hears them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: act()) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            # None: it was installed by something other than Python, which cannot put it back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _run(coroutine: Coroutine[None, None, T]) -> T:
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(coroutine)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop's, which halves what connections cost; without it asyncio's own."""
    try:
        from uvloop import new_event_loop
    except ImportError:  # Windows has none, and connections cannot be waited for on its usual loop
        return asyncio.SelectorEventLoop
    return new_event_loop
