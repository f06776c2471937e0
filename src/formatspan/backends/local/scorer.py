"""Scores given replies: log-probabilities of their tokens after a prompt, nothing sampled.

The engine's pipeline can echo a prompt's log-probabilities, but only without its prefix cache,
so that every option of a question would cost the whole prompt again. The bare model keeps the
keys and values of one prompt as its state; all replies to it that wait are then one batch behind
it. Values equal the pipeline's to the third decimal, at a third of the time with four options.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from formatspan.backends.local.engine import EngineError, Rejected, last_line

Ids = tuple[int, ...]
Floats = npt.NDArray[np.float64]

_POSITIONS = "positions"
"""Name of the input that says which positions' logits are wanted."""


@dataclass(eq=False)
class Score:
    """A reply to be scored as the continuation of a prompt."""

    prompt: Ids
    reply: Ids
    """Not empty."""
    future: Future[tuple[float, ...]] = field(default_factory=Future)
    """Natural logarithms of the probabilities of the reply's tokens."""
    asked: float = field(default_factory=time.monotonic)


class Scorer:
    """A thread that holds the bare model; opened on the first job.

    Args:
        open_model: Makes the bare model's infer request, whose logits are at `_POSITIONS`.
    """

    def __init__(self, open_model: Callable[[], Any]) -> None:
        self._open = open_model
        self._model: Any = None
        self._lock = threading.Lock()
        self._waiting: dict[Ids, list[Score]] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="formatspan-scorer")

    def submit(self, score: Score) -> Future[tuple[float, ...]]:
        """Queue a job; its future raises `Rejected` or `EngineError`.

        Raises:
            EngineError: The scorer is closed.
        """
        with self._lock:
            group = self._waiting.setdefault(score.prompt, [])
            group.append(score)
            if len(group) == 1:
                try:
                    self._thread.submit(self._serve, score.prompt)
                except RuntimeError as error:
                    raise EngineError("the engine is closed") from error
        return score.future

    def close(self) -> None:
        """End the thread after the prompt under way; jobs that wait fail."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        with self._lock:
            left, self._waiting = self._waiting, {}
        for score in (score for group in left.values() for score in group):
            if score.future.set_running_or_notify_cancel():
                score.future.set_exception(EngineError("the engine was closed"))
        self._model = None

    def _serve(self, prompt: Ids) -> None:
        """All that waits at one prompt."""
        with self._lock:
            group = self._waiting.pop(prompt, [])
        group = [score for score in group if score.future.set_running_or_notify_cancel()]
        if not group:
            return
        try:
            if self._model is None:
                self._model = self._opened()
            found = continuations(self._model, prompt, [score.reply for score in group])
        except Exception as error:
            known = error if isinstance(error, EngineError) else Rejected(last_line(error))
            for score in group:
                score.future.set_exception(known)
            return
        for score, logprobs in zip(group, found, strict=True):
            score.future.set_result(logprobs)

    def _opened(self) -> Any:  # noqa: ANN401 - the engine has no types
        try:
            return self._open()
        except Exception as error:
            raise EngineError(last_line(error)) from error


def continuations(model: Any, prompt: Ids, replies: Sequence[Ids]) -> list[tuple[float, ...]]:  # noqa: ANN401
    """Log-probabilities of the tokens of several replies to one prompt.

    Args:
        model: Infer request of the bare model.
        prompt: Its tokens; at least one.
        replies: Tokens of each reply.
    """
    size, count = len(prompt), len(replies)
    model.reset_state()
    first = _logprobs(model, np.array([prompt]), 0, [size - 1])
    logprobs = np.repeat(first, count, axis=0)
    longest = max(map(len, replies))
    if longest > 1:
        # Shorter replies are filled up behind their end, where no earlier token looks.
        ids = np.zeros((count, longest - 1), dtype=np.int64)
        for row, reply in zip(ids, replies, strict=True):
            row[: len(reply) - 1] = reply[:-1]
        further = _logprobs(model, ids, size, range(longest - 1))
        logprobs = np.concatenate([logprobs, further], axis=1)
    return [
        tuple(float(logprobs[i, at, token]) for at, token in enumerate(reply))
        for i, reply in enumerate(replies)
    ]


def _logprobs(model: Any, ids: npt.NDArray[np.int64], before: int, wanted: Sequence[int]) -> Floats:  # noqa: ANN401
    """Log-probabilities over the vocabulary, of shape (rows, wanted, vocabulary).

    Args:
        model: Infer request that holds ``before`` tokens of one sequence, which every row goes on.
        ids: Tokens, of shape (rows, tokens).
        before: Length of what the model holds.
        wanted: Positions among the tokens of which the next token is wanted.
    """
    rows, count = ids.shape
    places = np.arange(before, before + count, dtype=np.int64)
    model.infer(
        {
            "input_ids": ids.astype(np.int64),
            "attention_mask": np.ones((rows, before + count), dtype=np.int64),
            "position_ids": np.repeat(places[None], rows, axis=0),
            "beam_idx": np.zeros(rows, dtype=np.int32),
            _POSITIONS: np.array(wanted, dtype=np.int64),
        }
    )
    logits = np.array(model.get_output_tensor(0).data, dtype=np.float64)
    top = logits.max(axis=-1, keepdims=True)
    found: Floats = logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
    return found


def open_bare(path: str, properties: dict[str, object]) -> Any:  # noqa: ANN401
    """An infer request of the model file, without the engine's pipeline around it.

    Logits are computed at the wanted positions only: at every token of a prompt the vocabulary
    would cost a quarter of the time, and hundreds of megabytes for a long one.
    """
    import openvino
    from openvino import opset13 as ops

    core = openvino.Core()
    model = core.read_model(path)
    end = model.outputs[0].get_node().input(0)
    head = end.get_source_output().get_node()
    cut = head.input(0) if head.get_type_name() == "MatMul" else end
    positions = ops.parameter([-1], np.int64, name=_POSITIONS)
    positions.get_output_tensor(0).set_names({_POSITIONS})
    picked = ops.gather(cut.get_source_output(), positions, ops.constant(1, np.int64))
    cut.replace_source_output(picked.output(0))
    model.add_parameters([positions])
    model.validate_nodes_and_infer_types()
    return core.compile_model(model, "CPU", properties).create_infer_request()
