"""Repair policies: what to do with replies that cannot be read, what it gains, what it costs.

``none`` leaves them unparsed. ``json-repair`` mends replies to JSON contracts with the library of
that name and reads them again; a reply that was cut off is never mended. ``ask again`` sends the
prompt, the reply and a message that names what was wrong, once. ``constrained`` holds the decoder
to the contract from the start. All are read at the normalized level.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import json_repair

from formatspan.contracts import AnswerSpace, Contract
from formatspan.falsifier.arms import Tables
from formatspan.falsifier.queue import Again, Further, asked_again
from formatspan.grid import OpenModel, identified
from formatspan.records import Level, Message, Request, Score, Status
from formatspan.scoring import score
from formatspan.store import Store
from formatspan.stored import messages_of
from formatspan.study import Study
from formatspan.table import Asked, asked_of
from formatspan.wrappers.wrapper import Content, vocabulary

if TYPE_CHECKING:
    import polars as pl

LEVEL: Level = "normalized"
MOST_MENDED = 4_000
"""Characters of a reply that is mended; the library takes quadratic time."""
SILENCE = "(no reply)"
"""Stands for an empty reply: endpoints refuse messages without content."""

_WRONG: Mapping[Status, str] = {
    Status.EMPTY: "Your reply was empty.",
    Status.TRUNCATED: "Your reply was cut off before the answer was complete.",
    Status.AMBIGUOUS: "Your reply gave more than one answer.",
    Status.REFUSAL: "Your reply gave no answer.",
}


def complaint(status: Status, contract: Contract, space: AnswerSpace) -> str:
    """What a model is told about a reply that could not be read, in the contract's words."""
    wrong = _WRONG.get(status, "Your reply could not be read.")
    content = Content(
        "", "", "", space.options or space.labels, space.kind, contract.form, contract.words
    )
    named = vocabulary(content, quoted=contract.shape == "json")
    return f"{wrong} {_asked_form(contract)}, where … stands for {named}."


def _asked_form(contract: Contract) -> str:
    if contract.shape == "json":
        shell = f'{{"{contract.key}": …}}'
        return f"Reply with exactly one JSON object and nothing else: {shell}"
    if contract.shape == "boxed":
        return "Reply with \\boxed{…}"
    shell = f"{contract.before}…{contract.after}"
    if contract.preamble:
        return f"End your reply with this line: {shell}"
    if not (contract.before or contract.after):
        return "Reply with only the answer and nothing else: …"
    return f"Reply with exactly this and nothing else: {shell}"


def mended(text: str, finish_reason: str | None, contract: Contract) -> str | None:
    """A reply as json-repair mends it; None where there is nothing to mend."""
    if contract.shape != "json" or finish_reason == "length" or len(text) > MOST_MENDED:
        return None
    try:
        value = json_repair.loads(text)
    except Exception:  # a third party's parser must not end a scoring run
        return None
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else None


def again_request(
    study: Study, model: OpenModel, messages: Sequence[Message], seed: int, parent: str
) -> Request:
    """The request that asks a question again; ``messages`` hold the reply and the complaint."""
    return identified(
        Request(
            id="",
            model=model.entry.model,
            endpoint=model.endpoint,
            messages=(*study.system(model.entry), *messages),
            sampling=study.sampling(model.entry),
            seed=seed,
            parent=parent,
        )
    )


def dialogue(
    prompt: Sequence[Message], text: str, finish_reason: str | None, asked: Asked
) -> tuple[Message, ...]:
    """The prompt, the reply that could not be read, and what was wrong with it."""
    status = _read(text, finish_reason, asked).status
    told = complaint(status, asked.contract, asked.space)
    said = Message("assistant", text.strip() or SILENCE)
    return (*prompt, said, Message("user", told))


def _read(text: str, finish_reason: str | None, asked: Asked) -> Score:
    contract, space, example = asked
    return score(text, finish_reason, contract, space, example.gold, LEVEL, example.question)


@dataclass(frozen=True, slots=True)
class FirstReply:
    """A free reply with what it was asked and how it was read."""

    asked: Asked
    score: Score
    model: str
    task: str
    example_id: str
    wrapper: str
    seed: int
    tokenizer: str
    request_id: str
    messages: str
    """The prompt's, as JSON."""
    text: str
    finish_reason: str | None

    @property
    def place(self) -> tuple[str, str, str, str, int]:
        """Where in the grid it stands."""
        return self.model, self.task, self.example_id, self.wrapper, self.seed


