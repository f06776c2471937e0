"""What the figures of an analysis are worth: intervals, tests, parts and ranks, as plain rows.

Everything comes from `formatspan.stats` on one panel, a run at one extraction level and in one
decoding mode. A figure that cannot be had is None; why is in the row's ``flags`` or ``note``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from formatspan.stats import decomposition, intervals, permutation, ranking, variance
from formatspan.stats.indices import Counts
from formatspan.stats.intervals import Estimate
from formatspan.stats.pairwise import wrapper_pairs
from formatspan.stats.panel import Missing, Panel, TaskCounts
from formatspan.stats.regression import accuracy_on_parseability
from formatspan.stats.resampling import Resamples, resample
from formatspan.stats.simple import clusters

if TYPE_CHECKING:
    import polars as pl

SEED = 0
"""Of every resampling: the same store gives the same figures."""
RESAMPLES = 10_000


@dataclass(frozen=True)
class Inference:
    """Rows by model, and by model and task, of one decoding mode."""

    models: Mapping[str, Mapping[str, Any]]
    pairs: Mapping[tuple[str, str], Mapping[str, Any]]
    best: Mapping[tuple[str, str], Mapping[str, float]]
    """Bootstrap probability that a wrapper is the best one, by model and task, then wrapper."""
    wrapper_pairs: Sequence[Mapping[str, Any]]
    ranks: Sequence[Mapping[str, Any]]
    reversals: Sequence[Mapping[str, Any]]
    facts: Mapping[str, Any]


def panel_of(
    table: pl.DataFrame, models: Sequence[str], tasks: Sequence[str], wrappers: Sequence[str]
) -> Panel:
    """The counts of one decoding mode, without copies; examples in the order of their ids."""
    import polars as pl

    drawn = table.filter(~pl.col("copy"))
    parts = drawn.partition_by("task", as_dict=True)
    empty = drawn.clear()
    return Panel(
        tuple(models),
        tuple(wrappers),
        tuple(_task(name, parts.get((name,), empty), models, wrappers) for name in tasks),
    )


def infer(panel: Panel) -> Inference:
    """Every interval, test, decomposition and rank of a panel."""
    rng = np.random.default_rng(SEED)
    drawn = resample(panel, rng, resamples=RESAMPLES)
    fsi, psi = (intervals.spans(panel, drawn, m) for m in ("accuracy", "parseability"))
    parts = decomposition.decompositions(panel)
    pairs = _pairs(panel, fsi, psi, parts, rng)
    ranks, reversals, ranked = _ranks(panel, rng)
    return Inference(
        models=_models(panel, fsi, psi, parts, pairs, ranked),
        pairs=pairs,
        best=_best(panel, drawn),
        wrapper_pairs=_wrapper_pairs(panel),
        ranks=ranks,
        reversals=reversals,
        facts=_facts(panel, fsi, rng),
    )


def _task(
    name: str, part: pl.DataFrame, models: Sequence[str], wrappers: Sequence[str]
) -> TaskCounts:
    import polars as pl

    examples = part.select("example", "cluster").unique().sort("example")
    shape = (len(models), len(examples), len(wrappers))
    places = (
        _codes(part["model"], models),
        _codes(part["example"], list(examples["example"])),
        _codes(part["wrapper"], wrappers),
    )
    place = np.ravel_multi_index(places, shape) if len(part) else np.zeros(0, dtype=np.int64)

    def count(column: str) -> Counts:
        flags = part.select(pl.col(column).cast(pl.Boolean).fill_null(value=False))
        found = np.bincount(place[flags.to_series().to_numpy()], minlength=int(np.prod(shape)))
        return found.reshape(shape).astype(np.int64)

    part = part.with_columns(answered=pl.col("correct").is_not_null())
    codes = clusters(list(examples["cluster"])).codes
    return TaskCounts(name, count("correct"), count("parsed"), count("answered"), codes)


def _codes(values: pl.Series, known: Sequence[str]) -> Counts:
    order = {name: i for i, name in enumerate(known)}
    return np.array([order[v] for v in values.cast(str)], dtype=np.int64)


def _interval(prefix: str, found: Estimate | Missing) -> dict[str, Any]:
    return _fields(found, low=f"{prefix}_low", high=f"{prefix}_high")


def _pairs(
    panel: Panel,
    fsi: intervals.Spans,
    psi: intervals.Spans,
    parts: Mapping[tuple[str, str], decomposition.Decomposition | Missing],
    rng: np.random.Generator,
) -> dict[tuple[str, str], dict[str, Any]]:
    fsi_at, psi_at = intervals.pair_intervals(fsi), intervals.pair_intervals(psi)
    equal, floor = intervals.equal_accuracy(fsi), permutation.noise_floor(panel, rng)
    spread = variance.wrapper_variance(panel)
    rows = {}
    for key, interval in fsi_at.items():
        row = _interval("fsi", interval) | _interval("psi", psi_at[key])
        row |= _fields(equal[key], p="p_equal", p_holm="p_holm")
        row |= _fields(floor[key], mean="noise_floor", p="noise_p")
        row |= _fields(spread[key], variance="wrapper_variance", sigma="sigma_wrapper")
        rows[key] = row | _parts_row(parts[key])
    return rows


def _fields(found: object, **names: str) -> dict[str, Any]:
    """Some fields of a result under the names of columns; None for each if it is missing."""
    missing = isinstance(found, Missing)
    return {new: None if missing else getattr(found, old) for old, new in names.items()}


def _parts_row(found: decomposition.Decomposition | Missing) -> dict[str, Any]:
    if isinstance(found, Missing):
        return {**_fields(found, **_PARTS), "flags": None}
    few = "fewer than 10 parsed replies under the worst or best wrapper"
    return {**_fields(found.parts, **_PARTS), "flags": few if found.few_parsed else None}


_PARTS = {
    "compliance": "compliance_part",
    "conditional": "conditional_part",
    "compliance_at_worst": "compliance_part_at_worst",
    "compliance_at_best": "compliance_part_at_best",
}


def _models(
    panel: Panel,
    fsi: intervals.Spans,
    psi: intervals.Spans,
    parts: Mapping[tuple[str, str], decomposition.Decomposition | Missing],
    pairs: Mapping[tuple[str, str], Mapping[str, Any]],
    ranked: Mapping[str, tuple[float, float]],
) -> dict[str, dict[str, Any]]:
    fsi_at, psi_at = intervals.mean_intervals(fsi), intervals.mean_intervals(psi)
    rows = {}
    for model in panel.models:
        mine = [row for (name, _), row in pairs.items() if name == model]
        floors = [r["noise_floor"] for r in mine if r["noise_floor"] is not None]
        tests = [r["p_holm"] for r in mine if r["p_holm"] is not None]
        shared = decomposition.model_parts(dict(parts), model)
        row = _interval("fsi", fsi_at[model]) | _interval("psi", psi_at[model])
        row |= {
            "noise_floor": float(np.mean(floors)) if floors else None,
            "p_equal_min_holm": min(tests, default=None),
            **_fields(shared, compliance="compliance_part", conditional="conditional_part"),
            "compliance_share": _share(shared),
        }
        low, high = ranked.get(model, (None, None))
        rows[model] = row | {"rank_low": low, "rank_high": high}
    return rows


def _share(parts: decomposition.Parts | Missing) -> float | None:
    """The compliance part over FSI; None where there is no span to share out."""
    if isinstance(parts, Missing) or parts.fsi <= 0:
        return None
    return parts.compliance / parts.fsi


def _best(panel: Panel, drawn: Resamples) -> dict[tuple[str, str], dict[str, float]]:
    return {
        (model, task.name): dict(zip(panel.wrappers, map(float, best[m]), strict=True))
        for task, best in zip(panel.tasks, drawn.best, strict=True)
        for m, model in enumerate(panel.models)
    }


def _wrapper_pairs(panel: Panel) -> list[dict[str, Any]]:
    rows = []
    for model, found in wrapper_pairs(panel).items():
        for pair in () if isinstance(found, Missing) else found:
            rows.append(
                {
                    "model": model,
                    "wrapper_a": pair.first,
                    "wrapper_b": pair.second,
                    "difference": pair.difference,
                    **_fields(pair.paired, low="low", high="high", p_holm="p_holm"),
                    **_fields(pair.mcnemar, p="mcnemar_p", p_holm="mcnemar_p_holm"),
                }
            )
    return rows


def _ranks(
    panel: Panel, rng: np.random.Generator
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, tuple[float, float]]]:
    common = panel.common()
    found = ranking.rankings(common, resample(common, rng, resamples=RESAMPLES))[None]
    if isinstance(found, Missing):
        return [], [], {}
    ranks = [
        {"model": model, "wrapper": wrapper, "rank": float(found.ranks[m, w])}
        for m, model in enumerate(found.models)
        for w, wrapper in enumerate(panel.wrappers)
    ]
    reversals = [_comparison(c, panel.wrappers) for c in found.comparisons]
    spans = zip(found.models, found.intervals, strict=True)
    return ranks, reversals, {m: (float(i[0]), float(i[1])) for m, i in spans}


def _comparison(found: ranking.Comparison, wrappers: Sequence[str]) -> dict[str, Any]:
    """Two models, and the wrappers under which each is furthest ahead."""
    return {
        "model_a": found.a,
        "model_b": found.b,
        "certain": found.reversal,
        "wrapper_for": wrappers[int(np.argmax(found.gaps))],
        "wrapper_against": wrappers[int(np.argmin(found.gaps))],
        "reversed_share": found.reversed_share,
        "reversed_gap": found.reversed_gap,
    }


def _facts(panel: Panel, fsi: intervals.Spans, rng: np.random.Generator) -> dict[str, Any]:
    """Figures of the run as a whole, as plain data."""
    cells = accuracy_on_parseability(panel, rng)
    contrast = intervals.contrast(intervals.mean_intervals(fsi))
    return {"accuracy on parseability": plain_data(cells), "contrast of FSI": plain_data(contrast)}


def plain_data(value: object) -> Any:  # noqa: ANN401 - JSON has no narrower type
    """Results of the statistics as JSON can hold them; a missing figure is its reason."""
    if isinstance(value, Missing):
        return f"not estimable: {value.reason}"
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {k: plain_data(v) for k, v in value._asdict().items()}
    if isinstance(value, Mapping):
        return {
            " / ".join(k) if isinstance(k, tuple) else str(k): plain_data(v)
            for k, v in value.items()
        }
    if isinstance(value, np.ndarray):
        return plain_data(value.tolist())
    if isinstance(value, tuple | list):
        return [plain_data(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value
