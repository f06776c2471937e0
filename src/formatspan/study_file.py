"""Reading and writing study files, and putting what is wrong with one into one line."""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from formatspan.errors import StudyError

_PREFIXES = ("Value error, ", "Assertion failed, ")


class _Loader(yaml.SafeLoader):
    """Safe YAML that refuses a key given twice instead of taking the last."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node)
        if key in seen:
            raise yaml.MarkedYAMLError(
                problem=f"key {key!r} twice", problem_mark=key_node.start_mark
            )
        seen.add(key)
    return dict(loader.construct_pairs(node, deep=True))


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_yaml(path: Path, holds: str = "study keys") -> dict[str, Any]:
    """The mapping in a YAML file; ``holds`` says of what, for the error text.

    Raises:
        StudyError: The file cannot be read, is not YAML, or holds no mapping.
    """
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except OSError as error:
        raise StudyError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise StudyError(f"{path}: not UTF-8 at byte {error.start}") from None
    except (yaml.YAMLError, TypeError) as error:
        raise StudyError(f"{path}: {_yaml_problem(error)}") from None
    if not isinstance(data, dict):
        raise StudyError(f"{path}: expected a mapping of {holds}, got {type(data).__name__}")
    return data


def set_keys(assignments: list[str]) -> dict[str, Any]:
    """``KEY=VALUE`` texts as study keys; values are YAML.

    Raises:
        StudyError: A text has no ``=``, or its value is not YAML.
    """
    keys: dict[str, Any] = {}
    for text in assignments:
        key, equals, value = text.partition("=")
        if not equals:
            raise StudyError(f"--set {text!r}: expected KEY=VALUE")
        try:
            keys[key.strip()] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise StudyError(f"--set {key}: {_yaml_problem(error)}") from None
    return keys


def write_yaml(data: Mapping[str, Any]) -> str:
    """``data`` as YAML in its own order, multi-line texts as blocks."""
    return yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def write_atomically(path: Path, text: str) -> None:
    """Write a whole file: beside the target first, then in its place."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


class _Dumper(yaml.SafeDumper):
    """Writes multi-line strings as literal blocks, which a person can read."""


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text and not text.startswith((" ", "\n")) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _string)


def _yaml_problem(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"{where}{problem}"


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """The first mistake of a validation error, as ``key: what was wrong and what is right``."""
    problems = error.errors(include_url=False)
    # A list that lost its wrong entries is then too short as well; that is no second mistake.
    own = [p for p in problems if p["type"] != "too_short" or not p["input"]] or problems
    first = min(own, key=lambda p: p["type"] == "missing")
    more = len({p["loc"][:2] for p in own if p["loc"][:1] != first["loc"][:1]})
    return _sentence(first, model) + (f" (and {more} more)" if more else "")


def _sentence(problem: Mapping[str, Any], model: type[BaseModel]) -> str:
    key = _key(problem["loc"])
    message = str(problem["msg"])
    for prefix in _PREFIXES:
        message = message.removeprefix(prefix)
    if problem["type"] == "extra_forbidden":
        return f"{key}: unknown key{_suggestion(str(problem['loc'][-1]), model, problem)}"
    if problem["type"] == "missing":
        return f"{key}: missing"
    if not problem["loc"]:
        return message
    if problem["type"] == "value_error":
        return f"{key}: {message}"
    return f"{key}: {message[0].lower()}{message[1:]}, got {_short(problem['input'])}"


def _key(loc: tuple[int | str, ...]) -> str:
    """``('models', 0, 'name')`` as ``models[0].name``."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        elif "[" not in part and part not in ("Budget",) and not part.startswith("literal"):
            text += f".{part}" if text else part
    return text


def _suggestion(key: str, model: type[BaseModel], problem: Mapping[str, Any]) -> str:
    if len(problem["loc"]) > 1:
        return ""
    known = list(model.model_fields)
    close = difflib.get_close_matches(key, known, n=1)
    return f", did you mean {close[0]!r}?" if close else f": expected one of {', '.join(known)}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
