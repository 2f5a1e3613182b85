"""Answer views of the flight recorder dumps of a run: a few are read in this process, many by the executor."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from torch_tb_profiler.base.errors import NotFoundError, StorageError, TraceError
from torch_tb_profiler.discovery import DumpFile, ListedRun
from torch_tb_profiler.ingest.flight_recorder.read import read_dump
from torch_tb_profiler.ingest.flight_recorder.texts import read_stacks, read_timeouts
from torch_tb_profiler.model.flight_recorder import JobDumps, RankFile, StackDump, WatchdogTimeout
from torch_tb_profiler.session.answers.answer import Answer, ViewRequest
from torch_tb_profiler.session.cache.entries import encode_json
from torch_tb_profiler.session.files import RequestedFiles
from torch_tb_profiler.session.log import LogFolders
from torch_tb_profiler.session.state import FileState, ProgressInfo
from torch_tb_profiler.session.targets import Targets
from torch_tb_profiler.storage import FileId, open_location
from torch_tb_profiler.view import DumpsView, parse_params

CHUNK_FILES = 50
"""Dumps that a worker process reads in one job."""

MAX_LOGS = 64
"""Logs of a job that are searched for timeouts; a watchdog on one rank says as much as those on all."""


class DumpAnswers:
    """The answers of views of the dumps of a run, built once for as long as the dumps stay the same."""

    def __init__(self, log: LogFolders, files: RequestedFiles, targets: Targets) -> None:
        self._log = log
        self._targets = targets
        self._reader = DumpReader(files.submit, files.small_bytes)
        self._last: tuple[object, bytes] | None = None

    def answer(self, view: DumpsView[Any, Any], request: ViewRequest) -> Answer:
        params = parse_params(view.params, request.params)
        run = self._find_run(request.names.run)
        files = [dump.file for dump in run.dumps]
        if request.wait:
            self._log.wait_until_complete(files, request.timeout)
            run = self._find_run(run.name)
        answer = Answer(view.slug, run.name, "", "", FileState("waiting"), None)
        if any(map(self._log.is_growing, files)):
            return answer
        state, job = self._reader.read(run.dumps, request.wait, request.timeout)
        if job is None:
            return Answer(view.slug, run.name, "", "", state, None)
        key = view.slug, params, job
        last = self._last
        if last is None or last[0] != key:
            last = self._last = key, encode_json(view.build(job, params))
        return Answer(view.slug, run.name, "", "", state, last[1])

    def _find_run(self, name: str | None) -> ListedRun:
        """Return a run with dumps by name, or the first one if None."""
        run = self._targets.run(name)
        if name is None and not run.dumps:
            run = next((each for each in self._targets.runs if each.dumps), run)
        if not run.dumps:
            raise NotFoundError(
                "there are no flight recorder dumps in the run",
                where=run.name,
                hint="put the files `nccl_trace_rank_*` of all ranks into its folder",
            )
        return run


class DumpRequest(NamedTuple):
    """A dump to read: its rank, its path in the location, and when it was written (epoch ns)."""

    rank: int
    path: str
    name: str
    written_ns: int | None


def read_dumps(location: str, requests: Sequence[DumpRequest]) -> list[RankFile]:
    """Read some dumps of a location; one that can't be read says why and costs nothing else."""
    place = open_location(location)
    files = []
    for request in requests:
        try:
            with place.open(request.path) as stream:
                dump, problem = read_dump(stream, request.rank), None
        except (TraceError, StorageError) as error:
            dump, problem = None, error.message
        files.append(RankFile(request.rank, request.name, dump, problem, request.written_ns))
    return files


class _Reading:
    """The reading of one set of dumps."""

    def __init__(self, chunks: int, size: int) -> None:
        self.chunks = chunks
        self.size = size
        self.read = 0
        self.files: list[RankFile] = []
        self.error: BaseException | None = None
        self.done = threading.Event()
        self.lock = threading.Lock()

    def add(self, future: Future[list[RankFile]]) -> None:
        with self.lock:
            self.read += 1
            if future.cancelled() or future.exception() is not None:
                self.error = self.error or future.exception() or RuntimeError("reading was stopped")
            else:
                self.files += future.result()
            if self.read == self.chunks:
                self.done.set()

    @property
    def state(self) -> FileState:
        done = self.size * self.read // max(self.chunks, 1)
        return FileState("loading", ProgressInfo("reading", done, self.size, 0))


