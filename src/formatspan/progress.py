"""How a run's progress is shown: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskID,
    TextColumn,
)
from rich.progress import Progress as Bars

from formatspan.report.numbers import count, dollars, duration
from formatspan.report.terminal import plain
from formatspan.runner import Progress

REFRESHES = 4
"""Times a second that bars are drawn; in the milliseconds that it takes nothing is asked."""
LINE_EVERY_S = 5.0
"""Seconds between lines where there is no terminal."""
WAIT_LINE_EVERY_S = 30.0
"""The same while a model goes on waiting."""
SETTLED_S = 2.0
"""Seconds that a rate is measured over before it is told; the first replies come in a burst."""
TOLD_FROM = 10
"""Replies in that time before it is told: fewer say little of those to come."""
SLOW_S, SLOW_FROM = 60.0, 5
"""Seconds after which fewer will do."""


@dataclass
class _Pace:
    """How fast a model's replies come; its first ones only start the clock."""

    began: float
    asked: int
    now: float
    last_line: float
    waited: bool = False
    """Whether the model waited when it was last heard of."""

    def rate(self, progress: Progress) -> float | None:
        """Replies a second, or None while that is not known."""
        seconds, replies = self.now - self.began, progress.asked - self.asked
        enough = replies >= (SLOW_FROM if seconds >= SLOW_S else TOLD_FROM)
        return replies / seconds if seconds >= SETTLED_S and enough else None

    def words(self, progress: Progress) -> str:
        """Failures, rate and time left, as far as they are known."""
        rate, left = self.rate(progress), progress.total - progress.done
        parts = [f"{count(progress.failed)} failed"] if progress.failed else []
        if rate is not None:
            parts.append(f"{rate:.1f} replies/s" if rate >= 1 else f"{rate * 60:.1f} replies/min")
            parts += [f"about {duration(left / rate)} left"] if left else []
        parts += [f"{dollars(progress.spent)} spent"] if progress.spent else []
        parts += [plain(progress.waiting)] if progress.waiting else []
        return ", ".join(parts)


class Shown:
    """Shows progress on a console; use it as a context.

    Args:
        console: Where to.
        clock: Seconds from any start.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self.console, self.clock = console, clock
        self.bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[words]}", markup=False),
            console=console,
            refresh_per_second=REFRESHES,
            disable=not console.is_terminal,
        )
        self._ids: dict[str, TaskID] = {}
        self._paces: dict[str, _Pace] = {}

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.bars.stop()

    def say(self, text: str) -> None:
        """One line above the bar."""
        self.console.print(plain(text), markup=False, highlight=False, soft_wrap=True)

    def progress(self, model: str, progress: Progress) -> None:
        """A model's queue moved on."""
        now = self.clock()
        pace = self._paces.setdefault(model, _Pace(now, progress.asked, now, now))
        pace.now = now
        if self.console.is_terminal:
            self._move_bar(model, progress, pace)
        else:
            self._maybe_line(model, progress, pace)

    def _move_bar(self, model: str, progress: Progress, pace: _Pace) -> None:
        if model not in self._ids:
            self._ids[model] = self.bars.add_task(
                plain(model), total=progress.total, completed=progress.done, words=""
            )
        words = pace.words(progress)
        self.bars.update(self._ids[model], completed=progress.done, words=words)

    def _maybe_line(self, model: str, progress: Progress, pace: _Pace) -> None:
        over = progress.done == progress.total
        waits, waited = progress.waiting is not None, pace.waited
        pace.waited = waits
        every_s = WAIT_LINE_EVERY_S if waits and waited else LINE_EVERY_S
        at_once = over or (waits and not waited)
        if not at_once and pace.now - pace.last_line < every_s:
            return
        pace.last_line = pace.now
        words = pace.words(progress)
        self.say(
            f"{model}: {count(progress.done)} of {count(progress.total)} replies"
            + (f", {words}" if words else "")
        )
