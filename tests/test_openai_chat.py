"""The HTTP backend against a server on loopback that plays a list of replies."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer, unused_port
from msgspec.structs import replace

from formatspan.backends.base import Backend, ModelSpec
from formatspan.backends.openai_chat import Limits, OpenAIChat, open_openai, open_openrouter
from formatspan.backends.redaction import MASK, Redactor, Secret
from formatspan.backends.table import open_backend
from formatspan.errors import BackendError
from formatspan.records import (
    Constraint,
    Failure,
    FailureKind,
    Generation,
    Message,
    Request,
    Sampling,
)

KEY = "sk-te/st+0123456789"
REQUEST = Request("r1", "openai:m", "", (Message("user", "Which?"),), Sampling(), 3)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def completion(text: str | None = "B", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {"id": "x1", "model": "served", "choices": [choice], **more}


class Endpoint:
    """Plays its replies in order, the last one again and again, and keeps what it was sent."""

    def __init__(self, *replies: web.Response | Handler | dict[str, Any]) -> None:
        self.replies = list(replies)
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        self.headers.append(request.headers)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, dict):
            return web.json_response(reply)
        if isinstance(reply, web.Response):
            return web.Response(status=reply.status, headers=reply.headers, body=reply.body)
        return await reply(request)


class Waits(list[float]):
    """A sleep that returns at once and keeps the seconds, and the clock that it moves on."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)

    def clock(self) -> float:
        return sum(self)


@asynccontextmanager
async def serving(
    endpoint: Endpoint,
    waits: Waits | None = None,
    limits: Limits | None = None,
    **spec: Any,  # noqa: ANN401
) -> AsyncIterator[OpenAIChat]:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", endpoint.handle)
    async with TestServer(app) as server:
        url = str(server.make_url("/v1/"))
        entry = ModelSpec("m", "openai:m", base_url=url, **spec)
        time = Waits() if waits is None else waits
        backend = OpenAIChat(
            entry, url, entry.api_key_env, limits=limits, sleep=time, clock=time.clock
        )
        try:
            yield backend
        finally:
            await backend.aclose()


def error(status: int, text: str = "no", headers: dict[str, str] | None = None) -> web.Response:
    body = json.dumps({"error": {"message": text}}).encode()
    return web.Response(status=status, body=body, headers=headers)


async def reply_of(backend: OpenAIChat, request: Request = REQUEST) -> Generation:
    made = await backend.generate(request)
    assert isinstance(made, Generation), made
    return made


async def failure_of(backend: OpenAIChat, request: Request = REQUEST) -> Failure:
    made = await backend.generate(request)
    assert isinstance(made, Failure), made
    return made


async def test_one_request_one_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY + "\n")
    monkeypatch.setenv("TENANT", "t-42")
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.5}
    endpoint = Endpoint(completion(usage=usage, provider="P1", system_fingerprint="fp"))
    headers = {"X-Tenant": "${TENANT}"}
    async with serving(endpoint, api_key_env="MY_KEY", headers=headers) as backend:
        assert isinstance(backend, Backend)
        made = await reply_of(backend)
        assert backend.capabilities.constraints == frozenset()
        assert backend.tokenizer() is None
        assert KEY not in repr(backend.describe()) + repr(vars(backend))
    assert endpoint.bodies == [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "Which?"}],
            "max_tokens": 24,
            "temperature": 0.0,
            "seed": 3,
        }
    ]
    assert endpoint.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert endpoint.headers[0]["X-Tenant"] == "t-42"
    assert (made.request_id, made.text, made.finish_reason) == ("r1", "B", "stop")
    assert (made.served_model, made.provider, made.fingerprint) == ("served", "P1", "fp")
    assert (made.prompt_tokens, made.completion_tokens, made.attempts) == (10, 2, 1)
    assert (made.cost, made.cost_source) == (0.5, "endpoint")
    assert made.started_at.endswith("+00:00")
    assert made.latency_s is not None and made.latency_s > 0
    assert made.body is not None
    assert json.loads(made.body)["usage"] == usage


