"""Two runs, or two tables, on what they have in common.

Indices over different wrapper sets are not comparable (they grow with the number of wrappers),
so both sides are computed again on the common tasks, examples and wrappers. Where each figure
comes from: ``sides`` finds what is common, ``missing`` what is not, `formatspan.stats.change`
counts, ``said`` says what can be concluded.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from formatspan._version import __version__
from formatspan.comparison.missing import Absent, absent, absent_examples
from formatspan.comparison.said import absence, conclusion, losses
from formatspan.comparison.sides import Common, Side, common, examples_of, indexed_in, side
from formatspan.errors import RunError
from formatspan.records import Level
from formatspan.stats.change import Change, Spans, change
from formatspan.stats.intervals import Estimate
from formatspan.stats.panel import Missing

SCHEMA_VERSION = 1
"""Of the JSON form; raised when a key changes its meaning."""
SEED = 0

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    """Models of two runs side by side. Rates and spans are fractions of 1; changes are b - a."""

    a: str
    b: str
    level: str
    wrappers: tuple[str, ...]
    """Common to both sides; everything is computed on these."""
    tasks: tuple[str, ...]
    warnings: tuple[str, ...]
    """What differs between the sides, and what was left out."""
    missing: tuple[Absent, ...]
    """What a has and b lacks, and nobody said was dropped on purpose."""
    models: tuple[Mapping[str, Any], ...]
    """A row a pair of models and decoding mode; figures are None where ``note`` says why."""

    def worse(self, points: float) -> tuple[str, ...]:
        """What is worse in b by more than ``points`` percentage points, beyond noise.

        Accuracy under a wrapper counts if it fell, FSI if it rose, with the limit of the interval
        that is nearer to zero beyond ``points``. What could not be compared counts too, and so
        does what b lacks: a gate must not pass because nothing was measured.
        """
        gone = map(absence, self.missing)
        return (*gone, *(line for row in self.models for line in losses(row, points)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: no NaN, undefined figures are null."""
        return {
            "schema_version": SCHEMA_VERSION,
            "formatspan_version": __version__,
            **{name: getattr(self, name) for name in ("a", "b", "level")},
            **{n: list(getattr(self, n)) for n in ("wrappers", "tasks", "warnings")},
            "missing": [gone._asdict() for gone in self.missing],
            "models": [dict(row) for row in self.models],
        }

    def to_json(self) -> str:
        """The comparison as JSON, indented."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def compare(
    a: object,
    b: object,
    *,
    level: Level | None = None,
    pairs: Mapping[str, str] | None = None,
    dropped: Collection[str] = (),
) -> Comparison:
    """Compare two runs on their common tasks, examples and wrappers.

    Args:
        a: Before: a run, its folder, or a table as for `formatspan.analyze_table`.
        b: After, likewise.
        level: Extraction level of both; the level of ``a``'s study by default.
        pairs: Models of ``a`` by name with the model of ``b`` to set against; by default models
            of the same name.
        dropped: Names of models, tasks, wrappers and modes of ``a`` that ``b`` lacks on purpose,
            ``examples`` for any number of these; what else it lacks is worse.

    Raises:
        RunError: A folder is no run, the two have no model, task or wrapper in common, or what
            was dropped is unknown or still there.
        StudyError: There is no such level.
        DataError: A table has a mistake.
    """
    first = side(a, level)
    read_at: Any = level or (None if first.imported else first.level)
    second = side(b, read_at)
    found = common(first, second)
    rows: list[dict[str, Any]] = []
    matched = _pairs(first, second, pairs)
    gone = absent(
        first, found, b=second, matched=None if pairs else [a for a, _ in matched], dropped=dropped
    )
    for mode in found.modes:
        for name_a, name_b in matched:
            had = indexed_in(first, found, name_a, mode)
            rows.append(_row(found, name_a, name_b, mode) | {"n_a": had})
    return Comparison(
        a=first.name,
        b=second.name,
        level=first.level,
        wrappers=found.wrappers,
        tasks=found.tasks,
        warnings=(*found.warnings, *(() if pairs else _alone(first, second))),
        missing=(*gone, *absent_examples(rows, second, dropped)),
        models=tuple(rows),
    )


def _pairs(a: Side, b: Side, pairs: Mapping[str, str] | None) -> list[tuple[str, str]]:
    """Models to set against each other."""
    names_a, names_b = a.models, b.models
    if pairs:
        for one, other in pairs.items():
            _known(a, one)
            _known(b, other)
        return list(pairs.items())
    shared = [n for n in names_a if n in names_b]
    if not shared:
        raise RunError(
            f"no model of the same name: {a.name} has {', '.join(names_a)}, {b.name} has "
            f"{', '.join(names_b)}: name a pair, {_spelled(names_a[0])}={_spelled(names_b[0])}"
        )
    return [(n, n) for n in shared]


def _spelled(name: str) -> str:
    """A model's name as it stands in a pair on the command line."""
    return f'"{name}"' if "=" in name else name


def _known(where: Side, name: str) -> None:
    if name not in where.models:
        raise RunError(f"{where.name}: no model {name!r}: expected {', '.join(where.models)}")


def _alone(a: Side, b: Side) -> list[str]:
    """A word on each model that only one side has."""
    return [
        f"only in {one.name}: model {name}"
        for one, other in ((a, b), (b, a))
        for name in one.models
        if name not in other.models
    ]


def _row(found: Common, name_a: str, name_b: str, mode: str) -> dict[str, Any]:
    panels = examples_of(found, name_a, name_b, mode)
    where = {"model_a": name_a, "model_b": name_b, "mode": mode}
    moved = panels if isinstance(panels, Missing) else change(*panels, np.random.default_rng(SEED))
    row = where | (
        {"note": moved.reason} if isinstance(moved, Missing) else _figures(found.wrappers, moved)
    )
    return row | {"conclusion": conclusion(row)}


def _figures(wrappers: Sequence[str], moved: Change) -> dict[str, Any]:
    means = [m.mean(axis=0) for m in (moved.accuracy_a, moved.accuracy_b)]
    return {
        "note": None,
        "n": sum(moved.n),
        "accuracy_a": float(means[0].mean()),
        "accuracy_b": float(means[1].mean()),
        **_limits("accuracy_change", moved.accuracy),
        **_span("fsi", moved.fsi),
        **_span("psi", moved.psi),
        "wrappers": [
            {
                "wrapper": name,
                "accuracy_a": float(means[0][f]),
                "accuracy_b": float(means[1][f]),
                **_limits("change", moved.wrappers[f]),
            }
            for f, name in enumerate(wrappers)
        ],
        "tasks": [
            {
                "task": name,
                "n": moved.n[t],
                "accuracy_a": float(moved.accuracy_a[t].mean()),
                "accuracy_b": float(moved.accuracy_b[t].mean()),
                "fsi_a": float(np.ptp(moved.accuracy_a[t])),
                "fsi_b": float(np.ptp(moved.accuracy_b[t])),
            }
            for t, name in enumerate(moved.tasks)
        ],
    }


def _span(name: str, found: Spans) -> dict[str, float]:
    sides = {**_limits(f"{name}_a", found.a), **_limits(f"{name}_b", found.b)}
    return {**sides, **_limits(f"{name}_change", found.change)}


def _limits(name: str, found: Estimate) -> dict[str, float]:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
