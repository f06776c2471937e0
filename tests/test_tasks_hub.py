"""Tasks from the hub, with the hub's client replaced: nothing here needs a network."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import polars as pl
import pytest

from formatspan.errors import DataError
from formatspan.tasks import HubSource, Task, get_task, hub, load

COMMIT = "c" * 40
ROWS = [
    {"goal": "spoon", "sol1": "stir with it", "sol2": "wear it", "label": 0},
    {"goal": "hat", "sol1": "stir with it", "sol2": "wear it", "label": 1},
]


class FakeHub:
    """The client's functions over a folder; what was asked of them is kept."""

    def __init__(self, folder: Path, files: dict[str, list[str]]) -> None:
        self.folder, self.files = folder, files
        self.asked: list[str] = []
        self.cached: set[str] = set()
        self.error: Exception | None = None

    def dataset_info(self, repo: str, *, revision: str | None = None) -> SimpleNamespace:
        self.asked.append(f"info {repo} {revision}")
        if self.error:
            raise self.error
        name = revision or "main"
        return SimpleNamespace(sha=f"{name[:1]}" * 40)

    def list_repo_files(self, repo: str, *, repo_type: str, revision: str) -> list[str]:
        assert repo_type == "dataset"
        return self.files[revision[:1]]

    def try_to_load_from_cache(self, repo: str, file: str, **_: Any) -> str | None:  # noqa: ANN401
        return str(self.folder / Path(file).name) if file in self.cached else None

    def hf_hub_download(self, repo: str, file: str, *, repo_type: str, revision: str) -> str:
        assert repo_type == "dataset"
        self.asked.append(f"file {file} {revision}")
        return str(self.folder / Path(file).name)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    monkeypatch.delenv("FORMATSPAN_DATA", raising=False)
    for i, row in enumerate(ROWS):
        pl.DataFrame([row]).write_parquet(tmp_path / f"000{i}.parquet")
    converted = ["plain_text/validation/0001.parquet", "plain_text/validation/0000.parquet"]
    found = FakeHub(tmp_path, {"m": ["README.md", "piqa.py"], "r": converted})
    for name in (
        "dataset_info", "list_repo_files", "try_to_load_from_cache", "hf_hub_download"
    ):  # fmt: skip
        monkeypatch.setattr(huggingface_hub, name, getattr(found, name))
    return found


def unpinned() -> Task:
    return replace(get_task("piqa"), hub=HubSource("ybisk/piqa", "plain_text", "validation"))


def test_pinned_task_asks_for_its_own_files(fake: FakeHub) -> None:
    data = load("piqa")
    task = get_task("piqa")
    assert task.hub is not None
    assert data.revision == task.hub.revision
    assert data.source == "ybisk/piqa (plain_text, validation)"
    assert fake.asked[1:] == [f"file plain_text/validation/0000.parquet {data.revision}"]
    assert [e.gold for e in data.examples] == ["A"]


def test_cached_files_need_no_network(fake: FakeHub) -> None:
    fake.cached.add("plain_text/validation/0000.parquet")
    fake.error = ConnectionError("no route")
    assert len(load("piqa").examples) == 1
    assert fake.asked == []


def test_script_data_sets_are_found_on_the_converted_branch(fake: FakeHub) -> None:
    data = hub.load(unpinned())
    assert data.revision == "r" * 40
    assert [(e.id, e.question, e.gold) for e in data.examples] == [
        ("0", "spoon", "A"), ("1", "hat", "B")
    ]  # fmt: skip


def test_another_revision_is_looked_up_and_recorded(fake: FakeHub) -> None:
    fake.files["v"] = ["plain_text/validation-00000-of-00002.parquet"]
    pl.DataFrame(ROWS).write_parquet(fake.folder / "validation-00000-of-00002.parquet")
    data = load("piqa", revision="v2")
    assert data.revision == "v" * 40
    assert len(data.examples) == 2


def test_rows_are_numbered_through_the_files(fake: FakeHub) -> None:
    pl.DataFrame([ROWS[1] | {"label": 7}]).write_parquet(fake.folder / "0001.parquet")
    with pytest.raises(
        DataError, match=r"ybisk/piqa \(plain_text, validation\), line 2, .*'label'"
    ):
        hub.load(unpinned())


def test_no_parquet_anywhere(fake: FakeHub) -> None:
    fake.files["r"] = []
    with pytest.raises(DataError, match="no Parquet files at the newest revision, nor on refs"):
        hub.load(unpinned())


@pytest.mark.parametrize("task", [get_task("piqa"), unpinned()])
def test_hub_out_of_reach_is_one_line(fake: FakeHub, task: Task) -> None:
    fake.error = ConnectionError("no route\nto host")
    with pytest.raises(DataError, match=r"\(no route\); .*--data DIR with piqa\.jsonl") as caught:
        load(task)
    assert "\n" not in str(caught.value)


def test_error_without_a_message_is_named(fake: FakeHub) -> None:
    fake.error = TimeoutError()
    with pytest.raises(DataError, match="TimeoutError"):
        load("piqa")


def test_task_without_a_hub_source(fake: FakeHub) -> None:
    with pytest.raises(DataError, match="not on the hub and needs --data DIR"):
        load(replace(get_task("piqa"), hub=None))


@pytest.mark.parametrize(
    ("config", "names", "expected"),
    [
        ("main", ["main/test-00000-of-00001.parquet", "main/train-00000-of-00001.parquet"],
         ("main/test-00000-of-00001.parquet",)),
        ("default", ["data/test-00001-of-00002-0a.parquet", "data/test-00000-of-00002-9f.parquet"],
         ("data/test-00000-of-00002-9f.parquet", "data/test-00001-of-00002-0a.parquet")),
        ("default", ["default/test/0000.parquet", "data/test.parquet"],
         ("default/test/0000.parquet",)),
        ("a.b", ["aXb/test/0000.parquet", "a.b/test.parquet"], ("a.b/test.parquet",)),
        ("main", ["data/test-00000-of-00001.parquet", "main/test_hard-00000-of-00001.parquet"], ()),
    ],
)  # fmt: skip
def test_files_of_a_split(config: str, names: list[str], expected: tuple[str, ...]) -> None:
    assert hub.split_files(names, config, "test") == expected
