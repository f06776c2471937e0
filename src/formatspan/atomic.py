"""Whole files at once: beside the target first, then in its place."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from formatspan.errors import StorageError

_NAME_CHARS = 40
"""Characters of the target's name that a temporary name shows; file systems take 255 bytes."""


def write_bytes(path: Path, content: bytes) -> None:
    """Write a whole file.

    Raises:
        StorageError: It cannot be written.
    """
    write_with(path, lambda temporary: temporary.write_bytes(content))


def write_text(path: Path, text: str) -> None:
    """Write a whole text file as UTF-8; lone surrogates, which it cannot hold, are spelled out.

    Raises:
        StorageError: It cannot be written.
    """
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_with(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a temporary file, which then takes the place of ``path``.

    Raises:
        StorageError: It cannot be written.
    """
    try:
        temporary = _created_beside(path)
        try:
            write(temporary)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror}") from None


def _created_beside(path: Path) -> Path:
    """A new empty file in the folder of ``path``, with the permissions that the umask leaves."""
    temporary = path.with_name(f".{path.name[:_NAME_CHARS]}.{secrets.token_hex(4)}")
    # Not tempfile.mkstemp, whose files are for their owner alone.
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    return temporary
