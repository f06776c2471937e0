"""What each figure shows, as a frame; an empty frame where there is nothing to show.

Rates are fractions of 1. ``label`` names the model, with its decoding mode if not the usual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from formatspan.report.view import Row, View

if TYPE_CHECKING:
    import polars as pl

COMPLIANCE, ABILITY = "compliance", "accuracy of parsed replies"


def means(view: View) -> pl.DataFrame:
    """Mean FSI and PSI by model, with intervals."""
    return _frame(
        {
            "label": m.label,
            "index": index.upper(),
            "value": m[index],
            "low": m[f"{index}_low"],
            "high": m[f"{index}_high"],
            "tasks": m["tasks"],
        }
        for m in view.models
        for index in ("fsi", "psi")
        if m[index] is not None
    )


def scatter(view: View) -> pl.DataFrame:
    """Accuracy and parseability of every cell."""
    keys = ("task", "wrapper", "n", "accuracy", "parseability")
    return _frame(
        {"label": c.label, **{k: c[k] for k in keys}}
        for c in view.rows("cells")
        if c["accuracy"] is not None
    )


def wins(view: View) -> pl.DataFrame:
    """Wins by model and wrapper; a tie is shared."""
    return _frame(
        {"label": m.label, "wrapper": wrapper, "wins": total, "order": order}
        for m in view.models
        for order, wrapper in enumerate(view.wrappers)
        if (total := _wins(view.of(m, "cells"), wrapper)) is not None
    )


def _wins(cells: Sequence[Row], wrapper: str) -> float | None:
    won = [c["win"] for c in cells if c["wrapper"] == wrapper and c["win"] is not None]
    return sum(won) if won else None


def spreads(view: View) -> pl.DataFrame:
    """Share of examples by token spread and model, in bins of one percent."""
    counts: Counter[tuple[str, float, float]] = Counter()
    totals: Counter[str] = Counter()
    for row in view.rows("spreads"):
        counts[row.label, row["low"], row["high"]] += row["examples"]
        totals[row.label] += row["examples"]
    return _frame(
        {
            "label": label,
            "low": low,
            "high": high,
            "share": count / totals[label],
            "count": count,
            "threshold": view.study.matched_threshold,
        }
        for (label, low, high), count in sorted(counts.items())
    )


def heat(view: View) -> pl.DataFrame:
    """Accuracy of every cell."""
    return scatter(view)


def by_task(view: View) -> pl.DataFrame:
    """FSI and PSI by model and task, with intervals."""
    return _frame(
        {
            "label": p.label,
            "task": p["task"],
            "index": index.upper(),
            "value": p[index],
            "low": p[f"{index}_low"],
            "high": p[f"{index}_high"],
            "n": p["n"],
        }
        for p in view.rows("pairs")
        for index in ("fsi", "psi")
        if p[index] is not None
    )


def decomposition(view: View) -> pl.DataFrame:
    """Both parts of the loss by model, and the loss itself."""
    return _frame(
        {"label": m.label, "part": part, "value": m[key], "fsi": m["fsi"]}
        for m in view.models
        for part, key in ((COMPLIANCE, "compliance_part"), (ABILITY, "conditional_part"))
        if m[key] is not None
    )


def ranks(view: View) -> pl.DataFrame:
    """Rank of every model under every wrapper, and its lowest and highest."""
    limits = {m.label: (m["rank_low"], m["rank_high"]) for m in view.models}
    if len(limits) < 2:
        return _frame([])
    return _frame(
        {
            "label": r.label,
            "wrapper": r["wrapper"],
            "rank": r["rank"],
            "accuracy": r["accuracy"],
            "low": limits[r.label][0],
            "high": limits[r.label][1],
        }
        for r in view.rows("ranks")
        if r["rank"] is not None and r.label in limits
    )


def statuses(view: View) -> pl.DataFrame:
    """What became of the replies by model and wrapper."""
    keys = ("wrapper", "status", "count", "share")
    return _frame(
        {"label": s.label, **{k: s[k] for k in keys}}
        for s in view.rows("statuses")
        if s["share"] is not None
    )


def caps(view: View) -> pl.DataFrame:
    """FSI and PSI, means over tasks, as functions of the length cap."""
    return _frame(
        {
            "label": c.label,
            "cap": c["cap"],
            "index": index.upper(),
            "value": c[index],
            "low": c[f"{index}_low"],
            "high": c[f"{index}_high"],
            "cut_off": c["cut_off"],
            "how": c["cut_by"],
        }
        for c in view.rows("caps")
        for index in ("fsi", "psi")
        if c[index] is not None and c["task"] is None
    )


def noise(view: View) -> pl.DataFrame:
    """FSI beside its noise floor by model and task."""
    return _frame(
        {
            "label": p.label,
            "task": p["task"],
            "fsi": p["fsi"],
            "floor": p["noise_floor"],
            "p_holm": p["p_holm"],
            "n": p["n"],
            "differs": "p < 0.05" if (p["p_holm"] or 0) < 0.05 else "p ≥ 0.05",
        }
        for p in view.rows("pairs")
        if p["fsi"] is not None and p["noise_floor"] is not None and p["p_holm"] is not None
    )


def sizes(view: View) -> pl.DataFrame:
    """FSI against the size of the model, where sizes are stated."""
    entries = {e.name: e for e in view.study.models}
    found = [
        {
            "label": m.label,
            "size": m["size_b"] or entries[m["model"]].size_b,
            "family": m["family"] or entries[m["model"]].family or "no family stated",
            "value": m["fsi"],
            "low": m["fsi_low"],
            "high": m["fsi_high"],
        }
        for m in view.models
        if m["fsi"] is not None and m["model"] in entries
    ]
    sized = [row for row in found if row["size"] is not None]
    return _frame(sized if len(sized) > 1 else [])


def _frame(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(list(rows), infer_schema_length=None)
