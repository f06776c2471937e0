"""From a study to prompts and requests: what exactly is asked of whom, in which order.

Pure: data, tokenizers and budgets already in force come as arguments.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from msgspec.structs import replace

from formatspan.backends.base import ConstraintType, Lesson, Tokenizer
from formatspan.constraints import held_by, preamble_room
from formatspan.contracts import Answers, AnswerSpace, Contract
from formatspan.records import (
    Constraint,
    Example,
    Mode,
    Point,
    Prompt,
    Request,
)
from formatspan.study import Budget, ModelEntry, Study
from formatspan.tasks.sampling import order
from formatspan.tasks.task import Task, TaskData, space_of
from formatspan.wrappers import Content, Rendered, Wrapper, render
from formatspan.wrappers.padding import Unit, length, pad, tolerance

CHUNK = 32
"""Examples that go through all wrappers before the next ones do.

An interrupted run so holds whole examples, while prompts that begin alike, those of one
example under several wrappers and its repeats, are far enough apart for the later to find the
earlier one's beginning in a prefix cache. With 16 to 32 requests in flight and 5 seeds that is
three quarters of all prompt tokens on the seven data sets; repeats side by side would make it a
third, one example after the other next to nothing.
"""

ID_CHARS = 32
BudgetKey = tuple[str, str, str]
"""(tokenizer, task, example id; empty for a budget of the whole task)."""


@dataclass(frozen=True)
class OpenModel:
    """What the grid must know of a model that is ready to answer."""

    entry: ModelEntry
    endpoint: str
    """Hash of what addresses the model besides its address."""
    tokenizer: Tokenizer | None
    tokenizer_name: str
    """Names the prompts it shares with other models; empty under a character budget."""
    copies: bool
    """Repeats at temperature 0 are copies of one reply."""
    constraints: frozenset[ConstraintType] = frozenset()


@dataclass
class Budgets:
    """Padding budgets: those in force, and those that this plan adds."""

    in_force: dict[BudgetKey, int]
    added: dict[BudgetKey, int] = field(default_factory=dict)

    def get(self, key: BudgetKey) -> int | None:
        """The budget at ``key``, or None if there is none yet."""
        return self.in_force.get(key, self.added.get(key))


class Planned(NamedTuple):
    """A point with the prompt that its request carries."""

    tokenizer: str
    point: Point
    prompt: Prompt


def sample(study: Study, data: TaskData) -> tuple[Example, ...]:
    """The study's examples of a task: the first of one order fixed by the sample seed."""
    ranked = order(data, study.sample_seed)[: study.examples]
    return tuple(data.examples[i] for i in ranked)


def content(task: Task, example: Example) -> Content:
    """What every wrapper is filled with for ``example``."""
    return Content(
        task.instruction,
        example.question,
        example.context,
        example.options,
        task.kind,
        task.form,
        task.words,
    )


class Misfit(NamedTuple):
    """A prompt that is longer than its budget."""

    task: str
    example_id: str
    wrapper: str
    needs: int
    """Its length without padding, in ``unit``."""
    budget: int
    unit: Unit


