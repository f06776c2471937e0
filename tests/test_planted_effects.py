"""Effects that are planted, and what the whole way to the report's sentences makes of them.

Scripted models answer questions of the demo suite; run → analyze → sentences.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import formatspan
from formatspan.analysis import Analysis
from formatspan.report.sentences import answer
from formatspan.report.verdict import Verdict, verdict
from formatspan.report.view import Row, View
from formatspan.study import Study

TASKS = ("demo_choice", "demo_boolean", "demo_number")
EXAMPLES = 60


def _analysis(out: Path, *scripts: dict[str, Any], examples: int = EXAMPLES) -> Analysis:
    models = [
        {"model": "scripted:", "name": f"model-{i}", "extra_body": {"seed": i, **script}}
        for i, script in enumerate(scripts)
    ]
    data = {"name": "planted", "models": models, "tasks": list(TASKS), "examples": examples}
    return formatspan.analyze(formatspan.run(Study.build(data), out=out))


def _only(found: Analysis) -> Row:
    return View(found).models[0]


def test_the_same_answers_under_all_wrappers_are_no_effect(tmp_path: Path) -> None:
    found = _analysis(tmp_path / "run", {"accuracy": 0.7}, examples=200)
    model = _only(found)
    assert (model["fsi"], model["fsi_low"]) == (0, 0)
    assert answer(View(found)).span == (
        "model-0 is safe under all 5 wrappers tried: no effect beyond noise, and at most "
        f"{100 * model['fsi_high']:.1f} points with 95% confidence."
    )
    assert answer(View(found)).loss == (
        "No loss beyond noise was found, so there is none to explain."
    )


def test_noise_that_is_the_same_under_all_wrappers_is_no_effect(tmp_path: Path) -> None:
    """Every fourth reply breaks the form, another one under each wrapper: FSI is chance alone."""
    found = _analysis(tmp_path / "run", *[{"accuracy": 0.8, "comply": 0.75}] * 2)
    view = View(found)
    assert min(m["fsi"] for m in view.models) > 0.01, "a span is there, and it means nothing"
    assert {verdict(m, view) for m in view.models} <= {Verdict.NO_EFFECT, Verdict.SAFE}
    said = answer(view)
    assert "no effect beyond noise" in said.span
    assert said.loss == "No loss beyond noise was found, so there is none to explain."


@pytest.mark.parametrize(
    ("rates", "fsi"),
    [
        ({"default": 0.8, "deliberate": 0.5}, 0.3),
        ({"default": 0.7, "json": 0.6, "structured": 0.75}, 0.15),
        ({"default": 1.0, "plain": 0.8}, 0.2),
    ],
    ids=["one wrapper", "two wrappers", "near perfect"],
)
def test_an_effect_on_ability_lies_in_the_interval(
    tmp_path: Path, rates: dict[str, float], fsi: float
) -> None:
    found = _analysis(tmp_path / "run", {"accuracy": rates})
    view = View(found)
    for model in view.models:
        assert 0 < model["fsi_low"] <= fsi <= model["fsi_high"], model["model"]
        assert model["compliance_share"] == pytest.approx(0), "every reply parsed"
        assert verdict(model, view) is Verdict.EFFECT
    said = answer(view)
    assert "moves the accuracy of" in said.span
    assert "mostly not compliance: an estimated 0% of it" in said.loss


@pytest.mark.parametrize(
    "script",
    [
        {"accuracy": 0.7, "comply": {"json": 0.0}, "break": ["silence"]},
        {"accuracy": 1.0, "comply": {"json": 0.3, "structured": 0.8}, "break": ["silence"]},
        {"accuracy": 0.7, "comply": {"json": 0.0}, "break": ["empty", "refusal", "cut_off"]},
    ],
    ids=["collapse", "part of the replies", "other ways to fail"],
)
def test_a_loss_of_compliance_alone_is_called_that(tmp_path: Path, script: dict[str, Any]) -> None:
    found = _analysis(tmp_path / "run", script)
    model = _only(found)
    assert model["fsi"] > 0.5
    assert model["compliance_share"] >= 0.99
    assert model["compliance_share"] == pytest.approx(1.0), "nothing but compliance was planted"
    assert answer(View(found)).loss == (
        "The loss is mostly compliance: an estimated 100% of it comes from replies that could not "
        "be read in the form asked for, not from wrong answers."
    )


def test_compliance_and_ability_are_told_apart_within_their_error(tmp_path: Path) -> None:
    """Of a loss of 0.8 · 0.7 all is compliance; which answers break the form is chance.

    The 30% that parse under ``json`` are some 54 replies, whose accuracy errs by 0.054; times
    (1 + 0.3) / 2 over the loss that is 0.063, and 0.036 for the mean of three models.
    """
    script = {"accuracy": 0.8, "comply": {"json": 0.3}, "break": ["silence"]}
    found = _analysis(tmp_path / "run", *[script] * 3)
    shares = found.models["compliance_share"].to_list()
    assert sum(shares) / 3 == pytest.approx(1.0, abs=0.08)
    assert all(low <= 0.56 <= high for low, high in found.models["fsi_low", "fsi_high"].iter_rows())
