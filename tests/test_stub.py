"""The stub server, and what the client makes of every way in which it can fail."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.request import Request as UrlRequest
from urllib.request import urlopen

import pytest

from formatspan.backends.base import ModelSpec
from formatspan.backends.openai_chat import OpenAIChat
from formatspan.errors import UserError
from formatspan.records import Failure, FailureKind, Generation, Message, Request, Sampling
from formatspan.stub import KINDS, Settings, serving
from formatspan.stub.faults import DISGUISES
from formatspan.stub.replies import answer_to
from impatient import LIMITS, no_sleep

PROMPT = 'Which?\nA) x\nB) y\n\nReply with only a JSON object. It has one key, "answer".'
REQUEST = Request("r1", "openai:m", "", (Message("user", PROMPT),), Sampling(), 0)
RIGHT = answer_to(PROMPT, 0)


async def ask(settings: Settings, request: Request = REQUEST) -> Generation | Failure:
    async with serving(settings) as served:
        spec = ModelSpec("m", "openai:m", base_url=served.url)
        backend = OpenAIChat(spec, served.url, None, limits=LIMITS, sleep=no_sleep)
        try:
            return await backend.generate(request)
        finally:
            await backend.aclose()


CUT_OFF = ("huge",)
"""A body that is not read to its end costs its connection; the next attempt may still meet it."""


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_of_fault_ends_in_the_right_reply(kind: str) -> None:
    made = await ask(Settings(faults=1, kinds=(kind,), huge_bytes=300_000, hang_s=5))
    assert isinstance(made, Generation), made
    assert made.text == RIGHT
    extra = made.attempts - (1 if kind in DISGUISES else 3)
    assert extra == 0 or (extra == 1 and kind in CUT_OFF)
    if kind == "reasoning":
        assert made.reasoning == "Let me see."
    if kind == "no_usage":
        assert (made.prompt_tokens, made.completion_tokens) == (None, None)


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in DISGUISES])
async def test_a_fault_without_end_is_a_typed_failure(kind: str) -> None:
    always = Settings(faults=1, kinds=(kind,), most_faults=99, huge_bytes=300_000, hang_s=5)
    made = await ask(always)
    if kind in ("null_content", "tool_call"):
        # What comes again and again in place of a text is the model's reply after all.
        assert isinstance(made, Generation)
        assert (made.text, made.attempts) == ("", 3)
        return
    assert isinstance(made, Failure)
    assert made.kind is not FailureKind.INTERNAL
    assert made.attempts in (3, 5, 10) or (made.attempts <= 10 and kind in CUT_OFF)
    assert made.message and "\n" not in made.message


async def test_no_connection_is_left_open_after_faults() -> None:
    before = asyncio.all_tasks()
    await ask(Settings(faults=1, huge_bytes=300_000, hang_s=5))
    assert asyncio.all_tasks() == before


async def test_a_stalled_reply_comes_to_an_end() -> None:
    settings = Settings(faults=1, kinds=("stall",), hang_s=0.01)
    async with serving(settings) as served:
        spec = ModelSpec("m", "openai:m", base_url=served.url)
        backend = OpenAIChat(spec, served.url, None, sleep=no_sleep)
        try:
            made = await asyncio.wait_for(backend.generate(REQUEST), 60)
        finally:
            await backend.aclose()
    assert isinstance(made, Generation), made


async def test_what_a_request_meets_is_fixed_by_seed_and_content() -> None:
    async def met(seed: int) -> list[int]:
        found = []
        async with serving(Settings(faults=0.5, kinds=("server",), seed=seed)) as served:
            spec = ModelSpec("m", "openai:m", base_url=served.url)
            backend = OpenAIChat(spec, served.url, None, limits=LIMITS, sleep=no_sleep)
            for i in range(20):
                asked = Request(str(i), "openai:m", "", (Message("user", str(i)),), Sampling(), 0)
                made = await backend.generate(asked)
                assert isinstance(made, Generation)
                found.append(made.attempts)
            await backend.aclose()
        return found

    first = await met(1)
    assert await met(1) == first
    assert await met(2) != first
    assert set(first) == {1, 2, 3}


async def test_replies_have_the_shape_that_is_asked_for() -> None:
    tails = {
        "Reply with only the answer: A or B.": "{}",
        'Reply with only a JSON object. It has one key, "answer".': '{{"answer": "{}"}}',
        'reply: only one line with the key "answer", a colon': "answer: {}",
        "Reply with only the tag <answer>, then the answer": "<answer>{}</answer>",
    }
    for i, (tail, shape) in enumerate(tails.items()):
        texts = {answer_to(f"Question {i} {k}\nA) x\nB) y\n{tail}", 0) for k in range(40)}
        assert {shape.format("A"), shape.format("B")} < texts
    assert {answer_to(f"{k} yes or no?", 0) for k in range(20)} >= {"yes", "no"}
    assert {answer_to(f"{k} true or false?", 0) for k in range(20)} >= {"true", "false"}


def _get(url: str, body: bytes | None = None) -> tuple[int, Any]:
    with urlopen(UrlRequest(url, data=body), timeout=10) as response:
        return response.status, json.loads(response.read())


async def test_any_client_is_served() -> None:
    async with serving(Settings(text="B")) as served:
        status, models = await asyncio.to_thread(_get, f"{served.url}/models")
        assert (status, models["data"][0]["id"]) == (200, "stub")
        body = json.dumps({"model": "m", "messages": []}).encode()
        _, made = await asyncio.to_thread(_get, f"{served.url}/chat/completions", body)
        assert made["choices"][0]["message"]["content"] == "B"
        assert served.stub.counts == {"requests": 1, "good": 1}


async def test_limits_of_a_stub() -> None:
    made = await ask(Settings(per_day=0))
    assert isinstance(made, Failure)
    assert (made.kind, made.fatal, made.attempts) == (FailureKind.QUOTA, True, 1)
    made = await ask(Settings(per_minute=0))
    assert isinstance(made, Failure) and made.kind is FailureKind.RATE_LIMIT
    made = await ask(Settings(slots=0))
    assert isinstance(made, Failure) and made.kind is FailureKind.RATE_LIMIT


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"faults": 1.5}, "faults: expected a share"),
        ({"latency_s": -1.0}, "latency_s: expected 0 or more"),
        ({"refuses": ("max_tokns",)}, "refuses: 'max_tokns': expected one of"),
        ({"kinds": ("tornado",)}, "kinds: 'tornado': expected some of rate_limit"),
    ],
)
async def test_mistakes_in_settings(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        async with serving(Settings(**keys)):
            pass


async def test_a_port_that_is_taken() -> None:
    async with serving() as served:
        port = int(served.url.split(":")[2].split("/")[0])
        with pytest.raises(UserError, match="cannot serve at"):
            async with serving(port=port):
                pass