async def test_body_holds_what_the_study_says() -> None:
    sampling = Sampling(max_tokens=9, temperature=0.7, top_p=0.9, stop=("\n",))
    extra = {"provider": {"order": ["P1"]}, "seed": None}
    endpoint = Endpoint(completion())
    async with serving(endpoint, extra_body=extra) as backend:
        await reply_of(backend, replace(REQUEST, sampling=sampling))
    sent = endpoint.bodies[0]
    assert {k: sent[k] for k in ("max_tokens", "temperature", "top_p", "stop", "provider")} == {
        "max_tokens": 9,
        "temperature": 0.7,
        "top_p": 0.9,
        "stop": ["\n"],
        "provider": {"order": ["P1"]},
    }
    assert "seed" not in sent


async def test_cost_by_price_and_unknown_cost() -> None:
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 100_000}
    price = {"prompt": 1.0, "completion": 20.0}
    async with serving(Endpoint(completion(usage=usage), completion()), price=price) as backend:
        priced, unknown = await reply_of(backend), await reply_of(backend)
    assert (priced.cost, priced.cost_source) == (3.0, "price")
    assert (unknown.cost, unknown.cost_source, unknown.prompt_tokens) == (None, None, None)


async def test_blank_replies_are_replies() -> None:
    # api.jsonl, b023: the blank reply stays in the denominator.
    endpoint = Endpoint(completion(""), completion("  "))
    async with serving(endpoint) as backend:
        assert [(await reply_of(backend)).text for _ in range(2)] == ["", "  "]
    assert len(endpoint.bodies) == 2


@pytest.mark.parametrize(
    "trouble",
    [
        error(429),
        error(500),
        error(503),
        error(524),
        web.Response(body=b'{"error": {"code": 502, "message": "overloaded"}}'),
        web.Response(body=b'{"choices": null}'),
        web.Response(body=b'{"choices": [{"mess'),
        web.Response(body=b"<html>", headers={"Content-Type": "text/html"}),
    ],
    ids=["429", "500", "503", "524", "error-in-200", "no-choices", "cut-json", "html"],
)
async def test_what_can_heal_is_asked_again(trouble: web.Response) -> None:
    waits, endpoint = Waits(), Endpoint(trouble, trouble, completion())
    async with serving(endpoint, waits) as backend:
        made = await reply_of(backend)
    assert (made.text, made.attempts, len(endpoint.bodies)) == ("B", 3, 3)
    assert len(waits) == 2
    assert 0 <= waits[0] <= 2 and 0 <= waits[1] <= 4


@pytest.mark.parametrize(
    ("trouble", "kind", "fatal"),
    [
        (error(400, "Unsupported parameter"), FailureKind.REFUSED_PARAMETERS, False),
        (error(400, "maximum context length is 8192"), FailureKind.CONTEXT_OVERFLOW, False),
        (error(400, "Azure's content management policy"), FailureKind.CONTENT_FILTER, False),
        (error(401), FailureKind.AUTH, True),
        (error(402), FailureKind.QUOTA, True),
        (error(403), FailureKind.AUTH, True),
        (error(404), FailureKind.NOT_FOUND, True),
        (error(429, "quota: free-models-per-day"), FailureKind.QUOTA, True),
        (error(429, headers={"Retry-After": "7200"}), FailureKind.QUOTA, True),
    ],
)
async def test_what_cannot_heal_is_asked_once(
    trouble: web.Response, kind: FailureKind, fatal: bool
) -> None:
    waits, endpoint = Waits(), Endpoint(trouble)
    async with serving(endpoint, waits) as backend:
        made = await failure_of(backend)
    assert (made.kind, made.fatal, made.attempts) == (kind, fatal, 1)
    assert (len(endpoint.bodies), waits) == (1, [])
    assert made.at.endswith("+00:00")


