r"""One endpoint over HTTP, by libcurl (pycurl): hard bounds, no redirects, no cookies.

Why this client: what a run costs on the client's side is the product's own cost, and it was
measured on two cores of an AMD EPYC (2026-11-30, `benchmarks/http_throughput.py --clients`, 256
connections against a server with 50 ms latency). In bare loops pycurl takes 92 to 121 µs of
processor time a request, pyreqwest 144 and aiohttp 273; pyreqwest works in a thread of its own, so
that every reply waits for the interpreter's lock twice. A client of our own on httptools would
take about as much as pycurl, and be a protocol to look after that knows no proxies.

Redirects are not followed (another host would be given the key), and certificates are always
verified: there is no switch. Proxies are those of the environment, except to this machine itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import ssl
import zlib
from collections import defaultdict
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import certifi
import pycurl
from msgspec import Struct

from formatspan.backends.http_charset import in_utf8
from formatspan.backends.http_sockets import Transfers, transfers
from formatspan.backends.http_trouble import (
    Broken,
    NoAnswer,
    NotHttp,
    TimedOut,
    TooLong,
    not_tls,
    speaks_plainly,
    trouble,
)
from formatspan.backends.redaction import Secret


class Response(Struct, frozen=True, gc=False):
    """A whole response."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case; of a repeated header, the last value."""
    body: bytes
    """Decompressed, and in UTF-8 where another charset is named."""


class Headers(Mapping[str, str]):
    """A response's headers, read when one is asked for: those of a sound reply never are."""

    __slots__ = ("_found", "_lines")

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines
        self._found: dict[str, str] | None = None

    def __getitem__(self, name: str) -> str:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def _read(self) -> dict[str, str]:
        if self._found is None:
            self._found, over = {}, False
            for line in self._lines:
                name, colon, value = line.decode("latin-1").partition(":")
                if name.startswith("HTTP/"):
                    self._found, over = {}, False  # what came before was informational
                elif colon and not over:
                    self._found[name.strip().lower()] = value.strip()
                else:
                    over = over or not name.strip()  # what comes now are trailers
        return self._found


class Bounds(NamedTuple):
    """How long one request may take, and how much may come back."""

    connect_s: float = 15.0
    first_byte_s: float = 300.0
    """Seconds from sending to the first byte, which is the whole of an answer that is not
    streamed."""
    whole_s: float = 330.0
    """Seconds from sending to the last byte."""
    body_bytes: int = 16 << 20
    """Longest body that is read, decompressed."""


