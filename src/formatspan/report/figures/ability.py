"""The figure that sets ability apart from format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from formatspan.report.figures.parts import (
    EXACT,
    Chart,
    legend_filter,
    paling,
    panels,
    percent_axis,
    plain_axis,
    wrapper_colour,
    wrapper_shape,
)
from formatspan.report.figures.theme import PANEL, WIDTH

if TYPE_CHECKING:
    import polars as pl

    from formatspan.report.view import View


def ability(data: pl.DataFrame, view: View) -> Chart:
    """A line a wrapper over the arms, a panel a model."""
    chosen = legend_filter("wrapper")
    arms = list(dict.fromkeys(data["arm"]))
    models = list(dict.fromkeys(data["model"]))
    base = alt.Chart(data).encode(
        x=alt.X("arm:N", sort=arms, title=None, axis=plain_axis(-25 if len(models) > 1 else 0))
    )
    lines: alt.Chart = base.mark_line(strokeWidth=2.2).encode(
        y=alt.Y("accuracy:Q", axis=percent_axis("accuracy")),
        color=wrapper_colour(view),
        opacity=paling(chosen),
        tooltip=[
            alt.Tooltip("model:N"),
            alt.Tooltip("arm:N"),
            alt.Tooltip("wrapper:N"),
            alt.Tooltip("accuracy:Q", format=EXACT),
            alt.Tooltip("tasks:Q"),
        ],
    )
    chance = base.mark_line(strokeDash=[4, 4], strokeWidth=1.2, opacity=0.7).encode(
        y="mean(chance):Q", color=alt.value("currentColor")
    )
    drawn = alt.layer(
        chance,
        lines,
        lines.mark_point(filled=True, size=75).encode(shape=wrapper_shape(view)),
    ).add_params(chosen)
    if len(models) == 1:
        return drawn.properties(width=WIDTH, height=PANEL + 80)
    place = drawn.properties(width=PANEL + 60, height=PANEL + 20)
    return panels(place.transform_calculate(label="datum.model"), view)
