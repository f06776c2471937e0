"""From a run's store to the findings: a pure function, no model is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from formatspan.errors import RunError
from formatspan.falsifier.arms import Arm, Tables, constrained_arm, scoring_arms
from formatspan.falsifier.compare import Row, ability, compared, relations
from formatspan.falsifier.likelihood import likelihood_arms
from formatspan.falsifier.repair import policies
from formatspan.falsifier.result import ARMS, REFERENCE, Falsification
from formatspan.store import Store
from formatspan.table import study_of

if TYPE_CHECKING:
    import polars as pl

NOT_ASKED = "not asked yet"


def findings(
    store: Store, wanted: Sequence[str] = ARMS, absent: Mapping[str, str] | None = None
) -> Falsification:
    """What the replies in a store show.

    Args:
        store: A run's store.
        wanted: Arms to compare; the reference is always there.
        absent: Why arms are missing, where that is known.

    Raises:
        RunError: The run was never planned, or holds no free replies.
    """
    study = study_of(store)
    if "free" not in study.decoding:
        raise RunError(
            f"{store.path.parent}: holds no free replies, to which other arms could be compared: "
            "run it with decoding: [free, constrained]"
        )
    tables = Tables(store, study)
    arms = arms_of(tables, store)
    there = {arm.name for arm in arms}
    chosen = [arm for arm in arms if arm.name in wanted or arm.name == REFERENCE]
    known = dict(absent or {})
    left = {n: known.get(n, NOT_ASKED) for n in ARMS if n in wanted and n not in there}
    return Falsification(
        study=study.name,
        arms=_frame(compared(chosen)),
        relations=_frame(relations(chosen)),
        ability=_frame(ability(chosen, tables.chances)),
        absent=left,
        policies=_frame(policies(store, tables)),
    )


def arms_of(tables: Tables, store: Store) -> list[Arm]:
    """Every arm that the store holds, in the order of `ARMS`."""
    held = constrained_arm(tables)
    return [*scoring_arms(tables), *([held] if held else []), *likelihood_arms(tables, store)]


def _frame(rows: Sequence[Row]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(list(rows), infer_schema_length=None)
