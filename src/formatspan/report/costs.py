"""What a run's replies cost, by model and wrapper: tokens, those from caches, US dollars."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from formatspan.atomic import write_text
from formatspan.billing.tokens import Stored, added, stored_replies
from formatspan.counting import counted
from formatspan.report.escape import neutral
from formatspan.report.numbers import MISSING, count, dollars
from formatspan.report.terminal import plain
from formatspan.store import Store

ALL = "all"
"""Wrapper of the rows that hold a model's total."""


@dataclass(frozen=True)
class Cost:
    """Replies of one model under one wrapper; a request that several points share counts once."""

    model: str
    wrapper: str
    replies: int
    prompt_tokens: int
    """Of the replies that count them."""
    cached_tokens: int
    """Prompt tokens among them that the endpoint took from its cache."""
    completion_tokens: int
    cost: float | None
    """US dollars; None where no reply's cost is known."""
    priced: int
    """Replies whose cost is known."""

    @property
    def dollars(self) -> str:
        """The cost as text, with what it leaves out."""
        if self.cost is None:
            return MISSING
        left_out = self.replies - self.priced
        return dollars(self.cost) + (
            f" without {counted(left_out, 'reply', 'replies')}" if left_out else ""
        )

    @property
    def cached(self) -> str:
        """Share of the prompt tokens that came from a cache."""
        return f"{self.cached_tokens / self.prompt_tokens:.0%}" if self.prompt_tokens else MISSING


def costs(store: Store) -> tuple[Cost, ...]:
    """Every model's total, then its wrappers, in the order of asking."""
    stored = stored_replies(store)
    rows = []
    for model in dict.fromkeys(name for name, _ in stored):
        parts = {wrapper: s for (name, wrapper), s in stored.items() if name == model}
        rows.append(_cost(model, ALL, added(list(parts.values()))))
        rows += [_cost(model, wrapper, s) for wrapper, s in parts.items()]
    return tuple(rows)


def _cost(model: str, wrapper: str, s: Stored) -> Cost:
    tokens = (s.prompt_tokens, s.cached_tokens, s.completion_tokens)
    return Cost(model, wrapper, s.replies, *tokens, s.cost if s.priced else None, s.priced)


def write_costs(rows: Sequence[Cost], folder: Path) -> list[Path]:
    """``costs.csv`` with every digit; nothing where there are no replies."""
    if not rows:
        return []
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [f.name for f in fields(Cost)]
    writer.writerow(names)
    writer.writerows([[neutral(getattr(row, name)) for name in names] for row in rows])
    path = folder / "costs.csv"
    write_text(path, out.getvalue())
    return [path]


def print_costs(rows: Sequence[Cost], console: Console) -> None:
    """The table on the terminal; nothing where no reply's cost is known."""
    if not any(row.cost for row in rows):
        return
    table = Table(title=Text("what it cost"), title_justify="left", title_style="bold")
    for head, side in (("model", "left"), ("wrapper", "left")):
        table.add_column(head, justify=side)  # type: ignore[arg-type]
    for head in ("replies", "prompt tokens", "from caches", "reply tokens", "cost"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in _cells(row)))
    console.print(table)


def _cells(row: Cost) -> tuple[str, ...]:
    counted = (count(row.replies), count(row.prompt_tokens), row.cached)
    return (row.model, row.wrapper, *counted, count(row.completion_tokens), row.dollars)
