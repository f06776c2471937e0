"""Parameters that a model refuses: recognised once, sent otherwise where that is harmless.

Harmless means that the study still measures what it says. Another name for the same cap, a
seed that the provider does not take, and a stop text that is applied here instead are harmless;
another temperature or a decoder that is not held to the contract are not, and stop the model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

PARAMETERS = (
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "seed",
    "stop",
    "response_format",
)
"""Parameters that are known to be refused; of those that a message names, the first counts."""

_UNSUPPORTED = re.compile(
    r"unsupported|not (?:be )?supported|isn't supported|does(?:n't| not) support|not (?:allowed|"
    r"permitted)|unknown|unrecognized|unexpected|only the default|instead|not available|"
    r"cannot be (?:used|set)|extra inputs",
    re.IGNORECASE,
)
_TOO_MUCH = re.compile(r"too (?:large|high|big|many)|at most|exceeds?|maximum|less than", re.I)

_DONE = {
    "max_tokens": "sent as max_completion_tokens",
    "max_completion_tokens": "sent as max_tokens",
    "seed": "left out, so a repeat is the provider's own draw",
    "stop": "left out, the reply is cut at the stop text here",
    "temperature": "left out, since 1 is the default",
    "top_p": "left out, since 1 is the default",
}
_HINTS = {
    "temperature": "extra_body: {temperature: null} leaves it to the provider's default",
    "top_p": "extra_body: {top_p: null} leaves it to the provider's default",
    "response_format": "leave 'constrained' out of decoding",
}


def refused_parameter(details: Mapping[str, Any], wording: str) -> str | None:
    """The parameter that an error says the model does not take, or None.

    A value out of range is no refusal of the parameter.
    """
    if not _UNSUPPORTED.search(wording) or _TOO_MUCH.search(wording):
        return None
    param = details.get("param")
    if isinstance(param, str) and param:
        # ``response_format.json_schema`` is about response_format.
        return param.partition(".")[0]
    return next((name for name in PARAMETERS if re.search(rf"\b{name}\b", wording)), None)


def hint(param: str, value: object) -> str:
    """What a user can do about a parameter that cannot be left out without saying so."""
    told = f"the model does not take {param}={value!r}"
    return f"{told}: {_HINTS[param]}" if param in _HINTS else told


class Adapter:
    """What a model was found to refuse; shared by all requests to it."""

    def __init__(self) -> None:
        self._refused: dict[str, str] = {}

    def learn(self, param: str, body: Mapping[str, Any]) -> bool:
        """Whether a request that was refused for ``param`` can be sent otherwise."""
        if param not in body or param not in _DONE or not _is_harmless(param, body[param]):
            return False
        other = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
        if other.get(param) in self._refused:
            return False  # it takes neither name
        self._refused[param] = _DONE[param]
        return True

    def applied(self, body: dict[str, Any]) -> dict[str, Any]:
        """``body`` as the model takes it."""
        for param in self._refused:
            value = body.get(param)
            if value is None:
                continue
            body = {key: kept for key, kept in body.items() if key != param}
            if param == "max_tokens":
                body["max_completion_tokens"] = value
            elif param == "max_completion_tokens":
                body["max_tokens"] = value
        return body

    def notes(self, body: Mapping[str, Any]) -> tuple[str, ...]:
        """What was changed of a request with this body."""
        if not self._refused:
            return ()
        return tuple(f"{p}: {what}" for p, what in self._refused.items() if p in body)

    @property
    def stops_here(self) -> bool:
        """Stop texts must be applied to the reply."""
        return "stop" in self._refused


def _is_harmless(param: str, value: object) -> bool:
    return value == 1 if param in ("temperature", "top_p") else True


def cut_at_stop(text: str, stops: tuple[str, ...]) -> tuple[str, bool]:
    """``text`` up to the first stop text, and whether there was one."""
    found = [at for stop in stops if stop and (at := text.find(stop)) >= 0]
    return (text[: min(found)], True) if found else (text, False)
