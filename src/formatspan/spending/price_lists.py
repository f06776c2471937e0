"""Finds the price of every model: stated, listed by its endpoint now, or shipped.

Only endpoints whose key is at hand, or that need none, are asked for their list, and only for
models without a stated price. A list that cannot be had is a note, never an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from formatspan.loops import run_to_end
from formatspan.spending.pricing import ModelPrice, shipped_prices, stated_prices
from formatspan.study import ModelEntry, Study

TIMEOUT_S = 10.0


class Prices(NamedTuple):
    """Prices by label, and why a list is missing."""

    prices: dict[str, ModelPrice]
    failed: list[str]


def find_prices(
    study: Study, price_file: Path | str | None = None, *, online: bool = True
) -> Prices:
    """The price of every model that has one.

    Args:
        study: Whose models.
        price_file: The user's price file.
        online: Ask the endpoints for their lists.

    Raises:
        StudyError: The price file cannot be read or is wrong.
    """
    stated = stated_prices(study, price_file)
    unstated = [entry for entry in study.models if entry.name not in stated]
    listed = run_to_end(_listed(unstated)) if online and unstated else Prices({}, [])
    return Prices({**shipped_prices(study), **listed.prices, **stated}, listed.failed)


async def _listed(entries: list[ModelEntry]) -> Prices:
    from formatspan.backends.model_list import Listed, NoList, listed_models
    from formatspan.backends.raw import raw_endpoint

    lists: dict[str, dict[str, Listed]] = {}
    found = Prices({}, [])
    for entry in entries:
        endpoint = raw_endpoint(entry.spec(), timeout_s=TIMEOUT_S)
        if endpoint is None:
            continue
        try:
            if endpoint.base not in lists:
                lists[endpoint.base] = {}
                lists[endpoint.base] = await listed_models(endpoint)
        except NoList as error:
            found.failed.append(f"{endpoint.base}/models: no price list: {error}")
        finally:
            await endpoint.aclose()
        model = lists[endpoint.base].get(entry.spec().target)
        if model is not None and model.prompt is not None and model.completion is not None:
            prices = (model.prompt, model.completion, model.cached)
            found.prices[entry.name] = ModelPrice(*prices, source="the endpoint's list")
    return found
