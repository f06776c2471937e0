"""Figures from the field that other tools got wrong at the edges.

Each line of ``statistics.jsonl`` has a check here under its id. The cases lie beside the project,
or in the folder that FORMATSPAN_CASES names.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conftest import cases_folder
from formatspan.stats.indices import Cells, failure_bounds, indices
from formatspan.stats.intervals import Estimate, mean_intervals, spans
from formatspan.stats.pairwise import McNemar, Paired, wrapper_pairs
from formatspan.stats.panel import Missing
from formatspan.stats.resampling import resample
from formatspan.stats.simple import (
    MeanError,
    cluster_error,
    clusters,
    consistent_error,
    mean_error,
    pass_at,
    pooled,
    stratified_error,
    wilson,
)
from test_stats_panel import counts, panel

Case = dict[str, Any]
FILE = cases_folder() / "statistics.jsonl"


def _binary(k: int, n: int) -> list[int]:
    return [1] * k + [0] * (n - k)


def _se(scores: list[int]) -> float:
    found = mean_error(scores)
    assert isinstance(found, MeanError)
    assert isinstance(found.se, float)
    return found.se


def _indices_of(correct: list[list[int]], replies: list[list[int]]) -> Any:  # noqa: ANN401
    made = np.array(replies)
    found = indices(Cells(np.array(correct), made, made, np.ones_like(made)), 0.0)
    assert found is not None
    return found


def d002(case: Case) -> None:
    found = pooled([_binary(t["k"], t["n"]) for t in case["input"]["tasks"]])
    assert not isinstance(found, Missing)
    assert found._asdict() == pytest.approx(case["expected_strict"])


def d003(case: Case) -> None:
    tasks = case["input"]["tasks"]
    errors = [_se(_binary(t["k"], t["n"])) for t in tasks]
    found = stratified_error(errors, [t["n"] for t in tasks])
    assert found == pytest.approx(case["expected_strict"]["se"], abs=5e-8)


def d004(case: Case) -> None:
    repeats = np.array(case["input"]["question_repeats"])
    expected = case["expected_strict"]
    found = cluster_error(repeats.ravel(), np.repeat(np.arange(4), 5))
    assert isinstance(found, MeanError)
    assert (found.mean, found.se) == pytest.approx(
        (expected["mean"], expected["se_question_level"]), abs=5e-8
    )
    assert _se(list(repeats.mean(axis=1))) == pytest.approx(found.se)
    naive = _se(list(repeats.ravel()))
    assert naive == pytest.approx(expected["naive_se_not_to_use"], abs=5e-8)


def d006(case: Case) -> None:
    scores = case["input"]["scores"]
    found = clusters([f"id{i}" for i in range(50)] + [None] * 50)
    assert (found.missing, len(np.unique(found.codes))) == (50, 100), "and it is counted"
    robust = cluster_error(scores, found.codes)
    assert isinstance(robust, MeanError)
    assert robust.se == pytest.approx(_se(scores))


def d007(case: Case) -> None:
    expected = case["expected_strict"]
    found = mean_error(case["input"]["scores"])
    assert found == MeanError(expected["mean"], Missing("n < 2"), 1)
    # The range of one example has an interval as wide as it can be, never one of no width.
    world = panel(counts([[1, 0]]))
    estimate = mean_intervals(spans(world, resample(world, np.random.default_rng(0))))["model0"]
    assert isinstance(estimate, Estimate)
    assert (estimate.low, estimate.high) == (0.0, 1.0)


def d008(case: Case) -> None:
    given = case["input"]
    for n, expected in zip(given["n"], case["expected_strict"]["wilson95"], strict=True):
        assert wilson(given["k"], n) == pytest.approx(tuple(expected), abs=5e-8)
    assert wilson(25, 25) == pytest.approx((0.8668077, 1.0), abs=5e-8)


def d009(case: Case) -> None:
    given, expected = case["input"], case["expected_strict"]
    scores = _binary(given["k"], given["n"])
    assert not consistent_error(scores, given["stored_se"])
    assert _se(scores) == pytest.approx(expected["se"], abs=5e-8)
    assert wilson(given["k"], given["n"]) == pytest.approx(tuple(expected["wilson95"]), abs=5e-8)


def d010(case: Case) -> None:
    # Failures leave the denominator, and the bounds show what they could have been.
    n, errors, correct = (case["input"][k] for k in ("n", "errors", "correct"))
    right = np.array([_binary(correct, n), _binary(correct, n)]).T
    made = np.ones_like(right)
    made[n - errors :, 0] = 0
    cells = Cells(right, made, made, np.ones_like(made))
    found = indices(cells, 0.0)
    assert found is not None
    expected = case["expected_strict"]
    assert found.accuracy[0] == pytest.approx(expected["accuracy_answered"], abs=5e-8)
    assert right[:, 0].mean() == pytest.approx(expected["accuracy_all"])
    assert found.n / n == pytest.approx(expected["coverage"])
    assert failure_bounds(cells) == pytest.approx((0.0, errors / n))


def d011(case: Case) -> None:
    given = case["input"]
    columns = [list(given[w].values()) for w in ("wrapper_1", "wrapper_2")]
    right = [[int(v == 1) for v in row] for row in zip(*columns, strict=True)]
    made = [[int(v != "error") for v in row] for row in zip(*columns, strict=True)]
    found = _indices_of(right, made)
    assert found.accuracy.tolist() == case["expected_strict"]["paired_on_common"]
    assert (found.n, found.fsi) == (2, 0.0)
    assert found.bounds == pytest.approx((0.0, 0.5)), "coverage differs, and it shows"


def d012(case: Case) -> None:
    # There is no sentinel: a reply without a score is no reply, and negative counts are refused.
    scores = case["input"]["scores"]
    held = [s for s in scores if s != -1]
    found = mean_error(held)
    assert isinstance(found, MeanError)
    expected = case["expected_strict"]
    assert (found.mean, found.n) == (expected["mean"], expected["n"])
    assert len(scores) - found.n == expected["n_failed"]
    with pytest.raises(ValueError, match="0 <= correct"):
        counts([[1, -1]])


def d013(case: Case) -> None:
    rewards = case["input"]["rewards"]
    made = [[int(r is not None)] * 2 for r in rewards]
    found = _indices_of([[int(r == 1)] * 2 for r in rewards], made)
    expected = case["expected_strict"]
    assert (found.accuracy[0], found.n) == (expected["mean"], expected["n"])
    assert len(rewards) - found.n == expected["pending"]


def d017(case: Case) -> None:
    found = pooled(list(case["input"]["tasks"].values()))
    assert not isinstance(found, Missing)
    assert found.macro == pytest.approx(case["expected_strict"]["macro"])
    # Nor does a task without a right answer vanish from a model's mean FSI.
    world = panel(counts([[1, 0]] * 5, name="t1"), counts([[0, 0]] * 5, name="t2"))
    drawn = resample(world, np.random.default_rng(0), resamples=50)
    mean = mean_intervals(spans(world, drawn))["model0"]
    assert isinstance(mean, Estimate)
    assert mean.value == pytest.approx(0.5)


def d018(case: Case) -> None:
    # Aggregates are separate results, so nothing is averaged twice: a panel holds tasks only.
    rows = case["input"]["rows"]
    tasks = {name: value for name, value in rows.items() if name in ("t1", "t2", "t3")}
    found = pooled([[value] for value in tasks.values()])
    assert not isinstance(found, Missing)
    assert found.macro == pytest.approx(case["expected_strict"]["overall"])


def d020(case: Case) -> None:
    given = case["input"]
    right = (
        [[1, 1]] * given["both_right"]
        + [[1, 0]] * given["only_A"]
        + [[0, 1]] * given["only_B"]
        + [[0, 0]] * given["both_wrong"]
    )
    pairs = wrapper_pairs(panel(counts(right)))["model0"]
    assert isinstance(pairs, tuple)
    paired, test = pairs[0].paired, pairs[0].mcnemar
    assert isinstance(paired, Paired)
    assert isinstance(test, McNemar)
    expected = case["expected_strict"]
    assert pairs[0].difference == pytest.approx(expected["diff"])
    assert paired.se == pytest.approx(expected["se_paired"], abs=5e-8)
    assert test.p == pytest.approx(expected["mcnemar_exact_p"], abs=5e-8)


def d022(case: Case) -> None:
    repeats = np.array(case["input"]["repeats"])
    expected = case["expected_strict"]
    right, draws = repeats.sum(axis=1), np.full(4, 4)
    assert pass_at(2, right, draws) == pytest.approx(expected["pass@2"], abs=5e-8)
    both = np.stack([right, right], axis=1)
    found = indices(Cells(both, both * 0 + 4, both * 0 + 4, both * 0 + 4), 0.0)
    assert found is not None
    assert found.accuracy[0] == pytest.approx(expected["mean"])


def d023(case: Case) -> None:
    rng = np.random.default_rng(20)
    scores = {f"item{i:03}": row for i, row in enumerate(rng.integers(2, size=(200, 2)))}
    errors = set()
    for order in range(3):
        np.random.seed(order)  # noqa: NPY002 - the global state must not matter
        arrived = [list(scores)[i] for i in rng.permutation(200)]
        table = [scores[name] for name in sorted(arrived)]
        drawn = resample(panel(counts(table)), np.random.default_rng(1), resamples=500)
        errors.add(float(drawn.accuracy[0][0, :, 0].std()))
    assert len(errors) == 1


def d024(case: Case) -> None:
    tasks = case["input"]["tasks"]
    found = stratified_error([t["se"] for t in tasks], [t["n"] for t in tasks])
    assert found == Missing("1 of 2 tasks have no standard error")


CHECKS: dict[str, Callable[[Case], None]] = {
    name: check for name, check in globals().items() if name[0] == "d" and name[1:].isdigit()
}


def _cases() -> list[Any]:
    if not FILE.is_file():
        reason = f"no {FILE.name} in {FILE.parent}; set FORMATSPAN_CASES to a folder with it"
        return [pytest.param({}, id="absent", marks=pytest.mark.skip(reason=reason))]
    lines = FILE.read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines if line.strip()]
    return [pytest.param(case, id=case["id"]) for case in found]


@pytest.mark.parametrize("case", _cases())
def test_case(case: Case) -> None:
    assert case["id"] in CHECKS, f"no check of {case['id']}: {case['symptom']}"
    CHECKS[case["id"]](case)
