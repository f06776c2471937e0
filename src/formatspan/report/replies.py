"""The raw replies of a run, filtered: for the terminal, for Parquet, for the page's explorer."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from formatspan.atomic import write_with
from formatspan.errors import StudyError
from formatspan.quoting import bare, split
from formatspan.records import Level, Status
from formatspan.store import Store
from formatspan.study import Study
from formatspan.table import scored, study_of

if TYPE_CHECKING:
    import polars as pl

KEY = ("model", "task", "example", "wrapper", "mode", "seed")
"""What names one reply."""
GROUP = ("model", "task", "example", "mode", "seed")
"""What names the replies to one question under all wrappers."""
_TEXTS = """
SELECT g.text, g.reasoning FROM points p
LEFT JOIN generations g ON g.request = coalesce(p.copy_of, p.request)
WHERE p.model = ? AND p.task = ? AND p.example_id = ? AND p.wrapper = ? AND p.mode = ?
  AND p.seed = ?
"""
_YES = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class ReplyFilter:
    """Which replies are wanted; None takes all."""

    model: str | None = None
    task: str | None = None
    wrapper: str | None = None
    mode: str | None = None
    status: str | None = None
    """One of the extraction's statuses, or ``failure`` for requests without a reply."""
    correct: bool | None = None
    flips: bool | None = None
    """Questions that are right under one wrapper and wrong or unparsed under another."""

    @classmethod
    def parse(cls, terms: Sequence[str]) -> ReplyFilter:
        """A filter of terms such as ``model=phi-4``, ``status=ambiguous``, ``flips``.

        Terms may be joined by commas; a value that holds one stands in double quotes, as in
        ``model="accuracy=0.8,comply=0.9"``. A bare ``flips`` or ``correct`` means yes.

        Raises:
            StudyError: A key or a value is unknown, or a quotation mark is left open.
        """
        found: dict[str, str | bool] = {}
        for term in (t for joined in terms for t in split(joined, ",", "--filter")):
            if term.strip():
                key, equals, value = term.strip().partition("=")
                key = key.strip()
                found[_key(key)] = _value(key, bare(value) if equals else "yes")
        return cls(**found)  # type: ignore[arg-type]  # _value gives each key its own type

    def expression(self) -> pl.Expr:
        """The filter over a scored table, see `formatspan.table`."""
        import polars as pl

        wanted = pl.lit(True)
        for name in ("model", "task", "wrapper", "mode"):
            value = getattr(self, name)
            if value is not None:
                wanted &= pl.col(name).cast(pl.String) == value
        if self.status == "failure":
            wanted &= pl.col("status").is_null()
        elif self.status is not None:
            wanted &= (pl.col("status").cast(pl.String) == self.status).fill_null(value=False)
        if self.correct is not None:
            wanted &= pl.col("correct").fill_null(value=not self.correct) == self.correct
        return wanted if self.flips is None else wanted & (flips() == self.flips)


def flips() -> pl.Expr:
    """Whether a question is right under one wrapper and not under another, at the same seed."""
    import polars as pl

    right = pl.col("correct")
    return (right.any().over(GROUP) & (~right).any().over(GROUP)).fill_null(value=False)


def replies(
    store_path: Path,
    chosen: ReplyFilter | None = None,
    *,
    level: Level | None = None,
    table: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Replies of a run with their texts, scored at one level.

    Args:
        store_path: The run's SQLite file.
        chosen: Which replies; all by default. Copies of deterministic replies are left out.
        level: Extraction level; the study's own by default.
        table: The scored table of the run at that level, where it is at hand.

    Returns:
        The columns of the scored table, ``text``, ``reasoning``, ``gold`` and ``question``.

    Raises:
        RunError: The file is not a store, or its study was never planned.
        StudyError: The filter names a model, task or wrapper that the study lacks.
    """
    import polars as pl

    wanted = chosen or ReplyFilter()
    with Store.read(store_path) as store:
        study = study_of(store)
        _check(wanted, study)
        found = scored(store, study, level or study.level) if table is None else table
        kept = found.filter(~pl.col("copy")).filter(wanted.expression())
        texts = [text_of(store, key) for key in kept.select(KEY).iter_rows()]
        asked = {(e.task, e.id): e for e in store.examples()}
    examples = [asked[key] for key in kept.select("task", "example").iter_rows()]
    return kept.with_columns(
        pl.Series("text", [t[0] for t in texts], dtype=pl.String),
        pl.Series("reasoning", [t[1] for t in texts], dtype=pl.String),
        pl.Series("gold", [str(e.gold) for e in examples], dtype=pl.String),
        pl.Series("question", [_valid(e.question) for e in examples], dtype=pl.String),
    )


def write_parquet(frame: pl.DataFrame, path: Path) -> None:
    """Write replies as Parquet, whole or not at all.

    Raises:
        StorageError: It cannot be written.
    """
    write_with(path, frame.write_parquet)


def text_of(store: Store, key: Sequence[object]) -> tuple[str | None, str | None]:
    """Text and reasoning of the reply named by ``KEY``; None without a reply."""
    row = store.connection.execute(_TEXTS, tuple(key)).fetchone()
    return (None, None) if row is None else (row[0], row[1])


def _check(wanted: ReplyFilter, study: Study) -> None:
    for key, entries in (
        ("model", study.models),
        ("task", study.tasks),
        ("wrapper", study.wrappers),
    ):
        value, names = getattr(wanted, key), [entry.name for entry in entries]
        if value is not None and value not in names:
            known = ", ".join(f'"{name}"' if "," in name else name for name in names)
            raise StudyError(f"{key} {value!r} is not in the study: expected {known}")


def _key(key: str) -> str:
    known = tuple(ReplyFilter.__dataclass_fields__)
    if key in known:
        return key
    close = difflib.get_close_matches(key, known, n=1)
    hint = f", did you mean {close[0]!r}?" if close else f": expected {', '.join(known)}"
    quotes = '; a value with a comma stands in double quotes, such as model="a,b"'
    raise StudyError(f"--filter: unknown key {key!r}{hint}{quotes}")


def _value(key: str, value: str) -> str | bool:
    if key in ("correct", "flips"):
        if value.lower() not in _YES:
            raise StudyError(f"--filter {key}={value}: expected yes or no")
        return _YES[value.lower()]
    if key == "status" and value not in (known := list(_statuses())):
        raise StudyError(f"--filter status={value}: expected {', '.join(known)}")
    if key == "mode" and value not in ("free", "constrained"):
        raise StudyError(f"--filter mode={value}: expected free or constrained")
    return value


def _statuses() -> Iterator[str]:
    yield from (s.value for s in Status)
    yield "failure"


def _valid(text: str) -> str:
    """``text`` without lone surrogates, which Parquet cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
