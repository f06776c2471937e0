"""Puts a study's grid into the store, so that the store is the queue of what is to be asked."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from formatspan.backends.base import Backend
from formatspan.backends.table import open_backend
from formatspan.errors import BackendError, RunError, StudyError
from formatspan.grid import (
    Budgets,
    OpenModel,
    Planned,
    TaskGrid,
    endpoint_hash,
    padding_unit,
    unheld,
)
from formatspan.records import Prompt
from formatspan.store import Store
from formatspan.study import Budget, ModelEntry, Study, TaskEntry
from formatspan.tasks import DATA_VARIABLE, get_task, load
from formatspan.tasks.files import file_task
from formatspan.tasks.task import TaskData, adapted
from formatspan.wrappers.padding import TooLong

_BATCH = 2_000
"""Points written at a time, so that planning needs little memory."""
_SAY_EVERY = 200_000
"""Points between two lines about a large grid."""
MAX_POINTS = 20_000_000
"""More would take gigabytes to plan, and years to ask."""
_ROWS_FOLDER = "data_dir"
"""Key of the store's facts: the folder that its tasks' rows were last read from."""


def load_tasks(study: Study, data_dir: Path | None) -> list[TaskData]:
    """Every task of the study with all its rows.

    Raises:
        UserError: A task is unknown, or its data cannot be had or are wrong.
    """
    return [_load(entry, data_dir) for entry in study.tasks]


def rows_folder(store: Store, study: Study) -> Path | None:
    """The folder that a run was told to read its tasks' rows from, None if none is needed.

    Raises:
        RunError: It is gone, and nothing else says where rows are.
    """
    known = store.meta(_ROWS_FOLDER)
    named = (entry.name for entry in study.tasks if entry.file is None)
    if not known or all(get_task(name).builtin is not None for name in named):
        return None
    if Path(known).is_dir():
        return Path(known)
    if os.environ.get(DATA_VARIABLE):
        return None
    raise RunError(
        f"{known}: no such folder; this run read its tasks' rows from it: --data says where they "
        "are now"
    )


def remember_rows(store: Store, folder: Path) -> None:
    """Note the folder for the sessions that come."""
    place = str(folder.resolve())
    if store.meta(_ROWS_FOLDER) != place:
        with store.transaction():
            store.put_meta(_ROWS_FOLDER, place)


def open_models(study: Study) -> dict[str, Backend]:
    """A backend for every model, by label; nothing is asked yet.

    Raises:
        BackendError: A model cannot be used as described or cannot do what the study wants.
    """
    backends = {entry.name: open_backend(entry.spec()) for entry in study.models}
    if "constrained" in study.decoding:
        able = [name for name, b in backends.items() if b.capabilities.constraints]
        if not able:
            raise BackendError(
                f"model {study.models[0].name!r} cannot be constrained: leave 'constrained' out of "
                "decoding, or say with the model's key 'constrain' how its server is told"
            )
    return backends


def free_only(study: Study, tasks: Sequence[TaskData], models: Sequence[OpenModel]) -> list[str]:
    """A line for each model that cannot be held to every contract of the study."""
    lines = []
    for model in models:
        wrappers = unheld(study, [data.task.answers for data in tasks], model)
        if wrappers:
            every = len(wrappers) == len(study.wrappers)
            where = "at all" if every else f"under {', '.join(wrappers)}"
            lines.append(f"model {model.entry.name}: cannot constrain {where}; asked freely there")
    return lines


def described(study: Study, entry: ModelEntry, backend: Backend) -> OpenModel:
    """What the grid must know of an open model.

    Raises:
        StudyError: The budget counts tokens and the model's tokenizer is not at hand.
    """
    tokenizer = None
    if padding_unit(study) == "tokens" and study.budget != "none":
        tokenizer = backend.tokenizer()
        if tokenizer is None:
            raise StudyError(
                f"model {entry.name!r}: its tokenizer is not at hand, which a budget in tokens "
                "needs: use budget_unit: chars"
            )
    return OpenModel(
        entry,
        endpoint_hash(entry, backend.describe()),
        tokenizer,
        entry.name if tokenizer else "",
        backend.capabilities.deterministic,
        backend.capabilities.constraints,
    )


def write_plan(
    store: Store,
    study: Study,
    tasks: Sequence[TaskData],
    models: Sequence[OpenModel],
    facts: Mapping[str, Mapping[str, str]],
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Add what the study asks for and the store lacks; all in one transaction.

    ``say`` hears how large the grid is, and how far a large one has come.

    Raises:
        RunError: A task's rows or a model differ from those the run was made with.
        StudyError: The grid is too large, or prompts do not fit a budget in force.
    """
    _refuse_changes(store, tasks, models)
    in_force = store.budgets()
    budgets = Budgets(in_force)
    grids = [TaskGrid(study, data, models, budgets) for data in tasks]
    progress = _Planning(_size(study, grids), say)
    with store.transaction():
        for model in models:
            store.put_record("models", model.entry.name, _model_record(model, facts))
        for grid in grids:
            store.put_record("tasks", grid.data.task.name, task_record(grid.data))
            store.put_examples(grid.examples)
            try:
                _write_points(store, grid, progress)
            except TooLong:
                raise StudyError(_misfits(study, grids, new=not in_force)) from None
        store.put_budgets(budgets.added)
        store.put_meta("study", study.model_dump_json())


