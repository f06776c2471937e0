"""A model in this process, as a backend."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from formatspan.backends.base import Capabilities, ModelSpec
from formatspan.backends.local.cache import MODEL_FILE, ModelCache
from formatspan.backends.local.decoding import (
    TOKENIZER_LIMIT,
    ChatTokenizer,
    generation_config,
    read_reply,
)
from formatspan.backends.local.engine import (
    BATCH_TOKENS,
    MAX_LIVE,
    Engine,
    EngineError,
    Job,
    Output,
    Rejected,
    last_line,
)
from formatspan.backends.local.gguf_file import Facts
from formatspan.backends.local.models import find
from formatspan.backends.local.runtime import (
    checked_threads,
    compute_precision,
    genai,
    processor,
    usable_cores,
    versions,
)
from formatspan.backends.local.scorer import Score, Scorer, open_bare
from formatspan.errors import BackendError
from formatspan.moments import utc_now
from formatspan.records import Failure, FailureKind, Generation, Request

CAPABILITIES = Capabilities(
    deterministic=True,
    seed=True,
    token_ids=True,
    logprobs=True,
    likelihood=True,
    constraints=frozenset({"json_schema", "regex", "grammar", "choice"}),
    concurrency=MAX_LIVE + 64,  # enough that some always wait at the engine's door
    exclusive=True,
)

OPTIONS = ("threads", "cache_gb")
"""Keys of a model entry's ``extra_body`` that this backend takes."""

CACHE_TOKENS = 32_768
"""Tokens that the key-value cache is to hold at least: over a hundred prompts in flight."""

_CACHE_GB = range(1, 9)
"""Its size, unless the study states one; taken as prompts fill it, and never given back."""

_BYTES = {"f32": 4, "f16": 2}


