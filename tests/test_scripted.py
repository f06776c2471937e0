from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from formatspan.backends.base import Backend, Coached, Lesson, ModelSpec
from formatspan.backends.breaks import BREAKS, Intent, broken, other_answer
from formatspan.backends.script import Script, read_script
from formatspan.backends.scripted import (
    PieceTokenizer,
    Scripted,
    ScriptedModel,
    generation,
    open_scripted,
    pieces,
)
from formatspan.contracts import AnswerSpace, Contract, constraint, reply
from formatspan.errors import BackendError
from formatspan.records import (
    Answer,
    Failure,
    FailureKind,
    Generation,
    Message,
    Mode,
    Request,
    Sampling,
)

SPACE = AnswerSpace.of_options("choice", ("Mars", "Venus", "Jupiter", "Saturn"))
CONTRACTS = {
    "plain": Contract("plain"),
    "json": Contract("json", shape="json"),
    "deliberate": Contract("deliberate", before="ANSWER: ", preamble=True),
    "boxed": Contract("boxed", shape="boxed"),
}
SPACES: dict[str, tuple[AnswerSpace, Answer]] = {
    "choice": (SPACE, "C"),
    "boolean": (AnswerSpace("boolean"), True),
    "number": (AnswerSpace("number"), 1250),
}


def spec(address: str = "scripted:", **extra: Any) -> ModelSpec:  # noqa: ANN401
    return ModelSpec(name="m", address=address, extra_body=extra)


def make_request(
    wrapper: str = "plain",
    example: int = 0,
    *,
    seed: int = 0,
    mode: Mode = "free",
    sampling: Sampling | None = None,
) -> Request:
    name = f"{wrapper}/{example}/{seed}/{mode}"
    messages = (Message("user", f"Question {example}?"),)
    return Request(name, "scripted:", "", messages, sampling or Sampling(), seed, mode)


def lesson(wrapper: str = "plain", example: int = 0, kind: str = "choice") -> Lesson:
    space, gold = SPACES[kind]
    return Lesson("t", f"e{example}", wrapper, CONTRACTS[wrapper], space, gold)


async def ask(
    model: ScriptedModel, request: Request, taught: Lesson | None = None
) -> Generation | Failure:
    wrapper, example, *_ = request.id.split("/")
    model.coach(request, taught or lesson(wrapper, int(example)))
    return await model.generate(request)


async def text_of(model: ScriptedModel, request: Request, taught: Lesson | None = None) -> str:
    made = await ask(model, request, taught)
    assert isinstance(made, Generation)
    return made.text


async def accuracy(model: ScriptedModel, wrapper: str, n: int = 400) -> float:
    right = reply(
        CONTRACTS[wrapper], SPACE, "C", "The options differ." if wrapper == "deliberate" else ""
    )
    texts = [await text_of(model, make_request(wrapper, i)) for i in range(n)]
    return sum(text == right for text in texts) / n


async def test_perfect_unless_told_otherwise() -> None:
    model = open_scripted(spec())
    assert isinstance(model, Backend) and isinstance(model, Coached)
    for wrapper in CONTRACTS:
        assert await accuracy(model, wrapper, 20) == 1.0


async def test_rates_give_the_format_sensitivity_they_stand_for() -> None:
    # A = accuracy x comply when breaks hold no answer: 0.8 and 0.8 * 0.1, FSI = 0.72. The
    # standard error of each share at n = 400 is below 0.025.
    model = open_scripted(spec("scripted:break=silence", accuracy=0.8, comply={"json": 0.1}))
    plain, json_ = await accuracy(model, "plain"), await accuracy(model, "json")
    assert plain == pytest.approx(0.8, abs=0.06)
    assert plain - json_ == pytest.approx(0.72, abs=0.08)


