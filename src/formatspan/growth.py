"""How a run grows: the same command with more of something asks only what is new.

What a run may gain: models, tasks, wrappers, examples, seeds and decoding modes. What exists
keeps its parameters: a changed one is refused by name. What only labels or prices an existing
entry, or changes how results are shown, may change freely.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from formatspan.errors import RunError
from formatspan.study import Study

ENTRY_LISTS = ("models", "tasks", "wrappers")
COUNTS = ("examples", "seeds")
FREE = ("name", "level", "matched_threshold")
"""Study keys that shape no reply."""
FREE_IN_ENTRY = ("api_key_env", "price", "family", "size_b", "concurrency")
"""Keys of an entry that shape no reply."""
ADDABLE_IN_ENTRY = ("constrain",)
"""Keys of an entry that may be stated where they were not: free replies do not depend on them."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


def merge(old: Study, new: Study) -> Study:
    """The study of a run that began as ``old`` and is continued as ``new``.

    Raises:
        RunError: ``new`` changes a parameter of what exists; names every such key.
    """
    changed = [
        f"{key}: {_plain(getattr(old, key))} there, {_plain(getattr(new, key))} here"
        for key in _changed_keys(old, new)
    ]
    changed += [c for key in ENTRY_LISTS for c in _changed_entries(key, old, new)]
    if changed:
        raise RunError(
            f"this run was made with other parameters ({'; '.join(changed)}): "
            "use the same ones, another --out, or --fresh to start anew"
        )
    merged: dict[str, Any] = {
        key: _union(getattr(old, key), getattr(new, key)) for key in ENTRY_LISTS
    }
    merged |= {key: max(getattr(old, key), getattr(new, key)) for key in COUNTS}
    merged["decoding"] = tuple(dict.fromkeys((*old.decoding, *new.decoding)))
    return new.model_copy(update=merged)


def refuse_other(old: Study, new: Study, run: Path) -> None:
    """Refuse a run that was found by chance, as ``new`` has no name and no folder was given.

    The same command with more or fewer models or tasks is the same study; one with others may be
    meant for a run of its own.

    Raises:
        RunError: ``new`` has other models or tasks than the run, which began as ``old``.
    """
    if "name" in new.model_fields_set:
        return
    for key in ("models", "tasks"):
        there, here = ([e.name for e in getattr(s, key)] for s in (old, new))
        if not (set(there) <= set(here) or set(here) <= set(there)):
            raise RunError(
                f"{run}: holds a run with other {key} ({', '.join(there)}): give this study a name "
                f"(--set name=NAME), or say --out {run} to add it to that run"
            )


def _changed_keys(old: Study, new: Study) -> list[str]:
    grows = (*ENTRY_LISTS, *COUNTS, *FREE, "decoding")
    keys = [key for key in Study.model_fields if key not in grows]
    return [key for key in keys if getattr(old, key) != getattr(new, key)]


def _plain(value: object) -> str:
    """A value as a study file has it."""
    return str(value.model_dump(exclude_none=True) if isinstance(value, BaseModel) else value)


def _changed_entries(key: str, old: Study, new: Study) -> list[str]:
    before = {entry.name: entry for entry in getattr(old, key)}
    return [
        f"{key}[{entry.name}].{field}"
        for entry in getattr(new, key)
        if entry.name in before
        for field in _changed_fields(before[entry.name], entry)
    ]


def _changed_fields(old: BaseModel, new: BaseModel) -> list[str]:
    fields = [f for f in type(old).model_fields if f not in FREE_IN_ENTRY]
    changed = [f for f in fields if _meant(f, getattr(old, f)) != _meant(f, getattr(new, f))]
    return [f for f in changed if f not in ADDABLE_IN_ENTRY or getattr(old, f) is not None]


def _meant(field: str, value: object) -> object:
    """A value as it is compared: a file by its whole path."""
    return Path(value).resolve() if field == "file" and isinstance(value, str) else value


def _union(old: Sequence[_Named], new: Sequence[_Named]) -> tuple[_Named, ...]:
    """Old entries in their order, as ``new`` labels them, then those that are new."""
    latest = {entry.name: entry for entry in (*old, *new)}
    return tuple(latest.values())
