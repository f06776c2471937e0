"""Just enough of HTTP/1.1 to serve one client well: requests in, prepared replies out.

Written on `asyncio.Protocol`, since a server that shares two cores with the client it measures
must cost a fraction of it (https://www.rfc-editor.org/rfc/rfc9112).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple, cast

MOST_BYTES = 64 << 20
"""Longest request that is read."""
CHUNK = 1 << 16


class Asked(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    head: bytes
    """Start line and headers."""
    body: bytes

    def header(self, name: str) -> str:
        """A header's value, or nothing."""
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.decode("latin-1").lower() == name.lower():
                return value.strip().decode("latin-1")
        return ""


@dataclass(frozen=True, slots=True)
class Told:
    """What goes back, and when."""

    data: bytes
    """All bytes, head and body."""
    after_s: float = 0.0
    close: bool = False
    """The connection ends after the bytes."""
    reset: bool = False
    """It ends with a reset rather than in good order."""
    padding: int = 0
    """White space that follows the bytes, written as fast as it is read."""
    last_s: float = 0.0
    """Seconds between the bytes and the end of the connection."""


Answer = Callable[[Asked], Told]


class Connection(asyncio.Protocol):
    """One client's connection; requests are answered one after the other."""

    def __init__(self, answer: Answer, live: set[Connection], left: Callable[[], None]) -> None:
        self._answer, self._live, self._left = answer, live, left
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._flowing: asyncio.Event = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        self._transport = cast(asyncio.Transport, transport)
        self._live.add(self)
        self._flowing.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what was still to be said."""
        self._live.discard(self)
        self._flowing.set()
        if self._timer is not None:
            self._timer.cancel()
            self._left()
        self._transport = self._timer = None

    def pause_writing(self) -> None:
        """The client reads more slowly than a long body comes."""
        self._flowing.clear()

    def resume_writing(self) -> None:
        """It has caught up."""
        self._flowing.set()

    def data_received(self, data: bytes) -> None:
        """Answer once a whole request is there."""
        self._buffer = self._buffer + data if self._buffer else data
        if len(self._buffer) > MOST_BYTES:
            self.close()
        elif self._timer is None:
            self._take()

    def close(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._transport.close()

    def _take(self) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[:end]
        whole = end + 4 + _length(head)
        if len(self._buffer) < whole:
            return
        body, self._buffer = self._buffer[end + 4 : whole], self._buffer[whole:]
        method, _, rest = head[: head.find(b"\r\n")].decode("latin-1").partition(" ")
        told = self._answer(Asked(method, rest.partition(" ")[0], head, body))
        self._timer = self._loop.call_later(told.after_s, self._tell, told)

    def _tell(self, told: Told) -> None:
        self._timer = None
        self._left()
        transport = self._transport
        if transport is None:
            return
        transport.write(told.data)
        if told.padding:
            self._writing = self._loop.create_task(self._pad(told.padding))
        elif told.reset:
            transport.abort()
        elif told.close:
            self._loop.call_later(told.last_s, transport.close)
        elif self._buffer:
            self._take()

    async def _pad(self, count: int) -> None:
        blank = b" " * CHUNK
        while count > 0 and self._transport is not None:
            self._transport.write(blank[:count])
            count -= CHUNK
            await self._flowing.wait()
            await asyncio.sleep(0)
        self.close()


def _length(head: bytes) -> int:
    lowered = head.lower()
    at = lowered.find(b"\r\ncontent-length:")
    if at < 0:
        return 0
    stop = lowered.find(b"\r\n", at + 2)
    digits = lowered[at + 17 : stop if stop >= 0 else None].strip()
    return int(digits) if digits.isdigit() else 0


def response(
    status: int,
    body: bytes,
    headers: tuple[tuple[str, str], ...] = (),
    *,
    kind: str = "application/json",
    length: int | None = None,
) -> bytes:
    """The bytes of a response; ``length`` may claim another length than the body's."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Other"
    size = len(body) if length is None else length
    named = [("content-type", kind), ("content-length", str(size))]
    lines = [f"{name}: {value}" for name, value in (*named, *headers)]
    head = f"HTTP/1.1 {status} {phrase}\r\n" + "\r\n".join(lines) + "\r\n\r\n"
    return head.encode("latin-1") + body
