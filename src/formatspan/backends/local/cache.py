"""Keeps what was made of a model file, so that it is made once.

``<cache>/local/<checksum>-<format>/`` holds ``tokenizer/`` and ``model/``, the engine's own
files. Each appears whole or not at all; a lock keeps two processes from making it twice.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from filelock import FileLock
from platformdirs import user_cache_path

from formatspan.backends.local.gguf_file import Facts, ModelFile
from formatspan.backends.local.models import Source
from formatspan.backends.local.runtime import genai, versions
from formatspan.errors import BackendError

FOLDER_VARIABLE = "FORMATSPAN_CACHE"
"""Environment variable that names another cache folder."""

MODEL_FILE = "openvino_model.xml"
"""The engine's name for its form of a model, in the folder that `ModelCache.model` gives."""

_FACTS = "facts.json"
_LAYOUT = 1
"""Raised whenever what is kept is made differently."""

log = logging.getLogger(__name__)


class ModelCache:
    """What was made of one model file.

    Args:
        source: The model file.
        root: Cache folder; by default the user's, or the one that `FOLDER_VARIABLE` names.
    """

    def __init__(self, source: Source, root: Path | None = None) -> None:
        made_with = f"{_LAYOUT}-{versions()['openvino-genai']}"
        self.source = source
        self.folder = (root or cache_folder()) / "local" / f"{source.sha256}-f16-{made_with}"

    def tokenizer(self) -> Path:
        """Folder of the tokenizer; made in a few seconds where it is missing."""
        return self._made("tokenizer", self._make_tokenizer)

    def model(self) -> Path:
        """Folder of the model; made in about half a minute where it is missing."""
        return self._made("model", self._make_model)

    def facts(self) -> Facts:
        """Facts of the model file."""
        text = (self.tokenizer() / _FACTS).read_text(encoding="utf-8")
        data: dict[str, Any] = json.loads(text)
        return Facts(**{**data, "stop_ids": tuple(data["stop_ids"])})

    def _made(self, name: str, make: Callable[[Path], None]) -> Path:
        target = self.folder / name
        if target.is_dir():
            return target
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / f"{name}.lock"):
                if not target.is_dir():
                    self._make(target, make)
        except OSError as error:
            raise BackendError(
                f"the cache folder {self.folder} cannot be written ({error.strerror or error}): "
                f"free some space, or name another with {FOLDER_VARIABLE}"
            ) from error
        return target

    def _make(self, target: Path, make: Callable[[Path], None]) -> None:
        for left in self.folder.glob(f"{target.name}.tmp*"):  # of a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        temporary = Path(tempfile.mkdtemp(prefix=f"{target.name}.tmp", dir=self.folder))
        try:
            make(temporary)
            os.replace(temporary, target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _make_tokenizer(self, folder: Path) -> None:
        log.info("preparing the tokenizer of %s, once", self.source.path.name)
        file = ModelFile(self.source.path)
        (folder / _FACTS).write_text(json.dumps(asdict(file.facts())), encoding="utf-8")
        vocabulary = folder / "vocabulary.gguf"
        file.write_vocabulary(vocabulary)
        self._engine(lambda: genai().Tokenizer(str(vocabulary), enable_save_ov_model=True))
        vocabulary.unlink()

    def _make_model(self, folder: Path) -> None:
        log.info("re-encoding %s as F16, once (about half a minute)", self.source.path.name)
        encoded = folder / "model.gguf"
        ModelFile(self.source.path).write_f16(encoded, _log_tenths)
        tokenizer = genai().Tokenizer(str(self.tokenizer()))
        scheduler = genai().SchedulerConfig()
        self._engine(
            lambda: genai().ContinuousBatchingPipeline(
                str(encoded), tokenizer, scheduler, "CPU", enable_save_ov_model=True
            )
        )
        encoded.unlink()  # the engine's own form, which it has just saved, loads twice as fast

    def _engine(self, call: Callable[[], object]) -> None:
        try:
            call()
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[-1]
            raise BackendError(
                f"model file {self.source.path} cannot be used: the engine says {reason!r}"
            ) from error


def cache_folder() -> Path:
    """The folder that all caches of this package are in."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named).expanduser() if named else user_cache_path("formatspan", appauthor=False)


def _log_tenths(done: int, total: int) -> None:
    if done * 10 // total > (done - 1) * 10 // total:
        log.debug("re-encoded %d of %d tensors", done, total)
