"""The same study through the embedded engine and through a server of another kind, compared.

    python benchmarks/server_study.py --data DIR --out FOLDER [--examples 20]
    python benchmarks/server_study.py --data DIR --out FOLDER --url URL --dialect vllm --served NAME

Needs the extras ``local`` and ``bench``. By default the server is llama.cpp's, started in this
process on loopback with the embedded engine's own file, one slot and no prompt cache, since its
replies vary otherwise; or one that runs already and holds the same weights. It is asked over HTTP
like any endpoint, one request at a time: one or two a second. The seven tasks of the paper, greedy,
free and constrained; then both score the options of every prompt. The run, with both models side by
side, stays in FOLDER for ``formatspan report`` and ``formatspan falsify``. Last line:
``equal free replies: 560 of 700 (0.80)``.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
from collections import Counter
from pathlib import Path
from statistics import median

from rich.console import Console

from formatspan.analysis import analyze
from formatspan.backends.base import ModelSpec
from formatspan.backends.local.models import find
from formatspan.falsifier.command import falsify
from formatspan.progress import Shown
from formatspan.session import run
from formatspan.study import Study

EMBEDDED, SERVER = "embedded", "server"
Place = tuple[str, str, str]


def main() -> None:
    """Run both, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with <task>.jsonl files")
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    parser.add_argument("--examples", type=int, default=20, help="of each task")
    parser.add_argument("--model", default="local:smollm2-135m-instruct")
    parser.add_argument("--port", type=int, default=8970, help="of llama.cpp; a run keeps to it")
    parser.add_argument("--url", help="base URL of a server that runs already")
    parser.add_argument("--dialect", default="llama_cpp", help="what `constrain` says of it")
    parser.add_argument("--served", default="model", help="name of its model")
    given = parser.parse_args()
    embedded = {"model": given.model, "name": EMBEDDED}
    # One after the other: they would take each other's cores.
    ask([embedded], given.examples, given.data, given.out)
    url = given.url
    if url is None:
        held = _llama(find(ModelSpec("model", given.model)).path, given.port)
        url = f"{held.listening_address}/v1"
    server = {
        "model": f"openai:{given.served}",
        "name": SERVER,
        "base_url": url,
        "concurrency": 1,
        "constrain": given.dialect,
    }
    ask([embedded, server], given.examples, given.data, given.out)
    with Shown(Console(stderr=True)) as listener:
        falsify(given.out, arms=["likelihood"], ask=True, data_dir=given.data, listener=listener)
    tell_scores(given.out)
    for mode in ("constrained", "free"):
        tell(given.out, mode)


def ask(models: list[dict[str, object]], examples: int, data: Path, out: Path) -> None:
    """The paper's study of ``models``."""
    keys = {"models": models, "examples": examples, "decoding": ["free", "constrained"]}
    study = Study.preset("paper", {**keys, "seeds": 1})
    with Shown(Console(stderr=True)) as listener:
        run(study, out=out, data_dir=data, listener=listener)


def tell(out: Path, mode: str) -> None:
    """Print how the two compare in a decoding mode."""
    ours, theirs = replies(out, EMBEDDED, mode), replies(out, SERVER, mode)
    shared = sorted(ours.keys() & theirs.keys())
    equal = [place for place in shared if ours[place] == theirs[place]]
    for level in ("strict", "normalized", "lenient"):
        rows = analyze(out, level=level, inference=False).models.to_dicts()
        for row in (r for r in rows if r["mode"] == mode):
            spans = f"FSI {row['fsi'] * 100:.1f}, PSI {row['psi'] * 100:.1f}"
            print(f"{mode}, {level}, {row['model']}: accuracy {row['accuracy']:.1%}, {spans}")
    for name, at in (("task", 0), ("wrapper", 2)):
        counts, same = Counter(p[at] for p in shared), Counter(p[at] for p in equal)
        told = ", ".join(f"{part} {same[part]} of {n}" for part, n in sorted(counts.items()))
        print(f"equal by {name}: {told}")
    for place in [p for p in shared if ours[p] != theirs[p]][:5]:
        print(f"{' / '.join(place)}: {ours[place]!r}, {SERVER} {theirs[place]!r}")
    print(f"equal {mode} replies: {len(equal)} of {len(shared)} ({len(equal) / len(shared):.2f})")


def tell_scores(out: Path) -> None:
    """Print how the likelihoods of options compare."""
    with sqlite3.connect(out / "run.sqlite") as store:
        rows = store.execute(
            "SELECT f.model, f.task, f.example_id, f.wrapper, f.item, g.logprobs, g.token_ids "
            "FROM further f JOIN generations g USING (request_id) WHERE f.what = 'likelihood'"
        ).fetchall()
    scores: dict[str, dict[Place, dict[str, float]]] = {EMBEDDED: {}, SERVER: {}}
    tokens: dict[str, dict[object, str]] = {EMBEDDED: {}, SERVER: {}}
    for model, task, example, wrapper, item, logprobs, ids in rows:
        of_prompt = scores[model].setdefault((task, example, wrapper), {})
        of_prompt[item] = sum(json.loads(logprobs))
        tokens[model][task, example, wrapper, item] = ids
    ours, theirs = scores[EMBEDDED], scores[SERVER]
    shared = [p for p in ours if p in theirs and ours[p].keys() == theirs[p].keys()]
    alike = sum(tokens[SERVER].get(place) == ids for place, ids in tokens[EMBEDDED].items())
    chosen = sum(_first(ours[p]) == _first(theirs[p]) for p in shared)
    apart = [abs(ours[p][item] - theirs[p][item]) for p in shared for item in ours[p]]
    print(f"options scored in equal tokens: {alike} of {len(tokens[EMBEDDED])}")
    print(f"log-probabilities of options differ by {median(apart):.2f} (median), {max(apart):.2f}")
    print(f"equal likeliest options: {chosen} of {len(shared)} ({chosen / len(shared):.2f})")


def _first(options: dict[str, float]) -> str:
    return max(options, key=options.__getitem__)


def replies(out: Path, model: str, mode: str) -> dict[Place, str]:
    """A model's replies by task, example and wrapper."""
    with sqlite3.connect(out / "run.sqlite") as store:
        rows = store.execute(
            "SELECT task, example_id, wrapper, text FROM points "
            "JOIN generations USING (request_id) WHERE model = ? AND mode = ?",
            (model, mode),
        )
        return {(task, example, wrapper): text for task, example, wrapper, text in rows}


def _llama(path: Path, port: int):  # type: ignore[no-untyped-def]  # noqa: ANN202 - it has no types
    import xllamacpp

    options = xllamacpp.CommonParams()
    options.model.path = str(path)
    options.n_parallel, options.n_ctx, options.verbosity = 1, 4096, -1
    options.cache_prompt, options.cache_ram_mib = False, 0
    options.port = port
    options.warmup, options.use_jinja = False, True
    return xllamacpp.Server(options)


if __name__ == "__main__":
    main()
