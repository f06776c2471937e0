"""Rows of indices and coverage, straight from the counts: no test, no interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from formatspan.analysis.grids import Grid
from formatspan.records import Status
from formatspan.stats.indices import Indices, bootstrap_over_tasks, indices, wins
from formatspan.study import Study

if TYPE_CHECKING:
    import polars as pl

FEW_EXAMPLES = 20
"""Rows with fewer indexed examples are flagged."""
BOOTSTRAP_SEED = 0
SPREAD_BIN = 0.01
SPREAD_MOST = 0.5
"""Larger token spreads are counted in the last bin."""


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def pair_row(grid: Grid, chance: float) -> dict[str, Any]:
    """Indices and coverage of one model on one task."""
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
        "spread_median": _number(_quantile(grid.spreads, 0.5)),
        "spread_highest": _number(_quantile(grid.spreads, 1.0)),
        "note": _note(grid, found),
    }
    return row


def spread_rows(grid: Grid) -> Iterator[dict[str, Any]]:
    """Examples by token spread, in bins of one percent; empty bins are left out."""
    # The nudge keeps 0.05, which is not exact in binary, out of the bin below.
    bins = np.floor(np.minimum(grid.spreads, SPREAD_MOST) / SPREAD_BIN + 1e-9).astype(np.int64)
    for place, count in zip(*np.unique(bins, return_counts=True), strict=True):
        low = int(place) * SPREAD_BIN
        yield {
            "model": grid.model,
            "mode": grid.mode,
            "task": grid.task,
            "low": low,
            "high": low + SPREAD_BIN,
            "examples": int(count),
        }


def _quantile(values: NDArray[np.float64], share: float) -> float:
    return float(np.quantile(values, share)) if len(values) else math.nan


def _note(grid: Grid, found: Indices | None) -> str | None:
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
    if len(grid.wrappers) == 1:
        return "one wrapper: no span to measure"
    return f"fewer than {FEW_EXAMPLES} examples" if found.n < FEW_EXAMPLES else None


def cell_rows(grid: Grid, chance: float) -> Iterator[dict[str, Any]]:
    """A row a wrapper: n, A, P, C, win, coverage."""
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


def model_rows(
    cells: Sequence[dict[str, Any]], pairs: Sequence[dict[str, Any]], study: Study
) -> Iterator[dict[str, Any]]:
    """A row a model and mode: means over its tasks."""
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


def status_rows(table: pl.DataFrame, study: Study) -> list[dict[str, Any]]:
    """How often each status came, by model, mode and wrapper."""
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
