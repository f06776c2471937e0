r"""The demo suite: three small tasks that ship with the package, one for each kind of answer.

All questions were written for this package and are easy on purpose: a model of 135 million
parameters should be clearly above chance, so that a first run on a laptop has something to
measure. Answers are asked for as an option's text, yes or no, and a small number, since very
small models answer at chance when asked for an option's letter.

Rows of the three tasks::

    {"id": "c001", "question": "What is the opposite of \"life\"?",
     "options": ["paper", "weather", "death", "finger"], "answer": "death", "topic": "opposites"}
    {"id": "b001", "question": "Is Mount Everest a river?", "answer": "no", "topic": "places"}
    {"id": "n001", "question": "What is 5 plus 4?", "answer": 9, "topic": "plus-words"}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import resources

from formatspan.records import Answer, Example
from formatspan.tasks import golds, rows
from formatspan.tasks.golds import Options
from formatspan.tasks.task import Row, Task

PER_TEMPLATE = 20
"""Questions made from each arithmetic template."""

WORDS = ("yes", "no")


@dataclass(frozen=True, slots=True)
class Template:
    """A wording of one arithmetic operation on two small numbers, ``a`` and ``b``."""

    topic: str
    """Names the template; the word before the hyphen names the operation."""
    text: str
    a: tuple[int, int]
    """Smallest and largest first number."""
    b: tuple[int, int]
    """Smallest and largest second number."""


TEMPLATES = (
    Template("plus-words", "What is {a} plus {b}?", (1, 9), (1, 5)),
    Template("plus-sign", "What is {a} + {b}?", (1, 9), (1, 5)),
    Template("plus-much", "How much is {a} plus {b}?", (1, 9), (1, 5)),
    Template("minus-words", "What is {a} minus {b}?", (5, 11), (1, 4)),
    Template("minus-sign", "What is {a} - {b}?", (5, 11), (1, 4)),
    Template("times-words", "What is {a} times {b}?", (2, 10), (2, 4)),
    Template("times-much", "How much is {a} times {b}?", (2, 10), (2, 4)),
    Template(
        "plus-gets",
        "{name} has {a} {thing} and gets {b} more. How many {thing} does {name} have now?",
        (2, 9),
        (1, 5),
    ),
    Template(
        "plus-both",
        "{name} has {a} big {thing} and {b} small {thing}. How many {thing} does {name} have?",
        (2, 8),
        (2, 6),
    ),
    Template(
        "minus-gives",
        "{name} has {a} {thing} and gives away {b}. How many {thing} does {name} have left?",
        (5, 10),
        (1, 4),
    ),
)

NAMES = ("Anna", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Henry", "Ida", "Jack")
THINGS = ("apples", "books", "caps", "balls", "pencils", "balloons", "cups", "buttons")


def shipped(name: str) -> list[Row]:
    """Rows of the data file ``name`` inside the package."""
    text = resources.files("formatspan.tasks").joinpath("data", name).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def number_rows() -> list[Row]:
    """The arithmetic questions, templates in turn: the same on every machine and Python."""
    columns = [_questions(template) for template in TEMPLATES]
    turns = [row for turn in zip(*columns, strict=True) for row in turn]
    return [{"id": f"n{i:03d}", **row} for i, row in enumerate(turns, start=1)]


def _questions(template: Template) -> list[Row]:
    """``PER_TEMPLATE`` different questions of one template."""
    found: dict[str, Row] = {}
    for question, answer in _draws(template):
        found.setdefault(
            question, {"question": question, "answer": answer, "topic": template.topic}
        )
        if len(found) == PER_TEMPLATE:
            break
    return list(found.values())


def _draws(template: Template) -> Iterator[tuple[str, int]]:
    """Questions and answers drawn without end; they may repeat."""
    attempt = 0
    while True:
        draw = partial(_draw, f"{template.topic}:{attempt}")
        a, b = draw("a", *template.a), draw("b", *template.b)
        name = NAMES[draw("name", 0, len(NAMES) - 1)]
        thing = THINGS[draw("thing", 0, len(THINGS) - 1)]
        yield template.text.format(a=a, b=b, name=name, thing=thing), solve(template.topic, a, b)
        attempt += 1


def solve(topic: str, a: int, b: int) -> int:
    """The answer to a question of ``topic`` about ``a`` and ``b``."""
    operation = topic.partition("-")[0]
    if operation == "times":
        return a * b
    return a + b if operation == "plus" else a - b


def _draw(key: str, what: str, low: int, high: int) -> int:
    """A whole number from ``low`` to ``high``, fixed by ``key`` and ``what`` for ever.

    Hashed rather than drawn from `random`, whose methods may change between Python versions.
    """
    digest = hashlib.sha256(f"formatspan demo:{key}:{what}".encode()).digest()
    return low + int.from_bytes(digest[:8], "big") % (high - low + 1)


def parse_choice(row: Row, i: int) -> Example:
    """An example of ``demo_choice``; the row's answer is an option's text."""
    options = rows.texts(row.get("options"), "options")
    gold = golds.choice(Options(options, ()), row.get("answer"), "text")
    return _example("demo_choice", row, i, gold, options)


def parse_boolean(row: Row, i: int) -> Example:
    """An example of ``demo_boolean``; the row's answer is yes or no."""
    return _example("demo_boolean", row, i, golds.boolean(row.get("answer"), WORDS))


def parse_number(row: Row, i: int) -> Example:
    """An example of ``demo_number``; the row's answer is a whole number."""
    return _example("demo_number", row, i, golds.number(row.get("answer")))


def _example(task: str, row: Row, i: int, gold: Answer, options: tuple[str, ...] = ()) -> Example:
    return rows.example(
        task,
        rows.key(row.get("id"), "id") or str(i),
        rows.text(row, "question"),
        gold,
        options=options,
        metadata={"topic": rows.text(row, "topic")},
    )


CHOICE = Task(
    name="demo_choice",
    kind="choice",
    instruction="Choose the correct answer to the question.",
    parse=parse_choice,
    form="text",
    builtin=partial(shipped, "demo_choice.jsonl"),
)

BOOLEAN = Task(
    name="demo_boolean",
    kind="boolean",
    instruction="Answer the question.",
    parse=parse_boolean,
    words=WORDS,
    builtin=partial(shipped, "demo_boolean.jsonl"),
)

NUMBER = Task(
    name="demo_number",
    kind="number",
    instruction="Work out the answer to the question.",
    parse=parse_number,
    builtin=number_rows,
)
