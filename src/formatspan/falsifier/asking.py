"""Asks for the arms that are missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from formatspan.asking import Listener, ask, width
from formatspan.backends.base import Backend, Lesson
from formatspan.errors import RunError
from formatspan.falsifier import likelihood, repair
from formatspan.falsifier.outlook import Able, Price, able_models
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


def ask_for(
    path: Path,
    prices: Sequence[Price],
    listener: Listener,
    data_dir: Path | None = None,
    money: Money = NO_LIMIT,
) -> bool:
    """Ask for what `outlook` priced; returns False if that was interrupted.

    Raises:
        UserError: A model cannot be used, or the data of the run are not at hand.
        StorageError: The disk is full or unwritable; what was committed stays.
    """
    folder = RunFolder(path)
    known = _known_prices(folder, {price.model for price in prices}, money, listener)
    named = {price.arm: [p.model for p in prices if p.arm == price.arm] for price in prices}
    for arm, models in named.items():
        listener.say(f"{arm}: asking {', '.join(models)}")
        phase = Phase(listener, arm)
        if arm in ("constrained", "the run itself"):
            done = run(
                _grown(folder, arm, models),
                out=path,
                data_dir=data_dir,
                listener=phase,
                max_cost=money.max_cost,
                price_file=money.price_file,
            )
            stopped, interrupted = done.stopped, done.interrupted
        else:
            further = _Further(arm, models, known, money.max_cost)
            stopped, interrupted = _ask_further(folder, further, phase)
        for model, reason in stopped.items():
            listener.say(f"{arm}: {model} was left off: {reason}")
        if interrupted:
            return False
    return True


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


def _grown(folder: RunFolder, arm: str, models: Sequence[str]) -> Study:
    """The run's study with some of its models only, and with the arm's decoding mode."""
    with Store.read(folder.store) as store:
        study = study_of(store)
    modes = study.decoding
    if arm == "constrained":
        modes = tuple(dict.fromkeys((*modes, "constrained")))
    chosen = tuple(entry for entry in study.models if entry.name in models)
    return study.model_copy(update={"models": chosen, "decoding": modes})


class _Further(NamedTuple):
    """An arm of requests beside the grid, and what it may cost."""

    arm: str
    models: Sequence[str]
    prices: Mapping[str, ModelPrice]
    max_cost: float | None


def _ask_further(
    folder: RunFolder, wanted: _Further, listener: Listener
) -> tuple[Mapping[str, str], bool]:
    with folder.locked(), Queue.create(folder.store) as queue:
        queue.what = what = _WHAT[wanted.arm]
        study = study_of(queue)
        found, _ = able_models(study)
        models = {m.entry.name: m for m in found if m.entry.name in wanted.models}
        plan = likelihood.planned if what == "likelihood" else repair.planned
        rows = list(plan(queue, study, {name: m.open for name, m in models.items()}))
        with queue.transaction():
            queue.put(rows)
        purse = purse_for(queue, wanted.max_cost, wanted.prices)
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
        stopped = {name: p.stopped for name, p in runner.progress.items() if p.stopped}
        return stopped, runner.interrupted


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
