"""The language of templates: Jinja2, held to what a shell around a question needs.

A template fills in slots, asks ``if`` and loops over the options. What could work without end
or make text without bound is not part of it: ``range`` and other calls, macros, products,
filters that enlarge. So rendering takes time in proportion to template and content, whoever
wrote the template.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, nodes
from jinja2.exceptions import SecurityError, TemplateSyntaxError, UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from formatspan.errors import WrapperError

SLOTS = ("instruction", "context", "question", "options", "answer", "quoted_answer", "padding")
"""The names that a template sees."""

FILTERS = frozenset(
    (
        *("capitalize", "default", "e", "escape", "first", "int", "join", "last", "length"),
        *("list", "lower", "map", "replace", "reverse", "string", "striptags", "title"),
        *("tojson", "trim", "truncate", "upper", "wordcount"),
    )
)
"""Filters whose output is bounded by their input."""
_ENLARGING = frozenset(("e", "escape", "join", "replace", "tojson"))
"""Filters that make a text a bounded number of times longer; never two on one value."""

MAX_TEMPLATE = 50_000
"""Characters of a template."""
MAX_LOOPS = 2
"""Loops inside each other."""
MAX_LIST = 62
"""Items of a list that is written out; as many as a question may have options."""
MAX_ARGUMENT = 1_000
"""Characters of a filter's argument."""
MAX_GROWTH = 20
"""Characters of a prompt for each one of its template and content."""


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox with a short way to an option's label and text.

    A plan goes it 24 times a prompt; the checks of attributes would take half of its time.
    """

    def getattr(self, obj: Any, attribute: str) -> Any:  # noqa: ANN401 - as Jinja2 has it
        """An item of a plain mapping, else as in the sandbox."""
        if type(obj) is dict and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)


_ENVIRONMENT = _Environment(
    undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
)
_ENVIRONMENT.globals.clear()

_STATEMENTS = (nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Assign)
_VALUES = (
    *(nodes.Name, nodes.Const, nodes.List, nodes.Tuple, nodes.Getattr, nodes.Getitem, nodes.Slice),
    *(nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Neg),
    *(nodes.Concat, nodes.Add, nodes.Sub, nodes.Filter, nodes.Test, nodes.Keyword),
)
_GROWING = (nodes.Concat, nodes.Add, nodes.List, nodes.Tuple)
_WHAT: dict[type[nodes.Node], str] = {
    nodes.Call: "a call such as range(…)",
    nodes.Macro: "a macro",
    nodes.CallBlock: "a call block",
    nodes.FilterBlock: "a filter block",
    nodes.AssignBlock: "a set block",
    nodes.Mul: "a product",
    nodes.Pow: "a power",
    nodes.Mod: "the operator %",
    nodes.Include: "an include",
    nodes.Import: "an import",
    nodes.FromImport: "an import",
    nodes.Extends: "an extends",
    nodes.Block: "a block",
    nodes.With: "a with block",
    nodes.Dict: "a mapping",
}


class _NotHere(TemplateError):
    """A part of Jinja2 that wrapper templates do not have."""


def fill(source: str, values: Mapping[str, Any]) -> str:
    """The template with ``values`` in its slots.

    Raises:
        WrapperError: The template is no template, holds what it must not, or fails.
    """
    try:
        pieces = _template(source).generate(values)
        return _joined(pieces, len(source) + sum(len(str(v)) for v in values.values()))
    except UndefinedError as error:
        raise WrapperError(f"{error}: a template sees {', '.join(SLOTS)}") from None
    except (RecursionError, MemoryError, OverflowError):
        raise WrapperError("nested too deeply, or in need of too much memory") from None
    except TemplateSyntaxError as error:
        raise WrapperError(f"line {error.lineno}: {error.message}") from None
    except (TemplateError, SecurityError, TypeError, ValueError, ArithmeticError) as error:
        raise WrapperError(str(error)) from None


def _joined(pieces: Iterable[str], size: int) -> str:
    kept, length = [], 0
    for piece in pieces:
        kept.append(piece)
        length += len(piece)
        if length > MAX_GROWTH * size:
            raise _NotHere(f"makes more than {MAX_GROWTH} times the text that goes in")
    return "".join(kept)


@lru_cache(maxsize=256)
def _template(source: str) -> Template:
    if len(source) > MAX_TEMPLATE:
        raise _NotHere(f"longer than {MAX_TEMPLATE:,} characters")
    tree = _ENVIRONMENT.parse(source)
    _check(tree, loops=0, bounded=False)
    return _ENVIRONMENT.from_string(tree)


def _check(node: nodes.Node, *, loops: int, bounded: bool) -> None:
    """Refuse what is not part of the language, before anything of it is evaluated.

    ``bounded`` is true where a value may be used again and again, so that it must not grow.
    """
    if not isinstance(node, (*_STATEMENTS, *_VALUES)):
        raise _refused(node, _WHAT.get(type(node), f"{type(node).__name__.lower()}"))
    if bounded and isinstance(node, _GROWING):
        raise _refused(node, "text put together in {% set %} or before such a filter")
    if isinstance(node, nodes.Name) and node.ctx != "load" and node.name in SLOTS:
        raise _refused(node, f"another value for {node.name!r}")
    if isinstance(node, nodes.Filter):
        _check_filter(node, FILTERS - _ENLARGING if bounded else FILTERS)
    if isinstance(node, nodes.List | nodes.Tuple) and len(node.items) > MAX_LIST:
        raise _refused(node, f"a list of more than {MAX_LIST} items")
    if isinstance(node, nodes.For):
        _check_loop(node, loops)
    enlarging = isinstance(node, nodes.Filter) and node.name in _ENLARGING
    for child in node.iter_child_nodes():
        _check(
            child,
            loops=loops + isinstance(node, nodes.For),
            bounded=bounded or enlarging or isinstance(node, nodes.Assign),
        )


def _check_filter(node: nodes.Filter, allowed: frozenset[str]) -> None:
    if node.name not in allowed:
        known = ", ".join(sorted(allowed))
        raise _refused(node, f"the filter {node.name!r}", f"filters here are {known}")
    arguments = [*node.args, *(keyword.value for keyword in node.kwargs)]
    short = all(isinstance(a, nodes.Const) and len(str(a.value)) <= MAX_ARGUMENT for a in arguments)
    if not short or node.dyn_args or node.dyn_kwargs:
        raise _refused(node, f"the filter {node.name!r} with an argument that is not written out")
    if node.name == "map" and node.args:
        raise _refused(node, "the filter 'map' with anything but attribute=…")


def _check_loop(node: nodes.For, loops: int) -> None:
    if node.recursive:
        raise _refused(node, "a recursive loop")
    if loops >= MAX_LOOPS:
        raise _refused(node, f"a loop inside {MAX_LOOPS} others")
    if not _is_short(node.iter):
        raise _refused(node, "a loop over anything but options or a list that is written out")


def _is_short(node: nodes.Node) -> bool:
    """Whether a value has no more items than a question has options."""
    if isinstance(node, nodes.Filter):
        return node.name in ("list", "map", "reverse") and _is_short(node.node or node)
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice):
        return _is_short(node.node)
    if isinstance(node, nodes.Name):
        return node.name == "options"
    return isinstance(node, nodes.List | nodes.Tuple)


def _refused(node: nodes.Node, what: str, instead: str = "") -> _NotHere:
    right = instead or "a template has slots, if, for over options, and set"
    return _NotHere(f"line {node.lineno}: {what} is not available: {right}")
