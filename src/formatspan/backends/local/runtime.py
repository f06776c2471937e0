"""Loads the engine without its telemetry, and says what machine it runs on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast

from formatspan.errors import BackendError

MIN_THREADS = 2
"""With one thread the engine divides by zero and takes the process with it (SIGFPE)."""

_TELEMETRY = "openvino_telemetry"


@cache
def genai() -> Any:  # noqa: ANN401 - the engine has no types
    """The module ``openvino_genai``.

    Raises:
        BackendError: The extra is not installed.
    """
    try:
        with _without_telemetry():
            import openvino_genai
    except ImportError as error:
        raise BackendError(
            f"the embedded engine cannot be loaded ({error}): pip install 'formatspan[local]'"
        ) from error
    return openvino_genai


@contextmanager
def _without_telemetry() -> Iterator[None]:
    """Hide the telemetry package while openvino is imported.

    openvino then takes the stub that it ships for installations without that package
    (``openvino/tools/ovc/telemetry_utils.py``). Otherwise the mere import writes a client id
    into the user's home and sends an event. A telemetry module that the user's own program
    has imported before is left alone.
    """
    if _TELEMETRY in sys.modules:
        yield
        return
    sys.modules[_TELEMETRY] = cast(Any, None)
    try:
        yield
    finally:
        del sys.modules[_TELEMETRY]


def usable_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def checked_threads(asked: object) -> int | None:
    """Threads to use; ``asked`` is the study's wish, None leaves it to the engine.

    Raises:
        BackendError: Fewer than two, or no number.
    """
    if usable_cores() < MIN_THREADS:
        raise BackendError("the embedded engine needs two cores, and this process may use one")
    if asked is None:
        return None
    if not isinstance(asked, int) or isinstance(asked, bool) or asked < MIN_THREADS:
        raise BackendError(f"threads: expected a whole number of at least 2, not {asked!r}")
    return asked


@cache
def processor() -> str:
    """Model name of the processor, as the engine sees it."""
    return str(_core().get_property("CPU", "FULL_DEVICE_NAME"))


@cache
def compute_precision() -> str:
    """Precision the engine computes in here: ``f32``, ``bf16`` (with AMX) or ``f16``."""
    kind = _core().get_property("CPU", "INFERENCE_PRECISION_HINT")
    return str(kind.get_type_name())


def versions() -> dict[str, str]:
    """Versions of the engine's packages; ``none`` where one is missing."""
    return {name: _version(name) for name in ("openvino-genai", "openvino", "gguf")}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


@cache
def _core() -> Any:  # noqa: ANN401
    genai()
    import openvino

    return openvino.Core()
