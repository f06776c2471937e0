"""The sentences: one test a branch, and none stronger than its interval."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest

from formatspan.analysis import Analysis
from formatspan.report.advice import advice
from formatspan.report.league import league
from formatspan.report.sentences import answer
from formatspan.report.verdict import Cause, Verdict, cause, more_examples, verdict
from formatspan.report.view import View
from formatspan.study import Study

Figures = dict[str, Any]

CLEAR: Figures = {"fsi": 0.31, "fsi_low": 0.26, "fsi_high": 0.36, "p_equal_min_holm": 0.0001}
CALM: Figures = {"fsi": 0.02, "fsi_low": 0.0, "fsi_high": 0.04, "p_equal_min_holm": 0.7}
NOISY: Figures = {"fsi": 0.07, "fsi_low": 0.0, "fsi_high": 0.14, "p_equal_min_holm": 0.6}
TORN: Figures = {"fsi": 0.07, "fsi_low": 0.0, "fsi_high": 0.14, "p_equal_min_holm": 0.01}


def _view(
    *models: tuple[str, Figures],
    n: int = 200,
    wrappers: tuple[str, ...] = ("plain", "json"),
    tasks: tuple[str, ...] = ("demo_choice", "demo_number"),
    **frames: list[Figures],
) -> View:
    study = Study.build(
        {
            # A study has no line breaks in names; the table of an older store might.
            "models": [{"model": "scripted:", "name": " ".join(n.split())} for n, _ in models],
            "tasks": list(tasks),
            "wrappers": list(wrappers),
        }
    )
    usual = {
        "mode": "free",
        "best_wrapper": "plain",
        "worst_wrapper": "json",
        "wrapper_high": 0.7,
        "wrapper_low": 0.45,
        "requested": n,
        "replies": n,
    }
    rows = [{**usual, "model": name, **figures} for name, figures in models]
    pairs = [
        {"model": name, "mode": "free", "task": task, "n": n, "fsi": figures["fsi"]}
        for name, figures in models
        for task in tasks
    ]
    given: dict[str, Any] = {
        "run": Path("run"),
        "study": study,
        "level": "normalized",
        "models": _frame(rows),
        "pairs": _frame(pairs),
        **{name: _frame(found) for name, found in frames.items()},
    }
    return View(cast("Analysis", SimpleNamespace(**given)))


def _frame(rows: list[Figures]) -> pl.DataFrame:
    return pl.DataFrame(rows, infer_schema_length=None)


def _verdict(figures: Figures, **keys: Any) -> Verdict:  # noqa: ANN401 - of `_view`
    view = _view(("m", figures), **keys)
    return verdict(view.models[0], view)


def test_verdicts() -> None:
    assert _verdict(CLEAR) is Verdict.EFFECT
    assert _verdict(CALM) is Verdict.SAFE
    assert _verdict(NOISY) is Verdict.NO_EFFECT
    assert _verdict(TORN) is Verdict.UNDECIDED
    assert _verdict({**CALM, "p_equal_min_holm": 0.01}) is Verdict.UNDECIDED
    assert _verdict({"fsi": 0.31}) is Verdict.NO_INTERVAL
    assert _verdict(CLEAR, n=19) is Verdict.FEW
    assert _verdict(CLEAR, wrappers=("plain",)) is Verdict.ONE_WRAPPER
    assert _verdict({"fsi": None}) is Verdict.NOTHING
    assert _verdict({"fsi": float("nan")}) is Verdict.NOTHING


def test_an_effect_is_told_with_its_interval() -> None:
    said = answer(_view(("phi", CLEAR)))
    assert said.span == (
        "Changing only the wrapper moves the accuracy of phi by 31.0 points from best to worst, on "
        "average over tasks (95% interval 26.0 to 36.0); over all tasks it is highest under plain "
        "(70.0%) and lowest under json (45.0%)."
    )
    one_task = answer(_view(("phi", CLEAR), tasks=("demo_choice",)))
    assert "average" not in one_task.span
    tie = answer(_view(("phi", {**CLEAR, "worst_wrapper": "plain"})))
    assert "highest" not in tie.span


def test_no_effect_beyond_noise_names_what_cannot_be_ruled_out() -> None:
    said = answer(_view(("phi", NOISY)))
    assert said.span == (
        "phi shows no effect beyond noise over 2 wrappers, though a span of up to 14.0 points "
        "cannot be ruled out."
    )
    assert said.loss == "No loss beyond noise was found, so there is none to explain."


def test_safe_needs_a_small_upper_limit() -> None:
    assert answer(_view(("phi", CALM))).span == (
        "phi is safe under all 2 wrappers tried: no effect beyond noise, and at most 4.0 points "
        "with 95% confidence."
    )


def test_undecided_few_and_nothing() -> None:
    assert "undecided" in answer(_view(("phi", TORN))).span
    assert "established" in answer(_view(("phi", TORN))).loss
    few = answer(_view(("phi", CLEAR), n=12))
    assert few.span.startswith("phi answered too few examples (12 a task at most)")
    assert "established" in few.loss
    assert "no example with replies" in answer(_view(("phi", {"fsi": None}))).span
    assert "one wrapper only" in answer(_view(("phi", CALM), wrappers=("plain",))).span
    bare = answer(_view(("phi-4", {"fsi": 0.3}), ("qwen 2", {"fsi": 0.2}))).span
    assert bare.startswith("Measured spans (phi-4: 30.0 points and qwen 2: 20.0 points) come")


def test_an_empty_run_says_so() -> None:
    view = _view(("phi", CLEAR))
    view.models.clear()
    assert answer(view).span == "Nothing has been asked yet."
    assert league(view) == []
    assert advice(view) == []


def test_many_models_are_counted() -> None:
    models = [(f"m{i}", {**CLEAR, "fsi": 0.3 - i / 100}) for i in range(5)]
    said = answer(_view(*models, ("calm", CALM))).span
    assert "m0 by 30.0" in said
    assert "m1 by 29.0" in said
    assert "(45.0%). It moves the accuracy of m1 by 29.0 points (26.0 to 36.0), m2 by" in said
    assert "2 more models by less. calm is safe" in said
    assert "m3" not in said
    assert said.endswith("with 95% confidence.")


@pytest.mark.parametrize(
    ("share", "found", "words"),
    [
        (0.84, Cause.COMPLIANCE, "mostly compliance: an estimated 84%"),
        (1.2, Cause.COMPLIANCE, "an estimated 100% of it"),
        (0.5, Cause.BOTH, "two parts: an estimated 50%"),
        (0.1, Cause.ABILITY, "mostly not compliance: an estimated 10%"),
        (-0.2, Cause.ABILITY, "an estimated 0%"),
    ],
)
def test_what_the_loss_is_made_of(share: float, found: Cause, words: str) -> None:
    assert cause(share) is found
    said = answer(_view(("phi", {**CLEAR, "compliance_part": share * CLEAR["fsi"]})))
    assert words in said.loss
    assert "estimated" in said.loss, "a share has no interval"


def test_without_a_decomposition_nothing_is_attributed() -> None:
    assert cause(None) is Cause.UNKNOWN
    assert answer(_view(("phi", CLEAR))).loss == "What the loss is made of was not estimated."


def _ranked(low: int, high: int) -> Figures:
    return {**CLEAR, "rank_low": low, "rank_high": high}


def test_ranking_of_one_model() -> None:
    assert answer(_view(("phi", _ranked(1, 1)))).ranking == (
        "With one model there is no ranking to trust or to doubt."
    )


def test_a_reversal_beyond_noise_is_named() -> None:
    row = {"wrapper_for": "plain", "wrapper_against": "json", "certain": True}
    turned = [
        {"model_a": "a", "model_b": "b", **row, "reversed_gap": 0.05},
        {"model_a": "a", "model_b": "c", **row, "reversed_gap": 0.2},
        {"model_a": "b", "model_b": "c", **row, "certain": False},
    ]
    models = [(name, _ranked(1, 3)) for name in "abc"]
    said = answer(_view(*models, reversals=turned)).ranking
    assert "beyond noise, a is ahead of c under plain and behind under json" in said
    assert said.endswith("(2 of 3 pairs of models turn so).")
    doubtful = [{**row, "certain": False} for row in turned]
    assert "not settled" in answer(_view(*models, reversals=doubtful)).ranking
    bare = [{"model_a": "a", "model_b": "b", "certain": True, "reversed_gap": 0.1}]
    said = answer(_view(*models, reversals=bare)).ranking
    assert "a is ahead of b under one wrapper and behind under another" in said
    unmarked = [{"model_a": "a", "model_b": "b", "reversed_gap": 0.1}]
    assert "not settled" in answer(_view(*models, reversals=unmarked)).ranking


def test_ranks_that_move_within_noise_settle_nothing() -> None:
    models = [("a", _ranked(1, 2)), ("b", _ranked(1, 2))]
    assert "no change is beyond noise" in answer(_view(*models, reversals=[])).ranking
    assert "was not tested" in answer(_view(*models)).ranking


def test_ranks_that_stay_are_told_of_this_sample_only() -> None:
    said = answer(_view(("a", _ranked(1, 1)), ("b", _ranked(2, 2)), reversals=[])).ranking
    assert said.startswith("In this sample the 2 models rank the same under every wrapper")
    assert "not estimated" in answer(_view(("a", CLEAR), ("b", CLEAR))).ranking


def test_names_cannot_turn_a_sentence_around() -> None:
    said = answer(_view(("evil\u202e\nname", CLEAR))).span
    assert "\u202e" not in said
    assert "\n" not in said


def test_more_examples_by_the_width_of_the_interval() -> None:
    view = _view(("phi", NOISY))
    need = more_examples(view.models[0], view)
    # Half-width 0.07 at n = 200; 0.05 needs 200 * (0.07 / 0.05) ** 2 = 392, to two digits 400.
    assert need is not None
    assert (need.now, need.needed) == (200, 400)
    clear = _view(("phi", CLEAR))
    assert more_examples(clear.models[0], clear) is None


def test_advice() -> None:
    rows = [
        {"model": "phi", "wrapper_a": "plain", "wrapper_b": "json", "p_holm": 0.3, "mode": "free"}
    ]
    part = {**CLEAR, "compliance_part": 0.2}
    cells = [
        {"model": "phi", "mode": "free", "wrapper": name, "parseability": p, "accuracy": p}
        for name, p in (("plain", 0.9), ("json", 0.3))
    ]
    (found,) = advice(_view(("phi", part), wrapper_pairs=rows, cells=cells))
    assert found.constrain.endswith("fewest replies parse under json (30.0%).")
    assert found.use == "plain (70.0%); json not shown to be worse."
    assert found.constrain.startswith("About 20.0 points between best and worst wrapper")
    assert found.more == "No."
    (noisy,) = advice(_view(("phi", {**NOISY, "compliance_part": 0.05})))
    assert noisy.use.startswith("None is shown to be better; plain")
    assert noisy.constrain == "No gain to expect beyond noise."
    assert noisy.more.startswith("About 400 a task instead of 200")
    (torn,) = advice(_view(("phi", TORN)))
    assert torn.constrain == "Not estimated."
    (calm,) = advice(_view(("phi", CALM)))
    assert calm.use == "Any of the wrappers tried."
    (few,) = advice(_view(("phi", CLEAR), n=5))
    assert few.use == "Too early to say."
    assert few.more.startswith("Yes, on demo_choice and demo_number")
    (one,) = advice(_view(("phi", CALM), wrappers=("plain",)))
    assert one.use == "Measure a second wrapper."


def test_measured_constrained_decoding_comes_before_an_estimate() -> None:
    view = _view(("phi", {**CLEAR, "compliance_part": 0.2}))
    view.models.append(type(view.models[0])(view.models[0], mode="constrained", fsi=0.03))
    free, constrained = advice(view)
    assert free.constrain == "Measured: FSI 31.0 free, 3.0 constrained."
    assert constrained.model == "phi (constrained)"
    assert constrained.constrain == "Already constrained."


def test_compliance_is_shown_only_where_there_is_a_loss() -> None:
    shares = {"compliance_share": 0.9, "rank_low": 1, "rank_high": 2, "accuracy": 0.5}
    lines = league(_view(("a", {**CLEAR, **shares}), ("b", {**NOISY, **shares, "rank_high": 1})))
    assert [(line.compliance, line.rank) for line in lines] == [("90%", "1–2"), ("–", "1")]
