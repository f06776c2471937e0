"""A run's folder: ``study.yaml``, ``run.sqlite`` and what the reports write."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from formatspan.errors import RunError
from formatspan.locking import LOCK_NAME, locked
from formatspan.paths import usable

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

    @classmethod
    def of(cls, run: Run | Path | str) -> RunFolder:
        """The folder of a run, given as itself or as its path.

        Raises:
            RunError: It is neither.
        """
        if isinstance(run, Run):
            return cls(run.folder)
        if isinstance(run, Path | str):
            return cls(Path(run))
        raise RunError(f"expected a run or the path of its folder, got {type(run).__name__}")

    def make(self) -> tuple[Path, ...]:
        """Create the folder; returns the folders that were not there before, the deepest first.

        Raises:
            RunError: The path is a file, a folder with other things in it, or cannot be used.
            StorageError: The disk is full.
        """
        with usable(self.path, "the run's folder cannot be created"):
            self._refuse_strange()
            missing = [p for p in (self.path, *self.path.parents) if not p.exists()]
            self.path.mkdir(parents=True, exist_ok=True)
        return tuple(missing)

    def _refuse_strange(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise RunError(f"{self.path}: is a file; --out names the run's folder")
        if not self.path.is_dir() or self.store.exists():
            return
        strange = {p.name for p in self.path.iterdir() if not p.name.startswith(".")}
        strange.discard(STUDY_NAME)
        if strange:
            raise RunError(
                f"{self.path}: holds {min(strange)!r} but no {STORE_NAME}: "
                "--out needs a new or empty folder, or that of a run"
            )

    def remove(self, made: Sequence[Path]) -> None:
        """Take back what a run that never began has left, the folders of ``made`` if empty."""
        for name in (STORE_NAME, f"{STORE_NAME}-wal", f"{STORE_NAME}-shm", LOCK_NAME):
            (self.path / name).unlink(missing_ok=True)
        for folder in made:
            with suppress(OSError):  # something else has come to lie there
                folder.rmdir()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder: one process writes to a run at a time.

        Raises:
            RunError: Another process holds it.
        """
        with locked(self.path):
            yield

    def set_aside(self) -> Path | None:
        """Move a finished or begun run out of the way; returns where to, None if none was."""
        if not self.store.exists():
            return None
        path, number = self.path.resolve(), 1  # "." has no name of its own
        while (target := path.with_name(f"{path.name}.old-{number}")).exists():
            number += 1
        with self.locked(), usable(path, "the earlier run cannot be set aside"):
            path.rename(target)
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
    unpriced: Mapping[str, int] = field(default_factory=dict)
    """Replies whose cost is not known, by model; empty where no cost is."""

    @property
    def complete(self) -> bool:
        """Whether every request has its reply."""
        return self.done == self.points


def default_folder(study_name: str) -> RunFolder:
    """The folder of a study that names none: ``runs/<name>``.

    Letters of every script stay. A name that is no safe file name is shortened and given a hash,
    so that two names never share a folder.
    """
    # File systems differ in whether they keep a letter and its accent apart.
    composed = unicodedata.normalize("NFC", study_name)
    safe = "".join(c if _is_safe(c) else "/" for c in composed)
    safe = re.sub("/+", "-", safe).strip("-.")[:_SAFE_CHARS]
    if safe != study_name:
        digest = hashlib.sha256(study_name.encode("utf-8", "replace")).hexdigest()[:8]
        safe = f"{safe}-{digest}" if safe else digest
    return RunFolder(Path(DEFAULT_ROOT) / safe)


def _is_safe(character: str) -> bool:
    """Whether a character may stand in a file name: no separator, nothing a shell reads."""
    if character.isascii():
        return character.isalnum() or character in "._-"
    return character.isprintable()  # no space, no control or direction mark
