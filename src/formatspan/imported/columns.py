"""The columns of an imported table: read as text whatever their type, then checked one by one."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from formatspan.errors import DataError
from formatspan.records import Mode, Status

if TYPE_CHECKING:
    import polars as pl

REQUIRED = ("model", "task", "example", "wrapper", "parsed", "correct")
"""Names of what was asked, and what became of the reply: true, false or nothing (it failed)."""
OPTIONAL = (
    *("seed", "mode", "cluster", "copy", "status", "value", "finish_reason"),
    *("prompt_tokens", "completion_tokens", "latency_s", "cost", "chance", "family", "size_b"),
)
"""``seed`` tells repeats apart; ``chance`` is a task's, ``family`` and ``size_b`` a model's."""
KEY = ("model", "task", "example", "wrapper", "mode", "seed")
"""What names one reply."""

_NAMES = ("model", "task", "example", "wrapper")
_FLAGS = ("parsed", "correct", "copy")
_WHOLE = ("seed", "prompt_tokens", "completion_tokens")
_NUMBERS = ("latency_s", "cost", "chance", "size_b")
_TRUTH = {
    **dict.fromkeys(("true", "1", "1.0"), True),
    **dict.fromkeys(("false", "0", "0.0"), False),
}
_SHOWN = 60
"""Characters of a wrong value that a message repeats."""
_NOTHING = ("", "nan", "null", "none", "na")


class Source(NamedTuple):
    """What a message calls the table."""

    name: str

    def error(self, message: str, line: int | None = None, field: str | None = None) -> DataError:
        """A mistake in it."""
        return DataError(message, source=self.name, line=line, field=field)


def of_rows(rows: Iterable[tuple[int, Mapping[str, Any]]], source: Source) -> pl.DataFrame:
    """Rows with their lines as a frame of texts; unknown columns keep their names only."""
    import polars as pl

    known = (*REQUIRED, *OPTIONAL)
    columns: dict[str, list[str | None]] = {name: [] for name in known}
    lines: list[int] = []
    seen: dict[str, None] = {}
    for line, row in rows:
        lines.append(line)
        seen |= dict.fromkeys(row)
        for name in known:
            columns[name].append(_text(row.get(name), source, line, name))
    texts = {n: v for n, v in columns.items() if n in seen}
    others: dict[str, Sequence[str | None]] = {
        n: [None] * len(lines) for n in seen if n not in columns
    }
    frame = pl.DataFrame({**texts, **others}, schema=dict.fromkeys((*texts, *others), pl.String))
    return frame.with_columns(line=pl.Series(lines, dtype=pl.Int64))


def _text(value: object, source: Source, line: int, field: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return None if math.isnan(value) else str(value)
    raise source.error(f"expected one value, got {type(value).__name__}", line, field)


def of_frame(frame: pl.DataFrame, source: Source) -> pl.DataFrame:
    """A frame's columns as texts."""
    import polars as pl

    for name in (*REQUIRED, *OPTIONAL):
        if name in frame.columns and frame[name].dtype.is_nested():
            raise source.error(f"expected one value a row, got {frame[name].dtype}", field=name)
    lines = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).alias("line")
    known = [c for c in frame.columns if c in (*REQUIRED, *OPTIONAL)]
    others = [pl.lit(None, pl.String).alias(c) for c in frame.columns if c not in (*known, "line")]
    return frame.select(*(pl.col(c).cast(pl.String) for c in known), *others, lines)


def checked(frame: pl.DataFrame, source: Source) -> pl.DataFrame:
    """The known columns with their types; every one of ``KEY``, the flags and ``cluster``.

    Raises:
        DataError: The first mistake, column by column.
    """
    import polars as pl

    _check_columns(frame, source)
    rows = _defaults(_named(frame, source))
    for name in _FLAGS:
        rows = _flag(rows, name, source)
    for name in (c for c in (*_WHOLE, *_NUMBERS) if c in rows.columns):
        rows = _number(rows, name, source, whole=name in _WHOLE)
    _check_words(rows, source)
    _check_outcomes(rows, source)
    _check_repeats(rows, source)
    # Repeats count from 0, as a run's do: some programs begin at 1.
    return rows.with_columns((pl.col("seed").rank("dense").cast(pl.Int64) - 1).alias("seed"))


def one_each(
    rows: pl.DataFrame, key: tuple[str, ...], column: str, source: Source
) -> dict[tuple[str, ...], Any]:
    """The one value of ``column`` for each ``key``; those without any are left out.

    Raises:
        DataError: Two rows of one key differ.
    """
    import polars as pl

    if column not in rows.columns:
        return {}
    given = rows.filter(pl.col(column).is_not_null())
    first = pl.col(column).first().over(*key)
    other = given.with_columns(first=first).filter(pl.col("first") != pl.col(column)).head(1)
    for row in other.to_dicts():
        whose = ", ".join(f"{k} {row[k]!r}" for k in key)
        raise source.error(
            f"{whose} has {row[column]!r} here and {row['first']!r} before: expected one value",
            row["line"],
            column,
        )
    return {tuple(k): v for *k, v in given.select(*key, column).unique().iter_rows()}


