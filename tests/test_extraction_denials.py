"""Answers that a reply rejects, corrects, lists or leaves open, and those that it states."""

from __future__ import annotations

import pytest

from extraction_rows import Group, Row, read, rows

METALS = "A=iron|B=zinc|C=tin|D=lead"

CHOICES: dict[Group, list[tuple[str, str]]] = {
    ("lenient", "letter_only", "A B C D", "stop"): [
        ("I don't think A is right", "no_answer"),
        ("I don't think A is right. The answer is C.", "C"),
        ("I doubt that C is right", "no_answer"),
        ("(B) is incorrect", "no_answer"),
        ("(B) is incorrect, (C) is correct", "C"),
        ("The least likely answer is B", "no_answer"),
        ("The worst answer is D", "no_answer"),
        ("D is hardly correct.", "no_answer"),
        ("It's unlikely that B is correct.", "no_answer"),
        ("There's no way it's B.", "no_answer"),
        ("It is wrong to choose B.", "no_answer"),
        ("B would be a mistake.", "no_answer"),
        ("I rule out A and B.", "no_answer"),
        ("None of A, B, C or D.", "no_answer"),
        ("A, B and D are wrong.", "no_answer"),
        ("The answer is not A, B, or C. Therefore D.", "D"),
        ("Eliminating A, B, and D leaves C.", "C"),
        ("Undoubtedly B", "B"),
        ("I have no doubt that the answer is B.", "B"),
        ("I cannot be certain, but the answer is C.", "C"),
        ("La respuesta no es B", "no_answer"),
        ("不能选A", "no_answer"),
        ("我不选B", "no_answer"),
        ("正解はBではない", "no_answer"),
        ("C it is.", "C"),
        ("I'm choosing C", "C"),
        ("I've chosen B.", "B"),
        ("Let's go with B", "B"),
        ("C fits best.", "C"),
        ("C makes the most sense.", "C"),
        ("Most likely C", "C"),
        ("B for sure", "B"),
        ("B (not A)", "B"),
        ("The answer is __C__", "C"),
        ("✅ C", "C"),
        ("【C】", "C"),
        ("La opción correcta es C", "C"),
        ("A resposta correta é a letra C", "C"),
        ("正解は、Bです。", "B"),
        ("B是正确的", "B"),
        ("정답은 B입니다", "B"),
        ("A. No wait, C.", "C"),
        ("Answer: A\nCorrection: B", "B"),
        ("Reasoning: it is C.\nFinal: D", "D"),
        ("A: C", "ambiguous"),
        ("A: A", "A"),
        ("A. Or B.", "ambiguous"),
        ("B, or maybe C", "ambiguous"),
        ("A & B", "ambiguous"),
        ("A | B | C | D", "ambiguous"),
        ("AB", "ambiguous"),
        ("B B B", "B"),
        ("\\boxed{A or B}", "ambiguous"),
        ("\\boxed{\\boxed{B}}", "B"),
        ("A: red, B: blue, C: green, D: black", "ambiguous"),
        ("A: red, B: blue, C: green, D: black. Answer: C", "C"),
        ("A) red B) blue C) green D) black Answer: C", "C"),
        ("Options: A: red\nB: blue\nC: green\nD: black", "ambiguous"),
        ("Answer with A, B, C or D: C", "C"),
    ],
    ("lenient", "letter_only", METALS, "stop"): [
        ("I would not use lead", "no_answer"),
        ("They don't use lead", "no_answer"),
        ("It's not made of lead", "no_answer"),
        ("Lead is wrong.", "no_answer"),
        ("Lead? No.", "no_answer"),
        ("No lead.", "no_answer"),
        ("Anything but iron", "no_answer"),
        ("Cans are not made of lead but of tin.", "C"),
        ("I don't think it is lead. Tin.", "C"),
        ("Tin is the correct answer because lead is toxic.", "C"),
        ("tin, since lead is toxic", "C"),
        ("D: lead is used in cans? No: C", "C"),
        ("A: iron, B: zinc, C: tin, D: lead", "ambiguous"),
        ("B: zinc or C: tin", "ambiguous"),
        ("Option C: lead", "ambiguous"),
        ("lead (C)", "ambiguous"),
        ("tin (C)", "C"),
    ],
    ("lenient", "letter_only", "A B C D", "length"): [
        ("A) red\nB) blue\nC)", "truncated"),
        ("A) red\nB) blue\nC) green\nD) ", "truncated"),
        ("A)\n\nA)\n\nB)\n\nC)\n\nA)\n\n", "truncated"),
        ("so \\boxed{B}", "B"),
    ],
    ("lenient", "answer_line", "A B C D", "stop"): [
        ("ANSWER: A is wrong, so D", "D"),
        ("ANSWER: D C", "ambiguous"),
        ("ANSWER: A B C D", "ambiguous"),
    ],
    ("lenient", "answer_line", "A B C D E F G H I J", "stop"): [
        ("ANSWER: I would say D", "D"),
    ],
    ("lenient", "structured_delim", "A B C D", "stop"): [
        ("C</answer>", "C"),
    ],
    ("lenient", "json", "A B C D", "stop"): [
        ('"{\\"answer\\": \\"B\\"}"', "B"),
        ('{\\"answer\\": \\"B\\"}', "B"),
        ('{"answer": "not C"}', "no_answer"),
    ],
    ("lenient", "letter_only", "entailment neutral contradiction", "stop"): [
        ("It is neutral", "neutral"),
        ("not entailment but neutral", "neutral"),
        ("contradiction or neutral", "ambiguous"),
    ],
    ("lenient", "letter_only", "yes no maybe", "stop"): [
        ("yes, no, maybe", "ambiguous"),
        ("The answer is maybe.", "maybe"),
    ],
    ("normalized", "structured", METALS, "stop"): [
        ("option C: tin", "C"),
        ("answer: option C", "C"),
        ("option C: lead", "ambiguous"),
        ("option C: made of tin", "no_answer"),
    ],
    ("strict", "boxed", "A B C D", "stop"): [("\\fbox{B}", "off_format")],
    ("strict", "boxed", "A B C D", "length"): [("so \\boxed{B}", "B")],
    ("normalized", "boxed", "A B C D", "stop"): [("\\fbox{B}", "no_answer")],
    ("lenient", "boxed", "A B C D", "stop"): [("\\fbox{B}", "B")],
}