async def test_examples_known_are_the_same_under_all_wrappers_and_nested_in_accuracy() -> None:
    low = open_scripted(spec(accuracy=0.3))
    high = open_scripted(spec(accuracy={"default": 0.9, "plain": 0.6}))
    known = {}
    for name, model, wrapper in (
        ("low", low, "plain"),
        ("low_json", low, "json"),
        ("middle", high, "plain"),
        ("high", high, "json"),
    ):
        texts = [await text_of(model, make_request(wrapper, i)) for i in range(200)]
        known[name] = {i for i, text in enumerate(texts) if "C" in text}
    assert known["low"] == known["low_json"] < known["middle"] < known["high"]


async def test_same_script_same_replies_in_any_order_and_another_seed_differs() -> None:
    settings: dict[str, Any] = {"accuracy": 0.5, "comply": 0.5}
    first, second = open_scripted(spec(**settings)), open_scripted(spec(**settings))
    third = open_scripted(spec(**settings, seed=1))
    forwards = [await text_of(first, make_request("json", i)) for i in range(60)]
    backwards = [await text_of(second, make_request("json", i)) for i in reversed(range(60))]
    assert forwards == backwards[::-1]
    assert forwards != [await text_of(third, make_request("json", i)) for i in range(60)]


async def test_request_seed_counts_only_when_sampling() -> None:
    model = open_scripted(spec(accuracy=0.5))
    warm = Sampling(temperature=1.0)
    greedy = {await text_of(model, make_request(seed=s)) for s in range(20)}
    sampled = {await text_of(model, make_request(seed=s, sampling=warm)) for s in range(20)}
    assert len(greedy) == 1
    assert len(sampled) > 1


@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.parametrize("wrapper", CONTRACTS)
async def test_constrained_replies_match_the_constraint(wrapper: str, kind: str) -> None:
    model = open_scripted(spec(comply=0.0, accuracy=0.5))
    taught = [lesson(wrapper, i, kind) for i in range(20)]
    pattern = constraint(taught[0].contract, taught[0].space).value
    for i, each in enumerate(taught):
        text = await text_of(model, make_request(wrapper, i, mode="constrained"), each)
        assert re.fullmatch(pattern, text)


@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.parametrize("wrapper", CONTRACTS)
@pytest.mark.parametrize("name", BREAKS)
def test_no_break_is_the_asked_form(name: str, wrapper: str, kind: str) -> None:
    space, gold = SPACES[kind]
    intent = Intent(CONTRACTS[wrapper], space, gold, other_answer(space, gold, 0))
    text, cut = broken((name,), 0, intent)
    assert text != intent.strict
    assert cut == (name == "cut_off")


def test_breaks_take_turns() -> None:
    intent = Intent(CONTRACTS["json"], SPACE, "C", "A")
    names = ("silence", "fenced", "bare")
    texts = [broken(names, i, intent)[0] for i in range(4)]
    assert texts[1:3] == ['```json\n{"answer": "C"}\n```', "C"]
    assert texts[0] == texts[3]


def test_bare_is_passed_over_where_a_bare_letter_is_asked() -> None:
    intent = Intent(CONTRACTS["plain"], SPACE, "C", "A")
    assert broken(("bare", "option_text"), 0, intent)[0] == "Jupiter"
    assert broken(("bare",), 0, intent)[0] == broken(("silence",), 0, intent)[0]


def test_silence_holds_nothing_that_any_rule_could_take_for_an_answer() -> None:
    text = broken(("silence",), 0, Intent(CONTRACTS["plain"], SPACE, "C", "A"))[0]
    assert not re.search(r"\d|\b[A-Z]\b|\b(yes|no|true|false)\b", text)


@pytest.mark.parametrize("kind", SPACES)
@settings(deadline=None)
@given(start=st.integers(0, 10**6))
def test_other_answer_differs(kind: str, start: int) -> None:
    space, gold = SPACES[kind]
    assert other_answer(space, gold, start) != gold


