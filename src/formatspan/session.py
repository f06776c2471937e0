"""One session on a run: open the folder, plan what is new, ask it, close. The public ``run``."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Protocol

from formatspan._version import __version__
from formatspan.backends.base import Backend, Lesson
from formatspan.contracts import AnswerSpace, Contract
from formatspan.errors import RunError
from formatspan.folder import Run, RunFolder, default_folder
from formatspan.grid import OpenModel, lesson, request_for
from formatspan.growth import merge
from formatspan.planning import described, load_tasks, open_models, write_plan
from formatspan.records import Example, Point
from formatspan.runner import Job, Lane, Progress, Runner
from formatspan.store import Pending, Store
from formatspan.study import Study
from formatspan.study_file import write_atomically


class Listener(Protocol):
    """Hears how a run goes; all methods are called from one thread."""

    def say(self, text: str) -> None:
        """One line about what happens now."""
        ...

    def progress(self, model: str, progress: Progress) -> None:
        """A model's queue moved on."""
        ...


class Silent:
    """A listener that shows nothing."""

    def say(self, text: str) -> None:
        """Nothing."""

    def progress(self, model: str, progress: Progress) -> None:
        """Nothing."""


def run(
    study: Study,
    *,
    out: Path | str | None = None,
    data_dir: Path | str | None = None,
    cache: Path | str | None = None,
    fresh: bool = False,
    listener: Listener | None = None,
) -> Run:
    """Run a study, or go on with it: ask what the run's folder lacks.

    Args:
        study: What to ask.
        out: The run's folder; ``runs/<name>`` by default.
        data_dir: Folder with ``<task>.jsonl`` files in the hub's field names.
        cache: SQLite file that shares replies between runs; made if missing.
        fresh: Set an earlier run in that folder aside and start anew.
        listener: Hears how it goes.

    Raises:
        UserError: The study, its data, a model or the folder cannot be used as asked.
        StorageError: The disk is full or unwritable; what was committed stays.
    """
    folder = RunFolder(Path(out)) if out is not None else default_folder(study.name)
    hears = listener or Silent()
    if fresh and folder.store.exists():
        # A command that cannot run must not cost the place of the run that is there.
        open_models(study)
        load_tasks(study, Path(data_dir) if data_dir else None)
        hears.say(f"the earlier run is kept in {folder.set_aside()}")
    folder.make()
    with folder.locked(), Store.create(folder.store) as store:
        session = _Session(folder, store, hears, Path(data_dir) if data_dir else None)
        return session.run(study, Path(cache) if cache is not None else None)


@dataclass
class _Session:
    folder: RunFolder
    store: Store
    listener: Listener
    data_dir: Path | None

    def merged(self, study: Study) -> Study:
        """What the folder's run becomes with ``study`` added."""
        known = self.store.meta("study")
        return merge(Study.model_validate_json(known), study) if known else study

    def run(self, given: Study, cache: Path | None) -> Run:
        study = self.merged(given)
        backends = open_models(given)  # not those of earlier commands, whose keys may be gone
        models = {
            entry.name: described(study, entry, backends[entry.name]) for entry in given.models
        }
        self._plan(study, models, backends)
        shared = self.store.take_from(cache) if cache else 0
        started = time.monotonic()
        runner = Runner(self.store, self.listener.progress)
        try:
            _in_own_loop(self._ask(runner, study, backends, models))
        finally:
            if cache:
                self.store.give_to(cache)
        return self._result(runner, shared, time.monotonic() - started)

    def _plan(
        self, study: Study, models: Mapping[str, OpenModel], backends: Mapping[str, Backend]
    ) -> None:
        known = self.store.meta("study")
        facts = {name: backend.describe() for name, backend in backends.items()}
        if known is None or Study.model_validate_json(known) != study:
            self.listener.say("planning the grid")
            tasks = load_tasks(study, self.data_dir)
            for data in tasks:
                for note in data.notes:
                    self.listener.say(f"task {data.task.name}: {note}")
            write_plan(self.store, study, tasks, list(models.values()), facts)
        else:
            write_plan(self.store, study, [], list(models.values()), facts)
        write_atomically(self.folder.study, _header() + study.to_yaml())

    async def _ask(
        self,
        runner: Runner,
        study: Study,
        backends: dict[str, Backend],
        models: Mapping[str, OpenModel],
    ) -> None:
        builder = _Builder(study, self.store)
        lanes = {
            name: Lane(backend, builder.of(models[name], backend), _width(models[name], backend))
            for name, backend in backends.items()
            if self.store.pending(name, 0, 1)
        }
        try:
            with _interruptible(runner, self.listener):
                await runner.run(lanes)
        except asyncio.CancelledError:
            if not runner.interrupted:
                raise
        except BaseExceptionGroup as group:
            raise _first(group) from None
        finally:
            for backend in backends.values():
                await backend.aclose()

    def _result(self, runner: Runner, shared: int, seconds: float) -> Run:
        counts = self.store.counts().values()
        progress = runner.progress
        return Run(
            folder=self.folder.path,
            points=sum(c.points for c in counts),
            done=sum(c.done for c in counts),
            asked=sum(p.asked for p in progress.values()),
            shared=shared,
            failed=sum(p.failed for p in progress.values()),
            stopped={name: p.stopped for name, p in progress.items() if p.stopped},
            failures={name: p.last_failure for name, p in progress.items() if p.last_failure},
            interrupted=runner.interrupted,
            seconds=seconds,
        )


