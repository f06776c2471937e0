"""The other way to ask: as batches of a file's worth, cheaper and later, instead of one by one.

A batch is noted in the store before it is made and until its replies are committed. Whoever is
killed finds it again by the token in its metadata, so nothing is asked twice. What a batch did
not answer stays pending.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from formatspan.backends.base import Backend, ModelSpec
from formatspan.backends.batch_api import (
    BatchApi,
    BatchRefused,
    BatchState,
    Sleep,
    answered,
    input_line,
)
from formatspan.backends.chat_fault import clip
from formatspan.backends.raw import RawEndpoint
from formatspan.batches.notes import Open, forget, note, open_batches
from formatspan.batches.replies import outcome_of
from formatspan.records import Failure, Generation
from formatspan.runner import Job, Progress
from formatspan.spending.pricing import BATCH_DISCOUNT, ModelPrice
from formatspan.spending.purse import Purse, most_tokens
from formatspan.store import Pending, Store

MOST_REQUESTS, MOST_BYTES = 50_000, 100 << 20
"""What a batch may hold at OpenAI, the bytes with room to spare."""
PAGE = 512


class Pace(NamedTuple):
    """How often a batch is looked at."""

    first_s: float = 5.0
    most_s: float = 60.0
    growth: float = 1.5
    sleep: Sleep = asyncio.sleep


PACE = Pace()


class BatchLane(NamedTuple):
    """What must be known of one model to ask it by batches."""

    spec: ModelSpec
    backend: Backend
    build: Callable[[Pending], Job]


class Batcher:
    """Asks everything that is pending in a store by batches; stands in for the runner.

    Args:
        store: The run's store; the batcher is its only writer.
        on_progress: Called with the model's label after every commit.
        say: Told what is going on.
        purse: Pays.
    """

    def __init__(
        self,
        store: Store,
        on_progress: Callable[[str, Progress], None],
        say: Callable[[str], None],
        purse: Purse | None = None,
    ) -> None:
        self.store, self.on_progress, self.say = store, on_progress, say
        self.purse = purse or Purse()
        self.progress: dict[str, Progress] = {}
        self._stop = asyncio.Event()

    @property
    def interrupted(self) -> bool:
        """Whether it was asked to stop."""
        return self._stop.is_set()

    def interrupt(self) -> None:
        """Wait no longer; batches under way are fetched by the next session."""
        self._stop.set()

    async def run(self, lanes: Mapping[str, BatchLane]) -> None:
        """Submit what is pending, wait for it, and commit what came.

        Raises:
            StorageError: The store cannot be written; what was committed stays.
        """
        counts = self.store.counts()
        for name in lanes:
            spent = self.purse.spent_on.get(name, 0.0)
            self.progress[name] = Progress(counts[name].points, counts[name].done, spent=spent)
        for batch in open_batches(self.store):
            self.purse.hold(batch.token, batch.most)
        async with asyncio.TaskGroup() as group:
            for name, lane in lanes.items():
                group.create_task(self._run_model(name, lane))

    async def _run_model(self, name: str, lane: BatchLane) -> None:
        endpoint = RawEndpoint(lane.spec, timeout_s=600)
        api = BatchApi(endpoint, PACE.sleep)
        try:
            await self._recover(name, api)
            await self._submit_all(name, lane, api)
            for batch in self._open(name):
                await self._finish(name, lane, api, batch)
        except BatchRefused as error:
            self.progress[name].stopped = f"batch: {error}"
        finally:
            await endpoint.aclose()

    def _open(self, name: str) -> list[Open]:
        return [b for b in open_batches(self.store) if b.model == name]

    def _note(self, batch: Open, *, over: bool = False) -> None:
        """Put a batch into the store's list in the place of what it was, or take it out."""
        if over:
            forget(self.store, batch)
            self.purse.release(batch.token)
        else:
            note(self.store, batch)

    # --- submitting ------------------------------------------------------------------------

    async def _recover(self, name: str, api: BatchApi) -> None:
        """Find what an earlier session made but did not live to note."""
        for batch in self._open(name):
            if batch.id is None:
                made = await api.find(batch.token)
                self._note(replace(batch, id=made.id if made else None), over=made is None)

    async def _submit_all(self, name: str, lane: BatchLane, api: BatchApi) -> None:
        price = self.purse.prices.get(name)
        for chunk in self._chunks(name, lane, price):
            if self.interrupted:
                return
            self.purse.hold(chunk.note.token, chunk.note.most)
            self._note(chunk.note)
            try:
                state = await api.create(await api.upload(chunk.content), chunk.note.token)
            except BatchRefused as error:
                if error.certain:
                    self._note(chunk.note, over=True)
                raise
            self._note(replace(chunk.note, id=state.id))
            self.say(f"{name}: {chunk.note.requests} requests are in batch {state.id}")

    def _chunks(self, name: str, lane: BatchLane, price: ModelPrice | None) -> Iterator[_Chunk]:
        lines: list[bytes] = []
        size, most, first, last = 0, 0.0, 0, 0
        for pending in self._unsubmitted(name):
            job = lane.build(pending)
            line, cost = input_line(lane.spec, job.request), _most(price, job)
            full = len(lines) == MOST_REQUESTS or size + len(line) > MOST_BYTES
            poor = not self.purse.fits(most + cost)
            if lines and (full or poor):
                yield _Chunk.of(name, lines, first, last, most)
                lines, size, most, first = [], 0, 0.0, last
                poor = not self.purse.fits(cost)
            if poor:
                self.purse.close()
                self.progress[name].stopped = self.purse.closed
                return
            lines.append(line)
            size, most, last = size + len(line), most + cost, pending.id
        if lines:
            yield _Chunk.of(name, lines, first, last, most)

    def _unsubmitted(self, name: str) -> Iterator[Pending]:
        ranges = [(b.after, b.last) for b in self._open(name)]
        for pending in self._pending(name, 0):
            if not any(after < pending.id <= last for after, last in ranges):
                yield pending

    def _pending(self, name: str, after: int) -> Iterator[Pending]:
        while page := self.store.pending(name, after, PAGE):
            yield from page
            after = page[-1].id

    # --- fetching --------------------------------------------------------------------------

    async def _finish(self, name: str, lane: BatchLane, api: BatchApi, batch: Open) -> None:
        state = await self._wait(name, api, batch)
        if state is None:
            return
        files = [f for f in (state.output_file, state.error_file) if f is not None]
        replies, failures = self._read(name, batch, [await api.fetch(file) for file in files])
        self.store.commit(replies, failures)
        for reply in replies:
            self.purse.spend(name, self._charged(name, batch, reply))
        self._note(batch, over=True)
        self._count(name, batch, state, replies, failures)

    async def _wait(self, name: str, api: BatchApi, batch: Open) -> BatchState | None:
        """Until the batch is over; None if we are asked to stop before."""
        wait_s, known = PACE.first_s, ""
        assert batch.id is not None
        while True:
            state = await api.look(batch.id)
            if state is not None and state.is_over:
                return state
            if state is not None and state.status != known:
                known = state.status
                self.say(f"{name}: batch {batch.id} is {clip(known, 40)}")
            if self.interrupted or await self._stopped_within(wait_s):
                return None
            wait_s = min(PACE.most_s, wait_s * PACE.growth)

    async def _stopped_within(self, seconds: float) -> bool:
        waiting = [asyncio.ensure_future(PACE.sleep(seconds))]
        stopping = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait([*waiting, stopping], return_when=asyncio.FIRST_COMPLETED)
        for task in (*waiting, stopping):
            task.cancel()
        return self.interrupted

    def _read(
        self, name: str, batch: Open, contents: Sequence[bytes]
    ) -> tuple[list[Generation], list[Failure]]:
        asked = {p.point.request_id for p in self._pending(name, batch.after) if p.id <= batch.last}
        price = self.purse.prices.get(name)
        replies: dict[str, Generation] = {}
        failures: dict[str, Failure] = {}
        for content in contents:
            for row in answered(content):
                if row.request_id not in asked or row.expired:
                    continue  # another run's line, or one that was not worked on
                outcome = outcome_of(row, price)
                if isinstance(outcome, Generation):
                    replies[row.request_id] = outcome
                else:
                    failures[row.request_id] = outcome
        return list(replies.values()), [f for id_, f in failures.items() if id_ not in replies]

    def _charged(self, name: str, batch: Open, reply: Generation) -> float:
        """What a reply cost, or the most that it can have cost."""
        price = self.purse.prices.get(name)
        if reply.cost is not None:
            return reply.cost
        if price is None or reply.prompt_tokens is None or reply.completion_tokens is None:
            return batch.most / batch.requests
        return price.scaled(BATCH_DISCOUNT).dollars(reply.prompt_tokens, reply.completion_tokens)

    def _count(
        self,
        name: str,
        batch: Open,
        state: BatchState,
        replies: Sequence[Generation],
        failures: Sequence[Failure],
    ) -> None:
        progress = self.progress[name]
        progress.done += len(replies)
        progress.asked += len(replies)
        progress.failed += len(failures)
        progress.spent = self.purse.spent_on.get(name, 0.0)
        if failures:
            progress.last_failure = f"{failures[-1].kind.value}: {failures[-1].message}"
        left = batch.requests - len(replies) - len(failures)
        if state.status != "completed" or left > 0:
            why = f": {state.errors}" if state.errors else ""
            progress.stopped = f"batch {state.id} {state.status}{why}; {left} requests unanswered"
        self.on_progress(name, progress)


class _Chunk(NamedTuple):
    """The input of a batch that is to be made."""

    note: Open
    content: bytes

    @classmethod
    def of(cls, name: str, lines: Sequence[bytes], after: int, last: int, most: float) -> _Chunk:
        note = Open(name, uuid.uuid4().hex, after, last, len(lines), most)
        return cls(note, b"".join(lines))


def _most(price: ModelPrice | None, job: Job) -> float:
    if price is None:
        return 0.0
    return price.scaled(BATCH_DISCOUNT).dollars(*most_tokens(job.request))
