"""What the tables of replies share: who runs a row, and how a row is written."""

from __future__ import annotations

from formatspan.contracts import CONTRACTS, Contract
from formatspan.extraction import extract
from formatspan.records import Kind, Level

_CONTRACTS = CONTRACTS | {
    c.name: c
    for c in (
        Contract("plain"),
        Contract("plain_text", form="text"),
        Contract("structured", before="answer: "),
        Contract("structured_delim", before="<answer>", after="</answer>"),
        Contract("deliberate", before="Answer: ", preamble=True),
    )
}

Group = tuple[Level, str, str, str]
"""Level, contract, options (labels, or ``label=text`` pairs), finish reason."""

Row = tuple[Level, str, str, str, str, str]
"""A group's four, a reply, and its answer or status."""


def rows(replies: dict[Group, list[tuple[str, str]]]) -> list[Row]:
    """The rows of a table, one a reply."""
    return [(*group, text, want) for group, found in replies.items() for text, want in found]


def read(kind: Kind, row: Row) -> str:
    """The answer of a row's reply, or the status that stands in its place."""
    level, contract, options, finish, text, _ = row
    pairs = dict(pair.split("=") for pair in options.split("|")) if "=" in options else None
    got = extract(
        text,
        contract=_CONTRACTS[contract],
        kind=kind,
        labels=None if pairs else options.split() or None,
        options=pairs,
        level=level,
        finish_reason=None if finish == "none" else finish,
    )
    return str(got.value) if got.status == "ok" else got.status.value
