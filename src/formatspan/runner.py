"""The only generation loop: takes pending points from the store, asks, commits, counts.

Requests are made one by one from pages of pending points, so memory does not grow with the run.
All that touches the store happens on one thread of its own: replies go on arriving while a
commit waits for the disk. A reply counts as done when it is committed.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, ParamSpec, TypeVar, cast

from msgspec import Struct

from formatspan.backends.base import Backend, Coached, Haltable, Lesson, Waiting
from formatspan.backends.redaction import Redactor, Secret
from formatspan.moments import utc_now
from formatspan.records import Failure, FailureKind, Generation, Request
from formatspan.spending.purse import Purse
from formatspan.store import Pending, Store
from formatspan.stored import row_of

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
UNWRITTEN = 1_024
"""Replies that wait for their commit at most; beyond them, asking waits too."""
TELL_S = 5.0
"""Seconds between looks at what models wait for."""
BUSY = 8
"""Replies in one commit from which the next one is worth a moment's wait for more."""
LINGER_S = 0.02
"""That moment. A commit costs a wait for the disk, however many replies it holds."""

P = ParamSpec("P")
T = TypeVar("T")


class Job(Struct, frozen=True, gc=False):
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
    waiting: str | None = None
    """What the model waits for, while no replies come for that reason."""
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
        self._lanes: Mapping[str, Lane] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="formatspan-store")

    @property
    def interrupted(self) -> bool:
        """Whether the run was asked to stop."""
        return self._stop.is_set()

    def interrupt(self) -> None:
        """Ask no more; replies under way are still taken for a while."""
        self._stop.set()
        for lane in self._lanes.values():
            if isinstance(lane.backend, Haltable):
                lane.backend.halt()

    async def run(self, lanes: Mapping[str, Lane]) -> None:
        """Ask all pending requests: models that take the whole machine one after another.

        Raises:
            StorageError: The store cannot be written; what was committed stays.
        """
        if not lanes:
            return
        self._lanes = lanes
        counts = self.store.counts()
        for name in lanes:
            self.progress[name] = Progress(counts[name].points, counts[name].done)
            self.progress[name].spent = self.purse.spent_on.get(name, 0.0)
        results = _Unwritten()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._write(results))
                telling = group.create_task(self._tell_waits(lanes))
                async with asyncio.TaskGroup() as asking:
                    self._ask_all(asking, lanes, results)
                telling.cancel()
                results.close()
        finally:
            self._thread.shutdown()

    def _ask_all(
        self,
        group: asyncio.TaskGroup,
        lanes: Mapping[str, Lane],
        results: _Unwritten,
    ) -> None:
        alone = [n for n, lane in lanes.items() if lane.backend.capabilities.exclusive]
        for name in lanes.keys() - set(alone):
            group.create_task(self._run_model(name, lanes[name], results))
        group.create_task(self._one_by_one({name: lanes[name] for name in alone}, results))

    async def _tell_waits(self, lanes: Mapping[str, Lane]) -> None:
        """Say what models wait for, as long as nothing comes of them."""
        before: dict[str, tuple[int, int]] = {}
        while True:
            await asyncio.sleep(TELL_S)
            for name, lane in lanes.items():
                progress = self.progress[name]
                now = progress.done, progress.failed
                quiet, before[name] = before.get(name) == now, now
                waits = quiet and isinstance(lane.backend, Waiting) and not self._halted(name)
                why = cast(Waiting, lane.backend).waiting() if waits else None
                if why or progress.waiting:
                    progress.waiting = why
                    self.on_progress(name, progress)

    async def _one_by_one(self, lanes: Mapping[str, Lane], results: _Unwritten) -> None:
        for name, lane in lanes.items():
            await self._run_model(name, lane, results)
            await lane.backend.aclose()

    async def _run_model(self, name: str, lane: Lane, results: _Unwritten) -> None:
        feed = _Feed(lambda after: self._in_store(self.store.pending, name, after, PAGE))
        workers = [
            asyncio.create_task(self._work(name, lane, feed, results)) for _ in range(lane.width)
        ]
        try:
            await self._until_done(workers)
        finally:
            feed.close()
            for task in workers:
                task.cancel()
        for task in workers:
            if task.done() and not task.cancelled():
                task.result()

    async def _until_done(self, workers: Sequence[asyncio.Task[None]]) -> None:
        """Until all workers are done or one has failed, or an interrupt's grace is over."""
        done = asyncio.ensure_future(asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION))
        stopped = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait([done, stopped], return_when=asyncio.FIRST_COMPLETED)
            if not done.done():
                await asyncio.wait([done], timeout=DRAIN_S)
        finally:
            stopped.cancel()
            done.cancel()

    def _halted(self, name: str) -> bool:
        return self._stop.is_set() or self.progress[name].stopped is not None

    async def _work(self, name: str, lane: Lane, feed: _Feed, results: _Unwritten) -> None:
        while not self._halted(name):
            if (pending := feed.next()) is None:
                pending = await feed.take()
                if pending is None or self._halted(name):
                    return
            outcome = await self._paid(name, lane.backend, lane.build(pending))
            if outcome is None:
                return
            self._heed(self.progress[name], outcome)
            results.add(name, pending.number, outcome)
            if len(results) >= UNWRITTEN:
                await results.room()

    async def _paid(self, name: str, backend: Backend, job: Job) -> Generation | Failure | None:
        """Ask within the budget; None if it was not asked."""
        purse, request = self.purse, job.request
        if not purse.reserve_now(name, request):
            if not await purse.reserve(name, request):
                progress = self.progress[name]
                progress.stopped = progress.stopped or purse.closed
                return None
            if self._halted(name):
                purse.settle(name, request, None)
                return None
        outcome: Generation | Failure | None = None
        try:
            if job.lesson is not None:
                cast(Coached, backend).coach(request, job.lesson)
            outcome = await backend.generate(request)
        except Exception as error:  # a backend's bug must not cost the run
            outcome = Failure(request.id, FailureKind.INTERNAL, _said(error), at=utc_now())
        finally:
            outcome = purse.settle(name, request, outcome)
        return outcome

    async def _write(self, results: _Unwritten) -> None:
        """Commit what has come: one by one when replies are rare, many at once when not."""
        busy = False
        while await results.some():
            if busy and len(results) < UNWRITTEN // 2:
                await results.linger(LINGER_S)
            batch = results.take()
            count = sum(map(len, batch.values()))
            await self._commit(batch)
            results.written(count)
            busy = count >= BUSY

    async def _commit(self, batch: Mapping[str, Sequence[_Came]]) -> None:
        # Rows are made here: two threads in turns at the interpreter cost more than they save.
        rows = [
            row_of(number, reply)
            for came in batch.values()
            for number, reply in came
            if isinstance(reply, Generation)
        ]
        # What was never sent says nothing of its request.
        failures = {
            model: [(n, o) for n, o in came if isinstance(o, Failure) and o.attempts]
            for model, came in batch.items()
        }
        await self._in_store(self.store.write, rows, [f for fs in failures.values() for f in fs])
        for model, came in batch.items():
            replies = sum(isinstance(outcome, Generation) for _, outcome in came)
            self._count(model, replies, [failure for _, failure in failures[model]])

    async def _in_store(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: call(*args, **kwargs))

    def _heed(self, progress: Progress, outcome: Generation | Failure) -> None:
        """Stop the model if its failures say that the next requests would fail alike."""
        if self.interrupted:
            return  # nothing is asked any more, and what was kept back fails for that reason
        if isinstance(outcome, Generation):
            progress.last_kinds.clear()
            return
        if outcome.attempts:
            progress.last_kinds.append(outcome.kind)
        equal = len(set(progress.last_kinds)) == 1
        if outcome.fatal or (equal and len(progress.last_kinds) == MAX_EQUAL_FAILURES):
            progress.stopped = progress.stopped or f"{outcome.kind.value}: {outcome.message}"

    def _count(self, name: str, replies: int, failures: Sequence[Failure]) -> None:
        progress = self.progress[name]
        progress.done += replies
        progress.asked += replies
        progress.failed += len(failures)
        progress.waiting = None
        progress.spent = self.purse.spent_on.get(name, 0.0)
        if failures:
            progress.last_failure = f"{failures[-1].kind.value}: {failures[-1].message}"
        self.on_progress(name, progress)


