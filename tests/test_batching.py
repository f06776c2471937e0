"""The Batch API as a transport: nothing lost, nothing asked twice, half the price."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from formatspan.backends.batch_api import Answered, BatchApi, answered
from formatspan.batches import loop as batching
from formatspan.batches.loop import Batcher
from formatspan.batches.notes import Open, open_batches
from formatspan.errors import RunError, StudyError
from formatspan.session import run
from formatspan.store import Store
from formatspan.study import Study
from loopback import Json, Loopback

StudyOf = Callable[..., Study]
SECRET = "sk-very-secret-0123456789"
PRICE = {"prompt": 100.0, "completion": 1000.0}
COST = (20 * 100 + 4 * 1000) / 1e6
"""Of one reply of the loopback endpoint, asked by itself."""


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """An endpoint whose batches are over when they are looked at for the second time."""

    async def at_once(_: float) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(batching, "PACE", batching.Pace(sleep=at_once))
    monkeypatch.setenv("SOME_KEY", SECRET)
    with Loopback() as loopback:
        loopback.key = SECRET
        looks: dict[str, int] = {}

        def look(batch: Json) -> None:
            looks[batch["id"]] = looks.get(batch["id"], 0) + 1
            batch["status"] = "in_progress"
            if looks[batch["id"]] > 1:
                loopback.finish(batch)

        loopback.on_batch = look
        yield loopback


@pytest.fixture
def study_of(endpoint: Loopback, small_study: StudyOf) -> StudyOf:
    """A study of one model behind the endpoint."""

    def build(**keys: Any) -> Study:  # noqa: ANN401
        model = {"model": "openai:m", "name": "m", "base_url": endpoint.base, "price": PRICE}
        model |= {"api_key_env": "SOME_KEY"}
        return small_study(models=[model], **keys)

    return build


def _rows(out: Path, sql: str) -> list[tuple[Any, ...]]:
    with Store.read(out / "run.sqlite") as store:
        return store.connection.execute(sql).fetchall()


TEXTS = (
    "SELECT id, text, prompt_tokens FROM generations JOIN requests ON number = request ORDER BY 1"
)


def test_a_batch_brings_what_single_requests_bring(
    endpoint: Loopback, study_of: StudyOf, tmp_path: Path
) -> None:
    study = study_of(seeds=3, temperature=1.0)
    done = run(study, out=tmp_path / "b", batch=True)
    assert done.complete
    assert done.asked == done.points == 150
    assert len(endpoint.batches) == 1
    assert endpoint.asked("/chat/completions") == []
    run(study, out=tmp_path / "s", check=False)
    assert _rows(tmp_path / "b", TEXTS) == _rows(tmp_path / "s", TEXTS)
    costs = _rows(tmp_path / "b", "SELECT DISTINCT cost, cost_source FROM generations")
    assert costs == [(pytest.approx(COST / 2), "price")]
    assert done.spent == pytest.approx(150 * COST / 2)


def test_what_is_sent(endpoint: Loopback, study_of: StudyOf, tmp_path: Path) -> None:
    run(study_of(examples=2), out=tmp_path / "r", batch=True)
    (batch,) = endpoint.batches.values()
    assert batch["endpoint"] == "/v1/chat/completions"
    assert batch["completion_window"] == "24h"
    lines = [json.loads(x) for x in endpoint.files[batch["input_file_id"]].splitlines()]
    assert len({line["custom_id"] for line in lines}) == 10
    assert all(line["method"] == "POST" and line["url"] == batch["endpoint"] for line in lines)
    assert lines[0]["body"]["model"] == "m"
    assert lines[0]["body"]["max_tokens"] == 24


class _Killed(BaseException):
    """Stands for the end of the process."""


def _dies(*_: object) -> None:
    raise _Killed


def test_a_killed_client_finds_its_batch_again(
    endpoint: Loopback, study_of: StudyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(Batcher, "_wait", _dies)
        with pytest.raises(_Killed):
            run(study_of(), out=tmp_path / "r", batch=True)
    with Store.read(tmp_path / "r" / "run.sqlite") as store:
        (noted,) = open_batches(store)
    assert (noted.id, noted.requests) == ("batch-0", 50)
    done = run(study_of(), out=tmp_path / "r", batch=True)
    assert done.complete
    assert len(endpoint.batches) == 1, "nothing was asked twice"
    with Store.read(tmp_path / "r" / "run.sqlite") as store:
        assert open_batches(store) == []


def test_killed_before_the_batch_s_name_was_noted(
    endpoint: Loopback, study_of: StudyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = Batcher._note

    def dies_on_its_name(self: Batcher, batch: Open, *, over: bool = False) -> None:
        if batch.id is not None:
            raise _Killed
        note(self, batch, over=over)

    with monkeypatch.context() as killed:
        killed.setattr(Batcher, "_note", dies_on_its_name)
        with pytest.raises(_Killed):
            run(study_of(), out=tmp_path / "r", batch=True)
    assert len(endpoint.batches) == 1
    assert run(study_of(), out=tmp_path / "r", batch=True).complete
    assert len(endpoint.batches) == 1


def test_killed_before_the_batch_was_made(
    endpoint: Loopback, study_of: StudyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(BatchApi, "create", _dies)
        with pytest.raises(_Killed):
            run(study_of(), out=tmp_path / "r", batch=True)
    assert run(study_of(), out=tmp_path / "r", batch=True).complete
    assert len(endpoint.batches) == 1


def test_a_lost_answer_to_the_creation_makes_no_second_batch(
    endpoint: Loopback, study_of: StudyOf, tmp_path: Path
) -> None:
    endpoint.lost_creations = 1
    assert run(study_of(), out=tmp_path / "r", batch=True).complete
    assert len(endpoint.batches) == 1


def test_what_is_in_a_batch_is_not_asked_by_itself(
    endpoint: Loopback, study_of: StudyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(Batcher, "_wait", _dies)
        with pytest.raises(_Killed):
            run(study_of(examples=4), out=tmp_path / "r", batch=True)
    with pytest.raises(RunError, match="20 requests are in a batch under way: use --batch"):
        run(study_of(examples=4), out=tmp_path / "r")
    grown = run(study_of(examples=6), out=tmp_path / "r", batch=True)
    assert grown.complete
    sizes = [
        len(endpoint.files[b["input_file_id"]].splitlines()) for b in endpoint.batches.values()
    ]
    assert sizes == [20, 10]


def test_a_line_that_failed_is_a_failure(
    endpoint: Loopback, study_of: StudyOf, tmp_path: Path
) -> None:
    refused = {"status_code": 400, "body": {"error": {"message": "max_tokens is not supported"}}}
    endpoint.on_batch = lambda b: endpoint.finish(b, fail=lambda i: refused if i < 2 else None)
    done = run(study_of(), out=tmp_path / "r", batch=True)
    assert (done.done, done.failed) == (48, 2)
    assert _rows(tmp_path / "r", "SELECT DISTINCT kind FROM failures") == [("refused_parameters",)]
    endpoint.on_batch = endpoint.finish
    again = run(study_of(), out=tmp_path / "r", batch=True)
    assert again.complete
    assert again.asked == 2


def test_an_expired_batch_leaves_the_rest_pending(
    endpoint: Loopback, study_of: StudyOf, tmp_path: Path
) -> None:
    endpoint.on_batch = lambda b: endpoint.finish(b, status="expired", answered=10)
    done = run(study_of(), out=tmp_path / "r", batch=True)
    assert (done.done, done.failed) == (10, 0)
    assert "expired; 40 requests unanswered" in done.stopped["m"]
    endpoint.on_batch = endpoint.finish
    assert run(study_of(), out=tmp_path / "r", batch=True).asked == 40


def test_a_batch_that_is_refused_says_why(
    endpoint: Loopback, study_of: StudyOf, tmp_path: Path
) -> None:
    def refuse(batch: Json) -> None:
        batch["status"] = "failed"
        batch["errors"] = {"data": [{"code": "x", "message": "the model has no batches"}]}

    endpoint.on_batch = refuse
    done = run(study_of(), out=tmp_path / "r", batch=True)
    assert done.done == 0
    assert "the model has no batches" in done.stopped["m"]
    endpoint.key = "another"
    assert "Incorrect API key" in run(study_of(), out=tmp_path / "r", batch=True).stopped["m"]


@pytest.mark.parametrize("path", ["/files", "/batches"])
@pytest.mark.parametrize("status", [404, 405, 501])
def test_an_endpoint_without_batches_is_named_as_such(
    path: str, status: int, endpoint: Loopback, study_of: StudyOf, tmp_path: Path
) -> None:
    endpoint.missing = {path: status}
    done = run(study_of(), out=tmp_path / "r", batch=True)
    assert done.done == 0
    assert "this endpoint has no Batch API: leave --batch out" in done.stopped["m"]
    assert "Not Found" not in done.stopped["m"]
    assert len(endpoint.asked(path)) == 1, "what is not there is not asked for again"
    assert run(study_of(), out=tmp_path / "r").complete, "nothing is left in a batch"


def test_large_runs_are_several_batches(
    endpoint: Loopback, study_of: StudyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "MOST_REQUESTS", 20)
    assert run(study_of(), out=tmp_path / "r", batch=True).complete
    assert len(endpoint.batches) == 3


def test_a_budget_bounds_what_is_submitted(
    endpoint: Loopback, study_of: StudyOf, tmp_path: Path
) -> None:
    done = run(study_of(), out=tmp_path / "r", batch=True, max_cost=0.5)
    assert 0 < done.done < 50
    assert done.spent <= 0.5
    assert "--max-cost" in done.stopped["m"]
    assert run(study_of(), out=tmp_path / "r", batch=True, max_cost=50).complete


def test_the_key_stays_in_the_header(endpoint: Loopback, study_of: StudyOf, tmp_path: Path) -> None:
    run(study_of(), out=tmp_path / "r", batch=True)
    for path in (tmp_path / "r").rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes()


def test_only_some_endpoints_take_batches(small_study: StudyOf, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="--batch: model 'script': expected openai"):
        run(small_study(), out=tmp_path / "r", batch=True)


@pytest.mark.parametrize(
    "line",
    ["", "not json", "[]", '{"custom_id": 3}', '{"response": {}}', "[" * 5000],
)
def test_malformed_lines_are_left_out(line: str) -> None:
    good = b'{"custom_id": "a", "response": {"status_code": 200, "body": {"x": 1}}}'
    found = list(answered(line.encode() + b"\n" + good))
    assert found == [Answered("a", 200, b'{"x": 1}', None, expired=False)]
