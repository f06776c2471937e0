"""Cap curves: cutting one run gives what a run at the smaller cap would have given."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import polars as pl
import pytest
from msgspec import structs

import formatspan
from formatspan.analysis.caps import MOST_CAPS, caps_for
from formatspan.analysis.cutting import Cuttable, How, cuttables, tokenizer_of
from formatspan.backends.base import Decoder, ModelSpec
from formatspan.backends.local.decoding import ChatTokenizer
from formatspan.backends.scripted import PieceTokenizer, ScriptedModel, pieces
from formatspan.records import Generation, Request
from formatspan.table import RawReply
from report_runs import study

if TYPE_CHECKING:
    from formatspan.backends.local.gguf_file import Facts


class _Letters:
    """A tokenizer of one token a byte, as byte-level vocabularies have for rare characters."""

    def decode_all(self, replies: Sequence[Sequence[int]]) -> list[str]:
        return [bytes(i for i in ids if i).decode("utf-8", "replace") for ids in replies]


def _reply(text: str, finish: str = "stop", **keys: Any) -> RawReply:  # noqa: ANN401
    return RawReply("m", "t", "e", "w", False, text, finish, *(keys.get(k) for k in (
        "token_ids", "completion_tokens", "reasoning_tokens")))  # fmt: skip


def _bytes(text: str) -> str:
    return json.dumps([*text.encode(), 0])


@pytest.mark.parametrize(
    ("most", "longest", "caps"),
    [
        (24, None, (1, 2, 3, 4, 6, 8, 12, 16, 24)),
        (24, 7, (1, 2, 3, 4, 6, 8, 24)),
        (5, 9, (1, 2, 3, 4, 5)),
        (1, 1, (1,)),
    ],
)
def test_caps_rise_by_a_third_or_a_half(most: int, longest: int | None, caps: tuple[int]) -> None:
    assert caps_for(most, longest) == caps


def test_there_are_at_most_sixteen_caps() -> None:
    found = caps_for(100_000)
    assert len(found) == MOST_CAPS
    assert (found[0], found[-1]) == (1, 100_000)
    assert list(found) == sorted(set(found))


def test_token_ids_are_cut_exactly() -> None:
    (cut,) = cuttables([_reply("añb", token_ids=_bytes("añb"))], _Letters(), (1, 2, 3, 9))
    assert (cut.how, cut.tokens) == (How.TOKEN_IDS, 5), "four bytes and the end token"
    assert [cut.first(k) for k in (1, 2, 3)] == ["a", "a", "añ"], "never half a character"


def test_a_stop_text_ends_what_the_tokens_say() -> None:
    (cut,) = cuttables([_reply("ab", token_ids=_bytes("abSTOP"))], _Letters(), (1, 4))
    assert [cut.first(k) for k in (1, 4)] == ["a", "ab"]


def test_ids_of_another_tokenizer_are_not_trusted() -> None:
    reply = _reply("yes", token_ids="[1, 2]", completion_tokens=2)
    (cut,) = cuttables([reply], _Letters(), (1,))
    assert (cut.how, cut.how.exact) == (How.ESTIMATE, False)
    assert cut.tokens == 2


def test_the_models_tokenizer_is_exact_if_it_counts_alike() -> None:
    text = '{"answer": "B"}'
    exact = Cuttable(_reply(text, completion_tokens=len(pieces(text)) + 1), {}, PieceTokenizer())
    assert (exact.how, exact.tokens) == (How.TOKENIZER, len(pieces(text)) + 1)
    assert exact.first(3) == "".join(pieces(text)[:3])
    other = Cuttable(_reply(text, completion_tokens=40), {}, PieceTokenizer())
    assert other.how is How.ESTIMATE


def test_without_a_tokenizer_counted_tokens_are_spread_over_the_text() -> None:
    cut = Cuttable(_reply("one two six ten", completion_tokens=9), {}, None)
    assert (cut.how, cut.tokens) == (How.ESTIMATE, 9)
    assert [cut.first(k) for k in (1, 2, 4, 8)] == ["", "one", "one two", "one two six ten"]
    unknown = Cuttable(_reply("one two", "length"), {}, None)
    assert (unknown.tokens, unknown.first(1)) == (2, "one")


class _Engine:
    """The embedded engine's tokenizer, as far as decoding goes; it refuses empty replies."""

    def get_bos_token(self) -> str:
        return ""

    def decode(self, replies: list[list[int]], skip_special_tokens: bool) -> list[str]:
        assert skip_special_tokens
        assert all(replies)
        return ["".join(map(chr, ids)) for ids in replies]


