"""What a figure's own statistics allow to be said under it, in a sentence or two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from formatspan.counting import counted
from formatspan.report.escape import one_line
from formatspan.report.numbers import count, interval, percent, points
from formatspan.report.sentences import NAMED, listed
from formatspan.report.view import Row, View

FEW_MODELS = 4
Say = Callable[[View], list[str]]


def remarks(figure: str, view: View) -> list[str]:
    """Sentences under a figure; none where there is nothing to add."""
    say = _SAID.get(figure)
    return [one_line(text) for text in say(view)] if say else []


def _means(view: View) -> list[str]:
    found = _fact(view, "contrast of FSI")
    if not isinstance(found, Mapping):
        return []
    low, high = found["bounds"]["low"], found["bounds"]["high"]
    return [
        f"{found['largest']} has {found['ratio']:.1f} times the mean FSI of {found['smallest']}; "
        f"by the two intervals, between {low:.1f} and {high:.1f} times."
    ]


def _scatter(view: View) -> list[str]:
    found = _fact(view, "accuracy on parseability")
    slope = found["regression"] if isinstance(found, Mapping) else None
    if not isinstance(slope, Mapping):
        return [f"The slope over cells is {slope}."] if slope else []
    wild = slope["wild"]
    within = ""
    if isinstance(wild, Mapping) and isinstance(wild["low"], float):
        high = wild["high"]
        within = f" (95% wild cluster bootstrap {wild['low']:.2f} to {_limit(high)}{_few(wild)})"
    return [
        f"Within models, tasks and wrappers, accuracy rises by {slope['beta']:.2f} for one of "
        f"parseability{within}. Scoring alone, with one conditional accuracy for all wrappers, "
        f"would give {slope['forced_beta']:.2f}: the slope by itself proves little."
    ]


def _limit(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else "no upper limit"


def _few(wild: Mapping[str, Any]) -> str:
    return "" if wild["reliable"] else f", not reliable with {counted(wild['clusters'], 'cluster')}"


def _spreads(view: View) -> list[str]:
    if not view.rows("spreads"):
        return []
    inside, outside = (sum(p["n"] or 0 for p in view.rows(f)) for f in ("matched", "pairs"))
    if not inside:
        return ["No indexed example is in the matched subset, so FSI there cannot be given."]
    found = [r for r in view.rows("levels") if _is_matched(r, view) and r["fsi"] is not None]
    spans = [f"{r.label}: {points(r['fsi'])} ({_limits(r)})" for r in found[:NAMED]]
    there = f" Mean FSI there: {listed(spans)}." if spans else ""
    return [
        f"{count(inside)} of {counted(outside, 'indexed example')} {_are(inside)} matched.{there}"
    ]


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _is_matched(row: Row, view: View) -> bool:
    return (row["subset"], row["level"]) == ("matched", view.analysis.level)


def _limits(row: Row) -> str:
    return interval(row["fsi_low"], row["fsi_high"])


def _decomposition(view: View) -> list[str]:
    said = [
        f"{points(m['fsi_forced'])} for {m.label} (FSI is {points(m['fsi'])})"
        for m in view.models[:NAMED]
        if m["fsi_forced"] is not None
    ]
    if not said:
        return []
    return [
        "Had every wrapper the same accuracy among replies that parsed, scoring alone would give "
        f"a mean FSI of {listed(said)}."
    ]


def _ranks(view: View) -> list[str]:
    found = _fact(view, "ranking")
    if not isinstance(found, Mapping):
        return []
    turned, pairs = found["reversals"], found["pairs"]
    change = "changes" if turned == 1 else "change"
    compared = counted(pairs, "pair")
    said = [f"{count(turned)} of {compared} of models {change} order beyond noise."]
    if isinstance(found["kendall_w"], float):
        said.append(
            f"Kendall's W is {found['kendall_w']:.2f}: 1 if all wrappers rank the models alike, "
            "0 if they do not agree at all."
        )
    return said


def _caps(view: View) -> list[str]:
    rows = [r for r in view.rows("caps") if r["task"] is None]
    if not rows:
        return []
    said = [f"Replies are cut by {how}." for how in dict.fromkeys(r["cut_by"] for r in rows)]
    last: dict[str, Row] = {r.label: r for r in rows}
    shares = [f"{percent(r['cut_off'])} of {label}" for label, r in list(last.items())[:NAMED]]
    said.append(f"At the cap of the run these replies were cut off: {listed(shares)}.")
    said += [text for label in list(last)[:NAMED] if (text := _from_where(label, rows))]
    return said


def _from_where(label: str, rows: Sequence[Row]) -> str:
    """Where the word on the wrapper changes, if it does."""
    mine = [r for r in rows if r.label == label and r["fsi_low"] is not None]
    effect = [r["fsi_low"] > 0 for r in mine]
    if len(set(effect)) < 2:
        return ""
    other = next(i for i in reversed(range(len(effect))) if effect[i] != effect[-1])
    word = "lies above 0" if effect[-1] else "touches 0"
    return f"The interval of FSI of {label} {word} from {mine[other + 1]['cap']} tokens on."


def _sizes(view: View) -> list[str]:
    found = _fact(view, "FSI and size")
    if not isinstance(found, Mapping):
        return [f"A slope over models is {found}."] if found else []
    within, n = found["interval"], found["n"]
    slope = (
        f"For ten times the parameters mean FSI changes by {points(found['slope'])} points (95% "
        f"interval {interval(within['low'], within['high'])}, as if the models were drawn at "
        "random)."
    )
    least = found["detectable_r"]
    word = "cannot show a law" if n <= FEW_MODELS else "show little"
    return [
        slope,
        f"{n} models {word}: only a correlation beyond ±{least:.2f} could be told from none, and "
        f"the one found is {found['r']:.2f}. Size goes with family, training and date.",
    ]


def _fact(view: View, name: str) -> Any:  # noqa: ANN401 - JSON
    """A figure of the run in its first decoding mode; a text says why there is none."""
    for _, found in view.facts_by_mode():
        return found.get(name)
    return None


_SAID: dict[str, Say] = {
    "means": _means,
    "scatter": _scatter,
    "spreads": _spreads,
    "decomposition": _decomposition,
    "ranks": _ranks,
    "caps": _caps,
    "sizes": _sizes,
}
