"""Makes requests of pending points: what is planned, checked against what would be asked now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

from formatspan.backends.base import Backend, Lesson
from formatspan.contracts import AnswerSpace, Contract
from formatspan.errors import RunError
from formatspan.grid import OpenModel, lesson, request_for
from formatspan.records import Example, Point
from formatspan.runner import Job
from formatspan.store import Pending, Store
from formatspan.study import Study


class Builder:
    """Makes requests of pending points; examples are read only where they are needed."""

    def __init__(self, study: Study, store: Store) -> None:
        self.study, self.store = study, store
        self.wrappers = {entry.name: entry.build() for entry in study.wrappers}
        self.answers = store.answers()

    @cached_property
    def examples(self) -> dict[tuple[str, str], Example]:
        """Examples by task and id."""
        return {(e.task, e.id): e for e in self.store.examples()}

    def of(self, model: OpenModel, backend: Backend) -> _Build:
        """What makes the requests of one model."""
        return _Build(self, model, backend.capabilities.coached)


@dataclass
class _Build:
    """Makes the requests of one model."""

    shared: Builder
    model: OpenModel
    coached: bool

    def __call__(self, pending: Pending) -> Job:
        point, prompt = pending.point, pending.prompt
        contract, bare = self.asked(point.wrapper, point.task)
        space, told = bare, None
        if self.coached or point.mode == "constrained":
            example = self.shared.examples[point.task, point.example_id]
            space = AnswerSpace.of_options(bare.kind, example.options)
            told = self._lesson(pending, example) if self.coached else None
        study = self.shared.study
        asked = contract, space
        request = request_for(
            study, self.model, prompt, asked, point.mode, point.seed, self._known(point)
        )
        if request.id != point.request_id:
            raise RunError(
                f"request of task {point.task!r}, example {point.example_id!r}: its content is "
                "not what was planned; the store was made by another version, or the model's "
                "'constrain' was stated since: use --fresh"
            )
        return Job(request, told)

    def _known(self, point: Point) -> str | None:
        """The planned id, once its like was checked: what could change it changes all alike.

        Messages come from the store beside the id; the rest is the model's, the wrapper's and
        the task's.
        """
        like = point.task, point.wrapper, point.mode
        if like in self.checked:
            return point.request_id
        self.checked.add(like)
        return None

    @cached_property
    def checked(self) -> set[tuple[str, str, str]]:
        """Tasks, wrappers and modes of which one request was made from scratch."""
        return set()

    @cached_property
    def asked(self) -> Callable[[str, str], tuple[Contract, AnswerSpace]]:
        """The contract of a wrapper and the answers of a task, made once for each pair."""

        @cache
        def found(wrapper: str, task: str) -> tuple[Contract, AnswerSpace]:
            answers = self.shared.answers[task]
            contract = self.shared.wrappers[wrapper].contract.asking(answers)
            return contract, AnswerSpace(answers.kind)

        return found

    def _lesson(self, pending: Pending, example: Example) -> Lesson:
        wrapper = self.shared.wrappers[pending.point.wrapper]
        return lesson(pending.prompt, wrapper, self.shared.answers[pending.point.task], example)
