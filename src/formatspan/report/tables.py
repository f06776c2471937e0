"""Tables of a report as files: CSV with every digit, LaTeX and Markdown to be read."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from formatspan.atomic import write_text
from formatspan.report.escape import latex, markdown, neutral, one_line
from formatspan.report.numbers import MISSING, count, interval
from formatspan.report.view import Row, View

Cell = Callable[[Row], str]


class Column(NamedTuple):
    """A column of a table that is read."""

    head: str
    cell: Cell
    right: bool = True
    wraps: bool = False
    """A sentence rather than a name."""


class Table(NamedTuple):
    """A table of a report; its CSV holds all columns of the same rows."""

    name: str
    title: str
    note: str
    """What its figures are, for who reads the page."""
    rows: Callable[[View], Sequence[Row]]
    columns: tuple[Column, ...]
    empty: str = "There is nothing to show: no model has replies under every wrapper."


def text(key: str, head: str | None = None) -> Column:
    """A name or a note."""
    return Column(head or key, lambda r: MISSING if r[key] is None else str(r[key]), right=False)


def note(cell: Cell) -> Column:
    """What to beware of."""
    return Column("note", cell, right=False, wraps=True)


def number(key: str, head: str | None = None) -> Column:
    """A count."""
    return Column(head or key, lambda r: MISSING if r[key] is None else count(r[key]))


def of(key: str, head: str, form: Callable[[Any], str]) -> Column:
    """A figure in the form of `formatspan.report.numbers`."""
    return Column(head, lambda r: form(r[key]))


def within(key: str, head: str) -> Column:
    """Both limits of a figure, in percentage points."""
    return Column(head, lambda r: interval(r[f"{key}_low"], r[f"{key}_high"]))


def write_tables(tables: Sequence[Table], view: View, folder: Path) -> list[Path]:
    """Write every table that has rows, in three forms; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in tables:
        rows = table.rows(view)
        if not rows:
            continue
        forms = {"csv": to_csv(rows), "tex": to_latex(table, rows), "md": to_markdown(table, rows)}
        for suffix, content in forms.items():
            path = folder / f"{table.name}.{suffix}"
            write_text(path, content)
            written.append(path)
    return written


def to_csv(rows: Sequence[Row]) -> str:
    """Every column of the rows; undefined figures are empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads = list(dict.fromkeys(key for row in rows for key in row))
    writer.writerow([neutral(h) for h in heads])
    writer.writerows([[neutral(row[h]) for h in heads] for row in rows])
    return out.getvalue()


def to_latex(table: Table, rows: Sequence[Row]) -> str:
    """A ``tabular`` for the package ``booktabs``."""
    sides = "".join("r" if c.right else "l" for c in table.columns)
    head = " & ".join(latex(c.head) for c in table.columns)
    body = "".join(
        " & ".join(latex(c.cell(row)) for c in table.columns) + " \\\\\n" for row in rows
    )
    return (
        f"% {one_line(table.title)}\n\\begin{{tabular}}{{{sides}}}\n\\toprule\n"
        f"{head} \\\\\n\\midrule\n{body}\\bottomrule\n\\end{{tabular}}\n"
    )


def to_markdown(table: Table, rows: Sequence[Row]) -> str:
    """A pipe table."""
    heads = [markdown(c.head) for c in table.columns]
    sides = ["--:" if c.right else ":--" for c in table.columns]
    lines = [heads, sides, *([markdown(c.cell(row)) for c in table.columns] for row in rows)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
