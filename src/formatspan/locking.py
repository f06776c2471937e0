"""One process at a time writes into a run's folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from formatspan.errors import RunError
from formatspan.paths import usable

LOCK_NAME = ".lock"


class Held(RunError):
    """Another process holds the folder."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder.

    Raises:
        Held: Another process does.
        RunError: It cannot be written to.
    """
    lock = FileLock(folder / LOCK_NAME, timeout=0)
    with usable(folder, "the run's folder cannot be written to"):
        try:
            lock.acquire()
        except Timeout:
            raise Held(
                f"{folder}: another process is running in this folder: wait for it, "
                "or choose another --out"
            ) from None
    try:
        yield
    finally:
        lock.release()
