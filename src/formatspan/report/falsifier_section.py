"""The falsifier's section of a report: its sentences, figure and tables, and their files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from formatspan.atomic import write_text
from formatspan.report.falsifier import (
    FALSIFIER_TABLES,
    FalsifierTable,
    Told,
    left_out,
    rows_of,
    told,
    told_rows,
)
from formatspan.report.figures.table import Drawn, Figure, drawing
from formatspan.report.length import length_sentence
from formatspan.report.tables import Table, to_csv, to_latex, to_markdown
from formatspan.report.view import Row, View

if TYPE_CHECKING:
    import polars as pl

    from formatspan.falsifier.result import Falsification


class Shown(NamedTuple):
    """A table with its rows."""

    table: FalsifierTable
    rows: list[Row]
    """Rows that the page shows."""
    whole: list[Row]
    """Rows that files hold."""


class Section(NamedTuple):
    """What a page shows of the falsifier."""

    told: list[Told]
    figure: Drawn
    tables: list[Shown]
    absent: list[str]
    """A line for each reason why arms, or rows of them, are not there."""
    lengths: list[str]
    """At which length cap the conclusion changes, a sentence a model."""


def section(found: Falsification, view: View) -> Section:
    """The section of a report.

    Raises:
        BackendError: The extra ``report`` is not installed.
    """
    frame = found.ability

    def ability(_: View) -> pl.DataFrame:
        return frame

    figure = Figure(
        ability,
        "Ability apart from format",
        f"Accuracy under each wrapper, from the harshest reading to no reading at all{_over(frame)}"
        ". Lines that meet where the decoder is held to the format, or where nothing is parsed, "
        "show an effect of compliance; lines that stay apart show one of ability. Dashed: chance.",
        "No task has replies in every arm.",
    )
    spec = drawing()(figure.name, frame, view) if len(frame) else None
    return Section(
        told(found),
        Drawn(figure, frame, spec),
        _tables(found),
        list(left_out(found)),
        _lengths(view),
    )


def _lengths(view: View) -> list[str]:
    """What the analysis knows of smaller caps."""
    means = ((m, [c for c in view.of(m, "caps") if c["task"] is None]) for m in view.models)
    said = (length_sentence(model.label, curve) for model, curve in means)
    return [sentence for sentence in said if sentence]


def _over(frame: pl.DataFrame) -> str:
    """Over how many tasks the figure's means go."""
    counts = sorted(set(frame["tasks"].to_list())) if len(frame) else []
    if not counts:
        return ""
    most = counts[-1]
    return f" (mean over the {most} task{'s' if most != 1 else ''} that all arms have)"


def _tables(found: Falsification) -> list[Shown]:
    made = (
        Shown(table, told_rows(found, table.name), rows_of(found, table.name))
        for table in FALSIFIER_TABLES
    )
    return [shown for shown in made if shown.rows]


def write_section(made: Section, folder: Path) -> list[Path]:
    """Write the section's tables in three forms; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table, _, rows in made.tables:
        read = cast(Table, table)  # a title and columns are all that is read of it
        forms = {"csv": to_csv(rows), "tex": to_latex(read, rows), "md": to_markdown(read, rows)}
        for suffix, text in forms.items():
            path = folder / f"falsifier_{table.name}.{suffix}"
            write_text(path, text)
            written.append(path)
    return written
