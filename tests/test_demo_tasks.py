"""The demo suite: its questions are sound, balanced, and the same everywhere."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict

import pytest

from formatspan.records import Example
from formatspan.tasks import demo
from formatspan.tasks.task import RowError, Task, TaskData

TASKS = (demo.CHOICE, demo.BOOLEAN, demo.NUMBER)

NUMBER_DIGEST = "1b1eaf6797ad08bebab96af54b3126b2008e1d88565378b26bf0c75901c718f5"
"""Of the arithmetic questions: a changed digest means that results no longer compare."""

SCRIPT = (
    "from formatspan.tasks import demo;"
    "[print(t.parse(r, i)) for t in (demo.CHOICE, demo.BOOLEAN, demo.NUMBER)"
    " for i, r in enumerate(t.builtin())]"
)


def loaded(task: Task) -> TaskData:
    assert task.builtin is not None
    examples = tuple(task.parse(row, i) for i, row in enumerate(task.builtin()))
    return TaskData(task, examples, "shipped", None)


def words(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.casefold()))


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_task_has_200_different_questions(task: Task) -> None:
    examples = loaded(task).examples
    assert len(examples) == 200
    assert len({e.id for e in examples}) == 200
    assert len({e.question for e in examples}) == 200


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_examples_are_plain_one_line_questions_of_their_task(task: Task) -> None:
    for example in loaded(task).examples:
        assert example.task == task.name
        assert example.cluster == example.id
        assert example.context == ""
        assert example.metadata["topic"]
        assert example.question == example.question.strip()
        assert example.question.isascii()
        assert example.question.isprintable()
        assert example.question.endswith("?")


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_instruction_is_one_line(task: Task) -> None:
    assert task.instruction.isprintable()
    assert task.instruction.endswith(".")


def test_task_kinds_and_ways_of_answering() -> None:
    assert [t.kind for t in TASKS] == ["choice", "boolean", "number"]
    assert demo.CHOICE.form == "text"
    assert demo.BOOLEAN.words == ("yes", "no")
    assert [loaded(t).chance for t in TASKS] == [0.25, 0.5, 0.0]


def test_choice_golds_are_spread_evenly_over_positions() -> None:
    golds = [e.gold for e in loaded(demo.CHOICE).examples]
    assert Counter(golds) == dict.fromkeys("ABCD", 50)
    for start in range(0, 200, 4):
        assert set(golds[start : start + 4]) == set("ABCD")


def test_choice_options_are_four_short_texts_that_cannot_be_confused() -> None:
    for example in loaded(demo.CHOICE).examples:
        assert len(example.options) == 4
        for option in example.options:
            assert 1 <= len(option.split()) <= 3
            assert option == option.strip()
        for one, other in itertools.permutations(example.options, 2):
            assert one.casefold() not in other.casefold(), example


def test_no_choice_question_names_one_of_its_options() -> None:
    for example in loaded(demo.CHOICE).examples:
        for option in example.options:
            assert f" {words(option)} " not in f" {words(example.question)} ", example


def test_half_of_the_boolean_answers_are_yes() -> None:
    assert Counter(e.gold for e in loaded(demo.BOOLEAN).examples) == {True: 100, False: 100}


def test_boolean_openings_do_not_tell_the_answer() -> None:
    answers: dict[str, list[bool]] = defaultdict(list)
    for example in loaded(demo.BOOLEAN).examples:
        answers[example.question.split()[0]].append(bool(example.gold))
    for opening, golds in answers.items():
        assert sum(golds) * 2 == len(golds), opening


def test_boolean_lengths_do_not_tell_the_answer() -> None:
    lengths: dict[bool, list[int]] = {True: [], False: []}
    for example in loaded(demo.BOOLEAN).examples:
        lengths[bool(example.gold)].append(len(example.question))
    means = {gold: sum(values) / len(values) for gold, values in lengths.items()}
    assert abs(means[True] - means[False]) < 3


def recomputed(example: Example) -> int:
    """The answer worked out from the question's own words and numbers alone."""
    a, b = (int(n) for n in re.findall(r"\d+", example.question))
    if re.search(r"plus|\+|gets|small", example.question):
        return a + b
    if re.search(r"minus| - |gives away", example.question):
        return a - b
    assert re.search(r"times", example.question), example.question
    return a * b


def test_number_answers_are_right() -> None:
    for example in loaded(demo.NUMBER).examples:
        assert example.gold == recomputed(example), example
        assert isinstance(example.gold, int)
        assert 1 <= example.gold <= 50


def test_number_templates_have_equal_shares_and_take_turns() -> None:
    topics = [e.metadata["topic"] for e in loaded(demo.NUMBER).examples]
    assert set(Counter(topics).values()) == {demo.PER_TEMPLATE}
    assert topics[:10] == [t.topic for t in demo.TEMPLATES] == topics[10:20]


def test_number_questions_have_not_changed() -> None:
    assert loaded(demo.NUMBER).digest == NUMBER_DIGEST


def test_the_suite_is_the_same_in_every_process() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b"\n") == 600


@pytest.mark.parametrize(
    ("task", "answer", "field"),
    [
        (demo.CHOICE, "Bonn", "answer"),
        (demo.BOOLEAN, "perhaps", "answer"),
        (demo.NUMBER, "many", "answer"),
    ],
)
def test_a_row_without_a_valid_answer_is_refused(task: Task, answer: str, field: str) -> None:
    row = {"id": "x", "question": "Q?", "options": ["Paris", "Rome"], "topic": "t"}
    with pytest.raises(RowError) as caught:
        task.parse({**row, "answer": answer}, 0)
    assert caught.value.field == field