_Came = tuple[int, Generation | Failure]
"""The number of a request, and what came of it."""


class _Unwritten:
    """What came of requests and is not committed yet, by model."""

    def __init__(self) -> None:
        self._came: dict[str, list[_Came]] = defaultdict(list)
        self._count = 0
        self._some, self._room, self._over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def __len__(self) -> int:
        return self._count

    def add(self, model: str, number: int, outcome: Generation | Failure) -> None:
        """Add what came of a request, given by its number in the store."""
        if not self._came:
            self._some.set()
        self._came[model].append((number, outcome))
        self._count += 1

    async def room(self) -> None:
        """Wait until fewer than `UNWRITTEN` are left."""
        while self._count >= UNWRITTEN:
            self._room.clear()
            await self._room.wait()

    async def some(self) -> bool:
        """Wait until there is one to be committed; False if there will be none."""
        if not self._came and not self._over.is_set():
            self._some.clear()
            await self._some.wait()
        return bool(self._came)

    async def linger(self, seconds: float) -> None:
        """Let more come for so long, or until no more will."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), seconds)

    def take(self) -> dict[str, list[_Came]]:
        """All that came since; it counts until it is `written`."""
        came, self._came = self._came, defaultdict(list)
        return came

    def written(self, count: int) -> None:
        """So many were committed."""
        self._count -= count
        self._room.set()

    def close(self) -> None:
        """No more will come."""
        self._over.set()
        self._some.set()


class _Feed:
    """Hands out pending points, reading the next page while the last is being used up."""

    def __init__(self, page: Callable[[int], Awaitable[list[Pending]]]) -> None:
        self._page = page
        self._rows: deque[Pending] = deque()
        self._loading: asyncio.Task[None] | None = None
        self._after, self._over = 0, False

    def next(self) -> Pending | None:
        """The next point if it has been read already."""
        if len(self._rows) <= PAGE // 2 and not self._over and self._loading is None:
            self._loading = asyncio.ensure_future(self._load())
        return self._rows.popleft() if self._rows else None

    async def take(self) -> Pending | None:
        """The next point, or None after the last."""
        while (pending := self.next()) is None and self._loading is not None:
            await asyncio.shield(self._loading)
        return pending

    def close(self) -> None:
        """Read no more."""
        if self._loading is not None:
            self._loading.cancel()

    async def _load(self) -> None:
        try:
            page = await self._page(self._after)
            self._over = len(page) < PAGE
            if page:
                self._after = page[-1].id
            self._rows.extend(page)
        finally:
            self._loading = None


def _said(error: Exception) -> str:
    """What a backend's bug says, clipped, without the keys that the environment holds."""
    found = (value for name, value in os.environ.items() if _KEY_NAME.search(name))
    keys = [Secret(value) for value in found if value.isascii()]
    # Redacted before it is clipped: half a key would not be known for one.
    text = " ".join(Redactor(keys).text(str(error)).split())[:SAID_CHARS]
    return f"{type(error).__name__} in the backend" + (f": {text}" if text else "")
