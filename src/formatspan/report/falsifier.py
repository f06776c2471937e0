"""What the falsifier found, in sentences and as tables: no stronger than its rules allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from formatspan.analysis import FEW_EXAMPLES
from formatspan.falsifier.result import asked_as
from formatspan.report.escape import one_line
from formatspan.report.numbers import MISSING, count, interval, percent, points, ratio
from formatspan.report.tables import Column
from formatspan.report.verdict import Verdict
from formatspan.report.view import Row

if TYPE_CHECKING:
    from formatspan.falsifier.result import Falsification

FLOOR = 0.5
"""An arm with less than this share of the reference's accuracy has a span because it is low."""

_HOW = {
    "constrained": "Held to the format by a constrained decoder,",
    "lenient": "Read leniently,",
    "partial credit": "With unread replies credited with chance,",
    "likelihood": "By the likelihood of the options, which needs no parsing,",
}
"""Arms that a sentence speaks of, the strongest first; the others stand in the table."""

_MEANS = {
    "collapsed": "collapsed, so most of it was a matter of {of}",
    "not collapsed": "not collapsed, so more than half of it is not a matter of {of}",
}
_OF = {
    "constrained": "keeping the format",
    "lenient": "how strictly replies are read",
    "partial credit": "scoring unread replies as wrong",
    "likelihood": "writing the answer down",
}


class Told(NamedTuple):
    """What is said of one model."""

    model: str
    finding: str
    """The constrained arm's, the one that settles it; else the word for what is missing."""
    opening: str
    """How large the span is."""
    arms: tuple[str, ...] = ()
    """A sentence an arm."""

    @property
    def text(self) -> str:
        """All of it."""
        return " ".join((self.opening, *self.arms))


def told(found: Falsification) -> list[Told]:
    """What the arms say of each model."""
    by_model: dict[str, dict[str, Row]] = {}
    for row in found.arms.to_dicts():
        by_model.setdefault(row["model"], {})[row["arm"]] = Row(row)
    return [_told(model, arms, found.absent) for model, arms in by_model.items()]


def _told(model: str, arms: Mapping[str, Row], absent: Mapping[str, str]) -> Told:
    reference = arms["normalized"]
    name = one_line(model)
    if reference["fsi"] is None:
        return Told(name, "not indexed", f"{name} has no span: {reference['note']}.")
    span = _span(reference)
    if reference["fsi_low"] <= 0 and reference["n"] < FEW_EXAMPLES * reference["tasks"]:
        few = f"fewer than {FEW_EXAMPLES} examples a task cannot tell that from noise"
        return Told(name, Verdict.FEW.value, f"{name} shows a span of {span}: {few}.")
    if reference["fsi_low"] <= 0:
        text = f"{name} shows a span of {span}, which noise alone can give: no effect to explain."
        return Told(name, "no effect to explain", text)
    opening = f"Changing only the wrapper moves the accuracy of {name} by {span}."
    parts = [_said(arm, arms[arm], reference) for arm in _HOW if arm in arms]
    held = arms.get("constrained", Row())
    if held["fsi"] is None:
        why = held["note"] or absent.get("constrained", "not chosen")
        parts.append(f"What a constrained decoder leaves of it is not known ({one_line(why)}).")
    return Told(name, held["finding"] or "not settled", opening, tuple(filter(None, parts)))


def _span(row: Row) -> str:
    return f"{points(row['fsi'])} points ({interval(row['fsi_low'], row['fsi_high'])})"


def _said(arm: str, row: Row, reference: Row) -> str | None:
    if row["fsi"] is None or row["finding"] is None:
        return None
    than = ""
    if row["tasks"] != reference["tasks"]:
        tasks = f"{row['tasks']} of {reference['tasks']} tasks"
        than = f" on {tasks}, where it was {points(row['reference'])}"
    elif row["n"] != reference["n"]:
        than = f" on other examples ({count(row['n'])} instead of {count(reference['n'])})"
    where = f"{_HOW[arm]} the span is {_span(row)}{than}, at a mean accuracy of "
    return f"{where}{percent(row['accuracy'])}: {_meaning(arm, row)}{_floor(row, reference)}."


def _meaning(arm: str, row: Row) -> str:
    if row["finding"] in _MEANS:
        return _MEANS[row["finding"]].format(of=_OF[arm])
    if row["needed"] is None:
        return str(row["finding"])
    return (
        f"undecided; about {count(row['needed'])} examples a task would decide, if the figures "
        "stayed as they are"
    )


def _floor(row: Row, reference: Row) -> str:
    if row["accuracy"] is None or not reference["accuracy"]:
        return ""
    low = row["accuracy"] < FLOOR * reference["accuracy"]
    return " (a floor: hardly any reply counts as right there)" if low else ""


class FalsifierTable(NamedTuple):
    """A table of the falsifier; its rows are the frame of that name in a `Falsification`."""

    name: str
    title: str
    columns: tuple[Column, ...]


def rows_of(found: Falsification, name: str) -> list[Row]:
    """The rows of one table."""
    return [Row(row) for row in getattr(found, name).to_dicts()]


def told_rows(found: Falsification, name: str) -> list[Row]:
    """The rows of one table that say something: those without figures are `left_out`."""
    rows = rows_of(found, name)
    if name == "arms":
        return [row for row in rows if row["fsi"] is not None]
    if name == "relations":
        return [row for row in rows if row["r"] is not None or row["beta"] is not None]
    return totals(rows) if name == "policies" else rows


