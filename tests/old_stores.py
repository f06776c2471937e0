"""Stores as earlier versions wrote them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from formatspan.schema import APPLICATION_ID, MIGRATIONS

_ALIKE = ("meta", "tasks", "models", "examples", "budgets", "prompts")
_REPLIES = """
SELECT id, text, finish_reason, finish_reason_raw, reasoning, token_ids, logprobs, prompt_tokens,
  completion_tokens, cached_tokens, reasoning_tokens, served_model, provider, fingerprint,
  response_id, attempts, adaptations, started_at, first_token_s, latency_s, cost, cost_source, body
FROM new.generations JOIN new.requests ON number = request
"""
_HASHED = {
    "points": """
SELECT p.id, model, task, example_id, wrapper, mode, seed, tokenizer, r.id, c.id
FROM new.points p JOIN new.requests r ON r.number = p.request
LEFT JOIN new.requests c ON c.number = copy_of
""",
    "failures": """
SELECT f.id, r.id, kind, message, attempts, at
FROM new.failures f JOIN new.requests r ON r.number = f.request
""",
    "further": """
SELECT f.id, what, model, task, example_id, wrapper, seed, item, tokenizer, r.id, c.id
FROM new.further f JOIN new.requests r ON r.number = f.request
LEFT JOIN new.requests c ON c.number = f.parent
""",
}


def age(path: Path, version: int) -> None:
    """Put the store of an earlier schema (up to 3) in the place of the one at ``path``."""
    old = path.with_suffix(".old")
    connection = sqlite3.connect(old, isolation_level=None)
    for step in MIGRATIONS[:version]:
        connection.executescript(step)
    connection.execute("ATTACH ? AS new", (str(path),))
    for table in _ALIKE:
        connection.execute(f"INSERT INTO {table} SELECT * FROM new.{table}")
    connection.execute(f"INSERT INTO generations {_REPLIES}")
    for table, rows in _HASHED.items():
        if version > 1 or table != "further":
            connection.execute(f"INSERT INTO {table} {rows}")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.close()
    old.replace(path)
