"""Accuracy against parseability, and relations over models, as rows of a table.

The restricted wild cluster bootstrap by model-wrapper stands first: where a collapse runs
through all tasks of a model, intervals by t with G - 1 degrees of freedom cover too seldom.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from formatspan.counting import counted
from formatspan.report.view import Row, View

_ERRORS = {
    "model-wrapper": "β, clustered by model–wrapper, t with G − 1",
    "model-task": "β, clustered by model–task (the paper's reading)",
    "HC1": "β, HC1",
    "classical": "β, classical",
}
_REPLIES = {
    "model-wrapper": "conditional accuracy (correct on parsed, reply by reply), by model–wrapper",
    "task-example": "the same, clustered by task–example",
}
NO_INTERVAL = "no interval: these share models and tasks"


def regression_rows(view: View) -> list[Row]:
    """Every figure of accuracy against parseability, one decoding mode after the other."""
    rows: list[Row] = []
    for mode, found in view.facts_by_mode():
        here = [*_cells(found), *_by_reply(found.get("correct on parsed, by generation"))]
        rows += [Row(row, mode=mode) for row in here]
    return rows


def relation_rows(view: View) -> list[Row]:
    """Figures over models and over model–task pairs."""
    rows: list[Row] = []
    for mode, found in view.facts_by_mode():
        here = [
            _correlation("r of FSI with PSI over model–task pairs", found.get("FSI with PSI")),
            *_size(found.get("FSI and size")),
            *_families(found.get("FSI by family")),
            _contrast(found.get("contrast of FSI")),
            *_ranking(found.get("ranking")),
        ]
        rows += [Row(row, mode=mode) for row in here]
    return rows


def _cells(found: Mapping[str, Any]) -> Iterator[Row]:
    report = found.get("accuracy on parseability")
    if not isinstance(report, Mapping):
        yield _missing("accuracy on parseability", report)
        return
    yield from _slope(report["regression"])
    yield _correlation("r of accuracy with parseability over cells", report["r"])
    yield _correlation("r that scoring alone forces (A′ = C̄·P)", report["forced_r"])


def _slope(found: Any) -> Iterator[Row]:  # noqa: ANN401 - JSON
    if not isinstance(found, Mapping):
        yield _missing("β: accuracy per parseability, over cells", found)
        return
    yield _wild(found)
    for key, name in _ERRORS.items():
        yield _error(name, found["beta"], found["errors"][key])
    yield Row(
        what="β that scoring alone forces (A′ = C̄·P)",
        value=found["forced_beta"],
        note="β is near C̄ even without any effect of the wrapper",
    )
    cells, df = found["cells"], found["df"]
    note = f"{counted(cells, 'cell')}, {counted(df, 'residual degree')} of freedom{_dropped(found)}"
    yield Row(what="partial R² of parseability", value=found["partial_r2"], note=note)
    yield from _left_out(found["left_out"])


def _dropped(found: Mapping[str, Any]) -> str:
    return "".join(f"; one {name}, so no effect of it" for name in found["dropped"])


def _wild(found: Mapping[str, Any]) -> Row:
    name = "β, restricted wild cluster bootstrap by model–wrapper"
    wild = found["wild"]
    if not isinstance(wild, Mapping):
        return Row(_missing(name, wild), value=found["beta"])
    ends = {k: wild[k] if isinstance(wild[k], float) else None for k in ("low", "high")}
    open_ = [f"{k} end: {wild[k]}" for k in ends if ends[k] is None]
    note = "; ".join([_clusters(wild), *open_])
    return Row(what=name, value=found["beta"], **ends, p=wild["p"], note=note)


def _error(name: str, value: float, found: Any) -> Row:  # noqa: ANN401 - JSON
    if not isinstance(found, Mapping):
        return Row(_missing(name, found), value=value)
    note = _clusters(found) if found["clusters"] is not None else f"{found['df']} df"
    return Row(
        what=name, value=value, low=found["low"], high=found["high"], p=found["p"], note=note
    )


def _clusters(found: Mapping[str, Any]) -> str:
    few = "" if found["reliable"] else ": fewer than 10, not reliable"
    return f"G = {found['clusters']}{few}"


def _left_out(found: Mapping[str, Any]) -> Iterator[Row]:
    yield _value(
        f"β without {' / '.join(found['influential'])}, the most influential cell",
        found["without_influential"],
        f"without any one cell: {found['cells_low']:.2f} to {found['cells_high']:.2f}",
    )
    for dimension in ("models", "tasks"):
        if len(found[dimension]) > 1:
            for name, value in found[dimension].items():
                yield _value(f"β without {dimension[:-1]} {name}", value, None)


def _by_reply(found: Any) -> Iterator[Row]:  # noqa: ANN401 - JSON
    if not isinstance(found, Mapping):
        yield _missing(_REPLIES["model-wrapper"], found)
        return
    for key, name in _REPLIES.items():
        yield _error(name, found["conditional_accuracy"], found["errors"][key])


def _correlation(what: str, found: Any) -> Row:  # noqa: ANN401 - JSON
    if not isinstance(found, Mapping):
        return _missing(what, found)
    return Row(what=what, value=found["r"], note=f"n = {found['n']}; {NO_INTERVAL}")


def _size(found: Any) -> Iterator[Row]:  # noqa: ANN401 - JSON
    what = "mean FSI per tenfold parameters"
    if not isinstance(found, Mapping):
        yield _missing(what, found)
        return
    interval, n, least = found["interval"], found["n"], found["detectable_r"]
    note = (
        f"n = {n} models, r = {found['r']:.2f}; only |r| above {least:.2f} could be told from none"
    )
    yield Row(
        what=what, value=found["slope"], low=interval["low"], high=interval["high"], note=note
    )
    yield _value("the same within families", found["within_families"], None)


def _families(found: Any) -> Iterator[Row]:  # noqa: ANN401 - JSON
    if not isinstance(found, Mapping):
        yield _missing("mean FSI by family", found)
        return
    for family, figures in found.items():
        spread = f"{figures['lowest']:.3f} to {figures['highest']:.3f}"
        models = counted(figures["models"], "model")
        note = f"{models}: {spread}" if figures["models"] > 1 else models
        yield Row(what=f"mean FSI of family {family}", value=figures["mean"], note=note)


def _contrast(found: Any) -> Row:  # noqa: ANN401 - JSON
    what = "largest over smallest mean FSI"
    if not isinstance(found, Mapping):
        return _missing(what, found)
    bounds = found["bounds"]
    note = f"{found['largest']} over {found['smallest']}; bounds that the two intervals give"
    return Row(what=what, value=found["ratio"], low=bounds["low"], high=bounds["high"], note=note)


def _ranking(found: Any) -> Iterator[Row]:  # noqa: ANN401 - JSON
    if not isinstance(found, Mapping):
        yield _missing("agreement of wrappers on the order of models", found)
        return
    yield _value("Kendall's W of wrappers on the order of models", found["kendall_w"], None)
    gap = found["largest_reversed_gap"]
    pairs = counted(found["pairs"], "pair")
    note = f"{found['reversals']} of {pairs} of models reversed beyond noise"
    yield _value("largest reversed gap between two models", gap, note)


def _value(what: str, value: Any, note: str | None) -> Row:  # noqa: ANN401 - JSON
    if isinstance(value, float | int):
        return Row(what=what, value=float(value), note=note)
    return _missing(what, value)


def _missing(what: str, reason: Any) -> Row:  # noqa: ANN401 - JSON
    return Row(what=what, value=None, note=str(reason or "not computed"))
