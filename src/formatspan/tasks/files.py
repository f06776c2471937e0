"""A user's own file as a task: JSONL, CSV or Parquet.

Columns:

- ``question`` and ``answer``, in every row;
- ``options`` for a choice: a list of texts, an object label → text, or the hub's
  ``{"text": [...], "label": [...]}``; in CSV the same written as JSON;
- ``context`` (a passage), ``id`` and ``cluster``, if there are any;
- every other column is kept as metadata, for slicing and stratified samples.

``columns`` maps these names to the file's own, such as ``{"question": "body"}``; the names that
data sets of the hub use (`ALIASES`) are known, and a note says which were taken. Texts are taken
verbatim.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from msgspec import structs

from formatspan.contracts import Form
from formatspan.counting import counted
from formatspan.errors import DataError, StudyError
from formatspan.records import Example, Kind, labels
from formatspan.tasks import golds, rows
from formatspan.tasks.golds import AnswerIs, Options
from formatspan.tasks.readers import Numbered, read
from formatspan.tasks.task import Row, RowError, Task, TaskData, adapted

FIELDS = ("question", "answer", "options", "context", "id", "cluster")
"""Columns with a meaning; ``columns`` may rename them."""

ALIASES: Mapping[str, tuple[str, ...]] = {
    "question": ("question_stem",),
    "answer": ("answerKey", "answer_key", "label"),
    "options": ("choices",),
    "context": ("passage",),
}
"""Other names of columns, read where a file lacks the usual one and ``columns`` names none."""

STRATA = ("category", "subject")
"""Columns over which samples are spread evenly unless the user says otherwise."""

INSTRUCTIONS: dict[Kind, str] = {
    "choice": "Choose the best answer to the question.",
    "boolean": "Answer the question.",
    "number": "Solve the problem.",
}

NO_CLUSTER = "\0"
"""Stands for a missing cluster until all clusters are known."""


MISSING = frozenset(("nan", "null", "none", "<na>"))
"""What data-frame tools write for a missing cluster; taken as a name, it would join such rows."""


@dataclass(frozen=True)
class Layout:
    """How the rows of one file are read; called with a row, it parses it."""

    name: str
    kind: Kind
    fields: Mapping[str, str]
    """Column of the file for each of FIELDS."""
    words: tuple[str, str] | None
    answer_is: AnswerIs | None

    def __call__(self, row: Row, i: int) -> Example:
        """Row ``i`` as an example."""
        fields = self.fields
        ident = rows.key(row.get(fields["id"]), fields["id"])
        found = options(row.get(fields["options"]), fields["options"]) if self._choice else None
        return rows.example(
            self.name,
            str(i) if ident is None else ident,
            rows.text(row, fields["question"]),
            self._gold(row, found),
            options=found.texts if found else (),
            context=rows.optional_text(row, fields["context"]),
            cluster=self._cluster(row),
            metadata=rows.metadata(row, *(c for c in row if c not in fields.values())),
        )

    @property
    def _choice(self) -> bool:
        return self.kind == "choice"

    def _gold(self, row: Row, found: Options | None) -> str | bool | int | float:
        column = self.fields["answer"]
        answer = row.get(column)
        if found is not None:
            return golds.choice(found, answer, self.answer_is, column)
        if self.kind == "boolean":
            return golds.boolean(answer, self.words, column)
        return golds.written_number(answer, column)

    def _cluster(self, row: Row) -> str | None:
        column = self.fields["cluster"]
        if column not in row:
            return None
        cluster = rows.key(row[column], column)
        if cluster is None or cluster.strip().casefold() in MISSING:
            return NO_CLUSTER
        return cluster


def file_task(
    path: Path | str,
    *,
    name: str | None = None,
    kind: Kind | None = None,
    instruction: str | None = None,
    form: Form | None = None,
    words: tuple[str, str] | None = None,
    stratify: str | Literal[False] | None = None,
    columns: Mapping[str, str] | None = None,
    answer_is: AnswerIs | None = None,
) -> TaskData:
    """A file of the user's as a loaded task.

    Args:
        path: File ending in .jsonl, .ndjson, .csv or .parquet.
        name: The task's name; by default the file's, without its ending.
        kind: Kind of answer; by default ``choice`` where the first row has options, else
            ``boolean`` or ``number`` where every answer is one.
        instruction: One line saying what to do; by default one that fits the kind.
        form: Choice answers are asked as the option's label (the default), or as its text.
        words: Words for true and false that a boolean task asks for; by default yes and no.
        stratify: Column over which samples are spread evenly; by default ``category`` or
            ``subject`` where there is one; False for none.
        columns: The file's own name for some of FIELDS.
        answer_is: How choice answers are written; by default label or text, whichever fits.

    Raises:
        StudyError: The arguments do not fit each other.
        DataError: The file cannot be read, its kind cannot be told, or a row is wrong.
    """
    path = Path(path)
    fields = _fields(columns)
    first = next((row for _, row in read(path)), {})
    taken = _taken(first, fields, columns or {})
    fields |= taken
    kind = kind or infer_kind(read(path), fields, str(path))
    title = name or path.stem
    if kind == "boolean":
        words = words or ("yes", "no")
    layout = Layout(title, kind, fields, words, answer_is)
    task = Task(title, kind, INSTRUCTIONS[kind], layout)
    task = adapted(task, instruction=instruction, form=form, words=words)
    parsed, notes = _own_clusters(rows.examples(task, read(path), str(path)))
    task = replace(task, stratify=_strata(parsed, stratify, str(path)))
    notes += tuple(f"{field}: read from the column {name!r}." for field, name in taken.items())
    return TaskData(task, parsed, path.name, None, notes)


def options(value: object, field: str) -> Options:
    """Options in any of the forms that the module's docstring lists.

    Raises:
        RowError: They have none of these forms.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise RowError(field, f"expected a JSON list of texts, got {value!r}") from error
    if isinstance(value, Mapping):
        if {"text", "label"} == set(value):
            return rows.labelled({field: value}, field)
        # Parquet gives every row all keys that any row has, as nulls.
        pairs = {str(k): v for k, v in value.items() if v is not None}
        return Options(rows.texts(list(pairs.values()), field), tuple(pairs))
    if value is None:
        raise RowError(field, "no options: expected a list of texts")
    found = rows.texts(value, field)
    return Options(found, labels(len(found)))


