"""Likelihoods of given replies from servers: what is asked, and what is made of the answers."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import formatspan
from formatspan.backends.base import Dialect, ModelSpec
from formatspan.backends.chat_fault import Fault
from formatspan.backends.chat_likelihood import CHAT, SCORERS, Scores, Told
from formatspan.backends.openai_chat import OpenAIChat
from formatspan.falsifier.result import Falsification
from formatspan.records import Failure, FailureKind, Generation, Message, Request, Sampling
from formatspan.stub import Settings, serving
from formatspan.study import Study
from impatient import LIMITS, no_sleep

Json = dict[str, Any]
PROMPT, REPLY = Message("user", "Which?\nA) x\nB) y"), '{"answer": "B"}'


def scored_request(reply: str = REPLY) -> Request:
    messages = (PROMPT, Message("assistant", reply))
    return Request("r1", "openai:m", "", messages, Sampling(max_tokens=0), 0, kind="likelihood")


class Server:
    """Answers each path with its object and keeps what it was asked."""

    def __init__(self, **answers: Json | Fault) -> None:
        self.answers, self.asked = answers, list[tuple[str, Json]]()

    async def post(self, path: str, body: Json) -> Told | Fault:
        self.asked.append((path, body))
        answer = self.answers[path.strip("/").replace("-", "_") or "chat"]
        return answer if isinstance(answer, Fault) else Told(answer, b"{}")


async def score(server: Server, dialect: Dialect, reply: str = REPLY) -> Scores | Fault:
    spec = ModelSpec("m", "openai:m", extra_body={"chat_template_kwargs": {"thinking": False}})
    return await SCORERS[dialect](spec, scored_request(reply), server.post)


def prompt_of(*words: str) -> list[Json | None]:
    """A prompt as vLLM tells of it; each word but the first stands beside a likelier one."""
    told: list[Json | None] = [None]
    for number, word in enumerate(words, 1):
        own = {"logprob": -float(number), "rank": 2, "decoded_token": word}
        top = {"logprob": -0.5, "rank": 1, "decoded_token": "top"}
        told.append({str(number): own, "99": top})
    return told


async def test_vllm_scores_the_reply_at_the_end_of_an_unfinished_message() -> None:
    words = ("Which", "?", '{"', "answer", '":', ' "', "B", '"}')
    server = Server(chat={"model": "served", "prompt_logprobs": prompt_of(*words)})
    scores = await score(server, "vllm")
    assert isinstance(scores, Scores)
    assert scores.logprobs == (-3.0, -4.0, -5.0, -6.0, -7.0, -8.0)
    assert scores.token_ids == (3, 4, 5, 6, 7, 8)
    assert (scores.usage.prompt_tokens, scores.usage.completion_tokens) == (3, 6)
    [(path, body)] = server.asked
    assert path == CHAT
    assert body["messages"][-1] == Message("assistant", REPLY)
    assert (body["continue_final_message"], body["add_generation_prompt"]) == (True, False)
    assert (body["max_tokens"], body["prompt_logprobs"]) == (1, 1)
    assert body["chat_template_kwargs"] == {"thinking": False}


async def test_spaces_that_a_decoder_drops_do_not_hide_the_reply() -> None:
    server = Server(chat={"prompt_logprobs": prompt_of("?", "Answer", ":", "C")})
    scores = await score(server, "vllm_guided", "Answer: C")
    assert isinstance(scores, Scores)
    assert scores.logprobs == (-2.0, -3.0, -4.0)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (None, "does not score prompts"),
        ([None], "does not score prompts"),
        ([None, {"5": {"logprob": "low"}}], "does not score prompts"),
        ([None, {"5": {"logprob": float("-inf"), "decoded_token": "B"}}], "does not score"),
        (prompt_of("?", "A"), "does not end in the reply"),
        (prompt_of("?", "xB"), "does not end in the reply"),
    ],
)
async def test_what_vllm_leaves_out_is_a_fault(told: object, said: str) -> None:
    fault = await score(Server(chat={"prompt_logprobs": told}), "vllm", "B")
    assert isinstance(fault, Fault)
    assert said in fault.message


def llama(**changed: Json | Fault) -> Server:
    answers: dict[str, Json | Fault] = {
        "apply_template": {"prompt": "<user>Which?<assistant>"},
        "tokenize": {"tokens": [7, 8]},
        "completion": {
            "completion_probabilities": [{"id": 7, "logprob": -0.5}, {"id": 8, "logprob": -1.5}]
        },
    }
    return Server(**answers | changed)


async def test_llama_cpp_is_held_to_the_tokens_of_the_reply() -> None:
    server = llama()
    scores = await score(server, "llama_cpp")
    assert isinstance(scores, Scores)
    assert (scores.token_ids, scores.logprobs) == ((7, 8), (-0.5, -1.5))
    (_, shell), (_, prompt), (_, reply), (_, held) = server.asked
    assert shell["messages"] == [{"role": "user", "content": PROMPT.content}]
    assert shell["chat_template_kwargs"] == {"thinking": False}
    assert (prompt["content"], prompt["parse_special"]) == ("<user>Which?<assistant>", True)
    assert (reply["content"], reply["parse_special"]) == (REPLY, False)
    assert (held["grammar"], held["n_predict"]) == ("root ::= <[7]> <[8]>", 2)


@pytest.mark.parametrize(
    "changed",
    [
        {"tokenize": {"tokens": []}},
        {"tokenize": {"tokens": ["7"]}},
        {"completion": {"content": "B"}},
        {"completion": {"completion_probabilities": [{"id": 7, "logprob": -0.5}]}},
        {"completion": {"completion_probabilities": [{"id": 7, "logprob": None}]}},
        {"completion": {"completion_probabilities": [{"id": 9, "logprob": -0.5}]}},
    ],
)
async def test_what_llama_cpp_leaves_out_is_a_fault(changed: dict[str, Json | Fault]) -> None:
    fault = await score(llama(**changed), "llama_cpp")
    assert isinstance(fault, Fault)
    assert fault.kind is FailureKind.MALFORMED


@pytest.mark.parametrize("path", ["apply_template", "tokenize", "completion"])
async def test_a_fault_on_the_way_is_passed_on(path: str) -> None:
    fault = Fault(FailureKind.SERVER, "in trouble", retry=True)
    assert await score(llama(**{path: fault}), "llama_cpp") is fault


async def asked(dialect: Dialect | None, settings: Settings) -> Generation | Failure:
    async with serving(settings) as served:
        spec = ModelSpec("m", "openai:m", base_url=served.url, constrain=dialect)
        backend = OpenAIChat(spec, served.url, None, limits=LIMITS, sleep=no_sleep)
        try:
            return await backend.generate(scored_request())
        finally:
            await backend.aclose()


@pytest.mark.parametrize("faults", [0.0, 1.0])
async def test_both_ways_of_asking_score_alike_over_http_also_through_faults(
    faults: float,
) -> None:
    settings = Settings(faults=faults, kinds=("server",))
    one, other = await asked("vllm", settings), await asked("llama_cpp", settings)
    assert isinstance(one, Generation)
    assert isinstance(other, Generation)
    assert one.logprobs == other.logprobs
    assert one.token_ids == other.token_ids
    assert one.logprobs is not None
    assert one.completion_tokens == len(one.logprobs) > 1
    assert one.attempts == (3 if faults else 1)
    assert (one.text, one.prompt_tokens) == ("", other.prompt_tokens)


async def test_an_unknown_dialect_cannot_score() -> None:
    made = await asked(None, Settings())
    assert isinstance(made, Failure)
    assert "likelihood" in made.message


async def test_falsify_scores_the_options_through_a_server(tmp_path: Path) -> None:
    async with serving(Settings()) as served:
        models = [
            {"model": f"openai:{way}", "name": way, "base_url": served.url, "constrain": way}
            for way in ("vllm", "llama_cpp")
        ]
        study = Study.build({"models": models, "tasks": ["demo_choice"], "examples": 5})

        def falsified() -> Falsification:
            formatspan.run(study, out=tmp_path / "r")
            return formatspan.falsify(tmp_path / "r", arms=["likelihood"], ask=True)

        found = await asyncio.to_thread(falsified)
    rows = found.arms.filter(arm="likelihood").to_dicts()
    assert len(rows) == 2
    assert rows[0]["fsi"] == rows[1]["fsi"] > 0
    replies = [json.loads(g) for (g,) in _scores(tmp_path / "r")]
    assert len(replies) == 2 * 5 * 5 * 4  # models, examples, wrappers, options


def _scores(run: Path) -> list[tuple[str]]:
    with sqlite3.connect(run / "run.sqlite") as store:
        return store.execute("SELECT logprobs FROM generations WHERE logprobs <> ''").fetchall()
