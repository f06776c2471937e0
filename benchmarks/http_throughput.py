"""A whole study over HTTP against a stub with 50 ms latency, at 256 connections.

    python benchmarks/http_throughput.py [--full] [--clients] [--generations N]

The stub is a process of its own. First a bare loop of the same client asks it, with nothing
stored; then a study runs from its grid to its durable store, in a process of its own, with
progress shown; then the finished study is run again, which asks nothing. Prints generations a
second, the ratio to the limit (connections over latency) and to the bare loop, processor time and
peak memory; with ``--full`` also at 140,000 generations. ``--clients`` adds bare loops of other
HTTP clients that are installed. Last line: ``ratio to the limit: 0.xx``.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

CONNECTIONS, LATENCY_S = 256, 0.05
LIMIT = CONNECTIONS / LATENCY_S
SMALL, FULL = 20_000, 140_000
TASKS, WRAPPERS = 4, 5
Post = Callable[[], Awaitable[int]]
Client = Callable[[str], AbstractAsyncContextManager[Post]]
PROMPT = (
    "Which colour has the number that comes after seven, counted in tens and then in ones? " * 8
)
BODY = json.dumps(
    {"model": "m", "messages": [{"role": "user", "content": PROMPT}], "max_tokens": 24}
).encode()
HEADERS = {"content-type": "application/json", "authorization": "Bearer sk-0123456789abcdef"}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--clients", action="store_true")
    parser.add_argument("--generations", type=int, default=SMALL)
    parser.add_argument("--study", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.study:
        print(json.dumps(_study(args.study[0], int(args.study[1]), Path(args.study[2]))))
        return
    print(f"limit: {CONNECTIONS} connections / {LATENCY_S:g} s = {LIMIT:,.0f}/s")
    with _stub() as url, tempfile.TemporaryDirectory() as folder:
        if args.clients:
            _other_clients(url)
        bare = _run(_bare(_own_client, url, args.generations // 2))
        _say("bare loop", bare)
        ratio = _whole(url, args.generations, Path(folder) / "small", bare["rate"])
        if args.full:
            _whole(url, FULL, Path(folder) / "full", bare["rate"])
    print(f"ratio to the limit: {ratio:.2f}")


def _whole(url: str, count: int, folder: Path, bare: float) -> float:
    """A study and its resume, each in a process of its own; returns the ratio to the limit."""
    folder.mkdir()
    found = _in_process(url, count, folder)
    _say(f"study of {found['done']:,}", found)
    print(
        f"  ratio to the bare loop {found['rate'] / bare:.2f}, to the limit "
        f"{found['rate'] / LIMIT:.2f}; planning before it {found['planning_s']:.1f} s, "
        f"{found['planning_us']:.0f} µs of processor time each; whole run, "
        f"planning and store included, {found['done'] / found['whole_s']:,.0f}/s; "
        f"peak memory {found['peak_mb']:.0f} MB"
    )
    again = _in_process(url, count, folder)
    print(f"  run again: {again['whole_s']:.2f} s, {again['asked']} requests")
    return float(found["rate"] / LIMIT)


def _in_process(url: str, count: int, folder: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--study", url, str(count), str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _study(url: str, count: int, folder: Path) -> dict[str, Any]:
    """Run the study; all that `formatspan run` does but for printing tables."""
    from rich.console import Console

    from formatspan.progress import Shown
    from formatspan.runner import Progress
    from formatspan.session import run
    from formatspan.study import Study

    files = [_rows(folder, i, count // TASKS // WRAPPERS) for i in range(TASKS)]
    model = {"model": "openai:m", "base_url": url, "concurrency": CONNECTIONS}
    os.environ["BENCH_KEY"] = "sk-0123456789abcdef"
    study = Study.build(
        {"models": [{**model, "api_key_env": "BENCH_KEY"}], "tasks": files, "examples": count}
    )
    first: list[tuple[int, float]] = []

    class Watched(Shown):
        """Notes the processor time of the first commit, before which lies the planning."""

        def progress(self, model: str, progress: Progress) -> None:
            if not first:
                first.append((progress.asked, time.process_time()))
            super().progress(model, progress)

    began, cpu = time.perf_counter(), time.process_time()
    with Watched(Console(file=io.StringIO(), force_terminal=True)) as shown:
        done = run(study, out=folder / "run", listener=shown)
    whole_s, ended = time.perf_counter() - began, time.process_time()
    asked_first, cpu_first = first[0] if first else (0, cpu)
    return {
        "done": done.done,
        "asked": done.asked,
        "rate": done.asked / done.seconds,
        "cpu_us": (ended - cpu_first) / max(done.asked - asked_first, 1) * 1e6,
        "planning_us": (cpu_first - cpu) / max(done.asked, 1) * 1e6,
        "whole_s": whole_s,
        "planning_s": whole_s - done.seconds,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _rows(folder: Path, number: int, count: int) -> str:
    path = folder / f"task{number}.jsonl"
    if not path.exists():
        filler = " ".join(f"It is not colour {i}." for i in range(20))
        with path.open("w", encoding="utf-8") as file:
            for i in range(count):
                question = f"Which colour has number {i} of {number}? {filler}"
                row = {"question": question, "options": ["red", "green", "blue", "yellow"]}
                file.write(json.dumps({**row, "answer": "ABCD"[i % 4]}) + "\n")
    return str(path)


# --- bare loops -------------------------------------------------------------------------------


async def _bare(client: Client, url: str, count: int) -> dict[str, Any]:
    """Ask as fast as the client can; nothing is made, read or stored."""
    async with client(f"{url}/chat/completions") as post:
        await _drive(post, 4 * CONNECTIONS)  # connections are made before the clock starts
        began, cpu = time.perf_counter(), time.process_time()
        await _drive(post, count)
        took, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    return {"rate": count / took, "cpu_us": cpu_s / count * 1e6}


def _run(work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """Run on the loop that studies run on."""
    from uvloop import new_event_loop

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)


async def _drive(post: Post, count: int) -> None:
    turns = iter(range(count))

    async def work() -> None:
        for _ in turns:
            assert await post() == 200

    await asyncio.gather(*(work() for _ in range(CONNECTIONS)))


@asynccontextmanager
async def _own_client(url: str) -> AsyncIterator[Post]:
    from formatspan.backends.http_client import HttpClient
    from formatspan.backends.redaction import Secret

    client = HttpClient(url, Secret(HEADERS))

    async def post() -> int:
        return (await client.send("POST", "/v1/chat/completions", BODY)).status

    yield post
    await client.aclose()


@asynccontextmanager
async def _pyreqwest(url: str) -> AsyncIterator[Post]:
    from pyreqwest.client import ClientBuilder

    async with ClientBuilder().no_proxy().build() as client:

        async def post() -> int:
            request = client.post(url).headers(HEADERS).body_bytes(BODY).build()
            return int((await request.send()).status)

        yield post


@asynccontextmanager
async def _aiohttp(url: str) -> AsyncIterator[Post]:
    import aiohttp

    jar, connector = aiohttp.DummyCookieJar(), aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=jar) as session:

        async def post() -> int:
            async with session.post(url, data=BODY, headers=HEADERS) as response:
                await response.read()
                return response.status

        yield post


@asynccontextmanager
async def _httpx(url: str) -> AsyncIterator[Post]:
    import httpx

    limits = httpx.Limits(max_connections=CONNECTIONS)
    async with httpx.AsyncClient(limits=limits, timeout=60) as client:

        async def post() -> int:
            status: int = (await client.post(url, content=BODY, headers=HEADERS)).status_code
            return status

        yield post


CLIENTS: dict[str, tuple[Client, int]] = {
    "pyreqwest": (_pyreqwest, 10_000),
    "aiohttp": (_aiohttp, 5_000),
    "httpx": (_httpx, 1_000),
}
"""Other clients, and how many requests are enough for a figure."""


def _other_clients(url: str) -> None:
    for name, (client, count) in CLIENTS.items():
        try:
            _say(f"bare loop, {name}", _run(_bare(client, url, count)))
        except ImportError:
            print(f"bare loop, {name}: not installed")


@contextmanager
def _stub() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "formatspan.stub", str(port), str(LATENCY_S)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.communicate()


def _say(what: str, found: dict[str, Any]) -> None:
    print(f"{what}: {found['rate']:,.0f}/s, {found['cpu_us']:.0f} µs of processor time each")


if __name__ == "__main__":
    main()
