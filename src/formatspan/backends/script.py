"""The settings of a scripted model: read from its address and its ``extra_body``, checked."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from formatspan.backends.base import ModelSpec
from formatspan.backends.breaks import BREAKS
from formatspan.errors import BackendError
from formatspan.records import FailureKind

Rates = Mapping[str, float]
"""Probability per wrapper; ``default`` for those not named."""

_PERFECT: Rates = {"default": 1.0}


@dataclass(frozen=True, slots=True)
class Script:
    """What a scripted model does; without settings it always answers right and as asked."""

    accuracy: Rates = field(default_factory=lambda: _PERFECT)
    """Share of examples known. Examples known at a low rate are known at every higher one."""
    comply: Rates = field(default_factory=lambda: _PERFECT)
    """Share of replies in the asked form; the others break it."""
    repair: Rates = field(default_factory=lambda: _PERFECT)
    """Share of replies in the asked form when a question is asked again."""
    breaks: tuple[str, ...] = tuple(BREAKS)
    """How the others break it; names of `BREAKS`, each equally likely."""
    fail: Mapping[FailureKind, float] = field(default_factory=dict)
    """Share of requests that fail, per kind."""
    hang: float = 0.0
    """Share of requests that never end."""
    latency_s: float = 0.0
    """Seconds from request to reply."""
    seed: int = 0
    """Another seed, another model of the same rates."""

    def rate(self, rates: Rates, wrapper: str) -> float:
        """The rate that holds for ``wrapper``."""
        return rates.get(wrapper, rates.get("default", 1.0))


KEYS: dict[str, str] = {"break" if f.name == "breaks" else f.name: f.name for f in fields(Script)}
"""Setting names as users write them, and the fields they set."""


_RATED = {
    "accuracy": "default",
    "comply": "default",
    "repair": "default",
    "fail": str(FailureKind.SERVER),
}
"""Settings with parts, and the part that a rate without a name is for."""


def read_script(spec: ModelSpec) -> Script:
    """The script of a model entry: settings in the address, those of ``extra_body`` over them.

    The address holds ``key=value`` pairs with commas between, ``comply.json=0.1`` for one
    wrapper and ``break=silence+chatty`` for a list: ``scripted:accuracy=0.8,comply=0.9``.

    Raises:
        BackendError: An unknown key (names the allowed ones) or a value out of range.
    """
    settings = _read_address(spec.target)
    settings.update(spec.extra_body)
    for key in settings:
        _check_key(key)
    return Script(**{KEYS[key]: _READERS[key](key, value) for key, value in settings.items()})


def _read_address(target: str) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for pair in filter(None, (part.strip() for part in target.split(","))):
        name, equals, value = (part.strip() for part in pair.partition("="))
        key, dot, wrapper = name.partition(".")
        _check_key(key)
        if not equals or not value:
            raise BackendError(f"scripted model: {pair!r}: expected key=value")
        if key in _RATED:
            _add_rate(settings, key, wrapper or _RATED[key], value)
        elif dot:
            raise BackendError(
                f"scripted model: {name!r}: only rates ({', '.join(_RATED)}) have parts"
            )
        else:
            settings[key] = value
    return settings


def _add_rate(settings: dict[str, Any], key: str, part: str, value: str) -> None:
    settings.setdefault(key, {})[part] = value


def _check_key(key: str) -> None:
    if key not in KEYS:
        near = difflib.get_close_matches(key, KEYS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        allowed = ", ".join(KEYS)
        raise BackendError(f"scripted model: unknown setting {key!r}: expected {allowed}{hint}")


def _number(key: str, value: object, *, most: float | None = None) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) else float("nan")
    except ValueError:
        number = float("nan")
    if isinstance(value, bool) or not 0 <= number <= (1e9 if most is None else most):
        expected = "a number from 0 on" if most is None else f"a number from 0 to {most:g}"
        raise BackendError(f"scripted model: {key}: {value!r}: expected {expected}")
    return number


def _rate(key: str, value: object) -> float:
    return _number(key, value, most=1.0)


def _rates(key: str, value: object) -> Rates:
    if isinstance(value, Mapping):
        return {str(name): _rate(f"{key}.{name}", rate) for name, rate in value.items()}
    return {"default": _rate(key, value)}


def _failures(key: str, value: object) -> Mapping[FailureKind, float]:
    rates = value if isinstance(value, Mapping) else {FailureKind.SERVER: value}
    read: dict[FailureKind, float] = {}
    for name, rate in rates.items():
        if name not in list(FailureKind):
            kinds = ", ".join(FailureKind)
            raise BackendError(f"scripted model: {key}: unknown kind {name!r}: expected {kinds}")
        read[FailureKind(name)] = _rate(f"{key}.{name}", rate)
    if sum(read.values()) > 1 + 1e-9:
        raise BackendError(f"scripted model: {key}: the rates add up to more than 1")
    return read


def _breaks(key: str, value: object) -> tuple[str, ...]:
    names: Sequence[object] = value.split("+") if isinstance(value, str) else ()
    if isinstance(value, list | tuple):
        names = value
    unknown = [name for name in names if name not in BREAKS]
    if unknown or not names:
        wrong = unknown[0] if unknown else value
        raise BackendError(
            f"scripted model: {key}: {wrong!r}: expected some of {', '.join(BREAKS)}"
        )
    return tuple(str(name) for name in names)


def _seed(key: str, value: object) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise BackendError(f"scripted model: {key}: {value!r}: expected an integer") from None


_READERS: dict[str, Callable[[str, object], Any]] = {
    "accuracy": _rates,
    "comply": _rates,
    "repair": _rates,
    "break": _breaks,
    "fail": _failures,
    "hang": _rate,
    "latency_s": _number,
    "seed": _seed,
}
