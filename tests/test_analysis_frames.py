"""Every statistic reaches the analysis, and every poor run gives figures or their reason."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import formatspan
from formatspan.analysis import SCHEMA_VERSION, Analysis
from formatspan.inference import Kind, Names, close_examples, first_draws, infer, panel_of
from formatspan.report.remarks import remarks
from formatspan.report.table_list import TABLES
from formatspan.report.view import View
from formatspan.report.write import write_report
from report_runs import study


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    """Three models with sizes, every frame."""
    folder = tmp_path_factory.mktemp("frames") / "r"
    return formatspan.analyze(
        formatspan.run(study(examples=25), out=folder), levels=True, caps=True
    )


def _row(frame: pl.DataFrame | None, **keys: str) -> dict[str, Any]:
    assert frame is not None
    (row,) = frame.filter(pl.all_horizontal([pl.col(k) == v for k, v in keys.items()])).to_dicts()
    return row


def test_every_frame_names_its_decoding_mode(found: Analysis) -> None:
    data = json.loads(found.to_json())
    assert data["schema_version"] == SCHEMA_VERSION
    for name in ("wrapper_pairs", "ranks", "reversals", "differences", "levels", "caps", "lengths"):
        assert data[name]
        assert {row["mode"] for row in data[name]} == {"free"}, name


def test_spreads_are_bins(found: Analysis) -> None:
    assert found.spreads["examples"].sum() == 3 * 3 * 25
    assert len(found.spreads) < 3 * 3 * 25
    widths = found.spreads["high"] - found.spreads["low"]
    assert widths.to_list() == pytest.approx([0.01] * len(widths))


def test_consistency_and_the_forced_span(found: Analysis) -> None:
    steady = _row(found.pairs, model="steady", task="demo_number")
    assert (steady["same_share"], steady["disagreement"], steady["prosa"]) == (1.0, 0.0, 0.0)
    assert steady["seed_noise"] is None, "one draw of every example"
    clumsy = _row(found.pairs, model="clumsy", task="demo_number")
    assert clumsy["same_share"] < 1
    mean = sum(c["accuracy"] for c in _cells(found, clumsy)) / sum(
        c["parseability"] for c in _cells(found, clumsy)
    )
    assert clumsy["fsi_forced"] == pytest.approx(mean * clumsy["psi"])
    model = _row(found.models, model="clumsy")
    assert 0 < model["fsi_forced"] < 1
    assert 0 < model["same_share"] < 1


def _cells(found: Analysis, pair: dict[str, Any]) -> list[dict[str, Any]]:
    same = (pl.col("model") == pair["model"]) & (pl.col("task") == pair["task"])
    return found.cells.filter(same).to_dicts()


def test_levels_hold_both_subsets(found: Analysis) -> None:
    levels = found.levels
    assert levels is not None
    assert len(levels) == 3 * 4 * 2
    here = _row(levels, model="clumsy", level="normalized", subset="all")
    model = _row(found.models, model="clumsy")
    assert (here["fsi"], here["psi"]) == pytest.approx((model["fsi"], model["psi"]))
    assert here["fsi_low"] <= here["fsi"] <= here["fsi_high"]
    strict, lenient = (
        _row(levels, model="clumsy", level=name, subset="all") for name in ("strict", "lenient")
    )
    assert strict["accuracy"] <= here["accuracy"] <= lenient["accuracy"]


def test_differences_have_their_sign(found: Analysis) -> None:
    row = _row(found.differences, model_a="steady", model_b="clumsy")
    fsi = dict(found.models.select("model", "fsi").iter_rows())
    assert row["fsi_difference"] == pytest.approx(fsi["steady"] - fsi["clumsy"])
    assert row["fsi_low"] <= row["fsi_difference"] <= row["fsi_high"]


def test_facts_say_or_give_their_reason(found: Analysis) -> None:
    facts = found.facts["free"]
    assert facts["FSI and size"]["n"] == 3
    assert facts["FSI and size"]["detectable_r"] == pytest.approx(0.997, abs=5e-4)
    assert facts["FSI by family"] == "not estimable: no model states its family"
    assert facts["ranking"]["pairs"] == 3
    assert 0 < facts["correct on parsed, by generation"]["conditional_accuracy"] < 1
    assert facts["accuracy on parseability"]["regression"]["wild"]["clusters"] == 15
    assert facts["FSI with PSI"]["n"] == 9


def test_the_wild_interval_stands_first(found: Analysis) -> None:
    (table,) = [t for t in TABLES if t.name == "regression"]
    rows = table.rows(View(found))
    assert rows[0]["what"].startswith("β, restricted wild cluster bootstrap")
    assert rows[0]["note"] == "G = 15"
    clustered = next(r for r in rows if "model–task" in r["what"])
    assert "fewer than 10, not reliable" in clustered["note"]
    assert {r["what"] for r in rows} >= {"β without model clumsy", "β without task demo_boolean"}


def test_remarks_are_true_of_the_analysis(found: Analysis) -> None:
    view = View(found)
    assert "3 models cannot show a law" in remarks("sizes", view)[1]
    assert "±1.00" in remarks("sizes", view)[1]
    assert any("cut by the model's tokenizer" in s for s in remarks("caps", view))
    assert "1 of 3 pairs of models changes order" in remarks("ranks", view)[0]
    assert remarks("wins", view) == []


def test_families_and_sizes_come_from_the_study() -> None:
    names = Names(["a", "b", "c"], ["t"], ["w", "v"])
    rows = [
        (m, "t", f"e{i}", f"e{i}", w, "free", s, False, bool((i + k + s) % 2), True, 10 + k)
        for m in names.models
        for i in range(6)
        for k, w in enumerate(names.wrappers)
        for s in range(2)
    ]
    table = _table(rows)
    kinds = {"a": Kind("f", 1.0), "b": Kind("f", 10.0), "c": Kind(None, None)}
    facts = infer(panel_of(table, *names), first_draws(table, names), kinds).facts
    assert facts["FSI by family"]["f"]["models"] == 2
    assert facts["FSI and size"] == "not estimable: 2 models: a slope over models needs 3"
    # Tokens 10 and 11 spread by 1 / 10.5.
    assert [c.sum() for c in close_examples(table, names, 0.1)] == [18]
    assert [c.sum() for c in close_examples(table, names, 0.09)] == [0]


def test_first_draws_are_those_of_seed_zero() -> None:
    names = Names(["a"], ["t"], ["w", "v"])
    rows = [
        ("a", "t", "e0", "e0", "w", "free", 0, False, True, True, 1),
        ("a", "t", "e0", "e0", "w", "free", 1, False, False, True, 1),
        ("a", "t", "e0", "e0", "v", "free", 1, False, True, True, 1),
        ("a", "t", "e1", "e1", "v", "free", 0, False, None, None, None),
        ("a", "t", "e1", "e1", "w", "free", 0, False, False, False, None),
    ]
    (draws,) = first_draws(_table(rows), names)
    assert np.array_equal(draws, [[[1, -1], [0, -1]]])


def _table(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    columns = "model task example cluster wrapper mode seed copy correct parsed prompt_tokens"
    return pl.DataFrame(rows, schema=columns.split(), orient="row")


POOR: dict[str, dict[str, Any]] = {
    "one example": {"examples": 1},
    "one wrapper": {"wrappers": ["plain"]},
    "one model, one task": {"models": ["scripted:"], "tasks": ["demo_number"]},
    "all wrong": {"models": ["scripted:accuracy=0"]},
    "all unparsed": {"models": ["scripted:comply=0,break=silence"]},
    "all failed": {"models": [{"model": "scripted:", "extra_body": {"fail": 1.0}}]},
    "partial": {"models": [{"model": "scripted:", "extra_body": {"fail": 0.6}}, "scripted:a=1"]},
    "both modes": {"decoding": ["free", "constrained"]},
    "seeds": {"seeds": 3, "temperature": 1.0},
}


@pytest.mark.parametrize("keys", POOR.values(), ids=POOR)
def test_poor_runs_give_figures_or_reasons(keys: dict[str, Any], tmp_path: Path) -> None:
    if keys.get("models") and "a=1" in str(keys["models"]):
        keys = {**keys, "models": [keys["models"][0], {"model": "scripted:", "name": "other"}]}
    done = formatspan.run(study(**{"examples": 4, **keys}), out=tmp_path / "r")
    analysis = formatspan.analyze(done, levels=True, caps=True)
    _no_nan(json.loads(analysis.to_json()))
    files = write_report(analysis, tmp_path / "r" / "run.sqlite", tmp_path / "out", figures=False)
    text = files.page.read_text(encoding="utf-8")
    assert "nan" not in text.split("<script")[0].lower().split("</style>")[1]
    assert "None" not in text.split("<script")[0].split("</style>")[1].replace("None is shown", "")


def _no_nan(value: object) -> None:
    if isinstance(value, float):
        assert math.isfinite(value)
    elif isinstance(value, dict):
        for item in value.values():
            _no_nan(item)
    elif isinstance(value, list):
        for item in value:
            _no_nan(item)
