"""Starts a stub server: inside a test's event loop, or as a process of its own."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from formatspan.errors import UserError
from formatspan.loops import on_interrupt, run_to_end
from formatspan.stub.behaviour import Stub
from formatspan.stub.http import Connection
from formatspan.stub.settings import Settings


@dataclass(frozen=True)
class Served:
    """A server that runs."""

    url: str
    """Base URL for a study's ``base_url``."""
    stub: Stub


@asynccontextmanager
async def serving(
    settings: Settings | None = None, *, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[Served]:
    """Serve until the block ends; port 0 takes a free one.

    Raises:
        UserError: A setting is wrong, or the port is taken.
    """
    if not 0 <= port <= 65_535:
        raise UserError(f"port: expected 0 to 65535, got {port}")
    stub = Stub(settings or Settings())
    live: set[Connection] = set()
    loop = asyncio.get_running_loop()
    try:
        server = await loop.create_server(
            lambda: Connection(stub.answer, live, stub.left), host, port, backlog=1024
        )
    except OSError as error:
        raise UserError(f"cannot serve at {host}:{port}: {error.strerror or error}") from None
    try:
        bound = server.sockets[0].getsockname()[1]
        yield Served(f"http://{host}:{bound}/v1", stub)
    finally:
        server.close()
        for connection in list(live):
            connection.close()
        await server.wait_closed()


def serve(settings: Settings, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve until interrupted; says where, and in the end what was served.

    Raises:
        UserError: As `serving`.
    """
    run_to_end(_serve(settings, host, port, say))


async def _serve(settings: Settings, host: str, port: int, say: Callable[[str], None]) -> None:
    done = asyncio.Event()
    async with serving(settings, host=host, port=port) as served:
        with on_interrupt(done.set, signal.SIGTERM):
            say(f"serving at {served.url}; Ctrl-C ends it")
            await done.wait()
        counts = sorted(served.stub.counts.items())
        say(", ".join(f"{name} {count}" for name, count in counts) or "nothing was asked")
