"""Two runs on what they have in common: figures, words, and the gate for an upgrade."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import formatspan
from formatspan.cli import app
from formatspan.comparison import Comparison, compare
from formatspan.errors import RunError, StudyError, UserError
from formatspan.stats.change import Change, change
from formatspan.stats.panel import Panel, TaskCounts
from formatspan.store import Store
from formatspan.study import Study, WrapperEntry
from formatspan.wrappers import family

TASKS = ["demo_number", "demo_boolean"]


def _run(out: Path, script: str = "accuracy=0.8", **keys: Any) -> Path:  # noqa: ANN401
    model = {"model": f"scripted:{script}", "name": "m"}
    data = {"name": "c", "models": [model], "tasks": TASKS, "examples": 60, **keys}
    return formatspan.run(Study.build(data), out=out).folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("runs")
    return {
        "before": _run(root / "before"),
        "collapsed": _run(root / "collapsed", "accuracy=0.8,comply.json=0.3"),
        "weaker": _run(root / "weaker", "accuracy=0.4"),
        "fewer": _run(root / "fewer", wrappers=["json", "plain"], examples=40, max_tokens=32),
    }


def test_the_same_replies_do_not_differ(runs: dict[str, Path]) -> None:
    found = compare(runs["before"], runs["before"])
    row = found.models[0]
    assert (row["fsi_change"], row["accuracy_change"]) == (0, 0)
    assert row["fsi_change_low"] < 0 < row["fsi_change_high"], "never of zero width"
    assert row["conclusion"].startswith("No difference in sensitivity to the wrapper beyond noise")
    assert found.worse(0) == () and found.warnings == ()


def test_a_collapse_of_one_wrapper_is_more_sensitivity(runs: dict[str, Path]) -> None:
    found = compare(runs["before"], runs["collapsed"])
    row = found.models[0]
    assert row["conclusion"].startswith("B is more sensitive to the wrapper: FSI 0.0 in A, ")
    assert "lower beyond noise under json." in row["conclusion"]
    assert 0 < row["fsi_change_low"] < row["fsi_change"] < row["fsi_change_high"]
    assert [w["wrapper"] for w in row["wrappers"] if w["change_high"] < 0] == ["json"]
    lines = found.worse(5)
    assert len(lines) == 2 and "accuracy under json fell" in lines[0] and "FSI rose" in lines[1]
    assert found.worse(100 * row["fsi_change_low"] + 30) == ()
    back = compare(runs["collapsed"], runs["before"])
    assert back.models[0]["conclusion"].startswith("B is less sensitive to the wrapper")
    assert back.worse(0) == (), "an improvement fails no gate"


def test_a_weaker_model_is_less_accurate_not_more_sensitive(runs: dict[str, Path]) -> None:
    row = compare(runs["before"], runs["weaker"]).models[0]
    assert row["conclusion"].startswith("No difference in sensitivity")
    assert "B is less accurate on average" in row["conclusion"]
    assert row["accuracy_change_low"] <= -0.4 + 0.13 and row["accuracy_change_high"] < -0.2


def test_figures_are_those_of_the_common_part(runs: dict[str, Path], tmp_path: Path) -> None:
    found = compare(runs["before"], runs["fewer"])
    assert found.wrappers == ("plain", "json")
    assert found.models[0]["n"] == 80
    said = " ".join(found.warnings)
    assert "max_tokens differs: 24 and 32" in said
    assert "only" in said and "structured_delim" in said
    assert "examples differ: 40 of" in said
    alone = formatspan.analyze(_run(tmp_path / "r", wrappers=["plain", "json"], examples=40))
    assert found.models[0]["fsi_a"] == pytest.approx(alone.models["fsi"][0])
    assert found.models[0]["accuracy_a"] == pytest.approx(alone.models["accuracy"][0])


def test_another_question_under_the_same_id_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    runs = []
    for out, shift in (("a", 0), ("b", 1)):
        rows = [{"question": f"{i} + {shift if i < 5 else 0}?", "answer": i} for i in range(30)]
        file.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
        runs.append(_run(tmp_path / out, tasks=[str(file)], wrappers=["plain", "json"]))
    found = compare(*runs)
    assert found.models[0]["n"] == 25
    assert "the same id stands for another question: 5 examples" in " ".join(found.warnings)


def test_wrappers_of_one_name_and_other_templates_are_left_out(tmp_path: Path) -> None:
    def wrapper(end: str) -> dict[str, Any]:
        entry = WrapperEntry.of(family("plain")).model_dump()
        content = entry["messages"][0]["content"]
        return {**entry, "name": "mine", "messages": [{"role": "user", "content": content + end}]}

    a = _run(tmp_path / "a", wrappers=["plain", "json", wrapper("")])
    b = _run(tmp_path / "b", wrappers=["plain", "json", wrapper(" Now!")])
    found = compare(a, b)
    assert found.wrappers == ("plain", "json")
    assert found.warnings == ("left out, their templates differ: wrapper mine",)


def test_models_are_matched_by_name_or_as_told(runs: dict[str, Path], tmp_path: Path) -> None:
    other = formatspan.run(
        Study.build(
            {"models": ["scripted:accuracy=0.8"], "tasks": TASKS, "examples": 60, "name": "o"}
        ),
        out=tmp_path / "o",
    ).folder
    name = "accuracy=0.8"
    with pytest.raises(
        RunError, match=r"no model of the same name.* name a pair, m=\"accuracy=0\.8\""
    ):
        compare(runs["before"], other)
    found = compare(runs["before"], other, pairs={"m": name})
    assert (found.models[0]["model_a"], found.models[0]["model_b"]) == ("m", name)
    with pytest.raises(RunError, match="no model 'x': expected m"):
        compare(runs["before"], other, pairs={"x": name})
    command = ["compare", str(other), str(runs["before"]), "--json", "--pair"]
    quoted = CliRunner().invoke(app, [*command, f'"{name}"=m'])
    assert json.loads(quoted.stdout)["models"][0]["model_a"] == name
    unclear = CliRunner().invoke(app, [*command, f"{name}=m"]).exception
    assert "a name with '=' in it stands in double quotes" in str(unclear)


def test_a_model_that_the_newer_run_lacks_fails_the_gate(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    models = [{"model": "scripted:accuracy=0.8", "name": name} for name in ("m", "gone")]
    both = _run(tmp_path / "both", models=models)
    newer = str(runs["before"])
    found = compare(both, newer)
    entry = {"kind": "model", "name": "gone", "text": f"gone: missing in {newer}"}
    assert found.to_dict()["missing"] == [entry]
    line = f"gone: missing in {newer}: cannot be compared (--dropped gone if that is meant)"
    assert found.worse(99) == (line,)
    assert compare(newer, both).worse(99) == (), "a model more is nothing worse"
    assert compare(both, newer, dropped=["gone"]).worse(99) == ()
    assert compare(both, newer, pairs={"m": "m"}).worse(99) == (), "only the pairs named count"
    with pytest.raises(RunError, match="no model, task, wrapper or mode 'x': expected m, gone, "):
        compare(both, newer, dropped=["x"])
    with pytest.raises(RunError, match="has model 'm', so it was not dropped"):
        compare(both, newer, dropped=["m"])
    gate = ["compare", str(both), newer, "--fail-if-worse", "5"]
    failed = CliRunner().invoke(app, gate)
    assert failed.exit_code == 1 and "worse: gone: missing in" in failed.stderr
    assert CliRunner().invoke(app, [*gate, "--dropped", "gone"]).exit_code == 0


def test_whatever_the_newer_run_lacks_fails_the_gate(runs: dict[str, Path], tmp_path: Path) -> None:
    fewer = str(_run(tmp_path / "one", tasks=TASKS[:1], wrappers=["json", "plain"], examples=40))
    texts = [gone.text for gone in compare(runs["before"], fewer).missing]
    lacking = ["task demo_boolean"]
    lacking += [f"wrapper {name}" for name in ("structured", "structured_delim", "deliberate")]
    assert texts == [
        *(f"{what}: missing in {fewer}" for what in lacking),
        f"m: {fewer} lacks replies to 20 of 60 examples",
    ]
    names = [what.split()[1] for what in lacking]
    assert len(compare(runs["before"], fewer, dropped=names).worse(99)) == 1
    assert compare(runs["before"], fewer, dropped=[*names, "examples"]).worse(99) == ()
    assert compare(fewer, runs["before"]).missing == (), "more of anything is nothing worse"
    with pytest.raises(RunError, match="has wrapper 'json', so it was not dropped"):
        compare(runs["before"], fewer, dropped=["json"])


def test_replies_that_failed_are_missing(runs: dict[str, Path], tmp_path: Path) -> None:
    newer = shutil.copytree(runs["before"], tmp_path / "r")
    with Store.create(newer / "run.sqlite") as store, store.transaction():
        store.connection.execute(
            "DELETE FROM generations WHERE request IN (SELECT request FROM points WHERE "
            "wrapper = 'json' AND task = 'demo_boolean' ORDER BY id LIMIT 25)"
        )
    (gone,) = compare(runs["before"], newer).missing
    assert gone.text == f"m: {newer} lacks replies to 25 of 120 examples"
    assert (gone.kind, gone.name) == ("examples", "examples")


def test_nothing_in_common_is_an_error(runs: dict[str, Path], tmp_path: Path) -> None:
    unlike = [str(runs["before"]), str(_run(tmp_path / "u", tasks=["demo_choice"]))]
    refused = CliRunner().invoke(app, ["compare", *unlike, "--fail-if-worse", "5"])
    assert isinstance(refused.exception, UserError), "which ends with exit code 2"
    with pytest.raises(RunError, match="no task in common"):
        compare(*unlike)
    with pytest.raises(RunError, match="no wrapper in common"):
        compare(runs["fewer"], _run(tmp_path / "w", wrappers=["deliberate"]))
    with pytest.raises(StudyError, match="level 'no'"):
        compare(runs["before"], runs["before"], level="no")  # type: ignore[arg-type]
    with pytest.raises(RunError, match="not a run folder"):
        compare(runs["before"], tmp_path / "absent")


def test_one_common_wrapper_says_why_and_fails_the_gate(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    found = compare(runs["before"], _run(tmp_path / "one", wrappers=["json"]))
    reason = "fewer than 2 wrappers in common: there is no range"
    assert found.models[0]["conclusion"] == f"Cannot be compared: {reason}."
    assert len(found.missing) == 4, "the other wrappers"
    assert found.worse(50)[4:] == (f"m: cannot be compared: {reason}",)


def test_tables_are_compared_too(tmp_path: Path) -> None:
    rows = [
        {
            "model": "x",
            "task": "t",
            "example": e,
            "wrapper": w,
            "parsed": True,
            "correct": e % 4 > 0,
        }
        for e in range(40)
        for w in ("p", "q")
    ]
    worse = [{**r, "correct": r["correct"] and r["wrapper"] == "p"} for r in rows]
    found = compare(rows, worse)
    assert found.level == "as imported"
    assert found.models[0]["fsi_change"] == pytest.approx(0.75)


def test_the_command_fails_when_worse(runs: dict[str, Path]) -> None:
    def invoke(*more: str) -> Any:  # noqa: ANN401 - typer names no type of its own
        pair = [str(runs["before"]), str(runs["collapsed"])]
        return CliRunner().invoke(app, ["compare", *pair, *more])

    assert invoke().exit_code == 0
    failed = invoke("--fail-if-worse", "2")
    assert failed.exit_code == 1 and "worse: m: accuracy under json fell from" in failed.stderr
    passed = invoke("--fail-if-worse", "90", "--json")
    assert passed.exit_code == 0
    assert json.loads(passed.stdout)["models"][0]["model_a"] == "m"
    assert isinstance(invoke("--pair", "m").exception, StudyError)


def test_json_is_complete(runs: dict[str, Path]) -> None:
    found = compare(runs["before"], runs["collapsed"])
    assert isinstance(found, Comparison)
    assert json.loads(found.to_json()) == json.loads(json.dumps(found.to_dict()))


def _panel(correct: np.ndarray[Any, Any], model: str) -> Panel:
    counts = correct[None].astype(np.int64)
    ones = np.ones_like(counts)
    task = TaskCounts("t", counts, ones, ones, np.arange(correct.shape[0]))
    return Panel((model,), ("p", "q", "r"), (task,))


def test_limits_hold_where_the_truth_is_known() -> None:
    """100 examples, 3 wrappers, accuracy 0.7 before and 0.6 after, luck partly of the example."""
    rng = np.random.default_rng(0)
    covered = np.zeros(3)
    times = 300
    for _ in range(times):
        luck = rng.random((100, 1, 1))
        own = rng.random((2, 100, 3)).transpose(1, 0, 2)
        draw = np.where(rng.random((100, 2, 3)) < 0.5, luck, own)
        before, after = _panel(draw[:, 0] < 0.7, "m"), _panel(draw[:, 1] < 0.6, "m")
        found = change(before, after, rng, resamples=400)
        assert isinstance(found, Change)
        covered += (
            found.accuracy.low <= -0.1 <= found.accuracy.high,
            all(w.low <= -0.1 <= w.high for w in found.wrappers),
            found.fsi.change.low <= 0 <= found.fsi.change.high,
        )
    assert (covered / times >= 0.93).all(), covered / times