@dataclass(frozen=True)
class TaskGrid:
    """The grid of one task: its examples × models × wrappers × modes × seeds."""

    study: Study
    data: TaskData
    models: Sequence[OpenModel]
    budgets: Budgets

    @property
    def points(self) -> int:
        """How many points there are."""
        each = len(self.models) * len(self.study.decoding) * self.study.seeds
        return len(self.examples) * len(self.wrappers) * each

    def misfits(self) -> list[Misfit]:
        """Every prompt that is longer than a budget that is stated or already in use."""
        found = []
        for tokenizer, counter in self._tokenizers.items():
            self._fix_budgets(tokenizer)
            for example in self.examples:
                budget = self.budgets.get(self._key(tokenizer, example))
                filled = content(self.data.task, example)
                for wrapper in self.wrappers if budget is not None else ():
                    needs = length(render(wrapper, filled), counter)
                    if budget is not None and needs > budget + tolerance(counter):
                        unit: Unit = "tokens" if counter else "chars"
                        place = (self.data.task.name, example.id, wrapper.name)
                        found.append(Misfit(*place, needs, budget, unit))
        return found

    def planned(self) -> Iterator[Planned]:
        """Every point, by a few examples at a time, seed, wrapper, example, model and mode.

        Raises:
            TooLong: A prompt does not fit a budget that is stated or already in use.
        """
        self._fix_all_budgets()
        for chunk in _chunks(self.examples, CHUNK):
            points = (p for found in self._prompts(chunk) for p in self._planned(*found))
            # Repeats of a prompt must not be under way together, or none finds the other's
            # beginning in a prefix cache.
            yield from sorted(points, key=lambda p: p.point.seed)

    def _planned(
        self, example: Example, wrapper: Wrapper, prompts: Mapping[str, Prompt]
    ) -> Iterator[Planned]:
        for model in self.models:
            prompt = prompts[model.tokenizer_name]
            for point in self._points(model, prompt, wrapper, example):
                yield Planned(model.tokenizer_name, point, prompt)

    def prompts(self) -> Iterator[tuple[Example, Wrapper, dict[str, Prompt]]]:
        """Every example under every wrapper, with its prompt by the tokenizer's name.

        Raises:
            StudyError: As `planned`.
        """
        self._fix_all_budgets()
        for chunk in _chunks(self.examples, CHUNK):
            yield from self._prompts(chunk)

    def _prompts(
        self, chunk: Sequence[Example]
    ) -> Iterator[tuple[Example, Wrapper, dict[str, Prompt]]]:
        self._rendered.clear()
        self._fix_examples(chunk)
        for wrapper in self.wrappers:
            for example in chunk:
                prompts = {name: self._prompt(example, wrapper, name) for name in self._tokenizers}
                yield example, wrapper, prompts

    def _fix_all_budgets(self) -> None:
        for tokenizer in self._tokenizers:
            self._fix_budgets(tokenizer)

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """The study's examples of the task, in the order of the sample."""
        return sample(self.study, self.data)

    @cached_property
    def wrappers(self) -> tuple[Wrapper, ...]:
        """The study's wrappers."""
        return tuple(entry.build() for entry in self.study.wrappers)

    @cached_property
    def _tokenizers(self) -> dict[str, Tokenizer | None]:
        return {m.tokenizer_name: m.tokenizer for m in self.models}

    def _points(
        self, model: OpenModel, prompt: Prompt, wrapper: Wrapper, example: Example
    ) -> Iterator[Point]:
        task = self.data.task
        asked = wrapper.contract.asking(task.answers), space_of(task, example)
        copied = model.copies and self.study.temperature == 0
        for mode in self.study.decoding:
            if mode == "constrained" and held_by(*asked, model.constraints) is None:
                continue  # said beforehand, see `unheld`
            first: str | None = None
            for seed in range(self.study.seeds):
                request = request_for(self.study, model, prompt, asked, mode, seed)
                place = (task.name, example.id, wrapper.name, mode, seed)
                yield Point(model.entry.name, *place, request.id, first if copied else None)
                first = first or request.id

    def _prompt(self, example: Example, wrapper: Wrapper, tokenizer: str) -> Prompt:
        task = self.data.task
        rendered = self._filled(wrapper, example)
        budget = self.budgets.get(self._key(tokenizer, example))
        padded = pad(rendered, budget, self._tokenizers[tokenizer])
        lengths = (padded.chars, padded.pad_chars, padded.tokens)
        return Prompt(task.name, example.id, wrapper.name, padded.messages, *lengths)

    def _key(self, tokenizer: str, example: Example) -> BudgetKey:
        by_example = self.study.budget == "example"
        return (tokenizer, self.data.task.name, example.id if by_example else "")

    def _fix_budgets(self, tokenizer: str) -> None:
        """Add the budgets that are not in force yet.

        A task's budget is taken over all its rows, so that it does not depend on the sample.
        """
        stated = self.study.budget
        if stated == "none":
            return
        if isinstance(stated, Budget):
            size = stated.chars or stated.tokens or 0
            self.budgets.added[tokenizer, self.data.task.name, ""] = size
            return
        if stated == "task":
            for example in self.data.examples:
                self._rendered.clear()
                self._lengthen(tokenizer, example)

    def _fix_examples(self, examples: Sequence[Example]) -> None:
        """Add the budgets of examples that have one each."""
        if self.study.budget == "example":
            for tokenizer in self._tokenizers:
                for example in examples:
                    self._lengthen(tokenizer, example)

    def _lengthen(self, tokenizer: str, example: Example) -> None:
        key = self._key(tokenizer, example)
        if key not in self.budgets.in_force:
            longest = self._longest(tokenizer, example)
            self.budgets.added[key] = max(longest, self.budgets.added.get(key, 0))

    def _longest(self, tokenizer: str, example: Example) -> int:
        counter = self._tokenizers[tokenizer]
        return max(length(self._filled(wrapper, example), counter) for wrapper in self.wrappers)

    def _filled(self, wrapper: Wrapper, example: Example) -> Rendered:
        """A wrapper filled with an example; kept until the chunk is done."""
        key = wrapper.name, example.id
        if key not in self._rendered:
            self._rendered[key] = render(wrapper, content(self.data.task, example))
        return self._rendered[key]

    @cached_property
    def _rendered(self) -> dict[tuple[str, str], Rendered]:
        return {}


