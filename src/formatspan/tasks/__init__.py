"""Tasks: where the questions come from.

A task is found by name in one table and imported when asked for; other packages add tasks
through the entry-point group ``formatspan.tasks``. A user's own file becomes a task with
`formatspan.tasks.files.file_task`.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from formatspan.errors import DataError, StudyError
from formatspan.paths import readable_folder
from formatspan.tasks.files import file_task
from formatspan.tasks.readers import Numbered, read
from formatspan.tasks.rows import examples
from formatspan.tasks.sampling import Coverage, coverage, order
from formatspan.tasks.task import HubSource, Row, RowError, Task, TaskData, adapted, space_of

__all__ = [
    "DATA_VARIABLE",
    "TASKS",
    "Coverage",
    "HubSource",
    "Row",
    "RowError",
    "Task",
    "TaskData",
    "adapted",
    "coverage",
    "file_task",
    "get_task",
    "load",
    "order",
    "space_of",
    "task_names",
]

TASKS: dict[str, str] = {
    "arc_challenge": "formatspan.tasks.arc_challenge:TASK",
    "boolq": "formatspan.tasks.boolq:TASK",
    "commonsense_qa": "formatspan.tasks.commonsense_qa:TASK",
    "demo_boolean": "formatspan.tasks.demo:BOOLEAN",
    "demo_choice": "formatspan.tasks.demo:CHOICE",
    "demo_number": "formatspan.tasks.demo:NUMBER",
    "gsm8k": "formatspan.tasks.gsm8k:TASK",
    "hellaswag": "formatspan.tasks.hellaswag:TASK",
    "piqa": "formatspan.tasks.piqa:TASK",
    "winogrande": "formatspan.tasks.winogrande:TASK",
}
"""Where each built-in task is defined."""

ENTRY_POINTS = "formatspan.tasks"
"""Entry-point group whose objects are Tasks of other packages."""

DATA_VARIABLE = "FORMATSPAN_DATA"
"""Environment variable that names the folder with ``<task>.jsonl`` files."""


def task_names() -> tuple[str, ...]:
    """Names of all known tasks, sorted; nothing is imported."""
    return tuple(sorted({*TASKS, *(e.name for e in entry_points(group=ENTRY_POINTS))}))


def get_task(name: str) -> Task:
    """The task called ``name``.

    Raises:
        StudyError: There is no such task, or another package's task cannot be imported.
    """
    if name in TASKS:
        module, _, attribute = TASKS[name].partition(":")
        return _a_task(name, lambda: getattr(import_module(module), attribute))
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name == name:
            return _a_task(name, entry.load)
    raise StudyError(_unknown(name))


def load(
    task: Task | str, *, data_dir: Path | str | None = None, revision: str | None = None
) -> TaskData:
    """All rows of a task: built in, from ``<task>.jsonl`` in a folder, or from the hub.

    Args:
        task: The task, or its name.
        data_dir: Folder with files in the hub's field names; by default the one that the
            environment variable FORMATSPAN_DATA names, if it is set.
        revision: Branch, tag or commit of the hub data set, instead of the task's own.

    Raises:
        StudyError: There is no such task.
        DataError: The rows cannot be had, or one of them is wrong.
        RunError: The folder is none.
    """
    task = get_task(task) if isinstance(task, str) else task
    if data_dir is not None:
        readable_folder(Path(data_dir), "--data")
    if task.builtin is not None:
        numbered = (Numbered(i, row) for i, row in enumerate(task.builtin(), start=1))
        return TaskData(task, examples(task, numbered, "built in"), "built in", None)
    folder = data_dir if data_dir is not None else os.environ.get(DATA_VARIABLE)
    if folder:
        return _from_folder(task, Path(folder))
    from formatspan.tasks import hub  # its client is slow to start, and often not needed

    return hub.load(task, revision=revision)


def _from_folder(task: Task, folder: Path) -> TaskData:
    path = folder / f"{task.name}.jsonl"
    if not path.is_file():
        raise DataError(
            f"no such file: the task {task.name} is read from it because --data, now or when the "
            f"run began, or {DATA_VARIABLE} names its folder; without them it comes from the hub",
            source=str(path),
        )
    return TaskData(task, examples(task, read(path), str(path)), path.name, None)


def _a_task(name: str, find: Callable[[], object]) -> Task:
    try:
        found = find()
    except (ImportError, AttributeError) as error:
        raise StudyError(f"task {name!r} cannot be imported: {error}") from error
    if not isinstance(found, Task):
        raise StudyError(f"task {name!r}: expected a Task, got {type(found).__name__}")
    return found


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, task_names(), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"unknown task {name!r}: expected one of {', '.join(task_names())}{hint}"
