"""The analysis of a run: frozen frames and figures, a pure function of its store.

Nothing here draws or asks a model. The same store gives the same analysis, byte for byte,
whether the run was interrupted or not. Where a figure is made:

- ``result``: what an analysis holds, and its JSON form;
- ``build``: from a run to an analysis, by way of the rooms below;
- ``grids`` and ``rows``: indices and coverage, counted straight from the table;
- ``tested``: what `formatspan.inference` adds to these rows, and the frames of its own;
- ``levels``: FSI and PSI at every extraction level, on all examples and on the matched subset;
- ``caps`` and ``cutting``: the indices had the replies been cut at fewer tokens.
"""

from formatspan.analysis.build import Analyzed, analysis_of, analyze, analyzed
from formatspan.analysis.result import SCHEMA_VERSION, Analysis
from formatspan.analysis.rows import FEW_EXAMPLES
from formatspan.table import ALL_LEVELS

__all__ = [
    "ALL_LEVELS",
    "FEW_EXAMPLES",
    "SCHEMA_VERSION",
    "Analysis",
    "Analyzed",
    "analysis_of",
    "analyze",
    "analyzed",
]
