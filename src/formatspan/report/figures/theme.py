"""Colours and the look of all figures.

Text and lines are drawn in ``currentColor``, so that one figure serves light, dark and print:
the page's style sheet decides. Files get `INK` in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from formatspan.records import Status

if TYPE_CHECKING:
    import altair as alt

INK = "#1c1f24"
CURRENT = "currentColor"
FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
FILE_FONT = "Liberation Sans, Helvetica, Arial, sans-serif"

SERIES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8C6BB1", "#999999")
"""Okabe and Ito's palette without black and yellow, which one of both backgrounds swallows.

Source: https://jfly.uni-koeln.de/color/, told apart by people with any colour blindness.
"""

INDEX_COLOURS = {"FSI": SERIES[0], "PSI": SERIES[1]}
PART_COLOURS = (SERIES[1], SERIES[0])
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
STATUS_COLOURS = {
    Status.OK: "#009E73",
    Status.OFF_FORMAT: "#56B4E9",
    Status.NO_ANSWER: "#E69F00",
    Status.AMBIGUOUS: "#CC79A7",
    Status.TRUNCATED: "#D55E00",
    Status.EMPTY: "#999999",
    Status.REFUSAL: "#0072B2",
}
HEAT = ("#f1f5f9", "#cfe0ef", "#86b8dc", "#3a86c0", "#0b4a84", "#07305a")
WIDTH = 620
"""Of a figure that stretches to its page, in files."""
PANEL = 205
ROW = 26
"""Height of one bar or dot with its space."""


def colours(names: Sequence[str]) -> list[str]:
    """A colour for each name by its place, so that a wrapper has one in all figures."""
    return [SERIES[i % len(SERIES)] for i in range(len(names))]


def config() -> dict[str, Any]:
    """What all figures share."""
    axis = {
        "labelColor": CURRENT,
        "titleColor": CURRENT,
        "domainColor": CURRENT,
        "tickColor": CURRENT,
        "gridColor": CURRENT,
        "gridOpacity": 0.12,
        "domainOpacity": 0.35,
        "tickOpacity": 0.35,
        "titleFontWeight": "normal",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelLimit": 180,
    }
    legend = {
        "labelColor": CURRENT,
        "titleColor": CURRENT,
        "orient": "top",
        "columns": 3,  # a longer row would leave a narrow page
        "title": None,
        "labelFontSize": 12,
        "symbolType": "circle",
        "symbolOpacity": 1,
        "titleFontWeight": "normal",
        "labelLimit": 260,
    }
    return {
        "background": "transparent",
        "font": FONT,
        "axis": axis,
        "legend": legend,
        "view": {"stroke": None},
        "title": {"color": CURRENT, "fontSize": 12, "anchor": "start"},
        "header": {"labelColor": CURRENT, "titleColor": CURRENT, "labelFontSize": 12,
                   "labelFontWeight": "bold", "title": None, "labelAnchor": "start"},
        "text": {"color": CURRENT, "fontSize": 11},
        "rule": {"color": CURRENT},
        "tick": {"color": CURRENT},
    }  # fmt: skip


def finished(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """The chart as a Vega-Lite specification in the look of all figures."""
    spec: dict[str, Any] = chart.to_dict()
    return {**spec, "config": config()}
