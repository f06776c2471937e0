"""What the drawings share: axes, colours, panels, tooltips."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from formatspan.report.figures.theme import INDEX_COLOURS, PANEL, ROW, SHAPES, WIDTH, colours

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
    axis = alt.Axis(
        title=title,
        format=PERCENT,
        labelFlush=True,
        values=quarters,
        labelOverlap="parity",  # in narrow panels every second label
        labelSeparation=12,
    )
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
    if len(view.labels) == 1:  # one panel takes the width of its page, as a facet cannot
        alone: Chart = chart.properties(title=view.labels[0])
        return alone
    place = alt.Facet("label:N", sort=view.labels, title=None)
    found: Chart = chart.facet(place, columns=min(4, max(1, len(view.labels))))
    return found


def legend_filter(name: str) -> alt.Parameter:
    """Clicking a name in the legend keeps it and pales the others."""
    return alt.selection_point(fields=[name], bind="legend", name=f"legend_{name}")


def paling(chosen: alt.Parameter, full: float = 1.0) -> Any:  # noqa: ANN401 - of Altair
    """Opacity that follows the legend filter."""
    return alt.when(chosen).then(alt.value(full)).otherwise(alt.value(0.12))


def unit(data: pl.DataFrame) -> alt.Scale:
    """From 0 to the largest limit, so that small spans stay visible."""
    most = max((v for c in ("value", "high") for v in data[c].drop_nulls().to_list()), default=1)
    return alt.Scale(domain=[0, min(1.0, max(0.05, most * 1.05))], clamp=True)


def tips(**shown: str) -> list[alt.Tooltip]:
    """What a mark says when pointed at: titles, and fields with their kind or format.

    ``label`` is a name, ``n:Q`` a number, ``fsi:%`` a share, ``p:.3f`` a number in that form.
    """
    return [_tip(title.replace("_", " "), field) for title, field in shown.items()]


def _tip(title: str, field: str) -> alt.Tooltip:
    name, _, form = field.partition(":")
    if form in ("", "N", "Q"):
        return alt.Tooltip(f"{name}:{form or 'N'}", title=title)
    return alt.Tooltip(f"{name}:Q", title=title, format=EXACT if form == "%" else form)


def interval_tips(place: str, counted: str) -> list[alt.Tooltip]:
    """What an index with its interval says when pointed at."""
    where = {"model" if place == "label" else place: place}
    figures = {"index": "index", "value": "value:%", "from": "low:%", "to": "high:%"}
    return tips(**where, **figures, **{counted: f"{counted}:Q"})


CELL = tips(
    model="label",
    task="task",
    wrapper="wrapper",
    n="n:Q",
    accuracy="accuracy:%",
    parsed="parseability:%",
)
"""What a cell says when pointed at."""


def names(field: str, order: list[str], **options: Any) -> alt.Y:  # noqa: ANN401 - of Altair
    """A row for each name, in a given order."""
    return alt.Y(f"{field}:N", sort=order, title=None, axis=plain_axis(), **options)


def bars(data: pl.DataFrame) -> alt.Chart:
    """Horizontal bars."""
    found: alt.Chart = alt.Chart(data).mark_bar(height=ROW - 10)
    return found


def plain_axis(angle: int = 0) -> alt.Axis:
    """An axis of names: no ticks, no line."""
    return alt.Axis(ticks=False, domain=False, labelPadding=6, labelAngle=angle)
