"""The replies of one model on one task, counted: examples × wrappers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from formatspan.stats.indices import Array, Cells, token_spread
from formatspan.study import Study

if TYPE_CHECKING:
    import polars as pl


class Grid(NamedTuple):
    """The replies of one model on one task in one decoding mode."""

    model: str
    mode: str
    task: str
    wrappers: tuple[str, ...]
    cells: Cells
    tokens: NDArray[np.float64]
    """Mean prompt tokens, examples × wrappers; NaN where not counted."""

    @property
    def spreads(self) -> Array:
        """Δtok of every example whose tokens were counted under all wrappers."""
        with np.errstate(invalid="ignore"):
            found = token_spread(self.tokens)
        return np.asarray(found[~np.isnan(found)])

    def matched(self, study: Study) -> Grid:
        """The examples whose prompt tokens agree over wrappers."""
        with np.errstate(invalid="ignore"):
            close = token_spread(self.tokens) <= study.matched_threshold
        return self._replace(cells=self.cells.take(close), tokens=self.tokens[close])


def grids(table: pl.DataFrame, study: Study) -> Iterator[Grid]:
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
                    yield Grid(model.name, mode, task.name, wrappers, cells, tokens)


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
