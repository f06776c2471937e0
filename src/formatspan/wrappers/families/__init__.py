"""The five built-in families, each a data file beside this one."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from formatspan.contracts import Contract
from formatspan.records import Message
from formatspan.wrappers.wrapper import Wrapper

FAMILIES: tuple[str, ...] = ("plain", "json", "structured", "structured_delim", "deliberate")
"""Names of the built-in wrappers, in the order of every table."""


@cache
def family(name: str) -> Wrapper:
    """The built-in wrapper called ``name``, one of ``FAMILIES``."""
    text = (files(__package__) / f"{name}.yaml").read_text(encoding="utf-8")
    return from_data(yaml.safe_load(text))


def from_data(data: dict[str, Any]) -> Wrapper:
    """A wrapper from the plain form of its data file: name, messages, contract."""
    contract = Contract(name=data["name"], **data["contract"])
    messages = tuple(Message(m["role"], m["content"]) for m in data["messages"])
    return Wrapper(data["name"], messages, contract)
