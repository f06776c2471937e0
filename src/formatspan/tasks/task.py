"""What a task is: a data set with a fixed kind of answer, and the rows of one load of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from formatspan.contracts import AnswerSpace, Form
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
    """Commit the task is pinned to, where one is known for certain."""


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


@dataclass(frozen=True)
class TaskData:
    """All rows of one load of a task, in source order."""

    task: Task
    examples: tuple[Example, ...]
    source: str
    """File name, or hub data set with config and split."""
    revision: str | None
    """Resolved commit on the hub; None for files."""

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
            return sum(1 / len(e.options) for e in self.examples) / len(self.examples)
        return 0.5 if self.task.kind == "boolean" else 0.0


def space_of(task: Task, example: Example) -> AnswerSpace:
    """The answers that ``example`` allows."""
    return AnswerSpace.of_options(task.kind, example.options)
