"""The falsifier on scripted models whose effect is known: what it must call what."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

import formatspan
from formatspan.backends.scripted import CAPABILITIES
from formatspan.errors import RunError, StudyError
from formatspan.falsifier.command import falsify
from formatspan.falsifier.outlook import outlook
from formatspan.falsifier.result import ARMS, Falsification
from formatspan.runner import Progress
from formatspan.spending.ledger import spent_so_far
from formatspan.store import Store
from formatspan.study import Study
from formatspan.table import study_of
from old_stores import age

COMPLIANCE: dict[str, Any] = {"accuracy": 0.8, "comply": {"json": 0.2}, "break": ["silence"]}
"""The right answer is known as often under all wrappers, but json often breaks the form."""
ABILITY: dict[str, Any] = {"accuracy": {"default": 0.9, "json": 0.2}}
"""Every reply is in form; under json the answer is seldom known."""
SMALL: dict[str, Any] = {
    "accuracy": {"default": 0.8, "json": 0.55},
    "comply": {"json": 0.55},
    "break": ["silence"],
}
"""A span of which about half goes with the form: too close to tell with few examples."""


@pytest.fixture(autouse=True)
def fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formatspan.falsifier.compare.RESAMPLES", 1_000)


def study(script: dict[str, Any], **keys: Any) -> Study:  # noqa: ANN401 - study keys vary
    data: dict[str, Any] = {
        "name": "planted",
        "models": [{"model": "scripted:", "name": "script", "extra_body": script}],
        "tasks": ["demo_choice", "demo_boolean", "demo_number"],
        "examples": 60,
    }
    return Study.build({**data, **keys})


def finding(found: Falsification, arm: str) -> str:
    rows = [r for r in found.arms.to_dicts() if r["arm"] == arm]
    assert len(rows) == 1
    return str(rows[0]["finding"])


def test_a_planted_compliance_effect_collapses_under_constrained_decoding(tmp_path: Path) -> None:
    formatspan.run(study(COMPLIANCE), out=tmp_path / "r")
    found = falsify(tmp_path / "r", ask=True)
    assert finding(found, "constrained") == "collapsed"
    assert finding(found, "likelihood") == "collapsed"
    # Silence cannot be read at any level, so scoring alone does not make the effect go away.
    assert finding(found, "lenient") == "not collapsed"
    row = next(r for r in found.arms.to_dicts() if r["arm"] == "constrained")
    # Planted: 0.8 x (1 - 0.2) = 0.64, and nothing under constraint.
    assert row["reference"] == pytest.approx(0.64, abs=0.08)
    assert row["fsi"] == 0.0
    assert row["difference"] == pytest.approx(row["reference"])
    assert row["note"] is None, "every constrained reply is the contract"


def test_a_planted_ability_effect_does_not_collapse(tmp_path: Path) -> None:
    formatspan.run(study(ABILITY), out=tmp_path / "r")
    found = falsify(tmp_path / "r", ask=True)
    for arm in ("strict", "lenient", "constrained", "likelihood", "likelihood by bytes"):
        assert finding(found, arm) == "not collapsed"
    reference = found.arms.filter(arm="normalized").to_dicts()[0]
    assert reference["compliance_part"] == 0.0
    assert reference["forced_fsi"] == 0.0, "nothing fails to parse, so scoring forces nothing"


def test_a_small_effect_with_few_examples_is_undecided(tmp_path: Path) -> None:
    formatspan.run(study(SMALL, examples=40), out=tmp_path / "r")
    found = falsify(tmp_path / "r", ask=True, arms=["constrained"])
    row = next(r for r in found.arms.to_dicts() if r["arm"] == "constrained")
    assert row["finding"] == "undecided"
    assert row["needed"] > 40
    assert row["towards"] in ("collapsed", "not collapsed")


def test_no_effect_is_not_explained(tmp_path: Path) -> None:
    formatspan.run(study({"accuracy": 0.7}, examples=40), out=tmp_path / "r")
    found = falsify(tmp_path / "r")
    assert {r["finding"] for r in found.arms.to_dicts()} == {None, "no effect to explain"}


def test_without_asking_arms_are_left_out_with_a_word(tmp_path: Path) -> None:
    formatspan.run(study(COMPLIANCE, examples=20), out=tmp_path / "r")
    before = (tmp_path / "r" / "study.yaml").read_bytes()
    found = falsify(tmp_path / "r")
    assert set(found.absent) == {"constrained", "likelihood", "likelihood by bytes"}
    assert found.arms["arm"].to_list() == [a for a in ARMS if a not in found.absent]
    assert found.policies.is_empty()
    assert (tmp_path / "r" / "study.yaml").read_bytes() == before
    seen = outlook(tmp_path / "r", ARMS, again=True)
    # 20 examples x 5 wrappers x (3 tasks constrained; 4 and 2 options scored).
    assert {p.arm: p.requests for p in seen.prices} | {"ask again": 0} == {
        "constrained": 300,
        "likelihood": 600,
        "ask again": 0,
    }
    assert seen.absent == {}


def test_asking_again_asks_nothing_twice(tmp_path: Path) -> None:
    formatspan.run(study(COMPLIANCE, examples=20), out=tmp_path / "r")
    first = falsify(tmp_path / "r", ask=True, again=True)
    assert outlook(tmp_path / "r", ARMS, again=True).prices == ()
    assert falsify(tmp_path / "r", ask=True, again=True).to_json() == first.to_json()
    assert falsify(tmp_path / "r").to_json() == first.to_json()


class Counting:
    """A listener that keeps the latest total and count of each line of progress."""

    def __init__(self) -> None:
        self.seen: dict[str, tuple[int, int]] = {}
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def progress(self, model: str, progress: Progress) -> None:
        self.seen[model] = (progress.total, progress.done)


def test_progress_counts_what_was_announced(tmp_path: Path) -> None:
    formatspan.run(study(COMPLIANCE, examples=20), out=tmp_path / "r")
    prices = outlook(tmp_path / "r", ARMS, again=True).prices
    heard = Counting()
    falsify(tmp_path / "r", ask=True, again=True, listener=heard)
    assert len(prices) == 3
    assert heard.seen == {f"{p.model}, {p.arm}": (p.requests, p.requests) for p in prices}


@pytest.mark.parametrize("grouped", [False, True])
def test_arms_are_forecast_by_the_pace_of_the_run(
    grouped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from formatspan.backends import scripted

    monkeypatch.setattr(scripted, "CAPABILITIES", replace(CAPABILITIES, exclusive=grouped))
    formatspan.run(study(COMPLIANCE, examples=20), out=tmp_path / "r")
    began = datetime(2026, 11, 30, tzinfo=UTC)
    with Store.create(tmp_path / "r" / "run.sqlite") as store, store.transaction():
        # Four at a time, a second each: 300 replies in 75 s, whose latencies sum up to 300 s.
        for row, (name,) in enumerate(
            store.connection.execute("SELECT request FROM generations").fetchall()
        ):
            at = (began + timedelta(seconds=row // 4)).isoformat()
            store.connection.execute(
                "UPDATE generations SET started_at = ?, latency_s = 1 WHERE request = ?",
                (at, name),
            )
    seconds = {p.arm: p.seconds for p in outlook(tmp_path / "r", ARMS).prices}
    assert seconds["constrained"] == pytest.approx(300 / 4)
    # 100 prompts with 4 options and 100 with 2: an engine scores those of a prompt together.
    assert seconds["likelihood"] == pytest.approx((200 if grouped else 600) / 4)


def test_a_budget_holds_for_the_arms_too(tmp_path: Path) -> None:
    priced = {"model": "scripted:", "name": "script", "extra_body": COMPLIANCE}
    priced["price"] = {"prompt": 1.0, "completion": 10.0}
    done = formatspan.run(study(COMPLIANCE, examples=20, models=[priced]), out=tmp_path / "r")
    heard, limit = Counting(), done.spent * 1.5
    found = falsify(tmp_path / "r", arms=["likelihood"], ask=True, listener=heard, max_cost=limit)
    assert any("left off" in line and "--max-cost" in line for line in heard.said)
    assert "--max-cost" in found.unfinished["likelihood"]
    assert 0 < heard.seen["script, likelihood"][1] < 600
    with Store.read(tmp_path / "r" / "run.sqlite") as store:
        spent = spent_so_far(store, study_of(store), {})["script"]
    assert done.spent < spent <= limit
    again = formatspan.run(
        Study.from_file(tmp_path / "r" / "study.yaml"), out=tmp_path / "r", max_cost=limit
    )
    assert again.spent == pytest.approx(spent), "the run knows what its arms cost"
    found = falsify(tmp_path / "r", arms=["likelihood"], ask=True, max_cost=100)
    assert found.absent == {}


def test_the_rest_of_an_arm_keeps_its_name(tmp_path: Path) -> None:
    priced = {"model": "scripted:", "name": "script", "extra_body": COMPLIANCE}
    priced["price"] = {"prompt": 1.0, "completion": 10.0}
    done = formatspan.run(study(COMPLIANCE, examples=10, models=[priced]), out=tmp_path / "r")
    falsify(tmp_path / "r", arms=["constrained"], ask=True, max_cost=done.spent * 1.5)
    assert [p.arm for p in outlook(tmp_path / "r", ["constrained"]).prices] == ["constrained"]
    assert outlook(tmp_path / "r", ["lenient"]).prices == ()
    with Store.create(tmp_path / "r" / "run.sqlite") as store, store.transaction():
        store.connection.execute(
            "DELETE FROM generations WHERE request IN "
            "(SELECT request FROM points WHERE mode = 'free' AND wrapper = 'json')"
        )
    heard = Counting()
    prices = outlook(tmp_path / "r", ["lenient"]).prices
    found = falsify(tmp_path / "r", arms=["lenient"], ask=True, listener=heard)
    # One session asks all that a model lacks: so much was announced, and under which names.
    assert [p.arm for p in prices] == ["the run itself", "constrained"]
    announced = sum(p.requests for p in prices)
    assert heard.seen == {"script, the run itself and constrained": (announced, announced)}
    assert found.unfinished == {}


def test_an_interval_is_the_same_wherever_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("formatspan.falsifier.compare.RESAMPLES", 10_000)
    few_points = {"tasks": ["demo_choice", "demo_number"], "examples": 10, "max_tokens": 8}
    formatspan.run(study(COMPLIANCE, **few_points), out=tmp_path / "r")
    every = {r["arm"]: r for r in falsify(tmp_path / "r", ask=True).arms.to_dicts()}
    few = {r["arm"]: r for r in falsify(tmp_path / "r", arms=["lenient"]).arms.to_dicts()}
    assert few == {arm: every[arm] for arm in ("normalized", "lenient")}
    limits = ("fsi", "fsi_low", "fsi_high", "psi_low", "psi_high")

    def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
        return all(a[key] == b[key] for key in limits)

    found = formatspan.analyze(tmp_path / "r", levels=True, caps=True)
    for row in found.models.to_dicts():
        assert same(row, every["normalized" if row["mode"] == "free" else "constrained"])
    assert found.levels is not None
    for row in found.levels.filter(mode="free", subset="all").to_dicts():
        assert same(row, every[row["level"]])
    assert found.caps is not None
    at_cap = found.caps.filter(mode="free", cap=8).to_dicts()
    (whole,) = (row for row in at_cap if row["task"] is None)
    assert same(whole, every["normalized"])
    assert "spans of other examples (10) than at normalized (20)" in every["likelihood"]["note"]


def test_a_budget_wants_a_price(tmp_path: Path, unused_tcp_port: int) -> None:
    formatspan.run(study(COMPLIANCE, examples=20), out=tmp_path / "r")
    with pytest.raises(StudyError, match="expected US dollars above 0"):
        falsify(tmp_path / "r", ask=True, max_cost=0)
    with pytest.raises(StudyError, match=r"none\.yaml"):
        falsify(tmp_path / "r", ask=True, price_file=tmp_path / "none.yaml")


def test_a_price_file_says_what_arms_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As if the scripted model were behind an endpoint: what runs here is free.
    monkeypatch.setattr("formatspan.spending.pricing.FREE_SCHEMES", frozenset())
    formatspan.run(study(COMPLIANCE, examples=20), out=tmp_path / "r")
    assert {p.dollars for p in outlook(tmp_path / "r", ARMS).prices} == {None}
    prices = tmp_path / "prices.yaml"
    prices.write_text("prices: {'scripted:': {prompt: 1, completion: 10}}", encoding="utf-8")
    seen = outlook(tmp_path / "r", ARMS, price_file=prices).prices
    with Store.read(tmp_path / "r" / "run.sqlite") as store:
        tokens = store.connection.execute(
            "SELECT sum(prompt_tokens), sum(completion_tokens) FROM generations"
        ).fetchone()
    expected = (tokens[0] + 10 * tokens[1]) / 1e6
    assert {p.arm: p.dollars for p in seen}["constrained"] == pytest.approx(expected)


def test_the_run_itself_stays_what_it_was(tmp_path: Path) -> None:
    formatspan.run(study(COMPLIANCE, examples=20), out=tmp_path / "r")
    before = formatspan.analyze(tmp_path / "r").pairs
    falsify(tmp_path / "r", ask=True, again=True)
    after = formatspan.analyze(tmp_path / "r").pairs
    assert after.filter(mode="free").equals(before)
    done = formatspan.run(Study.from_file(tmp_path / "r" / "study.yaml"), out=tmp_path / "r")
    assert (done.asked, done.complete) == (0, True)


def test_repair_policies_are_worth_what_was_planted(tmp_path: Path) -> None:
    script = {**COMPLIANCE, "repair": {"json": 0.5}}
    formatspan.run(study(script), out=tmp_path / "r")
    found = falsify(tmp_path / "r", ask=True, again=True)
    rows = {(r["policy"], r["wrapper"]): r for r in found.policies.to_dicts()}
    none, again = rows["none", "json"], rows["ask again", "json"]
    # 0.2 parse at once; of the other 0.8 half parse when asked again.
    assert none["parseability"] == pytest.approx(0.2, abs=0.05)
    assert again["parseability"] == pytest.approx(0.6, abs=0.07)
    assert again["requests_per_reply"] == pytest.approx(2 - none["parseability"])
    assert again["tokens_ratio"] > again["requests_per_reply"], "the reply is sent once more"
    assert rows["constrained", "json"]["parseability"] == 1.0
    assert rows["constrained", None]["accuracy_gain"] > rows["ask again", None]["accuracy_gain"]
    assert rows["ask again", "plain"]["requests_per_reply"] == 1.0
    # Silence is no JSON: there is nothing to mend.
    assert rows["json-repair", "json"]["parse_gain"] == 0.0


def test_json_repair_gains_where_json_is_broken(tmp_path: Path) -> None:
    script = {"accuracy": 1.0, "comply": {"json": 0.5}, "break": ["wrong_shape", "bare"]}
    formatspan.run(study(script, examples=40, tasks=["demo_choice"]), out=tmp_path / "r")
    found = falsify(tmp_path / "r", ask=True, again=True, arms=["lenient"])
    rows = {(r["policy"], r["wrapper"]): r for r in found.policies.to_dicts()}
    assert rows["ask again", "json"]["parseability"] == 1.0
    assert ("constrained", "json") not in rows


def test_json_is_plain_data(tmp_path: Path) -> None:
    formatspan.run(study(COMPLIANCE, examples=20), out=tmp_path / "r")
    found = json.loads(falsify(tmp_path / "r", ask=True).to_json())
    assert found["schema_version"] == 1
    assert {row["arm"] for row in found["arms"]} == set(ARMS)
    assert {row["arm"] for row in found["relations"]} == set(ARMS)


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="arm 'kind': expected normalized, paper"):
        falsify(tmp_path, arms=["kind"])
    with pytest.raises(RunError, match="not a run folder"):
        falsify(tmp_path)
    formatspan.run(study(ABILITY, examples=5, decoding=["constrained"]), out=tmp_path / "r")
    with pytest.raises(RunError, match=r"no free replies.*decoding: \[free, constrained\]"):
        falsify(tmp_path / "r")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_store_of_an_older_schema_is_brought_up_to_date(tmp_path: Path, version: int) -> None:
    asked = study(COMPLIANCE, examples=5, seeds=2)
    formatspan.run(asked, out=tmp_path / "r")
    if version > 1:
        falsify(tmp_path / "r", ask=True, again=True, arms=["normalized", "likelihood"])
    right = falsify(tmp_path / "r"), formatspan.analyze(tmp_path / "r").to_json()
    age(tmp_path / "r" / "run.sqlite", version)
    found = falsify(tmp_path / "r"), formatspan.analyze(tmp_path / "r").to_json()
    assert_frame_equal(found[0].arms, right[0].arms)
    assert_frame_equal(found[0].policies, right[0].policies)
    assert found[1] == right[1]
    assert formatspan.run(asked, out=tmp_path / "r").asked == 0
    more = falsify(tmp_path / "r", ask=True, arms=["likelihood"])
    assert more.arms.filter(arm="likelihood")["tasks"].to_list() == [2]


class Heard:
    """Keeps what a run says."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.queues: set[str] = set()

    def say(self, text: str) -> None:
        self.lines.append(text)

    def progress(self, model: str, progress: object) -> None:
        """Which queue moved."""
        self.queues.add(model)