async def test_failures_by_kind() -> None:
    model = open_scripted(spec(fail={"rate_limit": 0.2, "auth": 0.1}))
    made = [await ask(model, make_request(example=i)) for i in range(300)]
    kinds = [each.kind for each in made if isinstance(each, Failure)]
    assert kinds.count(FailureKind.RATE_LIMIT) / 300 == pytest.approx(0.2, abs=0.08)
    assert kinds.count(FailureKind.AUTH) / 300 == pytest.approx(0.1, abs=0.06)
    assert all(
        each.fatal == (each.kind is FailureKind.AUTH) for each in made if isinstance(each, Failure)
    )


async def test_hanging_requests_end_only_when_cancelled() -> None:
    task = asyncio.create_task(ask(open_scripted(spec(hang=1)), make_request()))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_latency_is_waited_for_and_recorded() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    model = ScriptedModel(Script(latency_s=2.5), spec(), sleep=sleep)
    made = await ask(model, make_request())
    assert isinstance(made, Generation)
    assert (waits, made.latency_s) == ([2.5], 2.5)


async def test_uncoached_request_is_a_failure_and_lessons_are_forgotten() -> None:
    model = open_scripted(spec())
    await ask(model, make_request())
    made = await model.generate(make_request())
    assert isinstance(made, Failure)
    assert made.kind is FailureKind.INTERNAL


async def test_asked_again_it_complies_as_often_as_its_script_says() -> None:
    model = open_scripted(spec("scripted:comply=0,break=silence", repair={"json": 0.5}))
    again = [replace(make_request("json", i), parent="first") for i in range(200)]
    texts = [await text_of(model, request) for request in again]
    assert sum(text == '{"answer": "C"}' for text in texts) / 200 == pytest.approx(0.5, abs=0.1)
    first = await text_of(model, make_request("json", 0))
    assert first != '{"answer": "C"}'


@pytest.mark.parametrize("wrapper", CONTRACTS)
async def test_the_meant_answer_is_likeliest(wrapper: str) -> None:
    model = open_scripted(spec(accuracy=0.5))
    taught = lesson(wrapper)
    scores = {}
    for label in SPACE.labels:
        asked = make_request(wrapper)
        said = Message("assistant", reply(taught.contract, SPACE, label))
        request = replace(asked, messages=(*asked.messages, said), kind="likelihood")
        made = await ask(model, request, taught)
        assert isinstance(made, Generation) and made.logprobs is not None
        assert made.text == ""
        scores[label] = sum(made.logprobs)
    likeliest = max(scores, key=lambda label: scores[label])
    assert reply(taught.contract, SPACE, likeliest) in await text_of(model, make_request(wrapper))


async def test_length_cap_and_stop_texts() -> None:
    model = open_scripted(spec())
    short = await ask(model, make_request("json", sampling=Sampling(max_tokens=4)))
    assert isinstance(short, Generation)
    assert (short.text, short.finish_reason, short.completion_tokens) == ('{"answer"', "length", 4)
    # The end token counts: nine pieces at a cap of nine end at the cap.
    full = await ask(model, make_request("json", sampling=Sampling(max_tokens=9)))
    assert isinstance(full, Generation)
    assert (full.text, full.finish_reason) == ('{"answer": "C"}', "length")
    stopped = await text_of(model, make_request("json", sampling=Sampling(stop=(":",))))
    assert stopped == '{"answer"'


async def test_tokens_and_cost() -> None:
    entry = ModelSpec("m", "scripted:", price={"prompt": 1.0, "completion": 10.0})
    made = await ask(open_scripted(entry), make_request())
    assert isinstance(made, Generation)
    assert made.prompt_tokens == PieceTokenizer().count(make_request().messages) == 6
    assert made.completion_tokens == 2
    assert made.cost == pytest.approx(26e-6)
    assert made.cost_source == "price"


@settings(deadline=None)
@given(st.text())
def test_pieces_lose_nothing(text: str) -> None:
    assert "".join(pieces(text)) == text


