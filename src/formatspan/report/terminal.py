"""An analysis on the terminal: what a person needs at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from formatspan.counting import counted
from formatspan.records import Status
from formatspan.report.numbers import MISSING, count, dollars, duration, percent, points, ratio

if TYPE_CHECKING:
    import polars as pl

    from formatspan.analysis import Analysis
    from formatspan.folder import Run
    from formatspan.records import Example, Kind
    from formatspan.show import ShownPrompt
    from formatspan.tasks.task import TaskData

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
_LINE_SAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control and direction characters; unlike ``_CONTROL`` it leaves joiners of scripts alone."""


def plain(text: str) -> str:
    """``text`` without what could steer a terminal: control and direction characters."""
    return _CONTROL.sub("\ufffd", text)


def print_analysis(analysis: Analysis, console: Console) -> None:
    """The model table, then wrappers and tasks of each model."""
    rows = analysis.models.to_dicts()
    if not rows:
        console.print("nothing has been asked yet", markup=False)
        return
    # A model without replies would be a table of dashes: say so instead.
    silent, heard = [r for r in rows if not r["replies"]], [r for r in rows if r["replies"]]
    if heard:
        console.print(_models(heard, analysis))
    for row in heard:
        console.print(_wrappers(row, analysis))
        console.print(_tasks(row, analysis))
    for row in silent:
        text = f"{_label(row)}: no reply yet to {counted(row['requested'], 'request')}"
        console.print(Text(text), soft_wrap=True)
    if heard:
        for line in _unmatched(analysis):
            console.print(Text(line), style="dim", soft_wrap=True)
        console.print(_legend(tested="fsi_low" in heard[0]), markup=False, style="dim")


def print_levels(analyses: Sequence[Analysis], console: Console) -> None:
    """How much of the span is the reader's strictness: every model at every level."""
    table = _table(
        "the same replies, read more or less strictly",
        ("model", "l"),
        ("level", "l"),
        ("accuracy", "r"),
        ("worst to best wrapper", "r"),
        ("FSI", "r"),
        ("PSI", "r"),
    )
    rows = [(a.level, row) for a in analyses for row in a.models.to_dicts() if row["replies"]]
    if not rows:
        return
    for level, row in sorted(rows, key=lambda pair: _label(pair[1])):
        spans = (_worst_to_best(row), points(row["fsi"]), points(row["psi"]))
        _add(table, _label(row), level, percent(row["accuracy"]), *spans)
    console.print(table)


def _label(row: dict[str, Any]) -> str:
    return plain(row["model"]) + ("" if row["mode"] == "free" else f" ({row['mode']})")


def _table(title: str, *columns: tuple[str, str]) -> Table:
    table = Table(title=Text(title), title_justify="left", title_style="bold", header_style="bold")
    for name, side in columns:
        table.add_column(name, justify="right" if side == "r" else "left", no_wrap=side == "r")
    return table


def _add(table: Table, *values: str) -> None:
    table.add_row(*(Text(v) for v in values))


def _models(rows: Sequence[dict[str, Any]], analysis: Analysis) -> Table:
    tested = "fsi_low" in rows[0]
    table = _table(
        f"{plain(analysis.study.name)}: {counted(len(analysis.study.wrappers), 'wrapper')}, "
        f"extraction level {analysis.level}",
        ("model", "l"),
        ("accuracy", "r"),
        ("worst to best wrapper", "r"),
        ("FSI", "r"),
        *((("by chance", "r"),) if tested else ()),
        ("PSI", "r"),
        ("best", "l"),
        ("worst", "l"),
        ("replies", "r"),
    )
    for row in rows:
        _add(
            table,
            _label(row),
            percent(row["accuracy"]),
            _worst_to_best(row),
            points(row["fsi"]) + _interval(row),
            *((points(row["noise_floor"]),) if tested else ()),
            points(row["psi"]),
            row["best_wrapper"] or MISSING,
            row["worst_wrapper"] or MISSING,
            f"{count(row['replies'])} of {count(row['requested'])}",
        )
    return table


