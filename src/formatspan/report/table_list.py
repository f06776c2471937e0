"""The tables of a report. A new statistic is shown by a column, or a table, here."""

from __future__ import annotations

from collections.abc import Callable

from formatspan.report.numbers import MISSING, interval, percent, points, probability, ratio
from formatspan.report.regression import regression_rows, relation_rows
from formatspan.report.tables import Column, Table, note, number, of, text, within
from formatspan.report.view import Row, View

_MODEL = Column("model", lambda r: r.label, right=False)
_NOTE = note(lambda r: r["note"] or MISSING)
_BOTH = (of("fsi", "FSI", points), within("fsi", "95%"), of("psi", "PSI", points))


def _rate(value: float | None) -> str:
    return percent(value, 0)


def _frame(
    name: str, keep: Callable[[Row], bool] = lambda row: True
) -> Callable[[View], list[Row]]:
    """The rows of a frame of the analysis."""
    return lambda view: [row for row in view.rows(name) if keep(row)]


def _figure(key: str) -> Callable[[Row], str]:
    return lambda row: MISSING if row[key] is None else f"{row[key]:.3f}"


def _between(low: str, high: str) -> Callable[[Row], str]:
    return lambda r: (
        MISSING if r[low] is None or r[high] is None else f"{r[low]:.3f} to {r[high]:.3f}"
    )


_ESTIMATES = (
    Column("", lambda r: r["what"], right=False),
    Column("estimate", _figure("value")),
    Column("95%", _between("low", "high")),
    of("p", "p", probability),
    _NOTE,
)

