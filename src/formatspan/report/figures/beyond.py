"""How the figures beyond the paper's are drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import altair as alt

from formatspan.records import Status
from formatspan.report.figures.data import ABILITY, COMPLIANCE
from formatspan.report.figures.parts import (
    Chart,
    bars,
    index_colour,
    legend_filter,
    names,
    paling,
    panel_width,
    panels,
    percent_axis,
    tips,
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
    found: alt.Chart = (
        bars(data)
        .encode(
            x=alt.X("value:Q", axis=percent_axis("part of the span, mean over tasks")),
            y=names("label", view.labels),
            color=alt.Color("part:N", scale=alt.Scale(domain=parts, range=list(PART_COLOURS))),
            tooltip=tips(model="label", part="part", value="value:%", FSI="fsi:%"),
        )
        .properties(width=WIDTH, height=ROW * len(view.labels))
    )
    return found


def ranks(data: pl.DataFrame, view: View) -> Chart:
    """The span of ranks of each model, a dot a wrapper."""
    chosen = legend_filter("wrapper")
    apart = alt.Scale(paddingInner=0.4, paddingOuter=0.2)
    base = alt.Chart(data).encode(y=names("label", view.labels, scale=apart))
    most = len(view.labels)
    scale = alt.Scale(domain=[0.7, most + 0.3], nice=False)
    places = alt.Axis(
        title="rank by accuracy", format="d", values=list(range(1, most + 1)), labelOverlap=True
    )
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
            tooltip=tips(model="label", wrapper="wrapper", rank="rank:Q", accuracy="accuracy:%"),
        )
        .add_params(chosen)
    )
    return alt.layer(span, dots).properties(width=WIDTH, height=2 * ROW * most)


def statuses(data: pl.DataFrame, view: View) -> Chart:
    """Stacked bars: what became of the replies under each wrapper."""
    chosen = legend_filter("status")
    there = data.filter(data["count"] > 0)
    found = [s for s in Status if s.value in set(there["status"])]
    order, colours = [s.value for s in found], [STATUS_COLOURS[s] for s in found]
    panel: alt.Chart = (
        bars(there)
        .encode(
            x=alt.X("share:Q", stack="zero", **whole("replies")),
            y=names("wrapper", view.wrappers),
            color=alt.Color("status:N", scale=alt.Scale(domain=order, range=colours)),
            order=alt.Order("rank:Q"),
            opacity=paling(chosen),
            tooltip=tips(
                model="label",
                wrapper="wrapper",
                status="status",
                replies="count:Q",
                share="share:%",
            ),
        )
        .add_params(chosen)
        .transform_calculate(rank=f"indexof({order!r}, datum.status)")
        .properties(width=panel_width(view), height=ROW * len(view.wrappers))
    )
    return panels(panel, view)


def caps(data: pl.DataFrame, view: View) -> Chart:
    """FSI and PSI over the length cap, with their intervals as bands."""
    places = sorted(set(data["cap"]))
    axis = alt.Axis(title="cap in tokens", values=places, format="d", labelOverlap="greedy")
    base = alt.Chart(data).encode(
        x=alt.X("cap:Q", axis=axis, scale=alt.Scale(type="log", base=2, nice=False)),
        color=index_colour(),
    )
    height = alt.Y("value:Q", axis=percent_axis("best minus worst wrapper"))
    line = base.mark_line(point=alt.OverlayMarkDef(size=36), strokeWidth=2).encode(
        y=height,
        tooltip=tips(
            **{"model": "label", "cap": "cap:Q", "index": "index", "value": "value:%"},
            **{"from": "low:%", "to": "high:%", "cut off": "cut_off:%", "cut by": "how"},
        ),
    )
    layers = [line]
    if data["low"].drop_nulls().len():  # Vega warns of a layer without any value
        layers.insert(0, base.mark_area(opacity=0.14).encode(y="low:Q", y2="high:Q"))
    panel = alt.layer(*layers).properties(width=panel_width(view), height=PANEL - 40)
    return panels(panel, view)


def noise(data: pl.DataFrame, view: View) -> Chart:
    """FSI as a dot beside the tick of its noise floor; hollow where it is not significant."""
    base = alt.Chart(data).encode(
        y=names("task", view.tasks),
        tooltip=tips(
            **{"model": "label", "task": "task", "n": "n:Q", "FSI": "fsi:%"},
            **{"noise floor": "floor:%", "p (Holm)": "p_holm:.3f"},
        ),
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
        tooltip=tips(
            **{"model": "label", "billions": "size:Q", "family": "family"},
            **{"FSI": "value:%", "from": "low:%", "to": "high:%"},
        ),
    )
    height = alt.Y("value:Q", axis=percent_axis("mean FSI"))
    layers = [
        base.mark_point(filled=True, size=80, opacity=1).encode(y=height),
        *_named(base, data["size"].to_list()),
    ]
    if data["low"].drop_nulls().len():  # Vega warns of a layer without any value
        layers.append(base.mark_rule(strokeWidth=2, opacity=0.5).encode(y="low:Q", y2="high:Q"))
    return alt.layer(*layers).properties(width=WIDTH, height=PANEL + 20)


def _named(base: alt.Chart, sizes: Sequence[float]) -> Iterator[alt.Chart]:
    """Names beside the marks, each on the side of the figure's middle, where there is room.

    The axis goes from a power of ten to another.
    """
    low, high = math.floor(math.log10(min(sizes))), math.ceil(math.log10(max(sizes)))
    middle = 10 ** ((low + high) / 2)
    beside = base.encode(y="value:Q", text="label:N")
    if min(sizes) <= middle:  # Vega warns of a layer without any value
        shown = beside.transform_filter(alt.datum.size <= middle)
        yield shown.mark_text(align="left", dx=8, dy=-6, limit=WIDTH / 2)
    if max(sizes) > middle:
        shown = beside.transform_filter(alt.datum.size > middle)
        yield shown.mark_text(align="right", dx=-8, dy=-6, limit=WIDTH / 2)


_FAMILIES = tuple(STATUS_COLOURS.values())