BOOLEANS: dict[Group, list[tuple[str, str]]] = {
    ("lenient", "bare", "", "stop"): [
        ("I would not say yes", "no_answer"),
        ("I wouldn't say no", "no_answer"),
        ("I can't answer yes", "no_answer"),
        ("It's incorrect to say no", "no_answer"),
        ("It is wrong to say yes", "no_answer"),
        ("it can't be true", "False"),
        ("It cannot be false", "True"),
        ("It is not the case that it is true.", "False"),
        ("It never was true", "False"),
        ("It does not appear to be true", "False"),
        ("That statement is anything but true", "False"),
        ("No, there is no evidence that it is true", "False"),
        ("yes but also no", "ambiguous"),
        ("Both yes and no", "ambiguous"),
        ("Answer: yes or no", "ambiguous"),
        ("Reply with yes or no. Yes", "True"),
        ("Probably yes", "True"),
        ("Likely no.", "False"),
        ("without a doubt, yes", "True"),
        ("No doubt: yes", "True"),
        ("I'd answer no", "False"),
        ("It's a yes", "True"),
        ("That would be a yes", "True"),
        ("The answer is __yes__", "True"),
        ("<answer>no</answer>", "False"),
        ("❌ No", "False"),
        ("True (yes)", "True"),
        ("no no no", "False"),
        ("It's a false alarm", "no_answer"),
        ("That is the right time", "no_answer"),
        ("This is a true statement.", "True"),
        ("That is not a true statement", "False"),
        ("答案：是", "True"),
        ("不知道", "no_answer"),
        ("是不是", "no_answer"),
        ("对吗？", "no_answer"),
    ],
}


@pytest.mark.parametrize("row", rows(CHOICES))
def test_choice(row: Row) -> None:
    assert read("choice", row) == row[-1]


@pytest.mark.parametrize("row", rows(BOOLEANS))
def test_boolean(row: Row) -> None:
    assert read("boolean", row) == row[-1]
