"""One thread drives the engine's pipeline; others hand it work.

The pipeline refuses calls from two threads and is fastest when many requests are in flight,
so that each of its steps has a full batch. It keeps the keys and values of prompts it has
seen: requests enter it a batch at a time, and every batch finds the beginnings it shares
with earlier ones (a wrapper's instruction, another seed's whole prompt) already computed.
"""

from __future__ import annotations

import atexit
import logging
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any, NamedTuple

BATCH_TOKENS = 1024
"""Tokens computed in one step.

Larger steps are up to 30% faster where there is AMX and no faster elsewhere, but every reply
under way waits for each of them, and an interrupted run loses what is under way.
"""

MAX_LIVE = 128
"""Requests in the pipeline at a time; more gain nothing."""

BLOCK_TOKENS = 32
"""The engine reserves its key-value cache in blocks of so many tokens."""

log = logging.getLogger(__name__)


class Output(NamedTuple):
    """What came of a job."""

    result: Any
    """The engine's output of the one sequence."""
    first_token_s: float | None
    """Seconds from submitting to the first token."""
    latency_s: float


class Rejected(Exception):
    """The engine refused this one job; others are not touched."""


class EngineError(Exception):
    """The engine could not be started, or was closed."""


@dataclass(eq=False)
class Job:
    """A prompt to complete."""

    tokens: Any
    """Prompt tokens, the engine's tensor of shape (1, n)."""
    config: Any
    max_tokens: int
    future: Future[Output] = field(default_factory=Future)
    asked: float = field(default_factory=time.monotonic)
    first_token_s: float | None = None
    alone: bool = False
    """Must run by itself: it was in flight when the pipeline broke."""

    @property
    def prompt_tokens(self) -> int:
        """Length of the prompt."""
        return int(self.tokens.shape[1])

    @property
    def reserved(self) -> int:
        """Tokens of the key-value cache that the job may come to need."""
        blocks = -(-(self.prompt_tokens + self.max_tokens) // BLOCK_TOKENS)
        return blocks * BLOCK_TOKENS


class Engine:
    """The thread, and the queue to it.

    Args:
        open_pipeline: Makes the pipeline; called in the thread, on the first job and again
            after a failure.
        capacity: Tokens that the pipeline's key-value cache holds.
    """

    def __init__(self, open_pipeline: Callable[[], Any], capacity: int) -> None:
        self.capacity = capacity
        self._inbox: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._driver = _Driver(open_pipeline, capacity, self._inbox)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, job: Job) -> Future[Output]:
        """Queue a job; cancelling the returned future drops it from the pipeline.

        The future raises `Rejected` or `EngineError`.
        """
        with self._lock:
            if self._closed:
                raise EngineError("the engine is closed")
            if self._thread is None:
                self._thread = self._start()
            self._inbox.put(job)
        return job.future

    def close(self) -> None:
        """Fail what is in flight, end the thread and free the model's memory."""
        with self._lock:
            thread, self._thread, self._closed = self._thread, None, True
        if thread is not None:
            self._inbox.put(None)
            thread.join()

    def _start(self) -> threading.Thread:
        # A daemon, so that a program that forgets to close does not wait for ever; closed at
        # exit nevertheless, since a thread inside the engine when Python ends would crash.
        thread = threading.Thread(target=self._driver.run, name="formatspan-engine", daemon=True)
        thread.start()
        myself = weakref.ref(self)
        atexit.register(lambda: engine.close() if (engine := myself()) else None)
        return thread


