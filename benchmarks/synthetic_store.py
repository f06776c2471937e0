"""Writes a run's store of a given size without asking anybody: for measuring what comes after.

Models of various rates reply to seven generated tasks (choices, truth values, numbers) under the
five built-in wrappers, five repeats each at temperature 0.7, in one line or, where a wrapper
asks for it, a line of reasoning and one of answer. Rows go through the store's own methods, with
request ids as scattered as real ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from formatspan.backends.breaks import BREAKS, Intent, broken, other_answer
from formatspan.contracts import AnswerSpace, Contract, reply
from formatspan.folder import RunFolder
from formatspan.grid import Budgets, OpenModel, TaskGrid
from formatspan.planning import load_tasks, task_record
from formatspan.records import Example, Generation, Point
from formatspan.store import Store
from formatspan.study import Study
from formatspan.tasks.task import TaskData

EXAMPLES, SEEDS = 200, 5
KINDS = ("choice", "choice", "choice", "choice", "boolean", "boolean", "number")
"""Of the seven tasks."""
BATCH = 20_000
WORDS = ("the", "first", "option", "number", "seems", "right", "since", "it", "says", "more")


def write_store(folder: Path, models: int) -> int:
    """Make the run in ``folder``; returns how many generations its store holds."""
    files = [_task_file(folder, i, kind) for i, kind in enumerate(KINDS)]
    names = [
        {"model": "scripted:", "name": f"model-{i:02}", "size_b": 1.0 + i} for i in range(models)
    ]
    keys = {"models": names, "tasks": files, "examples": EXAMPLES, "seeds": SEEDS}
    study = Study.build({"name": f"{models} models", **keys, "temperature": 0.7})
    run = RunFolder(folder / "run")
    run.make()
    written = 0
    with Store.create(run.store) as store:
        for data in load_tasks(study, None):
            written += _write_task(store, study, data)
        with store.transaction():
            store.put_meta("study", study.model_dump_json())
            for entry in study.models:
                record = {"entry": entry.model_dump(mode="json"), "endpoint": "", "facts": {}}
                store.put_record("models", entry.name, record)
        store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return written


def _task_file(folder: Path, number: int, kind: str) -> str:
    path = folder / f"task{number}-{kind}.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for i in range(EXAMPLES):
            row: dict[str, object] = {"question": f"What holds for number {i} of list {number}?"}
            if kind == "choice":
                options = [f"it is a {colour} one" for colour in ("red", "green", "blue", "grey")]
                row |= {"options": options, "answer": "ABCD"[i * 7 % 4]}
            else:
                row["answer"] = i % 3 == 0 if kind == "boolean" else i * 37 % 1000 + 3
            file.write(json.dumps(row) + "\n")
    return str(path)


def _write_task(store: Store, study: Study, data: TaskData) -> int:
    rng = np.random.default_rng([len(study.models), *data.task.name.encode()])
    model = OpenModel(study.models[0], "", None, "", copies=False)
    one = study.model_copy(update={"seeds": 1})
    grid = TaskGrid(one, data, [model], Budgets({}))
    planned = list(grid.planned())
    rows = _rows(study, grid, [p.point for p in planned], rng)
    written = 0
    with store.transaction():
        store.put_record("tasks", data.task.name, task_record(data))
        store.put_examples(grid.examples)
        store.put_prompts((p.tokenizer, p.prompt) for p in planned)
    while batch := list(islice(rows, BATCH)):
        with store.transaction():
            store.put_points(("", point) for point, _ in batch)
        store.commit([generation for _, generation in batch], [])
        written += len(batch)
    return written


def _rows(
    study: Study, grid: TaskGrid, points: list[Point], rng: np.random.Generator
) -> Iterator[tuple[Point, Generation]]:
    """Every point of every model with its reply, in the order in which a run asks."""
    examples = {e.id: e for e in grid.examples}
    wrappers = {w.name: w for w in grid.wrappers}
    known = rng.uniform(0.35, 0.95, size=len(study.models))
    complying = rng.beta(4, 1, size=(len(study.models), len(wrappers)))
    places = {name: i for i, name in enumerate(wrappers)}
    answers = grid.data.task.answers
    for point in points:
        example = examples[point.example_id]
        contract = wrappers[point.wrapper].contract.asking(answers)
        space = AnswerSpace.of_options(answers.kind, example.options)
        comply = complying[:, places[point.wrapper]]
        draws = rng.random((len(study.models), study.seeds, 3))
        tokens = 60 + len(point.wrapper) + len(example.question) // 4
        for m, entry in enumerate(study.models):
            for seed in range(study.seeds):
                text, cut = _reply(contract, space, example, known[m], comply[m], draws[m, seed])
                yield _row(point, entry.name, seed, text, cut, tokens)


def _reply(
    contract: Contract,
    space: AnswerSpace,
    example: Example,
    known: float,
    comply: float,
    draws: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> tuple[str, bool]:
    turn = int(draws[2] * 1_000_003)
    other = other_answer(space, example.gold, turn)
    answer, rival = (example.gold, other) if draws[0] < known else (other, example.gold)
    if draws[1] >= comply:
        return broken(tuple(BREAKS), turn, Intent(contract, space, answer, rival))
    # No two lines of reasoning are alike, so that nothing can be read once for all.
    thought = " ".join(WORDS[(turn >> shift) % len(WORDS)] for shift in range(0, 18, 3))
    return reply(contract, space, answer, thought if contract.preamble else ""), False


def _row(
    at: Point, model: str, seed: int, text: str, cut: bool, tokens: int
) -> tuple[Point, Generation]:
    name = "\0".join((model, at.task, at.example_id, at.wrapper, str(seed)))
    request = hashlib.sha256(name.encode()).hexdigest()[:32]
    place = (model, at.task, at.example_id, at.wrapper, at.mode, seed)
    generation = Generation(
        request_id=request,
        text=text,
        finish_reason="length" if cut else "stop",
        prompt_tokens=tokens,
        completion_tokens=len(text) // 4 + 1,
        served_model=model,
        provider="synthetic",
        started_at="2026-01-01T00:00:00+00:00",
        latency_s=0.5,
    )
    return Point(*place, request), generation
