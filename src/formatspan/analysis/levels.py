"""FSI and PSI at every extraction level, on all examples and on the matched subset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from formatspan.analysis.tested import matched_brief, names_of
from formatspan.inference import SEED, brief, panel_of
from formatspan.records import Level
from formatspan.study import Study

if TYPE_CHECKING:
    import polars as pl


def level_rows(table: pl.DataFrame, study: Study, level: Level) -> Iterator[dict[str, Any]]:
    """Means over tasks of every model at one level.

    Args:
        table: Scored at ``level``.
        study: Of the run.
        level: Named in the rows.
    """
    import polars as pl

    for mode in study.decoding:
        here = table.filter(pl.col("mode") == mode)
        subsets = {
            "all": brief(panel_of(here, *names_of(study)), SEED),
            "matched": matched_brief(table, study, mode),
        }
        for subset, found in subsets.items():
            for model, row in found.models.items():
                yield {"model": model, "mode": mode, "level": level, "subset": subset, **row}
