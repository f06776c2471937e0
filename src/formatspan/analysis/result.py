"""What an analysis holds, and its form as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formatspan._version import __version__
from formatspan.records import EXTRACTOR_VERSION
from formatspan.study import Study

if TYPE_CHECKING:
    import polars as pl

SCHEMA_VERSION = 2
"""Of the JSON form; raised when a key changes its meaning."""

FRAMES = ("models", "pairs", "cells", "statuses", "matched", "spreads")
"""Frames of every analysis."""
TESTED = ("wrapper_pairs", "ranks", "reversals", "differences")
"""Frames that inference adds."""
ASKED = ("levels", "caps", "lengths")
"""Frames that score all replies again, so that they are made only when asked for."""


@dataclass(frozen=True)
class Analysis:
    """What a run shows at one extraction level. Rates and spans are fractions of 1.

    ``docs/report.md`` describes every column.
    """

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
    """A row a model, mode, task and bin of Δtok, the relative spread of prompt tokens."""
    wrapper_pairs: pl.DataFrame | None = None
    """A row a mode, model and two wrappers: difference of accuracy, interval, tests."""
    ranks: pl.DataFrame | None = None
    """A row a mode, model and wrapper: rank among the models."""
    reversals: pl.DataFrame | None = None
    """A row a mode and two models: whether their order reverses over wrappers."""
    differences: pl.DataFrame | None = None
    """A row a mode and two models: difference of mean FSI and PSI."""
    levels: pl.DataFrame | None = None
    """A row a model, mode, level and subset (all, matched): accuracy, FSI, PSI."""
    caps: pl.DataFrame | None = None
    """A row a model, mode, task (null: mean over tasks) and length cap: FSI, PSI, cut off."""
    lengths: pl.DataFrame | None = None
    """A row a model, mode and wrapper: quantiles of the replies' tokens, share cut off."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Figures of the run as a whole, by decoding mode: regression, correlations, ranking."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: no NaN, undefined figures are null."""
        frames = ((name, getattr(self, name)) for name in (*FRAMES, *TESTED, *ASKED))
        return {
            "schema_version": SCHEMA_VERSION,
            "formatspan_version": __version__,
            "extractor_version": EXTRACTOR_VERSION,
            "study": self.study.name,
            "level": self.level,
            "tasks": dict(self.tasks),
            **{name: frame.to_dicts() for name, frame in frames if frame is not None},
            **({"facts": dict(self.facts)} if self.facts else {}),
        }

    def to_json(self) -> str:
        """The analysis as JSON, indented."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
