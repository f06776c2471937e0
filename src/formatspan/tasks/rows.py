"""From rows to examples: reading fields, checking examples, saying where a row is wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec import structs

from formatspan.counting import counted
from formatspan.errors import DataError
from formatspan.records import Answer, Example, labels
from formatspan.tasks import golds
from formatspan.tasks.golds import Options
from formatspan.tasks.readers import Numbered
from formatspan.tasks.task import Row, RowError, Task

MAX_OPTIONS = 62
"""More options than this are a list of values, not a choice."""


def text(row: Row, field: str) -> str:
    """The text in ``field``, verbatim.

    Raises:
        RowError: It is missing, not text, or blank.
    """
    value = optional_text(row, field)
    if not value.strip():
        raise RowError(field, "is empty" if field in row else _missing(row))
    return value


def optional_text(row: Row, field: str) -> str:
    """The text in ``field``, verbatim; empty where it is missing or null.

    Raises:
        RowError: It is not text, or not text that can be stored as UTF-8.
    """
    value = row.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RowError(field, f"expected text, got {value!r}")
    return storable(value, field)


def storable(value: str, field: str) -> str:
    """``value``, if it can be written as UTF-8.

    Raises:
        RowError: It holds half of a surrogate pair, which JSON escapes can smuggle in.
    """
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise RowError(field, f"holds the lone surrogate {value[error.start]!r}") from error
    return value


def texts(values: object, field: str) -> tuple[str, ...]:
    """Option texts, verbatim; a whole number is shown as its digits.

    Raises:
        RowError: ``values`` is no list, or an item is no text. A decimal number is refused,
            since its text is lost already: 2.50 was read as 2.5.
    """
    if not isinstance(values, list | tuple):
        raise RowError(field, f"expected a list of texts, got {values!r}")
    return tuple(_option(value, field) for value in values)


def labelled(row: Row, field: str = "choices") -> Options:
    """Options in the hub's layout: ``{"text": [...], "label": [...]}``.

    Raises:
        RowError: The field has another shape, or labels that are not one an option.
    """
    value = row.get(field)
    if not isinstance(value, Mapping) or not {"text", "label"} <= set(value):
        raise RowError(field, f"expected an object with text and label, got {value!r}")
    options = Options(texts(value["text"], field), texts(value["label"], field))
    if len(set(options.labels)) != len(options.texts) or len(options.labels) != len(options.texts):
        raise RowError(
            field, f"labels {options.labels} do not name {counted(len(options.texts), 'option')}"
        )
    return options


def key(value: object, field: str) -> str | None:
    """An identifier as text; None where it is missing (null, NaN or blank).

    Raises:
        RowError: It is neither text nor a whole number.
    """
    if _null(value):
        return None
    if isinstance(value, str):
        return storable(value, field) if value.strip() else None
    # A column of whole numbers with gaps comes out of data-frame tools as 1.0, 2.0, NaN.
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise RowError(field, f"expected text or a whole number, got {value!r}")


def metadata(row: Row, *fields: str) -> dict[str, str]:
    """The given columns as texts; one that is null, NaN or absent is left out.

    Numbers and truth values are written as JSON, as are lists and objects.

    Raises:
        RowError: A text cannot be stored as UTF-8.
    """
    found = {field: row.get(field) for field in fields}
    return {f: storable(_written(v), f) for f, v in found.items() if not _null(v)}


def example(
    task: str,
    id: str,
    question: str,
    gold: Answer,
    *,
    options: Sequence[str] = (),
    context: str = "",
    cluster: str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Example:
    """An example whose cluster is its own id unless ``cluster`` names one."""
    own = id if cluster is None else cluster
    return Example(task, id, question, context, tuple(options), gold, own, metadata or {})


def examples(task: Task, rows: Iterable[Numbered], source: str) -> tuple[Example, ...]:
    """Every row as a checked example, clusters assigned.

    Raises:
        DataError: There is no row, a row is wrong, two rows share an id, or no row has the
            column over which samples are to be spread.
    """
    parsed: list[Example] = []
    lines: dict[str, int] = {}
    for i, (line, row) in enumerate(rows):
        try:
            parsed.append(_checked(task, task.parse(row, i), lines))
        except RowError as error:
            raise DataError(str(error), source=source, line=line, field=error.field) from error
        lines[parsed[-1].id] = line
    if not parsed:
        raise DataError("has no rows", source=source)
    if task.stratify is not None:
        check_strata(parsed, task.stratify, source)
    if task.cluster is None:
        return tuple(parsed)
    clusters = task.cluster(parsed)
    return tuple(structs.replace(e, cluster=c) for e, c in zip(parsed, clusters, strict=True))


def check_strata(parsed: Iterable[Example], column: str, source: str) -> None:
    """Refuse to spread samples over a column that no row has.

    Raises:
        DataError: It is nobody's metadata.
    """
    present = {name for example in parsed for name in example.metadata}
    if column not in present:
        known = ", ".join(sorted(present)) or "none"
        raise DataError(f"stratify: no column {column!r}; others are {known}", source=source)


def _checked(task: Task, parsed: Example, lines: Mapping[str, int]) -> Example:
    if parsed.id in lines:
        raise RowError("id", f"{parsed.id!r} is used at line {lines[parsed.id]} already")
    if not parsed.question.strip():
        raise RowError("question", "is empty")
    if task.kind == "choice":
        _check_options(task, parsed)
    return parsed


def _check_options(task: Task, parsed: Example) -> None:
    n = len(parsed.options)
    if not 2 <= n <= MAX_OPTIONS:
        raise RowError("options", f"expected 2 to {MAX_OPTIONS} options, got {n}")
    for label, option in zip(labels(n), parsed.options, strict=True):
        if not option.strip():
            raise RowError("options", f"option {label} is empty")
    if parsed.gold not in labels(n):
        raise RowError("answer", f"expected one of {', '.join(labels(n))}, got {parsed.gold!r}")
    if task.form == "text":
        _check_answer_texts(parsed.options)


def _check_answer_texts(options: Sequence[str]) -> None:
    """Options that are themselves the answers must be told apart, and fit on one line."""
    seen: set[str] = set()
    for option in options:
        if len(option.splitlines()) > 1:
            raise RowError("options", f"{option!r} holds a line break: use form: label")
        if golds.same_text(option) in seen:
            raise RowError("options", f"{option!r} occurs twice: use form: label")
        seen.add(golds.same_text(option))


def _option(value: object, field: str) -> str:
    if isinstance(value, str):
        return storable(value, field)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise RowError(field, f"expected texts, got {value!r}: put it in quotation marks")


def _null(value: object) -> bool:
    """Whether a value is missing; data-frame tools write NaN for that."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _missing(row: Row) -> str:
    return f"is missing; the row has {', '.join(map(str, row))}"
