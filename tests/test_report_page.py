"""The page as text: its policy, its data, its sections on full, partial and empty runs."""

from __future__ import annotations

import json
import re
import sys
from html import unescape
from pathlib import Path

import pytest
from typer.testing import CliRunner

import formatspan
from formatspan.cli import app
from formatspan.errors import BackendError, StorageError
from formatspan.report.figures.files import for_paper
from formatspan.report.figures.table import FIGURES, drawn
from formatspan.report.page import asset, embedded, policy, source_hash
from formatspan.report.view import View
from formatspan.report.write import ReportFiles, write_report
from report_runs import full, run, study

SECTIONS = ("answer", "models", "figures", "tables", "replies", "advice", "method", "checklist")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three scripted models."""
    return run(tmp_path_factory.mktemp("page") / "r", examples=20)


@pytest.fixture(scope="module")
def report(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> ReportFiles:
    """Its report, with figures as files."""
    out = tmp_path_factory.mktemp("report")
    return write_report(full(folder), folder / "run.sqlite", out, replies=200)


@pytest.fixture(scope="module")
def html(report: ReportFiles) -> str:
    """The page."""
    return report.page.read_text(encoding="utf-8")


def test_everything_is_written(report: ReportFiles) -> None:
    names = {p.name for p in report.figures}
    assert names == {f"{f.name}.{s}" for f in FIGURES for s in ("svg", "png", "pdf")}
    assert all(p.stat().st_size > 500 for p in report.figures)
    assert json.loads(report.analysis.read_text(encoding="utf-8"))["level"] == "normalized"
    assert (report.embedded, report.replies) == (200, 900)
    for path in report.figures:
        start = {".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF"}[path.suffix]
        assert path.read_bytes().startswith(start)


def test_the_page_is_in_order_and_small(html: str, report: ReportFiles) -> None:
    places = [html.index(f'<section id="{name}"') for name in SECTIONS]
    assert places == sorted(places)
    assert report.page.stat().st_size < 6_000_000


def test_scripts_and_styles_are_those_of_the_policy(html: str) -> None:
    found = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert found is not None
    allowed = unescape(found[1])
    assert "unsafe" not in allowed
    assert "default-src 'none'" in allowed
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    assert len(scripts) == 4
    assert len(styles) == 1
    for text in (*scripts, *styles):
        assert source_hash(text) in allowed
    assert allowed.count("sha256-") == 5


def test_nothing_is_inline_or_fetched(html: str) -> None:
    markup = _markup(html)
    assert not re.search(r"<[^>]+\son\w+\s*=", markup), "an inline event handler"
    assert not re.search(r"<[^>]+\sstyle\s*=", markup), "an inline style"
    assert not re.search(r"\b(src|href)=\"(?!#)", markup), "a link to elsewhere"


def _markup(html: str) -> str:
    return re.sub(r"<(script|style)\b[^>]*>.*?</\1>", "", html, flags=re.DOTALL)


def test_own_scripts_write_text_only() -> None:
    for name in ("explorer.js", "figures.js"):
        text = asset(name)
        assert not re.search(r"(inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\(", text)


def test_embedded_data_cannot_leave_its_element() -> None:
    hostile = {"x": "</script><script>alert(1)</script><!-- & \u2028\u2029 \ud800"}
    text = embedded(hostile)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == hostile
    assert text.isascii()


def test_the_policy_names_each_hash() -> None:
    # echo -n 'alert(1)' | openssl dgst -sha256 -binary | base64
    assert source_hash("alert(1)") == "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"
    assert "style-src 'sha256-" in policy(scripts=["a"], styles=["b"])


def test_a_partial_run_says_so(folder: Path, tmp_path: Path) -> None:
    script = {"fail": 0.1, "seed": 4}
    models = [{"model": "scripted:", "name": "shaky", "extra_body": script}]
    done = formatspan.run(study(models=models, examples=6), out=tmp_path / "r")
    assert not done.complete
    analysis = formatspan.analyze(done)
    files = write_report(analysis, tmp_path / "r" / "run.sqlite", tmp_path / "out", figures=False)
    text = files.page.read_text(encoding="utf-8")
    assert "This run is not complete" in text
    assert "Requests without a reply" in text
    assert "too few examples" in text
    assert files.figures == ()


def test_a_run_without_any_reply_has_all_sections(tmp_path: Path) -> None:
    models = [{"model": "scripted:", "name": "gone", "extra_body": {"fail": 1.0}}]
    done = formatspan.run(study(models=models, examples=2), out=tmp_path / "r")
    analysis = formatspan.analyze(done)
    files = write_report(analysis, tmp_path / "r" / "run.sqlite", tmp_path / "out")
    text = files.page.read_text(encoding="utf-8")
    assert all(f'<section id="{name}"' in text for name in SECTIONS)
    assert "no example with replies under every wrapper" in text
    assert "There are no raw replies to show" in text
    assert "There are no replies yet." in text


def test_the_command_chooses_replies_by_the_table_of_the_figures(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def again(*_: object) -> None:
        raise AssertionError("scored again")

    monkeypatch.setattr("formatspan.falsifier.compare.RESAMPLES", 100)
    monkeypatch.setattr("formatspan.report.explorer.scored", again)
    command = ["report", str(folder), "--no-figures", "--replies", "40", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert '<p class="lead">40 of 900 replies are in' in page


def test_an_analysis_without_a_store(folder: Path, tmp_path: Path) -> None:
    files = write_report(full(folder), None, tmp_path, figures=False)
    assert "There are no raw replies to show" in files.page.read_text(encoding="utf-8")
    assert files.embedded == 0


def test_names_are_escaped(rows_file: Path, tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)>\u202e"
    keys = {
        "name": name,
        "models": [{"model": "scripted:", "name": name}],
        "tasks": [{"file": str(rows_file), "name": "<b>sums"}],
    }
    done = formatspan.run(study(examples=3, **keys), out=tmp_path / "r")
    analysis = formatspan.analyze(done)
    files = write_report(analysis, tmp_path / "r" / "run.sqlite", tmp_path / "out")
    text = _markup(files.page.read_text(encoding="utf-8"))
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    assert "<img" not in text
    assert "<b>sums" not in text
    assert "\u202e" not in text


def test_a_missing_extra_says_how_to_install_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in sys.modules if n.startswith("formatspan.report.figures")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "altair", None)
    from formatspan.report.figures.table import drawn

    with pytest.raises(BackendError, match=r"pip install 'formatspan\[report\]'"):
        drawn(View(full(folder)))


def test_a_folder_that_cannot_be_made(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(StorageError, match="cannot be created"):
        write_report(full(folder), None, tmp_path / "file" / "out", figures=False)


def test_files_have_ink_on_white(folder: Path) -> None:
    for figure in drawn(View(full(folder))):
        assert figure.spec is not None
        printed = for_paper(figure.spec)
        assert printed["background"] == "white"
        assert "currentColor" not in json.dumps(printed)