def _worst_to_best(row: dict[str, Any]) -> str:
    low, high = row["wrapper_low"], row["wrapper_high"]
    return MISSING if low is None or high is None else f"{percent(low)} to {percent(high)}"


def _interval(row: dict[str, Any]) -> str:
    low, high = row.get("fsi_low"), row.get("fsi_high")
    return "" if low is None else f" [{points(low)}, {points(high)}]"


def _wrappers(model: dict[str, Any], analysis: Analysis) -> Table:
    table = _table(
        f"{_label(model)}: by wrapper (mean over tasks)",
        ("wrapper", "l"),
        ("accuracy", "r"),
        ("parsed", "r"),
        ("right if parsed", "r"),
        ("wins", "r"),
        ("what became of the replies", "l"),
    )
    for wrapper in analysis.study.wrappers:
        cells = [c for c in _of(model, analysis.cells.to_dicts()) if c["wrapper"] == wrapper.name]
        indexed = [c for c in cells if c["accuracy"] is not None]
        accuracy, parsed = _mean(indexed, "accuracy"), _mean(indexed, "parseability")
        _add(
            table,
            plain(wrapper.name),
            percent(accuracy),
            percent(parsed),
            percent(accuracy / parsed if accuracy is not None and parsed else None),
            ratio(sum(c["win"] for c in indexed), 1) if indexed else MISSING,
            _statuses(model, wrapper.name, analysis),
        )
    return table


def _tasks(model: dict[str, Any], analysis: Analysis) -> Table:
    table = _table(
        f"{_label(model)}: by task",
        ("task", "l"),
        ("n", "r"),
        ("accuracy", "r"),
        ("chance", "r"),
        ("FSI", "r"),
        ("PSI", "r"),
        ("nFSI", "r"),
        ("cFSI", "r"),
        ("matched n", "r"),
        ("FSI there", "r"),
        ("note", "l"),
    )
    matched = {m["task"]: m for m in _of(model, analysis.matched.to_dicts())}
    for pair in _of(model, analysis.pairs.to_dicts()):
        same = matched[pair["task"]]
        _add(
            table,
            plain(pair["task"]),
            count(pair["n"]),
            percent(pair["accuracy"]),
            percent(pair["chance"]),
            points(pair["fsi"]),
            points(pair["psi"]),
            ratio(pair["nfsi"]),
            ratio(pair["cfsi"]),
            count(same["n"]),
            points(same["fsi"]),
            plain(pair["note"] or ""),
        )
    return table


