"""Tables of a report: every digit in CSV, nothing that a spreadsheet or LaTeX would act on."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from formatspan.atomic import write_bytes, write_text
from formatspan.errors import StorageError
from formatspan.report.escape import latex, markdown, neutral, one_line
from formatspan.report.numbers import MISSING, interval, percent, points, probability, ratio
from formatspan.report.table_list import TABLES
from formatspan.report.tables import to_csv, to_latex, to_markdown, write_tables
from formatspan.report.view import Row, View
from report_runs import full, run


@pytest.mark.parametrize(
    ("value", "safe"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("  =1", "'  =1"),
        ("\n=1", "'\n=1"),
        ("-3", "-3"),
        ("+1.5e-3", "+1.5e-3"),
        (-0.25, -0.25),
        (None, None),
        ("plain", "plain"),
        (["a", "=b"], "a; =b"),
    ],
)
def test_no_cell_is_a_formula(value: object, safe: object) -> None:
    assert neutral(value) == safe


def test_latex_acts_on_nothing() -> None:
    assert latex("50%_{a}~^$#&\\") == (
        r"50\%\_\{a\}\textasciitilde{}\textasciicircum{}\$\#\&\textbackslash{}"
    )
    assert latex("a\n\nb\u202ec –") == "a b c --"


def test_markdown_acts_on_nothing() -> None:
    assert markdown("a|b `c` <img src=x> [l](u)\n# h") == (
        "a\\|b \\`c\\` &lt;img src=x&gt; \\[l\\](u) \\# h"
    )


def test_one_line_keeps_scripts_that_need_joiners() -> None:
    assert one_line("می\u200cخواهم \u2066x\u2069") == "می\u200cخواهم x"


def test_numbers() -> None:
    assert interval(0.261, 0.3625) == "26.1 to 36.2"
    assert interval(None, 0.1) == MISSING
    assert points(-0.0004) == "0.0", "what rounds to zero has no sign"
    assert (points(-0.012), percent(-1e-9), ratio(-0.0)) == ("-1.2", "0.0%", "0.00")
    assert probability(0.0004) == "< 0.001"
    assert probability(0.0342) == "0.034"
    assert probability(None) == MISSING


def test_csv_keeps_every_digit() -> None:
    rows = [Row(model="=evil", fsi=0.1 + 0.2, note=None), Row(model="b", fsi=None, note="x,y")]
    read = list(csv.reader(io.StringIO(to_csv(rows))))
    assert read == [["model", "fsi", "note"], ["'=evil", str(0.1 + 0.2), ""], ["b", "", "x,y"]]


def test_an_absent_column_prints_as_a_dash() -> None:
    summary = TABLES[0]
    assert summary.name == "summary"
    row = Row(model="m_1", mode="constrained", fsi=0.31)
    assert r"m\_1 (constrained)" in to_latex(summary, [row])
    lines = to_markdown(summary, [row]).splitlines()
    assert lines[2].startswith("| m\\_1 (constrained) | – | – | 31.0 | – |")


def test_every_table_in_three_forms(tmp_path: Path) -> None:
    view = View(full(run(tmp_path / "r", examples=20)))
    files = write_tables(TABLES, view, tmp_path / "tables")
    assert {p.name for p in files} == {
        f"{table.name}.{suffix}" for table in TABLES for suffix in ("csv", "tex", "md")
    }
    with (tmp_path / "tables" / "summary.csv").open(newline="", encoding="utf-8") as file:
        assert [row["model"] for row in csv.DictReader(file)] == ["steady", "clumsy", "fickle"]
    for path in files:
        assert "None" not in path.read_text(encoding="utf-8")
        assert "nan" not in path.read_text(encoding="utf-8")


def test_files_are_whole_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    write_text(path, "lone \ud800 surrogate")
    assert path.read_text(encoding="utf-8") == "lone \\ud800 surrogate"
    write_bytes(path, b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["x.txt"]
    with pytest.raises(StorageError, match="cannot be written"):
        write_bytes(tmp_path / "missing" / "x.txt", b"")
