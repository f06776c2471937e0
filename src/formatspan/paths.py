"""Paths that the user names: whether they can be used, known before anything is done."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from formatspan.errors import RunError, StorageError

_DISK = frozenset(
    getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EIO") if hasattr(errno, name)
)
"""Errors that speak of the disk, not of the path."""


@contextmanager
def usable(path: Path, what: str) -> Iterator[None]:
    """Errors of the file system as ours; for what is done before a run writes anything.

    Raises:
        RunError: The path cannot be used, which whoever named it can mend.
        StorageError: The disk is full or fails.
    """
    try:
        yield
    except OSError as error:
        text = f"{path}: {what}: {error.strerror or error}"
        raise (StorageError if error.errno in _DISK else RunError)(text) from None
    except ValueError as error:  # a zero character in a path
        raise RunError(f"{str(path)!r}: {what}: {error}") from None


def readable_folder(path: Path, option: str) -> None:
    """Refuse a path that is no folder, also where nothing would be read from it.

    Raises:
        RunError: There is no such folder.
    """
    with usable(path, f"{option} cannot be read"):
        if not path.is_dir():
            what = "is a file" if path.exists() else "no such folder"
            raise RunError(f"{path}: {what}; {option} names a folder with <task>.jsonl files")


def writable_file(path: Path, option: str) -> None:
    """Refuse a path at which no file can be written; an existing file is left as it is.

    Raises:
        RunError: It is a folder, its folder is missing, or may not be written to.
    """
    with usable(path, f"{option} cannot be written there"):
        if path.is_dir():
            raise RunError(f"{path}: is a folder; {option} names a file")
        if not path.parent.is_dir():
            raise RunError(f"{path}: {option}: there is no folder {path.parent}")
        if path.exists() and not path.is_file():
            raise RunError(f"{path}: {option}: expected a file")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise RunError(f"{path}: {option} cannot be written there: no permission")


def writable_folder(path: Path, option: str) -> None:
    """Make a folder for files that are written later, so that a wrong path is known at once.

    Raises:
        RunError: It is a file, or cannot be made or written to.
    """
    with usable(path, f"{option} cannot be created"):
        if path.exists() and not path.is_dir():
            raise RunError(f"{path}: is a file; {option} names a folder")
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK):
            raise RunError(f"{path}: {option} cannot be written to: no permission")