def _of(model: dict[str, Any], rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [r for r in rows if (r["model"], r["mode"]) == (model["model"], model["mode"])]


def _mean(rows: Sequence[dict[str, Any]], key: str) -> float | None:
    return sum(r[key] for r in rows) / len(rows) if rows else None


def _statuses(model: dict[str, Any], wrapper: str, analysis: Analysis) -> str:
    rows = [r for r in _of(model, analysis.statuses.to_dicts()) if r["wrapper"] == wrapper]
    shown = [r for r in rows if r["count"] and r["status"] != Status.OK]
    shown.sort(key=lambda r: -r["count"])
    return ", ".join(f"{r['status']} {percent(r['share'], 0)}" for r in shown)


def _unmatched(analysis: Analysis) -> list[str]:
    """Why some task has no matched example, and what would give it some."""
    by = ("model", "mode", "task")
    matched = {tuple(r[k] for k in by): r["n"] for r in analysis.matched.to_dicts()}
    rows = analysis.pairs.to_dicts()
    empty = [r for r in rows if r["n"] and not matched[tuple(r[k] for k in by)]]
    if not empty:
        return []
    if all(r["spread_median"] is None for r in empty):
        return ["matched n 0: the tokens of these prompts are not known."]
    within = percent(analysis.study.matched_threshold, 0)
    padded = analysis.study.budget_unit == "tokens"
    advice = "" if padded else "; budget_unit: tokens in a new run pads prompts to equal tokens"
    return [
        f"matched n 0: no example has prompts whose tokens agree within {within} over wrappers"
        f"{advice}."
    ]


def _legend(*, tested: bool) -> str:
    shown = "[95% max-T interval]; by chance: the FSI of wrappers that do nothing. "
    absent = "analyze --intervals adds intervals and the FSI of wrappers that do nothing. "
    return (
        "FSI: best minus worst wrapper's accuracy, PSI: of parseability; percentage points, "
        f"means over tasks. {shown if tested else absent}"
        "An unparsed reply counts as wrong. cFSI: FSI above guessing."
    )


def print_replies(frame: pl.DataFrame, limit: int, console: Console) -> None:
    """Replies one under the other: where each stands, what was read, the raw text."""
    if frame.is_empty():
        console.print("no reply matches")
    for row in frame.head(limit).to_dicts():
        where = " · ".join(plain(str(row[k])) for k in ("model", "task", "example", "wrapper"))
        console.rule(Text(where), align="left")
        read = row["status"] or f"no reply ({row['failure'] or 'pending'})"
        answer = "" if row["value"] is None else f" {row['value']!r}"
        right = {True: ", right", False: ", wrong", None: ""}[row["correct"]]
        console.print(
            Text(plain(f"{read}{answer}{right}; the answer is {row['gold']!r}")), style="dim"
        )
        console.print(Text(_LINE_SAFE.sub("\ufffd", row["text"] or "")), soft_wrap=True)
    left = len(frame) - limit
    if left > 0:
        console.print(Text(f"{count(left)} more: --limit shows more, --parquet writes all"))


def print_outcome(done: Run, console: Console) -> None:
    """Where the files are, what this session did, and what is left to do."""
    shared = f", {count(done.shared)} from the cache" if done.shared else ""
    speed = f" ({done.asked / done.seconds:.1f}/s)" if done.asked and done.seconds else ""
    lines = [
        f"{count(done.done)} of {counted(done.points, 'reply', 'replies')}; this session asked "
        f"{count(done.asked)}{shared} in {duration(done.seconds)}{speed}",
        f"files: {done.folder}/run.sqlite (replies), {done.folder}/study.yaml",
    ]
    if done.spent:
        by_model = ", ".join(f"{name} {dollars(d)}" for name, d in done.spent_on.items() if d)
        without = [
            f"{counted(number, 'reply', 'replies')} of {name}"
            for name, number in done.unpriced.items()
        ]
        unknown = f" without {', '.join(without)}, whose price is not known" if without else ""
        lines.append(f"spent so far: {dollars(done.spent)} ({by_model}){unknown}")
    lines += [f"{name} was stopped: {why}" for name, why in done.stopped.items()]
    if done.failed:
        stay = "stays" if done.failed == 1 else "stay"
        lines.append(f"{counted(done.failed, 'request')} failed and {stay} pending")
        lines += [f"{name} failed last with {why}" for name, why in done.failures.items()]
    if not done.complete:
        lines.append("not complete: the same command goes on where this stopped")
    for line in lines:
        console.print(plain(line), markup=False, highlight=False, soft_wrap=True)


def print_prompt(data: TaskData, example: Example, shown: ShownPrompt, console: Console) -> None:
    """One prompt as sent, its lengths and its contract."""
    prompt = shown.prompt
    tokens = "no tokenizer at hand" if shown.tokens is None else counted(shown.tokens, "token")
    console.rule(
        Text(f"{plain(shown.model)} · {data.task.name} · {plain(example.id)} · {prompt.wrapper}"),
        align="left",
    )
    for message in shown.messages:
        console.print(Text(f"[{message.role}]", style="dim"))
        console.print(Text(_LINE_SAFE.sub("\ufffd", message.content)), soft_wrap=True)
    console.print(
        Text(f"{counted(prompt.chars, 'character')}, {prompt.pad_chars} of them padding; {tokens}"),
        style="dim",
    )
    contract = f"contract: {_contract(shown, data.task.kind)}"
    console.print(Text(contract, style="dim"), soft_wrap=True)


def _contract(shown: ShownPrompt, kind: Kind) -> str:
    contract = shown.contract
    where = "any text, then the line " if contract.preamble else ""
    replies = " or ".join(plain(repr(text)) for text in shown.replies)
    any_number = "a number, such as " if kind == "number" else ""
    return f"{contract.shape}; {where}{any_number}{replies}"
