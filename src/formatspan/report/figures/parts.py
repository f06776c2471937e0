"""What the drawings share: axes, colours, panels, tooltips."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from formatspan.report.figures.theme import INDEX_COLOURS, PANEL, SHAPES, WIDTH, colours

if TYPE_CHECKING:
    import polars as pl

    from formatspan.report.view import View

Chart = alt.TopLevelMixin
PERCENT = ".0%"
EXACT = ".1%"


def panel_width(view: View) -> int:
    """Width of a panel, so that a row of them fills the page."""
    return {1: WIDTH, 2: 440, 3: 295}.get(len(view.labels), PANEL)


def percent_axis(title: str) -> alt.Axis:
    """An axis in percent with few ticks."""
    return alt.Axis(title=title, format=PERCENT, labelFlush=True, tickCount=4)


def whole(title: str) -> dict[str, Any]:
    """Axis and scale of a share, from 0 to 100% whatever the data."""
    quarters = [0, 0.25, 0.5, 0.75, 1]
    axis = alt.Axis(title=title, format=PERCENT, labelFlush=True, values=quarters)
    return {"axis": axis, "scale": alt.Scale(domain=[0, 1])}


def wrapper_colour(view: View) -> alt.Color:
    """The colour of a wrapper, the same in all figures."""
    return alt.Color(
        "wrapper:N", scale=alt.Scale(domain=view.wrappers, range=colours(view.wrappers))
    )


def wrapper_shape(view: View) -> alt.Shape:
    """The shape of a wrapper, which tells dots in one place apart."""
    shapes = [SHAPES[i % len(SHAPES)] for i in range(len(view.wrappers))]
    return alt.Shape("wrapper:N", scale=alt.Scale(domain=view.wrappers, range=shapes))


def index_colour() -> alt.Color:
    """Blue for FSI, orange for PSI."""
    return alt.Color(
        "index:N",
        scale=alt.Scale(domain=list(INDEX_COLOURS), range=list(INDEX_COLOURS.values())),
    )


def panels(chart: alt.Chart | alt.LayerChart | alt.FacetChart, view: View) -> Chart:
    """A panel a model, in the study's order, as many in a row as the page holds."""
    place = alt.Facet("label:N", sort=view.labels, title=None)
    found: Chart = chart.facet(place, columns=min(4, max(1, len(view.labels))))
    return found


def legend_filter(name: str) -> alt.Parameter:
    """Clicking a name in the legend keeps it and pales the others."""
    return alt.selection_point(fields=[name], bind="legend", name=f"legend_{name}")


def paling(chosen: alt.Parameter, full: float = 1.0) -> alt.typing.Optional[object]:
    """Opacity that follows the legend filter."""
    return alt.when(chosen).then(alt.value(full)).otherwise(alt.value(0.12))


def unit(data: pl.DataFrame) -> alt.Scale:
    """From 0 to the largest limit, so that small spans stay visible."""
    most = max((v for c in ("value", "high") for v in data[c].drop_nulls().to_list()), default=1)
    return alt.Scale(domain=[0, min(1.0, max(0.05, most * 1.05))], clamp=True)


def interval_tooltip(place: str, counted: str) -> list[alt.Tooltip]:
    """What an index with its interval says when pointed at."""
    return [
        alt.Tooltip(f"{place}:N", title=place if place != "label" else "model"),
        alt.Tooltip("index:N"),
        alt.Tooltip("value:Q", format=EXACT),
        alt.Tooltip("low:Q", format=EXACT, title="from"),
        alt.Tooltip("high:Q", format=EXACT, title="to"),
        alt.Tooltip(counted, title=counted[:-2]),
    ]


def cell_tooltip() -> list[alt.Tooltip]:
    """What a cell says when pointed at."""
    return [
        alt.Tooltip("label:N", title="model"),
        alt.Tooltip("task:N"),
        alt.Tooltip("wrapper:N"),
        alt.Tooltip("n:Q"),
        alt.Tooltip("accuracy:Q", format=EXACT),
        alt.Tooltip("parseability:Q", format=EXACT, title="parsed"),
    ]


def plain_axis(angle: int = 0) -> alt.Axis:
    """An axis of names: no ticks, no line."""
    return alt.Axis(ticks=False, domain=False, labelPadding=6, labelAngle=angle)
