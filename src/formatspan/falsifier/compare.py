"""The arms side by side: spans, parts, paired differences and findings, as plain rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from formatspan.falsifier.arms import Arm
from formatspan.inference import SEED, plain_data
from formatspan.stats.decomposition import decompositions, model_parts
from formatspan.stats.forced import Forced, forced
from formatspan.stats.intervals import Estimate, mean_intervals, spans
from formatspan.stats.panel import Missing, Panel, TaskCounts
from formatspan.stats.regression import CellRegression, accuracy_on_parseability
from formatspan.stats.relations import Correlation
from formatspan.stats.resampling import RESAMPLES, Resamples, drawn_alike, resample_together
from formatspan.stats.verdict import Needed, Sides, Verdict, verdicts

Row = dict[str, Any]


def compared(arms: Sequence[Arm]) -> list[Row]:
    """A row a model and arm; the first arm is the reference.

    The limits of an arm are those that an analysis of its replies has: no other arm moves them.
    Its difference from the reference comes from both drawn together, so that it is paired.
    """
    reference, *others = arms
    (normalized,) = _drawn(reference)
    rows = list(_arm_rows(reference, reference, normalized, {}))
    found: dict[str, list[Row]] = {}
    for group in _groups(others):
        paired = _drawn(reference, *group)
        as_alone = drawn_alike(reference.panel, group[0].panel)
        own = paired[1:] if as_alone else _drawn(*group)
        for arm, alone, together in zip(group, own, paired[1:], strict=True):
            sides = _sides(reference, arm, normalized, alone)
            verdict = verdicts(sides, _sides(reference, arm, paired[0], together))
            found[arm.name] = list(_arm_rows(arm, reference, alone, verdict))
    return rows + [row for arm in others for row in found[arm.name]]


def _groups(arms: Sequence[Arm]) -> list[list[Arm]]:
    """Arms from which the same examples are drawn, so that one drawing serves all of them."""
    groups: list[list[Arm]] = []
    for arm in arms:
        for group in groups:
            if drawn_alike(group[0].panel, arm.panel):
                group.append(arm)
                break
        else:
            groups.append([arm])
    return groups


def _drawn(*arms: Arm) -> list[Resamples]:
    """The arms drawn together, by the seed of an analysis; if alike, each as it is alone."""
    rng = np.random.default_rng(SEED)
    panels = [arm.panel for arm in arms]
    return resample_together(panels, rng, resamples=RESAMPLES, as_alone=True)


def _sides(reference: Arm, arm: Arm, here: Resamples, there: Resamples) -> Sides:
    return Sides(spans(reference.panel, here), spans(arm.panel, there))


def _arm_rows(
    arm: Arm, reference: Arm, drawn: Resamples, found: Mapping[str, Verdict | Missing]
) -> Iterator[Row]:
    panel = arm.panel
    fsi, psi = spans(panel, drawn), spans(panel, drawn, "parseability")
    fsi_at, psi_at = mean_intervals(fsi), mean_intervals(psi)
    parts, counterfactual = decompositions(panel), forced(panel)
    for m, model in enumerate(panel.models):
        shared = model_parts(parts, model)
        yield {
            "model": model,
            "arm": arm.name,
            "tasks": int(panel.indexed[m].sum()),
            "n": _examples(panel, m),
            "accuracy": _accuracy(panel, m),
            **_estimate("fsi", fsi_at[model]),
            **_estimate("psi", psi_at[model]),
            "forced_fsi": _forced_fsi(panel, counterfactual, model),
            "compliance_part": None if isinstance(shared, Missing) else shared.compliance,
            "conditional_part": None if isinstance(shared, Missing) else shared.conditional,
            **_finding(found.get(model)),
            "note": _note(arm, reference, m, fsi_at[model], found.get(model)),
        }


def _estimate(name: str, found: Estimate | Missing) -> Row:
    known = isinstance(found, Estimate)
    keys = {name: "value", f"{name}_low": "low", f"{name}_high": "high"}
    return {new: getattr(found, old) if known else None for new, old in keys.items()}


def _examples(panel: Panel, model: int) -> int:
    return int(sum(t.means.n[model] for t in panel.tasks))


def _accuracy(panel: Panel, model: int) -> float | None:
    values = [t.means.accuracy[model].mean() for t in panel.tasks if t.means.n[model]]
    return float(np.mean(values)) if values else None


def _forced_fsi(
    panel: Panel, found: dict[tuple[str, str], Forced | Missing], model: str
) -> float | None:
    values = [f.fsi for t in panel.tasks if isinstance(f := found[model, t.name], Forced)]
    return float(np.mean(values)) if values else None


def _finding(found: Verdict | Missing | None) -> Row:
    row: Row = dict.fromkeys(("finding", "needed", "towards"))
    if not isinstance(found, Verdict):
        return row | _estimate("reference", Missing("")) | _estimate("difference", Missing(""))
    row |= {"finding": found.finding}
    row |= _estimate("reference", found.normalized) | _estimate("difference", found.difference)
    if isinstance(found.needed, Needed):
        row |= {"needed": found.needed.examples, "towards": found.needed.towards}
    return row


def _note(
    arm: Arm, reference: Arm, m: int, span: Estimate | Missing, found: Verdict | Missing | None
) -> str | None:
    model = arm.panel.models[m]
    reasons = [arm.notes[model]] if model in arm.notes else []
    if isinstance(span, Missing):
        return "; ".join([*reasons, span.reason])
    if not _same_examples(arm.panel, reference.panel, m):
        here, there = _examples(arm.panel, m), _examples(reference.panel, m)
        reasons.append(
            f"spans of other examples ({here:,}) than at normalized ({there:,}); the difference "
            "is over the tasks that both have"
        )
    if isinstance(found, Missing):
        reasons.append(found.reason)
    elif isinstance(found, Verdict) and isinstance(found.needed, Missing):
        reasons.append(found.needed.reason)
    return "; ".join(reasons) or None


def _same_examples(a: Panel, b: Panel, m: int) -> bool:
    pairs = zip(a.tasks, b.tasks, strict=True)
    return all(np.array_equal(s.indexed[m], t.indexed[m]) for s, t in pairs)


def relations(arms: Sequence[Arm]) -> list[Row]:
    """A row an arm: r and β over all cells of the run, beside what scoring alone forces."""
    rows = []
    for arm in arms:
        found = accuracy_on_parseability(arm.panel, np.random.default_rng(SEED))
        row: Row = {"arm": arm.name}
        row["r"] = found.r.r if isinstance(found.r, Correlation) else None
        row["forced_r"] = found.forced_r.r if isinstance(found.forced_r, Correlation) else None
        rows.append(row | _slope(found.regression))
    return rows


def _slope(found: CellRegression | Missing) -> Row:
    if isinstance(found, Missing):
        empty: Row = dict.fromkeys(
            ("beta", "beta_low", "beta_high", "forced_beta", "partial_r2", "cells", "clusters")
        )
        return empty | {"reliable": None, "note": found.reason}
    wild = found.wild
    limits = [None, None] if isinstance(wild, Missing) else [_number(wild.low), _number(wild.high)]
    return {
        "beta": found.beta,
        "beta_low": limits[0],
        "beta_high": limits[1],
        "forced_beta": found.forced_beta,
        "partial_r2": plain_data(found.partial_r2),
        "cells": found.cells,
        "clusters": None if isinstance(wild, Missing) else wild.clusters,
        "reliable": None if isinstance(wild, Missing) else wild.reliable,
        "note": wild.reason if isinstance(wild, Missing) else None,
    }


def _number(value: float | Missing) -> float | None:
    return None if isinstance(value, Missing) else float(value)


ABILITY = ("strict", "normalized", "lenient", "constrained", "likelihood")
"""Arms of the figure that sets ability apart from format, from the harshest on."""


def ability(arms: Sequence[Arm], chances: Mapping[str, float]) -> list[Row]:
    """Accuracy by model, arm and wrapper, over the tasks that all arms shown have."""
    shown = sorted((a for a in arms if a.name in ABILITY), key=lambda a: ABILITY.index(a.name))
    rows = []
    for m, model in enumerate(shown[0].panel.models if shown else ()):
        mine = [a for a in shown if a.panel.indexed[m].any()]
        if not mine:
            continue
        common = np.logical_and.reduce([a.panel.indexed[m] for a in mine])
        for arm in mine if common.any() else ():
            tasks = [t for t, there in zip(arm.panel.tasks, common, strict=True) if there]
            rows += list(_by_wrapper(arm, model, m, tasks, chances))
    return rows


def _by_wrapper(
    arm: Arm, model: str, m: int, tasks: Sequence[TaskCounts], chances: Mapping[str, float]
) -> Iterator[Row]:
    values = np.array([t.means.accuracy[m] for t in tasks])
    over = {"tasks": len(tasks), "over": ", ".join(t.name for t in tasks)}
    over["chance"] = float(np.mean([chances[t.name] for t in tasks]))
    for wrapper, accuracy in zip(arm.panel.wrappers, values.mean(axis=0), strict=True):
        where = {"model": model, "arm": arm.name, "wrapper": wrapper}
        yield {**where, "accuracy": float(accuracy), **over}