class _Builder:
    """Makes requests of pending points; examples are read only where they are needed."""

    def __init__(self, study: Study, store: Store) -> None:
        self.study, self.store = study, store
        self.wrappers = {entry.name: entry.build() for entry in study.wrappers}
        self.answers = store.answers()

    @cached_property
    def examples(self) -> dict[tuple[str, str], Example]:
        return {(e.task, e.id): e for e in self.store.examples()}

    def of(self, model: OpenModel, backend: Backend) -> _Build:
        return _Build(self, model, backend.capabilities.coached)


@dataclass
class _Build:
    """Makes the requests of one model."""

    shared: _Builder
    model: OpenModel
    coached: bool

    def __call__(self, pending: Pending) -> Job:
        point, prompt = pending.point, pending.prompt
        contract, bare = self.asked(point.wrapper, point.task)
        space, told = bare, None
        if self.coached or point.mode == "constrained":
            example = self.shared.examples[point.task, point.example_id]
            space = AnswerSpace.of_options(bare.kind, example.options)
            told = self._lesson(pending, example) if self.coached else None
        study = self.shared.study
        asked = contract, space
        request = request_for(
            study, self.model, prompt, asked, point.mode, point.seed, self._known(point)
        )
        if request.id != point.request_id:
            raise RunError(
                f"request of task {point.task!r}, example {point.example_id!r}: its content is "
                "not what was planned; the store was made by another version: use --fresh"
            )
        return Job(request, told)

    def _known(self, point: Point) -> str | None:
        """The planned id, once its like was checked: what could change it changes all alike.

        Messages come from the store beside the id; the rest is the model's, the wrapper's and
        the task's.
        """
        like = point.task, point.wrapper, point.mode
        if like in self.checked:
            return point.request_id
        self.checked.add(like)
        return None

    @cached_property
    def checked(self) -> set[tuple[str, str, str]]:
        """Tasks, wrappers and modes of which one request was made from scratch."""
        return set()

    @cached_property
    def asked(self) -> Callable[[str, str], tuple[Contract, AnswerSpace]]:
        """The contract of a wrapper and the answers of a task, made once for each pair."""

        @cache
        def found(wrapper: str, task: str) -> tuple[Contract, AnswerSpace]:
            answers = self.shared.answers[task]
            contract = self.shared.wrappers[wrapper].contract.asking(answers)
            return contract, AnswerSpace(answers.kind)

        return found

    def _lesson(self, pending: Pending, example: Example) -> Lesson:
        wrapper = self.shared.wrappers[pending.point.wrapper]
        return lesson(pending.prompt, wrapper, self.shared.answers[pending.point.task], example)


def _width(model: OpenModel, backend: Backend) -> int:
    return model.entry.concurrency or backend.capabilities.concurrency


def _header() -> str:
    return (
        f"# The study of this run as resolved by formatspan {__version__}; it can be run again.\n"
    )


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error of a task group, out of its wrapping."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _in_own_loop(coroutine: Coroutine[None, None, None]) -> None:
    """Run to the end, also from within a notebook, whose loop is already running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        _run(coroutine)
        return
    failure: list[BaseException] = []

    def target() -> None:
        try:
            _run(coroutine)
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=target, name="formatspan-run")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]


def _run(coroutine: Coroutine[None, None, None]) -> None:
    """Run on uvloop, which halves what connections cost; on asyncio's own loop without it."""
    try:
        from uvloop import new_event_loop
    except ImportError:  # Windows has none
        asyncio.run(coroutine)
        return
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(coroutine)


@contextmanager
def _interruptible(runner: Runner, listener: Listener) -> Iterator[None]:
    """Ctrl-C asks no more and waits a little; a second one gives up what is under way."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    asking = asyncio.current_task()

    def interrupt() -> None:
        if runner.interrupted and asking is not None:
            asking.cancel()
            return
        listener.say("stopping: waiting for replies under way, Ctrl-C again to give them up")
        runner.interrupt()

    try:
        loop.add_signal_handler(signal.SIGINT, interrupt)
    except NotImplementedError:  # Windows: KeyboardInterrupt ends the session at once
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
