"""One connection to an endpoint: a request out, its whole response in, nothing trusted.

HTTP/1.1 (https://www.rfc-editor.org/rfc/rfc9112) is parsed by httptools, which wraps llhttp; this
class keeps the bounds: how long a head and a body may be, how long each may take, and that a
response which ends early is never taken for a whole one.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import NamedTuple, Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

HEAD_BYTES = 256 << 10
"""Longest head that is read: status line and headers."""


class Response(NamedTuple):
    """A whole response."""

    status: int
    headers: dict[str, str]
    """Names in lower case; of a repeated header, the last value."""
    body: bytes
    """Decompressed."""
    first_byte_s: float
    """Seconds from sending to the first byte."""


class Broken(Exception):
    """The connection ended or failed before a whole response had come."""


class NotHttp(Broken):
    """What came is not HTTP, or encoded in a way that was not asked for."""


class TooLong(Broken):
    """The response is longer than is read."""


class TimedOut(Broken):
    """The response, or its first byte, took too long."""


class Stale(Broken):
    """A kept connection was closed by the other side before the request reached it."""


class _Inflater(Protocol):
    """What `zlib.decompressobj` makes."""

    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes: ...


class Connection(asyncio.Protocol):
    """A connection; it carries one request at a time.

    Args:
        most_bytes: Longest body that is read, decompressed.
    """

    def __init__(self, most_bytes: int) -> None:
        self.usable = False
        """It is open and idle."""
        self._most = most_bytes
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Response] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._used = False
        self._reset()

    def _reset(self) -> None:
        self._parser = HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = self._head = 0
        self._inflater: _Inflater | None = None
        self._ended = self._begun = self._headed = self._keeps = False
        self._trouble: Broken | None = None
        self._first = 0.0

    # --- what the client does ---------------------------------------------------------------

    async def ask(self, data: bytes, first_s: float, whole_s: float) -> Response:
        """Send a request and take the response.

        Args:
            data: All bytes of the request.
            first_s: Seconds until the first byte at most.
            whole_s: Seconds until the last byte at most.

        Raises:
            Broken: There was no whole response.
        """
        assert self._transport is not None and self.usable
        self.usable = False
        now = self._loop.time()
        self._sent, self._whole_s, self._first_s = now, whole_s, min(first_s, whole_s)
        self._waiter = self._loop.create_future()
        self._timer = self._loop.call_at(now + self._first_s, self._late)
        self._transport.write(data)
        try:
            return await self._waiter
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            self._timer.cancel()
            self._waiter = None

    def close(self) -> None:
        """End the connection."""
        self.usable = False
        if self._transport is not None:
            self._transport.abort()

    # --- what the loop tells ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ready for a first request."""
        self._transport, self.usable = cast(asyncio.Transport, transport), True

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side, or the network, ended it."""
        self.usable, self._transport = False, None
        if self._waiter is None or self._waiter.done():
            return
        why = f": {exc}" if exc is not None else ""
        if self._begun and not self._ended and exc is None and self._lasts_to_the_end():
            self.on_message_complete()
            self._settle()
        elif self._begun:
            self._fail(Broken(f"the connection ended in mid-reply{why}"))
        elif self._used:
            self._fail(Stale(f"a kept connection was closed{why}"))
        else:
            self._fail(Broken(f"the connection ended without a reply{why}"))

    def data_received(self, data: bytes) -> None:
        """A piece of the response."""
        if self._waiter is None or self._waiter.done():
            self.close()  # nothing was asked: whatever this is, it must not be the next answer
            return
        if not self._begun:
            self._begun, self._first = True, self._loop.time() - self._sent
        if not self._headed:
            self._head += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            self._trouble = self._trouble or NotHttp("the server switched protocols")
        except HttpParserError as error:
            self._trouble = self._trouble or NotHttp(f"the reply is not HTTP: {error}")
        if not self._headed and self._head > HEAD_BYTES:
            self._trouble = TooLong(f"headers of more than {HEAD_BYTES} bytes")
        if self._trouble is not None:
            self._fail(self._trouble)
        elif self._ended:
            self._settle()

    # --- what the parser tells --------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A response begins; a second one was not asked for."""
        if self._ended:
            self._trouble = NotHttp("more than one reply to a request")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1").strip()

    def on_headers_complete(self) -> None:
        """Know how the body is encoded."""
        self._headed = True
        encoding = self._headers.get("content-encoding", "identity").lower()
        if encoding in ("gzip", "x-gzip", "deflate"):
            self._inflater = zlib.decompressobj(wbits=47)
        elif encoding not in ("identity", ""):
            self._trouble = NotHttp(f"the body is encoded as {encoding!r}, which was not asked for")

    def on_body(self, data: bytes) -> None:
        """Keep a piece of the body, unless it is far too much."""
        if self._trouble is not None:
            return
        if self._inflater is not None:
            try:
                data = self._inflater.decompress(data, self._most + 1)
            except zlib.error as error:
                self._trouble = NotHttp(f"the body cannot be decompressed: {error}")
                return
        self._body.append(data)
        self._size += len(data)
        if self._size > self._most:
            self._trouble = TooLong(f"a body of more than {self._most} bytes")

    def on_message_complete(self) -> None:
        """The response is whole, unless it only announces the real one."""
        if 100 <= self._parser.get_status_code() < 200:
            self._headers.clear()
            self._headed = False
            return
        if self._inflater is not None and not self._inflater.eof:
            self._trouble = self._trouble or Broken("the compressed body ended early")
        self._ended, self._keeps = True, self._parser.should_keep_alive()

    def _lasts_to_the_end(self) -> bool:
        """The body had no length of its own and so ends with the connection (section 6.3)."""
        chunked = "chunked" in self._headers.get("transfer-encoding", "").lower()
        return self._headed and not chunked and "content-length" not in self._headers

    # --- how it ends ------------------------------------------------------------------------

    def _settle(self) -> None:
        if self._trouble is not None:
            self._fail(self._trouble)
            return
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        found = Response(self._parser.get_status_code(), self._headers, body, self._first)
        keeps = self._keeps and self._transport is not None
        waiter = self._waiter
        self._reset()
        self._used, self.usable = True, keeps
        if not keeps:
            self.close()
        if waiter is not None and not waiter.done():
            waiter.set_result(found)

    def _fail(self, trouble: Broken) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(trouble)
        self.close()

    def _late(self) -> None:
        left = self._sent + self._whole_s - self._loop.time()
        if self._begun and left > 0:
            self._timer = self._loop.call_later(left, self._late)
            return
        limit, what = (
            (self._whole_s, "whole reply") if self._begun else (self._first_s, "first byte")
        )
        self._fail(TimedOut(f"no {what} within {limit:g} s"))
