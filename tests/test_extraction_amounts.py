"""Ranges, shares, amounts in two units, exponents and signs: which number a reply gives."""

from __future__ import annotations

import pytest

from extraction_rows import Group, Row, read, rows

REPLIES: dict[Group, list[tuple[str, str]]] = {
    ("lenient", "bare", "", "stop"): [
        ("between 3 and 5", "ambiguous"),
        ("3 to 5", "ambiguous"),
        ("3, 5", "ambiguous"),
        ("[3, 5]", "ambiguous"),
        ("5 ± 1", "ambiguous"),
        ("±17", "ambiguous"),
        ("5 or maybe 6", "ambiguous"),
        ("10%–20%", "ambiguous"),
        ("$5 to $10", "ambiguous"),
        ("5kg-6kg", "ambiguous"),
        ("17 vs 20", "ambiguous"),
        ("5 out of 10", "ambiguous"),
        ("2 of 3", "ambiguous"),
        ("35% of 200", "ambiguous"),
        ("35% of 200 is 70", "70"),
        ("3 apples and 4 pears", "ambiguous"),
        ("x = 3, y = 5", "ambiguous"),
        ("2x = 34, x = 17", "17"),
        ("17 km (10.5 miles)", "ambiguous"),
        ("20 (17+3)", "20"),
        ("1/2 or 0.5", "0.5"),
        ("17, 17", "17"),
        ("The answer is between 3 and 5", "ambiguous"),
        ("Answer: 3 and 5", "ambiguous"),
        ("The answers are 17, 18 and 19.", "ambiguous"),
        ("The answer is 17, 3 more than before", "17"),
        ("The answer is 17 apples in 2 boxes", "17"),
        ("5 hours 30 minutes", "ambiguous"),
        ("5'6\"", "ambiguous"),
        ("1h30m", "ambiguous"),
        ("It took 2 hours 15 minutes = 135 minutes", "135"),
        ("5 dollars and 50 cents", "5.5"),
        ("$5 and 5 cents", "5.05"),
        ("3 m²", "3"),
        ("3 m^{2}", "3"),
        ("3 \\text{ m}^2", "3"),
        ("9.8 m/s²", "9.8"),
        ("x² + y² = 17", "17"),
        ("90^{\\circ}", "90"),
        ("2.5 × 10⁻³", "0.0025"),
        ("1.5 × 10¹²", "1500000000000"),
        ("√2", "no_answer"),
        ("3x + 5", "no_answer"),
        ("negative 4", "-4"),
        ("The answer is minus 4", "-4"),
        ("5 minus 4", "ambiguous"),
        ("5 minus 4 is 1", "1"),
        ("-(4)", "-4"),
        ("The answer is __58__", "58"),
        ("I would not say 17", "no_answer"),
        ("58 instead of 57", "58"),
        ("17 because 3 of 20 were sold", "17"),
        ("17 = 20 - 3", "17"),
        ("There are 3 boxes with 4 pens each, so 12 pens.", "12"),
        ("She has $64 left after spending $16.", "64"),
        ("The final price is $64, which is $16 less than $80.", "64"),
        ("\\boxed{3, 5}", "ambiguous"),
    ],
    ("lenient", "json", "", "stop"): [
        ('{"answer": "3 to 5"}', "ambiguous"),
        ('{"x": 1, "y": 42}', "ambiguous"),
    ],
    ("normalized", "bare", "", "stop"): [
        ("½", "0.5"),
        ("3½", "3.5"),
        ("1e3", "1000"),
        ("2.5 x 10^3", "2500"),
        ("3 m²", "3"),
        ("3 to 5", "ambiguous"),
        ("negative 4", "no_answer"),
        ("3 million", "no_answer"),
    ],
    ("normalized", "boxed", "", "stop"): [("\\boxed{\\frac{1}{2}}", "0.5")],
    ("strict", "boxed", "", "stop"): [("\\fbox{42}", "off_format")],
    ("strict", "boxed", "", "length"): [
        ("\\boxed{42}", "42"),
        ("\\boxed{42", "truncated"),
        ("\\boxed{\\text{42}", "truncated"),
    ],
    ("lenient", "hash", "", "stop"): [("#### 12\n\nExample 2:\n#### 9", "12")],
}


@pytest.mark.parametrize("row", rows(REPLIES))
def test_reply(row: Row) -> None:
    assert read("number", row) == row[-1]
