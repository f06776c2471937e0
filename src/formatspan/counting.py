"""Counts with the word for what is counted."""

from __future__ import annotations


def counted(number: int, one: str, many: str | None = None) -> str:
    """A count and its noun: ``1 wrapper``, ``1,200 wrappers``, ``2 replies``.

    Args:
        number: How many.
        one: The noun, as it stands behind 1.
        many: The noun otherwise; ``one`` with an s by default.
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
