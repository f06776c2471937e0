"""A bill on the terminal: what would be asked, what it costs, how long it takes, what it shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from formatspan.counting import counted
from formatspan.report.numbers import MISSING, count, dollars, duration, points
from formatspan.report.terminal import plain

if TYPE_CHECKING:
    from formatspan.billing.bill import ModelBill, Plan, Power
    from formatspan.spending.pricing import ModelPrice

_COUNTED = {"tokenizer": "", "replies": "≈ ", "characters": "≈ "}


def print_plan(plan: Plan, console: Console) -> None:
    """The bill by model, the totals, what the examples can tell, and what to beware of."""
    title = f"{plain(plan.study)}: {count(plan.points)} generations, "
    console.print(_table(plan, title + f"{count(plan.requests)} requests to ask"))
    for line in (*_totals(plan), "", *_power(plan.power)):
        console.print(Text(line), soft_wrap=True)
    if plan.notes:
        console.print(Text(""))
    for note in plan.notes:
        console.print(Text(f"note: {plain(note)}"), soft_wrap=True, style="dim")


def _table(plan: Plan, title: str) -> Table:
    table = Table(title=Text(title), title_justify="left", title_style="bold")
    heads = ("requests", "answered", "prompt tokens", "reply tokens", "$/M in, out", "cost", "time")
    table.add_column("model")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("price from")
    for bill in plan.models:
        table.add_row(*(Text(cell) for cell in _row(bill, batch=plan.batch)))
    return table


def _row(bill: ModelBill, *, batch: bool) -> Sequence[str]:
    return (
        plain(bill.model),
        count(bill.requests),
        count(bill.answered),
        _COUNTED[bill.counted] + count(bill.prompt_tokens),
        _up_to(count(bill.completion_tokens), bill.completion_tokens, bill.completion_tokens_most),
        _rate(bill.price),
        _up_to(dollars(bill.cost), bill.cost, bill.cost_most),
        _within(bill.seconds) if batch and bill.requests else duration(bill.seconds),
        plain(bill.price.source) if bill.price else "not known",
    )


def _within(seconds: float) -> str:
    return f"≤ {seconds / 3600:g} h"


def _up_to(text: str, expected: float | None, most: float | None) -> str:
    return f"≤ {text}" if expected and expected == most else text


def _rate(price: ModelPrice | None) -> str:
    return f"{price.prompt:g}, {price.completion:g}" if price else MISSING


def _totals(plan: Plan) -> list[str]:
    lines = [_cost(plan)]
    copies = sum(b.copies for b in plan.models)
    shared = sum(b.shared for b in plan.models)
    if copies:
        lines.append(f"{count(copies)} repeats are copies of deterministic replies: not asked")
    if shared:
        lines.append(f"{count(shared)} generations share another's request: asked once")
    if plan.spent or any(b.answered for b in plan.models):
        lines.append(_spent(plan))
    lines.append(_time(plan))
    return lines


def _spent(plan: Plan) -> str:
    cached = sum(b.cached_tokens for b in plan.models)
    unknown = [b for b in plan.models if b.uncounted]
    names, replies = ", ".join(plain(b.model) for b in unknown), sum(b.uncounted for b in unknown)
    left_out = f"{counted(replies, 'reply', 'replies')} of {names}, whose price is not known"
    told = dollars(plan.spent)
    if unknown:
        told = f"{told} without {left_out}" if plan.spent else f"not known for {left_out}"
    return f"spent so far: {told}; {count(cached)} prompt tokens came from caches"


def _cost(plan: Plan) -> str:
    kind = "as batches, " if plan.batch else ""
    if not plan.requests:
        return "cost: nothing is left to pay"
    if plan.unpriced:
        return f"cost: {kind}{_unknown(plan)}"
    if not plan.cost_most:
        return "cost: $0: these models are free"
    if plan.cost == plan.cost_most:
        return (
            f"cost: {kind}at most {dollars(plan.cost_most)}, if every reply is as long as allowed"
        )
    return f"cost: {kind}about {dollars(plan.cost)}, at most {dollars(plan.cost_most)}"


def _unknown(plan: Plan) -> str:
    priced = [b.cost for b in plan.models if b.requests and b.cost is not None]
    others = f", {dollars(sum(priced))} for the others" if priced else ""
    return (
        f"not known for {', '.join(map(plain, plan.unpriced))}{others}: state the model's 'price' "
        "in the study, or give --price-file"
    )


def _time(plan: Plan) -> str:
    asked = [b for b in plan.models if b.requests]
    if not asked:
        return "time: nothing is left to ask"
    if plan.batch:
        return (
            f"time: {_within(plan.seconds)} for each batch: the endpoint answers when it has room, "
            "and requests in flight do not count"
        )
    slowest = max(asked, key=lambda b: b.seconds)
    took = f"time: about {duration(plan.seconds)}"
    if slowest.pace is not None:
        return f"{took}: {plain(slowest.model)} at the pace that the run measured, {_pace(slowest)}"
    said = "measured" if slowest.latency_measured else "assumed"
    return (
        f"{took}: {slowest.in_flight} requests in flight to each "
        f"model, {slowest.latency_s:.2g} s a reply ({said})"
    )


def _pace(bill: ModelBill) -> str:
    rate = bill.pace or 0.0
    return f"{rate:.3g} replies/s" if rate >= 1 else f"{rate * 60:.2g} replies/min"


def _power(power: Power) -> list[str]:
    if power.smallest_mean is None or power.smallest_task is None:
        return ["power: no range without two wrappers and an example"]
    sizes = sorted(set(power.examples.values()))
    shown = counted(sizes[-1], "example")
    if len(sizes) > 1:
        shown = f"{sizes[0]:,} to {shown}"
    needed, smallest = _examples(power.needed_task), power.smallest_task
    told = f"an FSI is beyond noise from {points(smallest)} points on"
    if len(power.examples) > 1:
        smallest, single = power.smallest_mean, power.smallest_task
        alone = "no FSI on one task" if single > 1 else f"{points(single)} on one task"
        mean = f"{points(smallest)} points on (mean of {len(power.examples)} tasks)"
        told = f"an FSI is beyond noise from {mean}, {alone}"
        needed = f"{_examples(power.needed_mean)} a task for the mean, {needed} on one task"
    if smallest > 1:
        told = "no FSI is beyond noise"
    return [
        f"power: {shown} a task under {power.wrappers} wrappers: {told}",
        f"       an FSI of {points(power.fsi)} needs {needed}",
    ]


def _examples(count_: int | None) -> str:
    return MISSING if count_ is None else f"{count(count_)} examples"
