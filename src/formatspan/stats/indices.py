"""Indices of format sensitivity of one model on one task, and their mean over tasks.

Definitions: the method document, section 7 (Cells; FSI, PSI and their bounded alternatives).
Arrays are examples × wrappers; everything is for one extraction level and decoding mode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

EPSILON = 1e-6
"""Keeps nFSI finite where nothing is right (the paper's constant)."""


@dataclass(frozen=True)
class Cells:
    """Replies of one model on one task: examples × wrappers; copies are not counted."""

    correct: Counts
    """Generations that are correct."""
    parsed: Counts
    """Generations that parsed."""
    replies: Counts
    """Generations that exist; the rest of ``requested`` failed or is pending."""
    requested: Counts

    def __post_init__(self) -> None:
        shapes = {a.shape for a in (self.correct, self.parsed, self.replies, self.requested)}
        if len(shapes) != 1 or self.correct.ndim != 2:
            raise ValueError(
                f"expected four arrays of one shape (examples, wrappers), got {shapes}"
            )

    @property
    def indexed(self) -> NDArray[np.bool_]:
        """Examples with at least one generation under every wrapper; shape (examples,)."""
        return np.asarray((self.replies > 0).all(axis=1))

    def take(self, examples: NDArray[np.bool_]) -> Cells:
        """The cells of some examples."""
        arrays = (self.correct, self.parsed, self.replies, self.requested)
        return Cells(*(a[examples] for a in arrays))

    def rates(self) -> tuple[Array, Array]:
        """Y and Z: mean correctness and mean of parsed over the replies; NaN without any."""
        with np.errstate(invalid="ignore"):
            return self.correct / self.replies, self.parsed / self.replies


class Range(NamedTuple):
    """A range that is known only between two bounds."""

    low: float
    high: float


class Indices(NamedTuple):
    """Indices of one model on one task. Rates and spans are fractions of 1, not percent."""

    n: int
    """Examples indexed."""
    accuracy: Array
    """A by wrapper, shape (wrappers,)."""
    parseability: Array
    """P by wrapper."""
    conditional: Array
    """C = A / P by wrapper: accuracy among parsed replies; NaN where nothing parsed."""
    fsi: float
    psi: float
    nfsi: float
    """FSI over mean accuracy."""
    rfsi: float
    """FSI over the best wrapper's accuracy, in [0, 1]; 0 if nothing is right."""
    cfsi: float
    """Range of the chance-corrected accuracy, clipped to [0, 1]."""
    clipped: int
    """Wrappers below chance, whose depth cFSI cannot show."""
    bounds: Range
    """Lowest and highest FSI if every request without a reply were wrong or right."""


def indices(cells: Cells, chance: float) -> Indices | None:
    """Indices over the indexed examples, or None if there are none.

    Args:
        cells: Replies, examples × wrappers.
        chance: Accuracy of guessing, in [0, 1).
    """
    kept = cells.take(cells.indexed)
    n = len(kept.correct)
    if n == 0 or cells.correct.shape[1] == 0:
        return None
    y, z = kept.rates()
    accuracy, parseability = y.mean(axis=0), z.mean(axis=0)
    fsi = span(accuracy)
    corrected = (accuracy - chance) / (1 - chance)
    with np.errstate(invalid="ignore"):
        conditional = accuracy / parseability
    return Indices(
        n=n,
        accuracy=accuracy,
        parseability=parseability,
        conditional=conditional,
        fsi=fsi,
        psi=span(parseability),
        nfsi=fsi / (float(accuracy.mean()) + EPSILON),
        rfsi=fsi / float(accuracy.max()) if accuracy.max() > 0 else 0.0,
        cfsi=span(np.clip(corrected, 0.0, 1.0)),
        clipped=int((corrected < 0).sum()),
        bounds=failure_bounds(cells),
    )


def span(values: Array) -> float:
    """Largest minus smallest value."""
    return float(values.max() - values.min())


def failure_bounds(cells: Cells) -> Range:
    """Lowest and highest FSI over all examples if missing replies were all wrong or right."""
    asked = np.maximum(cells.requested, 1)
    low = (cells.correct / asked).mean(axis=0)
    high = ((cells.correct + cells.requested - cells.replies) / asked).mean(axis=0)
    apart = high[:, None] - low[None, :]
    np.fill_diagonal(apart, 0.0)
    return Range(max(0.0, float(low.max() - high.min())), max(0.0, float(apart.max())))


def wins(accuracy: Array) -> Array:
    """Share of a win by wrapper: one win in all, shared equally by those that tie."""
    best = np.isclose(accuracy, accuracy.max(), rtol=0.0, atol=1e-12)
    return np.asarray(best / best.sum(), dtype=np.float64)


def bootstrap_over_tasks(
    values: Array, rng: np.random.Generator, *, resamples: int = 10_000, confidence: float = 0.95
) -> Range | None:
    """The paper's interval of a mean over tasks: percentiles of resampled tasks.

    Says how the mean would vary over *tasks like these*, not over examples. None for fewer
    than two tasks, over which nothing can be resampled.
    """
    if len(values) < 2:
        return None
    picks = rng.integers(len(values), size=(resamples, len(values)))
    tail = (1 - confidence) / 2
    low, high = np.quantile(values[picks].mean(axis=1), [tail, 1 - tail])
    return Range(float(low), float(high))


def token_spread(tokens: Array) -> Array:
    """Δtok by example: (max - min) / mean of prompt tokens over wrappers.

    Args:
        tokens: Prompt tokens, examples × wrappers; NaN where not counted.

    Returns:
        Shape (examples,); NaN where a wrapper's count is missing.
    """
    return np.asarray((tokens.max(axis=1) - tokens.min(axis=1)) / tokens.mean(axis=1))
