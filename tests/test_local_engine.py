"""The embedded engine with its model; one backend for all tests, since loading takes seconds."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from formatspan.backends.base import Backend, ModelSpec, Tokenizer
from formatspan.backends.local import open_model
from formatspan.backends.local.backend import LocalBackend
from formatspan.backends.local.cache import FOLDER_VARIABLE
from formatspan.backends.local.decoding import TOKENIZER_LIMIT
from formatspan.backends.local.runtime import MIN_THREADS, usable_cores
from formatspan.contracts import CONTRACTS, Answers, AnswerSpace, Contract, constraint
from formatspan.errors import BackendError
from formatspan.records import (
    Constraint,
    Failure,
    FailureKind,
    Generation,
    Kind,
    Message,
    Mode,
    Request,
    Sampling,
)

if importlib.util.find_spec("openvino_genai") is None:  # importing it would phone home
    pytest.skip("the extra `local` is not installed", allow_module_level=True)
pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(usable_cores() < MIN_THREADS, reason="the engine needs two cores"),
]

MODEL = "local:smollm2-135m-instruct"

QUESTIONS = (
    "Name a colour.",
    "What is 2 + 3? Reply with the number only.",
    "Is ice colder than steam? Answer yes or no.",
    "Write one word that rhymes with cat.",
    "Which is larger, a house or a shoe?",
    "Give the plural of mouse.",
    "What do bees make?\n\nAnswer in one word.",
    "Say hello in French.",
)


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the model is re-encoded to, once; a folder named in the environment is kept."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def local(cache_folder: Path) -> Iterator[LocalBackend]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(cache_folder))
        try:
            backend = open_model(ModelSpec("smol", MODEL))
        except BackendError as error:
            pytest.skip(str(error))
        yield backend
    asyncio.run(backend.aclose())


def ask(
    text: str,
    *,
    seed: int = 0,
    rule: Constraint | None = None,
    **sampling: Any,  # noqa: ANN401
) -> Request:
    mode: Mode = "constrained" if rule else "free"
    values = {"max_tokens": 10, **sampling}
    message = (Message("user", text),)
    return Request(
        f"{text}/{seed}", MODEL, "", message, Sampling(**values), seed, mode, constraint=rule
    )


async def all_of(backend: Backend, requests: Sequence[Request]) -> list[Generation]:
    found = await asyncio.gather(*(backend.generate(request) for request in requests))
    assert all(isinstance(reply, Generation) for reply in found), found
    return [reply for reply in found if isinstance(reply, Generation)]


def words(generations: Sequence[Generation]) -> list[tuple[int, ...] | None]:
    return [generation.token_ids for generation in generations]


async def test_greedy_replies_do_not_depend_on_company(local: LocalBackend) -> None:
    requests = [ask(question) for question in QUESTIONS]
    together = await all_of(local, requests)
    one_by_one = [(await all_of(local, [request]))[0] for request in requests]
    backwards = await all_of(local, requests[::-1])
    assert words(together) == words(one_by_one) == words(backwards[::-1])
    assert len({reply.text for reply in together}) > 4


async def test_seeds_reproduce(local: LocalBackend) -> None:
    requests = [ask(QUESTIONS[0], seed=seed, temperature=1.0) for seed in range(6)]
    first = await all_of(local, requests)
    again = await all_of(local, [*requests[::-1], ask(QUESTIONS[1])])
    assert words(first) == words(again[:-1][::-1])
    assert len({reply.text for reply in first}) > 2


async def test_narrow_top_p_is_greedy(local: LocalBackend) -> None:
    drawn = ask(QUESTIONS[3], seed=5, temperature=1.0, top_p=0.001)
    pair = await all_of(local, [ask(QUESTIONS[3]), drawn])
    assert pair[0].text == pair[1].text


async def test_a_generation_is_complete(local: LocalBackend) -> None:
    stopped, cut = await all_of(local, [ask(QUESTIONS[5], max_tokens=40), ask("Hi", max_tokens=1)])
    assert (stopped.finish_reason, stopped.finish_reason_raw) == ("stop", "STOP")
    assert (cut.finish_reason, cut.finish_reason_raw) == ("length", "LENGTH")
    assert stopped.token_ids and stopped.logprobs
    assert len(stopped.token_ids) == len(stopped.logprobs) == stopped.completion_tokens
    assert stopped.token_ids[-1] == 2  # <|im_end|>
    assert "<|" not in stopped.text and cut.completion_tokens == 1
    assert all(value <= 0 for value in stopped.logprobs)
    assert stopped.started_at.endswith("+00:00")
    assert 0 < (stopped.first_token_s or 0) <= (stopped.latency_s or 0)
    assert stopped.served_model == "SmolLM2-135M-Instruct.Q4_1.gguf"


async def test_stop_strings(local: LocalBackend) -> None:
    whole = (await all_of(local, [ask(QUESTIONS[4])]))[0].text
    stop = whole.split()[2]
    reply = (await all_of(local, [ask(QUESTIONS[4], stop=(stop,))]))[0]
    assert reply.text.rstrip() == whole[: whole.index(stop)].rstrip()  # a token may begin with " "
    assert reply.finish_reason == "stop"


async def test_the_tokenizer_counts_what_the_model_is_given(local: LocalBackend) -> None:
    tokenizer = local.tokenizer()
    assert isinstance(tokenizer, Tokenizer)
    odd = "A" + " " * 70 + "B" + "\n " * 9
    chats = [
        (Message("user", "Hi"),),
        (Message("system", "Be brief."), Message("user", "Hi\n\n   there…  ")),
        (Message("user", odd), Message("assistant", "C"), Message("user", "D")),
    ]
    requests = [replace(ask("x", max_tokens=1), messages=chat) for chat in chats]
    replies = await all_of(local, requests)
    assert [reply.prompt_tokens for reply in replies] == [tokenizer.count(c) for c in chats]
    padded = (Message("user", "Hi" + "\n " * 5),)
    assert tokenizer.count(padded) > tokenizer.count(chats[0])


def test_the_template_is_the_models(local: LocalBackend) -> None:
    text = local.tokenizer().render([Message("system", "Be brief."), Message("user", "Hi ")])
    assert text == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi <|im_end|>\n"
        "<|im_start|>assistant\n"
    )


SPACES = (
    AnswerSpace.of_options("choice", ("red (dark)", 'an "old" oak / elm & co.', "x^2 + {3}")),
    AnswerSpace.of_options("boolean", ()),
    AnswerSpace.of_options("number", ()),
)
ODD = Contract("odd", before="A-B/c & d~e# 'x' <a>: ", after=" ~ end!")
CASES = [
    (contract.asking(Answers(space.kind, form, contract.words)), space)
    for contract in (*CONTRACTS.values(), ODD)
    for space in SPACES
    for form in (("label", "text") if space.kind == "choice" else ("label",))
]


async def test_every_contract_is_obeyed(
    local: LocalBackend, capfd: pytest.CaptureFixture[str]
) -> None:
    rules = [constraint(contract, space) for contract, space in CASES]
    requests = [
        ask("What is the answer?", seed=i, rule=rule, temperature=1.3, max_tokens=40)
        for i, rule in enumerate(rules)
    ]
    replies = await all_of(local, requests)
    for rule, reply in zip(rules, replies, strict=True):
        if reply.finish_reason == "stop":
            assert re.fullmatch(rule.value, reply.text), (rule, reply.text)
    stopped = [reply.finish_reason for reply in replies].count("stop")
    assert stopped >= 0.6 * len(replies)  # scratchpads may run into the cap
    assert capfd.readouterr() == ("", "")  # the engine prints escapes that it does not know


SCHEMA = {
    "type": "object",
    "properties": {"answer": {"enum": ["A", "B"]}},
    "required": ["answer"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("rule", "pattern"),
    [
        (Constraint("choice", json.dumps(["to be", "not (to) be"])), r"to be|not \(to\) be"),
        (Constraint("grammar", 'root ::= "yes" | "n" "o"'), "yes|no"),
        (Constraint("json_schema", json.dumps(SCHEMA)), r'\{\s*"answer"\s*:\s*"[AB]"\s*\}'),
    ],
)
async def test_constraint_types(local: LocalBackend, rule: Constraint, pattern: str) -> None:
    assert rule.type in local.capabilities.constraints
    reply = (await all_of(local, [ask("Choose.", rule=rule, max_tokens=40)]))[0]
    assert re.fullmatch(pattern, reply.text)


async def test_an_unreadable_constraint_harms_no_other(local: LocalBackend) -> None:
    bad = ask("Choose.", rule=Constraint("regex", "(red"))
    good, refused = await asyncio.gather(local.generate(ask(QUESTIONS[0])), local.generate(bad))
    assert isinstance(good, Generation)
    assert isinstance(refused, Failure)
    assert refused.kind is FailureKind.REFUSED_PARAMETERS
    assert "parenthesis" in refused.message and not refused.fatal


def scoring(question: str, answer: str) -> Request:
    messages = (Message("user", question), Message("assistant", answer))
    sampling = Sampling(max_tokens=0)
    return Request(f"{question}/{answer}", MODEL, "", messages, sampling, 0, kind="likelihood")


async def test_a_reply_is_scored_as_likely_as_it_was_when_it_was_written(
    local: LocalBackend,
) -> None:
    written = await all_of(local, [ask(question, max_tokens=6) for question in QUESTIONS])
    whole = [g for g in written if g.finish_reason == "length"]
    assert len(whole) > 2
    pairs = [(g.request_id.partition("/")[0], g) for g in whole]
    again = await all_of(local, [scoring(question, g.text) for question, g in pairs])
    same = [
        (scored.logprobs, g.logprobs)
        for scored, (_, g) in zip(again, pairs, strict=True)
        if scored.token_ids == g.token_ids
    ]
    assert len(same) > 2, "most texts are encoded as they were written"
    for scored, g in same:
        assert scored == pytest.approx(g, abs=0.05)
    assert all(reply.text == "" and reply.completion_tokens for reply in again)


async def test_scores_do_not_depend_on_company(local: LocalBackend) -> None:
    requests = [scoring(QUESTIONS[2], answer) for answer in ("yes", "no", '{"answer": true}')]
    together = await all_of(local, [*requests, *requests])
    alone = [(await all_of(local, [request]))[0] for request in requests]
    for found in (together[:3], together[3:]):
        for one, other in zip(found, alone, strict=True):
            assert one.logprobs == pytest.approx(other.logprobs, abs=0.05)
    assert all(p <= 0 for reply in alone for p in reply.logprobs or ())


async def test_context_overflow(local: LocalBackend) -> None:
    long, longer = (ask("pick " * n, max_tokens=100) for n in (8080, 9000))
    assert 8092 < local.tokenizer().count(long.messages) < TOKENIZER_LIMIT
    assert local.tokenizer().count(longer.messages) == TOKENIZER_LIMIT
    first, second = await local.generate(long), await local.generate(longer)
    assert isinstance(first, Failure) and isinstance(second, Failure)
    assert first.kind is second.kind is FailureKind.CONTEXT_OVERFLOW
    assert re.search(r"a prompt of 81\d\d tokens and up to 100 .* of 8192 tokens", first.message)
    assert "8192 or more tokens" in second.message


async def test_cancelled_requests_leave(local: LocalBackend) -> None:
    endless = asyncio.create_task(local.generate(ask("Count to 9999.", max_tokens=4000)))
    await all_of(local, [ask(QUESTIONS[0])])
    endless.cancel()
    with pytest.raises(asyncio.CancelledError):
        await endless
    await all_of(local, [ask(QUESTIONS[1])])
    assert local._engine is not None
    assert not local._engine._driver._live


def test_description(local: LocalBackend) -> None:
    facts = local.describe()
    assert facts["model_sha256"].startswith("b179c9523d0e6a0f")
    assert facts["model_file"] == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert facts["encoding"] == "Q4_1, F32, Q8_0"
    assert facts["weights"] == "f16"
    assert facts["compute_precision"] in ("f32", "bf16", "f16")
    assert facts["processor"]
    assert not any("/" in value for value in facts.values())


SILENT = """
import asyncio, sys
seen = []
WATCHED = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "subprocess.Popen",
           "os.fork", "os.posix_spawn", "os.system", "os.exec")
