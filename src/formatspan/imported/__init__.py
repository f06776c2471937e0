"""Tables of rows that were scored elsewhere: read, checked, and analysed like a run's own.

A row is one reply. `REQUIRED` columns must be there, `OPTIONAL` ones may; others are ignored and
named. Both ``parsed`` and ``correct`` empty mean that the request failed: such a row is neither
wrong nor unparsed. What a model lacks of the tasks' examples and wrappers counts as missing too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from formatspan.analysis import Analysis, analysis_of
from formatspan.errors import DataError
from formatspan.imported.columns import (
    OPTIONAL,
    REQUIRED,
    Source,
    checked,
    of_frame,
    of_rows,
    one_each,
)
from formatspan.records import IMPORTED
from formatspan.study import ContractEntry, ModelEntry, Study, TaskEntry, WrapperEntry
from formatspan.table import schema
from formatspan.tasks.readers import read

if TYPE_CHECKING:
    import polars as pl

TABLE_SUFFIXES = (".csv", ".jsonl", ".ndjson", ".parquet")
"""Of files that are taken for tables."""

__all__ = ["OPTIONAL", "REQUIRED", "TABLE_SUFFIXES", "Imported", "analyze_table", "import_table"]


class Imported(NamedTuple):
    """A table in the shape of `formatspan.table`, and what it says of its study."""

    table: pl.DataFrame
    study: Study
    """Names of models, tasks and wrappers; what was asked and how is not known."""
    tasks: dict[str, dict[str, Any]]
    """Records as a run keeps them: chance, rows, source."""
    path: Path
    ignored: tuple[str, ...]
    """Columns that were not used."""


Table = Path | str | Any
"""A file (CSV, JSONL, Parquet), a Polars frame, or rows as mappings."""


def analyze_table(table: Table, *, inference: bool = True) -> Analysis:
    """Analyze rows that were scored elsewhere.

    Args:
        table: A file ending in .csv, .jsonl or .parquet, a Polars frame, or rows as mappings;
            the columns are those of `REQUIRED` and `OPTIONAL`.
        inference: Add intervals, tests, decomposition and ranks; without them it is faster.

    Raises:
        DataError: Names file, line and column of the first mistake.
    """
    return analysis_of_imported(import_table(table), inference=inference)


def analysis_of_imported(found: Imported, *, inference: bool = True) -> Analysis:
    """The analysis of an imported table."""
    analysis = analysis_of(
        found.table, found.study, IMPORTED, found.tasks, found.path, inference=inference
    )
    if found.table["status"].null_count() == len(found.table):
        return replace(analysis, statuses=analysis.statuses.clear())
    return analysis


def import_table(table: Table) -> Imported:
    """Read and check a table, see `analyze_table`.

    Raises:
        DataError: Names file, line and column of the first mistake.
    """
    import polars as pl

    if isinstance(table, str | Path):
        path = Path(table)
        frame, source = _read(path), Source(str(path))
        return _imported(frame, source, path, path.stem, _digest(path))
    source = Source("table")
    if isinstance(table, pl.DataFrame):
        return _imported(of_frame(table, source), source, Path(), "table", None)
    if isinstance(table, Sequence) and all(isinstance(row, Mapping) for row in table):
        frame = of_rows(enumerate(cast("Sequence[Mapping[str, Any]]", table), start=1), source)
        return _imported(frame, source, Path(), "table", None)
    what = type(table).__name__
    raise DataError(f"expected a Polars frame, a file or rows, got {what}", source="table")


def is_table(path: Path) -> bool:
    """Whether ``path`` is a table rather than a run's folder."""
    return path.suffix.lower() in TABLE_SUFFIXES and not path.is_dir()


def _read(path: Path) -> pl.DataFrame:
    import polars as pl

    if path.suffix.lower() != ".parquet" or not path.is_file():
        return of_rows(read(path), Source(str(path)))
    try:
        with path.open("rb") as file:
            frame = pl.read_parquet(file)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"not readable as Parquet: {reason}", source=str(path)) from None
    return of_frame(frame, Source(str(path)))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _imported(
    frame: pl.DataFrame, source: Source, path: Path, name: str, digest: str | None
) -> Imported:
    ignored = tuple(c for c in frame.columns if c not in (*REQUIRED, *OPTIONAL, "line"))
    rows = checked(frame, source)
    chances = one_each(rows, ("task",), "chance", source)
    families = one_each(rows, ("model",), "family", source)
    sizes = one_each(rows, ("model",), "size_b", source)
    one_each(rows, ("task", "example"), "cluster", source)
    names = {axis: rows[axis].unique(maintain_order=True).to_list() for axis in _AXES}
    study = Study.model_construct(
        name=name,
        models=tuple(
            ModelEntry.model_construct(
                model=m, name=m, family=families.get((m,)), size_b=sizes.get((m,))
            )
            for m in names["model"]
        ),
        tasks=tuple(TaskEntry.model_construct(name=t) for t in names["task"]),
        wrappers=tuple(_wrapper(w) for w in names["wrapper"]),
        examples=_most_examples(rows),
        seeds=rows["seed"].n_unique(),
        decoding=tuple(names["mode"]),
    )
    tasks = {t: _task_record(rows, t, chances.get((t,)), source, digest) for t in names["task"]}
    return Imported(_completed(rows), study, tasks, path, ignored)


_AXES = ("model", "task", "wrapper", "mode")


def _wrapper(name: str) -> WrapperEntry:
    return WrapperEntry.model_construct(name=name, messages=(), contract=ContractEntry())


def _most_examples(rows: pl.DataFrame) -> int:
    counts = rows.group_by("task").n_unique()["example"].to_list()
    return int(max(counts))


def _task_record(
    rows: pl.DataFrame, task: str, chance: float | None, source: Source, digest: str | None
) -> dict[str, Any]:
    import polars as pl

    unknown = "the table has no chance for it: taken as 0"
    return {
        "kind": None,
        "chance": chance or 0.0,
        "rows": rows.filter(pl.col("task") == task)["example"].n_unique(),
        "source": source.name,
        "revision": None,
        "sha256": digest,
        "notes": [unknown] if chance is None else [],
    }


def _completed(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows in the shape of `formatspan.table`, with a row for every place that has none."""
    import polars as pl

    places = rows.select("model", "mode").unique()
    places = places.join(rows.select("task", "example").unique(), how="cross")
    places = places.join(rows.select("wrapper").unique(), how="cross")
    key = ["model", "mode", "task", "example", "wrapper"]
    absent = places.join(rows, on=key, how="anti")
    absent = absent.with_columns(seed=pl.lit(0, pl.Int64), copy=pl.lit(value=False))
    whole = pl.concat([rows, absent], how="diagonal")
    shared = pl.col("cluster").drop_nulls().first().over("task", "example")
    whole = whole.with_columns(cluster=pl.coalesce(shared, pl.col("example")))
    wanted = schema()
    made = [
        (pl.col(c) if c in whole.columns else pl.lit(None)).cast(t).alias(c)
        for c, t in wanted.items()
    ]
    return whole.select(made).sort("model", "task", "example", "wrapper", "mode", "seed")
