"""How the paper's six figures are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from formatspan.report.figures.parts import (
    CELL,
    PERCENT,
    Chart,
    bars,
    index_colour,
    interval_tips,
    legend_filter,
    names,
    paling,
    panel_width,
    panels,
    percent_axis,
    plain_axis,
    tips,
    unit,
    whole,
    wrapper_colour,
    wrapper_shape,
)
from formatspan.report.figures.theme import HEAT, INDEX_COLOURS, PANEL, ROW, SERIES, WIDTH

if TYPE_CHECKING:
    import polars as pl

    from formatspan.report.view import View


def means(data: pl.DataFrame, view: View) -> Chart:
    """Dots with intervals: FSI and PSI of each model."""
    base = alt.Chart(data).encode(
        y=names("label", view.labels),
        yOffset=alt.YOffset("index:N", sort=list(INDEX_COLOURS)),
        color=index_colour(),
        tooltip=interval_tips("label", "tasks"),
    )
    span = base.mark_rule(strokeWidth=2, opacity=0.55).encode(
        x=alt.X("low:Q", axis=percent_axis("mean over tasks, with 95% interval"), scale=unit(data)),
        x2="high:Q",
    )
    dots = base.mark_point(filled=True, size=85, opacity=1).encode(x="value:Q")
    return alt.layer(span, dots).properties(width=WIDTH, height=2 * ROW * len(view.labels))


def scatter(data: pl.DataFrame, view: View) -> Chart:
    """Accuracy against parseability; accuracy cannot lie above the diagonal."""
    chosen = legend_filter("wrapper")
    base = alt.Chart(data)
    bound = (
        base.transform_aggregate(groupby=["label"])  # one line a panel, not one a dot
        .mark_rule(opacity=0.5, strokeDash=[4, 3])
        .encode(x=alt.datum(0), y=alt.datum(0), x2=alt.datum(1), y2=alt.datum(1))
    )
    dots = (
        base.mark_point(filled=False, size=55, strokeWidth=1.8)
        .encode(
            x=alt.X("parseability:Q", **whole("parsed")),
            y=alt.Y("accuracy:Q", **whole("right")),
            color=wrapper_colour(view),
            shape=wrapper_shape(view),
            opacity=paling(chosen, 0.85),
            tooltip=CELL,
        )
        .add_params(chosen)
    )
    panel = alt.layer(bound, dots).properties(width=panel_width(view), height=PANEL)
    return panels(panel, view)


def wins(data: pl.DataFrame, view: View) -> Chart:
    """Stacked bars: which wrapper was best on how many tasks."""
    chosen = legend_filter("wrapper")
    axis = alt.Axis(tickMinStep=1)
    found: alt.Chart = (
        bars(data)
        .encode(
            x=alt.X("wins:Q", title="tasks on which the wrapper was best; ties shared", axis=axis),
            y=names("label", view.labels),
            color=wrapper_colour(view),
            order="order:Q",
            opacity=paling(chosen),
            tooltip=tips(model="label", wrapper="wrapper", wins="wins:.2f"),
        )
        .add_params(chosen)
        .properties(width=WIDTH, height=ROW * len(view.labels))
    )
    return found


def spreads(data: pl.DataFrame, view: View) -> Chart:
    """Histogram of the token spread, with the line of the matched subset."""
    base = alt.Chart(data)
    columns = base.mark_bar(color=INDEX_COLOURS["FSI"], binSpacing=1).encode(
        x=alt.X(
            "low:Q",
            bin="binned",
            axis=percent_axis("token spread over wrappers"),
            scale=alt.Scale(domainMin=0),
        ),
        x2="high:Q",
        y=alt.Y("share:Q", axis=percent_axis("examples")),
        tooltip=tips(
            model="label", spread_from=f"low:{PERCENT}", examples="count:Q", share="share:%"
        ),
    )
    line = base.mark_rule(strokeDash=[5, 3], strokeWidth=2, color=SERIES[4]).encode(
        x="min(threshold):Q"
    )
    panel = alt.layer(columns, line).properties(width=panel_width(view), height=110)
    return panels(panel, view)


def heat(data: pl.DataFrame, view: View) -> Chart:
    """Accuracy of every cell, written into it."""
    base = alt.Chart(data).encode(
        x=alt.X("wrapper:N", sort=view.wrappers, title=None, axis=plain_axis(-40)),
        y=names("task", view.tasks),
    )
    tiles = base.mark_rect().encode(
        color=alt.Color(
            "accuracy:Q",
            scale=alt.Scale(domain=[0, 1], range=list(HEAT)),
            legend=alt.Legend(format=PERCENT, title="accuracy", gradientLength=180),
        ),
        tooltip=CELL,
    )
    dark = alt.datum.accuracy > 0.5
    text = base.mark_text(fontSize=11).encode(
        text=alt.Text("accuracy:Q", format=PERCENT),
        color=alt.when(dark).then(alt.value("white")).otherwise(alt.value("#222")),
    )
    size = {"width": max(44 * len(view.wrappers), 120), "height": 27 * len(view.tasks)}
    return panels(alt.layer(tiles, text).properties(**size), view)


def by_task(data: pl.DataFrame, view: View) -> Chart:
    """Dots with intervals: FSI and PSI of each model on each task."""
    base = alt.Chart(data).encode(
        y=names("task", view.tasks),
        yOffset=alt.YOffset("index:N", sort=list(INDEX_COLOURS)),
        color=index_colour(),
        tooltip=interval_tips("task", "n"),
    )
    span = base.mark_rule(strokeWidth=2, opacity=0.5).encode(
        x=alt.X("low:Q", axis=percent_axis("best minus worst wrapper"), scale=unit(data)),
        x2="high:Q",
    )
    dots = base.mark_point(filled=True, size=55, opacity=1).encode(x="value:Q")
    panel = alt.layer(span, dots).properties(width=panel_width(view), height=34 * len(view.tasks))
    return panels(panel, view)
