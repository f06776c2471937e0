"""What the statistics add to the rows of an analysis, one decoding mode after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from formatspan.analysis.result import TESTED
from formatspan.inference import (
    SEED,
    Brief,
    Inference,
    Kind,
    Names,
    brief,
    close_examples,
    first_draws,
    infer,
    panel_of,
)
from formatspan.study import Study

if TYPE_CHECKING:
    import polars as pl

Rows = list[dict[str, Any]]


class Tested(NamedTuple):
    """Frames of their own, as rows by name, and facts by decoding mode."""

    frames: dict[str, Rows]
    facts: dict[str, Any]


def tested(table: pl.DataFrame, study: Study, models: Rows, pairs: Rows, cells: Rows) -> Tested:
    """Add columns to the rows of models, pairs and cells, and give the other frames."""
    frames: dict[str, Rows] = {name: [] for name in TESTED}
    facts: dict[str, Any] = {}
    for mode in study.decoding:
        found = _inferred(table, study, mode)
        _add(found, _of(mode, models), _of(mode, pairs), _of(mode, cells))
        for name in TESTED:
            frames[name] += [{"mode": mode, **row} for row in getattr(found, name)]
        facts[mode] = found.facts
    return Tested(frames, facts)


def _inferred(table: pl.DataFrame, study: Study, mode: str) -> Inference:
    import polars as pl

    here, names = table.filter(pl.col("mode") == mode), names_of(study)
    kinds = {m.name: Kind(m.family, m.size_b) for m in study.models}
    return infer(panel_of(here, *names), first_draws(here, names), kinds)


def _add(found: Inference, models: Rows, pairs: Rows, cells: Rows) -> None:
    for row in models:
        row |= found.models[row["model"]]
    for row in pairs:
        row |= found.pairs[row["model"], row["task"]]
    for row in cells:
        best = found.best[row["model"], row["task"]]
        row["best_probability"] = best[row["wrapper"]] if row["n"] else None


def add_matched_limits(table: pl.DataFrame, study: Study, matched: Rows) -> None:
    """Add the limits of FSI and PSI to the rows of the matched subset."""
    for mode in study.decoding:
        found = matched_brief(table, study, mode)
        for row in _of(mode, matched):
            row |= found.pairs[row["model"], row["task"]]


def matched_brief(table: pl.DataFrame, study: Study, mode: str) -> Brief:
    """Spans on the examples whose prompt tokens agree over wrappers."""
    import polars as pl

    here, names = table.filter(pl.col("mode") == mode), names_of(study)
    close = close_examples(here, names, study.matched_threshold)
    return brief(panel_of(here, *names).keep(close), SEED)


def names_of(study: Study) -> Names:
    """The axes of the study's panels."""
    parts: tuple[Sequence[Any], ...] = (study.models, study.tasks, study.wrappers)
    return Names(*([entry.name for entry in part] for part in parts))


def _of(mode: str, rows: Rows) -> Rows:
    return [row for row in rows if row["mode"] == mode]