def _size(study: Study, grids: Sequence[TaskGrid]) -> int:
    """How many points there are, if not absurdly many.

    Raises:
        StudyError: There are.
    """
    points = sum(grid.points for grid in grids)
    if points > MAX_POINTS:
        raise StudyError(
            f"the grid has {points:,} points (models × tasks × wrappers × examples × seeds), "
            f"at most {MAX_POINTS:,} are possible: lower seeds ({study.seeds:,}) or examples "
            f"({study.examples:,})"
        )
    return points


@dataclass
class _Planning:
    """Says how large the grid is, and how far a large one has come."""

    points: int
    say: Callable[[str], None]
    done: int = 0

    def __post_init__(self) -> None:
        if self.points:
            self.say(f"planning a grid of {self.points:,} points")

    def add(self, points: int) -> None:
        before, self.done = self.done // _SAY_EVERY, self.done + points
        if self.done // _SAY_EVERY > before and self.done < self.points:
            self.say(f"planned {self.done:,} of {self.points:,} points")


def _misfits(study: Study, grids: Sequence[TaskGrid], *, new: bool) -> str:
    """How many prompts do not fit their budgets, what length they need, and what to do."""
    found = [misfit for grid in grids for misfit in grid.misfits()]
    longest = max(found, key=lambda misfit: misfit.needs)
    count, unit = len(found), longest.unit
    wrappers = ", ".join(repr(name) for name in dict.fromkeys(m.wrapper for m in found))
    stated = isinstance(study.budget, Budget)
    force = "that the study states" if stated and new else "that this run pads to"
    fits = f"budget: {{{unit}: {longest.needs}}}"
    remedy = f"state {fits} or more" if new else f"state {fits} or more in a new run (--out)"
    again = "" if new or stated else ", or use --fresh to start anew with all wrappers"
    return (
        f"{count:,} prompt{'s' * (count > 1)} under {wrappers} {'do' if count > 1 else 'does'} "
        f"not fit the length {force}; the longest needs {longest.needs:,} {unit}, where the "
        f"budget is {longest.budget:,} (task {longest.task!r}, example {longest.example_id!r}, "
        f"wrapper {longest.wrapper!r}): {remedy}{again}"
    )


def task_record(data: TaskData) -> dict[str, object]:
    """What a run keeps of a task besides its examples."""
    task = data.task
    return {
        "kind": task.kind,
        "form": task.form,
        "words": task.words,
        "instruction": task.instruction,
        "chance": data.chance,
        "rows": len(data.examples),
        "source": data.source,
        "revision": data.revision,
        "sha256": data.digest,
        "notes": data.notes,
    }


def _load(entry: TaskEntry, data_dir: Path | None) -> TaskData:
    if entry.file is None:
        return load(adapted(get_task(entry.name), **_given(entry)), data_dir=data_dir)
    return file_task(
        Path(entry.file),
        name=entry.name,
        kind=entry.kind,
        answer_is=entry.answer_is,
        columns=entry.columns,
        **_given(entry),
    )


def _given(entry: TaskEntry) -> dict[str, Any]:
    keys = ("instruction", "form", "words", "stratify")
    return {key: value for key in keys if (value := getattr(entry, key)) is not None}


def _write_points(store: Store, grid: TaskGrid, progress: _Planning) -> None:
    planned = grid.planned()
    while batch := list(itertools.islice(planned, _BATCH)):
        store.put_prompts(_prompts(batch))
        store.put_points((p.tokenizer, p.point) for p in batch)
        progress.add(len(batch))


def _prompts(batch: Sequence[Planned]) -> list[tuple[str, Prompt]]:
    """The prompts of a batch, each once: seeds and models share them."""
    unique = {(p.tokenizer, p.prompt.example_id, p.prompt.wrapper): p for p in batch}
    return [(p.tokenizer, p.prompt) for p in unique.values()]


def _refuse_changes(store: Store, tasks: Sequence[TaskData], models: Sequence[OpenModel]) -> None:
    known_tasks, known_models = store.records("tasks"), store.records("models")
    for data in tasks:
        before = known_tasks.get(data.task.name)
        if before and before["sha256"] != data.digest:
            raise RunError(
                f"task {data.task.name!r}: its rows ({data.source}) are not those the run began "
                "with: use the same data, another --out, or --fresh to start anew"
            )
    for model in models:
        record = known_models.get(model.entry.name)
        if record and record["endpoint"] != model.endpoint:
            raise RunError(
                f"model {model.entry.name!r}: its file or endpoint is not the one the run began "
                "with: use another label ('name'), another --out, or --fresh to start anew"
            )


def _model_record(model: OpenModel, facts: Mapping[str, Mapping[str, str]]) -> dict[str, object]:
    return {
        "entry": model.entry.model_dump(mode="json", exclude_none=True),
        "endpoint": model.endpoint,
        "facts": dict(facts[model.entry.name]),
    }
