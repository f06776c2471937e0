"""What the figures of an analysis are worth: intervals, tests, parts and ranks, as plain rows.

Everything comes from `formatspan.stats` on one panel, a run at one extraction level and in one
decoding mode. A figure that cannot be had is None; why is in the row's ``flags`` or ``note``.
``panels`` counts a table; ``pairs``, ``models`` and ``facts`` hold the rows of each kind.
"""

from formatspan.inference.brief import Brief, brief
from formatspan.inference.facts import Kind
from formatspan.inference.infer import RESAMPLES, SEED, Inference, infer
from formatspan.inference.panels import Names, close_examples, first_draws, panel_of
from formatspan.inference.plain import columns, plain_data

__all__ = [
    "RESAMPLES",
    "SEED",
    "Brief",
    "Inference",
    "Kind",
    "Names",
    "brief",
    "close_examples",
    "columns",
    "first_draws",
    "infer",
    "panel_of",
    "plain_data",
]
