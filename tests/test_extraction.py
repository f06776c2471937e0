"""The public function: its arguments, spans, flags and what it does with odd input."""

from __future__ import annotations

from typing import Any

import pytest

from formatspan.contracts import Contract
from formatspan.errors import UserError
from formatspan.extraction import extract
from formatspan.records import LEVELS, Kind, Level, Status

LETTERS: dict[str, Any] = {"contract": "letter_only", "kind": "choice", "labels": "ABCD"}


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"contract": "letters"}, "letter_only, answer_line, json, boxed, hash, bare"),
        ({"kind": "mc"}, "choice, boolean or number"),
        ({"level": "loose"}, "strict, normalized, lenient or paper"),
        ({"labels": ""}, "one different label for each option"),
        ({"labels": "AAB"}, "one different label for each option"),
        ({"options": ["x"]}, "expected 4 texts"),
        ({"labels": None}, "one different label for each option"),
    ],
)
def test_a_wrong_argument_is_named_in_one_line(change: dict[str, Any], names: str) -> None:
    with pytest.raises(UserError, match=names) as error:
        extract("B", **{**LETTERS, **change})
    assert "\n" not in str(error.value)


def test_labels_come_from_the_options() -> None:
    by_order = extract("B", contract="bare", kind="choice", options=["ink", "oil"])
    by_label = extract("2", contract="bare", kind="choice", options={"1": "ink", "2": "oil"})
    assert (by_order.value, by_label.value) == ("B", "2")


@pytest.mark.parametrize(
    ("text", "contract", "level", "seen"),
    [
        ("B", "letter_only", "strict", "B"),
        ("  **B**.", "letter_only", "normalized", "B"),
        ("hm\nANSWER: C\n", "answer_line", "strict", "C"),
        ('{"note": "A", "answer": "C"}', "json", "strict", '"C"'),
        ('Ok: {"answer": "C"} done', "json", "lenient", '"C"'),
        ("\u200bＢ\u200b", "letter_only", "normalized", "Ｂ"),
        ("“ﬁne” — the answer is Ｃ!", "letter_only", "lenient", "Ｃ"),
        ("<think>A</think>\nD<|im_end|>", "letter_only", "strict", "D"),
        ("so \\boxed{B}", "boxed", "strict", "\\boxed{B}"),
    ],
)
def test_the_span_is_in_the_raw_text(text: str, contract: str, level: Level, seen: str) -> None:
    got = extract(text, contract=contract, kind="choice", labels="ABCD", level=level)
    assert got.status is Status.OK
    assert got.span is not None
    assert text[slice(*got.span)] == seen


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ("B<|im_end|>", "special_token"),
        ("<think>A?</think>B", "reasoning"),
        ("ANSWER: A\nNo.\nANSWER: B", "changed_answer"),
        ("Which?\nA. x\nB. y\nC. z\nD. w\nAnswer: B", "prompt_echo"),
        ("What is it?\nAnswer: B", "prompt_echo"),
    ],
)
def test_side_findings_are_flagged(text: str, flag: str) -> None:
    contract = "answer_line" if text.startswith("ANSWER") else "letter_only"
    got = extract(
        text,
        contract=contract,
        kind="choice",
        labels="ABCD",
        level="lenient",
        question="What is it?",
    )
    assert got.value == "B"
    assert flag in got.flags


def test_a_repeated_option_text_names_no_option() -> None:
    got = extract("ink", contract="bare", kind="choice", options=["ink", "ink"], level="lenient")
    assert got.status is Status.AMBIGUOUS


def test_an_echoed_question_is_not_a_new_turn() -> None:
    arguments: dict[str, Any] = {"contract": "hash", "kind": "number", "level": "lenient"}
    text = "Right.\nQuestion: How many pens?\n#### 12"
    assert extract(text, question="How many pens?", **arguments).value == 12
    assert extract(text, question="What is the sum?", **arguments).value is None


@pytest.mark.parametrize("level", [*LEVELS, "paper"])
@pytest.mark.parametrize("kind", ["choice", "boolean", "number"])
@pytest.mark.parametrize(
    "text",
    ["\ud800", "\x00", "{" * 9000, '{"a":' * 9000, "9" * 9000, "1e" + "9" * 400, "\\boxed{" * 900],
    ids=range(7),
)
def test_no_text_makes_it_raise(text: str, kind: Kind, level: Level) -> None:
    for contract in ("letter_only", "json", "boxed", Contract("tags", before="<a>", after="</a>")):
        got = extract(text, contract=contract, kind=kind, labels="ABCD", level=level)
        assert got.status is not Status.OK


def test_a_number_is_an_int_where_it_is_whole() -> None:
    got = extract("36.00", contract="bare", kind="number", level="strict").value
    assert (type(got), got) == (int, 36)
    exact = extract("12,345,678,901,234,567,891", contract="bare", kind="number").value
    assert exact == 12345678901234567891


@pytest.mark.parametrize(
    ("text", "statuses"),
    [
        ('```json\n{"answer": "C"}\n```\n\nThis JSON object is', ["off_format", "no_answer", "ok"]),
        ("The answer is C, because the", ["off_format", "no_answer", "ok"]),
        ('```json\n{"answer": "C"', ["truncated"] * 3),
        ("The answer is", ["truncated"] * 3),
    ],
)
def test_truncated_means_that_the_answer_was_not_complete(text: str, statuses: list[str]) -> None:
    found = [
        extract(
            text, contract="json", kind="choice", labels="ABCD", level=level, finish_reason="length"
        )
        for level in LEVELS
    ]
    assert [f.status.value for f in found] == statuses


@pytest.mark.parametrize("text", ["- Jupiter", "• Jupiter", "- C) Jupiter", "+ **Jupiter**"])
def test_a_list_of_one_is_its_item(text: str) -> None:
    asked = Contract("text", form="text")
    options = {"A": "Venus", "B": "Mars", "C": "Jupiter"}
    found = extract(text, contract=asked, kind="choice", options=options)
    assert (found.status, found.value) == (Status.OK, "C")


def test_a_bullet_before_a_number_may_be_a_minus() -> None:
    assert extract("- 5", contract="bare", kind="number").status is not Status.OK
    assert extract("- yes", contract="bare", kind="boolean").value is True


@pytest.mark.parametrize(
    "text",
    [
        "I would not choose A.",
        "I would never pick B.",
        "I wouldn't go with C.",
        "It cannot be B.",
        "The correct answer is anything but B.",
        "I disagree with B.",
    ],
)
def test_what_is_rejected_is_no_answer(text: str) -> None:
    assert extract(text, **LETTERS, level="lenient").value is None
