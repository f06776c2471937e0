r"""One endpoint over HTTP, by pyreqwest (Rust's reqwest): hard bounds, no redirects, no cookies.

Why this client: what a run costs on the client's side is the product's own cost, and it was
measured on two cores of an AMD EPYC (2026-11-30; bare loops of 256 connections against a server
with 50 ms latency, `benchmarks/http_throughput.py --clients`). aiohttp made 1,527 requests/s at
396 µs of processor time each, pyreqwest 4,127/s at 152 µs. A client written for this alone, 420
lines on httptools, came to 4,057/s at 87 µs: not enough for a protocol of our own to look after,
and it knew no proxies.

Redirects are not followed (another host would be given the key), and certificates are always
verified: there is no switch. Proxies are those of the environment, except to this machine itself.
"""

from __future__ import annotations

import atexit
import contextlib
import ipaddress
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import NamedTuple
from urllib.parse import urlsplit

from pyreqwest.client import Client, ClientBuilder, SyncClientBuilder
from pyreqwest.exceptions import (
    BodyDecodeError,
    BuilderError,
    DecodeError,
    DetailedPyreqwestError,
    ReadTimeoutError,
    RequestTimeoutError,
)
from pyreqwest.multipart import FormBuilder, PartBuilder
from pyreqwest.request import RequestBuilder

from formatspan.backends.redaction import Secret


class Response(NamedTuple):
    """A whole response."""

    status: int
    headers: dict[str, str]
    """Names in lower case; of a repeated header, the last value."""
    body: bytes
    """Decompressed."""
    first_byte_s: float
    """Seconds from sending to the first piece of the body; all of a short one comes with it."""


class Broken(Exception):
    """The connection ended or failed before a whole response had come."""


class Refused(Broken):
    """No connection could be made."""


class Untrusted(Broken):
    """The server's certificate was refused."""


class NotHttp(Broken):
    """What came is not HTTP, or encoded in a way that was not asked for."""


class TooLong(Broken):
    """The response is longer than is read."""


class TimedOut(Broken):
    """The response, or its first byte, took too long."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long one request may take, and how much may come back."""

    connect_s: float = 15.0
    first_byte_s: float = 300.0
    """Seconds from sending to the first byte, which is the whole of an answer that is not
    streamed; and from any piece to the next."""
    whole_s: float = 330.0
    """Seconds from sending to the last byte."""
    body_bytes: int = 16 << 20
    """Longest body that is read, decompressed."""


