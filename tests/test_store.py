"""Replies go into the store and come out of it as they were."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formatspan.records import Generation
from formatspan.schema import MIGRATIONS
from formatspan.store import Store
from formatspan.stored import PACKED_FROM
from old_stores import age

BODIES = st.one_of(
    st.binary(max_size=64),
    st.text(max_size=64).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.integers(PACKED_FROM - 2, PACKED_FROM + 2).map(lambda size: b"\xc3\xa9" * size),
    st.integers(PACKED_FROM - 2, PACKED_FROM + 2).map(lambda size: b"\0{" + b"x" * (size - 2)),
)


@given(st.lists(BODIES, max_size=5))
def test_a_body_is_kept_byte_for_byte(bodies: list[bytes]) -> None:
    made = [Generation(str(i), "", "stop", body=body) for i, body in enumerate(bodies)]
    store = Store.create(Path(":memory:"))
    store.commit(made, [])
    assert [store.generation(reply.request_id) for reply in made] == made
    store.close()


@pytest.mark.parametrize("size", [40, PACKED_FROM - 1, PACKED_FROM, 5000])
def test_short_bodies_can_be_read_by_all(tmp_path: Path, size: int) -> None:
    body = '{"é": ""}'.encode().replace(b'""', b'"' + b"x" * (size - 10) + b'"')
    assert len(body) == size
    with Store.create(tmp_path / "run.sqlite") as store:
        store.commit([Generation("r", "", "stop", body=body)], [])
    with sqlite3.connect(tmp_path / "run.sqlite") as plain:
        ((kind, kept),) = plain.execute("SELECT typeof(body), body FROM generations")
    short = len(body) < PACKED_FROM
    assert (kind, kept) == (("text", body.decode()) if short else ("blob", zlib.compress(body)))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_bodies_of_older_stores_are_read(tmp_path: Path, version: int) -> None:
    with Store.create(tmp_path / "run.sqlite") as store:
        store.commit([Generation("r", "", "stop", body=b"{}")], [])
        if version < 3:  # all were compressed
            store.connection.execute("UPDATE generations SET body = ?", (zlib.compress(b"{}"),))
    age(tmp_path / "run.sqlite", version)
    with Store.read(tmp_path / "run.sqlite") as store:
        found = store.generation("r")
        assert found is not None
        assert found.body == b"{}"
        version_now = store.connection.execute("PRAGMA user_version").fetchone()
        assert version_now == (len(MIGRATIONS),)


def test_replies_of_many_models_and_statements(tmp_path: Path) -> None:
    made = [
        Generation(
            f"r{i}",
            "é" * i,
            None if i % 3 else "length",
            token_ids=(1, 2) if i % 2 else None,
            logprobs=() if i % 5 else (-0.5, -1.0),
            adaptations=("seed: left out",) if i % 7 == 0 else (),
            provider="p" if i % 2 else None,
            cost=0.1 * i,
        )
        for i in range(101)
    ]
    with Store.create(tmp_path / "run.sqlite") as store:
        store.commit(made, [])
        store.commit(made, [])  # a reply that is there stays
        assert [store.generation(reply.request_id) for reply in made] == made
