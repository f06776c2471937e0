"""The falsifier's findings on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from formatspan.report.falsifier import (
    FALSIFIER_TABLES,
    FalsifierTable,
    left_out,
    told,
    told_rows,
)
from formatspan.report.numbers import count, duration
from formatspan.report.terminal import plain
from formatspan.report.view import Row

if TYPE_CHECKING:
    from formatspan.asking import Listener
    from formatspan.falsifier.outlook import Price
    from formatspan.falsifier.result import Falsification


class Consent:
    """Shows what missing arms cost, and asks whether they shall be asked for.

    Args:
        listener: Shows the lines.
        yes: Agree without a question. Where nobody can be asked, the answer is no.
    """

    def __init__(self, listener: Listener, *, yes: bool) -> None:
        self._listener, self._yes = listener, yes

    def __call__(self, prices: Sequence[Price]) -> bool:
        """Whether to ask."""
        for line in price_lines(prices):
            self._listener.say(line)
        if self._yes:
            return True
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            self._listener.say("left out; --yes asks for them")
            return False
        sys.stderr.write("Ask for them now? [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")


_LEFT: Mapping[str, Sequence[str]] = {
    "arms": ("tasks", "FSI by scoring alone", "note"),
    "relations": (),
    "policies": ("wrapper",),
}
"""The terminal's tables, with the columns that only files hold: a terminal has no room for them."""


def print_falsification(found: Falsification, console: Console) -> None:
    """The sentences, then arms, relations and repair policies."""
    for said in told(found):
        for line in (said.opening, *(f"- {sentence}" for sentence in said.arms)):
            console.print(plain(line), markup=False, highlight=False)
        console.print()
    tables = {table.name: table for table in FALSIFIER_TABLES}
    for name, leave in _LEFT.items():
        rows = told_rows(found, name)
        if rows:
            console.print(_drawn(tables[name], rows, leave=leave))
        notes = (
            f"{r['arm']}, {r.label}: {r['note']}" for r in rows if name == "arms" and r["note"]
        )
        for note in dict.fromkeys(notes):
            console.print(plain(note), markup=False, highlight=False, style="dim")
    for line in left_out(found):
        console.print(plain(f"left out: {line}"), markup=False, highlight=False, style="dim")


def _drawn(described: FalsifierTable, rows: Sequence[Row], leave: Sequence[str] = ()) -> Table:
    columns = [c for c in described.columns if c.head not in leave]
    table = Table(
        title=Text(described.title),
        title_justify="left",
        title_style="bold",
        header_style="bold",
    )
    for column in columns:
        table.add_column(column.head, justify="right" if column.right else "left")
    for row in rows:
        table.add_row(*(Text(plain(c.cell(row))) for c in columns))
    return table


def price_lines(prices: Iterable[Price]) -> list[str]:
    """What each missing arm costs, a line each."""
    return [
        plain(f"{p.arm}, {p.model}: {count(p.requests)} requests{_time(p)}{_money(p)}")
        for p in prices
    ]


def _time(price: Price) -> str:
    return "" if price.seconds is None else f", about {duration(price.seconds)}"


def _money(price: Price) -> str:
    if price.dollars is None:
        return ""
    return f", about {price.dollars:.2f} US dollars"
