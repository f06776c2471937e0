"""A run's folder: ``study.yaml``, ``run.sqlite`` and what the reports write."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from formatspan.errors import RunError, StorageError

STORE_NAME = "run.sqlite"
STUDY_NAME = "study.yaml"
DEFAULT_ROOT = "runs"
_SAFE_CHARS = 60


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where one run lives."""

    path: Path

    @property
    def store(self) -> Path:
        """The SQLite file with requests and replies."""
        return self.path / STORE_NAME

    @property
    def study(self) -> Path:
        """The study as resolved: every key, every template."""
        return self.path / STUDY_NAME

    def make(self) -> None:
        """Create the folder.

        Raises:
            RunError: The path is a file, or a folder with other things in it.
            StorageError: It cannot be created.
        """
        if self.path.exists() and not self.path.is_dir():
            raise RunError(f"{self.path}: is a file; --out names the run's folder")
        if self.path.is_dir() and not self.store.exists():
            strange = [p.name for p in self.path.iterdir() if not p.name.startswith(".")]
            if set(strange) - {STUDY_NAME}:
                raise RunError(
                    f"{self.path}: holds {sorted(strange)[0]!r} but no {STORE_NAME}: "
                    "--out needs a new or empty folder, or that of a run"
                )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{self.path}: cannot be created: {error.strerror}") from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder: one process writes to a run at a time.

        Raises:
            RunError: Another process holds it.
        """
        lock = FileLock(self.path / ".lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise RunError(
                f"{self.path}: another process is running in this folder: wait for it, "
                "or choose another --out"
            ) from None
        except OSError as error:
            raise StorageError(f"{self.path}: cannot be locked: {error.strerror}") from None
        try:
            yield
        finally:
            lock.release()

    def set_aside(self) -> Path | None:
        """Move a finished or begun run out of the way; returns where to, None if none was."""
        if not self.store.exists():
            return None
        number = 1
        while (target := self.path.with_name(f"{self.path.name}.old-{number}")).exists():
            number += 1
        with self.locked():
            self.path.rename(target)
        return target


@dataclass(frozen=True, slots=True)
class Run:
    """A run after a session: where it is and how far it came."""

    folder: Path
    points: int
    """Requests of the whole grid; copies of deterministic replies are not among them."""
    done: int
    asked: int
    """Replies that this session brought."""
    shared: int
    """Replies that came from the shared cache."""
    failed: int
    """Requests that failed in this session and are pending again."""
    stopped: Mapping[str, str]
    """Models whose queue was stopped, and why."""
    failures: Mapping[str, str]
    """The last failure of each model in this session: kind and message."""
    interrupted: bool
    seconds: float
    """Time that asking took, loading of engines included."""
    spent: float = 0.0
    """US dollars that the run cost so far, where it is known."""
    spent_on: Mapping[str, float] = field(default_factory=dict)
    """The same by model."""

    @property
    def complete(self) -> bool:
        """Whether every request has its reply."""
        return self.done == self.points


def default_folder(study_name: str) -> RunFolder:
    """The folder of a study that names none: ``runs/<name>``.

    A name that is no safe file name is shortened and given a hash, so that two names never
    share a folder.
    """
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", study_name).strip("-.")[:_SAFE_CHARS]
    if safe != study_name:
        digest = hashlib.sha256(study_name.encode("utf-8", "replace")).hexdigest()[:8]
        safe = f"{safe}-{digest}" if safe else digest
    return RunFolder(Path(DEFAULT_ROOT) / safe)
