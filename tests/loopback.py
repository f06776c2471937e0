"""A tiny OpenAI-compatible endpoint on loopback, in a thread of its own, for tests.

It answers chat completions deterministically, lists models, and speaks files and batches. What
it does wrong is set by attributes; what it was asked is in ``log``.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

from aiohttp import web

Json = dict[str, Any]


class Loopback:
    """Use it as a context; ``base`` is its base URL."""

    def __init__(self) -> None:
        self.base = ""
        self.log: list[tuple[str, str, Any]] = []
        self.key: str | None = None
        self.models: list[Json] = [{"id": "m"}]
        self.error: tuple[int, Json] | None = None
        """What every chat completion is answered with instead."""
        self.cut_off = 0
        """Chat completions whose connection ends before the reply is whole."""
        self.seeds = "respected"
        """Or ``ignored`` (every reply differs), ``cached`` (none does)."""
        self.usage: Json | None = {"prompt_tokens": 20, "completion_tokens": 4}
        self.provider: Callable[[int], str | None] = lambda _: None
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, Json] = {}
        self.on_batch: Callable[[Json], None] = lambda _: None
        """Called whenever a batch is looked at; may move it on."""
        self.missing: Mapping[str, int] = {}
        """Paths that the endpoint does not have, with the status that says so."""
        self.lost_creations = 0
        """Batches whose creation is answered with an error although they were made."""
        self._dice = random.Random(0)
        self._stopping: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> Self:
        ready: Future[str] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)))
        self._thread.start()
        self.base = ready.result()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._loop is not None
        assert self._stopping is not None
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def asked(self, path: str) -> list[Any]:
        """Bodies of the requests to ``path``."""
        return [body for _, where, body in self.log if where == path]

    async def _serve(self, ready: Future[str]) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(middlewares=[self._guard])
        app.add_routes(
            [
                web.get("/v1/models", self._models),
                web.post("/v1/chat/completions", self._chat),
                web.post("/v1/files", self._upload),
                web.get("/v1/files/{id}/content", self._content),
                web.post("/v1/batches", self._create),
                web.get("/v1/batches", self._list),
                web.get("/v1/batches/{id}", self._look),
            ]
        )
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        ready.set_result(f"http://127.0.0.1:{port}/v1")
        await self._stopping.wait()
        await runner.cleanup()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:  # noqa: ANN401
        is_json = request.content_type == "application/json"
        body = await request.json() if is_json and request.can_read_body else None
        self.log.append((request.method, request.path.removeprefix("/v1"), body))
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            text = f"Incorrect API key: {request.headers.get('authorization')}"
            return web.json_response({"error": {"message": text}}, status=401)
        if (status := self.missing.get(request.path.removeprefix("/v1"))) is not None:
            return web.json_response({"detail": "Not Found"}, status=status)
        response: web.StreamResponse = await handler(request)
        return response

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"data": self.models})

    async def _chat(self, request: web.Request) -> web.Response:
        if self.error is not None:
            return web.json_response(self.error[1], status=self.error[0])
        if self.cut_off > 0:
            self.cut_off -= 1
            assert request.transport is not None
            request.transport.close()
        return web.json_response(self.reply(await request.json()))

    def reply(self, body: Json) -> Json:
        """The reply to a chat completion's body."""
        seed = {"respected": body.get("seed"), "cached": 0, "ignored": self._dice.random()}
        text = f"words of {random.Random(repr(seed[self.seeds])).random()}"
        message = {"role": "assistant", "content": text}
        answer: Json = {
            "id": f"chat-{len(self.log)}",
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        }
        provider = self.provider(len(self.log))
        return (
            answer
            | ({"usage": self.usage} if self.usage else {})
            | ({"provider": provider} if provider else {})
        )

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        upload = form["file"]
        assert isinstance(upload, web.FileField)
        assert form["purpose"] == "batch"
        name = f"file-{len(self.files)}"
        self.files[name] = upload.file.read()
        return web.json_response({"id": name, "object": "file"})

    async def _content(self, request: web.Request) -> web.Response:
        return web.Response(body=self.files[request.match_info["id"]])

    async def _create(self, request: web.Request) -> web.Response:
        body = await request.json()
        batch = {
            **body,
            "id": f"batch-{len(self.batches)}",
            "object": "batch",
            "status": "validating",
            "request_counts": {"total": 0, "completed": 0, "failed": 0},
        }
        self.batches[batch["id"]] = batch
        if self.lost_creations > 0:
            self.lost_creations -= 1
            return web.json_response({"error": {"message": "lost"}}, status=502)
        return web.json_response(batch)

    async def _list(self, _: web.Request) -> web.Response:
        newest = list(self.batches.values())[::-1]
        return web.json_response({"object": "list", "data": newest, "has_more": False})

    async def _look(self, request: web.Request) -> web.Response:
        batch = self.batches.get(request.match_info["id"])
        if batch is None:
            return web.json_response({"error": {"message": "no such batch"}}, status=404)
        self.on_batch(batch)
        return web.json_response(batch)

    def finish(
        self,
        batch: Json,
        *,
        fail: Callable[[int], Json | None] = lambda _: None,
        status: str = "completed",
        answered: int | None = None,
    ) -> None:
        """End a batch: answer its lines in another order than they came.

        Args:
            batch: As created.
            fail: The response of a line instead of a reply, by its number.
            status: ``completed`` or ``expired``.
            answered: Lines that are answered at all; the others expire.
        """
        lines = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]
        good, bad = [], []
        for i, asked in enumerate(lines):
            row: Json = {"id": f"r{i}", "custom_id": asked["custom_id"], "error": None}
            failed = fail(i)
            if answered is not None and i >= answered:
                expired = {"code": "batch_expired", "message": "the window closed"}
                bad.append({**row, "response": None, "error": expired})
            elif failed is not None:
                bad.append({**row, "response": failed})
            else:
                body = self.reply(asked["body"])
                good.append({**row, "response": {"status_code": 200, "body": body}})
        batch["status"] = status
        for key, rows in (("output_file_id", good[::-1]), ("error_file_id", bad)):
            name = f"file-{len(self.files)}"
            self.files[name] = "\n".join(map(json.dumps, rows)).encode()
            batch[key] = name if rows else None
