"""The analysis of a run: frozen frames and figures, a pure function of its store.

Nothing here draws or asks a model. The same store gives the same analysis, byte for byte,
whether the run was interrupted or not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from formatspan._version import __version__
from formatspan.errors import RunError, StudyError
from formatspan.folder import Run, RunFolder
from formatspan.records import EXTRACTOR_VERSION, LEVELS, Level, Status
from formatspan.stats.indices import (
    Cells,
    Indices,
    bootstrap_over_tasks,
    indices,
    token_spread,
    wins,
)
from formatspan.store import Store
from formatspan.study import Study
from formatspan.table import scored

if TYPE_CHECKING:
    import polars as pl

SCHEMA_VERSION = 1
"""Of the JSON form; raised when a key changes its meaning."""
FEW_EXAMPLES = 20
"""Rows with fewer indexed examples are flagged."""
BOOTSTRAP_SEED = 0
ALL_LEVELS: tuple[Level, ...] = (*LEVELS, "paper")
"""Every rule by which replies can be read, the nested ones first."""


@dataclass(frozen=True)
class Analysis:
    """What a run shows at one extraction level. Rates and spans are fractions of 1."""

    run: Path
    study: Study
    level: str
    """A `Level`, or ``IMPORTED`` for a table that was scored elsewhere."""
    models: pl.DataFrame
    """A row a model and decoding mode: means over tasks, best and worst wrapper."""
    pairs: pl.DataFrame
    """A row a model, decoding mode and task: FSI, PSI and their kin, coverage."""
    cells: pl.DataFrame
    """A row a model, decoding mode, task and wrapper: n, A, P, C, win, coverage."""
    statuses: pl.DataFrame
    """A row a model, decoding mode, wrapper and status: count and share of the replies."""
    matched: pl.DataFrame
    """As ``pairs``, on examples whose prompt tokens agree over wrappers."""
    tasks: Mapping[str, Mapping[str, Any]]
    """Source, revision, hash and chance of every task."""
    spreads: pl.DataFrame
    """A row a model, mode, task and example: Δtok, the relative spread of prompt tokens."""
    wrapper_pairs: pl.DataFrame | None = None
    """A row a model, mode and two wrappers: difference of accuracy, interval, tests."""
    ranks: pl.DataFrame | None = None
    """A row a model, mode and wrapper: rank among the models."""
    reversals: pl.DataFrame | None = None
    """A row a mode and two models: whether their order reverses over wrappers."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Regression of accuracy on parseability, contrast between models; by decoding mode."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: no NaN, undefined figures are null."""
        frames = ("models", "pairs", "cells", "statuses", "matched")
        tested = ("wrapper_pairs", "ranks", "reversals")
        return {
            "schema_version": SCHEMA_VERSION,
            "formatspan_version": __version__,
            "extractor_version": EXTRACTOR_VERSION,
            "study": self.study.name,
            "level": self.level,
            "tasks": dict(self.tasks),
            **{name: getattr(self, name).to_dicts() for name in frames},
            **{n: f.to_dicts() for n in tested if (f := getattr(self, n)) is not None},
            **({"facts": dict(self.facts)} if self.facts else {}),
        }

    def to_json(self) -> str:
        """The analysis as JSON, indented."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def analyze(
    run: Run | Path | str, *, level: Level | None = None, inference: bool = True
) -> Analysis:
    """Analyze a finished or partial run.

    Args:
        run: A run or its folder.
        level: Extraction level; the study's own by default.
        inference: Add intervals, tests, decomposition and ranks; without them it is faster.

    Raises:
        RunError: The folder is not a run, or its study was never planned.
        StudyError: There is no such level.
    """
    folder = RunFolder(run.folder if isinstance(run, Run) else Path(run))
    if level is not None and level not in ALL_LEVELS:
        raise StudyError(f"level {level!r}: expected {', '.join(ALL_LEVELS)}")
    with Store.read(folder.store) as store:
        planned = store.meta("study")
        if planned is None:
            raise RunError(f"{folder.path}: the run was never planned: run its study first")
        study = Study.model_validate_json(planned)
        chosen: Level = level or study.level
        tasks = store.records("tasks")
        table = scored(store, study, chosen)
    return analysis_of(table, study, chosen, tasks, folder.path, inference=inference)


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
    import polars as pl

    grids = list(_grids(table, study))
    pairs = [_pair_row(g, tasks[g.task]["chance"]) for g in grids]
    matched = [_pair_row(g.matched(study), tasks[g.task]["chance"]) for g in grids]
    cells = [row for g in grids for row in _cell_rows(g, tasks[g.task]["chance"])]
    models = list(_model_rows(cells, pairs, study))
    statuses = _status_rows(table, study)
    tested = _tested(table, study, models, pairs, cells) if inference else {}

    def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
        return pl.DataFrame(rows, infer_schema_length=None)

    return Analysis(
        run=run,
        study=study,
        level=level,
        models=frame(models),
        pairs=frame(pairs),
        cells=frame(cells),
        statuses=frame(statuses),
        matched=frame(matched),
        tasks=tasks,
        spreads=frame([row for g in grids for row in _spread_rows(g)]),
        **tested,
    )


