"""The page in a browser: hostile replies run nothing, and everything still works."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import formatspan
from browser import chromium, console, look, missing, open_page, screenshot
from formatspan.analysis import analyze
from formatspan.backends.base import Lesson
from formatspan.backends.scripted import ScriptedModel, generation
from formatspan.records import Generation, Request
from formatspan.report.write import write_report
from formatspan.study import Study
from report_runs import full, run

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

WHY = missing()
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"browser tests: {WHY}")

RAN = "window.ran = (window.ran || 0) + 1"
HOSTILE = (
    f"<script>{RAN}</script>",
    f"</script><script>{RAN}</script>",
    f'<img src=x onerror="{RAN}">',
    f'<svg onload="{RAN}"><a xlink:href="javascript:{RAN}">x</a></svg>',
    f'<a href="javascript:{RAN}">click</a> [click](javascript:{RAN})',
    f'"><iframe srcdoc="<script>parent.{RAN}</script>"></iframe>',
    f"<!-- <script>{RAN}</script> --><style>*{{display:none}}</style>",
    f"{{{{constructor.constructor('{RAN}')()}}}} ${{{RAN}}}",
    "right \u202eto left\u202c \u2066isolated\u2069 \u200bzero\u200b \ufeff \u200f",
    "bell \x07 escape \x1b[31m null-like \x00 \u2028 \u2029 \x85",
    "surrogates \ud83d alone \udc00 and \U0001f600 a pair",
    "a" * 500_000 + f"<script>{RAN}</script>" + "b" * 500_000,
    "𝔸" * 30 + " aside.\nAnswer: yes",
    '{"answer": "<b onmouseover=\\"window.ran=1\\">"}',
    "<answer>B</answer>",
)


def _hostile(self: ScriptedModel, request: Request) -> Generation:
    lesson: Lesson = self._lessons[request.id]
    place = sum(map(ord, lesson.example_id + lesson.wrapper))
    return generation(request, HOSTILE[place % len(HOSTILE)])


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run whose replies attack it."""

    async def reply(self: ScriptedModel, request: Request) -> Generation:
        return _hostile(self, request)

    root = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScriptedModel, "generate", reply)
        folder = run(root / "r", examples=4, tasks=["demo_choice", "demo_boolean"])
    return write_report(analyze(folder), folder / "run.sqlite", root / "out", figures=False).page


