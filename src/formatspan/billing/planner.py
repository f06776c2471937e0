"""Makes the bill of a study: ``formatspan plan``.

Nothing is asked. Prompts are the real ones where the data are at hand, tokens are counted by
the model's tokenizer where that is at hand; what is estimated says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from formatspan.backends.base import Backend, Capabilities
from formatspan.backends.table import open_backend
from formatspan.billing.bill import ModelBill, Plan, Power, WrapperBill
from formatspan.billing.pace import Pace, measured_pace
from formatspan.billing.tally import TYPICAL, Count, Place, Tally, answered_places
from formatspan.billing.tokens import Stored, TokenCount, added, stored_replies
from formatspan.errors import BackendError, DataError, StudyError
from formatspan.folder import RunFolder, default_folder
from formatspan.grid import Budgets, OpenModel, endpoint_hash, padding_unit
from formatspan.growth import merge, refuse_other
from formatspan.planning import described, load_tasks, rows_folder
from formatspan.routing import KEY as PROVIDER
from formatspan.routing import UNPINNED, is_pinned
from formatspan.spending.ledger import purse_for
from formatspan.spending.price_lists import find_prices
from formatspan.spending.pricing import BATCH_DISCOUNT, ModelPrice
from formatspan.spending.purse import Purse
from formatspan.stats.power import design_of, examples_for, half_width, seeded
from formatspan.store import Store
from formatspan.study import ModelEntry, Study
from formatspan.tasks.task import TaskData

ASSUMED_LATENCY_S = 1.0
"""Seconds a reply takes where none has been measured."""
BATCH_WINDOW_S = 24 * 3600.0
"""Seconds in which a batch is done, or ends with what is."""
FSI_POINTS = 5.0
"""Percentage points for which a plan says how many examples are needed."""


class Options(NamedTuple):
    """How a plan is made."""

    price_file: Path | None = None
    concurrency: int | None = None
    batch: bool = False
    online: bool = True
    fsi: float = FSI_POINTS


def plan(
    study: Study,
    *,
    run: Path | str | None = None,
    data_dir: Path | str | None = None,
    price_file: Path | str | None = None,
    concurrency: int | None = None,
    batch: bool = False,
    online: bool = True,
    fsi: float = FSI_POINTS,
) -> Plan:
    """The bill of a study, or of what a run of it still lacks; no model is asked.

    Args:
        study: What would be asked.
        run: The run's folder, ``runs/<name>`` by default; it need not exist.
        data_dir: Folder with ``<task>.jsonl`` files in the hub's field names; by default the one
            that the run had.
        price_file: YAML with prices, see `formatspan.spending.pricing`.
        concurrency: Requests in flight to each model, instead of the study's.
        batch: Price the requests as batches.
        online: Ask endpoints for their price list where a key is at hand; never fails.
        fsi: Percentage points for which to say how many examples are needed.

    Raises:
        UserError: The study, its data files, the price file or the run cannot be used.
    """
    folder = RunFolder(Path(run)) if run is not None else default_folder(study.name)
    options = Options(
        Path(price_file) if price_file is not None else None, concurrency, batch, online, fsi
    )
    if not 0 < fsi < 100:
        raise StudyError(f"fsi: expected percentage points between 0 and 100, got {fsi:g}")
    data = Path(data_dir) if data_dir is not None else None
    before = _Before.of(folder, study, data, found_by_chance=run is None)
    return _Planner(before, options).plan()


class _Before(NamedTuple):
    """The study as the run's folder makes it, and what is there."""

    study: Study
    answered: frozenset[Place]
    budgets: dict[tuple[str, str, str], int]
    stored: dict[tuple[str, str], Stored]
    paces: dict[str, Pace]
    """By label; models whose pace is not known are left out."""
    store: Path | None = None
    """The run's store, if there is one."""
    rows: Path | None = None
    """The folder of the tasks' rows: the one given, or the one that the run had."""

    @classmethod
    def of(
        cls, folder: RunFolder, study: Study, given: Path | None, *, found_by_chance: bool
    ) -> _Before:
        if not folder.store.is_file():
            return cls(study, frozenset(), {}, {}, {}, rows=given)
        with Store.read(folder.store) as store:
            known = store.meta("study")
            there = Study.stored(known, folder.path) if known else None
            if there and found_by_chance:
                refuse_other(there, study, folder.path)  # as a run of the study would
            merged = merge(there, study) if there else study
            # A run asks the models of its command, not those of earlier ones.
            named = {m.name for m in study.models}
            asked = tuple(m for m in merged.models if m.name in named)
            whole = merged.model_copy(update={"models": asked})
            found = {name: measured_pace(store, name) for name in named}
            paces = {name: pace for name, pace in found.items() if pace is not None}
            stored = stored_replies(store)
            answered = answered_places(store)
            rows = rows_folder(store, whole) if given is None else given
            return cls(whole, answered, store.budgets(), stored, paces, folder.store, rows)

    def spent(self, prices: Mapping[str, ModelPrice]) -> Purse:
        """What the run has cost so far."""
        if self.store is None:
            return Purse(prices=prices)
        with Store.read(self.store) as store:
            return purse_for(store, self.study, None, prices)

    def replies(self, model: str) -> Stored:
        """All replies of one model."""
        return added([s for (name, _), s in self.stored.items() if name == model])


