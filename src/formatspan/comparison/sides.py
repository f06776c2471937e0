"""The two sides of a comparison, and what they have in common."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec.structs import replace

from formatspan.counting import counted
from formatspan.errors import RunError
from formatspan.folder import Run, RunFolder
from formatspan.imported import import_table, is_table
from formatspan.inference import panel_of
from formatspan.records import IMPORTED, Example, Level
from formatspan.stats.panel import Missing, Panel
from formatspan.store import Store
from formatspan.study import Study, WrapperEntry
from formatspan.table import checked_level, scored, study_of

if TYPE_CHECKING:
    import polars as pl

_SHAPING = ("max_tokens", "temperature", "top_p", "stop", "budget", "budget_unit")
"""Keys of a study that shape replies: where they differ, so may the replies."""
_KEY = ("task", "example")


@dataclass(frozen=True)
class Side:
    """One run or table, scored."""

    name: str
    table: pl.DataFrame
    study: Study
    level: str
    examples: dict[tuple[str, str], Example] | None
    """None for a table, which holds no questions."""

    @property
    def imported(self) -> bool:
        """Whether it was scored elsewhere."""
        return self.level == IMPORTED

    @property
    def models(self) -> list[str]:
        """Names of its models, in the study's order."""
        return [m.name for m in self.study.models]


class Common(NamedTuple):
    """What both sides have."""

    a: pl.DataFrame
    """Rows of the common tasks, examples and wrappers."""
    b: pl.DataFrame
    tasks: tuple[str, ...]
    wrappers: tuple[str, ...]
    modes: tuple[str, ...]
    warnings: tuple[str, ...]


def side(given: object, level: Level | None) -> Side:
    """Read and score one side: a run, its folder, or a table.

    Raises:
        UserError: It is none of these, or has a mistake.
    """
    if isinstance(given, Run):
        return _run(RunFolder(given.folder), level)
    if isinstance(given, str | Path) and not is_table(Path(given)):
        return _run(RunFolder(Path(given)), level)
    found = import_table(given)
    name = str(given) if isinstance(given, str | Path) else "table"
    return Side(name, found.table, found.study, IMPORTED, None)


def _run(folder: RunFolder, level: Level | None) -> Side:
    checked_level(level)
    with Store.read(folder.store) as store:
        study = study_of(store)
        chosen: Level = level or study.level
        examples = {(e.task, e.id): e for e in store.examples()}
        return Side(str(folder.path), scored(store, study, chosen), study, chosen, examples)


def common(a: Side, b: Side) -> Common:
    """Common tasks, examples, wrappers and modes, and a warning about all that differs.

    Raises:
        RunError: There are none.
    """
    warnings = list(_differences(a, b))
    wrappers = _wrappers(a, b, warnings)
    tasks = _shared("task", a, [t.name for t in a.study.tasks], b, [t.name for t in b.study.tasks])
    modes = _shared("decoding mode", a, a.study.decoding, b, b.study.decoding)
    kept = _examples(a, b, tasks, warnings)
    rows_a, rows_b = (_of(s.table, kept, wrappers) for s in (a, b))
    return Common(rows_a, rows_b, tasks, wrappers, modes, tuple(warnings))


def _shared(what: str, a: Side, in_a: Any, b: Side, in_b: Any) -> tuple[str, ...]:  # noqa: ANN401
    shared = tuple(n for n in in_a if n in in_b)
    if not shared:
        raise RunError(
            f"no {what} in common: {a.name} has {', '.join(in_a)}, {b.name} has {', '.join(in_b)}"
        )
    return shared


def _wrappers(a: Side, b: Side, warnings: list[str]) -> tuple[str, ...]:
    """Wrappers of both that are the same to the letter, where templates are known."""
    entries = [{w.name: w for w in s.study.wrappers} for s in (a, b)]
    named = _shared("wrapper", a, entries[0], b, entries[1])
    same = tuple(n for n in named if _alike(entries[0][n], entries[1][n]))
    changed = [n for n in named if n not in same]
    if not same:
        raise RunError(f"no wrapper in common: the templates of {', '.join(changed)} differ")
    if changed:
        warnings.append(f"left out, their templates differ: wrapper {', '.join(changed)}")
    for one, other in ((0, 1), (1, 0)):
        alone = [n for n in entries[one] if n not in entries[other]]
        if alone:
            name = (a, b)[one].name
            warnings.append(
                f"wrappers differ: only {name} has {', '.join(alone)}; both sides are computed "
                f"again on {', '.join(same)}"
            )
    return same


