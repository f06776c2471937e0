"""The HTTP client against servers that are slow, rude, or not what they say they are."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import inspect
import os
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pycurl
import pytest

from formatspan.backends import http_client
from formatspan.backends.base import ModelSpec
from formatspan.backends.http_charset import in_utf8
from formatspan.backends.http_client import Bounds, HttpClient
from formatspan.backends.http_sockets import SocketSet, transfers
from formatspan.backends.http_trouble import (
    Broken,
    NotHttp,
    NotTls,
    ProxyRefused,
    Refused,
    TimedOut,
    TooLong,
    Untrusted,
)
from formatspan.backends.openai_chat import OpenAIChat
from formatspan.backends.redaction import Secret
from formatspan.records import Failure, FailureKind, Message, Request, Sampling
from impatient import no_sleep

HERE = Path(__file__).parent
SELF_SIGNED = HERE / "self_signed.pem"
SIGNED, AUTHORITY = HERE / "signed.pem", HERE / "authority.pem"
"""A certificate for this machine, and the authority that vouches for it, its key thrown away."""
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(autouse=True, params=[transfers, pycurl.AsyncCurlMulti])
def _either_set(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What this system watches sockets with, and what the others do."""
    monkeypatch.setattr(http_client, "transfers", request.param)


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
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
async def served(talk: Talk, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A server; its URL."""
    talking: set[asyncio.Task[None]] = set()

    async def tracked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talking.add(task)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                await talk(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    server = await asyncio.start_server(tracked, "127.0.0.1", 0, ssl=context)
    scheme = "https" if context else "http"
    try:
        yield f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()
        await asyncio.wait(talking) if talking else None


@asynccontextmanager
async def client_of(
    talk: Talk, bounds: Bounds | None = None, context: ssl.SSLContext | None = None
) -> AsyncIterator[HttpClient]:
    async with served(talk, context) as url:
        client = HttpClient(url, Secret({"x-one": "1"}), bounds)
        try:
            yield client
        finally:
            await client.aclose()


async def always(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        await read_request(reader)
        writer.write(OK)


async def test_what_is_sent_and_what_comes_back() -> None:
    seen: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await read_request(reader))
        writer.write(b"HTTP/1.1 429 Slow\r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\nhi")
        writer.close()

    async with client_of(talk) as client:
        found = await client.send("POST", "/v1/x", b"body")
    assert (found.status, found.body, found.headers["retry-after"]) == (429, b"hi", "3")
    head, _, body = seen[0].partition(b"\r\n\r\n")
    assert body == b"body"
    assert head.startswith(b"POST /v1/x HTTP/1.1\r\n")
    told = dict(line.split(b": ") for line in head.lower().split(b"\r\n")[1:])
    assert told.pop(b"host").startswith(b"127.0.0.1:")
    assert told == {
        b"x-one": b"1",
        b"accept": b"application/json",
        b"accept-encoding": b"identity",
        b"content-type": b"application/json",
        b"content-length": b"4",
        b"user-agent": told[b"user-agent"],
    }


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
            + gzip.compress(b"hi", mtime=0),
            b"hi",
        ),
    ],
    ids=["chunked", "continue", "empty", "to-the-end", "gzip"],
)
async def test_bodies_of_every_framing(reply: bytes, body: bytes) -> None:
    async with client_of(saying(reply, close=True)) as client:
        assert (await client.send("POST", "/")).body == body


@pytest.mark.parametrize(
    ("body", "named", "read"),
    [
        ("é".encode("latin-1"), "ISO-8859-1", "é"),
        ('{"a": "é"}'.encode("utf-16"), '"utf-16"', '{"a": "é"}'),
        ('{"a": 1}'.encode("utf-16-le"), "utf-16le", '{"a": 1}'),
        ("é".encode(), "iso-8859-1", "é"),  # a default that is not true
        ("é".encode(), "utf-8", "é"),
        (b"\xe9", "nosuch", None),
        (b"\xe9", "utf-8", None),
        (b"\xe9", "zip", None),
        (b"\xd8\x00\xd8", "utf-16-be", None),
    ],
)
def test_a_charset_that_is_named(body: bytes, named: str, read: str | None) -> None:
    found = in_utf8(body, f"application/json; charset={named}")
    assert found == (body if read is None else read.encode())


@pytest.mark.parametrize(
    ("reply", "trouble"),
    [
        (b"", Broken),
        (b"HTTP/1.1 200 OK\r\n", Broken),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhi", Broken),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhi", Broken),
        (b"SSH-2.0-OpenSSH\r\n\r\n", NotHttp),
        (b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", Broken),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 2\r\n\r\nhi", NotHttp),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\nhi", NotHttp),
        (
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 12\r\n\r\n"
            + gzip.compress(b"hi", mtime=0)[:12],
            Broken,
        ),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 900_000, TooLong),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200_000, TooLong),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n" + b"x" * 9999, TooLong),
        (
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n"
            + gzip.compress(b"x" * 1_000_000, mtime=0),
            TooLong,
        ),
    ],
)
async def test_what_is_no_whole_reply(reply: bytes, trouble: type[Broken]) -> None:
    bounds = Bounds(body_bytes=4000)
    async with client_of(saying(reply, close=True), bounds) as client:
        with pytest.raises(trouble):
            await client.send("POST", "/")


async def test_connections_are_kept_and_closed_ones_are_replaced() -> None:
    closed = [asyncio.Event() for _ in range(3)]
    opened = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(writer)
        for _ in range(2):  # two replies, then the server has had enough
            await read_request(reader)
            writer.write(OK)
        writer.close()
        await writer.wait_closed()
        closed[len(opened) - 1].set()

    async with client_of(talk) as client:
        for i in range(6):
            assert (await client.send("POST", "/")).status == 200
            if i % 2:
                await closed[i // 2].wait()
    assert len(opened) == 3


async def test_many_connections_at_once_are_all_kept() -> None:
    opened, together = [], asyncio.Barrier(300)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                await read_request(reader)
                await together.wait()
                writer.write(OK)

    async with client_of(talk) as client:
        for _ in range(3):
            await asyncio.gather(*(client.send("POST", "/") for _ in range(300)))
    assert len(opened) == 300


@pytest.mark.parametrize("rest", [b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil", b"evil"])
async def test_what_comes_unasked_is_never_the_next_answer(rest: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await read_request(reader)
                writer.write(OK + rest)

    async with client_of(talk) as client:
        for _ in range(20):
            with contextlib.suppress(Broken):
                assert (await client.send("POST", "/")).body == b"hi"


async def test_a_request_that_is_given_up_ends_its_connection() -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        asked.set()
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        ended.set()

    async with client_of(talk) as client:
        task = asyncio.create_task(client.send("POST", "/"))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await ended.wait()


async def test_fifty_megabytes() -> None:
    body = b"x" * 50_000_000
    reply = b"HTTP/1.1 200 OK\r\ncontent-length: 50000000\r\n\r\n" + body
    async with client_of(saying(reply), Bounds(body_bytes=50_000_000)) as client:
        assert (await client.send("POST", "/")).body == body
    async with client_of(saying(reply), Bounds(body_bytes=49_999_999)) as client:
        with pytest.raises(TooLong):
            await client.send("POST", "/")


async def test_a_redirect_is_a_reply_like_any_other() -> None:
    away = b"HTTP/1.1 307 Away\r\nlocation: /other\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\n"
    seen = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                seen.append(await read_request(reader))
                writer.write(away)

    async with client_of(talk) as client:
        found = [await client.send("POST", "/v1/x", b"1") for _ in range(2)]
    assert [(f.status, f.headers["location"]) for f in found] == [(307, "/other")] * 2
    assert len(seen) == 2
    assert not any(b"cookie" in head.lower() for head in seen)


async def test_a_slow_body_is_no_late_first_byte() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n")
        for _ in range(10):
            await asyncio.sleep(0.1)
            writer.write(b"x")
        await reader.read()

    async with client_of(talk, Bounds(first_byte_s=0.8, whole_s=60)) as client:
        assert (await client.send("POST", "/")).body == b"x" * 10


async def test_a_first_byte_that_never_comes() -> None:
    async with client_of(saying(OK[:0]), Bounds(first_byte_s=0.02)) as client:
        with pytest.raises(TimedOut, match=r"no first byte within 0\.02 s"):
            await client.send("POST", "/")


async def test_each_first_byte_has_its_own_time() -> None:
    ended: list[int] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b"/quick" in await read_request(reader):
            writer.write(OK)
        await reader.read()

    async def late(number: int) -> float:
        began = asyncio.get_running_loop().time()
        with pytest.raises(TimedOut):
            await client.send("POST", "/slow")
        ended.append(number)
        return asyncio.get_running_loop().time() - began

    async with client_of(talk, Bounds(first_byte_s=0.1)) as client:
        tasks = []
        for i in range(4):
            tasks.append(asyncio.create_task(late(i)))
            await asyncio.sleep(0.03)
            assert (await client.send("POST", "/quick")).body == b"hi"
        assert min([await task for task in tasks]) > 0.099
    assert ended == [0, 1, 2, 3]


def wakings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Gets an item whenever a set of sockets is woken."""
    woken: list[int] = []
    ready = SocketSet._ready

    def counted(self: SocketSet) -> None:
        woken.append(1)
        ready(self)

    monkeypatch.setattr(http_client, "transfers", SocketSet)
    monkeypatch.setattr(SocketSet, "_ready", counted)
    return woken


async def test_an_idle_connection_that_ends_wakes_nobody_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    woken, ended = wakings(monkeypatch), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(OK)
        writer.close()
        await writer.wait_closed()
        ended.set()

    async with client_of(talk) as client:
        assert (await client.send("POST", "/")).body == b"hi"
        await ended.wait()
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(woken) < 10
        assert (await client.send("POST", "/")).body == b"hi"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="Linux tells descriptors there")