def first_replies(store: Store, study: Study) -> Iterator[FirstReply]:
    """Every free reply that is no copy."""
    look_up = asked_of(store, study)
    rows = store.connection.execute(
        """
        SELECT p.model, p.task, p.example_id, p.wrapper, p.seed, p.tokenizer, r.id,
               q.messages, g.text, g.finish_reason
        FROM points p JOIN requests r ON r.number = p.request
        JOIN prompts q USING (tokenizer, task, example_id, wrapper)
        JOIN generations g USING (request)
        WHERE p.mode = 'free' AND p.copy_of IS NULL ORDER BY p.id
        """
    )
    for row in rows:
        asked = look_up(*row[1:4])
        yield FirstReply(asked, _read(row[8], row[9], asked), *row)


def planned(store: Store, study: Study, models: Mapping[str, OpenModel]) -> Iterator[Further]:
    """A second question for every reply that could not be read."""
    for first in first_replies(store, study):
        if first.score.parsed or first.model not in models:
            continue
        messages = dialogue(
            messages_of(first.messages), first.text, first.finish_reason, first.asked
        )
        model = models[first.model]
        request = again_request(study, model, messages, first.seed, first.request_id)
        yield Further("again", *first.place, "", first.tokenizer, request.id, first.request_id)


def policies(store: Store, tables: Tables) -> list[dict[str, Any]]:
    """A row a model, policy and wrapper, and one for all wrappers; none if none was asked again."""
    seconds = {(a.model, a.task, a.example_id, a.wrapper, a.seed): a for a in asked_again(store)}
    if not seconds:
        return []
    outcomes: list[Outcome] = []
    for first in first_replies(store, tables.study):
        outcomes += _outcomes(first, seconds.get(first.place))
    frame = _with_costs(outcomes, tables)
    return _summed(frame, tables)


class Outcome(NamedTuple):
    """What one policy makes of one reply."""

    model: str
    task: str
    example: str
    wrapper: str
    seed: int
    policy: str
    parsed: bool
    correct: bool
    more: int
    """Further requests."""
    more_tokens: int
    more_cost: float


def _outcomes(first: FirstReply, second: Again | None) -> Iterator[Outcome]:
    """What each policy makes of one reply."""
    none, mended_ = first.score, _after_mending(first)
    yield Outcome(*first.place, "none", none.parsed, none.correct, 0, 0, 0.0)
    yield Outcome(*first.place, "json-repair", mended_.parsed, mended_.correct, 0, 0, 0.0)
    if second is None or second.text is None:
        yield Outcome(*first.place, "ask again", none.parsed, none.correct, 0, 0, 0.0)
        return
    read = _after_asking(first, second.text, second.finish_reason)
    spent = _tokens(second), second.cost or 0.0
    yield Outcome(*first.place, "ask again", read.parsed, read.correct, 1, *spent)


def _after_mending(first: FirstReply) -> Score:
    if first.score.parsed:
        return first.score
    text = mended(first.text, first.finish_reason, first.asked.contract)
    return first.score if text is None else _read(text, "stop", first.asked)


def _after_asking(first: FirstReply, text: str, finish_reason: str | None) -> Score:
    return first.score if first.score.parsed else _read(text, finish_reason, first.asked)


def _tokens(second: Again) -> int:
    return (second.prompt_tokens or 0) + (second.completion_tokens or 0)