class HttpClient:
    """Sends requests to one host; belongs to the event loop of its first request.

    Args:
        url: Any URL of the host; its path is not used.
        headers: Sent with every request.
        bounds: Of every request.
    """

    def __init__(
        self, url: str, headers: Secret[dict[str, str]], bounds: Bounds | None = None
    ) -> None:
        parts = urlsplit(url)
        ascii_host = parts.netloc.isascii()
        self._host = parts.netloc if ascii_host else parts.netloc.encode("idna").decode()
        self._origin = f"{parts.scheme}://{self._host}"
        self._here = _is_here(parts.hostname or "")
        self._headers, self._bounds = headers, bounds or Bounds()
        self._multi: Transfers | None = transfers()
        self._multi.setopt(pycurl.M_MAXCONNECTS, _MOST_KEPT)
        self._idle: dict[tuple[str, str], list[_Transfer]] = defaultdict(list)
        self._place = parts.hostname or "", parts.port or 443
        self._doubted = parts.scheme == "https" and (self._here or not _has_proxy())
        """Whether the server has yet to show that it speaks TLS."""
        self._under_way: dict[_Transfer, float] = {}
        """When the first byte of each is late, the earliest first."""
        self._clock: asyncio.TimerHandle | None = None

    def send(self, method: str, path: str, body: bytes = b"") -> Coroutine[Any, Any, Response]:
        """One request and, awaited, its whole response; cancelled, its connection ends.

        Args:
            method: Such as ``POST``.
            path: Path and query, ASCII.
            body: Its bytes.

        Raises:
            Broken: There was no whole response; its subclasses say why. Never a response that
                ended early.
        """
        idle = self._idle[method, path]
        transfer = idle.pop() if idle else self._transfer(method, path)
        if method == "POST":
            transfer.curl.setopt(pycurl.POSTFIELDS, body)
        return self._performed(transfer, idle)

    async def upload(
        self, path: str, file: tuple[str, bytes], fields: Mapping[str, str]
    ) -> Response:
        """Send a file as a form, as `send`.

        Args:
            path: As of `send`.
            file: Name and content, which is JSON lines.
            fields: Further fields of the form.
        """
        transfer = self._transfer("POST", path, form=True)
        name, content = file
        with pycurl.CurlMime(transfer.curl) as form:
            for field, value in fields.items():
                form.add_field(field, value)
            form.add("file", content, filename=name, content_type="application/jsonl")
            transfer.curl.setopt(pycurl.MIMEPOST, form)
            return await self._performed(transfer)

    async def aclose(self) -> None:
        """End all connections; nothing can be sent any more."""
        multi, self._multi = self._multi, None
        if multi is not None:
            self._idle.clear()
            await multi.aclose()
        if self._clock is not None:
            self._clock.cancel()

    # --- one transfer -------------------------------------------------------------------------

    def _transfer(self, method: str, path: str, *, form: bool = False) -> _Transfer:
        curl, bounds = pycurl.Curl(), self._bounds
        curl.setopt(pycurl.URL, self._origin + quote(path, safe=_IN_A_PATH))
        if method == "POST":
            curl.setopt(pycurl.POST, 1)
        sent = {"accept": "application/json", "accept-encoding": "identity", "expect": ""}
        sent |= {"content-type": "application/json"} | self._headers.reveal()
        if form:
            del sent["content-type"]
        # Not among the headers: a proxy would be told another, the library's.
        curl.setopt(pycurl.USERAGENT, sent.pop("user-agent", "formatspan"))
        curl.setopt(pycurl.HTTPHEADER, [f"{k}: {v}" if v else f"{k}:" for k, v in sent.items()])
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, _milliseconds(bounds.connect_s))
        curl.setopt(pycurl.TIMEOUT_MS, _milliseconds(bounds.whole_s))
        for option, place in _authorities().items():
            curl.setopt(option, place)
        if self._here:
            curl.setopt(pycurl.PROXY, "")
        elif (proxy := _unread_proxy()) and self._origin.startswith("http://"):
            curl.setopt(pycurl.PROXY, proxy)
        return _Transfer(curl, bounds.body_bytes)

    async def _performed(
        self, transfer: _Transfer, idle: list[_Transfer] | None = None
    ) -> Response:
        """The response to one request; a transfer that did not fail goes back to ``idle``."""
        multi = self._multi
        if multi is None:
            raise Broken("the client was closed")
        transfer.begin()
        transfer.came = came = multi.add_handle(transfer.curl)
        first_s, loop = self._bounds.first_byte_s, came.get_loop()
        self._under_way[transfer] = loop.time() + first_s
        if self._clock is None:
            self._clock = loop.call_later(first_s, self._give_up_late)
        doubt = asyncio.ensure_future(self._doubt(transfer, came)) if self._doubted else None
        try:
            await came
        except pycurl.error as error:
            raise self._trouble(transfer, *error.args) from None
        except asyncio.CancelledError:
            with contextlib.suppress(RuntimeError):
                multi.remove_handle(transfer.curl)
            if transfer.late:
                raise TimedOut(f"no first byte within {first_s:g} s") from None
            if transfer.plain:
                raise not_tls(self._host) from None
            raise
        finally:
            del self._under_way[transfer]
            if doubt is not None:
                doubt.cancel()
        self._doubted = False
        response = transfer.response()
        if idle is not None:
            idle.append(transfer)
        return response

    def _give_up_late(self) -> None:
        """End the requests whose first byte is late, and look again when the next one may be."""
        loop, self._clock = asyncio.get_running_loop(), None
        for transfer, late_at in self._under_way.items():
            if late_at > loop.time():
                self._clock = loop.call_at(late_at, self._give_up_late)
                return
            transfer.give_up()

    async def _doubt(self, transfer: _Transfer, came: asyncio.Future[pycurl.Curl]) -> None:
        """End a request whose server turns out to speak without TLS, which it may never say."""
        await asyncio.sleep(_HANDSHAKE_S)
        if await speaks_plainly(*self._place):
            transfer.plain = True
            came.cancel()

    def _trouble(self, transfer: _Transfer, code: int, said: str) -> Broken:
        """What the library says, in this module's words."""
        if code == pycurl.E_OPERATION_TIMEDOUT:
            return self._late(transfer, said)
        if code == pycurl.E_WRITE_ERROR and transfer.overfull:
            return TooLong(f"a body of more than {self._bounds.body_bytes} bytes")
        return trouble(transfer.curl, code, said, self._host)

    def _late(self, transfer: _Transfer, said: str) -> Broken:
        bounds = self._bounds
        if not said.startswith("Operation"):  # still resolving or connecting
            limit = min(bounds.connect_s, bounds.whole_s)
            if _handshakes(transfer.curl, self._origin):
                hint = "it may not speak TLS: is http:// meant for https://, or another port?"
                return NoAnswer(f"{self._host} begins no TLS within {limit:g} s: {hint}")
            return NoAnswer(f"no connection to {self._host} in {limit:g} s")
        awaited = "whole reply" if transfer.head else "first byte"
        return TimedOut(f"no {awaited} within {bounds.whole_s:g} s")


