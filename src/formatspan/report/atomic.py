"""Whole files at once: beside the target first, then in its place."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from formatspan.errors import StorageError


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
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
        temporary = Path(name)
        try:
            write(temporary)
            temporary.chmod(0o644)  # mkstemp's files are for their owner alone
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror}") from None