def test_the_embedded_tokenizer_decodes_all_at_once() -> None:
    facts = cast("Facts", SimpleNamespace(add_bos=False))
    tokenizer = ChatTokenizer(_Engine(), facts)
    assert isinstance(tokenizer, Decoder)
    assert tokenizer.decode_all([[97, 98], [], [99]]) == ["ab", "", "c"]
    assert tokenizer.decode_all([[], []]) == ["", ""]


def test_only_tokenizers_at_hand_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    assert tokenizer_of(ModelSpec("m", "openrouter:some/model")) is None
    assert tokenizer_of(ModelSpec("m", "local:/no/such/file.gguf")) is None
    assert isinstance(tokenizer_of(ModelSpec("m", "scripted:")), PieceTokenizer)


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run at a cap that cuts nothing off."""
    return _at(tmp_path_factory.mktemp("caps"), 64)


def _at(folder: Path, cap: int) -> Path:
    return formatspan.run(study(examples=15, max_tokens=cap), out=folder / f"r{cap}").folder


@pytest.mark.parametrize("cap", [2, 8, 12])
def test_a_cut_run_is_the_run_at_that_cap(long_run: Path, tmp_path: Path, cap: int) -> None:
    short = formatspan.analyze(_at(tmp_path, cap), inference=False)
    curve = formatspan.analyze(long_run, inference=False, caps=True).caps
    assert curve is not None
    here = curve.filter(pl.col("cap") == cap)
    assert here["exact"].all()
    for row in here.iter_rows(named=True):
        if row["task"] is None:
            twin = short.models.filter(pl.col("model") == row["model"]).row(0, named=True)
        else:
            same = (pl.col("model") == row["model"]) & (pl.col("task") == row["task"])
            twin = short.pairs.filter(same).row(0, named=True)
        assert (row["fsi"], row["psi"]) == pytest.approx((twin["fsi"], twin["psi"]))
    assert short.statuses.filter(pl.col("status") == "truncated")["count"].sum() > 0


def test_a_reply_that_the_run_cut_off_is_longer_than_its_cap(tmp_path: Path) -> None:
    found = formatspan.analyze(_at(tmp_path, 8), inference=False, caps=True)
    assert found.caps is not None
    assert found.lengths is not None
    mean = pl.col("task").is_null() & (pl.col("cap") == 8)
    at_the_cap = dict(found.caps.filter(mean).select("model", "cut_off").iter_rows())
    ended = found.lengths.group_by("model").agg(pl.col("cut_off").mean(), pl.col("longest").max())
    for model, share, longest in ended.iter_rows():
        assert at_the_cap[model] == pytest.approx(share)
        assert share > 0
        assert longest == 8


def test_the_largest_cap_gives_the_analysis_itself(long_run: Path) -> None:
    found = formatspan.analyze(long_run, inference=False, caps=True)
    assert found.caps is not None
    assert found.lengths is not None
    last = found.caps.filter(pl.col("task").is_null() & (pl.col("cap") == 64))
    assert last["fsi"].to_list() == pytest.approx(found.models["fsi"].to_list())
    assert (last["fsi_low"] <= last["fsi"]).all()
    ended = found.lengths.group_by("model", maintain_order=True).agg(pl.col("cut_off").mean())
    assert last["cut_off"].to_list() == pytest.approx(ended["cut_off"].to_list())
    assert len(found.lengths) == 3 * 5
    assert found.lengths["n"].to_list() == [45] * 15
    for row in found.lengths.iter_rows(named=True):
        marks = [row[k] for k in ("shortest", "q25", "median", "q75", "q90", "q95", "longest")]
        assert marks == sorted(marks)
        assert row["note"] is None


def test_caps_are_made_only_when_asked(long_run: Path) -> None:
    found = formatspan.analyze(long_run, inference=False)
    assert found.caps is found.lengths is found.levels is None
    assert "caps" not in found.to_dict()


def test_hidden_reasoning_has_lengths_and_no_curve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = ScriptedModel.generate

    async def thinking(self: ScriptedModel, request: Request) -> object:
        found = await plain(self, request)
        assert isinstance(found, Generation)
        return structs.replace(found, reasoning_tokens=5)

    monkeypatch.setattr(ScriptedModel, "generate", thinking)
    found = formatspan.analyze(_at(tmp_path, 24), inference=False, caps=True)
    assert found.caps is not None
    assert found.lengths is not None
    assert len(found.caps) == 0
    assert set(found.lengths["note"].str.contains("no curve")) == {True}
