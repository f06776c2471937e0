"""The one place where figures become text."""

from __future__ import annotations

import math

MISSING = "–"


def percent(value: float | None, digits: int = 1) -> str:
    """A fraction of 1 as percent: ``0.4567`` is ``45.7%``."""
    return MISSING if _undefined(value) else f"{_fixed(100 * float(value or 0), digits)}%"


def points(value: float | None, digits: int = 1) -> str:
    """A difference of fractions as percentage points, without a unit: ``0.31`` is ``31.0``."""
    return MISSING if _undefined(value) else _fixed(100 * float(value or 0), digits)


def ratio(value: float | None, digits: int = 2) -> str:
    """A plain ratio."""
    return MISSING if _undefined(value) else _fixed(float(value or 0), digits)


def interval(low: float | None, high: float | None, digits: int = 1) -> str:
    """Two limits in percentage points: ``26.1 to 36.2``."""
    if _undefined(low) or _undefined(high):
        return MISSING
    return f"{points(low, digits)} to {points(high, digits)}"


def probability(value: float | None) -> str:
    """A p-value: ``0.034``, or ``< 0.001``."""
    if _undefined(value):
        return MISSING
    return "< 0.001" if float(value or 0) < 0.001 else f"{float(value or 0):.3f}"


def count(value: int) -> str:
    """A count with thousands separators."""
    return f"{value:,}"


def dollars(value: float | None) -> str:
    """US dollars: ``$12.34``; below one dollar with four digits, ``$0.0012``."""
    if _undefined(value):
        return MISSING
    amount = float(value or 0)
    return "$0" if amount == 0 else f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}"


def duration(seconds: float) -> str:
    """Seconds as ``42 s``, ``3 min 05 s`` or ``2 h 07 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _fixed(value: float, digits: int) -> str:
    """With so many digits; what rounds to zero has no sign."""
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _undefined(value: float | None) -> bool:
    return value is None or math.isnan(value)
