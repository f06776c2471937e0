"""What progress says, by a clock that the test moves."""

from __future__ import annotations

import io

from rich.console import Console

from formatspan.progress import Shown
from formatspan.runner import Progress


class Told:
    """A listener with its clock; ``at`` moves both and returns the new lines."""

    def __init__(self) -> None:
        self.now, self.text = 0.0, io.StringIO()
        self.shown = Shown(Console(file=self.text, width=160), clock=lambda: self.now)

    def at(self, seconds: float, *, done: int, asked: int, failed: int = 0) -> str:
        self.now = seconds
        before = len(self.text.getvalue())
        self.shown.progress("m", Progress(total=100, done=done, asked=asked, failed=failed))
        return self.text.getvalue()[before:].strip()


def test_a_burst_at_the_start_is_no_rate() -> None:
    told = Told()
    assert told.at(10.0, done=60, asked=10) == ""
    assert told.at(15.0, done=70, asked=20) == (
        "m: 70 of 100 replies, 2.0 replies/s, about 15 s left"
    )


def test_the_rate_is_not_told_before_it_is_known() -> None:
    told = Told()
    told.at(0.0, done=1, asked=1)
    assert told.at(0.5, done=100, asked=100) == "m: 100 of 100 replies"


def test_a_run_that_fails_has_no_time_left() -> None:
    told = Told()
    told.at(0.0, done=0, asked=0, failed=1)
    assert told.at(60.0, done=0, asked=0, failed=1200) == "m: 0 of 100 replies, 1,200 failed"
