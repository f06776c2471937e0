"""The arms of the comparison: one run's replies, counted in several ways.

All arms hold the same tasks, examples and wrappers, so that they can be resampled together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from formatspan.inference import panel_of
from formatspan.records import Level
from formatspan.stats.panel import Panel
from formatspan.store import Store
from formatspan.study import Study
from formatspan.table import scored

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Arm:
    """One way of counting."""

    name: str
    panel: Panel
    notes: Mapping[str, str] = field(default_factory=dict)
    """What to know of this arm, by model."""


class Tables:
    """The scored tables of one run, made once for each level.

    Args:
        store: The run's store.
        study: Its study.
    """

    def __init__(self, store: Store, study: Study) -> None:
        self.study, self._store = study, store
        self._scored: dict[Level, pl.DataFrame] = {}
        self.chances: dict[str, float] = {
            name: float(record["chance"]) for name, record in store.records("tasks").items()
        }

    def at(self, level: Level) -> pl.DataFrame:
        """Every point of the grid, scored at ``level``."""
        if level not in self._scored:
            self._scored[level] = scored(self._store, self.study, level)
        return self._scored[level]

    @cached_property
    def names(self) -> tuple[list[str], list[str], list[str]]:
        """Names of models, tasks and wrappers in the study's order."""
        study = self.study
        parts: Sequence[Sequence[Any]] = (study.models, study.tasks, study.wrappers)
        models, tasks, wrappers = ([entry.name for entry in part] for part in parts)
        return models, tasks, wrappers

    def panel(self, level: Level, counted: pl.Expr) -> Panel:
        """The counts of the rows that ``counted`` selects; all rows say which examples are."""
        import polars as pl

        kept = [pl.when(counted).then(pl.col(c)).alias(c) for c in ("correct", "parsed")]
        return panel_of(self.at(level).with_columns(kept), *self.names)

    @cached_property
    def reference(self) -> Panel:
        """The free replies at the level that all else is compared with."""
        import polars as pl

        return self.panel("normalized", pl.col("mode") == "free")

    @cached_property
    def examples(self) -> dict[str, list[str]]:
        """Ids of the examples of each task, in the order of the panels."""
        import polars as pl

        drawn = self.at("normalized").filter(~pl.col("copy"))
        pairs = drawn.select(pl.col("task").cast(pl.String), "example").unique()
        ordered = pairs.sort("task", "example").group_by("task", maintain_order=True)
        found = {str(key[0]): part["example"].to_list() for key, part in ordered}
        return {task: found.get(task, []) for task in self.names[1]}


def scoring_arms(tables: Tables) -> list[Arm]:
    """The arms that score the free replies again; they need no new request."""
    import polars as pl

    free = pl.col("mode") == "free"
    levels: tuple[Level, ...] = ("paper", "strict", "lenient")
    arms = [Arm(level, tables.panel(level, free)) for level in levels]
    credited = Arm("partial credit", _credited(tables.reference, tables.chances))
    return [Arm("normalized", tables.reference), *arms, credited]


def _credited(panel: Panel, chances: Mapping[str, float]) -> Panel:
    """The same counts where an unparsed reply scores the task's chance."""
    tasks = [replace(t, credit=chances[t.name]) for t in panel.tasks]
    return Panel(panel.models, panel.wrappers, tuple(tasks))


def constrained_arm(tables: Tables) -> Arm | None:
    """Replies of a constrained decoder at the normalized level; None if there are none.

    Where a wrapper could not be constrained its free replies stand in, and the note says so:
    spans over different sets of wrappers are not compared.
    """
    import polars as pl

    table = tables.at("normalized")
    answered = table.filter(pl.col("correct").is_not_null() & (pl.col("mode") == "constrained"))
    if answered.is_empty():
        return None
    held = pl.col("mode") == "constrained"
    places = table.filter(held).select(_names("model", "wrapper")).unique()
    asked = {(str(m), str(w)) for m, w in places.iter_rows()}
    notes, free = {}, pl.lit(value=False)
    for model in {m for m, _ in asked}:
        left = [w for w in tables.names[2] if (model, w) not in asked]
        if left:
            free |= (pl.col("model") == model) & pl.col("wrapper").is_in(left)
            notes[model] = f"free replies stand in for {', '.join(left)}, which were not held"
    for model, text in _loose(tables).items():
        notes[model] = "; ".join(filter(None, (notes.get(model), text)))
    return Arm("constrained", tables.panel("normalized", held | (free & ~held)), notes)


def _loose(tables: Tables) -> dict[str, str]:
    """What to know of constrained replies that are not the contract, by model."""
    import polars as pl

    strict = tables.at("strict")
    held = strict.filter((pl.col("mode") == "constrained") & pl.col("correct").is_not_null())
    cut = (~pl.col("parsed") & (pl.col("finish_reason") == "length")).sum()
    counted = held.group_by(_names("model")).agg(
        total=pl.len(), loose=(~pl.col("parsed")).sum(), cut=cut
    )
    return {
        model: f"{loose:,} of {total:,} constrained replies are not the contract"
        f" ({at_cap:,} of them cut off at the cap)"
        for model, total, loose, at_cap in counted.iter_rows()
        if loose
    }


def _names(*columns: str) -> list[pl.Expr]:
    import polars as pl

    return [pl.col(c).cast(pl.String) for c in columns]
