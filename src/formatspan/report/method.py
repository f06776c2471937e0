"""The method section: every parameter, template, source, version, and what was assumed."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from formatspan._version import __version__
from formatspan.counting import counted
from formatspan.records import EXTRACTOR_VERSION
from formatspan.report.numbers import MISSING, count, percent, ratio
from formatspan.report.provenance import Provenance
from formatspan.report.sentences import listed
from formatspan.report.view import View
from formatspan.study import Budget, Study


class Fact(NamedTuple):
    """A name and what it is."""

    name: str
    value: str


class Template(NamedTuple):
    """A wrapper, spelled out."""

    name: str
    messages: tuple[tuple[str, str], ...]
    """(role, template)."""
    contract: str
    padding: str


ASSUMED = (
    "Budgets: by default every wrapper of an example is padded to the longest of them, in "
    "characters; a task's budget is taken over all its rows, not only the sample.",
    "The padding is one run inside the prompt, because chat templates trim message ends.",
    "A reply that does not parse counts as wrong and stays in the denominator. A request that "
    "failed is neither wrong nor unparsed: it leaves the denominator, and the span that failures "
    "could hide stands in the table of pairs.",
    "Repeats of a deterministic model are copies of one reply and are not counted as draws.",
    "Token spread is (max - min) / mean of the prompt tokens of one question over its wrappers.",
    "The level `paper` reads the first option letter, the first yes/no/true/false and the last "
    "number; the paper names no rule.",
    "Intervals are max-T: examples are resampled jointly over wrappers (clusters stay together, "
    "tasks apart), cells without variation keep a width, and the 95% quantile of the resampled "
    "range is added on both sides. A percentile bootstrap of a range would lie above zero even "
    "without any effect; the paper's, over tasks, is printed beside it under that name.",
    "The noise floor is the mean span when wrapper labels are shuffled within examples. It grows "
    "with the number of wrappers and is shown beside FSI, never subtracted.",
    "Compliance and conditional accuracy are the two parts of an exact, signed decomposition "
    "(Kitagawa) between best and worst wrapper; it describes, and does not prove a cause.",
)


def parameters(view: View) -> list[Fact]:
    """Every parameter of the study."""
    study = view.study
    if view.imported:
        return [
            Fact("scored", "elsewhere: prompts, padding, decoding and scoring are not known"),
            Fact("examples per task", f"{count(study.examples)} at most"),
            Fact("repeats (seeds)", count(study.seeds)),
            Fact("decoding", ", ".join(study.decoding)),
            Fact("matched subset", f"token spread up to {percent(study.matched_threshold, 0)}"),
        ]
    return [
        Fact("examples per task", count(study.examples)),
        Fact("sample seed", str(study.sample_seed)),
        Fact("repeats (seeds)", count(study.seeds)),
        Fact("decoding", ", ".join(study.decoding)),
        Fact("length cap", f"{counted(study.max_tokens, 'token')}{_other_caps(study)}"),
        Fact("temperature", f"{study.temperature:g}"),
        Fact("top_p", f"{study.top_p:g}"),
        Fact("stop", ", ".join(map(repr, study.stop)) or "none"),
        Fact("prompt budget", budget(study)),
        Fact("extraction level", view.analysis.level),
        Fact("matched subset", f"token spread up to {percent(study.matched_threshold, 0)}"),
    ]


def budget(study: Study) -> str:
    """The padding budget in words."""
    if isinstance(study.budget, Budget):
        unit = "characters" if study.budget.chars else "tokens"
        return f"{count(study.budget.chars or study.budget.tokens or 0)} {unit}"
    unit = "characters" if study.budget_unit == "chars" else "tokens"
    words = {
        "none": "none: prompts are not padded",
        "task": f"one length a task, in {unit}",
        "example": f"one length an example, in {unit}",
    }
    return words[study.budget]


def _other_caps(study: Study) -> str:
    own = [f"{m.name}: {count(m.max_tokens)}" for m in study.models if m.max_tokens]
    return f" ({', '.join(own)})" if own else ""


def assumed(view: View) -> tuple[str, ...]:
    """What was assumed; of a table scored elsewhere only what its analysis assumes."""
    about_asking = ("Budgets", "The padding", "The level")
    return tuple(a for a in ASSUMED if not (view.imported and a.startswith(about_asking)))


def versions(view: View) -> list[Fact]:
    """What computed this report."""
    extractor = [] if view.imported else [Fact("extractor", EXTRACTOR_VERSION)]
    python = Fact("Python", platform.python_version())
    return [Fact("formatspan", __version__), *extractor, python]


def templates(view: View, found: Provenance) -> list[Template]:
    """Every wrapper with its exact templates."""
    padded = {p.wrapper: p for p in found.padded}
    return [
        Template(
            entry.name,
            tuple((m.role, m.content) for m in entry.messages),
            "not known" if view.imported else _contract(entry.contract.model_dump()),
            _padding(padded.get(entry.name)),
        )
        for entry in view.study.wrappers
    ]


def _contract(contract: Mapping[str, Any]) -> str:
    if contract["shape"] == "json":
        return f"one JSON object whose key {contract['key']!r} holds the answer"
    if contract["shape"] == "boxed":
        return "any text, then \\boxed{answer}"
    shell = f"{contract['before']!r} + answer + {contract['after']!r}"
    bare = "the answer and nothing else"
    text = shell if contract["before"] or contract["after"] else bare
    return ("any text, then the line " if contract["preamble"] else "") + text


def _padding(found: Any) -> str:  # noqa: ANN401 - a record of `provenance` or None
    if found is None:
        return MISSING
    return (
        f"{count(found.shortest)} to {count(found.longest)} characters; padding "
        f"{count(round(found.mean_padding))} on average, {count(found.most_padding)} at most"
    )


def tasks(view: View) -> list[dict[str, str]]:
    """Source, revision and hash of every task's data."""
    return [
        {
            "name": name,
            "kind": str(record.get("kind") or MISSING),
            "chance": percent(record.get("chance")),
            "rows": count(record["rows"]) if record.get("rows") is not None else MISSING,
            "examples": counted(record.get("rows") or 0, "example"),
            "source": str(record.get("source") or MISSING),
            "revision": str(record.get("revision") or MISSING),
            "sha256": str(record.get("sha256") or MISSING),
            "notes": _notes(record.get("notes")),
        }
        for name, record in view.analysis.tasks.items()
    ]


