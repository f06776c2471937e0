"""Tasks from the Hugging Face hub: Parquet files at a known commit, cached by its client.

Pinned tasks name commit and files, so that a cached copy needs no network at all. For any
other revision the files are looked up: on that revision, and for data sets that keep a
loader script instead of files, on the hub's own conversion, the branch
``refs/convert/parquet`` (https://huggingface.co/docs/dataset-viewer/parquet).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import huggingface_hub

from formatspan.errors import DataError
from formatspan.tasks.readers import Numbered, read_parquet
from formatspan.tasks.rows import examples
from formatspan.tasks.task import HubSource, Task, TaskData

CONVERTED = "refs/convert/parquet"
"""Branch on which the hub keeps every data set as Parquet."""


def load(task: Task, *, revision: str | None = None) -> TaskData:
    """All rows of ``task`` from the hub.

    Args:
        task: A task with a hub source.
        revision: Branch, tag or commit to use instead of the pinned one.

    Raises:
        DataError: The task has no hub source, the hub or the files cannot be reached, or a
            row is wrong.
    """
    if task.hub is None:
        raise DataError("is not on the hub and needs --data DIR", source=f"task {task.name}")
    source = task.hub
    if revision is not None and revision != source.revision:
        source = replace(source, revision=revision, files=())
    source = source if source.files and source.revision else located(source, task.name)
    paths = [_download(source, file, task.name) for file in source.files]
    name = f"hub data set {source}"
    return TaskData(task, examples(task, _rows(paths), name), str(source), source.revision)


def located(source: HubSource, task_name: str) -> HubSource:
    """``source`` with its commit and its Parquet files.

    Raises:
        DataError: The hub cannot be reached, or has no Parquet files for this split.
    """
    for revision in (source.revision, CONVERTED):
        commit, names = _listing(source, revision, task_name)
        files = split_files(names, source.config, source.split)
        if files:
            return replace(source, revision=commit, files=files)
    at = source.revision or "the newest revision"
    raise DataError(
        f"no Parquet files at {at}, nor on {CONVERTED}", source=f"hub data set {source}"
    )


def split_files(names: list[str], config: str, split: str) -> tuple[str, ...]:
    """Parquet files of a split among a repository's files, in order.

    Known layouts: ``CONFIG/SPLIT/0000.parquet`` (the hub's conversion) and
    ``CONFIG/SPLIT-00000-of-00001.parquet``, the folder being ``data`` for a data set with
    a single, default configuration.
    """
    folders = [config] + (["data"] if config == "default" else [])
    for folder in folders:
        stem = re.escape(f"{folder}/{split}")
        pattern = re.compile(rf"{stem}(?:/\d+|-\d+-of-\d+(?:-[0-9a-f]+)?)?\.parquet")
        files = sorted(name for name in names if pattern.fullmatch(name))
        if files:
            return tuple(files)
    return ()


def _rows(paths: list[Path]) -> Iterator[Numbered]:
    """Rows of all files, numbered through."""
    line = 0
    for path in paths:
        for _, row in read_parquet(path):
            line += 1
            yield Numbered(line, row)


def _listing(source: HubSource, revision: str | None, task_name: str) -> tuple[str, list[str]]:
    """Commit that ``revision`` stands for now, and the files there."""
    try:
        info = huggingface_hub.dataset_info(source.dataset, revision=revision)
        commit = str(info.sha)
        names = huggingface_hub.list_repo_files(
            source.dataset, repo_type="dataset", revision=commit
        )
    # The client lets errors of its HTTP library through, and that differs by version.
    except Exception as error:
        _unreachable(source, task_name, error)
    return commit, list(names)


def _download(source: HubSource, file: str, task_name: str) -> Path:
    cached = huggingface_hub.try_to_load_from_cache(
        source.dataset, file, repo_type="dataset", revision=source.revision
    )
    if isinstance(cached, str):
        return Path(cached)
    try:
        # Fails at once without a network, where downloading would retry for half a minute.
        huggingface_hub.dataset_info(source.dataset)
        path = huggingface_hub.hf_hub_download(
            source.dataset, file, repo_type="dataset", revision=source.revision
        )
    except Exception as error:  # as above
        _unreachable(source, task_name, error)
    return Path(path)


def _unreachable(source: HubSource, task_name: str, error: Exception) -> NoReturn:
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    raise DataError(
        f"cannot be fetched at {source.revision or 'the newest revision'} ({reason}); "
        f"without the hub, give --data DIR with {task_name}.jsonl in it",
        source=f"hub data set {source}",
    ) from error
