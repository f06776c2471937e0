"""The HTTP client against servers that are slow, rude, or not what they say they are."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import inspect
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from formatspan.backends import http_client
from formatspan.backends.base import ModelSpec
from formatspan.backends.http_client import Bounds, HttpClient, Refused, Untrusted
from formatspan.backends.http_connection import Broken, NotHttp, Stale, TimedOut, TooLong
from formatspan.backends.openai_chat import OpenAIChat
from formatspan.backends.redaction import Secret
from formatspan.records import Failure, FailureKind, Message, Request, Sampling
from impatient import no_sleep

CERTIFICATE = Path(__file__).parent / "self_signed.pem"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    return head + await reader.readexactly(length)


def saying(*replies: bytes, close: bool = False) -> Talk:
    """A server that gives these replies in turn, whatever it is asked."""
    left = list(replies)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while left:
                await read_request(reader)
                writer.write(left.pop(0))
                await writer.drain()
                if close:
                    break
            else:
                await reader.read()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    return talk


@asynccontextmanager
async def client_of(
    talk: Talk, bounds: Bounds | None = None, context: ssl.SSLContext | None = None
) -> AsyncIterator[HttpClient]:
    talking: set[asyncio.Task[None]] = set()

    async def tracked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talking.add(task)
        try:
            await talk(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    server = await asyncio.start_server(tracked, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    scheme = "https" if context else "http"
    client = HttpClient(f"{scheme}://127.0.0.1:{port}/v1", Secret({"x-one": "1"}), bounds)
    try:
        yield client
    finally:
        await client.aclose()
        server.close()
        await asyncio.wait(talking) if talking else None


async def test_what_is_sent_and_what_comes_back() -> None:
    seen: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await read_request(reader))
        writer.write(b"HTTP/1.1 429 Slow\r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\nhi")
        writer.close()

    async with client_of(talk) as client:
        found = await client.send("POST", "/v1/x", b"body")
    assert (found.status, found.body, found.headers["retry-after"]) == (429, b"hi", "3")
    assert found.first_byte_s >= 0
    head, _, body = seen[0].partition(b"\r\n\r\n")
    assert body == b"body"
    assert head.startswith(b"POST /v1/x HTTP/1.1\r\ncontent-length: 4\r\nhost: 127.0.0.1:")
    assert b"x-one: 1" in head


@pytest.mark.parametrize(
    ("reply", "body"),
    [
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n",
            b"hi",
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"hi"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.0 200 OK\r\n\r\nhi", b"hi"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 22\r\n\r\n"
            + gzip.compress(b"hi"),
            b"hi",
        ),
    ],
    ids=["chunked", "continue", "empty", "to-the-end", "gzip"],
)
async def test_bodies_of_every_framing(reply: bytes, body: bytes) -> None:
    async with client_of(saying(reply, close=True)) as client:
        assert (await client.send("POST", "/")).body == body


@pytest.mark.parametrize(
    ("reply", "trouble"),
    [
        (b"", Broken),
        (b"HTTP/1.1 200 OK\r\n", Broken),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhi", Broken),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhi", Broken),
        (b"SSH-2.0-OpenSSH\r\n\r\n", NotHttp),
        (b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", NotHttp),
        (OK + OK, NotHttp),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 2\r\n\r\nhi", NotHttp),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\nhi", NotHttp),
        (
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 12\r\n\r\n"
            + gzip.compress(b"hi")[:12],
            Broken,
        ),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 300_000, TooLong),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200_000, TooLong),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n" + b"x" * 5000, TooLong),
        (
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 9999\r\n\r\n"
            + gzip.compress(b"x" * 1_000_000),
            TooLong,
        ),
    ],
)
async def test_what_is_no_whole_reply(reply: bytes, trouble: type[Broken]) -> None:
    bounds = Bounds(body_bytes=4000)
    async with client_of(saying(reply, close=True), bounds) as client:
        with pytest.raises(trouble):
            await client.send("POST", "/")


async def test_connections_are_kept_and_stale_ones_are_replaced() -> None:
    opened = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(writer)
        for _ in range(2):  # two replies, then the server has had enough
            await read_request(reader)
            writer.write(OK)
        if len(opened) < 3:
            await reader.readuntil(b"\r\n\r\n")
        writer.close()

    async with client_of(talk) as client:
        for _ in range(5):
            assert (await client.send("POST", "/")).status == 200
    assert len(opened) == 3, "the third and the fifth request met a connection that closed"


async def test_a_fresh_connection_that_closes_is_no_stale_one() -> None:
    async with client_of(saying(b"", close=True)) as client:
        with pytest.raises(Broken) as caught:
            await client.send("POST", "/")
    assert not isinstance(caught.value, Stale)


async def test_what_comes_unasked_is_never_the_next_answer() -> None:
    said = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(OK)
        await said.wait()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil")
        await reader.read()
        writer.close()

    async with client_of(talk) as client:
        assert (await client.send("POST", "/")).body == b"hi"
        said.set()
        while client._kept[0].connection.usable:
            await asyncio.sleep(0)
        assert client._idle() is None


async def test_a_first_byte_that_never_comes() -> None:
    async with client_of(saying(OK[:0]), Bounds(first_byte_s=0.02)) as client:
        with pytest.raises(TimedOut, match=r"no first byte within 0\.02 s"):
            await client.send("POST", "/")


async def test_a_last_byte_that_never_comes() -> None:
    bounds = Bounds(first_byte_s=5, whole_s=0.05)
    async with client_of(saying(OK[:-1]), bounds) as client:
        with pytest.raises(TimedOut, match="within"):
            await client.send("POST", "/")


async def test_a_host_that_does_not_take_connections(unused_tcp_port: int) -> None:
    client = HttpClient(f"http://127.0.0.1:{unused_tcp_port}", Secret({}))
    with pytest.raises(Refused, match=f"127.0.0.1:{unused_tcp_port}"):
        await client.send("POST", "/")


async def test_a_connection_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", never)
    client = HttpClient("http://h", Secret({}), Bounds(connect_s=0.01))
    with pytest.raises(Refused, match=r"no connection to h:80 in 0\.01 s"):
        await client.send("POST", "/")


def _tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


async def test_a_certificate_that_nobody_vouches_for_is_refused() -> None:
    async with client_of(saying(OK), context=_tls()) as client:
        with pytest.raises(Untrusted, match="self-signed"):
            await client.send("POST", "/")


async def test_a_certificate_that_the_system_trusts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    async with client_of(saying(OK), context=_tls()) as client:
        assert (await client.send("POST", "/")).body == b"hi"


async def test_a_certificate_of_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    async with client_of(saying(OK), context=_tls()) as client:
        client._place = client._place._replace(host="127.0.0.2")
        server = await asyncio.start_server(saying(OK), "127.0.0.2", 0, ssl=_tls())
        client._place = client._place._replace(port=server.sockets[0].getsockname()[1])
        with pytest.raises(Untrusted, match="IP address mismatch"):
            await client.send("POST", "/")
        server.close()


async def test_a_refused_certificate_stops_the_model() -> None:
    server = await asyncio.start_server(saying(OK), "127.0.0.1", 0, ssl=_tls())
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    spec = ModelSpec("m", "openai:m", base_url=url)
    backend = OpenAIChat(spec, url, None, sleep=no_sleep)
    request = Request("r", "openai:m", "", (Message("user", "?"),), Sampling(), 0)
    made = await backend.generate(request)
    assert isinstance(made, Failure)
    assert (made.kind, made.fatal, made.attempts) == (FailureKind.CONNECTION, True, 1)
    assert "certificate" in made.message
    server.close()


def test_there_is_no_switch_for_verification() -> None:
    source = inspect.getsource(http_client)
    assert "create_default_context()" in source
    for way_out in ("CERT_NONE", "check_hostname", "_create_unverified", "verify_mode", "proxy("):
        assert way_out not in source
    names = inspect.signature(HttpClient.__init__).parameters.keys() | Bounds.__slots__
    assert not [n for n in names if "verif" in n or "insecure" in n or "ssl" in n or "tls" in n]
