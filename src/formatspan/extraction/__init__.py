"""Extraction: a pure function from a reply to an answer or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from formatspan.contracts import CONTRACTS, AnswerSpace, Contract
from formatspan.errors import StudyError, WrapperError
from formatspan.extraction.levels import extract_with
from formatspan.records import Extraction, Kind, Level
from formatspan.records import labels as default_labels

__all__ = ["answer_space", "extract", "extract_with"]

Options = Sequence[str] | Mapping[str, str]


def extract(
    text: str,
    *,
    contract: str | Contract,
    kind: Kind,
    labels: Sequence[str] | None = None,
    options: Options | None = None,
    level: Level = "normalized",
    finish_reason: str | None = "stop",
    question: str | None = None,
) -> Extraction:
    """Read the answer of one reply.

    Args:
        text: The raw reply; anything at all may be in it.
        contract: The shape asked for, or its name in ``CONTRACTS``.
        kind: ``choice``, ``boolean`` or ``number``.
        labels: Labels of the options, in order; by default those of ``options``, else A, B, C….
        options: Option texts in order, or by label.
        level: ``strict``, ``normalized``, ``lenient`` or ``paper``.
        finish_reason: ``length`` where the reply was cut off at the cap; None if unknown.
        question: The item's question, by which an echo is told from an invented one.

    Returns:
        Status, answer, its offsets in ``text``, and side findings.

    Raises:
        UserError: If ``contract``, ``kind``, ``level`` or the labels are none of those allowed.

    Example:
        >>> extract("**B**", contract="letter_only", kind="choice", labels="ABCD").value
        'B'
    """
    if not isinstance(text, str):
        raise StudyError(f"text: expected a reply as text, got {type(text).__name__}")
    _check_texts(finish_reason=finish_reason, question=question)
    if level not in get_args(Level):
        raise StudyError(f"level {level!r}: expected {_one_of(get_args(Level))}")
    space = answer_space(kind, labels=labels, options=options)
    return extract_with(_contract(contract), space, text, finish_reason, level, question)


def answer_space(
    kind: Kind, *, labels: Sequence[str] | None = None, options: Options | None = None
) -> AnswerSpace:
    """The answers there are, from labels, option texts or both.

    Raises:
        UserError: If the kind is unknown, or labels and options do not fit together.
    """
    if kind not in get_args(Kind):
        raise StudyError(f"kind {kind!r}: expected {_one_of(get_args(Kind))}")
    _check_labels("labels", labels)
    _check_labels("options", options)
    if kind != "choice":
        return AnswerSpace(kind)
    texts = tuple(options.values()) if isinstance(options, Mapping) else tuple(options or ())
    keys = tuple(options) if isinstance(options, Mapping) else default_labels(len(texts))
    names = tuple(labels) if labels is not None else keys
    if isinstance(options, Mapping):
        texts = tuple(options.get(name, "") for name in names)
    if not names or "" in names or len(set(names)) < len(names):
        raise StudyError("labels: expected one different label for each option of a choice")
    if texts and len(texts) != len(names):
        raise StudyError(f"options: expected {len(names)} texts, one a label, got {len(texts)}")
    return AnswerSpace(kind, names, texts)


def _contract(contract: str | Contract) -> Contract:
    if isinstance(contract, Contract):
        return contract
    if not isinstance(contract, str) or contract not in CONTRACTS:
        raise WrapperError(f"contract {contract!r}: expected {_one_of(CONTRACTS)}, or a Contract")
    return CONTRACTS[contract]


def _check_texts(**given: object) -> None:
    for name, value in given.items():
        if value is not None and not isinstance(value, str):
            raise StudyError(f"{name}: expected text or None, got {type(value).__name__}")


def _check_labels(name: str, given: object) -> None:
    """Labels and options are texts: in a row, or the letters of one text, or by label."""
    items = [*given, *given.values()] if isinstance(given, Mapping) else given
    if items is None:
        return
    if not isinstance(items, Sequence) or not all(isinstance(item, str) for item in items):
        raise StudyError(f"{name}: expected a list of texts, got {given!r}")


def _one_of(names: Sequence[str] | Mapping[str, Contract]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}"
