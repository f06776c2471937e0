"""Number replies as models write them, and what each level makes of them."""

from __future__ import annotations

import random

import pytest

from extraction_rows import Group, Row, read, rows
from formatspan.extraction import extract
from formatspan.extraction.words import in_digits

REPLIES: dict[Group, list[tuple[str, str]]] = {
    ("lenient", "bare", "", "stop"): [
        ("42", "42"),
        ("$1,250.00", "1250"),
        ("35%", "35"),
        ("12 apples", "12"),
        ("−17", "-17"),
        ("–17", "-17"),
        ("-17", "-17"),
        ("(56)!", "56"),
        ("56?", "56"),
        ("[56]", "56"),
        ('"56"', "56"),
        ("56:", "56"),
        ("The total is [56].", "56"),
        ("-$5", "-5"),
        ("$-5", "-5"),
        ("3/4", "0.75"),
        ("3/4/2021", "no_answer"),
        ("On 3/4/2021 she had 5", "5"),
        ("1 250 000", "1250000"),
        ("1\u202f250\xa0000 \u20ac", "1250000"),
        ("1,250,000", "1250000"),
        ("2.5e3", "2500"),
        ("2.5 x 10^3", "2500"),
        ("2.5 \\times 10^{3}", "2500"),
        ("10³", "no_answer"),
        ("1e400", "no_answer"),
        ("3.0", "3"),
        (".5", "0.5"),
        ("007", "7"),
        ("The show starts at 7:30", "ambiguous"),
        ("It is 2x3", "ambiguous"),
        ("3 + 4 = 7", "7"),
        ("The answer is 3 + 4 = 7", "7"),
        ("The answer is 12.", "12"),
        ("The answer is $12.50 per box", "12.5"),
        ("Answer: 12 or 13", "ambiguous"),
        ("Between 3 and 5", "ambiguous"),
        ("3 or 5", "ambiguous"),
        ("It is 13, not 12.", "13"),
        ("1. Red", "no_answer"),
        ("1. Red\n2. Blue", "no_answer"),
        ("Step 1: add. Step 2: 5", "5"),
        ("GPT-4", "no_answer"),
        ("COVID-19", "no_answer"),
        ("the 3rd", "no_answer"),
        ("5kg", "5"),
        ("It costs 5 dollars.", "5"),
        ("There are 3 million people", "3000000"),
        ("twelve", "12"),
        ("5 km/h", "5"),
        ("60 miles per hour", "60"),
        ("x = -4", "-4"),
        ("x = - 4", "-4"),
        ("1,2,3", "ambiguous"),
        ("version 1.2.3", "no_answer"),
        ("10-12", "ambiguous"),
        ("192.168.1.1", "no_answer"),
        ("½", "0.5"),
        ("3½", "3.5"),
        ("Antwort: 12", "12"),
        ("答案是12", "12"),
        ("共12个", "12"),
        ("=12", "12"),
        ("≈ 12.5", "12.5"),
        ("about 12", "12"),
        ("The sum of 3 and 9 is 12 pens for 2 people", "12"),
        ("Total: 12\nHope this helps!", "12"),
        ("She has 3 and buys 9.\nI cannot determine the answer.", "no_answer"),
        ("+5", "5"),
        ("5!", "5"),
        ("2^3", "no_answer"),
        ("1 3/4", "1.75"),
        ("50 %", "50"),
        ("€36", "36"),
        ("36,00 €", "ambiguous"),
        ("12,", "12"),
        ("- 5", "ambiguous"),
        ("* 5", "5"),
        ("12 (twelve)", "12"),
        ("The answer is: **12**", "12"),
        ("So the final answer is $\\boxed{12}$.", "12"),
        ("The answer is 12, not 13", "12"),
        ("The answer is 7 apples, 3 of which are red.", "7"),
        ("The answer is -6.", "-6"),
        ("So x = −6", "-6"),
        ("The total comes to $1,234.50.", "1234.5"),
        ("It weighs 2.5 kg.", "2.5"),
        ("Result: 1e3", "1000"),
        ("1.2E-3", "0.0012"),
        ("The ratio is 2:3", "ambiguous"),
        ("It is 5x10", "ambiguous"),
        ("5 × 10^2", "500"),
        ("about 3/8 of it", "0.375"),
        ("1/0", "ambiguous"),
        ("2021-03-04", "no_answer"),
        ("It took 1 hour, 30 minutes", "ambiguous"),
        ("That makes 58, all told.", "58"),
        ("In all, 12.", "12"),
        ("(7)", "7"),
        ("'7'", "7"),
        ("7;", "7"),
        ("**7**", "7"),
        ("$7$", "7"),
        ("\\(7\\)", "7"),
        ("7 €", "7"),
        ("£7", "7"),
        ("7%.", "7"),
        ("7°C", "7"),
        ("7 kg", "7"),
        ("-7.0", "-7"),
        ("0.50", "0.5"),
        ("1,000.5", "1000.5"),
        ("1'000", "1000"),
        ("1 000", "1000"),
        ("10 000 000", "10000000"),
        ("1. 4\n2. 5\n3. 6", "6"),
        ("1) First\n2) Second\n\n12", "12"),
        ("- Red: 4\n- Blue: 5\nTotal: 9", "9"),
        ("3 apples and 4 pears = 7 fruits", "7"),
        ("The answer is 7 (seven).", "7"),
        ("The answer is 1,250 000", "1250"),
        ("answer is 12 000", "12000"),
        ("12:", "12"),
        ("Total=12", "12"),
        ("He is 6'2", "ambiguous"),
        ("3 times 4 is 12", "12"),
        ("nine", "9"),
        ("It is zero", "0"),
        ("minus 5", "-5"),
        ("Twenty-one.", "21"),
        ("seventy five", "75"),
        ("a hundred", "100"),
        ("one hundred and five", "105"),
        ("A thousand and one", "1001"),
        ("nineteen thousand two hundred forty-two", "19242"),
        ("three million", "3000000"),
        ("twelve apples", "12"),
        ("minus five", "-5"),
        ("The answer is twelve.", "12"),
        ("the answer is: twenty", "20"),
        ("The answer is twelve, not thirteen.", "12"),
        ("The total is five hundred dollars.", "500"),
        ("She has twelve left.", "12"),
        ("three plus four is seven", "7"),
        ("First add the two.\nTwelve", "12"),
        ("one", "1"),
        ("one apple", "1"),
        ("twelve or thirteen", "ambiguous"),
        ("between three and five", "ambiguous"),
        ("The answer is one of them", "no_answer"),
        ("No one knows.", "no_answer"),
        ("There are two steps to solve this.", "no_answer"),
        ("So she has twelve apples.", "no_answer"),
        ("two thirds", "no_answer"),
        ("three and a half", "no_answer"),
        ("twelve point five", "no_answer"),
        ("two dozen", "no_answer"),
        ("the twenty-first", "no_answer"),
        ("a twelve-year-old", "no_answer"),
        ("none", "no_answer"),
        ("She has 3, which makes twelve.", "3"),
        ("9 + 3\n#### 12\nShe keeps 7", "12"),
        ("so #### 12, then 7", "12"),
        ("#### 12\nThe answer is 13", "13"),
        ("#### 2. Compute the sum\nIt is 9", "9"),
        ("so\n##### 12\nIt is 9", "9"),
        ("42\n43", "ambiguous"),
        ("$42\n\n$43", "ambiguous"),
        ("42\n43\n42", "ambiguous"),
        ("42\n42.0", "42"),
        ("Answer: 42\n43", "42"),
        ("42\n#### 43", "43"),
        ("42\nThe answer is 43.", "43"),
        ("12 eggs\n8 eggs are left over\n4", "4"),
        ("1.\nadd them\n12", "12"),
    ],
    ("lenient", "hash", "", "stop"): [
        ("#### 12", "12"),
        ("#### 1,200", "1200"),
        ("#### $12", "12"),
        ("so\n#### 12 apples", "12"),
        ("####12", "12"),
        ("**#### 12**", "12"),
        ("12\n\nQuestion: other?\n#### 40", "12"),
        ("#### -6", "-6"),
        ("#### 6.50", "6.5"),
        ("12\n#### 12\n\nQ: Tom has 4\n#### 4", "12"),
        ("#### 12\n\n#### 12", "12"),
        ("9 + 3 = 12\n#### 12\nThe end.", "12"),
        ("#### 12 #### 13", "13"),
    ],
    ("lenient", "boxed", "", "stop"): [
        ("\\boxed{12}", "12"),
        ("\\boxed{1{,}250}", "1250"),
        ("\\boxed{\\$5}", "5"),
        ("\\boxed{35\\%}", "35"),
        ("\\boxed{\\frac{3}{4}}", "0.75"),
        ("\\boxed{x = 5}", "5"),
        ("\\boxed{3+4}", "ambiguous"),
        ("\\boxed{12 \\text{ apples}}", "12"),
        ("\\boxed{-3}", "-3"),
        ("\\boxed{3} and \\boxed{5}", "5"),
        ("\\boxed{007}", "7"),
        ("\\boxed{42}\\boxed{42}", "42"),
        ("\\[\\boxed{-1.5}\\]", "-1.5"),
        ("\\boxed{2^{10}}", "no_answer"),
        ("\\boxed{\\text{42}}", "42"),
        ("\\boxed{\\dfrac{1}{2}}", "0.5"),
        ("\\boxed{10!}", "10"),
        ("\\boxed{}", "no_answer"),
        ("\\boxed{\\text{twelve}}", "12"),
        ("Answer: 42", "42"),
        ("42", "42"),
        ('{"answer": 42}', "42"),
    ],
    ("lenient", "boxed", "", "length"): [
        ("\\boxed{12", "truncated"),
    ],
    ("lenient", "json", "", "stop"): [
        ('{"answer": "42"}', "42"),
        ('{"answer": 42.0}', "42"),
        ('{"answer": "1,250"}', "1250"),
        ('{"answer": 1,250}', "1250"),
        ('{"answer": NaN}', "no_answer"),
        ('{"answer": 1e999}', "no_answer"),
        ('{"answer": true}', "no_answer"),
        ('{"answer": "12 apples"}', "12"),
        ('{"answer": 12', "truncated"),
        ('{"answer": 12,}', "12"),
        ('{"answer": -8}', "-8"),
        ('{"answer": "three"}', "3"),
        ('{"answer": "-17"}', "-17"),
        ('{"answer": "−17"}', "-17"),
        ('{"answer": 3/4}', "0.75"),
        ('{"answer": 42} apples', "42"),
        ('```python\nx={"a":1}\n```\n{"answer": 42}', "42"),
    ],
    ("lenient", "bare", "", "length"): [
        ("The answer is twenty", "truncated"),
        ("The answer is twenty. This", "20"),
        ("42\n4", "truncated"),
        ("12", "truncated"),
        ("12.", "truncated"),
        ("12\n", "12"),
        ("3 + 4 = 7 and then", "truncated"),
        ("The answer is 12. This", "12"),
    ],
    ("lenient", "answer_line", "", "stop"): [
        ("ANSWER: 5\nANSWER: 6", "6"),
        ("ANSWER: -2.75 litres", "-2.75"),
    ],
    ("lenient", "json", "", "none"): [
        ('{"answer": 12, "unit":', "truncated"),
    ],
    ("lenient", "json", "", "length"): [
        ('{"answer": "12"', "truncated"),
    ],
    ("strict", "bare", "", "stop"): [
        ("1,000", "off_format"),
        ("$5", "off_format"),
        ("5 apples", "off_format"),
        ("36.00", "36"),
        ("-3.5", "-3.5"),
        ("1e3", "off_format"),
        ("3/4", "off_format"),
        ("12%", "off_format"),
    ],
    ("strict", "json", "", "stop"): [
        ('{"answer": "42"}', "off_format"),
        ('{"answer": NaN}', "off_format"),
        ('{"answer": 1e999}', "off_format"),
        ('{"answer": 42}', "42"),
    ],
    ("strict", "hash", "", "stop"): [
        ("#### 12", "12"),
        ("x\n#### 12\n", "12"),
    ],
    ("strict", "boxed", "", "stop"): [
        ("\\boxed{007}", "7"),
        ("so \\boxed{7} ok", "off_format"),
    ],
    ("normalized", "bare", "", "stop"): [
        ("$1,250.00", "1250"),
        ("35%", "35"),
        ("12 apples", "12"),
        ("−17", "-17"),
        ("Answer: 12", "12"),
        ("Total: 12", "no_answer"),
        ("A: 12", "no_answer"),
        ("12 is the answer", "no_answer"),
        ("twelve", "no_answer"),
        ("42\n43", "no_answer"),
        ("1 250 000", "1250000"),
        ("$12$", "12"),
        ("3/4", "0.75"),
    ],
    ("normalized", "json", "", "stop"): [
        ('{"answer": "1,250"}', "1250"),
    ],
    ("normalized", "hash", "", "stop"): [
        ("####12", "12"),
        ("12", "12"),
        ("**#### 12**", "12"),
    ],
    ("normalized", "boxed", "", "stop"): [
        ("\\boxed{1{,}250}", "1250"),
        ("\\[ \\boxed{5}. \\]", "5"),
    ],
    ("paper", "bare", "", "stop"): [
        ("3 and 4 make 7.", "7"),
        ("x", "no_answer"),
    ],
}


