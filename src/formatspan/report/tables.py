"""Tables of a report as files: CSV with every digit, LaTeX and Markdown to be read."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from formatspan.report.atomic import write_text
from formatspan.report.escape import latex, markdown, neutral, one_line
from formatspan.report.numbers import MISSING, count, interval, percent, points, probability, ratio
from formatspan.report.view import Row, View

Cell = Callable[[Row], str]


class Column(NamedTuple):
    """A column of a table that is read."""

    head: str
    cell: Cell
    right: bool = True


class Table(NamedTuple):
    """A table of a report; its CSV holds the whole frame of the same rows."""

    name: str
    title: str
    frame: str
    columns: tuple[Column, ...]


def _text(key: str, head: str | None = None) -> Column:
    return Column(head or key, lambda r: MISSING if r[key] is None else str(r[key]), right=False)


def _count(key: str, head: str | None = None) -> Column:
    return Column(head or key, lambda r: MISSING if r[key] is None else count(r[key]))


def _of(key: str, head: str, form: Callable[[Any], str]) -> Column:
    return Column(head, lambda r: form(r[key]))


def _within(key: str, head: str) -> Column:
    return Column(head, lambda r: interval(r[f"{key}_low"], r[f"{key}_high"]))


_MODEL = Column("model", lambda r: r.label, right=False)

TABLES: tuple[Table, ...] = (
    Table(
        "summary",
        "Models: means over tasks; FSI and PSI in percentage points",
        "models",
        (
            _MODEL,
            _count("tasks"),
            _of("accuracy", "accuracy", percent),
            _of("fsi", "FSI", points),
            _within("fsi", "95% max-T"),
            _within("fsi_task_bootstrap", "95% over tasks (paper)"),
            _of("noise_floor", "noise floor", points),
            _of("psi", "PSI", points),
            _within("psi", "95% max-T of PSI"),
            _of("nfsi", "nFSI", ratio),
            _of("cfsi", "cFSI", ratio),
            _of("compliance_share", "compliance", lambda v: percent(v, 0)),
            _text("best_wrapper", "best"),
            _text("worst_wrapper", "worst"),
        ),
    ),
    Table(
        "pairs",
        "Models and tasks; FSI and PSI in percentage points",
        "pairs",
        (
            _MODEL,
            _text("task"),
            _count("n"),
            _of("accuracy", "accuracy", percent),
            _of("chance", "chance", percent),
            _of("fsi", "FSI", points),
            _within("fsi", "95% max-T"),
            _of("noise_floor", "noise floor", points),
            _of("p_holm", "p (Holm)", probability),
            _of("psi", "PSI", points),
            _of("nfsi", "nFSI", ratio),
            _of("cfsi", "cFSI", ratio),
            _of("compliance_part", "compliance part", points),
            _of("conditional_part", "conditional part", points),
            _text("note"),
        ),
    ),
    Table(
        "cells",
        "Cells",
        "cells",
        (
            _MODEL,
            _text("task"),
            _text("wrapper"),
            _count("n"),
            _of("accuracy", "accuracy", percent),
            _of("parseability", "parsed", percent),
            _of("conditional_accuracy", "right if parsed", percent),
            _of("win", "win", ratio),
            _of("best_probability", "probability of being best", ratio),
        ),
    ),
    Table(
        "matched",
        "Models and tasks on the matched subset; FSI and PSI in percentage points",
        "matched",
        (
            _MODEL,
            _text("task"),
            _count("n"),
            _of("accuracy", "accuracy", percent),
            _of("fsi", "FSI", points),
            _within("fsi", "95% max-T"),
            _of("psi", "PSI", points),
        ),
    ),
    Table(
        "statuses",
        "What became of the replies",
        "statuses",
        (
            _MODEL,
            _text("wrapper"),
            _text("status"),
            _count("count"),
            _of("share", "share", percent),
        ),
    ),
    Table(
        "wrapper_pairs",
        "Wrappers compared in pairs; differences in percentage points",
        "wrapper_pairs",
        (
            _MODEL,
            _text("wrapper_a", "wrapper"),
            _text("wrapper_b", "less"),
            _of("difference", "difference", points),
            Column("95%", lambda r: interval(r["low"], r["high"])),
            _of("p_holm", "p (Holm)", probability),
        ),
    ),
)


def write_tables(view: View, folder: Path) -> list[Path]:
    """Write every table that has rows, in three forms; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in TABLES:
        rows = view.rows(table.frame)
        if not rows:
            continue
        forms = {"csv": to_csv(rows), "tex": to_latex(table, rows), "md": to_markdown(table, rows)}
        for suffix, text in forms.items():
            path = folder / f"{table.name}.{suffix}"
            write_text(path, text)
            written.append(path)
    return written


def to_csv(rows: Sequence[Row]) -> str:
    """Every column of the rows; undefined figures are empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads = list(rows[0])
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
