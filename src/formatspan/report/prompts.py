"""Prompts in few bytes: example + template + padding instead of a text for every reply.

A *skeleton* is a wrapper rendered with marks in place of the example's texts. Filled with an
example it must give the stored prompt to the letter; where it does not (a template that changes
its content), the stored text itself is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from formatspan.records import Example
from formatspan.store import Store
from formatspan.study import Study
from formatspan.wrappers import Content, Wrapper, render
from formatspan.wrappers.padding import TOKEN_UNITS
from formatspan.wrappers.wrapper import SLOT

_OPEN, _CLOSE = "\U0010fffd", "\U0010fffe"
"""Enclose the name of a slot: characters that no prompt holds."""
_SLOTS = re.compile(f"({_OPEN}[a-z0-9]+{_CLOSE}|{SLOT})")
_PROMPT = """
SELECT q.messages, q.chars, q.pad_chars, q.tokens FROM points p
JOIN prompts q USING (tokenizer, task, example_id, wrapper)
WHERE p.model = ? AND p.task = ? AND p.example_id = ? AND p.wrapper = ? LIMIT 1
"""

Parts = list[str | int]
"""A text: strings stand for themselves, numbers for slots (see `slot_texts`)."""
PADDING, QUESTION, CONTEXT, OPTIONS = 0, 1, 2, 3
"""Slots; option ``i`` is ``OPTIONS + i``."""


@dataclass
class PromptBook:
    """The prompts of a report: skeletons once, and for each prompt how to fill one.

    Args:
        store: The run's store.
        study: Its study.
        tasks: The tasks' records in the store.
    """

    store: Store
    study: Study
    tasks: Mapping[str, Mapping[str, Any]]
    skeletons: list[list[tuple[str, Parts]]] = field(default_factory=list)
    """Messages as (role, parts)."""
    _known: dict[str, int] = field(default_factory=dict)

    def entry(self, example: Example, model: str, wrapper: str) -> dict[str, Any] | None:
        """How the prompt of a reply is put together; None if the store has none.

        ``skeleton`` is an index into ``skeletons``, ``padding`` a unit and its repeats.
        """
        key = (model, example.task, example.id, wrapper)
        row = self.store.connection.execute(_PROMPT, key).fetchone()
        if row is None:
            return None
        stored = [(m["role"], m["content"]) for m in json.loads(row[0])]
        skeleton, padding = self._explained(stored, example, wrapper)
        entry = {"skeleton": self._number(skeleton), "chars": row[1], "pad": row[2]}
        return entry | {"padding": _repeats(padding), "tokens": row[3]}

    def _explained(
        self, stored: list[tuple[str, str]], example: Example, wrapper: str
    ) -> tuple[list[tuple[str, Parts]], str]:
        entry = next((w for w in self.study.wrappers if w.name == wrapper), None)
        if entry is not None:
            skeleton = self._skeleton(entry.build(), example)
            padding = _padding(skeleton, stored, example)
            if filled(skeleton, example, padding) == stored:
                return skeleton, padding
        return [(role, [text]) for role, text in stored], ""

    def _skeleton(self, wrapper: Wrapper, example: Example) -> list[tuple[str, Parts]]:
        task = self.tasks[example.task]
        marked = Content(
            task["instruction"],
            _mark(QUESTION),
            _mark(CONTEXT) if example.context else "",
            tuple(_mark(OPTIONS + i) for i in range(len(example.options))),
            task["kind"],
            task["form"],
            tuple(task["words"]) if task["words"] else None,
        )
        return [(m.role, _parts(m.content)) for m in render(wrapper, marked).messages]

    def _number(self, skeleton: list[tuple[str, Parts]]) -> int:
        key = json.dumps(skeleton)
        if key not in self._known:
            self._known[key] = len(self.skeletons)
            self.skeletons.append(skeleton)
        return self._known[key]


def slot_texts(example: Example) -> list[str]:
    """What fills the slots from ``QUESTION`` on: question, context, options."""
    return [example.question, example.context, *example.options]


def filled(
    skeleton: Sequence[tuple[str, Parts]], example: Example, padding: str
) -> list[tuple[str, str]]:
    """The messages of a skeleton filled with an example."""
    texts = [padding, *slot_texts(example)]
    return [
        (role, "".join(p if isinstance(p, str) else texts[p] for p in parts))
        for role, parts in skeleton
    ]


def _padding(
    skeleton: Sequence[tuple[str, Parts]], stored: Sequence[tuple[str, str]], example: Example
) -> str:
    """What stands in the padding slot of the stored messages, by their lengths."""
    if len(skeleton) != len(stored):
        return ""
    unpadded = filled(skeleton, example, "")
    for (_, parts), (_, bare), (_, text) in zip(skeleton, unpadded, stored, strict=True):
        if PADDING in parts:
            before = filled([("", parts[: parts.index(PADDING)])], example, "")[0][1]
            return text[len(before) : len(before) + len(text) - len(bare)]
    return ""


def _repeats(padding: str) -> tuple[str, int]:
    for unit in (" ", *TOKEN_UNITS):
        repeats = len(padding) // len(unit)
        if unit * repeats == padding:
            return unit, repeats
    return padding, 1


def _mark(slot: int) -> str:
    return f"{_OPEN}{slot}{_CLOSE}"


def _parts(text: str) -> Parts:
    pieces = [p for p in _SLOTS.split(text) if p]
    return [PADDING if p == SLOT else int(p[1:-1]) if p[0] == _OPEN else p for p in pieces]
