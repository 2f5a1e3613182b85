"""rocpd, the SQLite databases of rocprofv3.

Each process has its own tables, whose names end with its id (`rocpd_string_0199...`); views join them. In version
3 of the schema the rows of work hold their times, threads, and devices; in version 4 they point to rows of
`rocpd_timestamp` and `rocpd_track`, in 4.1 to the latter only. A call and its work share the `stack_id` of their
events (despite its name); `correlation_id` belongs to the application. Counters (`rocpd_pmc_event`) refer to the
event of their dispatch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, BinaryIO

import msgspec
import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.rocprof.agents import Agents, parse_agent
from torch_tb_profiler.ingest.rocprof.counters import CounterSums
from torch_tb_profiler.ingest.rocprof.database import Database, open_database
from torch_tb_profiler.ingest.rocprof.records import RecordingBuilder, WorkRecords, build_trace
from torch_tb_profiler.ingest.runtime import Progress, Report, without_gc
from torch_tb_profiler.ingest.slices import CodedTexts, TextColumn, integers_or_absent
from torch_tb_profiler.ingest.source import UnpackedStream
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import ABSENT, Int64, Trace

_STRINGS = lazy_regex(r"rocpd_string(_\w+)?")
_AXES = ("x", "y", "z")


def read_rocpd(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    """Read a database; raise TraceError if it has no work and no calls, TooLargeError if it exceeds `limit`."""
    health, recording = HealthLog(), RecordingBuilder()
    environment: dict[str, Any] = {}
    source = UnpackedStream(stream, size, report, health, limit)

    def advance() -> None:
        # Reading the tables that are joined with later ones takes time as well, but adds no events.
        report(Progress("arranging", size, size, recording.columns.length))

    with without_gc(), open_database(source, health, advance) as database:
        for suffix in _process_suffixes(database):
            process = _ProcessTables(database, suffix, recording)
            environment = environment or process.environment
            process.read()
    return build_trace(recording, health, environment, advance)


def _process_suffixes(database: Database) -> list[str]:
    matches = [_STRINGS.fullmatch(table) for table in sorted(database.tables())]
    suffixes = [match[1] or "" for match in matches if match]
    if not suffixes:
        raise TraceError("the database has no tables of rocprofv3")
    return suffixes


class _ProcessTables:
    """Reads the tables of one process."""

    def __init__(self, database: Database, suffix: str, recording: RecordingBuilder) -> None:
        self._database, self._suffix, self._recording = database, suffix, recording
        self._tables = set(database.tables())
        self._strings = self._texts("string", "string")
        # Version 4 has categories in a table of their own.
        category_table = "info_category" if f"rocpd_info_category{suffix}" in self._tables else "string"
        self._categories = self._texts(category_table, "name") if category_table != "string" else self._strings
        self.environment: dict[str, Any] = {}
        self._begin_process()
        self._events = _build_lookup(self._rows("event", ("id", "stack_id", "category_id")), 2)
        self._messages = self._marker_messages()
        self._threads = _build_lookup(self._rows("info_thread", ("id", "tid")), 1)
        self._pids = _build_lookup(self._rows("info_process", ("id", "pid")), 1)
        self._times = _build_lookup(self._rows("timestamp", ("id", "value")), 1)
        self._tracks = _build_lookup(
            self._rows("track", ("id", "pid", "tid", "agent_id", "queue_id", "stream_id")), 5
        )

    def read(self) -> None:
        """Add all records to the recording."""
        self._read_calls()
        self._read_dispatches()
        self._read_copies()

    def _begin_process(self) -> None:
        pid, command = None, None
        for pids, commands, environments in self._rows("info_process", ("pid", "command", "environment")):
            pid, command = integers_or_absent(pids[:1]).tolist()[0], _text_or_none(commands[0])
            self.environment = _json_object(environments[0])
        agents = [
            parse_agent({"product_name": product, "name": name, **_json_object(extra)}, id, index, kind == "GPU")
            for columns in self._rows(
                "info_agent", ("id", "logical_index", "type", "product_name", "name", "extdata")
            )
            for id, index, kind, product, name, extra in zip(*columns, strict=True)
        ]
        self._recording.begin_process(pid, command, Agents(agent for agent in agents if agent is not None))

    def _read_calls(self) -> None:
        for columns in self._rows(
            "region", ("start", "end", "start_id", "end_id", "pid", "tid", "track_id", "name_id", "event_id")
        ):
            start, end, start_id, end_id, pid, tid, track, name, event = map(integers_or_absent, columns)
            stack, category = self._events.rows(event)
            track_columns = self._tracks.rows(track)
            self._recording.add_calls(
                _texts_by_id(self._categories, category),
                _texts_by_id(self._strings, name),
                _texts_by_id(self._messages, event),
                self._pids.rows(_first_present(pid, track_columns[0]))[0],
                self._threads.rows(_first_present(tid, track_columns[1]))[0],
                _first_present(start, self._times.rows(start_id)[0]),
                _first_present(end, self._times.rows(end_id)[0]),
                stack,
            )

    def _read_dispatches(self) -> None:
        symbols, counter_sums = self._texts("info_kernel_symbol", "display_name"), self._counter_sums()
        sizes = [f"{what}_size_{axis}" for what in ("grid", "workgroup") for axis in _AXES]
        names = (
            *("kernel_id", "dispatch_id", "group_segment_size", "private_segment_size", "agent_id", "event_id"),
            *sizes,
        )
        for work, track, (kernel, dispatch, local, scratch, agent, event, *size) in self._work_rows(
            "kernel_dispatch", names
        ):
            self._recording.add_dispatches(
                self._device_work(work, _texts_by_id(symbols, kernel), track),
                _first_present(agent, track[2]),
                size[:3],
                size[3:],
                counter_sums.values(event),
                dispatch_id=dispatch,
                shared_memory=local,
                scratch_memory=scratch,
            )

    def _read_copies(self) -> None:
        for work, track, (name, source, target, size) in self._work_rows(
            "memory_copy", ("name_id", "src_agent_id", "dst_agent_id", "size")
        ):
            self._recording.add_copies(
                self._device_work(work, _texts_by_id(self._strings, name), track), source, target, size
            )

    def _counter_sums(self) -> CounterSums:
        """Return the counters by the event of their dispatch."""
        names, sums = self._texts("info_pmc", "name"), CounterSums()
        for events, ids, values in self._rows("pmc_event", ("event_id", "pmc_id", "value")):
            for event, id, value in zip(integers_or_absent(events).tolist(), ids, values, strict=True):
                if id in names and event != ABSENT and isinstance(value, (int, float)) and isfinite(value):
                    sums.add(names[id], event, value)
        return sums

    def _work_rows(
        self, table: str, names: Sequence[str]
    ) -> Iterator[tuple[list[Int64], list[Int64], list[Int64]]]:
        """Yield ([start, end, correlation, stream, queue], track columns, others) for each chunk."""
        common = ("start", "end", "start_id", "end_id", "event_id", "stream_id", "queue_id", "track_id")
        for columns in self._rows(table, (*common, *names)):
            start, end, start_id, end_id, event, stream, queue, track, *rest = map(integers_or_absent, columns)
            times = [
                _first_present(start, self._times.rows(start_id)[0]),
                _first_present(end, self._times.rows(end_id)[0]),
            ]
            yield [*times, self._events.rows(event)[0], stream, queue], self._tracks.rows(track), rest

    @staticmethod
    def _device_work(work: list[Int64], names: TextColumn, track: list[Int64]) -> WorkRecords:
        start, end, correlation, stream, queue = work
        return WorkRecords(
            names, start, end, correlation, _first_present(stream, track[4]), _first_present(queue, track[3])
        )

    def _marker_messages(self) -> dict[int, str]:
        """Return the texts of the program's markers by event id."""
        messages = {}
        for ids, extra in self._rows("event", ("id", "extdata"), "WHERE length(extdata) > 2"):
            for id, text in zip(ids, extra, strict=True):
                if message := _text_or_none(_json_object(text).get("message")):
                    messages[id] = message
        return messages

    def _texts(self, table: str, column: str) -> dict[int, str]:
        return {
            id: text
            for ids, texts in self._rows(table, ("id", column))
            for id, text in zip(ids, texts, strict=True)
            if isinstance(text, str)
        }

    def _rows(self, table: str, columns: Sequence[str], where: str = "") -> Iterator[list[Sequence[Any]]]:
        name = f"rocpd_{table}{self._suffix}"
        return self._database.rows(name, columns, where) if name in self._tables else iter(())


