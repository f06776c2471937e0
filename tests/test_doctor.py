"""The doctor: what it says of endpoints that are well and of those that are not."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from formatspan import checks, cli
from formatspan.backends import openai_chat
from formatspan.checks import checkup
from formatspan.checks.checkup import diagnose, glances, of_addresses
from formatspan.checks.doctor import Finding, Mark, Patient, examine, is_fatal
from formatspan.checks.wording import plainly
from formatspan.records import Failure, FailureKind
from formatspan.session import run
from formatspan.spending.purse import Purse
from formatspan.stub import Settings, serving
from formatspan.study import Study
from loopback import Loopback

StudyOf = Callable[..., Study]


@pytest.fixture
def endpoint() -> Iterator[Loopback]:
    with Loopback() as loopback:
        yield loopback


def _look(endpoint: Loopback, **keys: Any) -> dict[str, Finding]:  # noqa: ANN401
    model = {"model": "openai:m", "base_url": endpoint.base}
    study = Study.build({"models": [model], "tasks": ["demo_number"], **keys})
    return {f.about: f for f in diagnose(study, whole=bool(keys))}


def test_a_well_endpoint(endpoint: Loopback) -> None:
    found = _look(endpoint)
    assert {f.mark for f in found.values()} == {Mark.GOOD}
    assert found["seed"].found.startswith("respected")
    assert "20 in, 4 out" in found["tokens"].found
    assert "in the endpoint's list" in found["model"].found
    bodies = endpoint.asked("/chat/completions")
    assert [b["seed"] for b in bodies] == [0, 0, 1]
    assert all(b["temperature"] == 1.0 for b in bodies)


def test_seeds_that_are_ignored_or_answered_from_a_cache(endpoint: Loopback) -> None:
    endpoint.seeds = "ignored"
    found = _look(endpoint)["seed"]
    assert (found.mark, found.found.partition(":")[0]) == (Mark.WARN, "ignored")
    endpoint.seeds = "cached"
    assert _look(endpoint)["seed"].mark is Mark.WARN
    assert _look(endpoint, seeds=5, temperature=0.7)["seed"].mark is Mark.STOP


def test_tokens_that_are_not_counted(endpoint: Loopback) -> None:
    endpoint.usage = None
    assert _look(endpoint)["tokens"].mark is Mark.WARN


def test_a_model_that_is_not_listed(endpoint: Loopback) -> None:
    endpoint.models = [{"id": "other"}]
    found = _look(endpoint)["model"]
    assert found.mark is Mark.WARN
    assert "such as other" in found.found


@pytest.mark.parametrize(
    ("status", "message", "about", "said"),
    [
        (401, "Incorrect API key provided", "authorised", "the key is refused"),
        (402, "Insufficient credits", "authorised", "no credit or quota"),
        (404, "The model `m` does not exist", "model", "no such model"),
        (400, "temperature is not supported", "model", "refuses the request's parameters"),
        (407, "login", "reachable", "HTTP 407: the answer of a proxy: it wants a user"),
        (418, "short", "reachable", "turns requests away: is base_url a chat endpoint"),
        (451, "court", "reachable", "HTTP 451: Unavailable For Legal Reasons: "),
    ],
)
def test_what_makes_a_study_impossible(
    status: int, message: str, about: str, said: str, endpoint: Loopback
) -> None:
    endpoint.error = (status, {"error": {"message": message}})
    findings = list(_look(endpoint).values())
    assert is_fatal(findings)
    (stop,) = [f for f in findings if f.mark is Mark.STOP]
    assert stop.about == about
    assert said in stop.found
    assert message in stop.found


def test_a_key_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    (found,) = diagnose(of_addresses(["openrouter/microsoft/phi-4"]))
    assert found.mark is Mark.STOP
    assert "OPENROUTER_API_KEY" in found.found


def test_the_key_is_not_in_what_is_said(
    endpoint: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-very-secret-0123456789"
    monkeypatch.setenv("SOME_KEY", secret)
    endpoint.key = "another"
    study = of_addresses(["openai:m"], endpoint.base, "SOME_KEY")
    findings = diagnose(study)
    assert is_fatal(findings)
    assert any("Incorrect API key" in f.found for f in findings)
    assert not any(secret in f.found for f in findings)
    endpoint.key = secret
    assert not is_fatal(diagnose(study))


def test_what_cannot_be_reached_is_one_line(unused_tcp_port: int) -> None:
    (found,) = diagnose(of_addresses(["openai:m"], f"http://127.0.0.1:{unused_tcp_port}/v1"))
    assert found.about == "reachable"
    assert found.found == (
        "it cannot be reached: see base_url "
        f"(no connection to 127.0.0.1:{unused_tcp_port}: Connection refused)"
    )


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ("HTTP 404: No model x.; type NotFoundError; code 404", "HTTP 404: No model x."),
        ("HTTP 500: Internal error; code 500", "HTTP 500: Internal error"),
        (
            "HTTP 400: litellm.BadRequestError: OpenAIException - too long",
            "HTTP 400: too long",
        ),
        ("ConnectionError: no route\nto host", "no route to host"),
        ("no route; no route; code model_not_found", "no route; code model_not_found"),
        ("Connection refused (os error 111)", "Connection refused"),
        ("HTTP 429: Slow down; code 42", "HTTP 429: Slow down; code 42"),
        ("KeyError", "KeyError"),
        ("the type of error is unknown", "the type of error is unknown"),
    ],
)
def test_messages_are_for_people(said: str, plain: str) -> None:
    assert plainly(said) == plain


async def test_a_backend_s_bug_is_a_finding() -> None:
    def broken(_: object) -> None:
        raise KeyError("choices")

    entry = of_addresses(["openai:m"]).models[0]
    (found,) = await examine(Patient(entry, _Constrains(broken)), None)
    assert found.found == "a test request failed ('choices')"


def test_an_unpinned_router_is_warned_of(
    endpoint: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "k")
    endpoint.provider = lambda i: f"P{i % 2}"
    model: dict[str, Any] = {"model": "openrouter/m", "base_url": endpoint.base}
    build = {"tasks": ["demo_number"]}
    loose = {f.about: f for f in diagnose(Study.build({**build, "models": [model]}))}
    assert loose["provider"].mark is Mark.WARN
    assert "P0, P1" in loose["provider"].found or "P1, P0" in loose["provider"].found
    model["provider"] = {"only": ["P1"], "quantizations": ["bf16"]}
    pinned = {f.about: f for f in diagnose(Study.build({**build, "models": [model]}))}
    assert pinned["provider"].mark is Mark.GOOD
    sent = endpoint.asked("/chat/completions")[-1]
    assert sent["provider"] == {"only": ["P1"], "quantizations": ["bf16"]}


async def test_a_server_of_known_kind_is_asked_for_likelihoods(endpoint: Loopback) -> None:
    async with serving(Settings()) as stub:
        for base, mark in ((stub.url, Mark.GOOD), (endpoint.base, Mark.WARN)):
            model = {"model": "openai:m", "base_url": base, "constrain": "vllm"}
            entry = Study.build({"models": [model], "tasks": ["demo_number"]}).models[0]
            backend = openai_chat.open_openai(entry.spec())
            found = await examine(Patient(entry, backend), None)
            await backend.aclose()
            assert next(f for f in found if f.about == "likelihood").mark is mark


class _Constrains:
    """Wraps a backend into one that says it can constrain."""

    def __init__(self, reply: Callable[[Any], Any]) -> None:
        from formatspan.backends.base import Capabilities

        self.capabilities = Capabilities(constraints=frozenset({"json_schema"}))
        self._reply = reply

    def tokenizer(self) -> None:
        return None

    def describe(self) -> dict[str, str]:
        return {}

    async def generate(self, request: Any) -> Any:  # noqa: ANN401
        return self._reply(request)

    async def aclose(self) -> None:
        return None


@pytest.mark.parametrize(
    ("text", "mark"),
    [('{"answer": "A"}', Mark.GOOD), ("It is sunny.", Mark.STOP), ('{"answer": 3}', Mark.STOP)],
)
async def test_a_format_that_is_ignored_without_a_word(text: str, mark: Mark) -> None:
    from formatspan.records import Generation

    study = Study.build(
        {"models": ["openai:m"], "tasks": ["demo_number"], "decoding": ["constrained"]}
    )
    backend = _Constrains(
        lambda r: Generation(r.id, text if r.constraint else f"{r.seed}", "stop", prompt_tokens=1)
    )
    found = await examine(Patient(study.models[0], backend, study), None)
    assert next(f for f in found if f.about == "format").mark is mark
    refusing = _Constrains(
        lambda r: (
            Failure(r.id, FailureKind.REFUSED_PARAMETERS, "no response_format")
            if r.constraint
            else Generation(r.id, "x", "stop")
        )
    )
    found = await examine(Patient(study.models[0], refusing, study), None)
    assert "refused" in next(f for f in found if f.about == "format").found


def _study_of(endpoint: Loopback, small_study: StudyOf, **keys: Any) -> Study:  # noqa: ANN401
    return small_study(
        models=[{"model": "openai:m", "base_url": endpoint.base, "name": "m"}], **keys
    )


class _Heard:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)

    def progress(self, model: str, progress: object) -> None:
        pass


def test_a_run_looks_once_and_only_where_something_is_left(
    endpoint: Loopback, small_study: StudyOf, tmp_path: Path
) -> None:
    study = _study_of(endpoint, small_study, examples=2)
    done = run(study, out=tmp_path / "r")
    assert done.complete
    assert len(endpoint.asked("/chat/completions")) == done.points + 1
    run(study, out=tmp_path / "r")
    run(_study_of(endpoint, small_study, examples=3), out=tmp_path / "r", check=False)
    assert len(endpoint.asked("/chat/completions")) == done.points + 1 + 5


def test_a_run_does_not_start_on_what_cannot_be_asked(
    endpoint: Loopback, small_study: StudyOf, tmp_path: Path
) -> None:
    endpoint.error = (401, {"error": {"message": "who are you"}})
    heard = _Heard()
    done = run(_study_of(endpoint, small_study), out=tmp_path / "r", listener=heard)
    assert done.done == 0
    assert done.failed == 0
    assert "the key is refused" in done.stopped["m"]
    assert any("who are you" in line for line in heard.lines)
    assert len(endpoint.asked("/chat/completions")) == 1


def test_a_run_starts_on_an_endpoint_that_is_merely_flaky(
    endpoint: Loopback, small_study: StudyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = openai_chat.Limits(attempts=1)
    monkeypatch.setattr(openai_chat, "Limits", lambda: limits)
    endpoint.cut_off = 1  # the look's own reply
    heard = _Heard()
    done = run(_study_of(endpoint, small_study, examples=2), out=tmp_path / "r", listener=heard)
    assert done.complete
    (line,) = [line for line in heard.lines if "breaks off" in line]
    assert line.endswith("; asked all the same")


async def test_the_look_before_a_run_does_not_wait_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Hangs(_Constrains):
        async def generate(self, request: Any) -> Any:  # noqa: ANN401
            await asyncio.Event().wait()

        def waiting(self) -> str:
            return "waiting 9 s after HTTP 429: slow down"

    monkeypatch.setattr(checks.doctor, "LOOK_S", 0.02)
    monkeypatch.setattr(checkup, "TELL_S", 0.001)
    study, heard = of_addresses(["openai:m"]), _Heard()
    backend = Hangs(lambda _: None)
    assert await glances(study, {study.models[0].name: backend}, heard.say, Purse()) == {}
    assert "m: no reply yet: waiting 9 s after HTTP 429: slow down" in heard.lines[0]
    assert "no reply within 0.02 s, waiting 9 s after HTTP 429" in heard.lines[-1]


def test_a_run_does_not_hammer_an_endpoint_that_is_not_there(
    small_study: StudyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    limits = openai_chat.Limits(attempts=1)
    monkeypatch.setattr(openai_chat, "Limits", lambda: limits)
    dead = f"http://127.0.0.1:{unused_tcp_port}/v1"
    study = small_study(models=[{"model": "openai:m", "base_url": dead, "name": "m"}])
    done = run(study, out=tmp_path / "r")
    assert (done.done, done.failed) == (0, 0)
    assert "cannot be reached" in done.stopped["m"]


def test_the_command_tells_by_its_exit_code(
    endpoint: Loopback, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def call(*args: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["formatspan", "doctor", *args])
        with pytest.raises(SystemExit) as left:
            cli.main()
        return int(left.value.code or 0), capsys.readouterr().out

    code, out = call("openai:m", "--base-url", endpoint.base)
    assert code == 0
    assert "seed" in out
    assert "\x1b" not in out
    endpoint.error = (404, {"error": {"message": "model_not_found \x1b[31m"}})
    code, out = call("openai:m", "--base-url", endpoint.base, "--json")
    assert code == 1
    assert '"mark": "stop"' in out
    assert call("nosuch.yaml")[0] == 2
