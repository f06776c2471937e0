r"""A small HTTP client for one endpoint: kept connections, hard bounds, no redirects.

Why not a library: what a run costs on the client's side is the product's own cost, and it was
measured (`benchmarks/http_throughput.py --clients`; figures in benchmarks/RESULTS.md). Bare
loops of 256 connections against a server with 50 ms latency cost aiohttp four to five times the
processor time of this client, httpx a hundred times. pyreqwest came to twice, and in the version
at hand ended one short program in six by an abort of the interpreter at exit, which a tool
whose exit code counts cannot have. Parsing, where most of the danger is, is httptools'.

What it leaves out on purpose: redirects (another host would be given the key), cookies, proxies
from the environment, and any way to switch off the verification of certificates.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from formatspan.backends.http_connection import Broken, Connection, Response, Stale, TimedOut
from formatspan.backends.redaction import Secret

IDLE_S = 30.0
"""Seconds after which a kept connection is not used again."""


class Refused(Broken):
    """No connection could be made."""


class Untrusted(Broken):
    """The server's certificate was refused."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long one request may take, and how much may come back."""

    connect_s: float = 15.0
    first_byte_s: float = 300.0
    """Seconds from sending to the first byte: the whole of an answer that is not streamed."""
    whole_s: float = 330.0
    """Seconds from sending to the last byte."""
    body_bytes: int = 16 << 20
    """Longest body that is read, decompressed."""


class _Place(NamedTuple):
    host: str
    port: int
    tls: bool


class _Kept(NamedTuple):
    connection: Connection
    since: float


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
        tls = parts.scheme == "https"
        host = (parts.hostname or "").encode("idna").decode()
        self._place = _Place(host, parts.port or (443 if tls else 80), tls)
        self._bounds = bounds or Bounds()
        self._head = Secret(_lines(parts.netloc.rpartition("@")[2], headers.reveal()))
        self._kept: list[_Kept] = []
        self._context: ssl.SSLContext | None = None

    async def send(self, method: str, path: str, body: bytes = b"") -> Response:
        """One request and its whole response.

        Args:
            method: Such as ``POST``.
            path: Path and query, ASCII.
            body: Its bytes.

        Raises:
            Broken: There was no whole response; its subclasses say why. Never a response that
                ended early.
        """
        start = f"{method} {path} HTTP/1.1\r\ncontent-length: {len(body)}\r\n".encode("ascii")
        data = start + self._head.reveal() + body
        while True:
            connection = self._idle() or await self._connected()
            try:
                return await connection.ask(data, self._bounds.first_byte_s, self._bounds.whole_s)
            except Stale:
                continue  # it never saw the request; at most once for each kept connection
            finally:
                if connection.usable:
                    self._kept.append(_Kept(connection, asyncio.get_running_loop().time()))

    async def aclose(self) -> None:
        """End all kept connections."""
        while self._kept:
            self._kept.pop().connection.close()
        await asyncio.sleep(0)

    def _idle(self) -> Connection | None:
        """The connection that was used last, so that the others may grow old and go."""
        while self._kept:
            connection, since = self._kept.pop()
            if not connection.usable:
                continue
            if asyncio.get_running_loop().time() - since < IDLE_S:
                return connection
            connection.close()
        return None

    async def _connected(self) -> Connection:
        loop, place, wait_s = asyncio.get_running_loop(), self._place, self._bounds.connect_s
        try:
            async with asyncio.timeout(wait_s):
                _, connection = await loop.create_connection(
                    lambda: Connection(self._bounds.body_bytes),
                    place.host,
                    place.port,
                    ssl=self._verifying() if place.tls else None,
                )
        except TimeoutError:
            raise Refused(f"no connection to {place.host}:{place.port} in {wait_s:g} s") from None
        except ssl.SSLCertVerificationError as error:
            raise Untrusted(f"the certificate was refused: {error.verify_message}") from None
        except (OSError, ssl.SSLError) as error:
            why = error.strerror or str(error)
            raise Refused(f"no connection to {place.host}:{place.port}: {why}") from None
        return connection

    def _verifying(self) -> ssl.SSLContext:
        """The system's trusted authorities, or those that SSL_CERT_FILE names; always checked."""
        if self._context is None:
            self._context = ssl.create_default_context()
            self._context.set_alpn_protocols(["http/1.1"])
        return self._context


def _lines(host: str, headers: Mapping[str, str]) -> bytes:
    named = {"host": host, "accept": "application/json", "accept-encoding": "identity", **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return lines.encode() + b"\r\n"


__all__ = [
    "Bounds",
    "Broken",
    "HttpClient",
    "Refused",
    "Response",
    "Stale",
    "TimedOut",
    "Untrusted",
]
