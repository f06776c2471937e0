"""FSI and PSI as functions of the length cap, from one run (the method document, section 10).

The reply at cap k is the first k tokens of the reply at any larger cap. So every smaller cap
is had by cutting the replies that are longer and scoring those again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from formatspan.analysis.rescoring import Rescored, rescored
from formatspan.analysis.tested import names_of
from formatspan.inference import SEED, columns, panel_of
from formatspan.records import Level
from formatspan.stats.cap import Curve, Lengths, cap_curve, cut_off, lengths
from formatspan.stats.panel import Missing, Panel
from formatspan.store import Store
from formatspan.study import Study

if TYPE_CHECKING:
    import polars as pl

MOST_CAPS = 16
HIDDEN = "the model reasons in tokens that the reply does not hold: no curve over the cap"
_QUANTILES = ("shortest", "q25", "median", "q75", "q90", "q95", "q99", "longest")


def cap_frames(
    store: Store, study: Study, level: Level, table: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """The frames ``caps`` and ``lengths``.

    Args:
        store: Of the run.
        study: Of the run.
        level: Extraction level.
        table: The run scored at ``level``.
    """
    import polars as pl

    longest = table["completion_tokens"].max()
    caps = caps_for(_most(study), int(longest) if isinstance(longest, int) else None)
    cut = rescored(store, study, level, table, caps)
    rows: list[dict[str, Any]] = []
    for mode in study.decoding:
        rows += _curve_rows(cut, table, study, mode)
    return {
        "caps": pl.DataFrame(rows, infer_schema_length=None),
        "lengths": pl.DataFrame(list(_length_rows(cut, study)), infer_schema_length=None),
    }


def caps_for(most: int, longest: int | None = None) -> tuple[int, ...]:
    """At most 16 caps up to ``most``, each a third or a half above the one before.

    Args:
        most: The cap of the run.
        longest: Tokens of the longest reply; between it and ``most`` nothing changes.
    """
    enough = min(most, longest or most)
    steps = sorted({v for power in range(31) for v in (1 << power, 3 << power)} | {most})
    first_enough = next(v for v in steps if v >= enough)
    found = [v for v in steps if v <= min(first_enough, most)]
    found += [most] if found[-1] < most else []
    kept = np.unique(np.linspace(0, len(found) - 1, min(MOST_CAPS, len(found))).round())
    return tuple(found[int(i)] for i in kept)


def _most(study: Study) -> int:
    return max(study.sampling(m).max_tokens for m in study.models)


def _curve_rows(
    cut: Rescored, table: pl.DataFrame, study: Study, mode: str
) -> Iterator[dict[str, Any]]:
    panels = {cap: _panel(cut, i, table, study, mode) for i, cap in enumerate(cut.caps)}
    exact = all(how.exact for how in cut.how.values())
    whole = {study.sampling(entry).max_tokens for entry in study.models}
    curve = cap_curve(cut.caps, panels.__getitem__, SEED, exact=exact, whole=whole)
    for entry in study.models:
        if entry.name in cut.hidden or entry.name not in cut.how:
            continue
        own, how = study.sampling(entry).max_tokens, cut.how[entry.name]
        rows = cut.rows_of(model=entry.name, mode=mode)
        shares = cut_off(cut.lengths(rows, own), cut.caps)
        for i, cap in enumerate(cut.caps):
            if cap <= own:  # beyond its own cap nothing is known of a model
                share = None if isinstance(shares, Missing) else float(shares[i])
                by = {"cap": cap, "cut_off": share, "exact": how.exact, "cut_by": how.value}
                for row in _rows_at(curve, i, panels[cap], entry.name):
                    yield {"model": entry.name, "mode": mode, **row, **by}


def _rows_at(curve: Curve, place: int, panel: Panel, model: str) -> Iterator[dict[str, Any]]:
    """The mean over tasks with its limits, then every task."""
    fsi, psi = curve.fsi[model][place], curve.psi[model][place]
    yield {
        "task": None,
        **columns(fsi, value="fsi", low="fsi_low", high="fsi_high"),
        **columns(psi, value="psi", low="psi_low", high="psi_high"),
    }
    m = panel.models.index(model)
    for t, task in enumerate(panel.tasks):
        if panel.missing(m, t) is None:
            spans = {
                k: float(np.ptp(v[m]))
                for k, v in (("fsi", task.means.accuracy), ("psi", task.means.parseability))
            }
            yield {"task": task.name, **spans}


def _panel(cut: Rescored, place: int, table: pl.DataFrame, study: Study, mode: str) -> Panel:
    import polars as pl

    answered = pl.col("correct").is_not_null()
    at = table.with_columns(
        correct=pl.when(answered).then(pl.Series(cut.correct[place])),
        parsed=pl.when(answered).then(pl.Series(cut.parsed[place])),
    )
    return panel_of(at.filter(pl.col("mode") == mode), *names_of(study))


def _length_rows(cut: Rescored, study: Study) -> Iterator[dict[str, Any]]:
    for entry in study.models:
        for mode in study.decoding:
            for wrapper in study.wrappers:
                rows = cut.rows_of(model=entry.name, mode=mode, wrapper=wrapper.name)
                found = lengths(cut.tokens[rows])
                if isinstance(found, Lengths):
                    yield {
                        "model": entry.name,
                        "mode": mode,
                        "wrapper": wrapper.name,
                        "n": found.n,
                        "mean": found.mean,
                        **dict(zip(_QUANTILES, found.quantiles, strict=True)),
                        "cap": study.sampling(entry).max_tokens,
                        "cut_off": float((~cut.ended[rows]).mean()),
                        "exact": cut.how[entry.name].exact,
                        "cut_by": cut.how[entry.name].value,
                        "note": HIDDEN if entry.name in cut.hidden else None,
                    }
