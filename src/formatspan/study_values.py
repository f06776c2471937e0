"""The values of a study: what YAML and Python may give for a number, a name or a list.

Nothing is converted where that could surprise: ``true`` is no number, ``'20'`` is a text, and
a list is a list. A whole number may be written ``1e3``, and a name may be a whole number.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictBool

from formatspan.mistakes import got

MAX_LINE = 1_000
"""Characters of a name."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

SECRET_KEY = re.compile(r"api_?key|authorization|password|secret", re.IGNORECASE)
"""Keys of ``extra_body`` that would put a secret into the store."""


def list_of(what: str) -> BeforeValidator:
    """Refuses all but a list (or tuple), saying of what it should be."""

    def check(value: object) -> object:
        if not isinstance(value, list | tuple):
            example = f": write [{value}]" if isinstance(value, str) and len(value) < 40 else ""
            raise ValueError(f"expected a list of {what}, got {got(value)}{example}")
        return value

    return BeforeValidator(check)


def _whole(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"expected a whole number, got {got(value)}{_unquoted(value)}")


def _number(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not abs(value) < math.inf:
            raise ValueError(f"expected a finite number, got {got(value)}")
        return value
    raise ValueError(f"expected a number, got {got(value)}{_unquoted(value)}")


def _unquoted(value: object) -> str:
    quoted = isinstance(value, str) and re.fullmatch(r"[-+]?[0-9][0-9.eE_+-]*", value)
    return ": write it without quotation marks" if quoted else ""


def _name(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise ValueError(f"expected a name, got {got(value)}{_in_quotes(value)}")
    return one_line(value)


def _in_quotes(value: object) -> str:
    return ": put it in quotation marks" if isinstance(value, bool | float) else ""


def one_line(value: str) -> str:
    """``value``, if it is one line of visible text.

    Raises:
        ValueError: It is empty, long, or holds what steers a terminal or ends a line.
    """
    if not value.strip():
        raise ValueError("must not be empty")
    odd = _CONTROL.search(value)
    if odd:
        raise ValueError(f"expected one line of text, got {got(value)} with {odd[0]!r}")
    if len(value) > MAX_LINE:
        raise ValueError(f"expected at most {MAX_LINE:,} characters, got {len(value):,}")
    return value


def _words(value: object) -> object:
    words = list(value) if isinstance(value, list | tuple) else []
    if len(words) != 2 or not all(isinstance(word, str) for word in words):
        raise ValueError(f"expected a list of two texts, for true and for false, got {got(value)}")
    return [one_line(word) for word in words]


def _column(value: object) -> object:
    if value is None or value is False or (isinstance(value, str) and value):
        return value
    raise ValueError(f"expected the name of a column, or false, got {got(value)}")


def _body(value: object) -> object:
    if not isinstance(value, Mapping):
        raise ValueError(f"expected a mapping, got {got(value)}")
    try:
        json.dumps(value, allow_nan=False, sort_keys=True)
        names = list(_keys_in(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"expected values that JSON can hold: {error}") from None
    for name in names:
        if SECRET_KEY.search(name):
            raise ValueError(f"{name}: name an environment variable in api_key_env instead")
    return value


def _keys_in(value: object) -> Iterable[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _keys_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _keys_in(inner)


Whole = Annotated[int, BeforeValidator(_whole)]
"""A whole number; neither true nor a text."""
Count = Annotated[int, BeforeValidator(_whole), Field(ge=1)]
"""A whole number from 1 on."""
Number = Annotated[float, BeforeValidator(_number)]
"""A finite number."""
Truth = StrictBool
Name = Annotated[str, BeforeValidator(_name)]
"""One line of text, or a whole number as its digits."""
Words = Annotated[tuple[str, str], BeforeValidator(_words)]
"""Two words, for true and for false."""
Column = Annotated[str | Literal[False] | None, BeforeValidator(_column)]
"""The name of a column, or False for none."""
Body = Annotated[dict[str, Any], BeforeValidator(_body)]
"""What JSON can hold, without secrets."""
