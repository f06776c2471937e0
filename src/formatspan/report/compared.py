"""A comparison of two runs on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from formatspan.counting import counted
from formatspan.report.numbers import percent, points
from formatspan.report.terminal import plain

if TYPE_CHECKING:
    from formatspan.comparison import Comparison


def print_comparison(found: Comparison, console: Console) -> None:
    """What differs, then for every pair of models what can be concluded and the figures."""
    console.print(Text(plain(f"A: {found.a}\nB: {found.b}")))
    for warning in found.warnings:
        console.print(Text(plain(f"note: {warning}")), style="yellow", soft_wrap=True)
    shared = (
        f"{counted(len(found.wrappers), 'common wrapper')}, "
        f"{counted(len(found.tasks), 'common task')}"
    )
    console.print(Text(f"{shared}, extraction level {found.level}"))
    for row in found.models:
        console.rule(Text(plain(_label(row))), align="left")
        console.print(Text(plain(row["conclusion"])), soft_wrap=True)
        if not row["note"]:
            console.print(_figures(row))


def print_worse(worse: Sequence[str], most: float, console: Console) -> None:
    """What failed the gate, or that nothing did."""
    if not worse:
        console.print(f"nothing is worse by more than {most:g} points beyond noise", markup=False)
    for line in worse:
        console.print(Text(plain(f"worse: {line}")), soft_wrap=True)


def _label(row: Mapping[str, Any]) -> str:
    a, b = row["model_a"], row["model_b"]
    names = a if a == b else f"{a} in A, {b} in B"
    return f"{names}" + ("" if row["mode"] == "free" else f" ({row['mode']})")


def _figures(row: Mapping[str, Any]) -> Table:
    title = f"{counted(row['n'], 'common example')}; differences B - A in percentage points"
    table = Table(title=title, title_justify="left", header_style="bold")
    for name in ("", "A", "B", "difference", "95% interval"):
        table.add_column(name, justify="right" if name else "left")
    spoken = (("mean accuracy", "accuracy"), ("FSI", "fsi"), ("PSI", "psi"))
    for title, key in spoken:
        sides = (row[f"{key}_a"], row[f"{key}_b"])
        shown = map(percent if key == "accuracy" else points, sides)
        table.add_row(title, *shown, *_change(row, f"{key}_change"))
    for wrapper in row["wrappers"]:
        sides = (percent(wrapper["accuracy_a"]), percent(wrapper["accuracy_b"]))
        named = Text(plain(f"accuracy, {wrapper['wrapper']}"))
        table.add_row(named, *sides, *_change(wrapper, "change"))
    return table


def _change(row: Mapping[str, Any], key: str) -> tuple[str, str]:
    value, low, high = (100 * row[k] for k in (key, f"{key}_low", f"{key}_high"))
    return f"{value:+.1f}", f"{low:+.1f} to {high:+.1f}"