@pytest.mark.parametrize("row", rows(REPLIES))
def test_reply(row: Row) -> None:
    assert read("number", row) == row[-1]


def test_words_keep_their_place() -> None:
    text = "So the answer is twenty-one apples."
    found = extract(text, contract="bare", kind="number", level="lenient")
    assert found.span is not None and text[slice(*found.span)] == "twenty-one"


def test_every_number_up_to_a_million_is_read_from_its_words() -> None:
    rng = random.Random(0)
    for value in [*range(1000), *(rng.randrange(1000, 10**6) for _ in range(2000))]:
        words = _spelled(value)
        found = in_digits(words)
        assert found is not None and len(found) == len(words)
        assert int(found) == value, words


_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"


def _spelled(value: int) -> str:
    """English as the schools teach it: "twelve thousand three hundred and forty-five"."""
    if value < 20:
        return _SMALL.split()[value]
    if value < 100:
        ten = _TENS.split()[value // 10 - 2]
        return f"{ten}-{_spelled(value % 10)}" if value % 10 else ten
    unit, name = (100, "hundred") if value < 1000 else (1000, "thousand")
    head = f"{_spelled(value // unit)} {name}"
    rest = value % unit
    link = " and " if rest < 100 else " "
    return f"{head}{link}{_spelled(rest)}" if rest else head
