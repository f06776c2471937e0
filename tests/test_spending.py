"""The budget: never exceeded, used up, kept over sessions; costs counted as the endpoint tells."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from formatspan.backends.scripted import ScriptedModel
from formatspan.errors import StudyError
from formatspan.records import (
    Failure,
    FailureKind,
    Generation,
    Message,
    Request,
    Sampling,
)
from formatspan.session import run
from formatspan.spending.ledger import spent_so_far
from formatspan.spending.pricing import FREE, ModelPrice
from formatspan.spending.purse import Purse, most_tokens
from formatspan.store import Store
from formatspan.study import Study
from loopback import Loopback

StudyOf = Callable[..., Study]
PRICE = ModelPrice(prompt=1.0, completion=10.0, source="study")


def _request(name: str = "a", text: str = "What?", tokens: int = 10) -> Request:
    return Request(name, "openai:m", "", (Message("user", text),), Sampling(max_tokens=tokens), 0)


def _reply(request: Request, **figures: Any) -> Generation:  # noqa: ANN401
    return Generation(request.id, "A", "stop", **figures)


def test_no_prompt_has_more_tokens_than_bytes() -> None:
    assert most_tokens(_request(text="é" * 10, tokens=7)) == (20 + 64, 7)


async def test_what_is_under_way_counts_until_it_is_settled() -> None:
    first, second = _request("a"), _request("b")
    purse = Purse(limit=0.0002, prices={"m": PRICE})
    most = purse.most("m", first)
    assert most == pytest.approx((5 + 64 + 100) / 1e6)
    assert await purse.reserve("m", first)
    waiting = asyncio.create_task(purse.reserve("m", second))
    await asyncio.sleep(0)
    assert not waiting.done(), "both at their most would exceed the budget"
    purse.settle("m", first, _reply(first, prompt_tokens=9, completion_tokens=1))
    assert await waiting
    assert purse.spent == pytest.approx(19e-6)
    assert purse.closed is None


async def test_a_request_that_never_fits_closes_the_purse() -> None:
    purse = Purse(limit=0.0001, prices={"m": PRICE})
    assert not await purse.reserve("m", _request())
    assert purse.closed is not None
    assert "--max-cost" in purse.closed
    assert not await purse.reserve("free", _request("b"))


async def test_a_closed_purse_wakes_all_who_wait() -> None:
    purse = Purse(limit=0.0002, prices={"m": PRICE})
    assert await purse.reserve("m", _request("a"))
    others = [asyncio.create_task(purse.reserve("m", _request(n))) for n in "bcd"]
    await asyncio.sleep(0)
    purse.settle("m", _request("a"), _reply(_request("a"), cost=0.0001))
    assert await asyncio.gather(*others) == [False] * 3


def _spent(reply: Generation | Failure | None, price: ModelPrice = PRICE) -> float:
    purse = Purse(prices={"m": price})
    purse._held["a"] = 0.5
    purse.settle("m", _request(), reply)
    return purse.spent


def test_the_endpoint_tells_the_cost_better_than_a_price() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 2}
    assert _spent(_reply(_request(), cost=0.25, **usage)) == 0.25
    assert _spent(_reply(_request(), **usage)) == pytest.approx(120e-6)
    assert _spent(_reply(_request())) == 0.5, "unknown: the most that it can have cost"
    cached = replace(PRICE, cached=0.1)
    assert _spent(_reply(_request(), cached_tokens=50, **usage), cached) == pytest.approx(75e-6)
    assert _spent(None) == 0


@pytest.mark.parametrize(
    ("kind", "cost"),
    [(FailureKind.RATE_LIMIT, 0), (FailureKind.AUTH, 0), (FailureKind.TIMEOUT, 0.5)],
)
def test_a_failure_may_have_cost_something(kind: FailureKind, cost: float) -> None:
    assert _spent(Failure("a", kind, "")) == cost


def test_a_dearer_endpoint_than_its_price_raises_what_is_held() -> None:
    purse, request = Purse(prices={"m": PRICE}), _request()
    before = purse.most("m", request)
    purse.settle("m", request, _reply(request, cost=60e-6, prompt_tokens=10, completion_tokens=2))
    assert purse.most("m", request) == pytest.approx(2 * before)


def test_only_a_stated_price_is_recorded() -> None:
    reply = _reply(_request(), prompt_tokens=10, completion_tokens=1)
    for price, recorded in ((PRICE, True), (FREE, False), (replace(PRICE, shipped=True), False)):
        kept = Purse(prices={"m": price}).priced("m", reply)
        assert (kept.cost_source == "price") is recorded
    told = structs.replace(reply, cost=0.1, cost_source="endpoint")
    assert Purse(prices={"m": PRICE}).priced("m", told) is told


MODEL = {"model": "scripted:", "name": "m", "price": {"prompt": 100.0, "completion": 1000.0}}


def _priced(small_study: StudyOf, **keys: Any) -> Study:  # noqa: ANN401
    return small_study(models=[MODEL], examples=12, seeds=4, temperature=1.0, **keys)


def test_a_run_stops_within_its_budget_and_goes_on(small_study: StudyOf, tmp_path: Path) -> None:
    study, out = _priced(small_study), tmp_path / "r"
    whole = run(study, out=tmp_path / "whole")
    assert whole.complete
    assert whole.spent > 0
    seen, asked = [], 0
    for share in (0.3, 0.7):
        limit = whole.spent * share
        done = run(study, out=out, max_cost=limit)
        assert done.spent <= limit, "never exceeded"
        assert done.spent > 0.8 * limit, "and used up"
        assert "--max-cost" in done.stopped["m"]
        assert done.failed == 0, "what was not asked is no failure"
        seen.append(done.done)
        asked += done.asked
    assert 0 < seen[0] < seen[1] < whole.points
    rest = run(study, out=out, max_cost=2 * whole.spent)
    assert rest.complete
    assert asked + rest.asked == whole.points, "nothing was asked twice"
    assert rest.spent == pytest.approx(whole.spent)


def test_a_budget_that_is_spent_asks_nothing(small_study: StudyOf, tmp_path: Path) -> None:
    study = _priced(small_study)
    first = run(study, out=tmp_path / "r", max_cost=0.5)
    again = run(study, out=tmp_path / "r", max_cost=0.5)
    assert again.asked == 0
    assert again.spent == pytest.approx(first.spent)


def test_the_endpoint_s_own_cost_counts(
    small_study: StudyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(4)

    async def dear(self: ScriptedModel, request: Request) -> Generation | Failure:
        await asyncio.sleep(0)
        if dice.random() < 0.2:
            return Failure(request.id, FailureKind.TIMEOUT, "slow")
        return Generation(request.id, "1", "stop", cost=0.01, cost_source="endpoint")

    monkeypatch.setattr(ScriptedModel, "generate", dear)
    study = _priced(small_study)
    done = run(study, out=tmp_path / "r", max_cost=1.0)
    assert done.spent <= 1.0
    assert 0 < done.done <= 100
    with Store.read(tmp_path / "r" / "run.sqlite") as store:
        stored = store.connection.execute("SELECT sum(cost) FROM generations").fetchone()[0]
        assert spent_so_far(store, study, {})["m"] == pytest.approx(stored)
        later = spent_so_far(store, study, {"m": PRICE})["m"]
        assert later > stored, "failures may have cost something"


def test_replies_without_counts_count_as_the_most_in_later_sessions_too(
    small_study: StudyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def uncounted(self: ScriptedModel, request: Request) -> Generation:
        return Generation(request.id, "1", "stop")

    monkeypatch.setattr(ScriptedModel, "generate", uncounted)
    study = _priced(small_study)
    first = run(study, out=tmp_path / "r", max_cost=1.0)
    assert 0 < first.done < 100
    again = run(study, out=tmp_path / "r", max_cost=1.0)
    assert again.asked == 0, "the budget is used up as it was"
    assert again.spent == pytest.approx(first.spent, rel=0.3)
    more = run(study, out=tmp_path / "r", max_cost=2.0)
    assert 0 < more.asked < 2 * first.done


def test_a_model_without_a_price_is_refused_up_front(
    small_study: StudyOf, tmp_path: Path, unused_tcp_port: int
) -> None:
    model = {"model": "openai:x", "base_url": f"http://127.0.0.1:{unused_tcp_port}/v1"}
    study = small_study(models=[model])
    with pytest.raises(StudyError, match="--max-cost: no price is known for x"):
        run(study, out=tmp_path / "r", max_cost=1.0)
    kept = run(small_study(), out=tmp_path / "kept")
    with pytest.raises(StudyError, match="no price"):
        run(study, out=tmp_path / "kept", max_cost=1.0, fresh=True)
    assert run(small_study(), out=tmp_path / "kept").done == kept.done, "nothing was set aside"
    for wrong in (0, -1, float("nan"), float("inf")):
        with pytest.raises(StudyError, match="expected US dollars"):
            run(small_study(), out=tmp_path / "r", max_cost=wrong)


def test_replies_of_a_shared_cache_are_not_spent_again(
    small_study: StudyOf, tmp_path: Path
) -> None:
    cache = tmp_path / "cache.sqlite"
    study = small_study(models=[MODEL])
    paid = run(study, out=tmp_path / "a", cache=cache)
    assert paid.spent > 0
    for _ in range(2):
        shared = run(study, out=tmp_path / "b", cache=cache)
        assert shared.spent == pytest.approx(0)
    grown = run(small_study(models=[MODEL], examples=12), out=tmp_path / "b", cache=cache)
    assert 0 < grown.spent < paid.spent


def test_looks_beforehand_count_in_every_session(small_study: StudyOf, tmp_path: Path) -> None:
    each = (20 * 1.0 + 4 * 10.0) / 1e6  # what the endpoint counts, at the price below
    with Loopback() as endpoint:
        model: dict[str, Any] = {"model": "openai:m", "name": "m", "base_url": endpoint.base}
        model |= {"price": {"prompt": 1.0, "completion": 10.0}}
        for examples, looks in ((2, 1), (4, 2), (4, 2)):
            study = small_study(models=[model], examples=examples)
            done = run(study, out=tmp_path / "r")
            asked = len(endpoint.asked("/chat/completions"))
            assert asked == done.done + looks
            assert done.spent == pytest.approx(asked * each)


def test_progress_says_what_was_spent(
    small_study: StudyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.console import Console

    from formatspan.progress import Shown

    lines: list[str] = []
    shown = Shown(Console(width=100))
    monkeypatch.setattr(shown, "say", lines.append)
    done = run(small_study(models=[MODEL]), out=tmp_path / "r", listener=shown)
    assert f"${done.spent:.4f} spent" in lines[-1]
