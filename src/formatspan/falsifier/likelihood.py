"""The option-likelihood arm: which option the model finds likeliest, without any parsing.

Each option is written as the wrapper's contract wants it (without a scratchpad) and scored as
the continuation of the wrapper's prompt: the sum of the log-probabilities of its tokens. The
choice is the option with the largest sum, or with the largest sum per byte, as
lm-evaluation-harness defines ``acc`` and ``acc_norm``
(https://github.com/EleutherAI/lm-evaluation-harness, ``docs/task_guide.md``). A tie goes to the
option that stands first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from formatspan.contracts import AnswerSpace, Contract, answers, reply
from formatspan.falsifier.arms import Arm, Tables
from formatspan.falsifier.queue import Further, Scored, scored_options
from formatspan.grid import OpenModel, identified
from formatspan.records import Answer, Message, Request, Sampling
from formatspan.scoring import equal
from formatspan.stats.panel import Panel, TaskCounts
from formatspan.store import Store
from formatspan.stored import messages_of
from formatspan.study import Study
from formatspan.table import Asked, asked_of

KINDS = ("choice", "boolean")
"""Kinds of answers that can be listed."""

Options = Mapping[str, float]
"""Log-probability of each option of one prompt, by its item."""


def items(space: AnswerSpace) -> dict[str, Answer]:
    """Every option by its name in the queue: the label, ``true`` or ``false``."""
    found = answers(space)
    return {str(v).lower() if isinstance(v, bool) else str(v): v for v in found}


def option_text(contract: Contract, space: AnswerSpace, item: str) -> str:
    """What is scored: the strict reply that gives the option."""
    return reply(contract, space, items(space)[item])


def request_of(study: Study, model: OpenModel, messages: Sequence[Message], text: str) -> Request:
    """The request that scores ``text`` as the reply to a prompt."""
    return identified(
        Request(
            id="",
            model=model.entry.model,
            endpoint=model.endpoint,
            messages=(*study.system(model.entry), *messages, Message("assistant", text)),
            sampling=Sampling(max_tokens=0),
            seed=0,
            kind="likelihood",
        )
    )


def planned(store: Store, study: Study, models: Mapping[str, OpenModel]) -> Iterator[Further]:
    """A request for every option of every prompt whose answers can be listed."""
    look_up = asked_of(store, study)
    rows = store.connection.execute(
        """
        SELECT p.model, p.task, p.example_id, p.wrapper, p.tokenizer, q.messages
        FROM points p JOIN prompts q USING (tokenizer, task, example_id, wrapper)
        WHERE p.mode = 'free' AND p.seed = 0 ORDER BY p.id
        """
    )
    for name, task, example_id, wrapper, tokenizer, messages in rows:
        asked = look_up(task, example_id, wrapper)
        if name not in models or asked.space.kind not in KINDS:
            continue
        prompt = messages_of(messages)
        for item in items(asked.space):
            text = option_text(asked.contract, asked.space, item)
            request = request_of(study, models[name], prompt, text)
            place = (name, task, example_id, wrapper, 0, item, tokenizer, request.id)
            yield Further("likelihood", *place, parent=None)


def likelihood_arms(tables: Tables, store: Store) -> list[Arm]:
    """Accuracy by likelihood, plain and by bytes; none where nothing was scored."""
    prompts = _by_prompt(scored_options(store))
    if not prompts:
        return []
    look_up = asked_of(store, tables.study)
    rights: dict[bool, dict[Place, bool]] = {False: {}, True: {}}
    for place, options in prompts.items():
        asked = look_up(*place[1:])
        if len(options) == len(items(asked.space)):
            for by_bytes, right in rights.items():
                value = items(asked.space)[likeliest(options, asked, by_bytes=by_bytes)]
                right[place] = equal(value, asked.example.gold)
    names = {False: "likelihood", True: "likelihood by bytes"}
    return [Arm(names[by_bytes], _panel(tables, right)) for by_bytes, right in rights.items()]


Place = tuple[str, str, str, str]
"""Model, task, example id and wrapper."""


def _by_prompt(scored: Iterator[Scored]) -> dict[Place, dict[str, float]]:
    found: dict[Place, dict[str, float]] = defaultdict(dict)
    for option in scored:
        place = (option.model, option.task, option.example_id, option.wrapper)
        found[place][option.item] = option.logprob
    return found


def likeliest(options: Options, asked: Asked, *, by_bytes: bool) -> str:
    """The item with the largest log-probability, or the largest per byte of its text."""

    def score(item: str) -> float:
        if not by_bytes:
            return options[item]
        size = len(option_text(asked.contract, asked.space, item).encode())
        return options[item] / max(size, 1)

    return max(items(asked.space), key=score)


def _panel(tables: Tables, right: Mapping[Place, bool]) -> Panel:
    """The outcomes as counts: whatever was scored has a reply that parsed."""
    models, _, wrappers = tables.names
    counted = []
    for task in tables.reference.tasks:
        ids = tables.examples[task.name]
        shape = (len(models), len(ids), len(wrappers))
        outcome = np.full(shape, -1, dtype=np.int64)
        for m, model in enumerate(models):
            for e, example_id in enumerate(ids):
                for w, wrapper in enumerate(wrappers):
                    outcome[m, e, w] = right.get((model, task.name, example_id, wrapper), -1)
        there = (outcome >= 0).astype(np.int64)
        correct = np.maximum(outcome, 0)
        counted.append(TaskCounts(task.name, correct, there, there, task.clusters))
    return Panel(tuple(models), tuple(wrappers), tuple(counted))
