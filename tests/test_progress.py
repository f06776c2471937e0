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

    def at(
        self, seconds: float, *, done: int, asked: int, failed: int = 0, waiting: str | None = None
    ) -> str:
        self.now = seconds
        before = len(self.text.getvalue())
        progress = Progress(total=100, done=done, asked=asked, failed=failed, waiting=waiting)
        self.shown.progress("m", progress)
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


def test_few_replies_are_no_rate() -> None:
    told = Told()
    told.at(0.0, done=1, asked=1)
    assert told.at(50.0, done=3, asked=3) == "m: 3 of 100 replies"
    assert told.at(55.0, done=10, asked=10) == "m: 10 of 100 replies"
    assert told.at(110.0, done=12, asked=12) == (
        "m: 12 of 100 replies, 6.0 replies/min, about 14 min 40 s left"
    )


def test_a_slow_model_has_a_rate_after_a_minute() -> None:
    told = Told()
    told.at(0.0, done=1, asked=1)
    assert told.at(100.0, done=5, asked=5) == "m: 5 of 100 replies"
    assert "3.0 replies/min" in told.at(120.0, done=7, asked=7)


def test_a_run_that_fails_has_no_time_left() -> None:
    told = Told()
    told.at(0.0, done=0, asked=0, failed=1)
    assert told.at(60.0, done=0, asked=0, failed=1200) == "m: 0 of 100 replies, 1,200 failed"


def test_a_wait_is_told_at_once_and_then_now_and_again() -> None:
    told = Told()
    told.at(0.0, done=0, asked=0)
    why = "waiting 20 s after HTTP 429: \x1b[31mslow"
    line = "m: 0 of 100 replies, waiting 20 s after HTTP 429: \ufffd[31mslow"
    assert told.at(1.0, done=0, asked=0, waiting=why) == line
    assert told.at(20.0, done=0, asked=0, waiting=why) == ""
    assert told.at(31.0, done=0, asked=0, waiting=why) == line
    assert told.at(36.0, done=1, asked=1) == "m: 1 of 100 replies"
