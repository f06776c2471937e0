"""The reporting checklist, filled in, as Markdown to paste into a paper or a model card."""

from __future__ import annotations

from collections.abc import Iterator

from formatspan._version import __version__
from formatspan.counting import counted
from formatspan.records import EXTRACTOR_VERSION
from formatspan.report import method
from formatspan.report.escape import markdown
from formatspan.report.numbers import MISSING, interval, percent, points
from formatspan.report.provenance import Provenance
from formatspan.report.view import Row, View


def checklist(view: View, found: Provenance) -> str:
    """The block; names and notes are escaped, since they come from users and endpoints."""
    return "\n".join(_lines(view, found)) + "\n"


def _lines(view: View, found: Provenance) -> Iterator[str]:
    study = view.study
    yield f"### Prompt-format sensitivity: {markdown(study.name)}"
    yield ""
    yield from _imported(view) if view.imported else _run(view, found)
    yield (
        "- **Intervals**: 95%, max-T over examples (clusters kept together). "
        "Noise floor: wrapper labels shuffled within examples."
    )
    yield f"- **Code**: formatspan {__version__}, D. P. Mehta's indices (arXiv 2607.09665)."
    yield ""
    yield from _results(view)


def _run(view: View, found: Provenance) -> Iterator[str]:
    yield from _asked(view, found)
    yield f"- **Token control**: {method.budget(view.study)}; {_matched(view)}."
    yield f"- **Decoding**: {_decoding(view)}."
    yield (
        f"- **Extraction**: level `{view.analysis.level}`, extractor {EXTRACTOR_VERSION}; an "
        "unparsed reply counts as wrong; failures are left out and counted."
    )
    yield f"- **Coverage**: {method.coverage(view)}; {_failures(found)}."
    providers = markdown(method.providers(view, found))
    yield f"- **Dates and providers**: {method.dates(found)}; {providers}."


def _imported(view: View) -> Iterator[str]:
    """Of a table scored elsewhere: what it holds, and what has to be filled in by hand."""
    yield f"- **Models**: {', '.join(markdown(name) for name in view.labels)}"
    for task in method.tasks(view):
        yield (
            f"- **Task**: {markdown(task['name'])}: {task['examples']} in "
            f"{markdown(task['source'])}, sha256 {task['sha256'][:16]}"
        )
    names = ", ".join(markdown(name) for name in view.wrappers)
    yield f"- **Wrappers** ({len(view.wrappers)}): {names}; templates: *fill in*."
    yield f"- **Token control**: *fill in*; {_matched(view)}."
    yield "- **Decoding, extraction, dates and providers**: *fill in*: scored elsewhere."
    yield f"- **Coverage**: {method.coverage(view)}."


def _asked(view: View, found: Provenance) -> Iterator[str]:
    study = view.study
    addresses = dict(method.backends(found))
    for entry in study.models:
        revision = f", revision {markdown(entry.revision)}" if entry.revision else ""
        facts = markdown(addresses.get(entry.name, entry.model))
        yield f"- **Model**: {markdown(entry.name)} ({facts}{revision})"
    for task in method.tasks(view):
        yield (
            f"- **Task**: {markdown(task['name'])}: {counted(study.examples, 'example')} at most "
            f"of {task['rows']}, sample seed {study.sample_seed}; {markdown(task['source'])}, "
            f"revision {markdown(task['revision'])}, sha256 {task['sha256'][:16]}"
        )
    names = ", ".join(markdown(name) for name in view.wrappers)
    yield f"- **Wrappers** ({len(view.wrappers)}): {names}; exact templates in the report."


def _matched(view: View) -> str:
    all_, matched = (sum(p["n"] or 0 for p in view.rows(f)) for f in ("pairs", "matched"))
    share = percent(matched / all_, 0) if all_ else MISSING
    threshold = percent(view.study.matched_threshold, 0)
    return f"{share} of the examples within a token spread of {threshold}"


def _decoding(view: View) -> str:
    study = view.study
    return (
        f"{', '.join(study.decoding)}; temperature {study.temperature:g}, top_p {study.top_p:g}, "
        f"at most {counted(study.max_tokens, 'token')}, {counted(study.seeds, 'seed')}"
    )


def _failures(found: Provenance) -> str:
    failed = sum(f.requests for f in found.failed)
    return f"{counted(failed, 'request')} failed" if failed else "no request failed for good"


def _results(view: View) -> Iterator[str]:
    yield "| model | accuracy | FSI [95%] | noise floor | PSI [95%] | compliance part |"
    yield "| :-- | --: | --: | --: | --: | --: |"
    for model in view.models:
        cells = (
            markdown(model.label),
            percent(model["accuracy"]),
            _with_interval(model, "fsi"),
            points(model["noise_floor"]),
            _with_interval(model, "psi"),
            points(model["compliance_part"]),
        )
        yield f"| {' | '.join(cells)} |"


def _with_interval(model: Row, index: str) -> str:
    within = interval(model[f"{index}_low"], model[f"{index}_high"])
    return points(model[index]) + ("" if within == MISSING else f" [{within}]")