def _check_columns(frame: pl.DataFrame, source: Source) -> None:
    if not len(frame):
        raise source.error("expected rows, found none")
    for name in REQUIRED:
        if name not in frame.columns:
            near = difflib.get_close_matches(name, frame.columns, n=1)
            hint = f" (is {near[0]!r} meant?)" if near else ""
            raise source.error(f"column {name!r} is missing{hint}: expected {', '.join(REQUIRED)}")


def _named(frame: pl.DataFrame, source: Source) -> pl.DataFrame:
    """White space around values dropped, empty values made null; every row has its names."""
    import polars as pl

    texts = [c for c in (*REQUIRED, *OPTIONAL) if c in frame.columns]
    rows = frame.select(pl.col(texts).str.strip_chars(), "line")
    for name in texts:
        nothing = ("",) if name in (*_NAMES, "cluster", "value") else _NOTHING
        empty = pl.col(name).str.to_lowercase().is_in(nothing)
        rows = rows.with_columns(pl.when(~empty).then(pl.col(name)).alias(name))
    for name in _NAMES:
        _refuse(rows, pl.col(name).is_null(), name, "expected a name, got nothing", source)
    return rows


def _defaults(rows: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    defaults = {"seed": "0", "mode": "free", "copy": "false", "cluster": None, "status": None}
    for name, value in defaults.items():
        if name not in rows.columns:
            rows = rows.with_columns(pl.lit(value, pl.String).alias(name))
        elif value is not None:
            rows = rows.with_columns(pl.col(name).fill_null(value))
    return rows


def _flag(rows: pl.DataFrame, name: str, source: Source) -> pl.DataFrame:
    import polars as pl

    lower = pl.col(name).str.to_lowercase()
    wrong = ~lower.is_in(list(_TRUTH))
    _refuse(rows, wrong, name, "expected true, false, 1, 0 or nothing, got {!r}", source)
    return rows.with_columns(
        lower.replace_strict(_TRUTH, default=None, return_dtype=pl.Boolean).alias(name)
    )


def _number(rows: pl.DataFrame, name: str, source: Source, *, whole: bool) -> pl.DataFrame:
    import polars as pl

    number = pl.col(name).cast(pl.Float64, strict=False)
    most = 2.0**31 - 1 if whole else 1e15
    right = number.is_between(0, most) & ((number % 1 == 0) | pl.lit(not whole))
    if name == "chance":
        right &= number < 1
    what = {"chance": "a number from 0 to below 1", "size_b": "a number above 0"}.get(
        name, "a whole number from 0 on" if whole else "a number from 0 on"
    )
    if name == "size_b":
        right &= number > 0
    wrong = pl.col(name).is_not_null() & ~right.fill_null(value=False)
    _refuse(rows, wrong, name, f"expected {what}, got {{!r}}", source)
    return rows.with_columns(number.cast(pl.Int64 if whole else pl.Float64).alias(name))


def _check_words(rows: pl.DataFrame, source: Source) -> None:
    import polars as pl

    for name, words in (("mode", get_args(Mode)), ("status", [s.value for s in Status])):
        message = f"expected {', '.join(words)}, got {{!r}}"
        _refuse(rows, ~pl.col(name).is_in(list(words)), name, message, source)


def _check_outcomes(rows: pl.DataFrame, source: Source) -> None:
    import polars as pl

    parsed, correct = pl.col("parsed"), pl.col("correct")
    half = "both parsed and correct, or neither (a request that failed)"
    _refuse(rows, parsed.is_null() & correct.is_not_null(), "parsed", f"expected {half}", source)
    _refuse(rows, correct.is_null() & parsed.is_not_null(), "correct", f"expected {half}", source)
    wrong = "true, but parsed is false: a reply that did not parse cannot be correct"
    _refuse(rows, ~parsed & correct, "correct", wrong, source)
    ok = (pl.col("status") == Status.OK.value) != parsed
    _refuse(rows, ok, "status", "{!r} does not fit parsed: ok if and only if it parsed", source)
    reply = pl.col("status").is_not_null() & parsed.is_null()
    _refuse(rows, reply, "status", "{!r}, but parsed is empty: a failure has no status", source)


def _check_repeats(rows: pl.DataFrame, source: Source) -> None:
    import polars as pl

    twice = rows.filter(pl.struct(KEY).is_duplicated())
    if not len(twice):
        return
    place = pl.int_range(pl.len()).over(KEY)
    again = twice.with_columns(first=pl.col("line").first().over(KEY)).filter(place == 1).head(1)
    row = again.to_dicts()[0]
    raise source.error(
        f"the same {', '.join(KEY)} as line {row['first']}: expected every reply once; "
        "tell repeats apart by a column 'seed'",
        row["line"],
    )


def _refuse(rows: pl.DataFrame, wrong: pl.Expr, field: str, message: str, source: Source) -> None:
    """Raise about the first row that is wrong."""
    for row in rows.filter(wrong).head(1).to_dicts():
        value = row[field]
        shown = value[:_SHOWN] if isinstance(value, str) else value
        raise source.error(message.format(shown), row["line"], field)
