"""Reading and writing study files: YAML, of which a part of the rules is made plainer.

Words and numbers are those of YAML 1.2: ``yes`` and ``no`` are texts, as are ``007``, ``12:30``
and ``2024-01-01``, while ``1e3`` is a number. A key given twice is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from formatspan.errors import StudyError

MAX_BYTES = 1_000_000
"""A larger file is not a study."""
MAX_DEPTH = 50
"""Brackets inside each other; the parser's time grows with their square."""
MAX_NODES = 100_000
"""Values in a file, those that aliases repeat counted as often as they are repeated."""

_BOOL, _INT, _FLOAT = (f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "float"))
_MERGE = "tag:yaml.org,2002:merge"
_REPLACED = (_BOOL, _INT, _FLOAT, "tag:yaml.org,2002:timestamp")
_RULES = (
    (_BOOL, re.compile(r"true|True|TRUE|false|False|FALSE"), "tTfF"),
    (_INT, re.compile(r"[-+]?(?:0|[1-9][0-9_]*)"), "-+0123456789"),
    (
        _FLOAT,
        re.compile(
            r"[-+]?(?:[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?"
            r"|[0-9]+[eE][-+]?[0-9]+|\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN)"
        ),
        "-+.0123456789",
    ),
)


class _Loader(yaml.SafeLoader):
    """Safe YAML that refuses a key given twice instead of taking the last."""

    def fetch_flow_collection_start(self, kind: Any) -> None:  # noqa: ANN401 - of PyYAML
        """An opening bracket, unless it is one too many."""
        if self.flow_level >= MAX_DEPTH:
            raise yaml.MarkedYAMLError(
                problem="brackets nested too deeply", problem_mark=self.get_mark()
            )
        super().fetch_flow_collection_start(kind)


class _Dumper(yaml.SafeDumper):
    """Writes multi-line strings as literal blocks, which a person can read."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag not in _REPLACED]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern, _first in _RULES:
    _whole_text = re.compile(rf"(?:{_pattern.pattern})\Z")
    # The dumper knows the old rules and these, and quotes what either would not take for text.
    for _kind in (_Loader, _Dumper):
        _kind.add_implicit_resolver(_tag, _whole_text, list(_first))


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        if key_node.tag == _MERGE:
            continue
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str | int | float):
            raise yaml.MarkedYAMLError(problem="a key is no text", problem_mark=key_node.start_mark)
        if key in seen:
            raise yaml.MarkedYAMLError(
                problem=f"key {key!r} twice", problem_mark=key_node.start_mark
            )
        seen.add(key)
    loader.flatten_mapping(node)
    return dict(loader.construct_pairs(node, deep=True))


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_yaml(path: Path, holds: str = "study keys") -> dict[str, Any]:
    """The mapping in a YAML file; ``holds`` says of what, for the error text.

    Raises:
        StudyError: The file cannot be read, is not YAML, or holds no mapping.
    """
    data = _parsed(_text(path), str(path))
    if not isinstance(data, dict):
        what = "nothing" if data is None else f"a {_KINDS.get(type(data), type(data).__name__)}"
        raise StudyError(f"{path}: expected a mapping of {holds}, got {what}")
    return data


_KINDS = {str: "text", list: "list", int: "number", float: "number", bool: "truth value"}


def _text(path: Path) -> str:
    try:
        if path.is_dir():
            raise StudyError(f"{path}: is a folder; expected a study file")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise StudyError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # a zero character in the path
        raise StudyError(f"{str(path)!r}: cannot be read: {error}") from None
    if len(content) > MAX_BYTES:
        raise StudyError(f"{path}: larger than {MAX_BYTES:,} bytes; expected a study file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise StudyError(f"{path}: not UTF-8 at byte {error.start}; expected YAML") from None


def set_keys(assignments: list[str]) -> dict[str, Any]:
    """``KEY=VALUE`` texts as study keys; values are YAML.

    Raises:
        StudyError: A text has no ``=``, its value is not YAML, or a key is given twice.
    """
    keys: dict[str, Any] = {}
    for text in assignments:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not key:
            raise StudyError(f"--set {text!r}: expected KEY=VALUE")
        if key in keys:
            raise StudyError(f"--set: key {key!r} twice")
        keys[key] = _parsed(value, f"--set {key}")
    return keys


def read_value(text: str, source: str) -> Any:  # noqa: ANN401 - YAML has no narrower type
    """The value that a text is in YAML; ``source`` names it in messages.

    Raises:
        StudyError: It is not YAML.
    """
    return _parsed(text, source)


def _parsed(text: str, source: str) -> Any:  # noqa: ANN401 - YAML has no narrower type
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            if _size(node, {}) > MAX_NODES:
                raise StudyError(f"{source}: more than {MAX_NODES:,} values, aliases resolved")
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except RecursionError:
        raise StudyError(f"{source}: nested too deeply") from None
    except (yaml.YAMLError, TypeError, ValueError, OverflowError) as error:
        raise StudyError(f"{source}: {_yaml_problem(error)}") from None


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """Values in a node, aliases resolved; one that holds itself is endless."""
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = MAX_NODES + 1  # until it is known: for a node that holds itself
    inner: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode):
        inner = [part for pair in node.value for part in pair]
    elif isinstance(node, yaml.SequenceNode):
        inner = node.value
    known[id(node)] = 1 + sum(_size(part, known) for part in inner)
    return known[id(node)]


def write_yaml(data: Mapping[str, Any]) -> str:
    """``data`` as YAML in its own order, multi-line texts as blocks."""
    return yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text and not text.startswith((" ", "\n")) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _string)


def _yaml_problem(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    if problem.startswith("Exceeds the limit"):
        problem = "a number with too many digits"
    hint = ": indent with spaces, not tabs" if "'\\t'" in problem else ""
    return f"{where}{problem}{hint}"