@pytest.fixture(scope="module")
def tame(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of an ordinary run with every figure."""
    root = tmp_path_factory.mktemp("tame")
    folder = run(root / "r", examples=12)
    return write_report(full(folder), folder / "run.sqlite", root / "out", figures=False).page


@pytest.fixture(params=[1440, 390])
def browser(request: pytest.FixtureRequest) -> Iterator[Chrome]:
    """A browser of one of two widths."""
    with chromium(width=request.param) as driver:
        yield driver


def _script(driver: Chrome, code: str) -> Any:  # noqa: ANN401 - whatever the script returns
    return driver.execute_script(code)


def _choose(driver: Chrome, select: str, value: str) -> None:
    code = (
        "const s = document.getElementById(arguments[0]); s.value = arguments[1];"
        "s.dispatchEvent(new Event('change'));"
    )
    driver.execute_script(code, select, value)


def _found(driver: Chrome) -> int:
    text: str = _script(driver, "return document.getElementById('found').textContent")
    return int(text.split()[0].replace(",", ""))


def _click_all(driver: Chrome) -> int:
    """Open every listed reply; returns how many."""
    code = (
        "let more; while ((more = document.querySelector('.more'))) more.click();"
        "const items = [...document.querySelectorAll('.item')];"
        "for (const item of items) { item.click();"
        "  for (const d of document.querySelectorAll('#detail details')) d.open = true; }"
        "return items.length;"
    )
    clicked: int = _script(driver, code)
    return clicked


def test_hostile_replies_run_nothing(browser: Chrome, hostile: Path) -> None:
    open_page(browser, hostile)
    assert _click_all(browser) == 3 * 2 * 4 * 5
    _choose(browser, "f-level", "paper")
    _click_all(browser)
    assert _script(browser, "return window.ran === undefined")
    assert console(browser) == [], "no violation of the policy, no error"
    made = "'#replies script, #replies img, #replies iframe, #replies a'"
    assert _script(browser, f"return document.querySelectorAll({made}).length") == 0


def test_hostile_texts_are_shown_as_they_are(browser: Chrome, hostile: Path) -> None:
    open_page(browser, hostile)
    _choose(browser, "f-level", "lenient")
    seen: list[str] = _script(
        browser,
        "let more; while ((more = document.querySelector('.more'))) more.click();"
        "return [...document.querySelectorAll('.item')].map((item) => { item.click();"
        " return document.querySelector('#detail > .raw').textContent; });",
    )
    whole = "\n".join(seen)
    assert f"<script>{RAN}</script>" in whole
    assert "U+202Eto leftU+202C" in whole, "direction characters are spelled out"
    assert "U+200B" in whole
    assert "U+001B[31m" in whole
    assert "\ufffd alone \ufffd and \U0001f600" in whole, "the store keeps no lone surrogate"
    assert "characters left out" in whole
    assert max(map(len, seen)) < 6_000
    marks: list[str] = _script(
        browser,
        "const found = [];"
        "for (const item of document.querySelectorAll('.item')) { item.click();"
        "  found.push(...[...document.querySelectorAll('#detail > .raw mark')]"
        ".map((m) => m.textContent)); } return found;",
    )
    assert "yes" in marks
    assert set(marks) <= {"yes", "B", "b"}, "offsets are code points, not code units"


def test_the_explorer_works(browser: Chrome, tame: Path) -> None:
    open_page(browser, tame)
    everything = _found(browser)
    assert everything == 3 * 3 * 12 * 5
    _choose(browser, "f-model", "clumsy")
    _choose(browser, "f-wrapper", "json")
    assert _found(browser) == 3 * 12
    _choose(browser, "f-status", "unparsed")
    unparsed = _found(browser)
    assert 0 < unparsed < 3 * 12
    _script(browser, "document.getElementById('f-flips').click()")
    flips = _found(browser)
    assert 0 < flips <= unparsed
    cards = "return [...document.querySelectorAll('.others .card')].map((c) => c.textContent)"
    shown: list[str] = _script(browser, cards)
    assert len(shown) == 5, "the same question under every wrapper"
    assert any("✓ right" in text for text in shown)
    _choose(browser, "f-task", "demo_number")
    cells = "document.querySelectorAll('.levels td:first-child')"
    levels = f"return [...{cells}].map((c) => c.textContent)"
    assert _script(browser, levels) == ["strict", "normalized", "lenient", "paper"]
    prompt = "return document.querySelector('#detail .prompt').textContent"
    assert "padding" in _script(browser, prompt)
    assert _script(browser, "return !!document.querySelector('#detail .pad')")
    _choose(browser, "f-status", "refusal")
    _choose(browser, "f-wrapper", "plain")
    assert _found(browser) == 0
    assert "No embedded reply fits" in _script(
        browser, "return document.getElementById('detail').textContent"
    )
    assert console(browser) == []


def test_the_page_fits_its_width(browser: Chrome, tame: Path, tmp_path: Path) -> None:
    open_page(browser, tame)
    widths = _script(
        browser,
        "const d = document.documentElement; return [d.scrollWidth, d.clientWidth]",
    )
    assert widths[0] == widths[1], "wide tables scroll in their own box"
    figures = _script(browser, "return document.querySelectorAll('.chart.drawn svg').length")
    assert figures == 12
    assert console(browser) == []
    shots = Path(os.environ.get("FORMATSPAN_SCREENSHOTS", tmp_path))
    path = shots / f"report-{widths[1]}.png"
    screenshot(browser, path)
    assert path.stat().st_size > 50_000


def test_no_legend_is_cut_off(browser: Chrome, tmp_path: Path) -> None:
    names = ("Meta-Llama-3.1-405B-Instruct-Turbo", "Qwen2.5-Coder-14B-Instruct-GPTQ-Int4", "m")
    models = [
        {"model": f"scripted:accuracy=0.{i + 5}", "name": name, "size_b": 10 - i, "family": name}
        for i, name in enumerate(names)
    ]
    keys = {"models": models, "tasks": ["demo_choice", "demo_number"], "examples": 8}
    folder = formatspan.run(Study.build(keys), out=tmp_path / "r").folder
    files = write_report(full(folder), folder / "run.sqlite", tmp_path / "out", figures=False)
    open_page(browser, files.page)
    cut = _script(
        browser,
        """
        return [...document.querySelectorAll(".chart svg")].flatMap((svg) => {
          const box = svg.getBoundingClientRect();
          const texts = [...svg.querySelectorAll("text")];
          return texts.filter((text) => {
            const at = text.getBoundingClientRect();
            return at.left < box.left - 1 || at.right > box.right + 1;
          }).map((text) => text.textContent);
        });""",
    )
    assert cut == []
    widths = _script(
        browser,
        "const d = document.documentElement; return [d.scrollWidth, d.clientWidth]",
    )
    assert widths[0] == widths[1], "a figure that is wider scrolls in its own box"
    told = _script(
        browser,
        """
        const open = ".scroll:not(details:not([open]) *)";
        return [...document.querySelectorAll(open)].every((box) => {
          const wider = box.scrollWidth > box.clientWidth + 1;
          return box.previousElementSibling.hidden !== wider
            && box.classList.contains("on-right") === wider;
        });""",
    )
    assert told, "a box that scrolls says so, and no other does"


def test_tooltips_themes_and_checklist(tame: Path) -> None:
    with chromium() as driver:
        open_page(driver, tame)
        code = (
            "const dot = document.querySelector('#chart-heat .mark-rect path');"
            "dot.scrollIntoView({block: 'center'}); const b = dot.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + 3];"
        )
        x, y = driver.execute_script(code)
        for step in (0, 1):
            move = {"type": "mouseMoved", "x": x + step, "y": y}
            driver.execute_cdp_cmd("Input.dispatchMouseEvent", move)
        tip = driver.execute_script("return document.getElementById('vg-tooltip-element')")
        assert tip is not None
        assert "accuracy" in tip.text
        ink = "return getComputedStyle(document.documentElement).color"
        light = driver.execute_script(ink)
        look(driver, 1440, 1000, dark=True)
        assert driver.execute_script(ink) != light
        text: str = driver.execute_script(
            "return document.getElementById('checklist-text').textContent"
        )
        assert text.startswith("### Prompt-format sensitivity: which-format")
        assert "| model | accuracy |" in text
        assert console(driver) == []