TABLES: tuple[Table, ...] = (
    Table(
        "summary",
        "Models",
        "Means over tasks; FSI and PSI in percentage points. nFSI is FSI over mean accuracy, cFSI "
        "the span of accuracy above guessing. The interval over tasks is the paper's: it speaks of "
        "other tasks like these, not of other examples.",
        _frame("models"),
        (
            _MODEL,
            number("tasks"),
            of("accuracy", "accuracy", percent),
            of("fsi", "FSI", points),
            within("fsi", "95% max-T"),
            within("fsi_task_bootstrap", "95% over tasks (paper)"),
            of("noise_floor", "noise floor", points),
            of("psi", "PSI", points),
            within("psi", "95% max-T of PSI"),
            of("nfsi", "nFSI", ratio),
            of("cfsi", "cFSI", ratio),
            of("fsi_forced", "FSI by scoring alone", points),
            of("compliance_share", "compliance", _rate),
            text("best_wrapper", "best"),
            text("worst_wrapper", "worst"),
        ),
    ),
    Table(
        "levels",
        "Extraction levels",
        "The same replies read at every level, on all examples and on those whose prompt tokens "
        "agree over wrappers (matched). Means over tasks, 95% max-T intervals.",
        _frame("levels", lambda r: r["n"] > 0 or r["subset"] == "all"),
        (
            _MODEL,
            text("level"),
            text("subset", "examples"),
            number("n"),
            of("accuracy", "accuracy", percent),
            *_BOTH,
            within("psi", "95% of PSI"),
        ),
        "The analysis did not score the replies again at other levels or caps.",
    ),
    Table(
        "pairs",
        "Models and tasks",
        "FSI and PSI in percentage points; p of equal accuracy under all wrappers, adjusted over "
        "the rows (Holm). FSI by scoring alone is what one conditional accuracy for all wrappers "
        "would give. σ is the spread of wrappers freed of noise.",
        _frame("pairs"),
        (
            _MODEL,
            text("task"),
            number("n"),
            number("wrappers", "W"),
            of("accuracy", "accuracy", percent),
            of("chance", "chance", percent),
            of("fsi", "FSI", points),
            within("fsi", "95% max-T"),
            of("noise_floor", "noise floor", points),
            of("p_holm", "p (Holm)", probability),
            of("sigma_wrapper", "σ", points),
            of("psi", "PSI", points),
            of("nfsi", "nFSI", ratio),
            of("cfsi", "cFSI", ratio),
            number("clipped", "below chance"),
            of("fsi_forced", "by scoring alone", points),
            of("compliance_part", "compliance part", points),
            of("conditional_part", "conditional part", points),
            within("fsi_if_failures", "had failures been wrong or right"),
            note(lambda r: "; ".join(filter(None, (r["note"], r["flags"]))) or MISSING),
        ),
    ),
    Table(
        "cells",
        "Cells",
        "n, P, A and C by model, task and wrapper: the share parsed times the accuracy of what "
        "parsed is the accuracy.",
        _frame("cells"),
        (
            _MODEL,
            text("task"),
            text("wrapper"),
            number("n"),
            of("parseability", "P parsed", percent),
            of("accuracy", "A right", percent),
            of("conditional_accuracy", "C right if parsed", percent),
            of("win", "win", ratio),
            of("best_probability", "probability of being best", ratio),
            Column("replies", lambda r: f"{r['replies']} of {r['requested']}"),
        ),
    ),
    Table(
        "wrapper_pairs",
        "Wrappers compared in pairs",
        "Difference of accuracy on the same examples, mean over tasks, percentage points. p is "
        "adjusted over the pairs of a model (Holm). McNemar's exact test counts the examples that "
        "only one of the two got right, where every example has one draw.",
        _frame("wrapper_pairs"),
        (
            _MODEL,
            text("wrapper_a", "wrapper"),
            text("wrapper_b", "less"),
            of("difference", "difference", points),
            Column("95%", lambda r: interval(r["low"], r["high"])),
            of("p_holm", "p (Holm)", probability),
            Column("only one right", lambda r: _only(r)),
            of("mcnemar_p_holm", "McNemar (Holm)", probability),
            _NOTE,
        ),
    ),
    Table(
        "consistency",
        "Consistency",
        "FSI compares means: wrappers can share one accuracy and disagree on many examples. "
        "Disagreement is the chance that two wrappers differ on an example, beside that of two "
        "seeds of one wrapper; ProSA is the mean of |Y − Y′| over wrapper pairs.",
        _frame("pairs", lambda r: r["disagreement"] is not None),
        (
            _MODEL,
            text("task"),
            number("n"),
            of("same_share", "same under all wrappers", percent),
            of("disagreement", "disagreement", percent),
            of("seed_noise", "between seeds", percent),
            of("prosa", "ProSA", ratio),
        ),
    ),
    Table(
        "regression",
        "Accuracy against parseability",
        "β is accuracy per parseability over cells, beside effects of model, task and wrapper. "
        "Read the wild cluster bootstrap first: it holds where one wrapper collapses in all tasks "
        "of a model, the others then cover too seldom.",
        regression_rows,
        _ESTIMATES,
    ),
    Table(
        "relations",
        "Over models",
        "What a handful of models cannot show is said beside each figure.",
        relation_rows,
        _ESTIMATES,
    ),
    Table(
        "differences",
        "Models compared in pairs",
        "Difference of mean FSI and of mean PSI over common tasks, percentage points, with max-T "
        "intervals.",
        _frame("differences"),
        (
            text("model_a", "model"),
            text("model_b", "less"),
            text("mode", "decoding"),
            of("fsi_difference", "FSI", points),
            within("fsi", "95%"),
            of("psi_difference", "PSI", points),
            within("psi", "95% of PSI"),
        ),
        "Two models with replies under every wrapper are needed.",
    ),
    Table(
        "reversals",
        "Order of models",
        "A reversal counts only where the simultaneous limits (difference ± margin) lie above zero "
        "under one wrapper and below under another. Percentage points.",
        _frame("reversals"),
        (
            text("model_a", "model"),
            text("model_b", "against"),
            text("mode", "decoding"),
            Column("beyond noise", lambda r: "yes" if r["certain"] else "no", right=False),
            text("wrapper_for", "furthest ahead under"),
            of("largest_gap", "by", points),
            text("wrapper_against", "least ahead under"),
            of("smallest_gap", "by", points),
            of("margin", "margin", points),
            of("reversed_share", "wrappers against the majority", _rate),
        ),
        "Two models with replies under every wrapper are needed.",
    ),
    Table(
        "matched",
        "Matched subset",
        "Models and tasks on the examples whose prompt tokens agree over wrappers.",
        _frame("matched"),
        (
            _MODEL,
            text("task"),
            number("n"),
            of("accuracy", "accuracy", percent),
            *_BOTH,
            within("psi", "95% of PSI"),
            _NOTE,
        ),
    ),
    Table(
        "lengths",
        "Lengths of replies",
        "In tokens, the end token counted; cut off: ended by the cap of the run.",
        _frame("lengths"),
        (
            _MODEL,
            text("wrapper"),
            number("n", "replies"),
            Column("mean", lambda r: f"{r['mean']:.1f}"),
            *(
                Column(head, lambda r, key=key: f"{r[key]:g}")  # type: ignore[misc]
                for key, head in (
                    ("shortest", "shortest"),
                    ("q25", "25%"),
                    ("median", "median"),
                    ("q75", "75%"),
                    ("q95", "95%"),
                    ("longest", "longest"),
                )
            ),
            number("cap"),
            of("cut_off", "cut off", percent),
            text("cut_by", "counted by"),
        ),
        "The analysis did not score the replies again at other levels or caps.",
    ),
    Table(
        "caps",
        "Length cap",
        "Means over tasks had every reply been cut at so many tokens; intervals hold at each cap "
        "by itself.",
        _frame("caps", lambda r: r["task"] is None),
        (
            _MODEL,
            number("cap"),
            of("cut_off", "cut off", percent),
            *_BOTH,
            within("psi", "95% of PSI"),
            text("cut_by", "cut by"),
        ),
        "The analysis did not score the replies again at other levels or caps.",
    ),
    Table(
        "statuses",
        "What became of the replies",
        "How each reply was read at this extraction level.",
        _frame("statuses", lambda r: r["count"] > 0),
        (
            _MODEL,
            text("wrapper"),
            text("status"),
            number("count"),
            of("share", "share", percent),
        ),
    ),
)


def _only(row: Row) -> str:
    if row["only_a"] is None:
        return MISSING
    return f"{row['only_a']} and {row['only_b']}"
