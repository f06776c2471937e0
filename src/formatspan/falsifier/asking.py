"""What the arms that are missing would cost, and asking for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from formatspan.asking import Listener, ask, width
from formatspan.backends.base import Backend, Lesson
from formatspan.backends.table import open_backend
from formatspan.contracts import answers
from formatspan.errors import BackendError, RunError
from formatspan.falsifier import likelihood, repair
from formatspan.falsifier.queue import Further, Queue, What, scored_options
from formatspan.folder import RunFolder
from formatspan.grid import OpenModel, unheld
from formatspan.planning import described
from formatspan.records import Request
from formatspan.runner import Job, Lane, Progress, Runner
from formatspan.session import run
from formatspan.store import Pending, Store
from formatspan.study import ModelEntry, Study
from formatspan.table import Asked, asked_of, study_of

WINDOW_S = 10
CANNOT_CONSTRAIN = "no model of this run can be constrained"
CANNOT_SCORE = "no model of this run scores a given reply"


class Price(NamedTuple):
    """What one arm of one model asks for."""

    arm: str
    model: str
    requests: int
    seconds: float | None
    """By the pace of the model's replies so far; None without any."""
    dollars: float | None
    """By the mean cost of its replies so far; None where that is unknown."""


class Outlook(NamedTuple):
    """What could be asked, and why other arms cannot."""

    prices: tuple[Price, ...]
    absent: Mapping[str, str]
    """Arms that no model of the run can give, and why."""


class Able(NamedTuple):
    """A model that is ready to be asked."""

    entry: ModelEntry
    backend: Backend
    open: OpenModel


def outlook(path: Path, arms: Sequence[str], *, again: bool = False) -> Outlook:
    """What the arms that are missing would cost; opens the models, asks nothing.

    Args:
        path: A run's folder.
        arms: Arms that are wanted.
        again: Whether questions with unreadable replies are asked again.

    Raises:
        RunError: The folder is not a run.
    """
    with Store.read(RunFolder(path).store) as store:
        study = study_of(store)
        models, faults = able_models(study)
        prices = [*_rest(store), *_prices(store, study, models, arms, again)]
    absent = {}
    why = f" ({'; '.join(faults.values())})" if faults else ""
    if "constrained" in arms and not any(m.open.constraints for m in models):
        absent["constrained"] = CANNOT_CONSTRAIN + why
    if not any(m.backend.capabilities.likelihood for m in models):
        both = (a for a in arms if a.startswith("likelihood"))
        absent |= dict.fromkeys(both, CANNOT_SCORE + why)
    return Outlook(tuple(p for p in prices if p.requests), absent)


def whole_run(study: Study) -> list[Price]:
    """What a study that was never run asks at most, by model."""
    each = len(study.tasks) * len(study.wrappers) * len(study.decoding) * study.examples
    return [Price("the run itself", m.name, each * study.seeds, None, None) for m in study.models]


def able_models(study: Study) -> tuple[list[Able], dict[str, str]]:
    """The models of a study that can be opened now, and why others cannot."""
    models, faults = [], {}
    for entry in study.models:
        try:
            backend = open_backend(entry.spec())
        except BackendError as error:
            faults[entry.name] = str(error)
            continue
        models.append(Able(entry, backend, described(study, entry, backend)))
    return models, faults


def _rest(store: Store) -> Iterator[Price]:
    """What the run itself still lacks."""
    for model, counts in store.counts().items():
        yield Price("the run itself", model, counts.points - counts.done, None, None)


def _prices(
    store: Store, study: Study, models: Sequence[Able], arms: Sequence[str], again: bool
) -> Iterator[Price]:
    counters: list[tuple[str, Callable[[Store, Study, Able], int]]] = []
    if "constrained" in arms:
        counters.append(("constrained", _constrained))
    if any(arm.startswith("likelihood") for arm in arms):
        counters.append(("likelihood", _likelihoods))
    if again:
        counters.append(("ask again", _agains))
    for arm, count in counters:
        for model in models:
            yield _priced(store, arm, model, count(store, study, model))