class DumpReader:
    """Reads the dumps of runs; those of the last run stay in memory.

    submit   runs a function in a worker process
    small    bytes of dumps up to which this process reads them itself
    """

    def __init__(self, submit: Callable[..., Future[Any]], small: int) -> None:
        self._submit = submit
        self._small = small
        self._lock = threading.Lock()
        self._key: tuple[FileId, ...] | None = None
        self._job: JobDumps | None = None
        self._readings: tuple[_Reading, ...] = ()

    def read(
        self, dumps: Sequence[DumpFile], wait: bool, timeout: float | None
    ) -> tuple[FileState, JobDumps | None]:
        """Return the content of the dumps of a run, or the state of reading them."""
        key = tuple(dump.file.id for dump in dumps)
        with self._lock:
            if self._key != key:
                self._key, self._job = key, None
                self._readings = tuple(self._start(series) for series in _group_series(dumps)[:2])
            readings, job = self._readings, self._job
        if job is not None:
            return FileState("ready"), job
        for reading in readings:
            if wait:
                reading.done.wait(timeout)
            if not reading.done.is_set():
                return reading.state, None
            if reading.error is not None:
                with self._lock:
                    self._key = None
                raise reading.error
        latest, *earlier = sorted((_by_rank(reading.files) for reading in readings), key=_recency, reverse=True)
        stacks, timeouts, problems = _read_beside(dumps)
        job = JobDumps(latest, earlier[0] if earlier else (), stacks, problems, timeouts)
        with self._lock:
            if self._key == key:
                self._job = job
        return FileState("ready"), job

    def _start(self, dumps: Sequence[DumpFile]) -> _Reading:
        size = sum(dump.file.size for dump in dumps)
        location = dumps[0].file.location.url
        requests = [_request(dump) for dump in dumps]
        if size <= self._small:
            reading = _Reading(1, size)
            own: Future[list[RankFile]] = Future()
            own.set_result(read_dumps(location, requests))
            reading.add(own)
            return reading
        chunks = [requests[i : i + CHUNK_FILES] for i in range(0, len(requests), CHUNK_FILES)]
        reading = _Reading(len(chunks), size)
        for chunk in chunks:
            self._submit(read_dumps, location, chunk).add_done_callback(reading.add)
        return reading


def _request(dump: DumpFile) -> DumpRequest:
    mtime = dump.file.mtime
    assert dump.rank is not None  # only a log has none
    return DumpRequest(dump.rank, dump.file.path, dump.file.path, None if mtime is None else int(mtime * 1e9))


def _group_series(dumps: Sequence[DumpFile]) -> list[list[DumpFile]]:
    """Return the dumps of each series, one per rank, the latest series first.

    Of two files of one rank in a series, the one without a suffix is PyTorch's own, with stacks.
    """
    series: dict[tuple[str, str], dict[int, DumpFile]] = defaultdict(dict)
    for dump in dumps:
        if dump.kind == "recorder" and dump.rank is not None:
            folder = dump.file.path.rpartition("/")[0]
            key = (folder if not _is_rank_folder(folder) else "", dump.series)
            known = series[key].get(dump.rank)
            if known is None or dump.file.name < known.file.name:
                series[key][dump.rank] = dump
    listed = [list(of_rank.values()) for of_rank in series.values()]
    listed.sort(key=lambda each: each[0].series)
    return sorted(listed, key=lambda each: max(dump.file.mtime or 0.0 for dump in each), reverse=True)


def _is_rank_folder(folder: str) -> bool:
    from torch_tb_profiler.discovery.names import RANK_FOLDER

    return RANK_FOLDER.match(folder.rpartition("/")[2]) is not None


def _recency(files: Iterable[RankFile]) -> tuple[int, int]:
    """Return when the last recorded call was made, and when the dump was, which the files of copies don't say."""
    dumps = [file.dump for file in files if file.dump is not None]
    return max((dump.last_call_ns or 0 for dump in dumps), default=0), max(
        (dump.dumped_ns or 0 for dump in dumps), default=0
    )


def _by_rank(files: list[RankFile]) -> tuple[RankFile, ...]:
    return tuple(sorted(files, key=lambda file: file.rank))


def _read_beside(
    dumps: Sequence[DumpFile],
) -> tuple[dict[int, StackDump], tuple[WatchdogTimeout, ...], tuple[str, ...]]:
    """Return stacks by rank, what watchdogs gave up, and sentences about the files that can't be read."""
    stacks: dict[int, StackDump] = {}
    timeouts: list[WatchdogTimeout] = []
    problems = []
    logs = [dump for dump in dumps if dump.kind == "log"]
    if len(logs) > MAX_LOGS:
        problems.append(f"Only {MAX_LOGS} of {len(logs):,} logs were searched for timeouts.")
    for dump in (*(dump for dump in dumps if dump.kind == "stack"), *logs[:MAX_LOGS]):
        try:
            if dump.rank is not None:
                with dump.file.open() as stream:
                    stacks[dump.rank] = read_stacks(stream)
            else:
                with dump.file.open() as stream:
                    timeouts += read_timeouts(stream)
        except (TraceError, StorageError) as error:
            hint = f"; {error.hint}" if error.hint else ""
            problems.append(f"{dump.file.name} can't be read: {error.message}{hint}.")
    return stacks, tuple(dict.fromkeys(timeouts)), tuple(problems)
