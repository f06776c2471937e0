"""What to do: per model the wrapper to use, where constraining pays, where n is too small."""

from __future__ import annotations

from typing import NamedTuple

from formatspan.analysis import FEW_EXAMPLES
from formatspan.counting import counted
from formatspan.report.escape import one_line
from formatspan.report.numbers import count, percent, points
from formatspan.report.sentences import listed
from formatspan.report.verdict import SAFE_SPAN, SIGNIFICANT, Verdict, more_examples, verdict
from formatspan.report.view import Row, View

WORTH = 0.01
"""Gains below one point are not worth a constrained decoder."""


class Advice(NamedTuple):
    """What to do with one model."""

    model: str
    verdict: Verdict
    use: str
    constrain: str
    more: str


def advice(view: View) -> list[Advice]:
    """A row a model and decoding mode."""
    return [
        Advice(
            m.label, found, *(one_line(say(m, found, view)) for say in (_use, _constrain, _more))
        )
        for m in view.models
        for found in [verdict(m, view)]
    ]


def _use(model: Row, found: Verdict, view: View) -> str:
    best = model["best_wrapper"]
    if found in (Verdict.NOTHING, Verdict.FEW):
        return "Too early to say."
    if found is Verdict.ONE_WRAPPER:
        return "Measure a second wrapper."
    if found is Verdict.SAFE:
        return "Any of the wrappers tried."
    if found is Verdict.EFFECT and best:
        return f"{best} ({percent(model['wrapper_high'])}){_alike(model, view)}."
    if not best or best == model["worst_wrapper"]:
        return "None is shown to be better."
    return f"None is shown to be better; {best} was highest in this sample."


def _alike(model: Row, view: View) -> str:
    """Wrappers that were compared with the best one and are not shown to be worse."""
    best = str(model["best_wrapper"])
    alike = [
        r["wrapper_b"] if r["wrapper_a"] == best else r["wrapper_a"]
        for r in view.of(model, "wrapper_pairs")
        if best in (r["wrapper_a"], r["wrapper_b"]) and _not_apart(r)
    ]
    return f"; {listed(alike)} not shown to be worse" if alike else ""


def _not_apart(pair: Row) -> bool:
    if pair["p_holm"] is None:  # no test where every example came out alike
        return bool(pair["difference"] == 0)
    return bool(pair["p_holm"] >= SIGNIFICANT)


def _constrain(model: Row, found: Verdict, view: View) -> str:
    if (model["mode"] or "free") != "free":
        return "Already constrained."
    measured = _measured(model, view)
    if measured is not None:
        return f"Measured: FSI {points(model['fsi'])} free, {points(measured)} constrained."
    part = model["compliance_part"]
    if part is None:
        return "Not estimated."
    if found is not Verdict.EFFECT or part < WORTH:
        return "No gain to expect beyond noise."
    return (
        f"About {points(part)} points between best and worst wrapper, the compliance part of the "
        f"loss (mean over tasks){_unread(model, view)}."
    )


def _unread(model: Row, view: View) -> str:
    """Where replies parse least, which is where a constraint has most to mend."""
    parsed = view.by_wrapper(model, "parseability")
    if not parsed:
        return ""
    least = min(parsed, key=lambda name: parsed[name])
    return f"; fewest replies parse under {least} ({percent(parsed[least])})"


def _measured(model: Row, view: View) -> float | None:
    twins = [m for m in view.models if m["model"] == model["model"] and m is not model]
    return next((m["fsi"] for m in twins if m["mode"] == "constrained"), None)


def _more(model: Row, found: Verdict, view: View) -> str:
    pairs = view.of(model, "pairs")
    few = [p["task"] for p in pairs if (p["n"] or 0) < FEW_EXAMPLES]
    if few:
        shown = listed(few[:4] + ([counted(len(few) - 4, "more task")] if len(few) > 4 else []))
        return f"Yes, on {shown}: fewer than {FEW_EXAMPLES} examples."
    need = more_examples(model, view)
    if need is None:
        return "No." if found in (Verdict.EFFECT, Verdict.SAFE) else "Cannot be foreseen."
    aim = f"to bound the span within {points(SAFE_SPAN, 0)} points of its estimate"
    if found is Verdict.UNDECIDED:
        aim = "for the mean to stand out, if its estimate holds"
    return f"About {count(need.needed)} a task instead of {count(need.now)}, {aim}."