@pytest.mark.parametrize(("attempts", "hits"), [(1, 1), (3, 3), (5, 5)])
async def test_attempts_are_the_requests_sent(attempts: int, hits: int) -> None:
    # api.jsonl, b031: one layer of retries, counted at the server.
    endpoint = Endpoint(error(503, "busy"))
    async with serving(endpoint, limits=Limits(attempts=attempts)) as backend:
        made = await failure_of(backend)
    assert (made.kind, made.attempts, len(endpoint.bodies)) == (FailureKind.SERVER, hits, hits)
    assert "busy" in made.message and not made.fatal


async def test_gateway_timeouts_are_bounded_tighter() -> None:
    # api.jsonl, b011.
    endpoint = Endpoint(error(524))
    async with serving(endpoint) as backend:
        made = await failure_of(backend)
    assert (made.kind, len(endpoint.bodies)) == (FailureKind.TIMEOUT, 3)


async def test_retry_after_is_waited_for() -> None:
    # api.jsonl, b008: never shortened, a little jitter on top.
    waits = Waits()
    endpoint = Endpoint(
        error(429, headers={"Retry-After": "95"}),
        error(
            503,
            headers={
                "Retry-After": "Thu, 01 Jan 2026 00:01:00 GMT",
                "Date": "Thu, 01 Jan 2026 00:00:00 GMT",
            },
        ),
        completion(),
    )
    async with serving(endpoint, waits) as backend:
        await reply_of(backend)
    assert 95 <= waits[0] <= 105
    assert 60 <= waits[1] <= 70


async def test_what_is_waited_for_is_told_until_a_reply_comes() -> None:
    told: list[str | None] = []

    class Told(Waits):
        async def __call__(self, seconds: float) -> None:
            told.append(backend.waiting())
            self.append(seconds)

    endpoint = Endpoint(error(429, "slow down", {"Retry-After": "95"}), completion())
    async with serving(endpoint, Told()) as backend:
        assert backend.waiting() is None
        await reply_of(backend)
        assert backend.waiting() is None
    assert told[0] is not None
    assert re.fullmatch(r"waiting (9[5-9]|10\d) s after HTTP 429: slow down", told[0])


async def test_no_attempt_starts_after_the_budget() -> None:
    waits = Waits()
    endpoint = Endpoint(error(429, headers={"Retry-After": "60"}))
    async with serving(endpoint, waits, Limits(budget_s=50)) as backend:
        made = await failure_of(backend)
    assert (made.attempts, waits) == (1, [])