async def test_a_socket_that_a_forked_process_holds_wakes_nobody_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    woken = wakings(monkeypatch)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(OK.replace(b"\r\n", b"\r\nconnection: close\r\n", 1)[:-2])
        await writer.drain()
        copies.append(os.dup(connection()))  # as a forked process would have one
        writer.write(OK[-2:])

    def connection() -> int:
        """The client's end of the only connection to the server."""
        for fd in sorted(map(int, os.listdir("/proc/self/fd"))):
            with contextlib.suppress(OSError):
                end = socket.socket(fileno=os.dup(fd))
                with end:
                    if end.family == socket.AF_INET and end.getpeername()[1] == port:
                        return fd
        raise AssertionError("no connection")

    copies: list[int] = []
    async with served(talk) as url:
        port = urlsplit(url).port
        client = HttpClient(url, Secret({}))
        for _ in range(3):
            assert (await client.send("POST", "/")).body == b"hi"
            await asyncio.sleep(0.02)
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(woken) < 60
        await client.aclose()
        for copy in copies:
            os.close(copy)


async def test_trailers_are_no_headers() -> None:
    trailed = (
        b"HTTP/1.1 103 Early\r\ncontent-encoding: br\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nA: 1\r\ntransfer-encoding: chunked\r\n\r\n"
        b"2\r\nhi\r\n0\r\nContent-Encoding: gzip\r\nA: 2\r\n\r\n"
    )
    async with client_of(saying(trailed)) as client:
        found = await client.send("POST", "/")
    assert (found.body, found.headers["a"]) == (b"hi", "1")
    assert "content-encoding" not in found.headers