def test_character_padding_is_not_token_padding() -> None:
    assert len(pieces("x" + " " * 1000)) == 17
    assert len(pieces("x" + "\n " * 500)) == 501


def test_settings_in_the_address() -> None:
    text = "scripted:accuracy=0.7, comply=0.9,comply.json=0.1,break=silence+chatty,fail=0.05,"
    script = read_script(spec(text + "fail.timeout=0.1,seed=3"))
    assert script == Script(
        accuracy={"default": 0.7},
        comply={"default": 0.9, "json": 0.1},
        breaks=("silence", "chatty"),
        fail={FailureKind.SERVER: 0.05, FailureKind.TIMEOUT: 0.1},
        seed=3,
    )


def test_extra_body_stands_over_the_address() -> None:
    assert read_script(spec("scripted:seed=1", seed=2)).seed == 2


@pytest.mark.parametrize(
    ("address", "extra", "message"),
    [
        ("scripted:acuracy=1", {}, "'acuracy': expected accuracy, comply, .*mean 'accuracy'"),
        ("scripted:", {"temperature": 1}, "unknown setting 'temperature'"),
        ("scripted:accuracy=1.1", {}, "accuracy.*'1.1': expected a number from 0 to 1"),
        ("scripted:accuracy=-0.1", {}, "expected a number from 0 to 1"),
        ("scripted:accuracy=nan", {}, "expected a number from 0 to 1"),
        ("scripted:accuracy=much", {}, "expected a number from 0 to 1"),
        ("scripted:accuracy", {}, "expected key=value"),
        ("scripted:", {"comply": {"json": 2}}, "comply.json: 2: expected"),
        ("scripted:", {"comply": True}, "comply.*True: expected"),
        ("scripted:", {"comply": None}, "expected a number from 0 to 1"),
        ("scripted:latency_s=-1", {}, "expected a number from 0 on"),
        ("scripted:break=shouting", {}, "'shouting': expected some of silence, refusal"),
        ("scripted:", {"break": []}, "expected some of"),
        ("scripted:fail.flood=0.1", {}, "unknown kind 'flood': expected rate_limit"),
        ("scripted:", {"fail": {"server": 0.7, "timeout": 0.7}}, "add up to more than 1"),
        ("scripted:seed=x", {}, "seed.*expected an integer"),
        ("scripted:seed.json=1", {}, "only rates"),
    ],
)
def test_wrong_settings(address: str, extra: Mapping[str, Any], message: str) -> None:
    with pytest.raises(BackendError, match=message) as caught:
        open_scripted(spec(address, **extra))
    assert "\n" not in str(caught.value)


def test_description_holds_the_script() -> None:
    facts = open_scripted(spec(accuracy=0.5, fail=0.1)).describe()
    script = json.loads(facts["script"])
    assert script["accuracy"] == {"default": 0.5}
    assert script["fail"] == {"server": 0.1}


async def test_function_of_the_request() -> None:
    request = make_request()
    canned: list[str | Generation | Failure] = [
        "B",
        generation(make_request(example=9), "C", cut=True),
        Failure("other", FailureKind.TIMEOUT, "late"),
    ]
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    backend = Scripted(lambda _: canned.pop(0), latency_s=0.5, sleep=sleep)
    assert isinstance(backend, Backend)
    assert not backend.capabilities.coached
    made = [await backend.generate(request) for _ in range(3)]
    assert [each.request_id for each in made] == [request.id] * 3
    assert isinstance(made[0], Generation) and made[0].text == "B"
    assert isinstance(made[1], Generation) and made[1].finish_reason == "length"
    assert isinstance(made[2], Failure) and made[2].kind is FailureKind.TIMEOUT
    assert waits == [0.5] * 3
    assert backend.tokenizer().count(request.messages) == 6
    assert backend.describe()["backend"] == "scripted"
    await backend.aclose()