def _alike(a: WrapperEntry, b: WrapperEntry) -> bool:
    known = a.messages and b.messages
    return not known or (a.messages, a.contract) == (b.messages, b.contract)


def _differences(a: Side, b: Side) -> list[str]:
    if a.imported != b.imported:
        return [f"{(a if a.imported else b).name} was scored elsewhere: by other rules, maybe"]
    if a.imported:
        return []
    pairs = ((key, getattr(a.study, key), getattr(b.study, key)) for key in _SHAPING)
    return [f"{key} differs: {x!r} and {y!r}" for key, x, y in pairs if x != y]


def _examples(a: Side, b: Side, tasks: tuple[str, ...], warnings: list[str]) -> pl.DataFrame:
    """The common examples of the common tasks, with one cluster each: that of ``a``."""
    import polars as pl

    texts = [s.table.with_columns(pl.col("task").cast(pl.String)) for s in (a, b)]
    mine, others = (t.select(*_KEY, "cluster").unique(_KEY) for t in texts)
    both = mine.join(others.select(_KEY), on=_KEY, how="semi").filter(pl.col("task").is_in(tasks))
    if a.examples is not None and b.examples is not None:
        pairs = [(a.examples.get(k), b.examples.get(k)) for k in both.select(_KEY).iter_rows()]
        both = both.filter(pl.Series([_same(x, y) for x, y in pairs], dtype=pl.Boolean))
        if len(both) < len(pairs):
            warnings.append(
                f"left out, the same id stands for another question: "
                f"{counted(len(pairs) - len(both), 'example')}"
            )
    for name, has in ((a.name, mine), (b.name, others)):
        more = len(has.filter(pl.col("task").is_in(tasks))) - len(both)
        if more:
            used = "is" if more == 1 else "are"
            warnings.append(f"examples differ: {more} of {name} {used} not used")
    return both


def _same(a: Example | None, b: Example | None) -> bool:
    """Whether two examples ask the same; their clusters and metadata may differ."""
    if a is None or b is None:
        return a is b
    return replace(a, cluster="", metadata={}) == replace(b, cluster="", metadata={})


def _of(table: pl.DataFrame, kept: pl.DataFrame, wrappers: tuple[str, ...]) -> pl.DataFrame:
    import polars as pl

    rows = table.with_columns(pl.col("model", "task", "wrapper", "mode").cast(pl.String))
    rows = rows.filter(pl.col("wrapper").is_in(wrappers)).drop("cluster")
    return rows.join(kept, on=_KEY, how="inner")


def indexed_in(a: Side, found: Common, model: str, mode: str) -> int:
    """Examples of ``a`` with replies under every common wrapper, over the common tasks."""
    import polars as pl

    rows = a.table.with_columns(pl.col("model", "task", "wrapper", "mode").cast(pl.String))
    rows = rows.filter(
        (pl.col("model") == model)
        & (pl.col("mode") == mode)
        & pl.col("task").is_in(found.tasks)
        & pl.col("wrapper").is_in(found.wrappers)
    )
    panel = panel_of(rows, [model], found.tasks, found.wrappers)
    return int(sum(t.means.n[0] for t in panel.tasks))


def examples_of(
    found: Common, model_a: str, model_b: str, mode: str
) -> tuple[Panel, Panel] | Missing:
    """The counts of one model of each side, on the examples that both were asked."""
    import polars as pl

    sides = [
        rows.filter((pl.col("model") == model) & (pl.col("mode") == mode))
        for rows, model in ((found.a, model_a), (found.b, model_b))
    ]
    there = [part.select(_KEY).unique() for part in sides]
    both = there[0].join(there[1], on=_KEY, how="semi")
    if not len(both):
        return Missing("no example was asked of both")
    parts = [part.join(both, on=_KEY, how="semi") for part in sides]
    axes = (found.tasks, found.wrappers)
    return cast(
        "tuple[Panel, Panel]",
        tuple(panel_of(p, [m], *axes) for p, m in zip(parts, (model_a, model_b), strict=True)),
    )
