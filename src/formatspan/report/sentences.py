"""The answer in three sentences, for somebody who reads nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from formatspan.counting import counted
from formatspan.report.escape import one_line
from formatspan.report.numbers import count, interval, percent, points
from formatspan.report.verdict import Cause, Verdict, cause, verdict
from formatspan.report.view import Row, View

NAMED = 3
"""Models named one by one in a sentence; the rest are counted."""


class Answer(NamedTuple):
    """The three sentences of a report."""

    span: str
    """Which model is safe under which wrappers."""
    loss: str
    """What share of the loss is compliance."""
    ranking: str
    """Whether the order of the models can be trusted."""


def answer(view: View) -> Answer:
    """The three sentences, no stronger than the statistics allow."""
    groups: dict[Verdict, list[Row]] = defaultdict(list)
    for model in view.models:
        groups[verdict(model, view)].append(model)
    said = (_span(groups, view), _loss(groups, view), _ranking(view))
    return Answer(*map(one_line, said))  # names of users may hold what turns a line around


def _span(groups: dict[Verdict, list[Row]], view: View) -> str:
    parts = [_sentence(say(groups[v], view)) for v, say in _SAID.items() if groups[v]]
    return " ".join(parts) or "Nothing has been asked yet."


def _effect(models: Sequence[Row], view: View) -> str:
    ranked = sorted(models, key=lambda m: -m["fsi"])
    first = ranked[0]
    text = (
        f"changing only the wrapper moves the accuracy of {first.label} by "
        f"{points(first['fsi'])} points{_over_tasks(view)} (95% interval "
        f"{interval(first['fsi_low'], first['fsi_high'])}){_best_and_worst(first)}"
    )
    others = [f"{m.label} by {points(m['fsi'])} points{_within(m)}" for m in ranked[1:NAMED]]
    if len(ranked) > NAMED:
        others.append(f"{counted(len(ranked) - NAMED, 'more model')} by less")
    return text + (f". It moves the accuracy of {listed(others)}" if others else "")


def _within(model: Row) -> str:
    return f" ({interval(model['fsi_low'], model['fsi_high'])})"


def _over_tasks(view: View) -> str:
    return " from best to worst, on average over tasks" if len(view.tasks) > 1 else ""


def _best_and_worst(model: Row) -> str:
    best, worst = model["best_wrapper"], model["worst_wrapper"]
    if not best or not worst or best == worst:
        return ""
    high, low = percent(model["wrapper_high"]), percent(model["wrapper_low"])
    return f"; over all tasks it is highest under {best} ({high}) and lowest under {worst} ({low})"


def _safe(models: Sequence[Row], view: View) -> str:
    high = max(m["fsi_high"] for m in models)
    return (
        f"{_names(models)} {_verb(models, 'is', 'are')} safe under all {len(view.wrappers)} "
        f"wrappers tried: no effect beyond noise, and at most {points(high)} points with 95% "
        "confidence"
    )


def _no_effect(models: Sequence[Row], view: View) -> str:
    high = max(m["fsi_high"] for m in models)
    return (
        f"{_names(models)} {_verb(models, 'shows', 'show')} no effect beyond noise over "
        f"{counted(len(view.wrappers), 'wrapper')}, though a span of up to {points(high)} points "
        "cannot be ruled out"
    )


def _undecided(models: Sequence[Row], view: View) -> str:
    return (
        f"{_names(models)} {_verb(models, 'remains', 'remain')} undecided: the wrapper matters on "
        "at least one task, while the mean over tasks could be 0"
    )


def _no_interval(models: Sequence[Row], view: View) -> str:
    spans = [f"{m.label}: {points(m['fsi'])} points" for m in models[:NAMED]]
    return (
        f"measured spans ({listed(spans)}) come without an interval, so that effect and noise "
        "cannot be told apart"
    )


def _few(models: Sequence[Row], view: View) -> str:
    n = max(p["n"] for m in models for p in view.of(m, "pairs"))
    return (
        f"{_names(models)} answered too few examples ({count(n)} a task at most) to say whether "
        "the wrapper matters"
    )


def _one_wrapper(models: Sequence[Row], view: View) -> str:
    return f"{_names(models)} {_verb(models, 'was', 'were')} asked in one wrapper only: no span"


def _nothing(models: Sequence[Row], view: View) -> str:
    return (
        f"{_names(models)} {_verb(models, 'has', 'have')} no example with replies under every "
        "wrapper yet"
    )


_SAID = {
    Verdict.EFFECT: _effect,
    Verdict.SAFE: _safe,
    Verdict.NO_EFFECT: _no_effect,
    Verdict.UNDECIDED: _undecided,
    Verdict.NO_INTERVAL: _no_interval,
    Verdict.FEW: _few,
    Verdict.ONE_WRAPPER: _one_wrapper,
    Verdict.NOTHING: _nothing,
}


def _loss(groups: dict[Verdict, list[Row]], view: View) -> str:
    affected = groups[Verdict.EFFECT]
    if not affected:
        return _without_effect(groups)
    known = [m for m in affected if m["compliance_part"] is not None and m["fsi"]]
    if not known:
        return "What the loss is made of was not estimated."
    share = sum(m["compliance_part"] for m in known) / sum(m["fsi"] for m in known)
    whose = "" if len(view.models) == 1 else f" of {_names(known)}"
    return _ATTRIBUTED[cause(share)].format(whose=whose, share=_share(share))


def _without_effect(groups: dict[Verdict, list[Row]]) -> str:
    found = {v for v, models in groups.items() if models}
    if found and found <= {Verdict.SAFE, Verdict.NO_EFFECT}:
        return "No loss beyond noise was found, so there is none to explain."
    return "As long as no effect of the wrapper is established, there is no loss to explain."


_ATTRIBUTED = {
    Cause.COMPLIANCE: (
        "The loss{whose} is mostly compliance: an estimated {share} of it comes from replies that "
        "could not be read in the form asked for, not from wrong answers."
    ),
    Cause.ABILITY: (
        "The loss{whose} is mostly not compliance: an estimated {share} of it comes from replies "
        "that could not be read, the rest from answers that were read and wrong."
    ),
    Cause.BOTH: (
        "The loss{whose} has two parts: an estimated {share} of it comes from replies that could "
        "not be read in the form asked for, the rest from answers that were read and wrong."
    ),
}


def _share(share: float) -> str:
    """A share of a loss; the parts are signed, so that one can exceed the whole."""
    return f"{min(100.0, max(0.0, 100 * share)):.0f}%"


def _ranking(view: View) -> str:
    free = [m for m in view.models if (m["mode"] or "free") == "free"] or view.models
    if len(free) < 2:
        return "With one model there is no ranking to trust or to doubt."
    modes = {m["mode"] or "free" for m in free}
    compared = [r for r in view.rows("reversals") if (r["mode"] or "free") in modes]
    turned = [r for r in compared if _beyond_noise(r)]
    if turned:
        return _turned(turned, len(compared))
    placed = [m for m in free if m["rank_low"] is not None and m["rank_high"] is not None]
    if len(placed) < 2:
        return "Whether the ranking of the models holds over wrappers was not estimated."
    moved = [m for m in placed if m["rank_low"] != m["rank_high"]]
    if moved and not view.has("reversals"):
        return (
            f"Ranks of {_names(moved)} change with the wrapper in this sample; whether beyond "
            "noise was not tested."
        )
    if not moved:
        return (
            f"In this sample the {len(placed)} models rank the same under every wrapper; that "
            "says nothing about wrappers that were not tried."
        )
    return (
        f"Ranks of {_names(moved)} change with the wrapper in this sample, but no change is beyond "
        "noise: which model is better there is not settled."
    )


def _beyond_noise(reversal: Row) -> bool:
    """Whether the simultaneous limits exclude chance; a row that does not say so does not count."""
    return reversal["certain"] is True


def _turned(turned: Sequence[Row], compared: int) -> str:
    worst = max(turned, key=lambda r: r["reversed_gap"] or 0.0)
    more = (
        f" ({count(len(turned))} of {count(compared)} pairs of models turn so)"
        if compared > 1
        else ""
    )
    return (
        "The ranking cannot be trusted across wrappers: beyond noise, "
        f"{worst['model_a']} is ahead of {worst['model_b']} under "
        f"{worst['wrapper_for'] or 'one wrapper'} and behind under "
        f"{worst['wrapper_against'] or 'another'}{more}."
    )


def listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _names(models: Sequence[Row]) -> str:
    names = [m.label for m in models[:NAMED]]
    if len(models) > NAMED:
        names.append(f"{count(len(models) - NAMED)} more")
    return listed(names)


def _verb(models: Sequence[Row], one: str, several: str) -> str:
    return one if len(models) == 1 else several


def _sentence(text: str) -> str:
    start = text[:1].upper() if text.startswith(("changing ", "measured ")) else text[:1]
    return f"{start}{text[1:]}."
