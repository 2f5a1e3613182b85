"""Names that experiment trackers give to runs, in files around their traces.

wandb/offline-run-20261126_042914-flg6p9h8/run-flg6p9h8.wandb       W&B: the name is in the record of the run
wandb/offline-run-20261126_042914-flg6p9h8/files/pytorch_traces/host.1700000000000.pt.trace.json
mlruns/7058/73a112eebb08400798b0f51cc0db70d5/tags/mlflow.runName    MLflow's file store
mlruns/7058/73a112eebb08400798b0f51cc0db70d5/artifacts/traces/host.1700000000000.pt.trace.json
mlflow.db, mlruns/7058/73a112eebb08400798b0f51cc0db70d5/artifacts/  MLflow's database

A file that can't be read names no run, and costs nothing else.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from msgspec.structs import replace

from torch_tb_profiler.base.errors import ProfilerError, TraceError
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.discovery.catalog import ListedFile, ListedRun
from torch_tb_profiler.storage import FileId

MAX_NAME_LENGTH = 200
"""Longer names are cut."""

_MAX_HEAD_BYTES = 1 << 20
"""W&B writes the record of a run among the first of its file."""

_MAX_DATABASE_BYTES = 256 << 20
"""Most bytes of an `mlflow.db` that are copied to read the names of runs from."""

_WANDB = lazy_regex(r"^(?P<folder>(?:.*/)?(?:offline-)?run-\d{8}_\d{6}-(?P<id>[^/]+))/run-(?P=id)\.wandb$")
_MLFLOW_TAG = lazy_regex(r"^(?P<folder>(?:.*/)?[0-9a-f]{32})/tags/mlflow\.runName$")
_MLFLOW_ARTIFACT = lazy_regex(r"^(?:.*/)?(?P<id>[0-9a-f]{32})/artifacts/")
_MLFLOW_DATABASE = "mlflow.db"

_BLOCK_BYTES, _FILE_HEADER_BYTES, _RECORD_HEADER_BYTES = 32768, 7, 7
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_RUN_FIELD, _NAME_FIELD = 17, 8
"""Numbers of `Record.run` and `RunRecord.display_name` in W&B's protocol."""


class TrackerNames:
    """Reads names of runs from files of trackers; the content of a file is read once."""

    def __init__(self) -> None:
        self._names: dict[FileId, dict[str, str]] = {}

    def name_runs(self, runs: Iterable[ListedRun], files: Sequence[ListedFile]) -> list[ListedRun]:
        """Return the runs, with the name that a tracker recorded for the folder around them."""
        folders: dict[str, tuple[ListedFile, Callable[[ListedFile], dict[str, str]]]] = {}
        databases = [file for file in files if file.name == _MLFLOW_DATABASE]
        for file in files:
            if file.path.endswith(".wandb") and (match := _WANDB.match(file.path)):
                folders[match["folder"]] = file, _read_wandb
            elif file.name == "mlflow.runName" and (match := _MLFLOW_TAG.match(file.path)):
                folders[match["folder"]] = file, _read_tag

        def name_of(run: ListedRun) -> str | None:
            path = next((file.path for file in run.files()), "")
            for folder in _parents(path):
                if folder in folders and (name := self._read(*folders[folder]).get("")):
                    return name
            match = _MLFLOW_ARTIFACT.match(path)
            if match is None:
                return None
            above = {*_parents(path), ""}
            beside = [file for file in databases if posixpath.dirname(file.path) in above]
            names = (self._read(file, _read_database).get(match["id"]) for file in beside)
            return next((name for name in names if name), None)

        if not folders and not databases:
            return list(runs)
        return [replace(run, tracker_name=name_of(run)) for run in runs]

    def keep_only(self, ids: Set[FileId]) -> None:
        """Drop what was read of other files."""
        self._names = {id_: names for id_, names in self._names.items() if id_ in ids}

    def _read(self, file: ListedFile, read: Callable[[ListedFile], dict[str, str]]) -> dict[str, str]:
        """Return the names in a file, by run ("" if it names one); {} if it can't be read."""
        if file.id not in self._names:
            try:
                names = read(file)
            except (OSError, ProfilerError, UnicodeDecodeError):
                names = {}
            self._names[file.id] = {run: name.strip()[:MAX_NAME_LENGTH] for run, name in names.items()}
        return self._names[file.id]


def _parents(path: str) -> Iterator[str]:
    while path := posixpath.dirname(path):
        yield path


def _read_tag(file: ListedFile) -> dict[str, str]:
    with file.open() as stream:
        return {"": stream.read(4 * MAX_NAME_LENGTH).decode("utf-8", "replace")}


def _read_database(file: ListedFile) -> dict[str, str]:
    if file.size > _MAX_DATABASE_BYTES:
        return {}
    import sqlite3  # only such a file costs the imports
    import tempfile

    with file.open() as stream, tempfile.NamedTemporaryFile(suffix=".db") as copy:
        copy.write(stream.read(_MAX_DATABASE_BYTES))
        copy.flush()
        try:
            connection = sqlite3.connect(f"file:{copy.name}?mode=ro&immutable=1", uri=True)
            try:
                rows = connection.execute("SELECT run_uuid, name FROM runs").fetchall()
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise TraceError(f"it can't be read: {error}") from error
    return {str(run): str(name) for run, name in rows if name}


def _read_wandb(file: ListedFile) -> dict[str, str]:
    """Return the name in the last record of the run among the first of W&B's file."""
    from torch_tb_profiler.ingest.perfetto.protobuf import parse_fields

    with file.open() as stream:
        head = stream.read(_MAX_HEAD_BYTES)
    found = {}
    for record in _wandb_records(head):
        for number, run in parse_fields(record):
            if number == _RUN_FIELD and isinstance(run, bytes):
                for field, name in parse_fields(run):
                    if field == _NAME_FIELD and isinstance(name, bytes):
                        found[""] = name.decode("utf-8", "replace")
    return found


def _wandb_records(head: bytes) -> Iterator[bytes]:
    """Yield the records in the first bytes of W&B's file, which is a log of LevelDB behind a header of its own."""
    if not head.startswith(b":W&B"):
        return
    at, parts = _FILE_HEADER_BYTES, bytearray()
    while at + _RECORD_HEADER_BYTES <= len(head):
        if _BLOCK_BYTES - at % _BLOCK_BYTES < _RECORD_HEADER_BYTES:
            at += _BLOCK_BYTES - at % _BLOCK_BYTES  # the rest of a block that is too short for a header
            continue
        length, kind = int.from_bytes(head[at + 4 : at + 6], "little"), head[at + 6]
        at += _RECORD_HEADER_BYTES
        if kind not in (_FULL, _FIRST, _MIDDLE, _LAST) or at + length > len(head):
            return
        if kind in (_FULL, _FIRST):
            parts.clear()
        parts += head[at : at + length]
        at += length
        if kind in (_FULL, _LAST):
            yield bytes(parts)
