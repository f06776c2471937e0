"""An analysis as the report reads it: plain rows, where what is absent or undefined is None.

A report is written of finished and partial runs and of analyses of several versions, so every
figure is optional here: a frame that is missing has no rows, a column that is missing is None.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from formatspan.records import IMPORTED
from formatspan.report.escape import one_line

if TYPE_CHECKING:
    from formatspan.analysis import Analysis
    from formatspan.study import Study


class Row(dict[str, Any]):
    """One row of a frame; a key that is missing gives None."""

    def __missing__(self, key: str) -> None:
        return None

    @property
    def label(self) -> str:
        """The model, with its decoding mode where that is not the usual one."""
        mode = self["mode"] or "free"
        return one_line(str(self["model"])) + ("" if mode == "free" else f" ({mode})")


class View:
    """Rows of an analysis by the frame's name.

    Args:
        analysis: What is reported.
    """

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self._frames: dict[str, list[Row]] = {}

    @property
    def study(self) -> Study:
        """The study of the run."""
        return self.analysis.study

    def rows(self, frame: str) -> list[Row]:
        """Every row of ``frame``; none if the analysis has no such frame."""
        if frame not in self._frames:
            found = getattr(self.analysis, frame, None)
            dicts = [] if found is None else found.to_dicts()
            self._frames[frame] = [Row((k, _defined(v)) for k, v in d.items()) for d in dicts]
        return self._frames[frame]

    def has(self, frame: str) -> bool:
        """Whether the analysis has ``frame`` at all, with or without rows."""
        return getattr(self.analysis, frame, None) is not None

    def of(self, model: Row, frame: str) -> list[Row]:
        """Rows of ``frame`` about one model in one decoding mode."""
        return self._by_model(frame).get((model["model"], model["mode"] or "free"), [])

    def _by_model(self, frame: str) -> dict[tuple[str, str], list[Row]]:
        grouped: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in self.rows(frame):
            grouped[row["model"], row["mode"] or "free"].append(row)
        return grouped

    @property
    def imported(self) -> bool:
        """Whether this is a table scored elsewhere: how replies came about is not known."""
        return self.analysis.level == IMPORTED

    @cached_property
    def models(self) -> list[Row]:
        """The rows of the models, in the study's order."""
        return self.rows("models")

    @cached_property
    def labels(self) -> list[str]:
        """What the models are called in tables and figures, in the study's order."""
        return [row.label for row in self.models]

    @cached_property
    def wrappers(self) -> list[str]:
        """Names of the wrappers, in the study's order."""
        return [w.name for w in self.study.wrappers]

    @cached_property
    def tasks(self) -> list[str]:
        """Names of the tasks, in the study's order."""
        return [t.name for t in self.study.tasks]

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """Figures about the run as a whole: regression, correlation, contrast and so on."""
        found = getattr(self.analysis, "facts", None)
        return found if isinstance(found, Mapping) else {}

    def facts_by_mode(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Figures of the run as a whole, by decoding mode in the study's order."""
        found = ((mode, self.facts.get(mode)) for mode in self.study.decoding)
        return [(mode, facts) for mode, facts in found if isinstance(facts, Mapping)]

    def by_wrapper(self, model: Row, key: str) -> dict[str, float]:
        """A cell figure of one model by wrapper, the mean over its tasks."""
        values: dict[str, list[float]] = {name: [] for name in self.wrappers}
        for cell in self.of(model, "cells"):
            if cell[key] is not None and cell["wrapper"] in values:
                values[cell["wrapper"]].append(cell[key])
        return {name: sum(v) / len(v) for name, v in values.items() if v}

    @property
    def complete(self) -> bool:
        """Whether every request has its reply."""
        return self.replies == self.requested

    @property
    def replies(self) -> int:
        """Replies that exist, copies left out."""
        return sum(row["replies"] or 0 for row in self.models)

    @property
    def requested(self) -> int:
        """Replies that the study asks for, copies left out."""
        return sum(row["requested"] or 0 for row in self.models)


def _defined(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value