class _Transfer:
    """A handle of the library's with what came of its request; used for one at a time."""

    __slots__ = ("came", "curl", "head", "late", "most", "overfull", "pieces", "plain", "size")
    came: asyncio.Future[pycurl.Curl]
    """Done when the request is."""

    def __init__(self, curl: pycurl.Curl, most: int) -> None:
        self.curl, self.most = curl, most
        self.head: list[bytes] = []
        self.pieces: list[bytes] = []
        self.begin()
        curl.setopt(pycurl.HEADERFUNCTION, self.head.append)
        curl.setopt(pycurl.WRITEFUNCTION, self.take)

    def begin(self) -> None:
        """Forget the last request."""
        self.head.clear()
        self.pieces.clear()
        self.size = 0
        self.late = self.overfull = self.plain = False

    def take(self, piece: bytes) -> int:
        """Keep a piece of the body; returns how much of it was taken."""
        self.size += len(piece)
        if self.size > self.most:
            self.overfull = True
            return 0
        self.pieces.append(piece)
        return len(piece)

    def give_up(self) -> None:
        """End a request whose first byte is late."""
        if not self.head:
            self.late = True
            self.came.cancel()

    def response(self) -> Response:
        """What has come.

        Raises:
            Broken: It is not whole, or not readable.
        """
        lines = tuple(self.head)
        if b"\r\n" not in lines and b"\n" not in lines:
            raise Broken("the connection ended within the headers")
        headers, body = Headers(lines), b"".join(self.pieces)
        told = b"".join(lines).lower()
        if told.find(b"content-encoding") >= 0 or told.find(b"charset") >= 0:
            if encoding := headers.get("content-encoding", "").lower().replace("identity", ""):
                body = _decompressed(body, encoding, self.most)
            body = in_utf8(body, headers.get("content-type", ""))
        return Response(self.curl.getinfo(pycurl.RESPONSE_CODE), headers, body)


def _decompressed(body: bytes, encoding: str, most: int) -> bytes:
    """A body that was compressed although nobody had asked for it.

    Not left to the library, which takes the beginning of a compressed body for all of it.
    """
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise NotHttp(f"the body is encoded as {encoding!r}, which was not asked for")
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # with either header
    try:
        plain = unpacker.decompress(body, most + 1)
    except zlib.error as error:
        raise NotHttp(f"the body cannot be decompressed: {error}") from None
    if len(plain) > most:
        raise TooLong(f"a body of more than {most} bytes")
    if not unpacker.eof:
        raise Broken("the compressed body ended early")
    return plain


_IN_A_PATH = "/?&=%:@!$'()*+,;~"
"""Characters of a path and a query that stay as they are, escapes among them."""
_HANDSHAKE_S = 3.0
"""Seconds after which it is doubted that a server speaks TLS."""
_MOST_KEPT = 1024
"""Idle connections that are kept."""


def _has_proxy() -> bool:
    """Whether the environment names a proxy for what goes over TLS."""
    names = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
    return any(os.environ.get(name) for name in names)


def _handshakes(curl: pycurl.Curl, origin: str) -> bool:
    """Whether a server took the connection, and TLS has not begun."""
    ask = curl.getinfo
    direct = origin.startswith("https") and not ask(pycurl.USED_PROXY)
    return direct and ask(pycurl.CONNECT_TIME) > 0 and not ask(pycurl.APPCONNECT_TIME)


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))  # 0 would be the library's own default


def _is_here(host: str) -> bool:
    """Whether a host is this machine, which no proxy can reach."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def _unread_proxy() -> str | None:
    """The proxy in ``HTTP_PROXY``, which the library leaves alone in upper case.

    In a CGI script anybody can set it by a header (https://httpoxy.org).
    """
    known = "http_proxy" in os.environ or "REQUEST_METHOD" in os.environ
    return None if known else os.environ.get("HTTP_PROXY")


def _authorities() -> dict[int, str]:
    """Where the authorities are that certificates are checked with, by the library's option.

    The system's, where Python knows them (``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` name others);
    in the place of a file of them, certifi's.
    """
    system = ssl.get_default_verify_paths()
    found = {pycurl.CAINFO: system.cafile or certifi.where()}
    return found | ({pycurl.CAPATH: system.capath} if system.capath else {})
