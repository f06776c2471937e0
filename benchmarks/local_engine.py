"""Prompts a second of a whole ``formatspan`` run against the bare engine on the same prompts.

    python benchmarks/local_engine.py [--examples 40] [--rounds 3] [--model local:...]

Needs the extra ``local``. The run asks the demo suite under the five wrappers. The bare engine
gets the run's prompts with the same settings, all at once, as its documentation shows. Both
load the model, each in a process of its own; rounds alternate, since a shared machine drifts.
Processor seconds are printed too: on a busy machine they say more than the clock. Last line:
``formatspan 4.1/s, bare engine 4.0/s, ratio 1.03``.
"""

from __future__ import annotations

import argparse
import json
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from formatspan.backends.base import ModelSpec
from formatspan.backends.local import open_model
from formatspan.records import Message
from formatspan.session import run
from formatspan.study import Study

TASKS = ("demo_choice", "demo_boolean", "demo_number")
MAX_TOKENS = 24


class Half(NamedTuple):
    """One measurement."""

    prompts: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    """From opening the model to the last reply."""
    cpu_seconds: float
    peak_mb: float


def main() -> None:
    """Alternate both halves and compare their medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=40, help="of each task")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", default="local:smollm2-135m-instruct")
    parser.add_argument("--half", choices=("whole", "bare"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.half:
        folder = Path(given.folder)
        whole = given.half == "whole"
        half = measure_run(given, folder) if whole else measure_bare(given.model, folder)
        print(json.dumps(half._asdict()))
        return
    compare(given)


def compare(given: argparse.Namespace) -> None:
    """Print both halves' rates, round by round, and the ratio of the medians."""
    rates: dict[str, list[float]] = {"whole": [], "bare": []}
    for number in range(given.rounds):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("whole", "bare"):
                half = in_a_process(given, name, folder)
                rates[name].append(half.prompts / half.seconds)
                print(
                    f"round {number + 1}, {name}: {half.prompts} prompts of "
                    f"{half.prompt_tokens / half.prompts:.0f} tokens, replies of "
                    f"{half.completion_tokens / half.prompts:.1f}: {rates[name][-1]:.2f}/s, "
                    f"{half.cpu_seconds / half.prompts:.3f} processor s each, "
                    f"{half.peak_mb:.0f} MB",
                    flush=True,
                )
    whole, bare = statistics.median(rates["whole"]), statistics.median(rates["bare"])
    print(f"formatspan {whole:.2f}/s, bare engine {bare:.2f}/s, ratio {whole / bare:.2f}")


def in_a_process(given: argparse.Namespace, half: str, folder: str) -> Half:
    """One half, measured in a process of its own."""
    options = ["--examples", str(given.examples), "--model", given.model]
    command = [sys.executable, __file__, "--half", half, "--folder", folder, *options]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return Half(**json.loads(output.splitlines()[-1]))


def measure_run(given: argparse.Namespace, folder: Path) -> Half:
    """A whole run: planning, asking, storing."""
    study = Study.build(
        {
            "models": [given.model],
            "tasks": list(TASKS),
            "examples": given.examples,
            "max_tokens": MAX_TOKENS,
        }
    )
    started = time.perf_counter()
    done = run(study, out=folder)
    seconds = time.perf_counter() - started
    with sqlite3.connect(folder / "run.sqlite") as store:
        sums = "SELECT sum(prompt_tokens), sum(completion_tokens) FROM generations"
        prompt_tokens, completion_tokens = store.execute(sums).fetchone()
    return _half(done.asked, prompt_tokens, completion_tokens, seconds)


def measure_bare(model: str, folder: Path) -> Half:
    """The engine alone on the prompts of the run in ``folder``."""
    return bare(model, stored_chats(folder / "run.sqlite"))


def stored_chats(path: Path) -> list[tuple[Message, ...]]:
    """The chats of a run, in the order it asked them."""
    asked = (
        "SELECT messages FROM points JOIN prompts USING (tokenizer, task, example_id, wrapper) "
        "GROUP BY request_id ORDER BY min(points.id)"
    )
    with sqlite3.connect(path) as store:
        rows = store.execute(asked).fetchall()
    return [tuple(Message(**message) for message in json.loads(row[0])) for row in rows]


def bare(model: str, chats: Sequence[tuple[Message, ...]]) -> Half:
    """The engine alone: everything added at once, then steps until nothing is left."""
    started = time.perf_counter()
    backend = open_model(ModelSpec("model", model))
    tokenizer, pipeline = backend.tokenizer(), backend._open_pipeline()
    prompts = [tokenizer.encode(chat) for chat in chats]
    handles = [
        pipeline.add_request(number, prompt, _config(backend._facts.stop_ids))
        for number, prompt in enumerate(prompts)
    ]
    while pipeline.has_non_finished_requests():
        pipeline.step()
    replies = [handle.read_all()[0].generated_ids for handle in handles]
    for ids in replies:
        tokenizer.decode(ids)
    seconds = time.perf_counter() - started
    return _half(
        len(chats), sum(p.shape[1] for p in prompts), sum(len(ids) for ids in replies), seconds
    )


def _config(stop_ids: Sequence[int]) -> object:
    import openvino_genai  # loaded without its telemetry by `open_model`

    config = openvino_genai.GenerationConfig()
    config.max_new_tokens, config.apply_chat_template = MAX_TOKENS, False
    config.set_eos_token_id(stop_ids[0])
    return config


def _half(prompts: int, prompt_tokens: int, completion_tokens: int, seconds: float) -> Half:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu = usage.ru_utime + usage.ru_stime
    return Half(prompts, prompt_tokens, completion_tokens, seconds, cpu, usage.ru_maxrss / 1024)


if __name__ == "__main__":
    main()
