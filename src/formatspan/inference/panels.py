"""From a scored table to the counts that the statistics take.

Every function is given the table of one decoding mode. Copies of deterministic replies are left
out; examples stand in the order of their ids, the same for all models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from formatspan.stats.indices import Counts
from formatspan.stats.panel import Mask, Panel, TaskCounts
from formatspan.stats.simple import clusters

if TYPE_CHECKING:
    import polars as pl


class Names(NamedTuple):
    """The axes of a panel, in the study's order."""

    models: Sequence[str]
    tasks: Sequence[str]
    wrappers: Sequence[str]


class _Part(NamedTuple):
    """The draws of one task, and where each stands in an array of counts."""

    rows: pl.DataFrame
    examples: pl.DataFrame
    """Ids and clusters, in the order of the array."""
    shape: tuple[int, int, int]
    place: Counts


def panel_of(
    table: pl.DataFrame, models: Sequence[str], tasks: Sequence[str], wrappers: Sequence[str]
) -> Panel:
    """The counts of one decoding mode."""
    parts = _parts(table, Names(models, tasks, wrappers))
    counts = tuple(_task(name, part) for name, part in zip(tasks, parts, strict=True))
    return Panel(tuple(models), tuple(wrappers), counts)


def first_draws(table: pl.DataFrame, names: Names) -> list[Counts]:
    """By task, whether the first draw is right: 1, 0, or -1 where it has no reply."""
    import polars as pl

    found = []
    for part in _parts(table, names):
        first = (part.rows["seed"] == 0).to_numpy()
        right = part.rows["correct"].cast(pl.Int64).fill_null(-1).to_numpy()
        draws = np.full(int(np.prod(part.shape)), -1, dtype=np.int64)
        draws[part.place[first]] = right[first]
        found.append(draws.reshape(part.shape))
    return found


def close_examples(table: pl.DataFrame, names: Names, threshold: float) -> list[Mask]:
    """By task, the examples whose mean prompt tokens agree over wrappers; (models, examples)."""
    return [_close(part, threshold) for part in _parts(table, names)]


def _close(part: _Part, threshold: float) -> Mask:
    counted = part.rows["prompt_tokens"]
    size = int(np.prod(part.shape))
    known = np.bincount(part.place, weights=counted.is_not_null().to_numpy(), minlength=size)
    total = np.bincount(part.place, weights=counted.fill_null(0).to_numpy(), minlength=size)
    if size == 0:
        return np.zeros(part.shape[:2], dtype=bool)
    tokens = (total / np.maximum(known, 1)).reshape(part.shape)
    spread = np.ptp(tokens, axis=2) / np.maximum(tokens.mean(axis=2), 1e-9)
    complete = (known.reshape(part.shape) > 0).all(axis=2)
    return np.asarray(complete & (spread <= threshold))


def _parts(table: pl.DataFrame, names: Names) -> list[_Part]:
    import polars as pl

    drawn = table.filter(~pl.col("copy"))
    parts = drawn.partition_by("task", as_dict=True)
    return [_part(parts.get((task,), drawn.clear()), names) for task in names.tasks]


def _part(rows: pl.DataFrame, names: Names) -> _Part:
    examples = rows.select("example", "cluster").unique().sort("example")
    shape = (len(names.models), len(examples), len(names.wrappers))
    places = (
        _codes(rows["model"], names.models),
        _codes(rows["example"], list(examples["example"])),
        _codes(rows["wrapper"], names.wrappers),
    )
    place = np.ravel_multi_index(places, shape) if len(rows) else np.zeros(0, dtype=np.int64)
    return _Part(rows, examples, shape, np.asarray(place, dtype=np.int64))


def _codes(values: pl.Series, known: Sequence[str]) -> Counts:
    import polars as pl

    if len(values) == 0:
        return np.zeros(0, dtype=np.int64)
    places = list(range(len(known)))
    found = values.cast(pl.String).replace_strict(list(known), places, return_dtype=pl.Int64)
    return np.asarray(found.to_numpy(), dtype=np.int64)


def _task(name: str, part: _Part) -> TaskCounts:
    import polars as pl

    def count(flags: pl.Series) -> Counts:
        chosen = flags.cast(pl.Boolean).fill_null(value=False).to_numpy()
        found = np.bincount(part.place[chosen], minlength=int(np.prod(part.shape)))
        return found.reshape(part.shape).astype(np.int64)

    rows, codes = part.rows, clusters(list(part.examples["cluster"])).codes
    answered = rows["correct"].is_not_null()
    return TaskCounts(name, count(rows["correct"]), count(rows["parsed"]), count(answered), codes)