async def test_connection_dropped_inside_the_body() -> None:
    async def drop(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"choices": [')
        assert request.transport is not None
        request.transport.close()
        return response

    endpoint = Endpoint(drop, completion())
    async with serving(endpoint) as backend:
        made = await reply_of(backend)
    assert (made.text, made.attempts) == ("B", 2)


async def test_refused_connection() -> None:
    # api.jsonl, b036: a failure, never an empty reply.
    url, waits = f"http://127.0.0.1:{unused_port()}/v1", Waits()
    spec = ModelSpec("m", "openai:m", base_url=url)
    backend = OpenAIChat(spec, url, None, sleep=waits, clock=waits.clock)
    made = await failure_of(backend)
    await backend.aclose()
    assert (made.kind, made.attempts, len(waits)) == (FailureKind.CONNECTION, 5, 4)


async def test_reply_that_is_not_http() -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"hello?\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(babble, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        spec = ModelSpec("m", "openai:m", base_url=url)
        waits = Waits()
        backend = OpenAIChat(spec, url, None, sleep=waits, clock=waits.clock)
        made = await failure_of(backend)
        await backend.aclose()
    assert (made.kind, made.attempts) == (FailureKind.MALFORMED, 5)


async def test_endpoint_that_never_answers() -> None:
    release = asyncio.Event()

    async def hang(_: web.Request) -> web.StreamResponse:
        await release.wait()
        return web.Response()

    endpoint = Endpoint(hang)
    async with serving(endpoint, limits=Limits(whole_s=0.02)) as backend:
        made = await failure_of(backend)
        release.set()
    assert (made.kind, made.attempts) == (FailureKind.TIMEOUT, 3)
    assert "max_tokens" in made.message


async def test_endless_body_is_not_read_to_its_end() -> None:
    endpoint = Endpoint(web.Response(body=b" " * 5000))
    async with serving(endpoint, limits=Limits(body_bytes=1000)) as backend:
        made = await failure_of(backend)
    assert (made.kind, made.attempts) == (FailureKind.MALFORMED, 5)
    assert "1000 bytes" in made.message


async def test_redirect_is_not_followed_with_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    elsewhere = Endpoint(completion())
    async with serving(elsewhere) as other:
        target = other.describe()["url"]
        endpoint = Endpoint(web.Response(status=307, headers={"Location": target}))
        async with serving(endpoint, api_key_env="MY_KEY") as backend:
            made = await failure_of(backend)
    assert target in made.message
    assert made.fatal
    assert elsewhere.bodies == []


@pytest.mark.parametrize(
    "spelled",
    [KEY, KEY.replace("/", "\\/"), KEY.replace("-", "\\u002D"), KEY.replace("+", "%2b")],
    ids=["plain", "slash", "unicode", "percent"],
)
async def test_echoed_key_goes_nowhere(monkeypatch: pytest.MonkeyPatch, spelled: str) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    text = json.dumps(completion("KEY", model="KEY")).replace("KEY", spelled)
    bad = '{"error": {"message": "bad key: KEY"}}'.replace("KEY", spelled)
    endpoint = Endpoint(
        web.Response(body=text.encode()), web.Response(status=401, body=bad.encode())
    )
    async with serving(endpoint, api_key_env="MY_KEY") as backend:
        made, failed = await reply_of(backend), await failure_of(backend)
    assert made.text == made.served_model == MASK
    assert made.body is not None
    for kept in (repr(made), made.body.decode(), repr(failed)):
        assert KEY not in kept and spelled not in kept
    assert failed.message == f"HTTP 401: bad key: {MASK}"


async def test_key_is_not_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    caplog.set_level(0)
    async with serving(Endpoint(error(500, KEY)), api_key_env="MY_KEY") as backend:
        await backend.generate(REQUEST)
    assert KEY not in caplog.text


def test_short_dummies_are_no_secrets() -> None:
    assert Redactor([Secret("EMPTY")]).text("EMPTY") == "EMPTY"
    assert repr(Secret(KEY)) == "Secret([secret])"


def test_longer_secret_first_and_escapes_of_the_text_before() -> None:
    redactor = Redactor([Secret("abcdefgh"), Secret("abcdefgh-ijkl")])
    assert redactor.body(b'{"x": "\\nabcdefgh-ijkl abcdefgh"}') == b'{"x": "\\n[secret] [secret]"}'


async def test_constrained_requests_are_not_sent() -> None:
    endpoint = Endpoint(completion())
    held = replace(REQUEST, mode="constrained", constraint=Constraint("regex", "A|B"))
    async with serving(endpoint) as backend:
        made = await failure_of(backend, held)
    assert (made.kind, made.fatal, made.attempts) == (FailureKind.INTERNAL, True, 0)
    assert endpoint.bodies == []


async def test_cancelling_is_not_a_failure() -> None:
    release, arrived = asyncio.Event(), asyncio.Event()

    async def hang(_: web.Request) -> web.StreamResponse:
        arrived.set()
        await release.wait()
        return web.Response()

    async with serving(Endpoint(hang)) as backend:
        task = asyncio.create_task(backend.generate(REQUEST))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()


def test_default_endpoints_and_their_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    openai = open_openai(ModelSpec("m", "openai:gpt-4o-mini")).describe()
    assert openai["url"] == "https://api.openai.com/v1/chat/completions"
    assert (openai["key"], openai["model"]) == ("OPENAI_API_KEY", "gpt-4o-mini")
    router = open_backend(ModelSpec("m", "openrouter:microsoft/phi-4")).describe()
    assert router["url"] == "https://openrouter.ai/api/v1/chat/completions"
    assert (router["key"], router["model"]) == ("OPENROUTER_API_KEY", "microsoft/phi-4")


def test_no_key_goes_to_a_custom_base_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    for make in (open_openai, open_openrouter):
        backend = make(ModelSpec("m", "openai:m", base_url="http://localhost:8000/v1"))
        assert backend.describe()["key"] == "none"


@pytest.mark.parametrize(
    "base", ["http://h/v1", "http://h/v1/", "http://h/v1/chat/completions", " http://h/v1 "]
)
def test_spellings_of_the_base_url(base: str) -> None:
    backend = open_openai(ModelSpec("m", "openai:m", base_url=base))
    assert backend.describe()["url"] == "http://h/v1/chat/completions"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"base_url": None}, "'m': the environment variable OPENAI_API_KEY is not set"),
        ({"api_key_env": "BLANK"}, "BLANK is not set"),
        ({"api_key_env": "ODD"}, "ODD holds characters no key has"),
        ({"headers": {"X-Key": "${UNSET}"}}, "UNSET is not set"),
        ({"headers": {"X Key": "1"}}, "'X Key': expected a header name"),
        ({"headers": {"X-Key": "1\r\nEvil: 2"}}, "text on one line"),
        ({"address": "openai:"}, "expected a model's name"),
        ({"base_url": "localhost:8000"}, "base_url: expected http.* begins with neither"),
        ({"base_url": "ftp://h/v1"}, "begins with neither http:// nor https://"),
        ({"base_url": "http://u:p@h/v1"}, "without user, password or query: .*api_key_env"),
        ({"base_url": "http://h/v1?key=1"}, "without user, password or query: it ends before"),
        ({"base_url": "http://h:99999/v1"}, "base_url: .*: port 99999 is not .* 1 to 65535"),
        ({"base_url": "http://[::1]:0/v1"}, "port 0 is not a number from 1 to 65535"),
        ({"base_url": "http://h:key/v1"}, ": the port is not a number from 1 to 65535"),
        ({"base_url": "http:/h/v1"}, "there is no host"),
        ({"base_url": "http://h o/v1"}, "a space or an unprintable"),
        ({"base_url": "http://[::1/v1"}, "brackets hold no IPv6 address"),
        ({"base_url": "http://h\\v1"}, "host's name is malformed"),
        ({"base_url": "http://" + "h" * 64 + "/v1"}, "host's name is malformed"),
        ({"extra_body": {"model": "x"}}, "'model' is set by the study"),
        ({"extra_body": {"temperature": 1}}, "'temperature' is set by .* null leaves it out"),
        ({"extra_body": {"x": float("nan")}}, "expected plain JSON"),
    ],
)
def test_mistakes_are_refused_before_any_request(
    monkeypatch: pytest.MonkeyPatch, entry: dict[str, Any], message: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("UNSET", raising=False)
    monkeypatch.setenv("BLANK", " \n")
    monkeypatch.setenv("ODD", "two\nlines")
    fields = {"name": "m", "address": "openai:m", "base_url": "http://h/v1", **entry}
    with pytest.raises(BackendError, match=message) as caught:
        open_openai(ModelSpec(**fields))
    assert "\n" not in str(caught.value)


def test_own_authorization_header_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("MY_TOKEN", KEY)
    headers = {"Authorization": "Token ${MY_TOKEN}"}
    open_openai(ModelSpec("m", "openai:m", headers=headers))