def infer_kind(numbered: Iterable[Numbered], fields: Mapping[str, str], source: str) -> Kind:
    """The kind of answer that all rows agree on.

    Raises:
        DataError: They agree on none.
    """
    kinds: list[Kind] = ["boolean", "number"]
    looks = {"boolean": golds.looks_boolean, "number": golds.looks_numeric}
    before = ""
    for line, row in numbered:
        if row.get(fields["options"]) not in (None, ""):
            return "choice"
        answer = row.get(fields["answer"])
        if answer in (None, ""):
            continue  # parsing says so, whatever the kind
        kinds = [k for k in kinds if looks[k](answer)]
        if not kinds:
            raise DataError(
                f"neither a truth value nor a number{before}: {answer!r}; "
                "state kind (number for amounts such as $5), or give "
                f"{fields['options']!r} for a choice",
                source=source,
                line=line,
                field=fields["answer"],
            )
        before = " like the rows before"
    return kinds[0]


def _fields(columns: Mapping[str, str] | None) -> dict[str, str]:
    renamed = dict(columns or {})
    unknown = sorted(set(renamed) - set(FIELDS))
    if unknown:
        meant = difflib.get_close_matches(unknown[0], FIELDS, n=1)
        hint = f", did you mean {meant[0]!r}?" if meant else ""
        raise StudyError(f"columns: expected some of {', '.join(FIELDS)}, got {unknown[0]!r}{hint}")
    fields = {field: renamed.get(field, field) for field in FIELDS}
    if len(set(fields.values())) < len(fields):
        raise StudyError(f"columns: two of {', '.join(FIELDS)} are read from one column")
    return fields


def _taken(row: Row, fields: Mapping[str, str], columns: Mapping[str, str]) -> dict[str, str]:
    """Columns that stand in for usual ones which the file lacks."""
    free = [name for name in row if name not in fields.values()]
    found = {}
    for field, names in ALIASES.items():
        if field in columns or field in row:
            continue
        if name := next((name for name in names if name in free), None):
            found[field] = name
    return found


def _own_clusters(
    parsed: tuple[Example, ...],
) -> tuple[tuple[Example, ...], tuple[str, ...]]:
    """Rows without a cluster are each their own, under a name that no other row uses."""
    missing = sum(example.cluster == NO_CLUSTER for example in parsed)
    if not missing:
        return parsed, ()
    used = {example.cluster for example in parsed}
    prefix = "own:"
    while any(cluster.startswith(prefix) for cluster in used):
        prefix = f"_{prefix}"
    own = tuple(
        structs.replace(e, cluster=prefix + e.id) if e.cluster == NO_CLUSTER else e for e in parsed
    )
    name = "names" if missing == 1 else "name"
    return own, (f"{missing} of {counted(len(parsed), 'row')} {name} no cluster; each is its own.",)


def _strata(
    parsed: tuple[Example, ...], stratify: str | Literal[False] | None, source: str
) -> str | None:
    if stratify is False:
        return None
    if stratify is None:
        present = {column for example in parsed for column in example.metadata}
        return next((column for column in STRATA if column in present), None)
    rows.check_strata(parsed, stratify, source)
    return stratify
