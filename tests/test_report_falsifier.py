"""The falsifier's section of a report: sentences no stronger than the rules, files, markup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import formatspan
import report_runs
from formatspan.falsifier.command import falsify
from formatspan.falsifier.result import Falsification
from formatspan.report.falsifier import left_out, told, told_rows
from formatspan.report.write import write_report

FOUND = "formatspan.falsifier.compare.RESAMPLES"


def found(*arms: dict[str, Any], **absent: str) -> Falsification:
    keys = dict.fromkeys(
        ("fsi", "fsi_low", "fsi_high", "finding", "needed", "reference", "note", "accuracy")
    )
    rows = [{**keys, "model": "m", "tasks": 3, **arm} for arm in arms]
    empty = pl.DataFrame()
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return Falsification("s", frame, empty, empty, absent, empty)


REFERENCE = {
    "arm": "normalized", "fsi": 0.4, "fsi_low": 0.3, "fsi_high": 0.5, "accuracy": 0.5
}  # fmt: skip


def arm(finding: str, **keys: Any) -> dict[str, Any]:  # noqa: ANN401 - columns vary
    span = {"arm": "constrained", "fsi": 0.1, "fsi_low": 0.05, "fsi_high": 0.14, "accuracy": 0.6}
    return {**span, "finding": finding, "reference": 0.4, **keys}


def test_a_collapse_is_said_with_both_spans() -> None:
    (said,) = told(found(REFERENCE, arm("collapsed")))
    assert said.finding == "collapsed"
    assert said.text == (
        "Changing only the wrapper moves the accuracy of m by 40.0 points (30.0 to 50.0). "
        "Held to the format by a constrained decoder, the span is 10.0 points (5.0 to 14.0), at a "
        "mean accuracy of 60.0%: collapsed, so most of it was a matter of keeping the format."
    )


def test_a_span_that_stays_and_one_that_is_undecided() -> None:
    stays = told(found(REFERENCE, arm("not collapsed", fsi=0.4, fsi_low=0.3, fsi_high=0.5)))[0]
    assert stays.text.endswith("so more than half of it is not a matter of keeping the format.")
    open_ = told(found(REFERENCE, arm("undecided", needed=1253)))[0]
    assert "undecided; about 1,253 examples a task would decide" in open_.text
    assert "collapsed" not in open_.text


def test_a_floor_is_called_one() -> None:
    said = told(found(REFERENCE, arm("collapsed", arm="lenient", accuracy=0.1)))[0]
    assert "(a floor: hardly any reply counts as right there)" in said.text


def test_nothing_is_explained_where_nothing_was_found() -> None:
    nothing = {**REFERENCE, "fsi_low": 0.0, "tasks": 2, "n": 100}
    said = told(found(nothing, arm("no effect to explain")))[0]
    assert said.finding == "no effect to explain"
    assert not said.arms
    said = told(found({**nothing, "n": 20}, arm("no effect to explain")))[0]
    assert said.finding == "too few examples"


def test_missing_arms_are_named_with_their_reason() -> None:
    what = found(REFERENCE, constrained="not asked yet", likelihood="not asked yet")
    (said,) = told(what)
    assert said.finding == "not settled"
    assert "What a constrained decoder leaves of it is not known (not asked yet)." in said.text
    assert list(left_out(what)) == ["constrained, likelihood: not asked yet"]


def test_rows_without_figures_are_a_sentence() -> None:
    nothing = arm("", fsi=None, note="not indexed: no replies under json")
    what = found(REFERENCE, nothing, {**nothing, "arm": "likelihood"})
    assert [row["arm"] for row in told_rows(what, "arms")] == ["normalized"]
    (line,) = left_out(what)
    assert line == "constrained of m, likelihood of m: not indexed: no replies under json"
    assert "not known (not indexed: no replies under json)" in told(what)[0].text


def test_fewer_tasks_are_compared_with_the_span_on_them() -> None:
    row = arm("collapsed", arm="likelihood", tasks=2, reference=0.35)
    assert "on 2 of 3 tasks, where it was 35.0" in told(found(REFERENCE, row))[0].text
    part = told(found({**REFERENCE, "n": 90}, arm("collapsed", n=1200)))[0].text
    assert "on other examples (1,200 instead of 90)" in part


def test_the_section_stands_in_the_page_and_its_files_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FOUND, 300)
    models = [
        {"model": "scripted:", "name": "<b>x</b>", "extra_body": {"comply": {"json": 0.1}}},
        {"model": "scripted:accuracy=0.6", "name": "other"},
    ]
    folder = report_runs.run(tmp_path / "r", models=models, examples=20)
    tested = falsify(folder, ask=True, again=True)
    files = write_report(
        formatspan.analyze(folder), folder / "run.sqlite", tmp_path / "out", falsified=tested
    )
    page = files.page.read_text(encoding="utf-8")
    assert page.count('<section id="falsifier"') == 1
    assert "Held to the format by a constrained decoder" in page
    assert "<b>x</b>" not in page
    assert "chart-ability" in page
    names = {p.name for p in (*files.tables, *files.figures)}
    assert {"ability.svg", "ability.png", "ability.pdf"} <= names
    for table in ("arms", "relations", "ability", "policies"):
        assert {f"falsifier_{table}.{kind}" for kind in ("csv", "tex", "md")} <= names
    csv = (tmp_path / "out" / "tables" / "falsifier_policies.csv").read_text(encoding="utf-8")
    assert csv.count("json-repair") == 2 * 6, "each model: all wrappers, and each by itself"


def test_a_report_without_the_falsifier_has_no_section(tmp_path: Path) -> None:
    folder = report_runs.run(tmp_path / "r", examples=5)
    files = write_report(
        formatspan.analyze(folder), folder / "run.sqlite", tmp_path / "out", figures=False
    )
    assert "falsifier-title" not in files.page.read_text(encoding="utf-8")
