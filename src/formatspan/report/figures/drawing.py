"""The one module that needs the extra ``report`` to be imported: figures by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from formatspan.report.figures import beyond, paper
from formatspan.report.figures.ability import ability
from formatspan.report.figures.parts import Chart
from formatspan.report.figures.theme import finished

if TYPE_CHECKING:
    import polars as pl

    from formatspan.report.view import View

DRAWINGS: dict[str, Callable[[pl.DataFrame, View], Chart]] = {
    "ability": ability,
    "means": paper.means,
    "scatter": paper.scatter,
    "wins": paper.wins,
    "spreads": paper.spreads,
    "heat": paper.heat,
    "by_task": paper.by_task,
    "decomposition": beyond.decomposition,
    "ranks": beyond.ranks,
    "statuses": beyond.statuses,
    "caps": beyond.caps,
    "noise": beyond.noise,
    "sizes": beyond.sizes,
}


def draw(name: str, data: pl.DataFrame, view: View) -> dict[str, Any]:
    """The Vega-Lite specification of a figure."""
    return finished(DRAWINGS[name](data, view))
