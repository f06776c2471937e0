r"""Contracts: the shape a reply must have, shared by wrappers, extraction and decoders.

A contract says how an answer is *written*; an answer space says which answers there *are*.
Both together yield the one strict reply for an answer, and the constraint that holds a
decoder to it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Literal

from formatspan.errors import WrapperError
from formatspan.records import Answer, Constraint, Kind, labels

Shape = Literal["text", "json", "boxed"]
Form = Literal["label", "text"]

NUMBER_PATTERN = r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,6})?"
"""Numbers a constrained decoder may write: no leading zeros, no thousands separators."""

PREAMBLE_PATTERN = r"(?:[^\n]+\n){0,8}"
"""Text before an answer line that a constrained decoder may write.

Lines have no bound but the token cap: decoders unroll a counted repetition into states, and a
bound of 400 characters a line costs the embedded engine half a minute for each reply.
"""

_META = re.compile(r"[\\^$.|?*+()\[\]{}]")


@dataclass(frozen=True, slots=True)
class Answers:
    """How a task's answers are written: all that scoring needs of a task."""

    kind: Kind
    form: Form = "label"
    words: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Contract:
    r"""The shape a reply must have.

    ``text``: ``before`` + answer + ``after``, on one line if they hold no line break; with
    ``preamble`` any text may stand on the lines above. ``json``: one JSON object whose ``key``
    holds the answer. ``boxed``: the last ``\boxed{…}`` holds the answer, any text before it.
    """

    name: str
    shape: Shape = "text"
    before: str = ""
    after: str = ""
    preamble: bool = False
    key: str = "answer"
    form: Form = "label"
    """Choice answers are the option's label, or its text."""
    words: tuple[str, str] | None = None
    """The words for true and false; None accepts yes/no and true/false alike."""

    def __post_init__(self) -> None:
        if self.shape not in ("text", "json", "boxed"):
            raise WrapperError(
                f"contract {self.name!r}: shape {self.shape!r}: expected text, json or boxed"
            )
        if self.preamble and not self.before.strip():
            raise WrapperError(
                f"contract {self.name!r}: preamble needs a 'before' that marks the answer line"
            )

    def asking(self, answers: Answers) -> Contract:
        """This contract with a task's own way of writing answers."""
        return replace(self, form=answers.form, words=answers.words)


CONTRACTS: dict[str, Contract] = {
    c.name: c
    for c in (
        Contract("letter_only"),
        Contract("answer_line", before="ANSWER: ", preamble=True),
        Contract("json", shape="json"),
        Contract("boxed", shape="boxed"),
        Contract("hash", before="#### ", preamble=True),
        Contract("bare"),
        Contract("bare_true_false", words=("true", "false")),
    )
}
"""Contracts known by name, besides those of the wrappers."""


@dataclass(frozen=True, slots=True)
class AnswerSpace:
    """Which answers there are."""

    kind: Kind
    labels: tuple[str, ...] = ()
    """Labels of the options, in order; empty unless the kind is ``choice``."""
    options: tuple[str, ...] = ()
    """Option texts beside ``labels``; empty where they are not known."""

    @classmethod
    def of_options(cls, kind: Kind, options: tuple[str, ...]) -> AnswerSpace:
        """The space of an example: labels A, B, C… for its options."""
        return cls(kind, labels(len(options)), options)


def written(contract: Contract, space: AnswerSpace, value: Answer) -> str:
    """How ``value`` is written under the contract, without the shell around it."""
    if space.kind == "choice":
        if contract.form == "label":
            return str(value)
        return space.options[space.labels.index(str(value))]
    if space.kind == "boolean":
        return (contract.words or ("yes", "no"))[0 if value else 1]
    return str(value)


def reply(contract: Contract, space: AnswerSpace, value: Answer, preamble: str = "") -> str:
    r"""The strict reply that answers ``value``; ``preamble`` stands before it where allowed."""
    answer = written(contract, space, value)
    if contract.shape == "json":
        return json.dumps({contract.key: _json_value(contract, space, value)}, ensure_ascii=False)
    if contract.shape == "boxed":
        return f"{preamble}\\boxed{{{answer}}}"
    opening = f"{preamble.rstrip()}\n" if contract.preamble and preamble else ""
    return f"{opening}{contract.before}{answer}{contract.after}"


def _json_value(contract: Contract, space: AnswerSpace, value: Answer) -> Answer:
    if space.kind == "number":
        return value
    if space.kind == "boolean" and contract.words in (None, ("true", "false")):
        return bool(value)
    return written(contract, space, value)


def answers(space: AnswerSpace) -> tuple[Answer, ...]:
    """Every answer of the space in order; for numbers, which have no list, a few examples."""
    if space.kind == "choice":
        return space.labels
    return (True, False) if space.kind == "boolean" else (0, 7, -3, 1250, 2.5)


def preamble_pattern(room: int | None) -> str:
    """Text before an answer line: one line of at most ``room`` characters, or `PREAMBLE_PATTERN`.

    A decoder that may write freely writes until the cap and never comes to its answer.
    """
    if room is None:
        return PREAMBLE_PATTERN
    return rf"(?:[^\n]{{1,{room}}}\n)?" if room > 0 else ""


def constraint(contract: Contract, space: AnswerSpace, room: int | None = None) -> Constraint:
    """The regular expression that holds a decoder to the contract.

    Args:
        contract: The shape.
        space: The answers.
        room: Characters that a preamble may have; None leaves its lines unbounded.

    A regular expression rather than a JSON schema even for ``json``: a schema allows white
    space between tokens, which small models fill until the length cap.
    """
    if space.kind == "number":
        body = NUMBER_PATTERN
    else:
        replies = [reply(contract, space, value) for value in answers(space)]
        prefix = preamble_pattern(room) if contract.preamble else ""
        return Constraint("regex", prefix + _alternatives(replies))
    marker = 987654321
    shell = escaped(reply(contract, space, marker))
    pattern = shell.replace(str(marker), body)
    return Constraint("regex", (preamble_pattern(room) if contract.preamble else "") + pattern)


def _alternatives(replies: list[str]) -> str:
    return "(?:" + "|".join(escaped(r) for r in replies) + ")"


def escaped(text: str) -> str:
    """``text`` as a pattern; `re.escape` also escapes spaces and more, which decoders reject."""
    return _META.sub(r"\\\g<0>", text)
