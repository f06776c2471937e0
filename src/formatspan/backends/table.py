"""The table of backends: a model's address names its scheme, the scheme its factory.

A factory is imported when a model of its scheme is opened, so that a run against an endpoint
never loads the embedded engine. Other packages add schemes through the entry-point group
``formatspan.backends``: an entry point named like the scheme that loads a factory
``(ModelSpec) -> Backend``. A built-in scheme always wins, so that installing a package never
changes what an address in an existing study means.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points

from formatspan.backends.base import Backend, ModelSpec
from formatspan.errors import BackendError

Factory = Callable[[ModelSpec], Backend]

BACKENDS: dict[str, str] = {
    "local": "formatspan.backends.local:open_model",
    "openai": "formatspan.backends.openai_chat:open_openai",
    "openrouter": "formatspan.backends.openai_chat:open_openrouter",
    "scripted": "formatspan.backends.scripted:open_scripted",
}
"""Built-in schemes and their factories, as ``module:function``."""

EXTRAS: dict[str, str] = {"local": "local"}
"""Schemes whose dependencies come with an extra of this package."""

ENTRY_POINTS = "formatspan.backends"
"""Entry-point group of other packages' schemes."""

_ADDRESS = re.compile(r"\s*([A-Za-z][A-Za-z0-9_.-]*)\s*(?:[:/](.*))?", re.DOTALL)


def schemes() -> tuple[str, ...]:
    """Every scheme that can be opened here, built-in ones first."""
    return (*BACKENDS, *sorted({point.name for point in _plugins()} - BACKENDS.keys()))


def canonical_address(text: str) -> str:
    """The one spelling of a model address, ``scheme:rest``.

    Users write ``openrouter:microsoft/phi-4`` or ``openrouter/microsoft/phi-4``; both name the
    same model and must hash alike, so the first separator becomes a colon and the scheme lower
    case. The rest belongs to the backend and is kept, outer white space aside.

    Raises:
        BackendError: The scheme is not known here.
    """
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise BackendError(_unknown(text, ""))
    scheme, rest = match[1].lower(), (match[2] or "").strip()
    if scheme not in schemes():
        raise BackendError(_unknown(text, scheme))
    return f"{scheme}:{rest}"


def open_backend(spec: ModelSpec) -> Backend:
    """Make the backend of a model.

    Raises:
        BackendError: The scheme is not known, a dependency is missing (the text says how to
            install it), or the model cannot be used as described.
    """
    scheme = spec.scheme
    try:
        backend = _factory(spec)(spec)
    except ImportError as error:
        raise BackendError(_not_installed(scheme, error)) from error
    if not isinstance(backend, Backend):
        raise BackendError(
            f"the factory of {scheme!r} made a {type(backend).__name__}, which is no Backend"
        )
    return backend


def _factory(spec: ModelSpec) -> Factory:
    target = BACKENDS.get(spec.scheme)
    if target is not None:
        module, _, name = target.partition(":")
        factory: Factory = getattr(importlib.import_module(module), name)
        return factory
    points = [point for point in _plugins() if point.name == spec.scheme]
    if not points:
        raise BackendError(_unknown(spec.address, spec.scheme))
    if len({point.value for point in points}) > 1:
        rivals = ", ".join(sorted(point.value for point in points))
        raise BackendError(f"several packages offer {spec.scheme!r} ({rivals}): keep one of them")
    return _load(points[0])


def _load(point: EntryPoint) -> Factory:
    try:
        factory = point.load()
    except AttributeError as error:
        raise BackendError(
            f"the package that offers {point.name!r} is broken: no {point.value!r}"
        ) from error
    if not callable(factory):
        raise BackendError(f"{point.value!r}, offered for {point.name!r}, is not a factory")
    made: Factory = factory
    return made


def _plugins() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=ENTRY_POINTS))


def _unknown(text: str, scheme: str) -> str:
    known = schemes()
    message = f"model {text!r}: expected scheme:model with a scheme out of {', '.join(known)}"
    near = difflib.get_close_matches(scheme, known, n=1)
    if near:
        rest = text.strip()[len(scheme) + 1 :]
        return f"{message}; did you mean {near[0] + ':' + rest!r}?"
    if text.strip().lower().endswith(".gguf"):
        return f"{message}; a model file is written {'local:' + text.strip()!r}"
    return message


def _not_installed(scheme: str, error: ImportError) -> str:
    if isinstance(error, ModuleNotFoundError):
        needs = f"models of {scheme!r} need the module {error.name!r}, which is not installed"
    else:
        needs = f"models of {scheme!r} need a module that cannot be loaded ({error})"
    return f"{needs}: pip install 'formatspan[{EXTRAS[scheme]}]'" if scheme in EXTRAS else needs
