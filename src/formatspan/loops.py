"""Running a coroutine to its end from ordinary code, also inside a notebook's running loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import TypeVar

T = TypeVar("T")


def run_to_end(coroutine: Coroutine[None, None, T]) -> T:
    """The coroutine's result; where a loop is running already, in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run(coroutine)
    results: list[T] = []
    failures: list[BaseException] = []

    def target() -> None:
        try:
            results.append(_run(coroutine))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=target, name="formatspan-run")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]


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