def _with_costs(outcomes: Sequence[Outcome], tables: Tables) -> pl.DataFrame:
    """The outcomes with the first request's tokens and cost; constrained replies beside them."""
    import polars as pl

    keys = ("model", "task", "example", "wrapper", "seed")
    table = tables.at(LEVEL).filter(~pl.col("copy") & pl.col("correct").is_not_null())
    names = [pl.col(k).cast(pl.String) for k in keys[:4]]
    spent = (pl.col("prompt_tokens").fill_null(0) + pl.col("completion_tokens").fill_null(0)).cast(
        pl.Int64
    )
    cost = pl.col("cost").fill_null(0.0)
    cells = table.select(
        *names, pl.col("seed").cast(pl.Int64), "mode", "parsed", "correct",
        tokens=spent, dollars=cost,
    )  # fmt: skip
    free = cells.filter(pl.col("mode") == "free").select(*keys, "tokens", "dollars")
    held = cells.filter(pl.col("mode") == "constrained").with_columns(
        policy=pl.lit("constrained"),
        more=pl.lit(0, pl.Int64), more_tokens=pl.lit(0, pl.Int64), more_cost=pl.lit(0.0),
    )  # fmt: skip
    made = pl.DataFrame(outcomes, schema=list(Outcome._fields), orient="row")
    made = made.join(free, on=list(keys), how="inner")
    return pl.concat([made, _whole(held, free).select(made.columns)])


def _whole(held: pl.DataFrame, free: pl.DataFrame) -> pl.DataFrame:
    """Constrained replies of the cells that have one for every free reply: equals to compare."""
    counts = [f.group_by("model", "task", "wrapper").len() for f in (held, free)]
    same = counts[0].join(counts[1], on=["model", "task", "wrapper", "len"])
    return held.join(same, on=["model", "task", "wrapper"], how="semi")


def _summed(frame: pl.DataFrame, tables: Tables) -> list[dict[str, Any]]:
    """Means over tasks of each policy, with what it gains over none and what it costs."""
    import polars as pl

    by_task = frame.group_by("model", "policy", "wrapper", "task").agg(
        accuracy=pl.col("correct").mean(), parseability=pl.col("parsed").mean(),
        replies=pl.len(), more=pl.col("more").sum(),
        tokens=(pl.col("tokens") + pl.col("more_tokens")).sum(),
        dollars=(pl.col("dollars") + pl.col("more_cost")).sum(),
    )  # fmt: skip
    sums = [pl.col("accuracy", "parseability").mean(),
            pl.col("replies", "more", "tokens", "dollars").sum()]  # fmt: skip
    each = by_task.group_by("model", "policy", "wrapper").agg(sums)
    cells = pl.len().over("model", "policy")
    complete = by_task.filter(cells == cells.max().over("model"))
    whole = complete.group_by("model", "policy").agg(sums).with_columns(wrapper=pl.lit(None))
    span = by_task.group_by("model", "policy", "task").agg(
        fsi=pl.col("accuracy").max() - pl.col("accuracy").min(),
        psi=pl.col("parseability").max() - pl.col("parseability").min(),
    ).group_by("model", "policy").agg(pl.col("fsi", "psi").mean())  # fmt: skip
    whole = whole.join(span, on=["model", "policy"])
    rows = [*whole.to_dicts(), *each.select(set(each.columns)).to_dicts()]
    return _ordered([_against_none(row, rows) for row in rows], tables)


POLICIES = ("none", "json-repair", "ask again", "constrained")


def _against_none(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    where = (row["model"], row["wrapper"])
    base = next(
        (r for r in rows if (r["model"], r["wrapper"]) == where and r["policy"] == "none"), None
    )
    per_reply = base["tokens"] / base["replies"] if base and base["replies"] else 0
    return {
        "model": row["model"],
        "policy": row["policy"],
        "wrapper": row["wrapper"],
        "replies": row["replies"],
        "accuracy": row["accuracy"],
        "parseability": row["parseability"],
        "fsi": row.get("fsi"),
        "psi": row.get("psi"),
        "accuracy_gain": row["accuracy"] - base["accuracy"] if base else None,
        "parse_gain": row["parseability"] - base["parseability"] if base else None,
        "requests_per_reply": 1 + row["more"] / row["replies"],
        "tokens_ratio": row["tokens"] / row["replies"] / per_reply if per_reply else None,
        "dollars": row["dollars"] or None,
    }


def _ordered(rows: list[dict[str, Any]], tables: Tables) -> list[dict[str, Any]]:
    models, _, wrappers = tables.names

    def place(row: dict[str, Any]) -> tuple[int, int, int]:
        wrapper = -1 if row["wrapper"] is None else wrappers.index(row["wrapper"])
        return models.index(row["model"]), wrapper, POLICIES.index(row["policy"])

    return sorted(rows, key=place)