def _notes(notes: object) -> str:
    if isinstance(notes, Sequence) and not isinstance(notes, str):
        return "; ".join(map(str, notes))
    return str(notes or "")


def coverage(view: View) -> str:
    """How much of what was to be asked has a reply."""
    if not view.requested:
        return "nothing was to be asked"
    return (
        f"{count(view.replies)} of {counted(view.requested, 'reply', 'replies')} "
        f"({percent(view.replies / view.requested)})"
    )


def dates(found: Provenance) -> str:
    """First and last reply."""
    if found.dates is None:
        return MISSING
    first, last = (date.replace("T", " ")[:16] for date in found.dates)
    return f"{first} to {last} UTC" if first != last else f"{first} UTC"


def cost(found: Provenance) -> str:
    """What the replies cost, where that is known of any."""
    known = [s.cost for s in found.served if s.cost is not None]
    return f"${ratio(sum(known))}" if known else MISSING


def backends(found: Provenance) -> list[Fact]:
    """What each model's backend said of itself, its address first."""
    return [Fact(name, _facts(record)) for name, record in found.models]


def _facts(record: Mapping[str, Any]) -> str:
    address = record.get("entry", {}).get("model", MISSING)
    facts = [f"{key}: {value}" for key, value in record.get("facts", {}).items()]
    return "; ".join([str(address), *facts])


def adaptations(found: Provenance) -> list[Fact]:
    """What was sent otherwise than the study says, since a model refused it."""
    return [
        Fact(a.model, f"{a.what} ({counted(a.replies, 'reply', 'replies')})") for a in found.adapted
    ]


def providers(view: View, found: Provenance) -> str:
    """Who served the replies."""
    if view.imported:
        return MISSING
    names = sorted({s.provider for s in found.served if s.provider})
    return listed(names) if names else "the models' own endpoints or engines"
