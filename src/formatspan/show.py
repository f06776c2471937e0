"""The exact prompts of a study: what each wrapper makes of an example, padding made visible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from formatspan.backends.base import Tokenizer
from formatspan.contracts import AnswerSpace, Contract, answers, reply
from formatspan.errors import BackendError, StudyError
from formatspan.grid import Budgets, Planned, TaskGrid
from formatspan.mistakes import near
from formatspan.planning import described, load_tasks, open_models
from formatspan.records import Answer, Example, Message, Prompt
from formatspan.study import Study
from formatspan.tasks.task import TaskData

PADDING_MARK = "·"
EXAMPLE_NUMBER = 7
"""Numbers have no list; this one stands for all."""

NAMED = 3
"""Ids that a message names where none of that name is known."""


@dataclass(frozen=True, slots=True)
class ShownPrompt:
    """A prompt as a person looks at it."""

    model: str
    prompt: Prompt
    messages: tuple[Message, ...]
    """As sent, system message included, with padding as ``·`` where it is spaces."""
    tokens: int | None
    """Prompt tokens, chat template included; None where no tokenizer is at hand."""
    contract: Contract
    replies: tuple[str, ...]
    """Replies that satisfy the contract, one for each answer; for a number a single one."""


def prompts_of(
    study: Study, *, task: str | None, example: str | None, data_dir: Path | None
) -> Iterator[tuple[TaskData, Example, list[ShownPrompt]]]:
    """For each task its first sampled example, or the one asked for, under every wrapper.

    Raises:
        UserError: The study, its data or a model is wrong, or there is no such task or example.
    """
    chosen = [t for t in study.tasks if task in (None, t.name)]
    if not chosen:
        names = ", ".join(t.name for t in study.tasks)
        meant = near(str(task), [t.name for t in study.tasks])
        raise StudyError(f"task {task!r} is not in the study: expected {names}{meant}")
    # Seeds and modes share their prompts.
    study = study.model_copy(update={"seeds": 1, "decoding": study.decoding[:1]})
    backends = open_models(study)
    models = [described(study, entry, backends[entry.name]) for entry in study.models]
    tokenizers = {name: _tokenizer(backend.tokenizer) for name, backend in backends.items()}
    for data in load_tasks(study.model_copy(update={"tasks": tuple(chosen)}), data_dir):
        grid = TaskGrid(study, data, models, Budgets({}))
        wanted = example if example is not None else grid.examples[0].id
        planned = [p for p in grid.planned() if p.point.example_id == wanted]
        if not planned:
            raise StudyError(_unknown(data.task.name, wanted, [e.id for e in grid.examples]))
        found = next(e for e in grid.examples if e.id == wanted)
        yield data, found, [_shown(study, p, data, found, tokenizers) for p in _once(planned)]


def _unknown(task: str, wanted: str, ids: Sequence[str]) -> str:
    """That there is no such example, and a few that there are."""
    more = f" or another of {len(ids):,}" if len(ids) > NAMED else ""
    known = f"{', '.join(ids[:NAMED])}{more}{near(wanted, ids)}"
    return f"task {task!r}: example {wanted!r} is not in the sample: expected {known}"


def _tokenizer(ask: object) -> Tokenizer | None:
    assert callable(ask)
    try:
        found: Tokenizer | None = ask()
    except BackendError:  # the prompt can be shown without token counts
        return None
    return found


def _once(planned: Sequence[Planned]) -> list[Planned]:
    """One point a model and wrapper."""
    return list({(p.point.model, p.point.wrapper): p for p in reversed(planned)}.values())[::-1]


def _shown(
    study: Study,
    planned: Planned,
    data: TaskData,
    example: Example,
    tokenizers: dict[str, Tokenizer | None],
) -> ShownPrompt:
    entry = next(m for m in study.models if m.name == planned.point.model)
    wrapper = next(w for w in study.wrappers if w.name == planned.point.wrapper).build()
    contract = wrapper.contract.asking(data.task.answers)
    space = AnswerSpace.of_options(data.task.kind, example.options)
    sent = (*study.system(entry), *planned.prompt.messages)
    tokenizer = tokenizers[entry.name]
    return ShownPrompt(
        model=entry.name,
        prompt=planned.prompt,
        messages=tuple(Message(m.role, _visible(m.content, planned.prompt)) for m in sent),
        tokens=tokenizer.count(sent) if tokenizer else None,
        contract=contract,
        replies=tuple(reply(contract, space, a) for a in _answers(space)),
    )


def _answers(space: AnswerSpace) -> tuple[Answer, ...]:
    return (EXAMPLE_NUMBER,) if space.kind == "number" else answers(space)


def _visible(content: str, prompt: Prompt) -> str:
    run = " " * prompt.pad_chars
    if not run or run not in content:
        return content
    return content.replace(run, PADDING_MARK * len(run), 1)
