"""The report of a run: a page, figures, tables and the analysis itself, as files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from formatspan.atomic import write_text
from formatspan.errors import StorageError
from formatspan.report.costs import write_costs
from formatspan.report.explorer import explorer
from formatspan.report.falsifier_section import section, write_section
from formatspan.report.figures.files import write_figures
from formatspan.report.figures.table import drawn
from formatspan.report.page import Content, page
from formatspan.report.provenance import provenance
from formatspan.report.table_list import TABLES
from formatspan.report.tables import write_tables
from formatspan.report.view import View

if TYPE_CHECKING:
    import polars as pl

    from formatspan.analysis import Analysis
    from formatspan.falsifier.result import Falsification
    from formatspan.records import Level

REPLIES = 3_000
"""Replies that a page embeds unless told otherwise."""


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """What a report wrote."""

    page: Path
    analysis: Path
    figures: tuple[Path, ...]
    tables: tuple[Path, ...]
    embedded: int
    """Replies in the page."""
    replies: int
    """Replies of the run."""


def write_report(
    analysis: Analysis,
    store_path: Path | None,
    out: Path,
    *,
    replies: int = REPLIES,
    figures: bool = True,
    table: pl.DataFrame | None = None,
    falsified: Falsification | None = None,
) -> ReportFiles:
    """Write the report of an analysis.

    Args:
        analysis: What is reported.
        store_path: The run's SQLite file, for the replies; None where there is none.
        out: Folder for the files; made if missing. Files of an earlier report are replaced.
        replies: How many replies the page embeds at most.
        figures: Whether figures are also written as SVG, PNG and PDF.
        table: The scored table behind the analysis, where it is at hand.
        falsified: What the falsifier found; its section is left out without it.

    Raises:
        BackendError: The extra ``report`` is not installed.
        StorageError: A file cannot be written.
        RunError: The store cannot be read.
    """
    view = View(analysis)
    drawings = drawn(view)
    chosen = explorer(store_path, cast("Level", analysis.level), replies, table)
    found = provenance(store_path)
    tested = section(falsified, view) if falsified else None
    html = page(Content(view, found, chosen, drawings, tested))
    _make(out)
    write_text(out / "analysis.json", analysis.to_json() + "\n")
    tables = write_tables(TABLES, view, out / "tables")
    tables += write_costs(found.costs, out / "tables")
    if tested and falsified:
        write_text(out / "falsifier.json", falsified.to_json() + "\n")
        tables += write_section(tested, out / "tables")
        drawings = [*drawings, tested.figure]
    drawings_written = write_figures(drawings, out / "figures") if figures else []
    write_text(out / "report.html", html)
    return ReportFiles(
        page=out / "report.html",
        analysis=out / "analysis.json",
        figures=tuple(drawings_written),
        tables=tuple(tables),
        embedded=len(chosen.replies),
        replies=chosen.total,
    )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{folder}: cannot be created: {error.strerror}") from None
