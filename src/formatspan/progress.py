"""How a run's progress is shown: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

from formatspan.report.numbers import count, dollars, duration
from formatspan.report.terminal import plain
from formatspan.runner import Progress

LINE_EVERY_S = 5.0
"""Seconds between lines where there is no terminal."""


class Shown:
    """Shows progress on a console; use it as a context."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._ids: dict[str, TaskID] = {}
        self._began: dict[str, float] = {}
        self._last_line: dict[str, float] = {}

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
        began = self._began.setdefault(model, time.monotonic())
        rate = progress.asked / max(time.monotonic() - began, 1e-3)
        if self.console.is_terminal:
            self._move_bar(model, progress, rate)
        else:
            self._maybe_line(model, progress, rate)

    def _move_bar(self, model: str, progress: Progress, rate: float) -> None:
        if model not in self._ids:
            self._ids[model] = self.bars.add_task(
                plain(model), total=progress.total, completed=progress.done, rate=""
            )
        failed = f", {progress.failed} failed" if progress.failed else ""
        self.bars.update(
            self._ids[model],
            completed=progress.done,
            rate=f"{rate:.1f} replies/s{failed}{_spent(progress)}",
        )

    def _maybe_line(self, model: str, progress: Progress, rate: float) -> None:
        now, over = time.monotonic(), progress.done == progress.total
        if not over and now - self._last_line.get(model, self._began[model]) < LINE_EVERY_S:
            return
        self._last_line[model] = now
        left = (progress.total - progress.done) / max(rate, 1e-3)
        failed = f", {count(progress.failed)} failed" if progress.failed else ""
        self.say(
            f"{model}: {count(progress.done)} of {count(progress.total)} replies{failed}, "
            f"{rate:.1f} replies/s{_spent(progress)}"
            + ("" if over else f", about {duration(left)} left")
        )


def _spent(progress: Progress) -> str:
    return f", {dollars(progress.spent)} spent" if progress.spent else ""
