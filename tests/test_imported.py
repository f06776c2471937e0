"""Tables scored elsewhere: what is taken, what is refused and where, and what becomes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import formatspan
from formatspan.cli import app
from formatspan.errors import DataError, StudyError
from formatspan.imported import import_table
from formatspan.report.checklist import checklist
from formatspan.report.method import parameters
from formatspan.report.provenance import Provenance
from formatspan.report.view import View
from formatspan.store import Store
from formatspan.study import Study
from formatspan.table import scored

Rows = list[dict[str, Any]]
FORMS = ("csv", "jsonl", "parquet", "frame", "rows")


def _rows(models: tuple[str, ...] = ("a", "b"), examples: int = 30) -> Rows:
    """Wrapper ``q`` fails to parse on every third example, everything else is right."""
    return [
        {"model": m, "task": "t", "example": e, "wrapper": w, "parsed": ok, "correct": ok}
        for m in models
        for e in range(examples)
        for w in ("p", "q")
        for ok in [not (w == "q" and e % 3 == 0)]
    ]


def _as(form: str, rows: Rows, folder: Path) -> Any:  # noqa: ANN401 - whatever may be imported
    if form == "rows":
        return rows
    frame = pl.DataFrame(rows, infer_schema_length=None)
    path = folder / f"scores.{form}"
    if form == "frame":
        return frame
    if form == "csv":
        frame.write_csv(path)
    elif form == "jsonl":
        frame.write_ndjson(path)
    else:
        frame.write_parquet(path)
    return path


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_figures(form: str, tmp_path: Path) -> None:
    found = formatspan.analyze_table(_as(form, _rows(), tmp_path))
    assert found.pairs["fsi"].to_list() == pytest.approx([1 / 3, 1 / 3])
    assert found.pairs["psi"].to_list() == pytest.approx([1 / 3, 1 / 3])
    assert found.pairs["n"].to_list() == [30, 30]
    assert found.pairs["fsi_low"][0] > 0
    assert found.models["compliance_share"].to_list() == pytest.approx([1.0, 1.0])


def test_a_runs_own_rows_give_the_runs_own_figures(
    small_study: Callable[..., Study], tmp_path: Path
) -> None:
    study = small_study(examples=12)
    folder = formatspan.run(study, out=tmp_path / "run").folder
    own = formatspan.analyze(folder)
    columns = ["model", "task", "example", "wrapper", "parsed", "correct", "copy", "prompt_tokens"]
    places = {w.name: i for i, w in enumerate(study.wrappers)}
    order = pl.col("wrapper").cast(pl.String).replace_strict(places)
    there = formatspan.analyze_table(_scored(folder).select(columns).sort(order))
    for frame in ("models", "pairs", "cells", "wrapper_pairs", "ranks", "matched"):
        mine, imported = getattr(own, frame), getattr(there, frame)
        assert mine.drop("chance", "cfsi", strict=False).equals(
            imported.drop("chance", "cfsi", strict=False)
        ), frame


def _scored(folder: Path) -> pl.DataFrame:
    with Store.read(folder / "run.sqlite") as store:
        study = Study.model_validate_json(store.meta("study") or "")
        return scored(store, study, study.level)


def test_repeats_and_copies_are_told_apart() -> None:
    rows = [{**r, "seed": s} for r in _rows(("a",)) for s in range(3)]
    assert formatspan.analyze_table(rows).pairs["requested"][0] == 180
    later = [{**r, "seed": r["seed"] + 1} for r in rows]
    assert import_table(later).table.equals(import_table(rows).table), "repeats count from 0"
    copied = [{**r, "copy": r["seed"] > 0} for r in rows]
    assert formatspan.analyze_table(copied).pairs["requested"][0] == 60


def test_a_row_without_outcome_is_a_failure_and_so_is_a_missing_row() -> None:
    rows = _rows(("a",))
    emptied = [
        {**r, "parsed": None, "correct": None} if r["wrapper"] == "p" and r["example"] < 5 else r
        for r in rows
    ]
    left_out = [r for r in rows if r["wrapper"] != "p" or r["example"] >= 5]
    for given in (emptied, left_out):
        pair = formatspan.analyze_table(given).pairs.to_dicts()[0]
        assert (pair["requested"], pair["replies"], pair["n"]) == (60, 55, 25)
        assert pair["fsi_if_failures_high"] > pair["fsi_if_failures_low"]


def test_a_model_that_was_not_asked_a_task_is_not_indexed_there() -> None:
    rows = _rows() + [{**r, "task": "u"} for r in _rows(("a",))]
    found = formatspan.analyze_table(rows)
    assert found.models["note"].to_list() == [None, "without u: not indexed"]


def test_columns_of_a_task_and_of_a_model() -> None:
    rows = [{**r, "chance": 0.25, "family": "f", "size_b": 7} for r in _rows()]
    found = formatspan.analyze_table(rows)
    assert found.tasks["t"]["chance"] == 0.25
    assert found.models["size_b"].to_list() == [7.0, 7.0]
    assert found.pairs["cfsi"][0] == pytest.approx(1 / 3 / 0.75)
    assert "taken as 0" in formatspan.analyze_table(_rows()).tasks["t"]["notes"][0]


def test_clusters_widen_the_interval() -> None:
    alone = formatspan.analyze_table(_rows(("a",))).pairs
    joint = [{**r, "cluster": r["example"] // 6} for r in _rows(("a",))]
    assert formatspan.analyze_table(joint).pairs["fsi_high"][0] != alone["fsi_high"][0]


def test_unused_columns_are_named() -> None:
    rows = [{**r, "note": "x", "prompt": "y"} for r in _rows()]
    assert import_table(rows).ignored == ("note", "prompt")


def _with(rows: Rows, at: int, **values: object) -> Rows:
    return [{**r, **values} if i == at else r for i, r in enumerate(rows)]


WRONG: tuple[tuple[str, Rows, str], ...] = (
    ("empty", [], "table: expected rows, found none"),
    ("flag", _with(_rows(), 3, parsed="maybe"), "table, line 4, field 'parsed': expected true"),
    ("half", _with(_rows(), 3, parsed=0.5), "line 4, field 'parsed': expected true, false, 1, 0"),
    ("list", _with(_rows(), 3, example=[1]), "line 4, field 'example': expected one value, got"),
    ("lucky", _with(_rows(), 1, correct=True), "line 2, field 'correct': true, but parsed is"),
    ("no parsed", _with(_rows(), 2, parsed=None), "line 3, field 'parsed': expected both"),
    ("no correct", _with(_rows(), 2, correct=None), "line 3, field 'correct': expected both"),
    ("twice", _rows() + _rows()[4:5], "line 121: the same model, task, example, wrapper, mode,"),
    ("no name", _with(_rows(), 5, model="  "), "line 6, field 'model': expected a name"),
    ("seed", _with(_rows(), 5, seed=1.5), "line 6, field 'seed': expected a whole number"),
    ("tokens", _with(_rows(), 5, prompt_tokens=-1), "field 'prompt_tokens': expected a whole"),
    ("mode", _with(_rows(), 5, mode="json"), "line 6, field 'mode': expected free, constrained"),
    ("status", _with(_rows(), 5, status="fine"), "field 'status': expected ok, off_format"),
    ("not ok", _with(_rows(), 0, status="empty"), "line 1, field 'status': 'empty' does not"),
    ("chance", [{**r, "chance": 1} for r in _rows()], "field 'chance': expected a number from 0"),
    (
        "chances",
        _with([{**r, "chance": 0.5} for r in _rows()], 7, chance=0.2),
        "line 8, field 'chance': task 't' has 0.2 here and 0.5 before",
    ),
    (
        "clusters",
        _with([{**r, "cluster": r["example"]} for r in _rows()], 9, cluster="x"),
        "line 10, field 'cluster': task 't', example '4' has 'x' here",
    ),
    (
        "column",
        [{"Wrapper" if k == "wrapper" else k: v for k, v in r.items()} for r in _rows()],
        "table: column 'wrapper' is missing (is 'Wrapper' meant?)",
    ),
)


@pytest.mark.parametrize(("rows", "message"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_mistakes_end_in_one_line(rows: Rows, message: str) -> None:
    with pytest.raises(DataError) as caught:
        formatspan.analyze_table(rows)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_mistakes_in_files_name_file_and_line(tmp_path: Path) -> None:
    path = _as("csv", _with(_rows(), 3, parsed="maybe"), tmp_path)
    with pytest.raises(DataError, match=r"scores\.csv, line 5, field 'parsed'"):
        formatspan.analyze_table(path)
    with pytest.raises(DataError, match="no such file"):
        formatspan.analyze_table(tmp_path / "absent.parquet")
    with pytest.raises(DataError, match="expected a Polars frame, a file or rows, got int"):
        formatspan.analyze_table(7)


def test_words_for_true_false_and_nothing() -> None:
    words = [("True", "1"), ("true", "1.0"), ("FALSE", "0"), ("0.0", "false"), ("NaN", "")]
    rows = [
        {"model": "a", "task": "t", "example": i, "wrapper": w, "parsed": p, "correct": c}
        for i, (p, c) in enumerate(words)
        for w in ("p", "q")
    ]
    pair = formatspan.analyze_table(rows, inference=False).pairs.to_dicts()[0]
    assert (pair["replies"], pair["n"], pair["accuracy"]) == (8, 4, 0.5)


def test_the_report_claims_nothing_that_a_table_does_not_hold() -> None:
    view = View(formatspan.analyze_table(_rows()))
    names = [fact.name for fact in parameters(view)]
    assert "temperature" not in names and "length cap" not in names
    text = checklist(view, Provenance())
    assert "temperature" not in text and "*fill in*" in text


def test_commands_take_tables(tmp_path: Path) -> None:
    path = _as("csv", [{**r, "extra": 1} for r in _rows()], tmp_path)
    shown = CliRunner().invoke(app, ["analyze", str(path), "--json", "--intervals"])
    assert shown.exit_code == 0
    assert "columns not used: extra" in shown.stderr
    assert json.loads(shown.stdout)["level"] == "as imported"
    refused = CliRunner().invoke(app, ["analyze", str(path), "--level", "strict"])
    assert isinstance(refused.exception, StudyError)


def test_a_report_of_a_table(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    path = _as("csv", _rows(), tmp_path)
    done = CliRunner().invoke(app, ["report", str(path), "--no-figures"])
    assert done.exit_code == 0, done.exception
    page = (tmp_path / "scores-report" / "report.html").read_text(encoding="utf-8")
    assert "the analysis is of a table of scores" in page
    assert "prompts, padding, decoding and scoring are not known" in page