def _tested(
    table: pl.DataFrame,
    study: Study,
    models: list[dict[str, Any]],
    pairs: list[dict[str, Any]],
    cells: list[dict[str, Any]],
) -> dict[str, Any]:
    """Adds what the statistics say to the rows, and gives the frames of their own."""
    import polars as pl

    from formatspan.inference import infer, panel_of

    names = [[e.name for e in part] for part in (study.models, study.tasks, study.wrappers)]
    frames: dict[str, list[dict[str, Any]]] = {n: [] for n in _TESTED}
    facts = {}
    for mode in study.decoding:
        found = infer(panel_of(table.filter(pl.col("mode") == mode), *names))
        for row in (r for r in models if r["mode"] == mode):
            row |= found.models[row["model"]]
        for row in (r for r in pairs if r["mode"] == mode):
            row |= found.pairs[row["model"], row["task"]]
        for row in (r for r in cells if r["mode"] == mode):
            best = found.best[row["model"], row["task"]]
            row["best_probability"] = best[row["wrapper"]] if row["n"] else None
        for name in _TESTED:
            frames[name] += [{"mode": mode, **r} for r in getattr(found, name)]
        facts[mode] = found.facts
    made = {n: pl.DataFrame(rows, infer_schema_length=None) for n, rows in frames.items()}
    return {**made, "facts": facts}


_TESTED = ("wrapper_pairs", "ranks", "reversals")


def _spread_rows(grid: _Grid) -> Iterator[dict[str, Any]]:
    where = {"model": grid.model, "mode": grid.mode, "task": grid.task}
    with np.errstate(invalid="ignore"):
        spreads = token_spread(grid.tokens)
    yield from ({**where, "spread": float(s)} for s in spreads[~np.isnan(spreads)])


class _Grid(NamedTuple):
    """The replies of one model on one task in one decoding mode."""

    model: str
    mode: str
    task: str
    wrappers: tuple[str, ...]
    cells: Cells
    tokens: NDArray[np.float64]
    """Mean prompt tokens, examples × wrappers; NaN where not counted."""

    def matched(self, study: Study) -> _Grid:
        """The examples whose prompt tokens agree over wrappers."""
        with np.errstate(invalid="ignore"):
            close = token_spread(self.tokens) <= study.matched_threshold
        return self._replace(cells=self.cells.take(close), tokens=self.tokens[close])