class _Planner:
    def __init__(self, before: _Before, options: Options) -> None:
        self.before, self.study, self.options = before, before.study, options
        self.data_dir = before.rows
        self.notes: list[str] = []
        self.absent: list[str] = []
        """Tasks whose rows are not at hand."""
        self.backends = {e.name: self._opened(e) for e in self.study.models}
        self.counters = {
            name: TokenCount.of(backend.tokenizer() if backend else None, before.replies(name))
            for name, backend in self.backends.items()
        }

    def plan(self) -> Plan:
        models = [self._described(entry) for entry in self.study.models]
        count = Count(self.study, models, self.counters, self.before.answered)
        budgets = Budgets(self.before.budgets)
        examples = {entry.name: self._add(entry.name, count, budgets) for entry in self.study.tasks}
        prices = self._prices()
        spent = self.before.spent(prices)
        bills = tuple(
            self._bill(model, count.tallies[model.entry.name], prices.get(model.entry.name), spent)
            for model in models
        )
        self._warn(bills)
        power, batch = self._power(examples), self.options.batch
        return Plan(self.study.name, bills, power, batch, spent.spent, tuple(self.notes))

    def _opened(self, entry: ModelEntry) -> Backend | None:
        """The model's backend, or None where it cannot be opened here and now."""
        try:
            return open_backend(entry.spec())
        except BackendError as error:
            if padding_unit(self.study) == "tokens" and self.study.budget != "none":
                raise
            self._note(f"the run will need what is missing here: {_without_label(str(error))}")
            return None

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _described(self, entry: ModelEntry) -> OpenModel:
        backend = self.backends[entry.name]
        if backend is not None:
            return described(self.study, entry, backend)
        return OpenModel(entry, endpoint_hash(entry, {}), None, "", copies=False)

    def _add(self, task: str, count: Count, budgets: Budgets) -> int:
        data = self._data(task)
        if data is not None:
            return count.add(data, budgets)
        self.absent.append(task)
        return count.add_typical(task, TYPICAL[task])

    def _data(self, task: str) -> TaskData | None:
        entry = next(t for t in self.study.tasks if t.name == task)
        try:
            (data,) = load_tasks(self.study.model_copy(update={"tasks": (entry,)}), self.data_dir)
        except DataError:
            # A user's own file, or a folder that was named, has no stand-in.
            if entry.file is not None or task not in TYPICAL or self.data_dir is not None:
                raise
            return None
        return data

    def _prices(self) -> dict[str, ModelPrice]:
        found = find_prices(self.study, self.options.price_file, online=self.options.online)
        self.notes += found.failed
        return found.prices

    def _bill(
        self, model: OpenModel, tally: Tally, price: ModelPrice | None, spent: Purse
    ) -> ModelBill:
        entry, before = model.entry, self.before.replies(model.entry.name)
        wrappers = tuple(self._wrapper(entry, w.name, tally) for w in self.study.wrappers)
        requests = sum(w.requests for w in wrappers)
        prompt = sum(w.prompt_tokens for w in wrappers)
        completion = sum(w.completion_tokens for w in wrappers)
        most = requests * self.study.sampling(entry).max_tokens
        charged = price.scaled(BATCH_DISCOUNT) if price and self.options.batch else price
        in_flight = self._in_flight(entry)
        latency = before.latency_s / before.timed if before.timed else ASSUMED_LATENCY_S
        # A pace holds for the concurrency that it was measured at.
        pace = self.before.paces.get(entry.name) if self.options.concurrency is None else None
        return ModelBill(
            model=entry.name,
            points=tally.points,
            copies=tally.copies,
            shared=tally.shared,
            answered=tally.answered,
            requests=requests,
            prompt_tokens=prompt,
            completion_tokens=completion,
            completion_tokens_most=most,
            counted=self.counters[entry.name].source,
            price=price,
            cost=charged.dollars(prompt, completion) if charged else None,
            cost_most=charged.dollars(prompt, most) if charged else None,
            spent=spent.spent_on.get(entry.name, 0.0),
            uncounted=before.replies - before.priced if price is None else 0,
            cached_tokens=before.cached_tokens,
            in_flight=in_flight,
            latency_s=latency,
            latency_measured=before.timed > 0,
            pace=pace.replies / pace.seconds if pace else None,
            seconds=self._seconds(requests, pace, latency / in_flight),
            pinned=is_pinned(entry.spec().scheme, entry.body.get(PROVIDER)),
            wrappers=wrappers,
        )

    def _seconds(self, requests: int, pace: Pace | None, each_s: float) -> float:
        if self.options.batch:
            return BATCH_WINDOW_S if requests else 0.0
        return pace.time_for(requests) if pace else requests * each_s

    def _in_flight(self, entry: ModelEntry) -> int:
        backend = self.backends[entry.name]
        own = backend.capabilities if backend else Capabilities()
        return max(1, self.options.concurrency or entry.concurrency or own.concurrency)

    def _wrapper(self, entry: ModelEntry, wrapper: str, tally: Tally) -> WrapperBill:
        requests = tally.pending.get(wrapper, 0)
        most = self.study.sampling(entry).max_tokens
        before = self.before.stored.get((entry.name, wrapper))
        each = before.completion_tokens / before.completed if before and before.completed else most
        tokens = tally.prompt_tokens.get(wrapper, 0.0)
        return WrapperBill(wrapper, requests, round(tokens), round(requests * min(each, most)))

    def _warn(self, bills: Sequence[ModelBill]) -> None:
        asked = [b for b in bills if b.requests]
        if self.absent:
            self._note(
                f"the rows of {', '.join(self.absent)} are not at hand: prompts are taken to be as "
                "long as in a usual sample"
            )
        if any(b.counted == "characters" for b in asked):
            self._note("prompt tokens are estimated from characters, to a fifth or so")
        if any(b.price and b.price.shipped for b in asked):
            self._note("shipped list prices are dated and change often: --price-file, or a key")
        unpinned = [b.model for b in bills if not b.pinned]
        if unpinned:
            self._note(f"{', '.join(unpinned)}: {UNPINNED}")
        if self.study.seeds > 1 and self.study.temperature == 0 and any(asked):
            self._note(
                f"temperature 0: the {self.study.seeds} repeats of a prompt will be mostly equal "
                "and tell little more than one"
            )

    def _power(self, examples: Mapping[str, int]) -> Power:
        # At temperature 0 the repeats of a prompt are as good as equal: no draws of their own.
        draws = self.study.seeds if self.study.temperature > 0 else 1
        design = design_of(list(examples.values()), len(self.study.wrappers), draws)
        width = half_width(design, seeded())
        needed = examples_for(design, self.options.fsi / 100, seeded())
        return Power(
            examples=dict(examples),
            wrappers=len(self.study.wrappers),
            draws=draws,
            smallest_task=width.task if width else None,
            smallest_mean=width.mean if width else None,
            fsi=self.options.fsi / 100,
            needed_task=needed[0] if needed else None,
            needed_mean=needed[1] if needed else None,
        )


def _without_label(text: str) -> str:
    """A backend's complaint without the model it names, since several models share it."""
    return text.partition(": ")[2] if text.startswith("model ") else text
