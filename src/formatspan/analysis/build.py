"""From a run to its analysis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from formatspan.analysis.caps import cap_frames
from formatspan.analysis.grids import grids
from formatspan.analysis.levels import level_rows
from formatspan.analysis.result import Analysis
from formatspan.analysis.rows import cell_rows, model_rows, pair_row, spread_rows, status_rows
from formatspan.analysis.tested import add_matched_limits, tested
from formatspan.folder import Run, RunFolder
from formatspan.records import Level
from formatspan.store import Store
from formatspan.study import Study
from formatspan.table import ALL_LEVELS, checked_level, scored, study_of

if TYPE_CHECKING:
    import polars as pl


def analyze(
    run: Run | Path | str,
    *,
    level: Level | None = None,
    inference: bool = True,
    levels: bool = False,
    caps: bool = False,
) -> Analysis:
    """Analyze a finished or partial run.

    Args:
        run: A run or its folder.
        level: Extraction level; the study's own by default.
        inference: Add intervals, tests, decomposition and ranks; without them it is faster.
        levels: Add the frame ``levels``: FSI and PSI at every level, which scores all again.
        caps: Add the frames ``caps`` and ``lengths``, which cuts replies and scores them again.

    Raises:
        RunError: The folder is not a run, or its study was never planned.
        StudyError: There is no such level.
    """
    return analyzed(run, level=level, inference=inference, levels=levels, caps=caps).analysis


class Analyzed(NamedTuple):
    """An analysis with the scored table behind it, for what is to be said of single replies."""

    analysis: Analysis
    table: pl.DataFrame


def analyzed(
    run: Run | Path | str,
    *,
    level: Level | None = None,
    inference: bool = True,
    levels: bool = False,
    caps: bool = False,
) -> Analyzed:
    """As :func:`analyze`, with the table, so that nobody has to score the run again."""
    folder = RunFolder.of(run)
    checked_level(level)
    with Store.read(folder.store) as store:
        study = study_of(store)
        chosen: Level = level or study.level
        table = scored(store, study, chosen)
        found = analysis_of(
            table, study, chosen, store.records("tasks"), folder.path, inference=inference
        )
        more: dict[str, Any] = cap_frames(store, study, chosen, table) if caps else {}
        if levels:
            more["levels"] = _levels(store, study, chosen, table)
    return Analyzed(replace(found, **more), table)


def _levels(store: Store, study: Study, chosen: Level, table: pl.DataFrame) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for level in ALL_LEVELS:
        here = table if level == chosen else scored(store, study, level)
        rows += level_rows(here, study, level)
    order = {model.name: i for i, model in enumerate(study.models)}
    return _frame(sorted(rows, key=lambda row: order[row["model"]]))


def analysis_of(
    table: pl.DataFrame,
    study: Study,
    level: str,
    tasks: Mapping[str, Mapping[str, Any]],
    run: Path,
    *,
    inference: bool = True,
) -> Analysis:
    """The analysis of a scored table; see `formatspan.table` for its columns."""
    counted = list(grids(table, study))
    pairs = [pair_row(g, tasks[g.task]["chance"]) for g in counted]
    matched = [pair_row(g.matched(study), tasks[g.task]["chance"]) for g in counted]
    cells = [row for g in counted for row in cell_rows(g, tasks[g.task]["chance"])]
    models = list(model_rows(cells, pairs, study))
    more: dict[str, Any] = {}
    if inference:
        found = tested(table, study, models, pairs, cells)
        more = {name: _frame(rows) for name, rows in found.frames.items()} | {"facts": found.facts}
        add_matched_limits(table, study, matched)
    return Analysis(
        run=run,
        study=study,
        level=level,
        models=_frame(models),
        pairs=_frame(pairs),
        cells=_frame(cells),
        statuses=_frame(status_rows(table, study)),
        matched=_frame(matched),
        tasks=tasks,
        spreads=_frame([row for g in counted for row in spread_rows(g)]),
        **more,
    )


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(rows, infer_schema_length=None)
