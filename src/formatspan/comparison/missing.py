"""What the older side of a comparison has and the newer lacks: a gate must not pass without it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from formatspan.comparison.sides import Common, Side
from formatspan.counting import counted
from formatspan.errors import RunError

EXAMPLES = "examples"
"""Stands for any number of examples in the names of what was dropped on purpose."""


class Absent(NamedTuple):
    """Something that the newer side should have."""

    kind: str
    """Model, task, wrapper, decoding mode or examples."""
    name: str
    """By which it is said to be dropped."""
    text: str
    """A sentence's beginning about it."""


def absent(
    a: Side,
    found: Common,
    *,
    b: Side,
    matched: Collection[str] | None,
    dropped: Collection[str],
) -> tuple[Absent, ...]:
    """Models, tasks, wrappers and modes of ``a`` that are not compared, save those dropped.

    Args:
        a: The older side.
        found: What both have.
        b: The newer side.
        matched: Models of ``a`` that are compared; None if they were chosen by the user.
        dropped: Names of what ``b`` lacks on purpose.

    Raises:
        RunError: A dropped name is unknown or still there.
    """
    kinds: dict[str, tuple[Sequence[str], Collection[str]]] = {
        "model": (a.models, b.models if matched is None else matched),
        "task": ([t.name for t in a.study.tasks], found.tasks),
        "wrapper": ([w.name for w in a.study.wrappers], found.wrappers),
        "decoding mode": (a.study.decoding, found.modes),
    }
    lacking = {k: [n for n in had if n not in has] for k, (had, has) in kinds.items()}
    for name in dropped:
        _check(name, a, b, kinds, lacking)
    if matched is None:
        lacking["model"] = []
    there = {w.name for w in b.study.wrappers}
    return tuple(
        Absent(kind, name, _text(kind, name, b, changed=kind == "wrapper" and name in there))
        for kind, names in lacking.items()
        for name in names
        if name not in dropped
    )


def _text(kind: str, name: str, b: Side, *, changed: bool) -> str:
    what = name if kind == "model" else f"{kind} {name}"
    return f"{what}: has other templates in {b.name}" if changed else f"{what}: missing in {b.name}"


def _check(
    name: str,
    a: Side,
    b: Side,
    kinds: Mapping[str, tuple[Sequence[str], Collection[str]]],
    lacking: Mapping[str, Collection[str]],
) -> None:
    if name == EXAMPLES or any(name in names for names in lacking.values()):
        return
    for kind, (had, _) in kinds.items():
        if name in had:
            raise RunError(f"{b.name}: has {kind} {name!r}, so it was not dropped")
    known = dict.fromkeys(n for had, _ in kinds.values() for n in had)
    raise RunError(
        f"{a.name}: no model, task, wrapper or mode {name!r}: expected {', '.join(known)}, or "
        f"{EXAMPLES}"
    )


def absent_examples(
    rows: Sequence[Mapping[str, Any]], b: Side, dropped: Collection[str]
) -> Iterator[Absent]:
    """Examples that ``a`` has under all common wrappers and that could not be compared."""
    for row in rows:
        had = row["n_a"]
        left = 0 if row["note"] else had - row["n"]
        if left and EXAMPLES not in dropped:
            name = row["model_a"] if row["mode"] == "free" else f"{row['model_a']} ({row['mode']})"
            of = counted(had, "example")
            text = f"{name}: {b.name} lacks replies to {left:,} of {of}"
            yield Absent(EXAMPLES, EXAMPLES, text)
