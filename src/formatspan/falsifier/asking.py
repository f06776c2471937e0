"""Asks for the arms that are missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from formatspan.asking import Listener, ask, width
from formatspan.backends.base import Backend, Lesson
from formatspan.counting import counted
from formatspan.errors import RunError
from formatspan.falsifier import likelihood, repair
from formatspan.falsifier.outlook import CONSTRAINED, ITSELF, Able, Price, able_models
from formatspan.falsifier.queue import Further, Queue, What
from formatspan.folder import RunFolder
from formatspan.grid import OpenModel
from formatspan.records import Request
from formatspan.runner import Job, Lane, Progress, Runner
from formatspan.session import run
from formatspan.spending.ledger import purse_for
from formatspan.spending.price_lists import find_prices
from formatspan.spending.pricing import ModelPrice
from formatspan.spending.purse import check_priced
from formatspan.store import Pending, Store
from formatspan.study import Study
from formatspan.table import Asked, asked_of, study_of


class Money(NamedTuple):
    """What a run may cost in all, its arms included."""

    max_cost: float | None = None
    """US dollars; None sets no limit."""
    price_file: Path | str | None = None


NO_LIMIT = Money()


class Outcome(NamedTuple):
    """What became of asking for arms."""

    unfinished: Mapping[str, str]
    """Arms that still lack replies, and why, model by model."""
    interrupted: bool


class _Left(NamedTuple):
    """What one phase leaves."""

    reasons: Mapping[str, str]
    """By model that still lacks replies."""
    interrupted: bool


def ask_for(
    path: Path,
    prices: Sequence[Price],
    listener: Listener,
    data_dir: Path | None = None,
    money: Money = NO_LIMIT,
) -> Outcome:
    """Ask for what `outlook` priced.

    Raises:
        UserError: A model cannot be used, or the data of the run are not at hand.
        StorageError: The disk is full or unwritable; what was committed stays.
    """
    folder = RunFolder(path)
    known = _known_prices(folder, {price.model for price in prices}, money, listener)
    unfinished: dict[str, list[str]] = {}
    interrupted = False
    for arms, models in _phases(prices).items():
        name = " and ".join(arms)
        listener.say(f"{name}: asking {', '.join(models)}")
        phase = Phase(listener, name)
        if arms[0] in _OF_THE_GRID:
            left = _ask_grid(folder, arms, models, data_dir, money, phase)
        else:
            further = _Further(name, models, known, money.max_cost)
            left = _ask_further(folder, further, phase)
        for model, reason in left.reasons.items():
            listener.say(f"{name}: {model} was left off: {reason}")
            for arm in arms:
                unfinished.setdefault(arm, []).append(f"{model}: {reason}")
        interrupted = left.interrupted
        if interrupted:
            break
    reasons = {arm: "; ".join(dict.fromkeys(lines)) for arm, lines in unfinished.items()}
    return Outcome(reasons, interrupted)


_OF_THE_GRID = (ITSELF, CONSTRAINED)
"""What one session of the run asks, all of it at once for each model."""


def _phases(prices: Sequence[Price]) -> dict[tuple[str, ...], list[str]]:
    """Models by the arms that are asked of them in one go, in the order of `prices`."""
    grid: dict[str, list[str]] = {}
    for price in prices:
        if price.arm in _OF_THE_GRID:
            grid.setdefault(price.model, []).append(price.arm)
    found: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for model, arms in grid.items():
        found[tuple(arms)].append(model)
    for price in prices:
        if price.arm not in _OF_THE_GRID:
            found[(price.arm,)].append(price.model)
    return found


def _ask_grid(
    folder: RunFolder,
    arms: Sequence[str],
    models: Sequence[str],
    data_dir: Path | None,
    money: Money,
    phase: Phase,
) -> _Left:
    done = run(
        _grown(folder, models, constrained=CONSTRAINED in arms),
        out=folder.path,
        data_dir=data_dir,
        listener=phase,
        max_cost=money.max_cost,
        price_file=money.price_file,
    )
    with Store.read(folder.store) as store:
        left = {m: c.points - c.done for m, c in store.counts().items() if m in models}
    return _Left(_reasons(left, done.stopped, done.failures), done.interrupted)


def _reasons(
    left: Mapping[str, int], stopped: Mapping[str, str], failures: Mapping[str, str]
) -> dict[str, str]:
    """Why each model that was asked still lacks replies."""
    return {
        model: stopped.get(model)
        or f"{counted(number, 'request')} without a reply, last {failures.get(model, 'not sent')}"
        for model, number in left.items()
        if number
    }


@dataclass(frozen=True)
class Phase:
    """A listener that hears of each arm by itself: paces and bars do not run together.

    Replies that were there before the arm are in neither of its counts.
    """

    listener: Listener
    arm: str

    def say(self, text: str) -> None:
        """One line about what happens now."""
        self.listener.say(text)

    def progress(self, model: str, progress: Progress) -> None:
        """A model's queue moved on."""
        before = progress.done - progress.asked
        own = replace(progress, total=progress.total - before, done=progress.asked)
        self.listener.progress(f"{model}, {self.arm}", own)


