"""Replies from the field that made other clients crash, score nothing as wrong, or ask for ever.

Each line of ``api.jsonl`` is played by a server and asked by the HTTP backend; expected outcomes
are checked by kind. Lines that are not about one endpoint's replies have a check of their own or
a reason why they are looked at elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer, unused_port

from conftest import cases_folder
from formatspan.analysis import analyze
from formatspan.backends import openai_chat
from formatspan.backends.chat_reply import read_usage
from formatspan.backends.openai_chat import Limits
from formatspan.extraction import extract
from formatspan.records import Failure, FailureKind, Generation
from formatspan.session import run
from formatspan.store import Store
from formatspan.study import Study
from impatient import open_impatient
from test_openai_chat import REQUEST, Endpoint, Waits, completion, error, serving

NOT_APPLICABLE = {"b025": "a spending cap, tested where costs are counted"}
KINDS = {"rate_limit", "server", "timeout"}
DAY = re.compile(r"<now\+(\d+)h in ms>")


def _filled(value: Any) -> Any:  # noqa: ANN401 - JSON
    """``value`` with placeholders for moments filled in."""
    if isinstance(value, dict):
        return {key: _filled(inner) for key, inner in value.items()}
    match = DAY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    due = datetime.now().astimezone() + timedelta(hours=int(match[1]))
    return str(round(due.timestamp() * 1000))


def _response(given: dict[str, Any]) -> web.Response:
    body = given["body"]
    data = body if isinstance(body, str) else json.dumps(_filled(body))
    headers = {k: v for k, v in given["headers"].items()}
    return web.Response(status=given["status"], headers=headers, body=data.encode())


async def _played(*replies: Any) -> tuple[Generation | Failure, Endpoint, Waits]:  # noqa: ANN401
    endpoint, waits = Endpoint(*replies), Waits()
    async with serving(endpoint, waits) as backend:
        return await backend.generate(REQUEST), endpoint, waits


async def check_retry(case: dict[str, Any]) -> None:
    expected = case["expected_strict"]
    made, endpoint, waits = await _played(_response(case["input"]), completion())
    assert isinstance(made, Generation), "it heals"
    assert (made.text, made.attempts, len(endpoint.bodies)) == ("B", 2, 2)
    low, high = expected.get("wait_s", (0, 30))
    assert low <= sum(waits) <= high
    failed, endpoint, _ = await _played(_response(case["input"]))
    assert isinstance(failed, Failure) and not failed.fatal
    assert len(endpoint.bodies) <= expected.get("max_attempts", 10), "retries are bounded"
    if expected.get("class") in KINDS:
        assert failed.kind == expected["class"]
    told = expected.get("log_contains", [])
    told += [_deep(case["input"]["body"], path) for path in expected.get("keep", ())]
    for text in told:
        assert str(text) in failed.message


def _deep(body: Any, path: str) -> Any:  # noqa: ANN401 - JSON
    """The value of the last key of ``path``, wherever it is in the body."""
    key = path.rpartition(".")[2]
    found = [body[key]] if isinstance(body, dict) and key in body else []
    inner = body.values() if isinstance(body, dict) else ()
    return next(iter(found + [f for v in inner if (f := _deep(v, key)) is not None]), None)


async def check_final(case: dict[str, Any]) -> None:
    expected = case["expected_strict"]
    made, endpoint, _ = await _played(_response(case["input"]))
    assert len(endpoint.bodies) == 1
    if expected["status"] == "blocked":
        assert isinstance(made, Failure) and made.kind is FailureKind.CONTENT_FILTER
        return
    assert isinstance(made, Generation)
    assert made.text == expected.get("content", made.text)
    if "tokens" in expected:
        assert made.prompt_tokens is made.completion_tokens is expected["tokens"]
    body = case["input"]["body"]
    contract = "json" if "response_format" in case["input"].get("request", {}) else "answer_line"
    found = extract(
        made.text,
        contract=contract,
        kind="choice",
        labels="ABCD",
        level="strict",
        finish_reason=made.finish_reason,
    )
    assert found.status == expected["status"]
    assert found.value == expected.get("value")
    if "reasoning" in json.dumps(body["choices"]):
        assert made.reasoning, "reasoning is kept apart from the reply"


async def check_pause_run(case: dict[str, Any]) -> None:
    endpoint, waits = Endpoint(_response(case["input"])), Waits()
    async with serving(endpoint, waits) as backend:
        first, second = await backend.generate(REQUEST), await backend.generate(REQUEST)
    assert isinstance(first, Failure) and isinstance(second, Failure)
    assert (first.kind, first.fatal, first.attempts) == (FailureKind.QUOTA, True, 1)
    assert "resume after" in first.message
    assert second.attempts == case["expected_strict"]["requests_sent_after"]
    assert (len(endpoint.bodies), waits) == (1, [])


async def check_config_error(case: dict[str, Any]) -> None:
    made, endpoint, _ = await _played(_response(case["input"]))
    assert isinstance(made, Failure)
    assert made.kind is FailureKind.REFUSED_PARAMETERS and made.fatal
    assert len(endpoint.bodies) == 1
    assert case["input"]["body"]["error"]["param"] in made.message


OUTCOMES = {
    "retry": check_retry,
    "final": check_final,
    "pause_run": check_pause_run,
    "config_error": check_config_error,
}


async def b017(case: dict[str, Any]) -> None:
    pair = case["input"]["pair"]
    made = [(await _played(_response(given)))[0] for given in pair]
    stored = [(bool(m.reasoning), m.completion_tokens) for m in made if isinstance(m, Generation)]
    assert stored == [(True, 812), (False, 7)]


async def b023(case: dict[str, Any]) -> None:
    made, endpoint, _ = await _played(*map(_response, case["input"]["sequence"]))
    assert isinstance(made, Generation) and made.text.strip() == ""
    assert len(endpoint.bodies) <= case["expected_strict"]["attempts_max"]


async def b026(case: dict[str, Any]) -> None:
    counted = [read_usage(usage).prompt_tokens for usage in case["input"]["usages"]]
    assert counted == case["expected_strict"]["input_tokens_total"]


async def b028(case: dict[str, Any]) -> None:
    endpoint = Endpoint(_response(case["input"]), completion())
    async with serving(endpoint) as backend:
        for _ in range(2):
            assert isinstance(await backend.generate(REQUEST), Generation)
    expected = case["expected_strict"]
    assert len(endpoint.bodies) == expected["requests"] + 1, "remembered for the model"
    for sent in endpoint.bodies[1:]:
        assert expected["second_uses"] in sent and "max_tokens" not in sent


async def b031(case: dict[str, Any]) -> None:
    endpoint = Endpoint(error(503))
    limits = Limits(attempts=case["input"]["config"]["retries"] + 1)
    async with serving(endpoint, limits=limits) as backend:
        await backend.generate(REQUEST)
    assert len(endpoint.bodies) == case["expected_strict"]["hits"]


async def b034(case: dict[str, Any]) -> None:
    names = case["input"]["replies_provider_field"]
    made = [(await _played(completion(provider=name)))[0] for name in names]
    assert [m.provider for m in made if isinstance(m, Generation)] == names


CHECKS: dict[str, Callable[[dict[str, Any]], Any]] = {
    check.__name__: check for check in (b017, b023, b026, b028, b031, b034)
}
RUNS = ("b035", "b036")


def _cases() -> list[dict[str, Any]]:
    path = cases_folder() / "api.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


CASES = {case["id"]: case for case in _cases()}
absent = pytest.mark.skipif(not CASES, reason=f"no api.jsonl in {cases_folder()}")


@pytest.mark.parametrize("name", [n for n in CASES if n not in RUNS])
async def test_field_case(name: str) -> None:
    case = CASES[name]
    if name in NOT_APPLICABLE:
        pytest.skip(f"not applicable: {NOT_APPLICABLE[name]}")
    check = CHECKS.get(name) or OUTCOMES.get(case["expected_strict"].get("outcome", ""))
    if check is None:
        pytest.skip("a new case of a new kind, without a check yet")
    await check(case)


@absent
def test_every_case_is_looked_at() -> None:
    special = CHECKS.keys() | NOT_APPLICABLE.keys() | set(RUNS)
    by_kind = {n for n, c in CASES.items() if c["expected_strict"].get("outcome") in OUTCOMES}
    assert special | by_kind == CASES.keys()


@absent
async def test_b035_when_credits_run_out(
    rows_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent = {"error": {"code": 402, "message": "Insufficient credits"}}
    replies: list[Any] = [completion("ANSWER: 1")] * 30
    endpoint = Endpoint(*replies, web.Response(status=402, body=json.dumps(spent).encode()))
    app = web.Application()
    app.router.add_post("/v1/chat/completions", endpoint.handle)
    async with TestServer(app) as server:
        study = _study(str(server.make_url("/v1")), rows_file, monkeypatch)
        done = await _in_thread(lambda: run(study, out=tmp_path / "run", check=False))
    assert done.done == 30
    assert len(endpoint.bodies) - 30 <= 4, "no more than were in flight"
    assert "quota" in done.stopped["m"] and not done.complete
    with Store.read(tmp_path / "run" / "run.sqlite") as store:
        assert len(store.pending("m", 0, 99)) == done.points - 30


@absent
async def test_b036_when_nobody_answers(
    rows_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = _study(f"http://127.0.0.1:{unused_port()}/v1", rows_file, monkeypatch)
    done = await _in_thread(lambda: run(study, out=tmp_path / "run"))
    assert (done.done, done.complete) == (0, False)
    assert "connection" in done.stopped["m"]
    accuracies = analyze(tmp_path / "run").pairs["fsi"].to_list()
    assert all(value is None for value in accuracies)


def _study(url: str, rows: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.setattr(openai_chat, "open_openai", open_impatient)
    model = {"model": "openai:m", "base_url": url, "concurrency": 4}
    return Study.build({"models": [model], "tasks": [str(rows)], "examples": 12})


async def _in_thread(call: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it returns
    return await asyncio.to_thread(call)
