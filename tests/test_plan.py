"""The bill: what is counted, what it is priced at, and that a run then asks just that."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from rich.console import Console

import formatspan
from conftest import data_folder
from formatspan.backends.model_list import models_in
from formatspan.billing.pace import pace_of
from formatspan.errors import StudyError
from formatspan.report.bill import print_plan
from formatspan.report.numbers import dollars
from formatspan.report.terminal import print_outcome
from formatspan.session import run
from formatspan.spending.price_lists import find_prices
from formatspan.spending.pricing import ModelPrice, read_prices
from formatspan.store import Store
from formatspan.study import Study
from loopback import Loopback

StudyOf = Callable[..., Study]
HTTP = {"model": "openai:m", "name": "m", "base_url": "http://127.0.0.1:9/v1"}
PRICE = {"prompt": 2.0, "completion": 10.0}


def _plan(study: Study, out: Path, **keys: Any) -> formatspan.Plan:  # noqa: ANN401
    return formatspan.plan(study, run=out, online=False, **keys)


def test_a_run_asks_what_was_planned(small_study: StudyOf, tmp_path: Path) -> None:
    study, out = small_study(seeds=3), tmp_path / "r"
    planned = _plan(study, out)
    (bill,) = planned.models
    assert (bill.points, bill.copies, bill.requests) == (150, 100, 50)
    assert run(study, out=out).asked == 50
    with Store.read(out / "run.sqlite") as store:
        counted = store.connection.execute("SELECT sum(prompt_tokens) FROM generations").fetchone()
    assert bill.prompt_tokens == counted[0], "the tokenizer at hand counts what is then sent"
    assert bill.counted == "tokenizer"


def test_a_resume_costs_what_is_missing(small_study: StudyOf, tmp_path: Path) -> None:
    out = tmp_path / "r"
    run(small_study(examples=3, wrappers=["plain", "json"]), out=out)
    grown = small_study(examples=7, budget="none")
    with pytest.raises(formatspan.RunError, match="budget"):
        _plan(grown, out)
    grown = small_study(examples=7, wrappers=["plain", "json"])
    (bill,) = _plan(grown, out).models
    assert (bill.answered, bill.requests) == (6, 8)
    assert run(grown, out=out).asked == 8
    (bill,) = _plan(grown, out).models
    assert (bill.answered, bill.requests, bill.prompt_tokens) == (14, 0, 0)


def test_other_models_of_the_run_are_not_in_the_bill(small_study: StudyOf, tmp_path: Path) -> None:
    out, other = tmp_path / "r", small_study(models=["scripted:accuracy=0.4"], examples=4)
    run(small_study(examples=2), out=out)
    (bill,) = _plan(other, out).models
    assert (bill.model, bill.requests) == ("accuracy=0.4", 20)
    assert run(other, out=out).asked == 20


def test_a_request_of_two_labels_is_counted_once(small_study: StudyOf, tmp_path: Path) -> None:
    twins = [{"model": "scripted:accuracy=0.5", "name": n} for n in ("one", "two")]
    study = small_study(models=twins)
    planned = _plan(study, tmp_path / "r")
    assert (planned.points, planned.requests) == (100, 50)
    assert planned.models[1].shared == 50
    assert run(study, out=tmp_path / "r").asked == 50


def test_temperature_makes_seeds_requests(small_study: StudyOf, tmp_path: Path) -> None:
    (bill,) = _plan(small_study(seeds=3, temperature=0.7), tmp_path / "r").models
    assert (bill.copies, bill.requests) == (0, 150)


def test_cost_is_tokens_times_price(small_study: StudyOf, tmp_path: Path) -> None:
    model = {**HTTP, "price": PRICE, "max_tokens": 8, "concurrency": 5}
    planned = _plan(small_study(models=[model], examples=4), tmp_path / "r")
    (bill,) = planned.models
    assert bill.counted == "characters"
    assert bill.completion_tokens_most == 20 * 8
    assert bill.cost == pytest.approx((bill.prompt_tokens * 2 + 160 * 10) / 1e6)
    assert planned.cost_most == bill.cost
    assert planned.seconds == 20 * 1.0 / 5
    half = _plan(small_study(models=[model], examples=4), tmp_path / "r", batch=True)
    assert half.cost == pytest.approx((bill.cost or 0) / 2)
    assert half.seconds == 24 * 3600
    assert any("≤ 24 h │" in line for line in _printed(half))
    assert any(line.startswith("time: ≤ 24 h for each batch") for line in _printed(half))
    assert _plan(small_study(models=[model]), tmp_path / "r", concurrency=50).seconds == 1.0


def test_stored_replies_say_how_long_replies_are(small_study: StudyOf, tmp_path: Path) -> None:
    out, model = tmp_path / "r", {"model": "scripted:", "name": "s", "price": PRICE}
    run(small_study(models=[model], examples=3), out=out)
    (bill,) = _plan(small_study(models=[model], examples=9), out).models
    assert bill.requests == 30
    assert 0 < bill.completion_tokens < bill.completion_tokens_most
    assert bill.latency_measured
    assert (bill.cost or 0) < (bill.cost_most or 0)
    assert sum(w.requests for w in bill.wrappers) == 30


def test_a_finished_run_says_what_was_spent(small_study: StudyOf, tmp_path: Path) -> None:
    out, path = tmp_path / "r", _file(tmp_path, "prices: {openai:m: {prompt: 2, completion: 10}}\n")
    with Loopback() as endpoint:  # without prices, so that the store holds no cost
        model = {**HTTP, "base_url": endpoint.base}
        study = small_study(models=[model], examples=2)
        assert run(study, out=out, check=False).complete
        again = run(study, out=out, check=False, price_file=path)
    planned = _plan(study, out, price_file=path)
    assert planned.spent == again.spent == pytest.approx(10 * (20 * 2 + 4 * 10) / 1e6)
    assert planned.models[0].spent == planned.spent
    assert any(line.startswith("spent so far: $0.0008;") for line in _printed(planned))
    (line,) = [x for x in _printed(_plan(study, out)) if x.startswith("spent")]
    assert line.startswith("spent so far: not known for 10 replies of m, whose price is not known")
    assert again.unpriced == {}


def test_a_run_names_replies_whose_cost_is_not_known(
    small_study: StudyOf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dear = {"model": "scripted:", "name": "m", "price": PRICE}
    run(small_study(models=[dear], examples=2), out=tmp_path / "r")
    with Loopback() as endpoint:
        model = {**HTTP, "base_url": endpoint.base, "name": "free"}
        done = run(small_study(models=[dear, model], examples=2), out=tmp_path / "r", check=False)
    assert done.unpriced == {"free": 10}
    print_outcome(done, Console(width=300))
    said = capsys.readouterr().out
    assert f"(m {dollars(done.spent)}) without 10 replies of free, whose price is not known" in said


def test_a_model_without_a_price_is_named(small_study: StudyOf, tmp_path: Path) -> None:
    planned = _plan(small_study(models=[HTTP]), tmp_path / "r")
    assert planned.cost is None
    assert planned.unpriced == ("m",)
    (line,) = [x for x in _printed(planned) if x.startswith("cost")]
    assert line == (
        "cost: not known for m: state the model's 'price' in the study, or give --price-file"
    )
    priced = {**HTTP, "model": "openai:n", "name": "n", "price": PRICE}
    both = _plan(small_study(models=[HTTP, priced]), tmp_path / "r")
    (line,) = [x for x in _printed(both) if x.startswith("cost")]
    assert line.startswith("cost: not known for m, $")
    assert "for the others: state" in line


def _printed(planned: formatspan.Plan) -> list[str]:
    out = io.StringIO()
    print_plan(planned, Console(file=out, width=200))
    return out.getvalue().splitlines()


def _at(second: float) -> str:
    return (datetime(2026, 11, 30, tzinfo=UTC) + timedelta(seconds=second)).isoformat()


def test_a_pace_leaves_pauses_out() -> None:
    # Two in flight for 4 s, a short gap, then a session an hour later.
    replies = [(0.0, 2.0), (0.0, 2.0), (2.0, 2.0), (9.0, 1.0), (3600.0, 5.0)]
    assert pace_of((_at(start), took) for start, took in replies) == (5, 10.0 + 5.0)
    assert pace_of([]) == (0, 0.0)


def test_a_run_that_knows_its_pace_forecasts_by_it(small_study: StudyOf, tmp_path: Path) -> None:
    out, model = tmp_path / "r", {"model": "scripted:", "name": "s", "concurrency": 100}
    run(small_study(models=[model], examples=4), out=out)
    with Store.create(out / "run.sqlite") as store, store.transaction():
        # Twenty replies one after the other, 3 s each, whatever the concurrency says.
        for row, (name,) in enumerate(
            store.connection.execute("SELECT request FROM generations").fetchall()
        ):
            store.connection.execute(
                "UPDATE generations SET started_at = ?, latency_s = 3 WHERE request = ?",
                (_at(3.0 * row), name),
            )
    planned = _plan(small_study(models=[model], examples=10), out)
    (bill,) = planned.models
    assert bill.requests == 30
    assert bill.pace == pytest.approx(1 / 3)
    assert planned.seconds == pytest.approx(90)
    (line,) = [x for x in _printed(planned) if x.startswith("time")]
    assert line == "time: about 1 min 30 s: s at the pace that the run measured, 20 replies/min"
    other = _plan(small_study(models=[model], examples=10), out, concurrency=3)
    assert other.models[0].pace is None
    assert other.seconds == pytest.approx(30 * 3 / 3)
    (line,) = [x for x in _printed(other) if x.startswith("time")]
    assert line.endswith("3 requests in flight to each model, 3 s a reply (measured)")


def _file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "prices.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_price_file_is_read(small_study: StudyOf, tmp_path: Path) -> None:
    text = "date: 2026-11-30\nprices:\n  openai/m: {prompt: 1, completion: 3, cached: 0.1}\n"
    path = _file(tmp_path, text)
    assert read_prices(path) == {"openai:m": ModelPrice(1, 3, 0.1, "prices.yaml of 2026-11-30")}
    (bill,) = _plan(small_study(models=[HTTP]), tmp_path / "r", price_file=path).models
    assert bill.price is not None
    assert bill.price.completion == 3
    stated = small_study(models=[{**HTTP, "price": PRICE}])
    assert find_prices(stated, path, online=False).prices["m"].completion == 10


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("- 1\n", "expected a mapping of price file keys"),
        ("models: {}\n", "models: expected the keys date, source and prices"),
        ("prices: 3\n", "prices: expected a mapping from model addresses"),
        ("prices: {nosuch:x: {prompt: 1, completion: 1}}\n", "nosuch"),
        ("prices: {openai:m: 3}\n", r"prices\[openai:m\]: expected {prompt: N"),
        ("prices: {openai:m: {prompt: 1}}\n", "expected {prompt: N, completion: N}"),
        ("prices: {openai:m: {prompt: -1, completion: 1}}\n", r"\.prompt: expected US dollars"),
        ("prices: {openai:m: {prompt: dear, completion: 1}}\n", "got 'dear'"),
    ],
)
def test_a_wrong_price_file_is_one_line(text: str, fault: str, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=fault) as raised:
        read_prices(_file(tmp_path, text))
    assert "\n" not in str(raised.value)


LIST = {
    "data": [
        {"id": "m", "pricing": {"prompt": "0.000001", "completion": "0.000002"}},
        {"id": "router", "pricing": {"prompt": "-1", "completion": "-1"}},
        {"id": "local"},
        {"id": 7},
        "nonsense",
    ]
}


def test_an_endpoint_lists_its_models() -> None:
    found = models_in(LIST)
    assert set(found) == {"m", "router", "local"}
    assert (found["m"].prompt, found["m"].completion) == (1.0, 2.0)
    assert found["router"].prompt is None
    for strange in (None, 3, {"data": 3}, {"data": [{"id": "x", "pricing": 5}]}):
        assert all(m.prompt is None for m in models_in(strange).values())


async def test_a_plan_asks_the_endpoint_for_prices(
    small_study: StudyOf, tmp_path: Path, unused_tcp_port: int
) -> None:
    asked: list[str] = []

    async def models(request: web.Request) -> web.Response:
        asked.append(request.headers.get("authorization", ""))
        return web.json_response(LIST)

    app = web.Application()
    app.router.add_get("/v1/models", models)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    try:
        base = f"http://127.0.0.1:{unused_tcp_port}/v1"
        twice = [{**HTTP, "base_url": base}, {**HTTP, "base_url": base, "name": "again"}]
        study = small_study(models=twice)
        planned = await asyncio.to_thread(formatspan.plan, study, run=tmp_path / "r")
    finally:
        await runner.cleanup()
    assert asked == [""], "one list for both"
    assert planned.models[0].price == ModelPrice(1.0, 2.0, None, "the endpoint's list")


def test_no_list_is_a_note(small_study: StudyOf, tmp_path: Path, unused_tcp_port: int) -> None:
    base = f"http://127.0.0.1:{unused_tcp_port}/v1"
    planned = formatspan.plan(small_study(models=[{**HTTP, "base_url": base}]), run=tmp_path / "r")
    assert any(note.startswith(f"{base}/models: no price list") for note in planned.notes)


def test_json_is_plain(small_study: StudyOf, tmp_path: Path) -> None:
    data = json.loads(json.dumps(_plan(small_study(), tmp_path / "r").to_dict()))
    assert data["requests"] == 50
    assert data["power"]["examples"] == {"sums": 10}
    assert data["models"][0]["wrappers"][0]["wrapper"] == "plain"


def test_the_paper_has_a_sane_bill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not data_folder().is_dir():
        pytest.skip("FORMATSPAN_DATA is not there")
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    planned = _plan(Study.preset("paper"), tmp_path / "r", data_dir=data_folder())
    assert (planned.points, planned.requests) == (140_000, 140_000)
    assert planned.unpriced == ()
    assert 0.5 < (planned.cost or 0) < 20
    assert all(4e6 < bill.prompt_tokens < 1e7 for bill in planned.models)
    assert any("OPENROUTER_API_KEY" in note for note in planned.notes)
    assert any("several providers" in note for note in planned.notes)


def test_without_rows_a_usual_sample_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from formatspan.billing import planner
    from formatspan.errors import DataError

    def unreachable(*_: object) -> None:
        raise DataError("the hub cannot be reached", source="hub")

    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    monkeypatch.setattr(planner, "load_tasks", unreachable)
    study = Study.preset("paper", {"tasks": ["boolq", "gsm8k"], "budget": "none", "seeds": 1})
    planned = _plan(study, tmp_path / "r")
    assert planned.requests == 4 * 2 * 5 * 200
    assert any("rows of boolq, gsm8k are not at hand" in note for note in planned.notes)
    padded = _plan(study.model_copy(update={"budget": "task"}), tmp_path / "r")
    assert padded.models[0].prompt_tokens > planned.models[0].prompt_tokens
    with pytest.raises(DataError):
        _plan(study, tmp_path / "r", data_dir=tmp_path)
