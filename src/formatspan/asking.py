"""Drives a loop of requests to its end: who hears of it, what Ctrl-C does, what is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from formatspan.backends.base import Backend
from formatspan.grid import OpenModel
from formatspan.loops import on_interrupt, run_to_end
from formatspan.runner import Progress


class Listener(Protocol):
    """Hears how a run goes; all methods are called from one thread."""

    def say(self, text: str) -> None:
        """One line about what happens now."""
        ...

    def progress(self, model: str, progress: Progress) -> None:
        """A model's queue moved on."""
        ...


class Silent:
    """A listener that shows nothing."""

    def say(self, text: str) -> None:
        """Nothing."""

    def progress(self, model: str, progress: Progress) -> None:
        """Nothing."""


class Interruptible(Protocol):
    """A loop of requests that can be asked to stop."""

    @property
    def interrupted(self) -> bool:
        """Whether it was."""
        ...

    def interrupt(self) -> None:
        """Ask no more; replies under way are still taken for a while."""
        ...


def ask(
    work: Callable[[], Awaitable[None]],
    loop: Interruptible,
    backends: Mapping[str, Backend],
    listener: Listener,
) -> None:
    """Do ``work``, which asks ``backends`` by way of ``loop``, until it is done or Ctrl-C.

    The backends are closed in any case.
    """
    run_to_end(_ask(work, loop, backends, listener))


async def _ask(
    work: Callable[[], Awaitable[None]],
    loop: Interruptible,
    backends: Mapping[str, Backend],
    listener: Listener,
) -> None:
    try:
        with _interruptible(loop, listener):
            await work()
    except asyncio.CancelledError:
        if not loop.interrupted:
            raise
    except BaseExceptionGroup as group:
        raise _first(group) from None
    finally:
        for backend in backends.values():
            await backend.aclose()


def width(model: OpenModel, backend: Backend) -> int:
    """Requests to keep in flight: the entry's figure, else the backend's."""
    return model.entry.concurrency or backend.capabilities.concurrency


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error of a task group, out of its wrapping."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


@contextmanager
def _interruptible(loop: Interruptible, listener: Listener) -> Iterator[None]:
    """Ctrl-C asks no more and waits a little; a second one gives up what is under way."""
    asking = asyncio.current_task()

    def interrupt() -> None:
        if loop.interrupted and asking is not None:
            asking.cancel()
            return
        listener.say("stopping: waiting for replies under way, Ctrl-C again to give them up")
        loop.interrupt()

    with on_interrupt(interrupt):
        yield
