"""What the arms that are missing would cost and take; nothing is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from formatspan.backends.base import Backend
from formatspan.backends.table import open_backend
from formatspan.billing.pace import measured_pace
from formatspan.contracts import answers
from formatspan.errors import BackendError
from formatspan.falsifier import likelihood, repair
from formatspan.falsifier.queue import scored_options
from formatspan.folder import RunFolder
from formatspan.grid import OpenModel, unheld
from formatspan.planning import described
from formatspan.spending.pricing import ModelPrice, stated_prices
from formatspan.store import Store
from formatspan.study import ModelEntry, Study
from formatspan.table import asked_of, study_of

CANNOT_CONSTRAIN = "no model of this run can be constrained"
CANNOT_SCORE = "no model of this run scores a given reply"
ITSELF = "the run itself"
"""Stands in an arm's place for free replies that the run still lacks."""
CONSTRAINED = "constrained"


class Price(NamedTuple):
    """What one arm of one model asks for."""

    arm: str
    model: str
    requests: int
    seconds: float | None
    """By the pace that the run has measured; None where it has too few replies to tell."""
    dollars: float | None
    """By the mean cost of its replies so far, or their mean length and a stated price."""


class Outlook(NamedTuple):
    """What could be asked, and why other arms cannot."""

    prices: tuple[Price, ...]
    absent: Mapping[str, str]
    """Arms that no model of the run can give, and why."""


class Need(NamedTuple):
    """What an arm still asks of a model."""

    requests: int
    replies: float
    """Replies that take as long."""


class Able(NamedTuple):
    """A model that is ready to be asked."""

    entry: ModelEntry
    backend: Backend
    open: OpenModel


def outlook(
    path: Path,
    arms: Sequence[str],
    *,
    again: bool = False,
    price_file: Path | str | None = None,
) -> Outlook:
    """What the arms that are missing would cost; opens the models, asks nothing.

    Args:
        path: A run's folder.
        arms: Arms that are wanted.
        again: Whether questions with unreadable replies are asked again.
        price_file: YAML with prices.

    Raises:
        RunError: The folder is not a run.
        StudyError: The price file cannot be read or is wrong.
    """
    with Store.read(RunFolder(path).store) as store:
        study = study_of(store)
        models, faults = able_models(study)
        stated = stated_prices(study, price_file)
        rest = _rest(store, arms, stated)
        prices = [*rest, *_prices(store, study, models, arms, again, stated)]
    absent = {}
    why = f" ({'; '.join(faults.values())})" if faults else ""
    if CONSTRAINED in arms and not any(m.open.constraints for m in models):
        absent[CONSTRAINED] = CANNOT_CONSTRAIN + why
    if not any(m.backend.capabilities.likelihood for m in models):
        both = (a for a in arms if a.startswith("likelihood"))
        absent |= dict.fromkeys(both, CANNOT_SCORE + why)
    return Outlook(tuple(p for p in prices if p.requests), absent)


def whole_run(study: Study) -> list[Price]:
    """What a study that was never run asks at most, by model."""
    each = len(study.tasks) * len(study.wrappers) * len(study.decoding) * study.examples
    return [Price(ITSELF, m.name, each * study.seeds, None, None) for m in study.models]


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


_LACKING = """
SELECT p.model, p.mode, count(*) FROM points p LEFT JOIN generations g USING (request)
WHERE p.copy_of IS NULL AND g.request IS NULL GROUP BY p.model, p.mode
ORDER BY p.model, p.mode DESC
"""


def _rest(store: Store, arms: Sequence[str], stated: Mapping[str, ModelPrice]) -> Iterator[Price]:
    """What was planned and has no reply yet, free and constrained apart.

    A session asks all that a model lacks: where free replies are missing, constrained ones that
    were planned are asked too, and named, whether or not the arm is wanted.
    """
    left = {(model, mode): number for model, mode, number in store.connection.execute(_LACKING)}
    for (model, mode), number in left.items():
        need, price = Need(number, number), stated.get(model)
        if mode == "free":
            yield _priced(store, ITSELF, model, need, price)
        elif CONSTRAINED in arms or (model, "free") in left:
            yield _priced(store, CONSTRAINED, model, need, price)


def _prices(
    store: Store,
    study: Study,
    models: Sequence[Able],
    arms: Sequence[str],
    again: bool,
    stated: Mapping[str, ModelPrice],
) -> Iterator[Price]:
    counters: list[tuple[str, Callable[[Store, Study, Able], Need]]] = []
    if CONSTRAINED in arms:
        counters.append((CONSTRAINED, _constrained))
    if any(arm.startswith("likelihood") for arm in arms):
        counters.append(("likelihood", _likelihoods))
    if again:
        counters.append(("ask again", _agains))
    for arm, count in counters:
        for model in models:
            need = count(store, study, model)
            name = model.entry.name
            yield _priced(store, arm, name, need, stated.get(name))


def _priced(store: Store, arm: str, name: str, need: Need, price: ModelPrice | None) -> Price:
    pace = measured_pace(store, name)
    cost, prompt, completion = store.connection.execute(
        "SELECT avg(g.cost), avg(g.prompt_tokens), avg(g.completion_tokens) FROM points p "
        "JOIN generations g USING (request) WHERE p.model = ? AND p.copy_of IS NULL",
        (name,),
    ).fetchone()
    if cost is None and price is not None and price.prompt + price.completion > 0:
        cost = price.dollars(prompt, completion) if prompt and completion else None
    seconds = pace.time_for(need.replies) if pace else None
    return Price(arm, name, need.requests, seconds, None if cost is None else need.requests * cost)


NOTHING = Need(0, 0.0)


def _constrained(store: Store, study: Study, model: Able) -> Need:
    if not model.open.constraints:
        return NOTHING
    extended = study.model_copy(update={"decoding": ("free", "constrained")})
    left = set(unheld(extended, list(store.answers().values()), model.open))
    rows = store.connection.execute(
        "SELECT mode, wrapper, count(*) FROM points WHERE model = ? AND copy_of IS NULL "
        "GROUP BY mode, wrapper",
        (model.entry.name,),
    ).fetchall()
    if any(mode == "constrained" for mode, _, _ in rows):
        return NOTHING  # planned already: `_rest` counts what is missing
    requests = sum(number for _, wrapper, number in rows if wrapper not in left)
    return Need(requests, requests)


def _likelihoods(store: Store, study: Study, model: Able) -> Need:
    if not model.backend.capabilities.likelihood:
        return NOTHING
    look_up = asked_of(store, study)
    rows = store.connection.execute(
        "SELECT task, example_id, wrapper FROM points WHERE model = ? AND mode = 'free' "
        "AND seed = 0",
        (model.entry.name,),
    )
    spaces = [look_up(*row).space for row in rows]
    options = [len(answers(space)) for space in spaces if space.kind in likelihood.KINDS]
    left = sum(options) - sum(s.model == model.entry.name for s in scored_options(store))
    # An engine on this machine scores all options of a prompt together.
    together = model.backend.capabilities.exclusive and options
    return Need(left, left * len(options) / sum(options) if together else left)


def _agains(store: Store, study: Study, model: Able) -> Need:
    queued = repair.planned(store, study, {model.entry.name: model.open})
    left = sum(store.generation(further.request_id) is None for further in queued)
    return Need(left, left)