class LocalBackend:
    """A GGUF model, run by the embedded engine.

    The tokenizer is loaded when it is asked for, the model on the first request.
    """

    def __init__(self, cache: ModelCache, threads: int | None, cache_gb: int | None) -> None:
        self._cache, self._threads, self._asked_gb = cache, threads, cache_gb
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._scorer: Scorer | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What this backend can do."""
        return CAPABILITIES

    def tokenizer(self) -> ChatTokenizer:
        """The model's tokenizer and chat template."""
        return self._chat

    def describe(self) -> dict[str, str]:
        """Facts for the run's record; none names a place on this machine."""
        facts = self._facts
        template = hashlib.sha256(facts.chat_template.encode()).hexdigest()
        return {
            "model_sha256": self._cache.source.sha256,
            "model_file": self._cache.source.path.name,
            "architecture": facts.architecture,
            "encoding": facts.encoding,
            "weights": "f16",
            "compute_precision": compute_precision(),
            "kv_cache_precision": _kv_precision(),
            "processor": processor(),
            "threads": str(self._threads or f"all of {usable_cores()}"),
            "context_tokens": str(self.context_tokens),
            "chat_template_sha256": template,
            **versions(),
        }

    @property
    def context_tokens(self) -> int:
        """Tokens of prompt and reply together that a request may have."""
        return min(self._facts.context_tokens, self._capacity)

    async def generate(self, request: Request) -> Generation | Failure:
        """Ask once; a cancelled request leaves the engine at its next step."""
        started = utc_now()
        try:
            if request.kind == "likelihood":
                return await self._score(request, started)
            job = self._job(request)
            output = await asyncio.wrap_future(self._running().submit(job))
            return self._generation(request, job, output, started)
        except _Refused as refused:
            return Failure(request.id, refused.kind, str(refused), at=started)
        except Rejected as error:
            # The engine took the parameters' shape but not what they say, a grammar above all.
            kind = FailureKind.REFUSED_PARAMETERS if request.constraint else FailureKind.INTERNAL
            return Failure(request.id, kind, f"the engine: {error}", at=started)
        except EngineError as error:
            return Failure(request.id, FailureKind.INTERNAL, str(error), at=started, fatal=True)

    async def aclose(self) -> None:
        """End the engine's thread and free the model's memory."""
        with self._lock:
            held: list[Engine | Scorer] = [e for e in (self._engine, self._scorer) if e]
            self._engine = self._scorer = None
        for engine in held:
            await asyncio.to_thread(engine.close)

    @cached_property
    def _facts(self) -> Facts:
        return self._cache.facts()

    @cached_property
    def _chat(self) -> ChatTokenizer:
        return ChatTokenizer(genai().Tokenizer(str(self._cache.tokenizer())), self._facts)

    @property
    def _capacity(self) -> int:
        """Tokens that the key-value cache holds."""
        return (self._cache_gb << 30) // self._token_bytes

    @property
    def _token_bytes(self) -> int:
        return self._facts.kv_values * _BYTES[_kv_precision()]

    @property
    def _cache_gb(self) -> int:
        """Size of the key-value cache in GiB, the engine's unit."""
        wanted = -(-CACHE_TOKENS * self._token_bytes // (1 << 30))
        return self._asked_gb or min(max(wanted, _CACHE_GB[0]), _CACHE_GB[-1])

    def _running(self) -> Engine:
        with self._lock:
            if self._engine is None:
                self._engine = Engine(self._open_pipeline, self._capacity)
            return self._engine

    def _scoring(self) -> Scorer:
        with self._lock:
            if self._scorer is None:
                path = str(self._cache.model() / MODEL_FILE)
                self._scorer = Scorer(lambda: open_bare(path, self._properties()))
            return self._scorer

    def _open_pipeline(self) -> Any:  # noqa: ANN401 - it has no types
        engine = genai()
        scheduler = engine.SchedulerConfig()
        scheduler.max_num_batched_tokens = BATCH_TOKENS
        scheduler.max_num_seqs = MAX_LIVE
        scheduler.dynamic_split_fuse = True
        scheduler.enable_prefix_caching = True
        scheduler.cache_size = self._cache_gb
        tokenizer = engine.Tokenizer(str(self._cache.tokenizer()))
        return engine.ContinuousBatchingPipeline(
            str(self._cache.model()), tokenizer, scheduler, "CPU", **self._properties()
        )

    def _properties(self) -> dict[str, object]:
        properties: dict[str, object] = {
            "INFERENCE_PRECISION_HINT": compute_precision(),
            "KV_CACHE_PRECISION": _kv_precision(),
        }
        # Left to itself the engine takes physical cores, which Python cannot count.
        if self._threads is not None:
            properties["INFERENCE_NUM_THREADS"] = self._threads
        return properties

    def _job(self, request: Request) -> Job:
        tokens, new = self._chat.encode(request.messages), request.sampling.max_tokens
        self._check_length(int(tokens.shape[1]), new)
        try:
            config = generation_config(request, self._facts.stop_ids)
        except (RuntimeError, TypeError, ValueError) as error:
            raise _Refused(FailureKind.REFUSED_PARAMETERS, last_line(error)) from error
        return Job(tokens, config, new)

    def _check_length(self, prompt: int, reply: int) -> None:
        if prompt < TOKENIZER_LIMIT and prompt + reply <= self.context_tokens:
            return
        known = f"{prompt}" if prompt < TOKENIZER_LIMIT else f"{prompt} or more"
        text = (
            f"a prompt of {known} tokens and up to {reply} of reply exceed the context of "
            f"{self.context_tokens} tokens"
        )
        raise _Refused(FailureKind.CONTEXT_OVERFLOW, text)

    def _generation(self, request: Request, job: Job, output: Output, started: str) -> Generation:
        reply = read_reply(self._chat, request.sampling.stop, output.result)
        return Generation(
            request_id=request.id,
            text=reply.text,
            finish_reason=reply.finish_reason,
            finish_reason_raw=reply.finish_reason_raw,
            token_ids=reply.token_ids,
            logprobs=reply.logprobs,
            prompt_tokens=job.prompt_tokens,
            completion_tokens=len(reply.token_ids),
            served_model=self._cache.source.path.name,
            provider="openvino-genai",
            started_at=started,
            first_token_s=output.first_token_s,
            latency_s=output.latency_s,
        )

    async def _score(self, request: Request, started: str) -> Generation:
        """A reply without text: the log-probabilities of the answer's tokens."""
        *messages, answer = request.messages
        prompt = tuple(int(i) for i in self._chat.encode(messages).data[0])
        score = Score(prompt, self._chat.encode_reply(answer.content))
        self._check_length(len(prompt), len(score.reply))
        logprobs = await asyncio.wrap_future(self._scoring().submit(score))
        return Generation(
            request_id=request.id,
            text="",
            finish_reason="stop",
            finish_reason_raw="",
            token_ids=score.reply,
            logprobs=logprobs,
            prompt_tokens=len(prompt),
            completion_tokens=len(score.reply),
            served_model=self._cache.source.path.name,
            provider="openvino-genai",
            started_at=started,
            latency_s=time.monotonic() - score.asked,
        )


class _Refused(Exception):
    """A request that is answered without the engine."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def open_model(spec: ModelSpec) -> LocalBackend:
    """The backend of a ``local:`` address.

    Raises:
        BackendError: The extra or the file is missing, or the engine cannot run the model.
    """
    options = _options(spec.extra_body)
    threads = checked_threads(options.get("threads"))
    cache_gb = _checked_gb(options.get("cache_gb"))
    genai()
    cache = ModelCache(find(spec))
    cache.tokenizer()  # a file that cannot be used is refused now, not on the first request
    return LocalBackend(cache, threads, cache_gb)


def _options(given: Mapping[str, Any]) -> Mapping[str, Any]:
    if unknown := sorted(given.keys() - set(OPTIONS)):
        raise BackendError(
            f"extra_body: a local model has no {unknown[0]!r}; its keys are {', '.join(OPTIONS)}"
        )
    return given


def _checked_gb(asked: object) -> int | None:
    if asked is None:
        return None
    if not isinstance(asked, int) or isinstance(asked, bool) or asked < 1:
        raise BackendError(f"cache_gb: expected a whole number of at least 1, not {asked!r}")
    return asked


def _kv_precision() -> str:
    """f32 where the engine computes in it: some percent faster, and replies agree more.

    Elsewhere f16, which the engine writes into every model that it reads from a GGUF file.
    """
    return "f32" if compute_precision() == "f32" else "f16"