async def test_a_transfer_cannot_be_ended_twice() -> None:
    both = SocketSet()
    with pytest.raises(RuntimeError, match="has ended"):
        both.remove_handle(pycurl.Curl())
    await both.aclose()
    await both.aclose()


async def test_a_last_byte_that_never_comes() -> None:
    bounds = Bounds(first_byte_s=5, whole_s=0.05)
    async with client_of(saying(OK[:-1]), bounds) as client:
        with pytest.raises(TimedOut, match="within"):
            await client.send("POST", "/")


async def test_a_host_that_does_not_take_connections(unused_tcp_port: int) -> None:
    client = HttpClient(f"http://127.0.0.1:{unused_tcp_port}", Secret({}))
    with pytest.raises(Refused, match=f"127.0.0.1:{unused_tcp_port}"):
        await client.send("POST", "/")


async def test_a_connection_that_takes_too_long() -> None:
    with socket.socket() as full, contextlib.ExitStack() as others:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):  # its queue is full: nothing is answered any more
            other = others.enter_context(socket.socket())
            other.setblocking(False)
            other.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        client = HttpClient(url, Secret({}), Bounds(connect_s=0.05))
        with pytest.raises(Refused, match=r"no connection to 127\.0\.0\.1:\d+ in 0\.05 s"):
            await client.send("POST", "/")
        await client.aclose()