def _grids(table: pl.DataFrame, study: Study) -> Iterator[_Grid]:
    """Every model, mode and task in the study's order; copies are left out."""
    import polars as pl

    counted = table.filter(~pl.col("copy")).select(
        "model", "mode", "task", "example", "wrapper", "correct", "parsed", "prompt_tokens"
    )
    parts = counted.partition_by("model", "mode", "task", as_dict=True)
    wrappers = tuple(w.name for w in study.wrappers)
    for model in study.models:
        for mode in study.decoding:
            for task in study.tasks:
                part = parts.get((model.name, mode, task.name))
                if part is not None:
                    cells, tokens = _cells(part, wrappers)
                    yield _Grid(model.name, mode, task.name, wrappers, cells, tokens)


def _cells(part: pl.DataFrame, wrappers: Sequence[str]) -> tuple[Cells, NDArray[np.float64]]:
    codes = {name: i for i, name in enumerate(wrappers)}
    column = np.array([codes[w] for w in part["wrapper"].cast(str)], dtype=np.int64)
    row = part["example"].rank("dense").to_numpy().astype(np.int64) - 1
    shape = (int(row.max()) + 1, len(wrappers))
    place = row * len(wrappers) + column

    def total(values: NDArray[Any] | None = None) -> NDArray[np.float64]:
        flat = np.bincount(place, weights=values, minlength=shape[0] * shape[1])
        return np.asarray(flat, dtype=np.float64).reshape(shape)

    answered = part["correct"].is_not_null().to_numpy()
    correct = part["correct"].fill_null(value=False).to_numpy()
    parsed = part["parsed"].fill_null(value=False).to_numpy()
    counts = [total(v).astype(np.int64) for v in (correct, parsed, answered, None)]
    counted = part["prompt_tokens"].is_not_null().to_numpy()
    with np.errstate(invalid="ignore"):
        tokens = total(part["prompt_tokens"].fill_null(0).to_numpy()) / total(counted)
    return Cells(*counts), tokens


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _pair_row(grid: _Grid, chance: float) -> dict[str, Any]:
    cells = grid.cells
    found = indices(cells, chance)
    row: dict[str, Any] = {
        "model": grid.model,
        "mode": grid.mode,
        "task": grid.task,
        "wrappers": len(grid.wrappers),
        "n": found.n if found else 0,
        "examples": len(cells.correct),
        "requested": int(cells.requested.sum()),
        "replies": int(cells.replies.sum()),
        "chance": chance,
    }
    keys = ("fsi", "psi", "nfsi", "rfsi", "cfsi", "clipped")
    row |= {key: getattr(found, key) if found else None for key in keys}
    row |= {
        "accuracy": float(found.accuracy.mean()) if found else None,
        "fsi_if_failures_low": found.bounds.low if found else None,
        "fsi_if_failures_high": found.bounds.high if found else None,
        "note": _note(grid, found),
    }
    return row


def _note(grid: _Grid, found: Indices | None) -> str | None:
    """Why a row has no figures, or what to beware of."""
    if found is None:
        cells = grid.cells
        if len(cells.correct) == 0:
            return "no examples"
        without = [
            w for w, r in zip(grid.wrappers, cells.replies.sum(axis=0), strict=True) if not r
        ]
        if without:
            return f"not indexed: no replies under {', '.join(without)}"
        return "not indexed: no example has replies under every wrapper"
    return f"fewer than {FEW_EXAMPLES} examples" if found.n < FEW_EXAMPLES else None


def _cell_rows(grid: _Grid, chance: float) -> Iterator[dict[str, Any]]:
    found = indices(grid.cells, chance)
    won = wins(found.accuracy) if found else None
    for i, wrapper in enumerate(grid.wrappers):
        yield {
            "model": grid.model,
            "mode": grid.mode,
            "task": grid.task,
            "wrapper": wrapper,
            "n": found.n if found else 0,
            "accuracy": float(found.accuracy[i]) if found else None,
            "parseability": float(found.parseability[i]) if found else None,
            "conditional_accuracy": _number(found.conditional[i]) if found else None,
            "win": float(won[i]) if won is not None else None,
            "requested": int(grid.cells.requested[:, i].sum()),
            "replies": int(grid.cells.replies[:, i].sum()),
            "prompt_tokens": _number(_mean(grid.tokens[:, i])),
        }


