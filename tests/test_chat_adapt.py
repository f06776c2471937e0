"""Parameters that a model refuses: what is sent instead, what stops the model, what is kept."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from formatspan.analysis import analyze
from formatspan.backends import openai_chat
from formatspan.backends.base import ModelSpec
from formatspan.backends.chat_adapt import Adapter, cut_at_stop, refused_parameter
from formatspan.backends.openai_chat import OpenAIChat
from formatspan.records import Failure, FailureKind, Generation, Message, Request, Sampling
from formatspan.report.provenance import provenance
from formatspan.report.write import write_report
from formatspan.session import run
from formatspan.stub import Settings, serving
from formatspan.study import Study
from impatient import LIMITS, no_sleep, open_impatient

REQUEST = Request("r1", "openai:m", "", (Message("user", "Which?"),), Sampling(), 3)


@pytest.mark.parametrize(
    ("error", "param"),
    [
        ({"param": "max_tokens", "code": "unsupported_parameter", "message": "x"}, "max_tokens"),
        ({"message": "Unsupported parameter: 'max_tokens' is not supported"}, "max_tokens"),
        ({"message": "Use 'max_completion_tokens' instead", "param": "max_tokens"}, "max_tokens"),
        ({"message": "'max_tokens' is not supported", "param": None}, "max_tokens"),
        ({"message": "Not supported. Use max_completion_tokens, not max_tokens"}, "max_tokens"),
        ({"message": "`temperature` does not support 0.0 with this model"}, "temperature"),
        ({"message": "Only the default (1) value is supported: temperature"}, "temperature"),
        ({"message": "Unrecognized request argument supplied: seed"}, "seed"),
        ({"message": "This response_format type is unavailable, not supported"}, "response_format"),
        ({"param": "response_format.json_schema", "message": "unsupported"}, "response_format"),
        ({"message": "extra inputs are not permitted: stop"}, "stop"),
        ({"message": "max_tokens is too large: 9; at most 8 is supported"}, None),
        ({"param": "temperature", "message": "must be less than 2"}, None),
        ({"message": "Unsupported parameter"}, None),
        ({"message": "no"}, None),
    ],
)
def test_which_parameter_is_refused(error: dict[str, Any], param: str | None) -> None:
    wording = " ".join(str(value) for value in error.values())
    assert refused_parameter(error, wording) == param


@pytest.mark.parametrize(
    ("param", "body", "sent"),
    [
        ("max_tokens", {"max_tokens": 24}, {"max_completion_tokens": 24}),
        ("seed", {"seed": 3, "max_tokens": 24}, {"max_tokens": 24}),
        ("stop", {"stop": ["x"]}, {}),
        ("temperature", {"temperature": 1.0}, {}),
        ("temperature", {"temperature": 0.0}, None),
        ("top_p", {"top_p": 0.5}, None),
        ("response_format", {"response_format": {}}, None),
        ("seed", {"max_tokens": 24}, None),
        ("logit_bias", {"logit_bias": {}}, None),
    ],
)
def test_what_is_sent_instead(
    param: str, body: dict[str, Any], sent: dict[str, Any] | None
) -> None:
    adapter = Adapter()
    assert adapter.learn(param, body) == (sent is not None)
    assert adapter.applied(body) == (body if sent is None else sent)
    assert len(adapter.notes(body)) == (0 if sent is None else 1)


def test_a_cap_that_is_refused_under_both_names() -> None:
    adapter = Adapter()
    assert adapter.learn("max_tokens", {"max_tokens": 9})
    assert not adapter.learn("max_completion_tokens", {"max_completion_tokens": 9})


def test_cutting_at_the_first_stop() -> None:
    assert cut_at_stop("a;b\nc", ("\n", ";")) == ("a", True)
    assert cut_at_stop("abc", (";", "")) == ("abc", False)


async def _asked(settings: Settings, *requests: Request, **spec: Any) -> tuple[list[Any], int]:  # noqa: ANN401
    async with serving(settings) as served:
        entry = ModelSpec("m", "openai:m", base_url=served.url, **spec)
        backend = OpenAIChat(entry, served.url, None, limits=LIMITS, sleep=no_sleep)
        made = [await backend.generate(request) for request in requests]
        await backend.aclose()
        return made, served.stub.counts["requests"]


async def test_a_refusal_is_met_once_for_a_model() -> None:
    # api.jsonl, b028: two requests for the first, one for each that follows.
    again = replace(REQUEST, id="r2", seed=4)
    made, hits = await _asked(Settings(refuses=("max_tokens",)), REQUEST, again)
    assert hits == 3
    assert [m.attempts for m in made] == [2, 1]
    for reply in made:
        assert isinstance(reply, Generation)
        assert reply.adaptations == ("max_tokens: sent as max_completion_tokens",)


async def test_several_refusals_are_adapted_one_by_one() -> None:
    stopping = replace(REQUEST, sampling=Sampling(stop=("o",)))
    settings = Settings(refuses=("max_tokens", "seed", "stop"), text="do re mi")
    (made,), hits = await _asked(settings, stopping)
    assert isinstance(made, Generation)
    assert (made.text, made.finish_reason, hits) == ("d", "stop", 4)
    assert [note.partition(":")[0] for note in made.adaptations] == ["max_tokens", "seed", "stop"]


async def test_a_temperature_is_never_dropped_in_silence() -> None:
    # api.jsonl, b029.
    greedy = replace(REQUEST, id="r2")
    made, hits = await _asked(Settings(refuses=("temperature",)), REQUEST, greedy)
    assert hits == 1
    first, second = made
    assert isinstance(first, Failure) and isinstance(second, Failure)
    assert (first.kind, first.fatal) == (FailureKind.REFUSED_PARAMETERS, True)
    assert "temperature=0.0" in first.message and "temperature: null" in first.message
    assert second.attempts == 0, "what would be refused alike is not sent"


async def test_a_temperature_that_the_user_leaves_out_is_on_record() -> None:
    settings = Settings(refuses=("temperature",), text="B")
    (made,), hits = await _asked(settings, REQUEST, extra_body={"temperature": None})
    assert isinstance(made, Generation)
    assert hits == 1
    assert made.adaptations == ("temperature: left to the provider's default by extra_body",)


async def test_the_report_says_what_was_adapted(
    rows_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_chat, "open_openai", open_impatient)
    async with serving(Settings(refuses=("seed",))) as served:
        model = {"model": "openai:stub", "name": "m", "base_url": served.url}
        study = Study.build({"models": [model], "tasks": [str(rows_file)], "examples": 2})
        await asyncio.to_thread(run, study, out=tmp_path / "run")
    store = tmp_path / "run" / "run.sqlite"
    (adapted,) = provenance(store).adapted
    assert (adapted.model, adapted.replies) == ("m", 10)
    analysis = analyze(tmp_path / "run")
    files = write_report(analysis, store, tmp_path / "report", figures=False)
    page = files.page.read_text(encoding="utf-8")
    assert "seed: left out, so a repeat is the provider" in page
    assert "(10 replies)" in page
