"""The replies that a page embeds, with their prompts and what each level made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formatspan.contracts import AnswerSpace
from formatspan.extraction import extract_with
from formatspan.records import LEVELS, Example, Level, Status
from formatspan.report.prompts import PromptBook, slot_texts
from formatspan.report.selection import Question, selected
from formatspan.scoring import equal
from formatspan.store import Store
from formatspan.study import Study
from formatspan.table import Asked, asked_of, scored, study_of

if TYPE_CHECKING:
    import polars as pl

SHOWN_LEVELS: tuple[Level, ...] = (*LEVELS, "paper")
HEAD, TAIL = 3_000, 1_000
"""Code points shown of the start and the end of a reply that is longer than both."""
MOST_TEXT = 2_500_000
"""Characters of replies and examples that a page may hold; what is beyond stays in the store."""
LONG_EXAMPLE = 6_000
"""Code points shown of a question or a context."""
_REPLY = """
SELECT g.text, g.finish_reason, g.reasoning, g.prompt_tokens, g.completion_tokens
FROM points p JOIN generations g ON g.request = coalesce(p.copy_of, p.request)
WHERE p.model = ? AND p.task = ? AND p.example_id = ? AND p.wrapper = ? AND p.mode = ?
  AND p.seed = ?
"""


@dataclass
class Explorer:
    """What the page's explorer is given; `data` is its JSON."""

    level: Level
    total: int
    """Replies of the run, copies left out."""
    examples: list[dict[str, Any]] = field(default_factory=list)
    replies: list[dict[str, Any]] = field(default_factory=list)
    skeletons: list[Any] = field(default_factory=list)
    flips: int = 0
    """Questions among the embedded ones that flip."""
    cut: int = 0
    """Replies of which only the start and the end are embedded."""

    def data(self, study: Study) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "level": self.level,
            "levels": list(SHOWN_LEVELS),
            "models": [m.name for m in study.models],
            "systems": {m.name: m.system for m in study.models if m.system},
            "tasks": [t.name for t in study.tasks],
            "wrappers": [w.name for w in study.wrappers],
            "modes": list(study.decoding),
            "statuses": [s.value for s in Status],
            "skeletons": self.skeletons,
            "examples": self.examples,
            "replies": self.replies,
        }


def explorer(
    store_path: Path | None, level: Level, replies: int, table: pl.DataFrame | None = None
) -> Explorer:
    """Choose and read the replies that a page embeds.

    Args:
        store_path: The run's SQLite file; None where there are no raw replies.
        level: Extraction level by which replies are chosen and first shown.
        replies: How many at most.
        table: The scored table of the run at that level, where it is at hand.
    """
    if store_path is None:
        return Explorer(level, 0)
    with Store.read(store_path) as store:
        study = study_of(store)
        found = scored(store, study, level) if table is None else table
        answered = found.filter(~found["copy"] & found["status"].is_not_null())
        reader = _Reader(store, study, Explorer(level, len(answered)))
        for question in selected(answered, replies):
            if not reader.take(question):
                break
    reader.result.skeletons = [
        [[role, parts] for role, parts in skeleton] for skeleton in reader.book.skeletons
    ]
    return reader.result


class _Reader:
    """Reads questions from the store into an explorer, until its room is used up."""

    def __init__(self, store: Store, study: Study, result: Explorer) -> None:
        self.store, self.study, self.result = store, study, result
        self.book = PromptBook(store, study, store.records("tasks"))
        self._asked = asked_of(store, study)
        self._wrappers = [w.name for w in study.wrappers]
        self._examples: dict[tuple[str, str], int] = {}
        self._room = MOST_TEXT

    def take(self, question: Question) -> bool:
        """Add a question's replies; False once the page has no room for more."""
        read = list(self._replies(question))
        size = sum(len(r["head"]) + len(r.get("tail", "")) for r in read)
        if size > self._room:
            return False
        self._room -= size
        self.result.replies += read
        self.result.flips += question.flip
        self.result.cut += sum("tail" in r for r in read)
        return True

    def _replies(self, question: Question) -> Iterator[dict[str, Any]]:
        wrappers = sorted({w for w, _ in question.outcomes}, key=self._wrappers.index)
        for wrapper in wrappers:
            asked = self._asked(question.task, question.example, wrapper)
            place = (question.model, question.task, question.example, wrapper)
            row = self.store.connection.execute(
                _REPLY, (*place, question.mode, question.seed)
            ).fetchone()
            yield {
                "m": question.model,
                "t": question.task,
                "e": self._example(asked.example),
                "w": wrapper,
                "d": question.mode,
                "s": question.seed,
                "prompt": self.book.entry(asked.example, question.model, wrapper),
                **_shown(row[0]),
                "finish": row[1],
                "reasoning": row[2][:HEAD] if row[2] else None,
                "tokens": [row[3], row[4]],
                "read": [_read(row[0], row[1], asked, level) for level in SHOWN_LEVELS],
            }

    def _example(self, example: Example) -> int:
        key = (example.task, example.id)
        if key not in self._examples:
            self._examples[key] = len(self.result.examples)
            texts = [_clipped(text) for text in slot_texts(example)]
            self._room -= sum(map(len, texts))
            self.result.examples.append(
                {"t": example.task, "id": example.id, "texts": texts, "gold": _gold(example)}
            )
        return self._examples[key]


def _shown(text: str) -> dict[str, Any]:
    """The whole of a reply, or its start and end with what is left out between them."""
    if len(text) <= HEAD + TAIL:
        return {"head": text}
    return {"head": text[:HEAD], "gap": len(text) - HEAD - TAIL, "tail": text[-TAIL:]}


def _read(text: str, finish: str | None, asked: Asked, level: Level) -> list[Any]:
    """Status, answer, offsets and verdict of one level."""
    contract, space, example = asked
    found = extract_with(contract, space, text, finish, level, example.question)
    right = found.status is Status.OK and equal(found.value, example.gold)
    value = None if found.value is None else str(found.value)
    return [found.status.value, value, *(found.span or (None, None)), right]


def _gold(example: Example) -> str:
    if not example.options:
        return str(example.gold)
    space = AnswerSpace.of_options("choice", example.options)
    return f"{example.gold}: {space.options[space.labels.index(str(example.gold))][:200]}"


def _clipped(text: str) -> str:
    if len(text) <= LONG_EXAMPLE:
        return text
    return text[:LONG_EXAMPLE] + f" […{len(text) - LONG_EXAMPLE} more characters]"