def _limits(key: str) -> Column:
    return Column("95%", lambda r: interval(r[f"{key}_low"], r[f"{key}_high"]))


def _needed(row: Row) -> str:
    return MISSING if row["needed"] is None else count(row["needed"])


def _remark(row: Row) -> str:
    return row["note"] or ""


FALSIFIER_TABLES: tuple[FalsifierTable, ...] = (
    FalsifierTable(
        "arms",
        "The same run, scored and decoded otherwise; spans in percentage points",
        (
            Column("model", lambda r: r.label, right=False),
            Column("arm", lambda r: str(r["arm"]), right=False),
            Column("tasks", lambda r: str(r["tasks"])),
            Column("accuracy", lambda r: percent(r["accuracy"])),
            Column("FSI", lambda r: points(r["fsi"])),
            _limits("fsi"),
            Column("PSI", lambda r: points(r["psi"])),
            _limits("psi"),
            Column("FSI by scoring alone", lambda r: points(r["forced_fsi"])),
            Column("compliance part", lambda r: points(r["compliance_part"])),
            Column("less than normalized", lambda r: points(r["difference"])),
            _limits("difference"),
            Column("finding", lambda r: r["finding"] or MISSING, right=False),
            Column("examples to decide", _needed),
            Column("note", _remark, right=False, wraps=True),
        ),
    ),
    FalsifierTable(
        "relations",
        "Accuracy against parseability by arm, beside what scoring alone gives",
        (
            Column("arm", lambda r: str(r["arm"]), right=False),
            Column("r", lambda r: ratio(r["r"])),
            Column("r by scoring alone", lambda r: ratio(r["forced_r"])),
            Column("β", lambda r: ratio(r["beta"])),
            Column("95% (wild)", lambda r: _plain_interval(r["beta_low"], r["beta_high"])),
            Column("β by scoring alone", lambda r: ratio(r["forced_beta"])),
            Column("clusters", lambda r: MISSING if r["clusters"] is None else str(r["clusters"])),
            Column("note", lambda r: _relation_note(r), right=False, wraps=True),
        ),
    ),
    FalsifierTable(
        "ability",
        "Ability apart from format: accuracy by arm and wrapper",
        (
            Column("model", lambda r: r.label, right=False),
            Column("wrapper", lambda r: str(r["wrapper"]), right=False),
            Column("arm", lambda r: str(r["arm"]), right=False),
            Column("accuracy", lambda r: percent(r["accuracy"])),
            Column("chance", lambda r: percent(r["chance"])),
            Column("tasks", lambda r: str(r["tasks"])),
        ),
    ),
    FalsifierTable(
        "policies",
        "Repair policies: what they gain and what they cost",
        (
            Column("model", lambda r: r.label, right=False),
            Column("policy", lambda r: str(r["policy"]), right=False),
            Column("wrapper", lambda r: r["wrapper"] or "all", right=False),
            Column("accuracy", lambda r: percent(r["accuracy"])),
            Column("gain", lambda r: points(r["accuracy_gain"])),
            Column("parsed", lambda r: percent(r["parseability"])),
            Column("gain of parsed", lambda r: points(r["parse_gain"])),
            Column("FSI", lambda r: points(r["fsi"])),
            Column("requests a reply", lambda r: ratio(r["requests_per_reply"])),
            Column("tokens, none = 1", lambda r: ratio(r["tokens_ratio"])),
            Column("US dollars", lambda r: MISSING if r["dollars"] is None else _dollars(r)),
        ),
    ),
)
"""The falsifier's tables; the frames are those of a `Falsification`."""


def _plain_interval(low: float | None, high: float | None) -> str:
    return MISSING if low is None or high is None else f"{ratio(low)} to {ratio(high)}"


def _relation_note(row: Row) -> str:
    few = "fewer than 10 clusters: not reliable" if row["reliable"] is False else ""
    return row["note"] or few


def _dollars(row: Row) -> str:
    return f"{row['dollars']:.4f}"


def left_out(found: Falsification) -> Iterator[str]:
    """A line for each reason why arms, or their rows, are not there."""
    by_reason: dict[str, list[str]] = {}
    for arm, reason in (*found.absent.items(), *_without_figures(found)):
        by_reason.setdefault(reason, []).append(arm)
    yield from (one_line(f"{', '.join(arms)}: {why}") for why, arms in by_reason.items())


def _without_figures(found: Falsification) -> Iterator[tuple[str, str]]:
    """What has no figures, and why; of arms without any replies nothing is said twice."""
    rows = rows_of(found, "arms")
    for row in rows:
        if row["fsi"] is None:
            why = found.unfinished.get(asked_as(row["arm"]))
            yield f"{row['arm']} of {row.label}", "; ".join(filter(None, (row["note"], why)))
    there = {row["arm"] for row in rows if row["fsi"] is not None}
    for row in rows_of(found, "relations"):
        if row["arm"] in there and row["r"] is None and row["beta"] is None:
            yield f"r and β of {row['arm']}", row["note"] or "not estimable"


def totals(rows: Sequence[Row]) -> list[Row]:
    """Rows of the policies that speak of all wrappers together."""
    return [row for row in rows if row["wrapper"] is None]
