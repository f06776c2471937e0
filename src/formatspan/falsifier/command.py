"""The public ``falsify``: asks what is missing, if it may, and reads the findings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from formatspan.errors import StudyError
from formatspan.falsifier.asking import ask_for, outlook
from formatspan.falsifier.reading import findings
from formatspan.falsifier.result import ARMS, Falsification
from formatspan.folder import Run, RunFolder
from formatspan.session import Listener, Silent
from formatspan.store import Store


def falsify(
    run: Run | Path | str,
    *,
    arms: Sequence[str] | None = None,
    ask: bool = False,
    again: bool = False,
    data_dir: Path | str | None = None,
    listener: Listener | None = None,
) -> Falsification:
    """Tell whether the span of a run survives other ways of scoring and decoding.

    Args:
        run: A run or its folder.
        arms: Names out of `ARMS`; by default all.
        ask: Ask the models for arms that are missing; without it they are left out, which
            the result says.
        again: With ``ask``: also ask again, once, every question whose reply could not be
            read, so that repair policies can be compared.
        data_dir: Folder with the rows of the tasks, for constrained decoding.
        listener: Hears how asking goes.

    Raises:
        UserError: The folder is not a run with free replies, or there is no such arm.
        StorageError: The disk is full or unwritable; what was committed stays.
    """
    path = Path(run.folder if isinstance(run, Run) else run)
    wanted = checked(arms)
    absent = {}
    if ask:
        seen = outlook(path, wanted, again=again)
        absent = dict(seen.absent)
        ask_for(path, seen.prices, listener or Silent(), Path(data_dir) if data_dir else None)
    with Store.read(RunFolder(path).store) as store:
        return findings(store, wanted, absent)


def checked(arms: Sequence[str] | None) -> tuple[str, ...]:
    """The arms that are meant, in the order of `ARMS`.

    Raises:
        StudyError: There is no such arm.
    """
    if arms is None:
        return ARMS
    for name in arms:
        if name not in ARMS:
            raise StudyError(f"arm {name!r}: expected {', '.join(ARMS)}")
    return tuple(name for name in ARMS if name in arms)