sys.addaudithook(lambda event, args: seen.append((event, args)) if event in WATCHED else None)
from formatspan.backends.base import ModelSpec
from formatspan.backends.local import open_model
from formatspan.records import Generation, Message, Request, Sampling
assert "openvino" not in sys.modules, "the engine is loaded only when a model is opened"
backend = open_model(ModelSpec("m", "local:smollm2-135m-instruct"))
request = Request("1", "m", "", (Message("user", "Hi"),), Sampling(max_tokens=2), 0)
async def main():
    before = list(seen)
    reply = await backend.generate(request)
    assert isinstance(reply, Generation), reply
asyncio.run(main())
assert not seen, seen
assert not any(name.startswith("openvino_telemetry") for name in sys.modules)
print("end")
"""


def test_silence_and_exit_without_closing(
    local: LocalBackend, cache_folder: Path, tmp_path: Path
) -> None:
    """No file in the home, no connection, no process; and the program ends by itself."""
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    keep = {k: os.environ[k] for k in ("PATH", "SYSTEMROOT") if k in os.environ}
    env = {**keep, "HOME": str(home), "USERPROFILE": str(home), FOLDER_VARIABLE: str(cache_folder)}
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", SILENT],
        env=env,
        cwd=here,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (result.stdout, result.stderr, result.returncode) == ("end\n", "", 0)
    assert not list(home.iterdir()) and not list(here.iterdir())


async def test_closing_twice_and_asking_again(local: LocalBackend) -> None:
    await all_of(local, [ask(QUESTIONS[0])])
    await local.aclose()
    await local.aclose()
    assert len(await all_of(local, [ask(QUESTIONS[0])])) == 1


def test_kinds_are_covered() -> None:
    kinds: set[Kind] = {space.kind for _, space in CASES}
    assert kinds == {"choice", "boolean", "number"}
