"""Cost by model and wrapper, and providers that threaten the comparison: report and terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest

from formatspan.analysis import analyze
from formatspan.backends.scripted import ScriptedModel
from formatspan.cli.output import print_bill
from formatspan.records import Generation, Request
from formatspan.report.costs import costs
from formatspan.report.threats import threats
from formatspan.report.write import write_report
from formatspan.session import run
from formatspan.store import Store
from formatspan.study import Study

StudyOf = Callable[..., Study]
HOSTILE = "<b>Evil\x1b[31m"


@pytest.fixture
def routed(small_study: StudyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose json prompts are mostly answered by another provider, with known costs."""

    async def answer(self: ScriptedModel, request: Request) -> Generation:
        await asyncio.sleep(0)
        as_json = "JSON" in request.messages[0].content
        return Generation(
            request.id,
            "1",
            "stop",
            prompt_tokens=100,
            cached_tokens=40,
            completion_tokens=5,
            provider=HOSTILE if as_json else "Good",
            fingerprint="fp1" if as_json else f"fp{request.messages[0].content.count('1') % 2}",
            cost=0.5 if as_json else 0.25,
            cost_source="endpoint",
        )

    monkeypatch.setattr(ScriptedModel, "generate", answer)
    return run(small_study(wrappers=["plain", "json"]), out=tmp_path / "r").folder


def test_cost_is_told_by_wrapper(routed: Path) -> None:
    with Store.read(routed / "run.sqlite") as store:
        total, *rows = costs(store)
    assert (total.wrapper, total.replies, total.cost) == ("all", 20, 7.5)
    assert [(row.wrapper, row.cost) for row in rows] == [("plain", 2.5), ("json", 5.0)]
    assert (total.cached_tokens, total.cached, total.dollars) == (800, "40%", "$7.50")


def test_several_providers_are_a_threat(routed: Path) -> None:
    with Store.read(routed / "run.sqlite") as store:
        lines = threats(store)
    assert any("2 providers" in line and "from 0% of" in line for line in lines)
    assert any("fingerprint of Good changed" in line for line in lines)


def test_the_page_and_the_terminal_say_both(
    routed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write_report(analyze(routed), routed / "run.sqlite", tmp_path / "report", figures=False)
    html = files.page.read_text(encoding="utf-8")
    assert "What it cost" in html
    assert "2 providers" in unescape(html)
    assert "<b>Evil" not in html
    assert "costs.csv" in {p.name for p in files.tables}
    print_bill(routed)
    said = capsys.readouterr().out
    assert "what it cost" in said
    assert "$5.00" in said
    assert "beware: script: replies came from 2 providers" in said
    assert "\x1b" not in said


def test_one_provider_is_none(small_study: StudyOf, tmp_path: Path) -> None:
    folder = run(small_study(), out=tmp_path / "r").folder
    with Store.read(folder / "run.sqlite") as store:
        assert threats(store) == ()
        assert costs(store)[0].cost is None
