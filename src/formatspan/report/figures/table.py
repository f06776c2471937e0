"""The table of all figures: what each is called, what it says, and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from formatspan.errors import BackendError
from formatspan.report.figures import data
from formatspan.report.view import View

if TYPE_CHECKING:
    import polars as pl


Draw = Callable[[str, "pl.DataFrame", View], dict[str, Any]]
"""From a figure's name and data to its Vega-Lite specification."""


class Figure(NamedTuple):
    """One figure of the report."""

    data: Callable[[View], pl.DataFrame]
    """What it shows."""
    title: str
    caption: str
    empty: str
    """Why there is nothing to draw, where that is so."""

    @property
    def name(self) -> str:
        """File name without suffix, and the key of its drawing."""
        return self.data.__name__


class Drawn(NamedTuple):
    """A figure of one analysis."""

    figure: Figure
    data: pl.DataFrame
    spec: dict[str, Any] | None
    """Vega-Lite; None where there is nothing to draw."""


FIGURES: tuple[Figure, ...] = (
    Figure(
        data.means,
        "Mean FSI and PSI",
        "Best minus worst wrapper, mean over tasks: of accuracy (FSI) and of the share of replies "
        "that parsed (PSI). Bars are 95% max-T intervals over examples.",
        "No model has an example with replies under every wrapper.",
    ),
    Figure(
        data.scatter,
        "Accuracy against parseability",
        "A dot is one task under one wrapper. A reply that does not parse is wrong, so no dot "
        "lies above the dashed line: the two are bound together by scoring alone.",
        "No cell is indexed.",
    ),
    Figure(
        data.wins,
        "Wins",
        "On how many tasks each wrapper had the highest accuracy. A win can be noise.",
        "No cell is indexed.",
    ),
    Figure(
        data.spreads,
        "Token spread",
        "Prompt tokens of one question under the wrappers: largest minus smallest over their "
        "mean. Examples left of the dashed line are the matched subset.",
        "The backend counted no prompt tokens, or the analysis holds no spreads.",
    ),
    Figure(
        data.heat,
        "Accuracy by model, wrapper and task",
        "Share of right replies in each cell.",
        "No cell is indexed.",
    ),
    Figure(
        data.by_task,
        "FSI and PSI by model and task",
        "Best minus worst wrapper on each task, with 95% max-T intervals over examples.",
        "No model has an example with replies under every wrapper.",
    ),
    Figure(
        data.decomposition,
        "What the loss is made of",
        "The span of accuracy split into replies that did not parse (compliance) and answers that "
        "parsed and were wrong. Parts are signed and add up to FSI.",
        "The analysis holds no decomposition.",
    ),
    Figure(
        data.ranks,
        "Ranks over wrappers",
        "Where each model stands under each wrapper. Differences can be noise; reversals beyond "
        "noise are named at the top.",
        "Ranks need at least two models with replies under every wrapper.",
    ),
    Figure(
        data.statuses,
        "What became of the replies",
        "How each reply was read, by wrapper, at this extraction level.",
        "There are no replies yet.",
    ),
    Figure(
        data.caps,
        "Length cap",
        "FSI and PSI had the replies been cut at fewer tokens. The curves need not be monotone.",
        "There is no curve over the cap: no replies yet, or a model that reasons in hidden tokens.",
    ),
    Figure(
        data.noise,
        "Noise floor",
        "FSI beside the mean span when wrapper labels are shuffled within examples. Dots are "
        "filled where equal accuracy is rejected (p < 0.05, Holm).",
        "The analysis holds no tests.",
    ),
    Figure(
        data.sizes,
        "Sensitivity and size",
        "Mean FSI against the size stated in the study. A handful of models cannot show a law.",
        "Sizes need at least two models whose size_b is stated in the study.",
    ),
)


def drawn(view: View) -> list[Drawn]:
    """Every figure of an analysis.

    Raises:
        BackendError: The extra ``report`` is not installed.
    """
    draw = drawing()
    return [_draw(figure, view, draw) for figure in FIGURES]


def _draw(figure: Figure, view: View, draw: Draw) -> Drawn:
    frame = figure.data(view)
    return Drawn(figure, frame, draw(figure.name, frame, view) if len(frame) else None)


def missing_extra(error: ImportError) -> BackendError:
    """What to say where a package of the extra is not installed."""
    return BackendError(
        f"a report needs {error.name or 'a package'}, which is not installed: "
        "pip install 'formatspan[report]'"
    )


def drawing() -> Draw:
    """What draws figures by name.

    Raises:
        BackendError: The extra ``report`` is not installed.
    """
    try:
        from formatspan.report.figures.drawing import draw
    except ImportError as error:
        raise missing_extra(error) from None
    return draw