def _json_object(text: object) -> dict[str, Any]:
    """Return the JSON object in a cell, or an empty one."""
    try:
        value = msgspec.json.decode(text) if isinstance(text, (str, bytes)) else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


class _IdLookup:
    """Columns of integers by id: a join without SQL."""

    def __init__(self, ids: Int64, values: Sequence[Int64]) -> None:
        order = np.argsort(ids, kind="stable")
        self._ids = ids[order]
        self._values = [column[order] for column in values]

    def rows(self, ids: Int64) -> list[Int64]:
        """Return the values of each column for these ids (int64[k]), ABSENT where an id is unknown."""
        if len(self._ids) == 0:
            return [np.full(len(ids), ABSENT, np.int64) for _ in self._values]
        index = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        known = (self._ids[index] == ids) & (ids != ABSENT)
        return [np.where(known, column[index], ABSENT) for column in self._values]


def _build_lookup(chunks: Iterable[Sequence[Sequence[Any]]], columns: int) -> _IdLookup:
    """Return a lookup by the first column of a table, which comes in chunks, with that many further `columns`."""
    converted = [[integers_or_absent(column) for column in chunk] for chunk in chunks]
    joined = [np.concatenate(each) for each in zip(*converted, strict=True)]
    ids, *values = joined or [np.empty(0, np.int64) for _ in range(columns + 1)]
    return _IdLookup(ids, values)


def _texts_by_id(texts: Mapping[int, str], ids: Int64) -> CodedTexts:
    """Return the texts with these ids, None where an id is unknown."""
    distinct, index = np.unique(ids, return_inverse=True)
    return CodedTexts([texts.get(id) for id in distinct.tolist()], index.ravel())


def _first_present(first: Int64, second: Int64) -> Int64:
    """Return `first`, or `second` where `first` is ABSENT (int64[k])."""
    return np.where(first == ABSENT, second, first)
