"""Commands that read a run: no model is asked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formatspan.cli.options import AsJson, Level, RunOrTable, count, model_pairs, real
from formatspan.cli.output import new_console, print_all_levels, print_bill, print_found
from formatspan.counting import counted
from formatspan.errors import StudyError
from formatspan.records import IMPORTED

if TYPE_CHECKING:
    import polars as pl

    from formatspan.analysis import Analysis


def analyze(
    run: RunOrTable,
    level: Level = None,
    levels: Annotated[bool, typer.Option("--levels", help="Add a table of all levels.")] = False,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Add intervals and tests, which take seconds.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print a run's table again, at any extraction level; no model is asked."""
    found = analysis_at(run, level, inference=intervals)
    print_found(found, as_json)
    if as_json or found.level == IMPORTED:
        return
    if levels:
        print_all_levels(run)
    print_bill(run)


def report(
    run: RunOrTable,
    level: Level = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the files; by default RUN/report, TABLE-report.")
    ] = None,
    replies: Annotated[
        str, typer.Option(help="Most replies that the page embeds.", metavar="N")
    ] = "3000",
    figures: Annotated[bool, typer.Option(help="Also write SVG, PNG and PDF files.")] = True,
) -> None:
    """Write a page to look at, figures, tables and analysis.json of a run."""
    from formatspan.falsifier.command import falsify as falsify_run
    from formatspan.folder import RunFolder
    from formatspan.imported import is_table
    from formatspan.paths import writable_folder
    from formatspan.report.write import write_report
    from formatspan.store import Store

    most, store = count("--replies", replies), RunFolder(run).store
    imported = is_table(run)
    target = out or (run.with_name(f"{run.stem}-report") if imported else run / "report")
    if not imported:
        Store.read(store).close()  # no folder is made where there is no run
    writable_folder(target, "--out")
    analysis, table = _in_full(run, level)
    testable = not imported and "free" in analysis.study.decoding
    files = write_report(
        analysis,
        None if imported else store,
        target,
        replies=most,
        figures=figures,
        table=table,
        falsified=falsify_run(run) if testable else None,
    )
    typer.echo(f"{files.page}")


def compare(
    a: Annotated[Path, typer.Argument(help="Before: a run's folder or a table.", metavar="A")],
    b: Annotated[Path, typer.Argument(help="After, likewise.", metavar="B")],
    pair: Annotated[
        list[str] | None,
        typer.Option(
            "--pair", metavar="NAME=NAME", help="A model of A and the model of B to compare."
        ),
    ] = None,
    dropped: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A model, task, wrapper or mode of A that B lacks on purpose, or "
            "'examples'; repeat.",
        ),
    ] = None,
    level: Level = None,
    fail_if_worse: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            parser=real("--fail-if-worse", 0),
            help="Exit code 1 if accuracy fell or FSI rose by more than this, beyond noise, or "
            "something of A is missing in B.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two runs on the tasks, examples and wrappers that both have."""
    from formatspan.comparison import compare as compare_runs
    from formatspan.report.compared import print_comparison, print_worse

    found = compare_runs(
        a,
        b,
        level=level,  # type: ignore[arg-type]
        pairs=model_pairs(pair or []),
        dropped=dropped or (),
    )
    if as_json:
        sys.stdout.write(found.to_json() + "\n")
    else:
        print_comparison(found, new_console())
    if fail_if_worse is not None:
        worse = found.worse(fail_if_worse)
        print_worse(worse, fail_if_worse, new_console(stderr=True))
        raise typer.Exit(1 if worse else 0)


def replies(
    run: Annotated[Path, typer.Argument(help="The run's folder.", metavar="RUN")],
    filter_: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            help="model=, task=, wrapper=, mode=, status=, correct, flips; commas join, "
            'quotes keep: model="a,b".',
        ),
    ] = None,
    level: Level = None,
    limit: Annotated[str, typer.Option(help="Most replies printed.", metavar="N")] = "50",
    parquet: Annotated[Path | None, typer.Option(help="Write all to this file instead.")] = None,
) -> None:
    """Print raw replies with what was made of them, or write them as Parquet."""
    from formatspan.folder import RunFolder
    from formatspan.paths import writable_file
    from formatspan.report.replies import ReplyFilter, write_parquet
    from formatspan.report.replies import replies as replies_of
    from formatspan.report.terminal import print_replies

    chosen, most = ReplyFilter.parse(filter_ or []), count("--limit", limit)
    if parquet is not None:
        writable_file(parquet, "--parquet")
    frame = replies_of(RunFolder(run).store, chosen, level=level)  # type: ignore[arg-type]
    if parquet is not None:
        write_parquet(frame, parquet)
        typer.echo(f"{parquet}: {counted(len(frame), 'reply', 'replies')}")
        return
    print_replies(frame, most, new_console())


def analysis_at(run: Path, level: str | None, *, inference: bool = True) -> Analysis:
    """The analysis of a run, or of a table scored elsewhere."""
    from formatspan.imported import is_table

    if is_table(run):
        return _of_table(run, level, inference=inference)
    from formatspan.analysis import analyze as analyze_run

    return analyze_run(run, level=level, inference=inference)  # type: ignore[arg-type]


def _in_full(run: Path, level: str | None) -> tuple[Analysis, pl.DataFrame | None]:
    """As :func:`analysis_at`, replies read again at levels and caps, with a run's scored table."""
    from formatspan.imported import is_table

    if is_table(run):
        return _of_table(run, level), None
    from formatspan.analysis import analyzed

    return analyzed(run, level=level, levels=True, caps=True)  # type: ignore[arg-type]


def _of_table(path: Path, level: str | None, *, inference: bool = True) -> Analysis:
    from formatspan.imported import analysis_of_imported, import_table

    if level is not None:
        raise StudyError(f"--level {level}: a table of scores has no replies to read again")
    found = import_table(path)
    if found.ignored:
        typer.echo(f"columns not used: {', '.join(found.ignored)}", err=True)
    return analysis_of_imported(found, inference=inference)
