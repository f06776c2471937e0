"""The only generation loop: takes pending points from the store, asks, commits, counts.

Requests are read a page at a time and at most a few per connection are alive at once, so
memory does not grow with the run. A reply counts as done when it is committed.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, cast

from formatspan.backends.base import Backend, Coached, Lesson
from formatspan.backends.redaction import Redactor, Secret
from formatspan.records import Failure, FailureKind, Generation, Request
from formatspan.spending import Purse
from formatspan.store import Pending, Store

PAGE = 512
"""Pending points read from the store at a time."""
MAX_EQUAL_FAILURES = 20
"""After so many failures of one kind in a row, a model's remaining requests are left pending."""
DRAIN_S = 10.0
"""Seconds that replies under way are waited for after an interrupt."""
SAID_CHARS = 200
"""Characters kept of what a backend's bug says."""
_KEY_NAME = re.compile(r"key|token|secret|password|credential", re.IGNORECASE)
"""Names of environment variables whose values are taken for secrets."""


class Job(NamedTuple):
    """A request with what a coached backend is told of it."""

    request: Request
    lesson: Lesson | None


class Lane(NamedTuple):
    """What the runner must know of one model."""

    backend: Backend
    build: Callable[[Pending], Job]
    """Makes the request of a pending point."""
    width: int
    """Requests in flight."""


@dataclass
class Progress:
    """Where a model's queue stands; replies restored from earlier are not in the rates."""

    total: int
    done: int
    asked: int = 0
    """Replies committed in this session."""
    failed: int = 0
    last_failure: str | None = None
    """Kind and message."""
    stopped: str | None = None
    """Why the rest was left pending, if it was."""
    spent: float = 0.0
    """US dollars that the model's replies cost, earlier sessions included, where known."""
    last_kinds: deque[FailureKind] = field(default_factory=lambda: deque(maxlen=MAX_EQUAL_FAILURES))
    """Kinds of the latest failures since the last reply."""


