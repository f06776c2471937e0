"""How much of the prompts a prefix cache can reuse, by the order of asking; a simulation.

    python benchmarks/prefix_reuse.py --data DIR

A prompt can reuse the beginnings of all prompts answered before it, in blocks of 64 characters
(about 16 tokens, as vLLM's cache holds them); those in flight with it are not answered yet. The
prompts are those of the seven data sets under all five wrappers. No model is asked.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from formatspan.grid import CHUNK, Budgets, OpenModel, TaskGrid
from formatspan.planning import load_tasks
from formatspan.study import Study

BLOCK = 64
EXAMPLES = 96
REMEMBERED = 2_000
"""Prompts after which a beginning that nobody used is forgotten."""
IN_FLIGHT = (1, 16, 32, 64, 256)

Blocks = tuple[int, ...]


def blocks(text: str) -> Blocks:
    """Whole blocks of a prompt; each stands for itself and all before it."""
    found, before = [], 0
    for start in range(0, len(text) - BLOCK + 1, BLOCK):
        before = hash((before, text[start : start + BLOCK]))
        found.append(before)
    return tuple(found)


def reused(order: Sequence[Blocks], in_flight: int) -> float:
    """Share of the blocks, the last part of each prompt among them, that a cache holds."""
    seen: dict[int, int] = {}
    hits = total = 0
    for i, prompt in enumerate(order):
        if i >= in_flight:
            seen |= dict.fromkeys(order[i - in_flight], i - in_flight)
        for block in prompt:
            if i - seen.get(block, -REMEMBERED - in_flight - 1) > REMEMBERED + in_flight:
                break
            hits += 1
        total += len(prompt) + 1
    return hits / total


def orders(grid: TaskGrid, seeds: int) -> Iterator[tuple[str, list[Blocks]]]:
    """The order of asking, and two others."""
    rows = [
        (example.id, blocks("".join(m.content for m in prompts[""].messages)))
        for example, _, prompts in grid.prompts()
    ]
    size = CHUNK * len(grid.wrappers)
    chunks = [rows[i : i + size] for i in range(0, len(rows), size)]
    yield "as asked", [b for chunk in chunks for _ in range(seeds) for _, b in chunk]
    yield "repeats side by side", [b for _, b in rows for _ in range(seeds)]
    by_example: dict[str, list[Blocks]] = {}
    for example, prompt in rows:
        by_example.setdefault(example, []).append(prompt)
    yield (
        "one example after the other",
        [b for prompts in by_example.values() for b in prompts for _ in range(seeds)],
    )


def main() -> None:
    """Print a line for each number of seeds and each order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    study = Study.preset("paper", {"budget": "example", "examples": EXAMPLES})
    tasks = load_tasks(study, parser.parse_args().data)
    model = OpenModel(study.models[0], "", None, "", copies=False)
    for seeds in (1, 5):
        totals: dict[tuple[str, int], float] = {}
        for data in tasks:
            for name, order in orders(TaskGrid(study, data, [model], Budgets({})), seeds):
                for in_flight in IN_FLIGHT:
                    share = reused(order, in_flight) / len(tasks)
                    totals[name, in_flight] = totals.get((name, in_flight), 0.0) + share
        for name in dict.fromkeys(name for name, _ in totals):
            shares = "  ".join(f"{n}: {totals[name, n]:.2f}" for n in IN_FLIGHT)
            print(f"{seeds} seeds, {name:<28} reused by requests in flight  {shares}")


if __name__ == "__main__":
    main()