def request_for(
    study: Study,
    model: OpenModel,
    prompt: Prompt,
    asked: tuple[Contract, AnswerSpace],
    mode: Mode,
    seed: int,
) -> Request:
    """The request that asks ``prompt`` of ``model``; its id is a hash of its content."""
    held = _held(study, model, asked) if mode == "constrained" else None
    endpoint = model.endpoint
    if held and model.entry.constrain:  # the same constraint, written otherwise
        endpoint = content_hash([endpoint, model.entry.constrain])
    request = Request(
        id="",
        model=model.entry.model,
        endpoint=endpoint,
        messages=(*study.system(model.entry), *prompt.messages),
        sampling=study.sampling(model.entry),
        seed=seed,
        mode=mode,
        constraint=held,
    )
    return identified(request)


def _held(study: Study, model: OpenModel, asked: tuple[Contract, AnswerSpace]) -> Constraint | None:
    room = preamble_room(study.sampling(model.entry).max_tokens)
    return held_by(*asked, model.constraints, room)


def identified(request: Request) -> Request:
    """``request`` with the id that its content gives it."""
    return replace(request, id=content_hash(_content(request)))


def _content(request: Request) -> dict[str, object]:
    """`as_jsonable` of a request without its id, spelled out: a run does this for every one."""
    sampling, held = request.sampling, request.constraint
    return {
        "model": request.model,
        "endpoint": request.endpoint,
        "messages": [{"role": m.role, "content": m.content} for m in request.messages],
        "sampling": {
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "stop": sampling.stop,
        },
        "seed": request.seed,
        "mode": request.mode,
        "constraint": None if held is None else {"type": held.type, "value": held.value},
        "kind": request.kind,
        "parent": request.parent,
    }


_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode


def content_hash(data: object) -> str:
    """Hash of canonical JSON: sorted keys, ASCII, no white space."""
    return hashlib.sha256(_CANONICAL(data).encode("ascii")).hexdigest()[:ID_CHARS]


def endpoint_hash(entry: ModelEntry, facts: Mapping[str, str]) -> str:
    """Hash of what addresses a model besides its address and messages.

    ``facts`` are those of the backend's own that decide replies: the checksum of its file.
    """
    shaping = {
        "base_url": entry.base_url,
        "headers": entry.headers,
        "extra_body": entry.body,
        "revision": entry.revision,
        "model_sha256": facts.get("model_sha256"),
    }
    return content_hash(shaping)


def lesson(prompt: Prompt, wrapper: Wrapper, answers: Answers, example: Example) -> Lesson:
    """What a coached backend is told before it answers."""
    return Lesson(
        task=prompt.task,
        example_id=prompt.example_id,
        wrapper=prompt.wrapper,
        contract=wrapper.contract.asking(answers),
        space=AnswerSpace.of_options(answers.kind, example.options),
        gold=example.gold,
    )


def _chunks(examples: Sequence[Example], size: int) -> Iterator[Sequence[Example]]:
    return (examples[i : i + size] for i in range(0, len(examples), size))


def unheld(study: Study, tasks: Sequence[Answers], model: OpenModel) -> list[str]:
    """Wrappers under which a model cannot be held to the contract on some task."""
    if "constrained" not in study.decoding:
        return []
    wrappers = [entry.build() for entry in study.wrappers]
    return [w.name for w in wrappers if any(not _holds(model, w, task) for task in tasks)]


def _holds(model: OpenModel, wrapper: Wrapper, task: Answers) -> bool:
    space = AnswerSpace.of_options(task.kind, ("one", "two") if task.kind == "choice" else ())
    return held_by(wrapper.contract.asking(task), space, model.constraints) is not None


def padding_unit(study: Study) -> Unit:
    """The unit in which the study's budget is counted."""
    if isinstance(study.budget, Budget):
        return "chars" if study.budget.chars else "tokens"
    return study.budget_unit
