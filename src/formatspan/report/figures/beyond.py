"""How the figures beyond the paper's are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from formatspan.records import Status
from formatspan.report.figures.data import ABILITY, COMPLIANCE
from formatspan.report.figures.parts import (
    EXACT,
    Chart,
    index_colour,
    legend_filter,
    paling,
    panel_width,
    panels,
    percent_axis,
    plain_axis,
    whole,
    wrapper_colour,
)
from formatspan.report.figures.theme import (
    INDEX_COLOURS,
    PANEL,
    PART_COLOURS,
    ROW,
    STATUS_COLOURS,
    WIDTH,
)

if TYPE_CHECKING:
    import polars as pl

    from formatspan.report.view import View


def decomposition(data: pl.DataFrame, view: View) -> Chart:
    """Stacked bars of the two signed parts."""
    parts = [COMPLIANCE, ABILITY]
    bars: alt.Chart = (
        alt.Chart(data)
        .mark_bar(height=ROW - 10)
        .encode(
            x=alt.X("value:Q", axis=percent_axis("part of the span, mean over tasks")),
            y=alt.Y("label:N", sort=view.labels, title=None, axis=plain_axis()),
            color=alt.Color("part:N", scale=alt.Scale(domain=parts, range=list(PART_COLOURS))),
            tooltip=[
                alt.Tooltip("label:N", title="model"),
                alt.Tooltip("part:N"),
                alt.Tooltip("value:Q", format=EXACT),
                alt.Tooltip("fsi:Q", format=EXACT, title="FSI"),
            ],
        )
        .properties(width=WIDTH, height=ROW * len(view.labels))
    )
    return bars


def ranks(data: pl.DataFrame, view: View) -> Chart:
    """The span of ranks of each model, a dot a wrapper."""
    chosen = legend_filter("wrapper")
    apart = alt.Scale(paddingInner=0.4, paddingOuter=0.2)
    base = alt.Chart(data).encode(
        y=alt.Y("label:N", sort=view.labels, title=None, axis=plain_axis(), scale=apart)
    )
    places = alt.Axis(title="rank by accuracy", tickMinStep=1, format="d")
    most = len(view.labels)
    scale = alt.Scale(domain=[0.7, most + 0.3], nice=False)
    span = base.mark_rule(strokeWidth=5, opacity=0.15, strokeCap="round").encode(
        x=alt.X("min(low):Q", axis=places, scale=scale), x2="max(high):Q"
    )
    dots = (
        base.mark_point(filled=True, size=80)
        .encode(
            x="rank:Q",
            yOffset=alt.YOffset("wrapper:N", sort=view.wrappers),
            color=wrapper_colour(view),
            opacity=paling(chosen),
            tooltip=[
                alt.Tooltip("label:N", title="model"),
                alt.Tooltip("wrapper:N"),
                alt.Tooltip("rank:Q"),
                alt.Tooltip("accuracy:Q", format=EXACT),
            ],
        )
        .add_params(chosen)
    )
    return alt.layer(span, dots).properties(width=WIDTH, height=2 * ROW * most)


def statuses(data: pl.DataFrame, view: View) -> Chart:
    """Stacked bars: what became of the replies under each wrapper."""
    chosen = legend_filter("status")
    names = [s.value for s in Status if s.value in set(data.filter(data["count"] > 0)["status"])]
    colours = [STATUS_COLOURS[Status(name)] for name in names]
    bars: alt.Chart = (
        alt.Chart(data.filter(data["count"] > 0))
        .mark_bar(height=ROW - 10)
        .encode(
            x=alt.X("share:Q", stack="zero", **whole("replies")),
            y=alt.Y("wrapper:N", sort=view.wrappers, title=None, axis=plain_axis()),
            color=alt.Color("status:N", scale=alt.Scale(domain=names, range=colours)),
            order=alt.Order("rank:Q"),
            opacity=paling(chosen),
            tooltip=[
                alt.Tooltip("label:N", title="model"),
                alt.Tooltip("wrapper:N"),
                alt.Tooltip("status:N"),
                alt.Tooltip("count:Q"),
                alt.Tooltip("share:Q", format=EXACT),
            ],
        )
        .add_params(chosen)
        .transform_calculate(rank=f"indexof({names!r}, datum.status)")
        .properties(width=panel_width(view), height=ROW * len(view.wrappers))
    )
    return panels(bars, view)


def caps(data: pl.DataFrame, view: View) -> Chart:
    """FSI and PSI over the length cap."""
    panel = (
        alt.Chart(data)
        .mark_line(point=True, strokeWidth=2)
        .encode(
            x=alt.X("cap:Q", title="cap in tokens", scale=alt.Scale(type="log", base=2)),
            y=alt.Y("value:Q", axis=percent_axis("best minus worst wrapper")),
            color=index_colour(),
            tooltip=[
                alt.Tooltip("label:N", title="model"),
                alt.Tooltip("cap:Q"),
                alt.Tooltip("index:N"),
                alt.Tooltip("value:Q", format=EXACT),
                alt.Tooltip("how:N", title="cut"),
            ],
        )
        .properties(width=panel_width(view), height=PANEL - 40)
    )
    return panels(panel, view)


def noise(data: pl.DataFrame, view: View) -> Chart:
    """FSI as a dot beside the tick of its noise floor; hollow where it is not significant."""
    base = alt.Chart(data).encode(
        y=alt.Y("task:N", sort=view.tasks, title=None, axis=plain_axis()),
        tooltip=[
            alt.Tooltip("label:N", title="model"),
            alt.Tooltip("task:N"),
            alt.Tooltip("n:Q"),
            alt.Tooltip("fsi:Q", format=EXACT, title="FSI"),
            alt.Tooltip("floor:Q", format=EXACT, title="noise floor"),
            alt.Tooltip("p_holm:Q", format=".3f", title="p (Holm)"),
        ],
    )
    between = base.mark_rule(opacity=0.3).encode(
        x=alt.X("floor:Q", axis=percent_axis("FSI (dot), noise floor (tick)")), x2="fsi:Q"
    )
    floor = base.mark_tick(thickness=2, size=14, opacity=0.8).encode(x="floor:Q")
    blue = INDEX_COLOURS["FSI"]
    fill = alt.Scale(domain=["p < 0.05", "p ≥ 0.05"], range=[blue, "transparent"])
    dots = base.mark_point(filled=True, size=75, stroke=blue, strokeWidth=1.8, opacity=1).encode(
        x="fsi:Q", fill=alt.Fill("differs:N", scale=fill, legend=alt.Legend(symbolStrokeColor=blue))
    )
    panel = alt.layer(between, floor, dots).properties(
        width=panel_width(view), height=28 * len(view.tasks)
    )
    return panels(panel, view)


def sizes(data: pl.DataFrame, view: View) -> Chart:
    """FSI against size, a colour a family."""
    base = alt.Chart(data).encode(
        x=alt.X("size:Q", title="billions of parameters", scale=alt.Scale(type="log")),
        color=alt.Color("family:N", scale=alt.Scale(range=list(_FAMILIES))),
        tooltip=[
            alt.Tooltip("label:N", title="model"),
            alt.Tooltip("size:Q", title="billions"),
            alt.Tooltip("value:Q", format=EXACT, title="FSI"),
            alt.Tooltip("low:Q", format=EXACT, title="from"),
            alt.Tooltip("high:Q", format=EXACT, title="to"),
        ],
    )
    height = alt.Y("value:Q", axis=percent_axis("mean FSI"))
    layers = [
        base.mark_point(filled=True, size=80, opacity=1).encode(y=height),
        base.mark_text(align="left", dx=8, dy=-6).encode(y="value:Q", text="label:N"),
    ]
    if data["low"].drop_nulls().len():  # Vega warns of a layer without any value
        layers.append(base.mark_rule(strokeWidth=2, opacity=0.5).encode(y="low:Q", y2="high:Q"))
    return alt.layer(*layers).properties(width=WIDTH, height=PANEL + 20)


_FAMILIES = tuple(STATUS_COLOURS.values())
