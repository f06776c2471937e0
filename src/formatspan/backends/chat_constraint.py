"""How constraints are sent to OpenAI-compatible servers, each of which has its own fields.

Sources: OpenAI, https://platform.openai.com/docs/guides/structured-outputs; vLLM,
https://docs.vllm.ai/en/latest/features/structured_outputs/ (``guided_*`` were removed in
v0.12.0, which ignores them silently); SGLang,
https://docs.sglang.io/advanced_features/structured_outputs.html; llama.cpp,
https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args
from urllib.parse import urlsplit

from formatspan.backends.base import ConstraintType, Dialect, ModelSpec
from formatspan.records import Constraint

_OFFICIAL = ("api.openai.com", "openrouter.ai")
"""Hosts whose dialect is known without being told."""

_FIELDS: Mapping[Dialect, Mapping[ConstraintType, str]] = {
    "response_format": {"json_schema": "json_schema"},
    "vllm": {"regex": "regex", "choice": "choice", "grammar": "grammar", "json_schema": "json"},
    "vllm_guided": {
        "regex": "guided_regex",
        "choice": "guided_choice",
        "grammar": "guided_grammar",
        "json_schema": "guided_json",
    },
    "llama_cpp": {"grammar": "grammar", "json_schema": "json_schema"},
    "sglang": {"regex": "regex", "grammar": "ebnf", "json_schema": "json_schema"},
}
"""What each dialect calls the types it takes."""


def dialect_of(spec: ModelSpec) -> Dialect | None:
    """How constraints are written to a model's endpoint; None where that is not known.

    The entry's ``constrain``, else what its host is known to take. A server at another
    ``base_url`` may be anything, and some ignore fields they do not know.
    """
    if spec.constrain is not None:
        return spec.constrain
    host = urlsplit(spec.base_url or "").hostname
    known = spec.base_url is None or host in _OFFICIAL
    return "response_format" if known and spec.scheme in ("openai", "openrouter") else None


def constraint_types(dialect: Dialect | None) -> frozenset[ConstraintType]:
    """The types of constraint that a dialect takes; none without a dialect."""
    return frozenset(_FIELDS[dialect]) if dialect else frozenset()


def constraint_fields(held: Constraint, dialect: Dialect) -> dict[str, Any]:
    """The body's fields that hold a reply to ``held``.

    Raises:
        KeyError: The dialect does not take this type; `constraint_types` says which it takes.
    """
    name = _FIELDS[dialect][held.type]
    value: Any = json.loads(held.value) if held.type in ("json_schema", "choice") else held.value
    if dialect == "vllm":
        return {"structured_outputs": {name: value}}
    if dialect == "response_format" or (dialect == "sglang" and held.type == "json_schema"):
        return {"response_format": _response_format(value)}
    return {name: value}


def _response_format(schema: object) -> dict[str, Any]:
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": schema},
    }


DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
"""Every dialect by name."""