class HttpClient:
    """Sends requests to one host.

    Args:
        url: Any URL of the host; its path is not used.
        headers: Sent with every request.
        bounds: Of every request.
    """

    def __init__(
        self, url: str, headers: Secret[dict[str, str]], bounds: Bounds | None = None
    ) -> None:
        parts = urlsplit(url)
        self._origin, self._host = f"{parts.scheme}://{parts.netloc}", parts.netloc
        self._bounds = bounds or Bounds()
        sent = dict(headers.reveal())
        # Not among the client's own: those would win over the type of a form.
        self._type = sent.pop("content-type", "application/json")
        self._client: Client | None = _client(parts.hostname or "", sent, self._bounds)

    async def send(self, method: str, path: str, body: bytes = b"") -> Response:
        """One request and its whole response.

        Where the task that waits is cancelled, the library goes on with the request until its
        bounds; hence all bounds are the library's own and not `asyncio.timeout`.

        Args:
            method: Such as ``POST``.
            path: Path and query, ASCII.
            body: Its bytes.

        Raises:
            Broken: There was no whole response; its subclasses say why. Never a response that
                ended early.
        """
        request = self._open().request(method, self._origin + path)
        if body:
            request = request.header("content-type", self._type).body_bytes(body)
        return await self._whole(request)

    async def upload(
        self, path: str, file: tuple[str, bytes], fields: Mapping[str, str]
    ) -> Response:
        """Send a file as a form, as `send`.

        Args:
            path: As of `send`.
            file: Name and content, which is JSON lines.
            fields: Further fields of the form.
        """
        form = FormBuilder()
        for name, value in fields.items():
            form = form.text(name, value)
        part = PartBuilder.from_bytes(file[1]).file_name(file[0]).mime("application/jsonl")
        request = self._open().post(self._origin + path).multipart(form.part("file", part))
        return await self._whole(request)

    async def aclose(self) -> None:
        """End all connections; nothing can be sent any more."""
        if self._client is not None:
            await self._client.close()
            self._client = None  # kept connections end with it

    def _open(self) -> Client:
        if self._client is None:
            raise Broken("the client was closed")
        return self._client

    async def _whole(self, request: RequestBuilder) -> Response:
        sent, most = time.perf_counter(), self._bounds.body_bytes
        try:
            async with request.build_streamed() as response:
                first_s = time.perf_counter() - sent
                body = await response.body_reader.read(most + 1)
        except DetailedPyreqwestError as error:
            raise self._trouble(error) from None
        found = Response(response.status, dict(response.headers), bytes(body or b""), first_s)
        if len(found.body) > most:
            raise TooLong(f"a body of more than {most} bytes")
        if found.status == 101:
            raise NotHttp("the server switched protocols")
        if encoding := found.headers.get("content-encoding", "").replace("identity", ""):
            raise NotHttp(f"the body is encoded as {encoding!r}, which was not asked for")
        return found

    def _trouble(self, error: DetailedPyreqwestError) -> Broken:
        """What the library says, in this module's words."""
        said = [cause["message"] for cause in error.details["causes"] or []]
        why = said[-1] if said else error.message
        if isinstance(error, RequestTimeoutError):
            return self._late(error, connecting=_CONNECTING in said)
        if "invalid peer certificate" in why:
            return Untrusted(f"the certificate was refused: {why}")
        if _CONNECTING in said:
            return Refused(f"no connection to {self._host}: {why}")
        if why == "message head is too large":
            return TooLong(f"headers that are too long: {why}")
        if isinstance(error, BodyDecodeError) and _READING not in said:
            return NotHttp(f"the body cannot be decompressed: {why}")
        if isinstance(error, DecodeError) and not isinstance(error, BodyDecodeError):
            return NotHttp(f"the reply is not HTTP: {why}")
        if isinstance(error, BuilderError):
            return Broken(f"the request cannot be sent: {why}")
        return Broken(why)

    def _late(self, error: RequestTimeoutError, *, connecting: bool) -> Broken:
        bounds = self._bounds
        if connecting:
            return Refused(f"no connection to {self._host} in {bounds.connect_s:g} s")
        if isinstance(error, ReadTimeoutError):
            return TimedOut(f"no whole reply within {bounds.whole_s:g} s")
        limit = min(bounds.first_byte_s, bounds.whole_s)
        return TimedOut(f"no first byte within {limit:g} s")


_CONNECTING = "client error (Connect)"
_READING = "error reading a body from connection"


def _client(host: str, headers: dict[str, str], bounds: Bounds) -> Client:
    _settle_before_exit()
    built = (
        ClientBuilder()
        .default_headers({"accept": "application/json", "accept-encoding": "identity", **headers})
        .follow_redirects(False)
        .default_cookie_store(False)
        .referer(False)
        .brotli(False)
        .zstd(False)
        .connect_timeout(timedelta(seconds=bounds.connect_s))
        .read_timeout(timedelta(seconds=bounds.first_byte_s))
        .timeout(timedelta(seconds=bounds.whole_s))
    )
    return (built.no_proxy() if _is_here(host) else built).build()


def _is_here(host: str) -> bool:
    """Whether a host is this machine, which no proxy can reach."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


@cache
def _settle_before_exit() -> None:
    """Let the library's thread let go of the interpreter before the interpreter ends.

    That thread wakes the event loop by a call into Python. With pyreqwest 0.15.1 the program may
    have got to its end before that call returns, and is then aborted (one in twenty short ones
    on asyncio's own loop, none seen on uvloop).
    """
    atexit.register(settle)


def settle() -> None:
    """Return when the library's thread has done all that it was given before.

    It has one thread, which takes one thing after the other; so an answer to a request that is
    refused before it touches any network tells that everything earlier is done.
    """
    client = SyncClientBuilder().https_only(True).no_proxy().build()
    with contextlib.suppress(BuilderError):
        client.get("http://localhost/").build().send()


__all__ = [
    "Bounds",
    "Broken",
    "HttpClient",
    "NotHttp",
    "Refused",
    "Response",
    "TimedOut",
    "TooLong",
    "Untrusted",
    "settle",
]
