"""Gold answers: from what a data file holds to a typed answer.

Deliberately strict: a gold answer is written by whoever made the file, so a doubtful one is an
error in the file and never something to be read leniently. Only the numbers of a user's file
may be dressed as those of replies may at the level normalized.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from formatspan.records import labels
from formatspan.tasks.task import RowError

AnswerIs = Literal["label", "text", "index"]
"""How a file writes the answer of a choice: option label, option text, or 0-based position."""

NUMBER = re.compile(
    r"-?(?:0|[1-9][0-9]{0,2}(?:,[0-9]{3})+|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
)
"""A gold number: thousands separators may stand, leading zeros may not (007 is a code)."""

_LEADING_ZERO = re.compile(r"\D*0[0-9]")
_DECIMAL_COMMA = re.compile(r"[0-9],[0-9]{1,2}(?![0-9])|[0-9]\.[0-9]{3},")

WORDS = {"true": True, "yes": True, "false": False, "no": False}


class Options(NamedTuple):
    """The options of one row."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    """The source's own labels, by which its answer is found; A, B, C… where it has none."""


def number(value: object, field: str = "answer") -> int | float:
    """The number that ``value`` is, or writes.

    Raises:
        RowError: It is missing, not a number, or not finite.
    """
    _present(value, field)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise RowError(field, f"{value} is not a finite number")
        return value
    written = "" if isinstance(value, bool) else str(value).strip()
    if not NUMBER.fullmatch(written):
        raise RowError(field, f"expected a number such as 18, -2.5 or 2,125, got {value!r}")
    plain = written.replace(",", "")
    if not re.search(r"[.eE]", plain):
        return int(plain)
    return number(float(plain), field)


def written_number(value: object, field: str = "answer") -> int | float:
    """A number as a user's file writes it: read as a reply would be, at the level normalized.

    So a currency sign, thousands separators, a unit and a percent sign may stand: ``$1,200``,
    ``1 200 km``, ``45%`` (which is 45).

    Raises:
        RowError: It is no number, or one that can be read in two ways.
    """
    if not isinstance(value, str) or NUMBER.fullmatch(value.strip()) or not value.strip():
        return number(value, field)
    from formatspan.extraction import extract  # slow to start, and seldom needed here

    found = extract(value, contract="bare", kind="number").value
    if isinstance(found, str) or found is None or _LEADING_ZERO.match(value):
        raise RowError(
            field, f"expected a number such as 18, -2.5, $1,200 or 45%, got {value!r}{_why(value)}"
        )
    return found


def _why(value: str) -> str:
    if _DECIMAL_COMMA.search(value):
        return ": its comma may part thousands or decimals: write a point before decimals"
    if _LEADING_ZERO.match(value):
        return ": with its leading zero it looks like a code"
    return ""


def boolean(value: object, words: tuple[str, str] | None = None, field: str = "answer") -> bool:
    """The truth value that ``value`` is, or writes; 1 and 0 count, as does the task's own word.

    Raises:
        RowError: It is none.
    """
    _present(value, field)
    known = dict(WORDS) | {"1": True, "0": False}
    if words:
        known |= {words[0].casefold(): True, words[1].casefold(): False}
    written = str(value).strip().casefold()
    if written not in known:
        raise RowError(field, f"expected true or false (yes or no), got {value!r}")
    return known[written]


def choice(
    options: Options, answer: object, answer_is: AnswerIs | None = None, field: str = "answer"
) -> str:
    """Our label (A, B, C…) of the option that ``answer`` means.

    Unless ``answer_is`` says which, the answer may be a label or an option's text, and all
    readings must agree; a whole number is never taken for a position unasked, since files
    count from 0 and from 1.

    Raises:
        RowError: The answer is missing, fits no option, or can be read in two ways.
    """
    _present(answer, field)
    readings = _readings(options, answer)
    found = {p for name in _asked(answer_is) for p in readings[name]}
    if len(found) > 1:
        raise RowError(field, _ambiguous(options, answer, readings))
    if not found:
        raise RowError(field, _no_option(options, answer, answer_is))
    position = found.pop()
    hidden = set(readings["index"]) - {position}
    # "3" among the options 2, 3, 4, 5 is a text, but may be the position of 5 as well.
    if answer_is is None and hidden and position not in readings["label"]:
        raise RowError(field, _ambiguous(options, answer, readings))
    return labels(len(options.texts))[position]


def source_label(options: Options, answer: object, field: str) -> str:
    """Our label for the source's label ``answer``: matched by position, never by text.

    Raises:
        RowError: ``answer`` is not one of the row's labels.
    """
    if answer not in options.labels:
        raise RowError(field, f"expected one of {', '.join(options.labels)}, got {answer!r}")
    return labels(len(options.texts))[options.labels.index(str(answer))]


def looks_boolean(value: object) -> bool:
    """Whether ``value`` can only be meant as a truth value; 0 and 1 may be numbers."""
    return isinstance(value, bool) or str(value).strip().casefold() in WORDS


def looks_numeric(value: object) -> bool:
    """Whether ``value`` is or writes a number."""
    try:
        number(value)
    except RowError:
        return False
    return True


def same_text(text: str) -> str:
    """``text`` as a reader compares it: Unicode form, case and outer spaces aside."""
    return unicodedata.normalize("NFKC", text).strip().casefold()


def _present(value: object, field: str) -> None:
    if value is None or value == "":
        raise RowError(field, "no answer")


def _asked(answer_is: AnswerIs | None) -> tuple[AnswerIs, ...]:
    return (answer_is,) if answer_is else ("label", "text")


def _readings(options: Options, answer: object) -> dict[AnswerIs, list[int]]:
    """Positions that each reading of ``answer`` leads to."""
    written = str(answer)
    index = int(written) if re.fullmatch(r"[0-9]{1,3}", written) else -1
    return {
        "label": _places(options.labels, written),
        "text": _places(options.texts, written),
        "index": [index] if 0 <= index < len(options.texts) else [],
    }


def _places(items: Sequence[Any], wanted: str) -> list[int]:
    return [i for i, item in enumerate(items) if item == wanted]


def _ambiguous(options: Options, answer: object, readings: dict[AnswerIs, list[int]]) -> str:
    ours = labels(len(options.texts))
    meant = [f"{name} of {ours[p]}" for name, places in readings.items() for p in places]
    return (
        f"{answer!r} can be read as {', '.join(meant)}: write labels, "
        "or state answer_is: label, text or index"
    )


def _no_option(options: Options, answer: object, answer_is: AnswerIs | None) -> str:
    if answer_is is None and isinstance(answer, int) and not isinstance(answer, bool):
        return f"{answer} may count the options from 0 or from 1: state answer_is: index (from 0)"
    expected = {
        None: f"a label ({', '.join(options.labels)}) or an option's exact text",
        "label": f"one of {', '.join(options.labels)}",
        "text": "an option's exact text",
        "index": f"a position from 0 to {len(options.texts) - 1}",
    }[answer_is]
    return f"expected {expected}, got {answer!r}"
