"""Wrappers: the shells around a question."""

from formatspan.wrappers.check import check
from formatspan.wrappers.families import FAMILIES, family, from_data
from formatspan.wrappers.wrapper import Content, Rendered, Wrapper, render, vocabulary

__all__ = [
    "FAMILIES",
    "Content",
    "Rendered",
    "Wrapper",
    "check",
    "family",
    "from_data",
    "render",
    "vocabulary",
]
