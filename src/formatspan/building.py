"""Makes requests of pending points: what is planned, checked against what would be asked now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

from msgspec.structs import replace

from formatspan.backends.base import Backend, Lesson
from formatspan.contracts import AnswerSpace, Contract
from formatspan.errors import RunError
from formatspan.grid import OpenModel, lesson, request_for
from formatspan.records import Example, Request
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
        pattern = self.patterns.get((point.task, point.wrapper, point.mode))
        if pattern is not None:
            messages = (*pattern.messages, *prompt.messages)
            alike = replace(pattern, id=point.request_id, messages=messages, seed=point.seed)
            return Job(alike, None)
        job = self._made(pending)
        request = job.request
        if request.id != point.request_id:
            raise RunError(
                f"request of task {point.task!r}, example {point.example_id!r}: its content is "
                "not what was planned; the store was made by another version, or the model's "
                "'constrain' was stated since: use --fresh"
            )
        if job.lesson is None and request.constraint is None:
            system = request.messages[: -len(prompt.messages)]
            self.patterns[point.task, point.wrapper, point.mode] = replace(request, messages=system)
        return job

    def _made(self, pending: Pending) -> Job:
        """A request from scratch, with an id that is a hash of its content."""
        point, prompt = pending.point, pending.prompt
        contract, bare = self.asked(point.wrapper, point.task)
        space, told = bare, None
        if self.coached or point.mode == "constrained":
            example = self.shared.examples[point.task, point.example_id]
            space = AnswerSpace.of_options(bare.kind, example.options)
            told = self._lesson(pending, example) if self.coached else None
        asked = contract, space
        request = request_for(self.shared.study, self.model, prompt, asked, point.mode, point.seed)
        return Job(request, told)

    @cached_property
    def patterns(self) -> dict[tuple[str, str, str], Request]:
        """Of a task, wrapper and mode, a request that was made from scratch, without its prompt.

        What could change its id changes all alike: messages come from the store beside the id,
        the rest is the model's, the wrapper's and the task's. Not so the constraint, which may
        hold an example's options, and a lesson.
        """
        return {}

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