class _Driver:
    """What runs in the thread."""

    def __init__(
        self,
        open_pipeline: Callable[[], Any],
        capacity: int,
        inbox: queue.SimpleQueue[Job | None],
    ) -> None:
        self._open, self._capacity, self._inbox = open_pipeline, capacity, inbox
        self._pipeline: Any = None
        self._waiting: deque[Job] = deque()
        self._live: dict[Job, Any] = {}
        self._ids = 0

    def run(self) -> None:
        """Serve until told to stop."""
        try:
            while self._take():
                self._serve()
        finally:
            self._fail(EngineError("the engine was closed"))
            self._pipeline = None

    def _take(self) -> bool:
        """Fetch new jobs, waiting for one if there is nothing to do; False is the end."""
        while True:
            idle = not self._waiting and not self._live
            try:
                job = self._inbox.get(block=idle)
            except queue.Empty:
                return True
            if job is None:
                return False
            self._waiting.append(job)

    def _serve(self) -> None:
        """One step of the pipeline, whatever happens in it."""
        try:
            if self._pipeline is None:
                self._pipeline = self._open()
        except Exception as error:
            self._fail(EngineError(str(error)))
            return
        try:
            self._drop_cancelled()
            self._admit()
            if self._live:
                self._pipeline.step()
                self._collect()
        except Exception as error:
            self._recover(error)

    def _drop_cancelled(self) -> None:
        for job in [job for job in self._live if job.future.cancelled()]:
            self._live.pop(job).cancel()

    def _admit(self) -> None:
        """Move waiting jobs into the pipeline, about one step's tokens at a time."""
        fresh = 0
        while self._waiting and self._fits(self._waiting[0], fresh):
            job = self._waiting.popleft()
            if job.future.cancelled():
                continue
            fresh += job.prompt_tokens
            self._add(job)

    def _fits(self, job: Job, fresh: int) -> bool:
        if not self._live:
            return True
        if job.alone or any(live.alone for live in self._live):
            return False
        reserved = sum(live.reserved for live in self._live) + job.reserved
        return (
            len(self._live) < MAX_LIVE
            and reserved <= self._capacity
            and (fresh == 0 or fresh + job.prompt_tokens <= BATCH_TOKENS)
        )

    def _add(self, job: Job) -> None:
        self._ids += 1
        try:
            self._live[job] = self._pipeline.add_request(self._ids, job.tokens, job.config)
        except (RuntimeError, ValueError, TypeError) as error:
            _settle(job, Rejected(last_line(error)))

    def _collect(self) -> None:
        now = time.monotonic()
        for job, handle in list(self._live.items()):
            if job.first_token_s is None and handle.can_read():
                job.first_token_s = now - job.asked
            if handle.get_status().name == "RUNNING":
                continue
            del self._live[job]
            outputs = handle.read_all()
            if outputs:
                _settle(job, Output(outputs[0], job.first_token_s, now - job.asked))
            else:
                _settle(job, Rejected(f"the engine ended it as {handle.get_status().name}"))

    def _recover(self, error: Exception) -> None:
        """Give up on a job that broke a step by itself; else run all in flight one by one.

        A grammar that the engine cannot read, for one, raises in the step that would use it,
        and then in every further step, until its request is cancelled.
        """
        log.debug("the pipeline broke", exc_info=error)
        jobs = self._empty()
        if len(jobs) <= 1:
            for job in jobs:
                _settle(job, Rejected(last_line(error)))
            return
        for job in reversed(jobs):
            job.alone = True
            self._waiting.appendleft(job)

    def _empty(self) -> list[Job]:
        """Take everything out of the pipeline; one that cannot be emptied is given up."""
        live, self._live = self._live, {}
        try:
            for handle in live.values():
                handle.cancel()
            if live:
                self._pipeline.step()  # cancelled requests leave at the end of a step
        except Exception as error:
            log.debug("the pipeline is given up", exc_info=error)
            self._pipeline = None
        return list(live)

    def _fail(self, error: Exception) -> None:
        """End all jobs, those still on their way here too."""
        jobs = [*self._empty(), *self._waiting]
        self._waiting.clear()
        while True:
            try:
                job = self._inbox.get_nowait()
            except queue.Empty:
                break
            if job is not None:
                jobs.append(job)
            else:  # keep the end in sight
                self._inbox.put(None)
                break
        for job in jobs:
            _settle(job, error)


def last_line(error: Exception) -> str:
    """The telling part of an engine's message, which begins with paths of its build machine."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[-1] if lines else type(error).__name__
    return text.rpartition(": ")[2] if text.startswith("[") else text


def _settle(job: Job, outcome: Output | Exception) -> None:
    try:
        if isinstance(outcome, Output):
            job.future.set_result(outcome)
        else:
            job.future.set_exception(outcome)
    except InvalidStateError:  # cancelled meanwhile
        pass
