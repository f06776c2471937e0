"""The league table: one line a model, the most important first."""

from __future__ import annotations

from typing import NamedTuple

from formatspan.report.numbers import MISSING, interval, percent, points
from formatspan.report.verdict import Verdict, verdict
from formatspan.report.view import Row, View

BAR_HEIGHT = 30
"""Pixels."""
_STAGGER = 16


class Dot(NamedTuple):
    """A wrapper's accuracy on the range bar."""

    wrapper: str
    place: int
    """Number of the wrapper in the study, which gives its colour."""
    x: str
    """Accuracy as a percentage of the bar's width."""
    y: str
    """Pixels from the top: dots of equal accuracy must not hide each other."""
    text: str


class Bar(NamedTuple):
    """Accuracy by wrapper, from worst to best."""

    x: str
    width: str
    dots: list[Dot]


class Line(NamedTuple):
    """A line of the league table, as text."""

    model: str
    accuracy: str
    bar: Bar | None
    lowest: str
    highest: str
    fsi: str
    fsi_interval: str
    noise_floor: str
    psi: str
    psi_interval: str
    compliance: str
    rank: str
    verdict: Verdict
    replies: int
    requested: int
    note: str


def league(view: View) -> list[Line]:
    """A line a model and decoding mode, the highest accuracy first."""
    ordered = sorted(view.models, key=lambda m: -(m["accuracy"] or -1.0))
    return [_line(model, view) for model in ordered]


def _line(model: Row, view: View) -> Line:
    return Line(
        model=model.label,
        accuracy=percent(model["accuracy"]),
        bar=_bar(model, view),
        lowest=percent(model["wrapper_low"]),
        highest=percent(model["wrapper_high"]),
        fsi=points(model["fsi"]),
        fsi_interval=interval(model["fsi_low"], model["fsi_high"]),
        noise_floor=points(model["noise_floor"]),
        psi=points(model["psi"]),
        psi_interval=interval(model["psi_low"], model["psi_high"]),
        compliance=_compliance(model, view),
        rank=_rank(model),
        verdict=verdict(model, view),
        replies=model["replies"] or 0,
        requested=model["requested"] or 0,
        note=model["note"] or "",
    )


def _bar(model: Row, view: View) -> Bar | None:
    by_wrapper = view.by_wrapper(model, "accuracy")
    if not by_wrapper:
        return None
    low, high = min(by_wrapper.values()), max(by_wrapper.values())
    dots = [
        Dot(name, place, _length(by_wrapper[name]), _height(place, view), percent(by_wrapper[name]))
        for place, name in enumerate(view.wrappers)
        if name in by_wrapper
    ]
    return Bar(_length(low), _length(high - low), dots)


def _height(place: int, view: View) -> str:
    last = max(1, len(view.wrappers) - 1)
    return f"{BAR_HEIGHT / 2 + _STAGGER * (place / last - 0.5):.1f}"


def _length(share: float) -> str:
    return f"{100 * share:.2f}%"


def _compliance(model: Row, view: View) -> str:
    """The share, only where there is a loss beyond noise to be shared out."""
    if verdict(model, view) is not Verdict.EFFECT:
        return MISSING
    return percent(model["compliance_share"], 0)


def _rank(model: Row) -> str:
    low, high = model["rank_low"], model["rank_high"]
    if low is None or high is None:
        return MISSING
    shown = [f"{value:g}" for value in (low, high)]
    return shown[0] if low == high else "–".join(shown)
