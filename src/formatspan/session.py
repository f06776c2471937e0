"""One session on a run: open the folder, plan what is new, ask it, close. The public ``run``."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from formatspan._version import __version__
from formatspan.asking import Listener, Silent, ask, width
from formatspan.atomic import write_text
from formatspan.backends.base import Backend
from formatspan.batches.loop import Batcher, BatchLane
from formatspan.batches.notes import check_batchable, open_batches, refuse_open
from formatspan.building import Builder
from formatspan.checks.checkup import glances
from formatspan.counting import counted
from formatspan.errors import StudyError
from formatspan.folder import Run, RunFolder, default_folder
from formatspan.grid import OpenModel
from formatspan.growth import merge, refuse_other
from formatspan.paths import readable_folder
from formatspan.planning import (
    described,
    free_only,
    load_tasks,
    open_models,
    remember_rows,
    rows_folder,
    write_plan,
)
from formatspan.runner import Lane, Runner
from formatspan.spending.ledger import (
    checks_noted,
    purse_for,
    take_shared,
    unpriced_replies,
)
from formatspan.spending.price_lists import find_prices
from formatspan.spending.pricing import ModelPrice
from formatspan.spending.purse import check_priced
from formatspan.store import Store, check_cache, check_store, holds_plan
from formatspan.study import Study
from formatspan.tasks.task import TaskData


def run(
    study: Study,
    *,
    out: Path | str | None = None,
    data_dir: Path | str | None = None,
    cache: Path | str | None = None,
    fresh: bool = False,
    listener: Listener | None = None,
    max_cost: float | None = None,
    price_file: Path | str | None = None,
    check: bool = True,
    batch: bool = False,
) -> Run:
    """Run a study, or go on with it: ask what the run's folder lacks.

    Ctrl-C, also in a notebook, asks no more and takes the replies under way; the run that is
    returned says so (``interrupted``), and the same call goes on.

    Args:
        study: What to ask.
        out: The run's folder; ``runs/<name>`` by default. A study without a name does not go on
            with a run of other models or tasks unless its folder is named here.
        data_dir: Folder with ``<task>.jsonl`` files in the hub's field names; a run that goes on
            knows the one it had before.
        cache: SQLite file that shares replies between runs; made if missing.
        fresh: Set an earlier run in that folder aside and start anew.
        listener: Hears how it goes.
        max_cost: US dollars that the run may cost in all: it stops before the first request
            that could exceed it.
        price_file: YAML with prices, see `formatspan.spending.pricing`.
        check: Look at every endpoint with one tiny request before it is asked.
        batch: Ask through OpenAI's Batch API: half the price, within a day.

    Raises:
        UserError: The study, its data, a model or the folder cannot be used as asked.
        StorageError: The disk is full or unwritable; what was committed stays.
    """
    if not isinstance(study, Study):
        raise StudyError(
            f"run: expected a Study, got {type(study).__name__}: make one with "
            "Study.build({...}), Study.from_file(path) or Study.preset(name)"
        )
    study = _at_any_place(study)
    folder = default_folder(study.name) if out is None else RunFolder(_path(out, "out"))
    data = _path(data_dir, "data_dir") if data_dir is not None else None
    if data is not None:
        readable_folder(data, "--data")
    shared = _path(cache, "cache") if cache is not None else None
    hears = listener or Silent()
    check_store(folder.store)
    if shared is not None:
        check_cache(shared, folder.store)
    if batch:
        check_batchable(study)
    money = _Money(max_cost, _prices(study, max_cost, price_file, hears))
    if out is None and not fresh:
        _refuse_another(study, folder)
    aside = None
    if fresh and folder.store.exists():
        # A command that cannot run must not cost the place of the run that is there.
        open_models(study)
        load_tasks(study, data)
        aside = folder.set_aside()
        hears.say(f"the earlier run is kept in {aside}")
    made = folder.make()
    with (
        folder.locked(),
        _undone_unless_begun(folder, made, aside),
        Store.create(folder.store) as store,
    ):
        session = _Session(folder, store, hears, data, check and not batch, batch)
        return session.run(study, shared, money)


def _refuse_another(study: Study, folder: RunFolder) -> None:
    """A study that nobody named must not grow a run of another that nobody named."""
    if holds_plan(folder.store):
        with Store.read(folder.store) as store:
            refuse_other(Study.stored(store.meta("study"), folder.path), study, folder.path)


def _at_any_place(study: Study) -> Study:
    """``study`` with whole paths of data files: its folder may be run again from elsewhere."""
    tasks = (
        entry.model_copy(update={"file": str(Path(entry.file).resolve())}) if entry.file else entry
        for entry in study.tasks
    )
    return study.model_copy(update={"tasks": tuple(tasks)})


def _path(value: object, name: str) -> Path:
    if isinstance(value, Path | str):
        return Path(value)
    raise StudyError(f"run: {name}: expected a path, got {type(value).__name__}")


@contextmanager
def _undone_unless_begun(
    folder: RunFolder, made: Sequence[Path], aside: Path | None
) -> Iterator[None]:
    """A run that fails before anything is planned leaves nothing behind."""
    new = not folder.store.exists()
    try:
        yield
    except BaseException:
        if new and not holds_plan(folder.store):
            folder.remove(made)
            if aside is not None and not folder.path.exists():
                aside.rename(folder.path)
        raise


class _Money(NamedTuple):
    """What a run may cost, in US dollars, and known prices by model."""

    limit: float | None
    prices: dict[str, ModelPrice]


def _prices(
    study: Study, limit: float | None, price_file: Path | str | None, hears: Listener
) -> dict[str, ModelPrice]:
    found = find_prices(study, price_file, online=limit is not None)
    for note in found.failed:
        hears.say(note)
    check_priced(study, limit, found.prices)
    return found.prices


@dataclass
class _Session:
    folder: RunFolder
    store: Store
    listener: Listener
    data_dir: Path | None
    check: bool = True
    batch: bool = False
    refused: dict[str, str] = field(default_factory=dict)
    """Models that turned out not to be usable before they were asked, and why."""

    def merged(self, study: Study) -> Study:
        """What the folder's run becomes with ``study`` added."""
        known = self.store.meta("study")
        return merge(Study.stored(known, self.folder.path), study) if known else study

    def run(self, given: Study, cache: Path | None, money: _Money) -> Run:
        study = self.merged(given)
        if not self.batch:
            refuse_open(self.store, given)
        backends = open_models(given)  # not those of earlier commands, whose keys may be gone
        models = {
            entry.name: described(study, entry, backends[entry.name]) for entry in given.models
        }
        self._plan(study, models, backends)
        shared = take_shared(self.store, cache) if cache else 0
        started = time.monotonic()
        purse = purse_for(self.store, study, money.limit, money.prices)
        heard = self.listener.progress
        loop: Runner | Batcher = Runner(self.store, heard, purse)
        if self.batch:
            loop = Batcher(self.store, heard, self.listener.say, purse)
        lanes = self._lanes(study, backends, models)
        try:
            ask(lambda: self._work(loop, study, lanes), loop, backends, self.listener)
        finally:
            if cache:
                self.store.give_to(cache)
        return self._result(loop, shared, time.monotonic() - started)

    def _plan(
        self, study: Study, models: Mapping[str, OpenModel], backends: Mapping[str, Backend]
    ) -> None:
        known = self.store.meta("study")
        facts = {name: backend.describe() for name, backend in backends.items()}
        if known is None or Study.stored(known, self.folder.path) != study:
            tasks = load_tasks(study, self.data_dir or rows_folder(self.store, study))
            opened = list(models.values())
            write_plan(self.store, study, tasks, opened, facts, self.listener.say)
            for line in _to_know(study, tasks, opened):
                self.listener.say(line)
        else:
            write_plan(self.store, study, [], list(models.values()), facts)
        if self.data_dir is not None:
            remember_rows(self.store, self.data_dir)
        write_text(self.folder.study, _header() + study.to_yaml())

    def _lanes(
        self, study: Study, backends: Mapping[str, Backend], models: Mapping[str, OpenModel]
    ) -> dict[str, Lane]:
        """The models that have something to ask, or batches to fetch."""
        builder = Builder(study, self.store)
        left = {name for name, c in self.store.counts().items() if c.done < c.points}
        left |= {b.model for b in open_batches(self.store)}
        return {
            name: Lane(backend, builder.of(models[name], backend), width(models[name], backend))
            for name, backend in backends.items()
            if name in left
        }

    async def _work(self, loop: Runner | Batcher, study: Study, lanes: dict[str, Lane]) -> None:
        if isinstance(loop, Batcher):
            await loop.run(_batched(study, lanes))
            return
        if self.check:
            asked = {name: lane.backend for name, lane in lanes.items()}
            with checks_noted(self.store, loop.purse):
                self.refused = await glances(study, asked, self.listener.say, loop.purse)
        await loop.run({n: lane for n, lane in lanes.items() if n not in self.refused})

    def _result(self, runner: Runner | Batcher, shared: int, seconds: float) -> Run:
        counts = self.store.counts().values()
        progress, purse = runner.progress, runner.purse
        return Run(
            folder=self.folder.path,
            points=sum(c.points for c in counts),
            done=sum(c.done for c in counts),
            asked=sum(p.asked for p in progress.values()),
            shared=shared,
            failed=sum(p.failed for p in progress.values()),
            stopped={n: p.stopped for n, p in progress.items() if p.stopped} | self.refused,
            failures={name: p.last_failure for name, p in progress.items() if p.last_failure},
            interrupted=runner.interrupted,
            seconds=seconds,
            spent=purse.spent,
            spent_on=dict(purse.spent_on),
            unpriced=unpriced_replies(self.store, purse.prices) if purse.spent else {},
        )


def _batched(study: Study, lanes: Mapping[str, Lane]) -> dict[str, BatchLane]:
    specs = {entry.name: entry.spec() for entry in study.models}
    return {n: BatchLane(specs[n], lane.backend, lane.build) for n, lane in lanes.items()}


def _to_know(study: Study, tasks: Sequence[TaskData], models: Sequence[OpenModel]) -> Iterator[str]:
    """What in a new plan may differ from what its author thinks."""
    for data in tasks:
        yield from (f"task {data.task.name}: {note}" for note in data.notes)
        there, asked = len(data.examples), study.examples
        if there < asked:
            has = counted(there, "example")
            yield f"task {data.task.name}: has {has}, {asked:,} were asked for"
    yield from free_only(study, tasks, models)
    if study.seeds > 1 and not study.temperature and any(m.copies for m in models):
        yield "at temperature 0 repeats of a deterministic model are copies"


def _header() -> str:
    return (
        f"# The study of this run as resolved by formatspan {__version__}; it can be run again.\n"
    )
