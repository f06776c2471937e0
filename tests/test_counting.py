"""Counts with their nouns, and that tables and pages of one of everything read well."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import formatspan
from formatspan.cli import app
from formatspan.counting import counted
from formatspan.report.write import write_report
from formatspan.study import Study

_ONE_MANY = re.compile(
    r"(?<![\d.,])1 (?:common |indexed |long |flipping |more )?(?:wrappers|examples|tasks|models|"
    r"replies|requests|questions|tokens|seeds|cells|clusters|pairs|points of the grid)\b"
)


@pytest.mark.parametrize(
    ("number", "nouns", "said"),
    [
        (0, ("wrapper",), "0 wrappers"),
        (1, ("wrapper",), "1 wrapper"),
        (1200, ("wrapper",), "1,200 wrappers"),
        (1, ("reply", "replies"), "1 reply"),
        (2, ("reply", "replies"), "2 replies"),
    ],
)
def test_a_noun_follows_its_count(number: int, nouns: tuple[str, ...], said: str) -> None:
    assert counted(number, *nouns) == said


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One reply: of one model, on one example of one task, under one wrapper."""
    keys = {"models": ["scripted"], "tasks": ["demo_number"], "wrappers": ["plain"]}
    study = Study.build({**keys, "examples": 1, "max_tokens": 1})
    return formatspan.run(study, out=tmp_path_factory.mktemp("one") / "r").folder


@pytest.mark.parametrize("command", ["analyze", "compare", "run", "replies"])
def test_the_terminal_counts_to_one(one: Path, command: str, tmp_path: Path) -> None:
    more = {"compare": [str(one)], "replies": ["--parquet", str(tmp_path / "x.parquet")]}
    done = CliRunner().invoke(app, [command, str(one), *more.get(command, [])])
    assert done.exit_code == 0
    assert re.search(r"\b1 (?:common )?(?:wrapper|reply)\b", done.output)
    assert _ONE_MANY.findall(done.output) == []


def test_the_report_counts_to_one(one: Path, tmp_path: Path) -> None:
    files = write_report(
        formatspan.analyze(one, levels=True), one / "run.sqlite", tmp_path / "r", figures=False
    )
    page = files.page.read_text(encoding="utf-8")
    text = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert "1 wrapper<" in text and "1 reply" in text
    assert _ONE_MANY.findall(text) == []
