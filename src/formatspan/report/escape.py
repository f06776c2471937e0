"""Texts of users, data and models made safe for the languages a report is written in."""

from __future__ import annotations

import re

_CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
"""Characters that steer, hide or turn text; joiners of scripts are left alone."""
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "–": "--",
}


def neutral(value: object) -> object:
    """A cell that no spreadsheet takes for a formula; numbers stay numbers.

    A text that starts with ``= + - @``, a tab or a line end gets an apostrophe in front
    (https://owasp.org/www-community/attacks/CSV_Injection).
    """
    if isinstance(value, list | tuple):
        value = "; ".join(map(str, value))
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    return f"'{value}" if value.lstrip(" ")[:1] in tuple("=+-@\t\r\n") else value


def latex(text: str) -> str:
    """``text`` with everything that LaTeX would act on escaped."""
    return "".join(_LATEX.get(c, c) for c in one_line(text))


def markdown(text: str) -> str:
    """``text`` with everything that Markdown or its HTML would act on escaped."""
    escaped = re.sub(r"([\\`*_\[\]|#!~])", r"\\\1", one_line(text))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def one_line(text: str) -> str:
    """``text`` on one line, without control and direction characters."""
    return " ".join(_CONTROL.sub(" ", text).split())


def visible(text: str) -> str:
    """``text`` in its lines, with a mark in place of each control or direction character."""
    return _CONTROL.sub(lambda found: found[0] if found[0] in "\n\t" else "\ufffd", text)
