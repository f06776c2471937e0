"""Texts of several parts, such as ``model="a,b",flips``: what stands in quotes is not split."""

from __future__ import annotations

import re

from formatspan.errors import StudyError


def split(text: str, mark: str, option: str) -> list[str]:
    """The parts of ``text`` between the marks that stand outside double quotes.

    Args:
        text: What was given.
        mark: One character.
        option: What the text was given for, as the message names it.

    Raises:
        StudyError: A quotation mark is left open.
    """
    parts, quoted = [""], False
    for character in text:
        if character == '"':
            quoted = not quoted
        if character == mark and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    if quoted:
        raise StudyError(f"{option} {text!r}: a quotation mark is not closed")
    return parts


def bare(text: str) -> str:
    r"""``text`` without the spaces and the double quotes around it; ``""`` inside is a quote."""
    text = text.strip()
    quoted = re.fullmatch(r'"((?:[^"]|"")*)"', text)
    return quoted[1].replace('""', '"') if quoted else text