class Runner:
    """Asks everything that is pending in a store.

    Args:
        store: The run's store; the runner is its only writer.
        on_progress: Called with the model's label after every commit.
        purse: Pays for the requests; one without a limit by default.
    """

    def __init__(
        self,
        store: Store,
        on_progress: Callable[[str, Progress], None],
        purse: Purse | None = None,
    ) -> None:
        self.store, self.on_progress = store, on_progress
        self.purse = purse or Purse()
        self.progress: dict[str, Progress] = {}
        self._stop = asyncio.Event()

    @property
    def interrupted(self) -> bool:
        """Whether the run was asked to stop."""
        return self._stop.is_set()

    def interrupt(self) -> None:
        """Ask no more; replies under way are still taken for a while."""
        self._stop.set()

    async def run(self, lanes: Mapping[str, Lane]) -> None:
        """Ask all pending requests: models that take the whole machine one after another.

        Raises:
            StorageError: The store cannot be written; what was committed stays.
        """
        counts = self.store.counts()
        for name in lanes:
            self.progress[name] = Progress(counts[name].points, counts[name].done)
            self.progress[name].spent = self.purse.spent_on.get(name, 0.0)
        alone = [n for n, lane in lanes.items() if lane.backend.capabilities.exclusive]
        async with asyncio.TaskGroup() as group:
            for name in lanes.keys() - set(alone):
                group.create_task(self._run_model(name, lanes[name]))
            group.create_task(self._one_by_one({name: lanes[name] for name in alone}))

    async def _one_by_one(self, lanes: Mapping[str, Lane]) -> None:
        for name, lane in lanes.items():
            await self._run_model(name, lane)
            await lane.backend.aclose()

    async def _run_model(self, name: str, lane: Lane) -> None:
        width = lane.width
        jobs: asyncio.Queue[Job | None] = asyncio.Queue(maxsize=width)
        results: asyncio.Queue[Generation | Failure | None] = asyncio.Queue(maxsize=2 * width)
        async with asyncio.TaskGroup() as group:
            feeder = group.create_task(self._feed(name, lane, jobs))
            group.create_task(self._write(name, results))
            workers = [
                asyncio.create_task(self._work(name, lane.backend, jobs, results))
                for _ in range(width)
            ]
            try:
                await self._until_done(workers)
            finally:
                for task in (feeder, *workers):
                    task.cancel()
            await results.put(None)

    async def _until_done(self, workers: Sequence[asyncio.Task[None]]) -> None:
        """Until all workers are done, or an interrupt's grace is over."""
        done = asyncio.ensure_future(asyncio.wait(workers))
        stopped = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait([done, stopped], return_when=asyncio.FIRST_COMPLETED)
            if not done.done():
                await asyncio.wait([done], timeout=DRAIN_S)
        finally:
            stopped.cancel()
            done.cancel()

    async def _feed(self, name: str, lane: Lane, jobs: asyncio.Queue[Job | None]) -> None:
        async for pending in self._pages(name):
            await jobs.put(lane.build(pending))
        for _ in range(lane.width):
            await jobs.put(None)

    async def _pages(self, name: str) -> AsyncIterator[Pending]:
        after = 0
        while page := self.store.pending(name, after, PAGE):
            for pending in page:
                if self._halted(name):
                    return
                yield pending
            after = page[-1].id

    def _halted(self, name: str) -> bool:
        return self._stop.is_set() or self.progress[name].stopped is not None

    async def _work(
        self,
        name: str,
        backend: Backend,
        jobs: asyncio.Queue[Job | None],
        results: asyncio.Queue[Generation | Failure | None],
    ) -> None:
        while (job := await jobs.get()) is not None:
            if not self._halted(name):
                outcome = await self._paid(name, backend, job)
                if outcome is not None:
                    await results.put(outcome)

    async def _paid(self, name: str, backend: Backend, job: Job) -> Generation | Failure | None:
        """Ask within the budget; None if it was not asked."""
        if not await self.purse.reserve(name, job.request):
            progress = self.progress[name]
            progress.stopped = progress.stopped or self.purse.closed
            return None
        outcome: Generation | Failure | None = None
        try:
            if not self._halted(name):
                outcome = await _ask(backend, job)
        finally:
            outcome = self.purse.settle(name, job.request, outcome)
        return outcome

    async def _write(self, name: str, results: asyncio.Queue[Generation | Failure | None]) -> None:
        """Commit what has come: one by one when replies are rare, many at once when not."""
        over = False
        while not over:
            batch = [await results.get()]
            while not results.empty():
                batch.append(results.get_nowait())
            over = None in batch
            replies = [r for r in batch if isinstance(r, Generation)]
            failures = [r for r in batch if isinstance(r, Failure)]
            if replies or failures:
                self.store.commit(replies, failures)
                self._count(name, replies, failures)

    def _count(self, name: str, replies: Sequence[Generation], failures: Sequence[Failure]) -> None:
        progress = self.progress[name]
        progress.done += len(replies)
        progress.asked += len(replies)
        progress.failed += len(failures)
        progress.spent = self.purse.spent_on.get(name, 0.0)
        if failures:
            progress.last_failure = f"{failures[-1].kind.value}: {failures[-1].message}"
        if replies:
            progress.last_kinds.clear()
        progress.last_kinds.extend(f.kind for f in failures)
        equal = len(set(progress.last_kinds)) == 1
        fatal = next((f for f in failures if f.fatal), None)
        if fatal or (equal and len(progress.last_kinds) == MAX_EQUAL_FAILURES):
            last = fatal or failures[-1]
            progress.stopped = progress.stopped or f"{last.kind.value}: {last.message}"
        self.on_progress(name, progress)


async def _ask(backend: Backend, job: Job) -> Generation | Failure:
    try:
        if job.lesson is not None:
            cast(Coached, backend).coach(job.request, job.lesson)
        return await backend.generate(job.request)
    except Exception as error:  # a backend's bug must not cost the run
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        return Failure(job.request.id, FailureKind.INTERNAL, _said(error), at=at)


def _said(error: Exception) -> str:
    """What a backend's bug says, clipped, without the keys that the environment holds."""
    found = (value for name, value in os.environ.items() if _KEY_NAME.search(name))
    keys = [Secret(value) for value in found if value.isascii()]
    # Redacted before it is clipped: half a key would not be known for one.
    text = " ".join(Redactor(keys).text(str(error)).split())[:SAID_CHARS]
    return f"{type(error).__name__} in the backend" + (f": {text}" if text else "")
