"""What is sent to an OpenAI-compatible chat endpoint: where to, which headers, which body.

Everything a user can get wrong is refused here, before the first request.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from formatspan._version import __version__
from formatspan.backends.base import ModelSpec
from formatspan.backends.base_url import mistake_in
from formatspan.backends.chat_constraint import constraint_fields, dialect_of
from formatspan.backends.redaction import Secret
from formatspan.errors import BackendError
from formatspan.records import Request

OWN_KEYS = frozenset({"model", "messages", "stream", "n"})
"""Body keys that ``extra_body`` may not hold: what is asked, and that one whole reply comes."""

SAMPLING_KEYS = frozenset({"max_tokens", "temperature", "top_p", "seed", "stop"})
"""Body keys that the study sets; ``extra_body`` may only drop them, with null."""


class Headers(NamedTuple):
    """Headers to send, names in lower case, and the secrets among their values."""

    sent: Secret[dict[str, str]]
    secrets: tuple[Secret[str], ...]


def chat_body(spec: ModelSpec, request: Request) -> dict[str, Any]:
    """The JSON body of a request, for `formatspan.backends.chat_json.encoded`.

    ``extra_body`` comes last and drops what it sets to null.
    """
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": spec.target,
        "messages": request.messages,
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "seed": request.seed,
    }
    if sampling.top_p != 1:
        body["top_p"] = sampling.top_p
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    if request.constraint is not None and (dialect := dialect_of(spec)):
        body |= constraint_fields(request.constraint, dialect)
    if not spec.extra_body:
        return body
    body |= spec.extra_body
    return {key: value for key, value in body.items() if value is not None}


def check_extra_body(extra: Mapping[str, Any]) -> None:
    """Refuse an extra body that would change what the study says is asked.

    Raises:
        BackendError: It holds one of `OWN_KEYS`, a value for one of `SAMPLING_KEYS`, or
            something that is not JSON.
    """
    for key, value in extra.items():
        if key in OWN_KEYS:
            raise BackendError(f"extra_body: {key!r} is set by the study's other keys")
        if key in SAMPLING_KEYS and value is not None:
            raise BackendError(
                f"extra_body: {key!r} is set by the study's decoding keys; null leaves it out"
            )
    try:
        json.dumps(extra, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BackendError(f"extra_body: expected plain JSON values ({error})") from error


def left_out(spec: ModelSpec) -> tuple[str, ...]:
    """What the entry's ``extra_body`` drops of the study's own parameters, for the record."""
    dropped = [key for key, value in spec.extra_body.items() if value is None]
    return tuple(
        f"{key}: left to the provider's default by extra_body"
        for key in sorted(SAMPLING_KEYS.intersection(dropped))
    )


def endpoint(base_url: str) -> str:
    """The URL that requests are posted to.

    Raises:
        BackendError: The base URL is malformed, or holds a user, a password or a query.
    """
    if (mistake := mistake_in(base_url)) is not None:
        raise BackendError(f"base_url: {mistake}")
    base = base_url.strip().rstrip("/").removesuffix("/chat/completions")
    return f"{base}/chat/completions"


def headers_of(spec: ModelSpec, key_env: str | None) -> Headers:
    """The headers of a model entry, variables filled in, and the key's.

    Raises:
        BackendError: A variable is not set, or a header is malformed.
    """
    sent = {"content-type": "application/json", "user-agent": f"formatspan/{__version__}"}
    secrets: list[Secret[str]] = []

    def fill(match: re.Match[str]) -> str:
        value = _variable(spec, match[1])
        secrets.append(Secret(value))
        return value

    for name, template in spec.headers.items():
        value = re.sub(r"\$\{(\w+)\}", fill, template)
        if not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", name, re.ASCII) or not value.isprintable():
            right = "expected a header name and text on one line"
            raise BackendError(f"model {spec.name!r}: headers: {name!r}: {right}")
        sent[name.lower()] = value
    # A header of the user's own goes first: some endpoints want another scheme than Bearer.
    if key_env is not None and "authorization" not in sent:
        key = _variable(spec, key_env)
        secrets.append(Secret(key))
        sent["authorization"] = f"Bearer {key}"
    return Headers(Secret(sent), tuple(secrets))


def _variable(spec: ModelSpec, name: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise BackendError(f"model {spec.name!r}: the environment variable {name} is not set")
    if not (value.isascii() and value.isprintable()):
        raise BackendError(
            f"model {spec.name!r}: the environment variable {name} holds characters no key has"
        )
    return value
