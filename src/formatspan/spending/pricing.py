"""What a token costs: from the study, a price file, the endpoint's own list, or the shipped one.

A price file is YAML::

    date: 2026-11-30
    source: where the figures are from
    prices:
      openrouter:vendor/model: { prompt: 0.1, completion: 0.2 }   # US dollars per million tokens

``cached`` (a million cached prompt tokens) may stand beside ``prompt`` and ``completion``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from formatspan.backends.table import canonical_address
from formatspan.errors import BackendError, StudyError
from formatspan.study import ModelEntry, Study
from formatspan.study_file import read_yaml

SHIPPED = Path(__file__).parent / "prices.yaml"
BATCH_DISCOUNT = 0.5
"""What a batch costs of the price of single requests
(https://platform.openai.com/docs/guides/batch)."""
FREE_SCHEMES = frozenset({"local", "scripted"})
"""Models that run on this machine."""
_KEYS = ("prompt", "completion", "cached")


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """US dollars per million tokens."""

    prompt: float
    completion: float
    cached: float | None = None
    """Prompt tokens that the endpoint took from its cache; None prices them as others."""
    source: str = ""
    """Where the figures are from, with their date where it is known."""
    shipped: bool = False
    """From the dated file that ships with the package: fit for a plan, not for a record."""

    def dollars(self, prompt: float, completion: float, cached: float = 0.0) -> float:
        """What these tokens cost; ``cached`` ones are part of ``prompt``."""
        cheap = self.prompt if self.cached is None else self.cached
        total = (prompt - cached) * self.prompt + cached * cheap + completion * self.completion
        return total / 1e6

    def scaled(self, factor: float) -> ModelPrice:
        """The same at a discount."""
        cached = None if self.cached is None else self.cached * factor
        prices = (self.prompt * factor, self.completion * factor, cached)
        return ModelPrice(*prices, self.source, self.shipped)


FREE = ModelPrice(0.0, 0.0, 0.0, "runs on this machine")


def stated_prices(study: Study, price_file: Path | str | None = None) -> dict[str, ModelPrice]:
    """Prices that the user gave, by label: the study's own, else the price file's.

    Models that run on this machine cost nothing.

    Raises:
        StudyError: The price file cannot be read or is wrong.
    """
    given = read_prices(Path(price_file)) if price_file is not None else {}
    found = {e.name: _of_study(e) or given.get(e.model) for e in study.models}
    return {name: price for name, price in found.items() if price is not None}


def shipped_prices(study: Study) -> dict[str, ModelPrice]:
    """Prices of the file that ships with the package, by label: dated, but better than none."""
    shipped = read_prices(SHIPPED)
    # Another host asks other prices.
    own = [e for e in study.models if e.base_url is None and e.model in shipped]
    return {entry.name: replace(shipped[entry.model], shipped=True) for entry in own}


def _of_study(entry: ModelEntry) -> ModelPrice | None:
    if entry.price is not None:
        return ModelPrice(entry.price.prompt, entry.price.completion, source="study")
    return FREE if entry.spec().scheme in FREE_SCHEMES else None


def read_prices(path: Path) -> dict[str, ModelPrice]:
    """The prices in a file, by canonical address.

    Raises:
        StudyError: Names the file, the key and what would be right.
    """
    data = read_yaml(path, "price file keys")
    unknown = sorted(str(key) for key in data.keys() - {"date", "source", "prices"})
    if unknown:
        raise StudyError(f"{path}: {unknown[0]}: expected the keys date, source and prices")
    prices = data.get("prices")
    if not isinstance(prices, dict):
        raise StudyError(f"{path}: prices: expected a mapping from model addresses to prices")
    dated = f" of {data['date']}" if data.get("date") else ""
    source = f"{path.name}{dated}"
    return {_address(path, key): _price(path, key, value, source) for key, value in prices.items()}


def _address(path: Path, key: object) -> str:
    try:
        return canonical_address(str(key))
    except BackendError as error:
        raise StudyError(f"{path}: prices: {error}") from None


def _price(path: Path, key: object, value: object, source: str) -> ModelPrice:
    where = f"{path}: prices[{key}]"
    if not isinstance(value, dict) or not {"prompt", "completion"} <= value.keys() <= set(_KEYS):
        raise StudyError(
            f"{where}: expected {{prompt: N, completion: N}} and perhaps cached, "
            "in US dollars per million tokens"
        )
    prompt, completion, cached = (
        _number(f"{where}.{name}", value[name]) if name in value else None for name in _KEYS
    )
    return ModelPrice(prompt or 0.0, completion or 0.0, cached, source)


def _number(where: str, value: Any) -> float:  # noqa: ANN401 - YAML gives anything
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
        raise StudyError(f"{where}: expected US dollars per million tokens, got {value!r}")
    return float(value)