def _mean(values: NDArray[np.float64]) -> float:
    kept = values[~np.isnan(values)]
    return float(kept.mean()) if len(kept) else math.nan


def _model_rows(
    cells: Sequence[dict[str, Any]], pairs: Sequence[dict[str, Any]], study: Study
) -> Iterator[dict[str, Any]]:
    for model in study.models:
        for mode in study.decoding:
            here = [p for p in pairs if (p["model"], p["mode"]) == (model.name, mode)]
            if here:
                mine = [c for c in cells if (c["model"], c["mode"]) == (model.name, mode)]
                yield _model_row(model.name, mode, here, mine, study)


def _model_row(
    name: str,
    mode: str,
    pairs: Sequence[dict[str, Any]],
    cells: Sequence[dict[str, Any]],
    study: Study,
) -> dict[str, Any]:
    indexed = [p for p in pairs if p["n"]]
    entry = next(m for m in study.models if m.name == name)
    row: dict[str, Any] = {"model": name, "mode": mode, "tasks": len(indexed)}
    row |= {"family": entry.family, "size_b": entry.size_b}
    for key in ("accuracy", "fsi", "psi", "nfsi", "cfsi"):
        row[key] = float(np.mean([p[key] for p in indexed])) if indexed else None
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    interval = bootstrap_over_tasks(np.array([p["fsi"] for p in indexed]), rng)
    row["fsi_task_bootstrap_low"] = interval.low if interval else None
    row["fsi_task_bootstrap_high"] = interval.high if interval else None
    by_wrapper = _by_wrapper(cells, study)
    row["wrapper_low"] = min(by_wrapper.values(), default=None)
    row["wrapper_high"] = max(by_wrapper.values(), default=None)
    row["best_wrapper"] = _names(by_wrapper, row["wrapper_high"])
    row["worst_wrapper"] = _names(by_wrapper, row["wrapper_low"])
    row["requested"] = sum(p["requested"] for p in pairs)
    row["replies"] = sum(p["replies"] for p in pairs)
    missing = [p["task"] for p in pairs if not p["n"]]
    row["note"] = f"without {', '.join(missing)}: not indexed" if missing else None
    return row


def _by_wrapper(cells: Sequence[dict[str, Any]], study: Study) -> dict[str, float]:
    """Accuracy by wrapper, the mean over the tasks that are indexed."""
    values: dict[str, list[float]] = {w.name: [] for w in study.wrappers}
    for cell in cells:
        if cell["accuracy"] is not None:
            values[cell["wrapper"]].append(cell["accuracy"])
    return {name: float(np.mean(v)) for name, v in values.items() if v}


def _names(by_wrapper: Mapping[str, float], value: float | None) -> str | None:
    """Every wrapper with that accuracy: a tie has no winner."""
    if value is None:
        return None
    return ", ".join(n for n, v in by_wrapper.items() if math.isclose(v, value, abs_tol=1e-12))


def _status_rows(table: pl.DataFrame, study: Study) -> list[dict[str, Any]]:
    import polars as pl

    keys = ["model", "mode", "wrapper"]
    replies = table.filter(~pl.col("copy") & pl.col("status").is_not_null())
    counted = replies.group_by(*keys, "status").len().rows()
    counts = {(m, d, w, s): n for m, d, w, s, n in counted}
    rows = []
    for model in study.models:
        for mode in study.decoding:
            for wrapper in study.wrappers:
                found = [counts.get((model.name, mode, wrapper.name, s.value), 0) for s in Status]
                rows += [
                    {
                        "model": model.name,
                        "mode": mode,
                        "wrapper": wrapper.name,
                        "status": status.value,
                        "count": count,
                        "share": count / sum(found) if sum(found) else None,
                    }
                    for status, count in zip(Status, found, strict=True)
                ]
    return rows