def _priced(store: Store, arm: str, model: Able, requests: int) -> Price:
    # Windows of ten seconds in which anything was asked: pauses of the run do not count.
    replies, windows, cost = store.connection.execute(
        "SELECT count(*), count(DISTINCT substr(g.started_at, 1, 18)), avg(g.cost) FROM points p "
        "JOIN generations g USING (request_id) WHERE p.model = ? AND p.copy_of IS NULL",
        (model.entry.name,),
    ).fetchone()
    seconds = requests * windows * WINDOW_S / replies if replies else None
    return Price(
        arm, model.entry.name, requests, seconds, None if cost is None else requests * cost
    )


def _constrained(store: Store, study: Study, model: Able) -> int:
    if not model.open.constraints:
        return 0
    extended = study.model_copy(update={"decoding": ("free", "constrained")})
    left = set(unheld(extended, list(store.answers().values()), model.open))
    rows = store.connection.execute(
        "SELECT mode, wrapper, count(*) FROM points WHERE model = ? AND copy_of IS NULL "
        "GROUP BY mode, wrapper",
        (model.entry.name,),
    ).fetchall()
    if any(mode == "constrained" for mode, _, _ in rows):
        return 0  # planned already: what is missing is the run's own rest
    return sum(number for _, wrapper, number in rows if wrapper not in left)


def _likelihoods(store: Store, study: Study, model: Able) -> int:
    if not model.backend.capabilities.likelihood:
        return 0
    look_up = asked_of(store, study)
    rows = store.connection.execute(
        "SELECT task, example_id, wrapper FROM points WHERE model = ? AND mode = 'free' "
        "AND seed = 0",
        (model.entry.name,),
    )
    spaces = (look_up(*row).space for row in rows)
    options = sum(len(answers(space)) for space in spaces if space.kind in likelihood.KINDS)
    return options - sum(s.model == model.entry.name for s in scored_options(store))


def _agains(store: Store, study: Study, model: Able) -> int:
    queued = repair.planned(store, study, {model.entry.name: model.open})
    return sum(store.generation(further.request_id) is None for further in queued)


def ask_for(
    path: Path,
    prices: Sequence[Price],
    listener: Listener,
    data_dir: Path | None = None,
) -> bool:
    """Ask for what `outlook` priced; returns False if that was interrupted.

    Raises:
        UserError: A model cannot be used, or the data of the run are not at hand.
        StorageError: The disk is full or unwritable; what was committed stays.
    """
    folder = RunFolder(path)
    named = {price.arm: [p.model for p in prices if p.arm == price.arm] for price in prices}
    for arm, models in named.items():
        listener.say(f"{arm}: asking {', '.join(models)}")
        phase = Phase(listener, arm)
        if arm in ("constrained", "the run itself"):
            done = run(_grown(folder, arm, models), out=path, data_dir=data_dir, listener=phase)
            stopped, interrupted = done.stopped, done.interrupted
        else:
            stopped, interrupted = _ask_further(folder, arm, models, phase)
        for model, reason in stopped.items():
            listener.say(f"{arm}: {model} was left off: {reason}")
        if interrupted:
            return False
    return True


@dataclass(frozen=True)
class Phase:
    """A listener that hears of each arm by itself: paces and bars do not run together."""

    listener: Listener
    arm: str

    def say(self, text: str) -> None:
        """One line about what happens now."""
        self.listener.say(text)

    def progress(self, model: str, progress: Progress) -> None:
        """A model's queue moved on."""
        self.listener.progress(f"{model}, {self.arm}", progress)


def _grown(folder: RunFolder, arm: str, models: Sequence[str]) -> Study:
    """The run's study with some of its models only, and with the arm's decoding mode."""
    with Store.read(folder.store) as store:
        study = study_of(store)
    modes = study.decoding
    if arm == "constrained":
        modes = tuple(dict.fromkeys((*modes, "constrained")))
    chosen = tuple(entry for entry in study.models if entry.name in models)
    return study.model_copy(update={"models": chosen, "decoding": modes})


def _ask_further(
    folder: RunFolder, arm: str, names: Sequence[str], listener: Listener
) -> tuple[Mapping[str, str], bool]:
    with folder.locked(), Queue.create(folder.store) as queue:
        queue.what = what = _WHAT[arm]
        study = study_of(queue)
        found, _ = able_models(study)
        models = {m.entry.name: m for m in found if m.entry.name in names}
        plan = likelihood.planned if what == "likelihood" else repair.planned
        rows = list(plan(queue, study, {name: m.open for name, m in models.items()}))
        with queue.transaction():
            queue.put(rows)
        runner = Runner(queue, listener.progress)
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