def _tls(certificate: Path = SELF_SIGNED) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


async def test_a_certificate_that_nobody_vouches_for_is_refused() -> None:
    for certificate in (SELF_SIGNED, SIGNED):
        async with client_of(saying(OK), context=_tls(certificate)) as client:
            with pytest.raises(Untrusted, match="certificate"):
                await client.send("POST", "/")


@pytest.mark.skipif(sys.platform != "linux", reason="SSL_CERT_FILE is read on Linux")
async def test_a_certificate_that_the_system_trusts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(AUTHORITY))
    async with client_of(saying(OK), context=_tls(SIGNED)) as client:
        assert (await client.send("POST", "/")).body == b"hi"


@pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2, and SSL_CERT_FILE")
async def test_a_certificate_of_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(AUTHORITY))
    server = await asyncio.start_server(saying(OK), "127.0.0.2", 0, ssl=_tls(SIGNED))
    port = server.sockets[0].getsockname()[1]
    client = HttpClient(f"https://127.0.0.2:{port}", Secret({}))
    with pytest.raises(Untrusted, match="no alternative certificate subject name"):
        await client.send("POST", "/")
    await client.aclose()
    server.close()


async def test_a_refused_certificate_stops_the_model() -> None:
    server = await asyncio.start_server(saying(OK), "127.0.0.1", 0, ssl=_tls())
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    spec = ModelSpec("m", "openai:m", base_url=url)
    backend = OpenAIChat(spec, url, None, sleep=no_sleep)
    request = Request("r", "openai:m", "", (Message("user", "?"),), Sampling(), 0)
    made = await backend.generate(request)
    assert isinstance(made, Failure)
    assert (made.kind, made.fatal, made.attempts) == (FailureKind.UNTRUSTED, True, 1)
    assert "certificate" in made.message
    server.close()


@pytest.mark.parametrize("hangs_up", [True, False])
async def test_a_server_without_tls_is_told_from_one_that_is_away(
    monkeypatch: pytest.MonkeyPatch, hangs_up: bool
) -> None:
    monkeypatch.setattr(http_client, "_HANDSHAKE_S", 0.01)
    async with served(saying(OK, close=True) if hangs_up else always) as url:
        client = HttpClient(url.replace("http:", "https:"), Secret({}))
        with pytest.raises(NotTls, match="does not speak TLS: write http:// for https://"):
            await client.send("POST", "/")
        await client.aclose()


def test_there_is_no_switch_for_verification() -> None:
    source = inspect.getsource(http_client)
    for way_out in ("VERIFYPEER", "VERIFYHOST", "danger", "insecure"):
        assert way_out not in source
    names = inspect.signature(HttpClient.__init__).parameters.keys() | set(Bounds._fields)
    assert not [n for n in names if "verif" in n or "insecure" in n or "ssl" in n or "tls" in n]


# --- proxies ----------------------------------------------------------------------------------


