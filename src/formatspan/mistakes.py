"""What is wrong with a study, in one line and in plain words: key, mistake, what is right."""

from __future__ import annotations

import difflib
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

Problem = Mapping[str, Any]
"""One error as pydantic lists them: type, loc, msg, input, ctx."""

_PREFIXES = ("Value error, ", "Assertion failed, ")

_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxstring, _REPR.maxother = 2, 60, 60
_REPR.maxdict = _REPR.maxlist = _REPR.maxtuple = 3


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """The first mistake of a validation error, as ``key: what was wrong and what is right``."""
    problems = error.errors(include_url=False)
    # A list that lost its wrong entries is then too short as well; that is no second mistake.
    own = [p for p in problems if p["type"] != "too_short" or not p["input"]] or problems
    first = min(own, key=lambda p: p["type"] == "missing")
    more = len({p["loc"][:2] for p in own if p["loc"][:1] != first["loc"][:1]})
    return _sentence(first, model) + (f" (and {more} more)" if more else "")


def half_pair(data: object, loc: tuple[int | str, ...] = ()) -> str | None:
    """The first text in plain data that no UTF-8 can hold, as ``key: what is wrong``."""
    if isinstance(data, str):
        found = re.search("[\ud800-\udfff]", data)
        return f"{_key(loc)}: holds the lone surrogate {found[0]!r}" if found else None
    parts: Iterable[tuple[Any, object]] = ()
    names: Iterable[object] = ()
    if isinstance(data, Mapping):
        parts, names = data.items(), data
    elif isinstance(data, list | tuple):
        parts = enumerate(data)
    whole = chain(
        (half_pair(name, loc) for name in names),
        (half_pair(part, (*loc, key)) for key, part in parts),
    )
    return next((mistake for mistake in whole if mistake), None)


def got(value: object) -> str:
    """A wrong value as a message shows it: short, on one line, as YAML spells it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(_REPR.repr(value).split())


def near(wrong: str, known: Iterable[str]) -> str:
    """``, did you mean 'x'?`` where a known name is close to ``wrong``, else nothing."""
    close = difflib.get_close_matches(wrong, list(known), n=1)
    return f", did you mean {close[0]!r}?" if close else ""


def _sentence(problem: Problem, model: type[BaseModel]) -> str:
    key, kind = _key(problem["loc"]), problem["type"]
    if kind == "extra_forbidden":
        return f"{key}: {_unknown(problem['loc'], model)}"
    if kind == "missing":
        return f"{key}: missing"
    if kind in _PLAIN:
        text = _PLAIN[kind](problem, model)
    else:
        text = str(problem["msg"])
        for prefix in _PREFIXES:
            text = text.removeprefix(prefix)
    return f"{key}: {text}" if key else text


def _unknown(loc: Sequence[int | str], root: type[BaseModel]) -> str:
    """An unknown key, the one that may be meant, and all that are known there."""
    wrong, here = str(loc[-1]), _model_at(loc[:-1], root) or root
    known = keys_of(here)
    meant = near(wrong, known)
    if not meant and wrong in root.model_fields and here is not root:
        return f"unknown key, one of the study itself and not of an entry; {_keys(known)}"
    return f"unknown key{meant or ','} {_keys(known)}"


def _keys(known: Iterable[str]) -> str:
    return f"known are {', '.join(known)}"


def keys_of(model: type[BaseModel]) -> tuple[str, ...]:
    """The keys that a mapping of this kind takes, with those that stand for another."""
    further: tuple[str, ...] = getattr(model, "FURTHER_KEYS", ())
    return (*model.model_fields, *further)


def _model_at(loc: Sequence[int | str], root: type[BaseModel]) -> type[BaseModel] | None:
    """The kind of mapping that stands at ``loc``; None where any keys may stand."""
    here: type[BaseModel] | None = root
    for part in loc:
        field = here.model_fields.get(part) if here and isinstance(part, str) else None
        if field is not None:
            here = next(_models_in(field.annotation), None)
    return here


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def _key(loc: Sequence[int | str]) -> str:
    """``('models', 0, 'name')`` as ``models[0].name``."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        elif "[" not in part:
            text += f".{part}" if text else part
    return text


def _text_expected(problem: Problem, _: type[BaseModel]) -> str:
    value = problem["input"]
    quoted = isinstance(value, bool | int | float)
    hint = ": put it in quotation marks" if quoted else ""
    return f"expected text, got {got(value)}{hint}"


def _mapping_expected(problem: Problem, root: type[BaseModel]) -> str:
    here = _model_at(problem["loc"], root)
    with_keys = f" with some of {', '.join(keys_of(here))}" if here else ""
    return f"expected a mapping{with_keys}, got {got(problem['input'])}"


def _choice_expected(problem: Problem, _: type[BaseModel]) -> str:
    expected, value = str(problem["ctx"]["expected"]), problem["input"]
    known = [part.strip(" '") for part in expected.replace(" or ", ",").split(",")]
    meant = near(value, known) if isinstance(value, str) else ""
    return f"expected {expected}, got {got(value)}{meant}"


def _limit(words: str, name: str) -> Callable[[Problem, type[BaseModel]], str]:
    def say(problem: Problem, _: type[BaseModel]) -> str:
        limit = problem["ctx"][name]
        whole = int(limit) if limit == int(limit) else limit
        return f"expected {words} {whole:,}, got {got(problem['input'])}"

    return say


def _expected(words: str) -> Callable[[Problem, type[BaseModel]], str]:
    def say(problem: Problem, _: type[BaseModel]) -> str:
        return f"expected {words}, got {got(problem['input'])}"

    return say


_PLAIN: dict[str, Callable[[Problem, type[BaseModel]], str]] = {
    "string_type": _text_expected,
    "bool_type": _expected("true or false"),
    "bool_parsing": _expected("true or false"),
    "int_type": _expected("a whole number"),
    "int_parsing_size": _expected("a smaller whole number"),
    "float_type": _expected("a number"),
    "finite_number": _expected("a finite number"),
    "dict_type": _mapping_expected,
    "model_type": _mapping_expected,
    "model_attributes_type": _mapping_expected,
    "tuple_type": _expected("a list"),
    "literal_error": _choice_expected,
    "invalid_key": lambda p, _: f"expected keys that are text, got {got(p['loc'][-1])}",
    "too_short": lambda _, __: "expected at least one",
    "string_too_short": lambda _, __: "must not be empty",
    "greater_than_equal": _limit("at least", "ge"),
    "greater_than": _limit("more than", "gt"),
    "less_than_equal": _limit("at most", "le"),
}
"""Plain words for the kinds of error that can be met, by pydantic's names for them."""
