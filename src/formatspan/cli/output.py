"""What commands print, and how they end."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from rich.console import Console

    from formatspan.folder import Run

_FILE_WIDTH = 160
_MESSAGE_CHARS = 2_000
"""A value of the user's inside a message may be of any length."""


def print_found(analysis: Any, as_json: bool) -> None:  # noqa: ANN401 - imported late
    """The analysis as tables, or as JSON."""
    if as_json:
        sys.stdout.write(analysis.to_json() + "\n")
        return
    from formatspan.report.terminal import print_analysis

    print_analysis(analysis, new_console())


def print_json(data: dict[str, Any]) -> None:
    """Plain data as JSON, indented."""
    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def print_all_levels(run: Path) -> None:
    """The same replies at every extraction level."""
    from formatspan.analysis import ALL_LEVELS
    from formatspan.analysis import analyze as analyze_run
    from formatspan.report.terminal import print_levels

    found = [analyze_run(run, level=level, inference=False) for level in ALL_LEVELS]
    print_levels(found, new_console())


def print_bill(run: Path) -> None:
    """What the replies cost, and what in who gave them threatens the comparison."""
    from formatspan.folder import RunFolder
    from formatspan.report.costs import print_costs
    from formatspan.report.provenance import provenance
    from formatspan.report.terminal import plain

    found, console = provenance(RunFolder(run).store), new_console()
    print_costs(found.costs, console)
    for line in found.threats:
        text = f"beware: {plain(line)}"
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def outcome(done: Run) -> int:
    """Say where the files are and what is left; returns the exit code."""
    from formatspan.report.terminal import print_outcome

    print_outcome(done, new_console(stderr=True))
    if done.interrupted:
        return 130
    return 0 if done.complete else 1


def new_console(*, stderr: bool = False) -> Console:
    """A console on standard output or error."""
    from rich.console import Console

    console = Console(stderr=stderr)
    # A file or a pipe has no width of its own: leave the tables unfolded.
    return console if console.is_terminal else Console(stderr=stderr, width=_FILE_WIDTH)


def fail(message: str, code: int) -> NoReturn:
    """End with one line that says what was wrong."""
    from formatspan.report.terminal import plain

    line = plain(" ".join(message.split()))
    if len(line) > _MESSAGE_CHARS:
        line = f"{line[:_MESSAGE_CHARS]}…"
    sys.stderr.write(f"error: {line}\n")
    raise SystemExit(code)