async def _proxied(
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    *,
    upper: bool = False,
    answer: bytes = OK,
    trouble: type[Exception] = Broken,
    **more: str,
) -> list[bytes]:
    """What a proxy that the environment names is asked."""
    seen: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await read_request(reader))
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    proxy = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    plain = "HTTP_PROXY" if upper else "http_proxy"
    for name, value in {plain: proxy, "HTTPS_PROXY": proxy, **more}.items():
        monkeypatch.setenv(name, value)
    client = HttpClient(url, Secret({}), Bounds(connect_s=5))
    with contextlib.suppress(trouble):
        await client.send("GET", "/v1/models")
    await client.aclose()
    server.close()
    return seen


@pytest.mark.parametrize(
    ("status", "trouble"), [(b"407", ProxyRefused), (b"403", ProxyRefused), (b"502", Refused)]
)
async def test_a_proxy_that_opens_no_tunnel(
    monkeypatch: pytest.MonkeyPatch, status: bytes, trouble: type[Broken]
) -> None:
    no = b"HTTP/1.1 " + status + b" No\r\ncontent-length: 0\r\n\r\n"
    url = "https://model.invalid/v1"
    assert len(await _proxied(monkeypatch, url, answer=no, trouble=trouble)) == 1


async def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    (asked,) = await _proxied(monkeypatch, "http://model.invalid/v1")
    assert asked.startswith(b"GET http://model.invalid/v1/models HTTP/1.1\r\n")
    (asked,) = await _proxied(monkeypatch, "https://model.invalid/v1")
    assert asked.startswith(b"CONNECT model.invalid:443 HTTP/1.1\r\n")


async def test_a_proxy_s_password_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://user:geheim@127.0.0.1:notaport")
    client = HttpClient("https://model.invalid/v1", Secret({}))
    with pytest.raises(Broken) as told:
        await client.send("GET", "/")
    await client.aclose()
    assert "127.0.0.1" in str(told.value) and "geheim" not in str(told.value)


async def test_hosts_and_paths_beyond_ascii() -> None:
    client = HttpClient("http://ex\u00e4mple.invalid/v1", Secret({}))
    with pytest.raises(Refused, match=r"xn--exmple-cua\.invalid"):
        await client.send("POST", "/v1/\u00e4")
    await client.aclose()


async def test_a_proxy_in_upper_case_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "http://model.invalid/v1"
    assert await _proxied(monkeypatch, url, upper=True, REQUEST_METHOD="GET") == []  # a CGI script
    monkeypatch.delenv("REQUEST_METHOD")
    (asked,) = await _proxied(monkeypatch, url, upper=True)
    assert asked.startswith(b"GET http://model.invalid/v1/models HTTP/1.1\r\n")
    assert await _proxied(monkeypatch, url, upper=True, NO_PROXY=".invalid") == []


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost:1", "[::1]:1"])
async def test_no_proxy_to_this_machine(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    assert await _proxied(monkeypatch, f"http://{host}/v1") == []


async def test_no_proxy_where_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await _proxied(monkeypatch, "http://model.invalid/v1", NO_PROXY=".invalid") == []


# --- the end of the program -------------------------------------------------------------------


SHORT = """
import asyncio, sys
from formatspan.backends.http_client import HttpClient
from formatspan.backends.redaction import Secret

async def main():
    client = HttpClient(sys.argv[1], Secret({}))
    await asyncio.gather(*(client.send("POST", "/", b"1") for _ in range(30)))
    if sys.argv[2] == "closed":
        await client.aclose()
    elif sys.argv[2] == "interrupted":
        asyncio.ensure_future(client.send("POST", "/", b"1"))
        raise KeyboardInterrupt

if sys.argv[3] == "uvloop":
    from formatspan.loops import run_to_end as run
else:
    run = asyncio.run
try:
    run(main())
except KeyboardInterrupt:
    raise SystemExit(130) from None
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize(("how", "code"), [("closed", 0), ("open", 0), ("interrupted", 130)])
async def test_short_programs_end_well(how: str, code: int, loop: str) -> None:
    """Whether the client was closed or not."""
    async with served(always) as url:
        for _ in range(3):
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", SHORT, url, how, loop), stderr=asyncio.subprocess.PIPE
            )
            _, said = await process.communicate()
            assert (process.returncode, said) == (code, b"")
