"""The method section: every parameter, template, source, version, and what was assumed."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from formatspan._version import __version__
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
    return [
        Fact("examples per task", count(study.examples)),
        Fact("sample seed", str(study.sample_seed)),
        Fact("repeats (seeds)", count(study.seeds)),
        Fact("decoding", ", ".join(study.decoding)),
        Fact("length cap", f"{count(study.max_tokens)} tokens{_other_caps(study)}"),
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


def versions() -> list[Fact]:
    """What computed this report."""
    return [
        Fact("formatspan", __version__),
        Fact("extractor", EXTRACTOR_VERSION),
        Fact("Python", platform.python_version()),
    ]


def templates(view: View, found: Provenance) -> list[Template]:
    """Every wrapper with its exact templates."""
    padded = {p.wrapper: p for p in found.padded}
    return [
        Template(
            entry.name,
            tuple((m.role, m.content) for m in entry.messages),
            _contract(entry.contract.model_dump()),
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
        f"{count(view.replies)} of {count(view.requested)} replies "
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
    return [Fact(a.model, f"{a.what} ({count(a.replies)} replies)") for a in found.adapted]


def facts(view: View) -> list[Fact]:
    """Figures about the run as a whole, one a line, nested names joined by dots."""
    return [Fact(name, _said(value)) for name, value in _flat(view.facts)]


def _flat(found: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    lines: list[tuple[str, Any]] = []
    for key, value in found.items():
        name = f"{prefix}{str(key).replace('_', ' ')}"
        named = _named(value)
        if named is not None:
            lines += _flat(named, f"{name} · ")
        else:
            lines.append((name, value))
    return lines


def _named(value: Any) -> Mapping[str, Any] | None:  # noqa: ANN401 - of many types
    """The fields of a mapping, a dataclass or a named tuple; None of anything else."""
    if isinstance(value, Mapping):
        return value
    if is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    return value._asdict() if isinstance(value, tuple) and hasattr(value, "_asdict") else None


def _said(value: object) -> str:
    if value is None:
        return MISSING
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return "; ".join(_said(v) for v in value)
    return str(value)


def providers(found: Provenance) -> str:
    """Who served the replies."""
    names = sorted({s.provider for s in found.served if s.provider})
    return listed(names) if names else "the models' own endpoints or engines"
