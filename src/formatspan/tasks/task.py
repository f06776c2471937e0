"""What a task is: a data set with a fixed kind of answer, and the rows of one load of it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from formatspan.contracts import Answers, AnswerSpace, Form
from formatspan.errors import StudyError
from formatspan.records import Example, Kind, as_jsonable

Row = Mapping[str, Any]
"""One row of a data file, with the file's own field names."""


class RowError(ValueError):
    """A row cannot become an example; the loader adds file and line.

    Args:
        field: The column at fault.
        message: What was wrong and what would be right.
    """

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class HubSource:
    """Where a task's rows are on the hub."""

    dataset: str
    config: str
    split: str
    revision: str | None = None
    """Commit the task is pinned to; None for the newest."""
    files: tuple[str, ...] = ()
    """Parquet files of the split at ``revision``, in order; looked up where empty."""

    def __str__(self) -> str:
        """As messages and reports name it."""
        return f"{self.dataset} ({self.config}, {self.split})"


@dataclass(frozen=True, slots=True)
class Task:
    """A data set with a fixed kind of answer."""

    name: str
    kind: Kind
    instruction: str
    """One line shared by all wrappers: what to do, not how to write the answer."""
    parse: Callable[[Row, int], Example]
    """Turns row ``i`` (0-based) into an example, or raises RowError."""
    form: Form = "label"
    """Choice answers are asked as the option's label, or as its text."""
    words: tuple[str, str] | None = None
    """Words for true and false asked for by a boolean task."""
    hub: HubSource | None = None
    stratify: str | None = None
    """Metadata column over which samples are spread evenly; None for none."""
    cluster: Callable[[Sequence[Example]], Sequence[str]] | None = None
    """Cluster of every example, where a row alone does not tell it."""
    builtin: Callable[[], Sequence[Row]] | None = None
    """Rows that ship with the package; such a task needs neither file nor hub."""

    @property
    def answers(self) -> Answers:
        """How its answers are written."""
        return Answers(self.kind, self.form, self.words)


def adapted(
    task: Task,
    *,
    instruction: str | None = None,
    form: Form | None = None,
    words: tuple[str, str] | None = None,
    stratify: str | None = None,
) -> Task:
    """``task`` with what a study asks for instead; None keeps what the task has.

    Raises:
        StudyError: The instruction is no line of text, or form or words do not fit the kind.
    """
    if instruction is not None and instruction.strip().splitlines() != [instruction]:
        raise StudyError(
            f"task {task.name}, instruction: expected one line of text, no space or break around it"
        )
    if form == "text" and task.kind != "choice":
        raise StudyError(f"task {task.name}, form: text is for choices; its kind is {task.kind}")
    if words and task.kind != "boolean":
        raise StudyError(f"task {task.name}, words: are for truth values; its kind is {task.kind}")
    if words and (words[0].strip().casefold() == words[1].strip().casefold()):
        raise StudyError(f"task {task.name}, words: expected two different, got {words[0]!r} twice")
    return replace(
        task,
        instruction=instruction or task.instruction,
        form=form or task.form,
        words=words or task.words,
        stratify=stratify or task.stratify,
    )


@dataclass(frozen=True)
class TaskData:
    """All rows of one load of a task, in source order."""

    task: Task
    examples: tuple[Example, ...]
    source: str
    """File name, or hub data set with config and split."""
    revision: str | None
    """Resolved commit on the hub; None for files."""
    notes: tuple[str, ...] = ()
    """What the reader should know about this load, a sentence each."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 over all examples: equal digests, equal questions."""
        hasher = hashlib.sha256()
        for example in self.examples:
            line = json.dumps(as_jsonable(example), ensure_ascii=True, sort_keys=True)
            hasher.update(line.encode() + b"\n")
        return hasher.hexdigest()

    @property
    def chance(self) -> float:
        """Accuracy of guessing: mean of 1/options, 1/2 for booleans, 0 for numbers."""
        if self.task.kind == "choice":
            return math.fsum(1 / len(e.options) for e in self.examples) / len(self.examples)
        return 0.5 if self.task.kind == "boolean" else 0.0


def space_of(task: Task, example: Example) -> AnswerSpace:
    """The answers that ``example`` allows."""
    return AnswerSpace.of_options(task.kind, example.options)