def test_wrappers_that_cannot_be_held_keep_their_free_replies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_json = replace(CAPABILITIES, constraints=frozenset({"json_schema"}))
    monkeypatch.setattr("formatspan.backends.scripted.CAPABILITIES", only_json)
    formatspan.run(study(COMPLIANCE, examples=40), out=tmp_path / "r")
    heard = Heard()
    found = falsify(tmp_path / "r", ask=True, arms=["constrained"], listener=heard)
    left = "plain, structured, structured_delim, deliberate"
    assert f"model script: cannot constrain under {left}; asked freely there" in heard.lines
    assert heard.queues == {"script, constrained"}
    row = found.arms.filter(arm="constrained").to_dicts()[0]
    assert row["finding"] == "collapsed"
    assert row["note"] == f"free replies stand in for {left}, which were not held"
    with Store.read(tmp_path / "r" / "run.sqlite") as store:
        asked = store.connection.execute(
            "SELECT DISTINCT wrapper FROM points WHERE mode = 'constrained'"
        ).fetchall()
    assert asked == [("json",)]


def test_constrained_replies_that_are_cut_off_are_counted(tmp_path: Path) -> None:
    formatspan.run(
        study(COMPLIANCE, examples=20, max_tokens=6, tasks=["demo_choice"]), out=tmp_path / "r"
    )
    found = falsify(tmp_path / "r", ask=True, arms=["constrained"])
    note = found.arms.filter(arm="constrained")["note"][0]
    # '{"answer": "C"}' takes nine pieces and an end token, "The options differ.\n…" more than six.
    match = re.search(r"(\d+) of 100 constrained replies are not the contract \((\d+) of", note)
    assert match is not None
    assert match[1] == match[2], "each is explained by the cap"
    assert int(match[1]) >= 20


def test_a_model_that_cannot_be_opened_does_not_hide_the_rest(tmp_path: Path) -> None:
    formatspan.run(study(COMPLIANCE, examples=10), out=tmp_path / "r")
    with Store.create(tmp_path / "r" / "run.sqlite") as store, store.transaction():
        kept = Study.model_validate_json(store.meta("study") or "")
        entry = kept.models[0].model_copy(update={"model": "local:/no/such.gguf", "extra_body": {}})
        store.put_meta("study", kept.model_copy(update={"models": (entry,)}).model_dump_json())
    found = falsify(tmp_path / "r", ask=True)
    assert "does not exist" in found.absent["constrained"]
    assert found.arms.filter(arm="lenient")["tasks"].to_list() == [3]