def _known_prices(
    folder: RunFolder, names: set[str], money: Money, listener: Listener
) -> Mapping[str, ModelPrice]:
    """Prices of the models that are asked.

    Raises:
        StudyError: There is a limit, and a model without a price; or the price file is wrong.
    """
    with Store.read(folder.store) as store:
        study = study_of(store)
    chosen = tuple(entry for entry in study.models if entry.name in names)
    asked = study.model_copy(update={"models": chosen})
    found = find_prices(asked, money.price_file, online=money.max_cost is not None)
    for note in found.failed:
        listener.say(note)
    check_priced(asked, money.max_cost, found.prices)
    return found.prices


def _grown(folder: RunFolder, models: Sequence[str], *, constrained: bool) -> Study:
    """The run's study with some of its models only, and with the constrained mode if wanted."""
    with Store.read(folder.store) as store:
        study = study_of(store)
    modes = study.decoding
    if constrained:
        modes = tuple(dict.fromkeys((*modes, "constrained")))
    chosen = tuple(entry for entry in study.models if entry.name in models)
    return study.model_copy(update={"models": chosen, "decoding": modes})


class _Further(NamedTuple):
    """An arm of requests beside the grid, and what it may cost."""

    arm: str
    models: Sequence[str]
    prices: Mapping[str, ModelPrice]
    max_cost: float | None


def _ask_further(folder: RunFolder, wanted: _Further, listener: Listener) -> _Left:
    with folder.locked(), Queue.create(folder.store) as queue:
        queue.what = what = _WHAT[wanted.arm]
        study = study_of(queue)
        found, _ = able_models(study)
        models = {m.entry.name: m for m in found if m.entry.name in wanted.models}
        plan = likelihood.planned if what == "likelihood" else repair.planned
        rows = list(plan(queue, study, {name: m.open for name, m in models.items()}))
        with queue.transaction():
            queue.put(rows)
        purse = purse_for(queue, study, wanted.max_cost, wanted.prices)
        runner = Runner(queue, listener.progress, purse)
        build = Builder(queue, study)
        lanes = {
            name: Lane(m.backend, build.of(m), width(m.open, m.backend))
            for name, m in models.items()
            if queue.pending(name, 0, 1)
        }
        ask(
            lambda: runner.run(lanes),
            runner,
            {name: m.backend for name, m in models.items()},
            listener,
        )
        left = {name: c.points - c.done for name, c in queue.counts().items() if name in models}
        seen = runner.progress
        stopped = {name: p.stopped for name, p in seen.items() if p.stopped}
        failures = {name: p.last_failure for name, p in seen.items() if p.last_failure}
        return _Left(_reasons(left, stopped, failures), runner.interrupted)


_WHAT: Mapping[str, What] = {"likelihood": "likelihood", "ask again": "again"}


class Builder:
    """Makes the requests of pending rows; the store keeps only their ids."""

    def __init__(self, queue: Queue, study: Study) -> None:
        self.queue, self.study = queue, study
        self.look_up = asked_of(queue, study)

    def of(self, model: Able) -> Callable[[Pending], Job]:
        """The builder of one model's jobs."""

        def build(pending: Pending) -> Job:
            further = self.queue.of(pending)
            asked = self.look_up(further.task, further.example_id, further.wrapper)
            request = self._request(model.open, pending, further, asked)
            if request.id != further.request_id:
                raise RunError(
                    f"request of task {further.task!r}, example {further.example_id!r}: its "
                    "content is not what was planned; the store was made by another version"
                )
            return Job(request, _lesson(further, asked, model.backend))

        return build

    def _request(
        self, model: OpenModel, pending: Pending, further: Further, asked: Asked
    ) -> Request:
        prompt = pending.prompt.messages
        if further.what == "likelihood":
            text = likelihood.option_text(asked.contract, asked.space, further.item)
            return likelihood.request_of(self.study, model, prompt, text)
        parent = further.parent or ""
        first = self.queue.generation(parent)
        if first is None:
            raise RunError(f"the store lacks the reply {parent} that was to be repaired")
        messages = repair.dialogue(prompt, first.text, first.finish_reason, asked)
        return repair.again_request(self.study, model, messages, further.seed, parent)


def _lesson(further: Further, asked: Asked, backend: Backend) -> Lesson | None:
    if not backend.capabilities.coached:
        return None
    place = (further.task, further.example_id, further.wrapper)
    return Lesson(*place, asked.contract, asked.space, asked.example.gold)
