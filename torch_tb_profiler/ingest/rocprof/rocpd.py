"""rocpd, the SQLite files of rocprofv3: an open file to a Trace.

Each process has tables of its own, named with its id (`rocpd_string_0199...`); views join them. In version 3 of
the schema the rows of work hold their times, threads and devices; in version 4 they point to rows of
`rocpd_timestamp` and `rocpd_track`, in 4.1 to the latter only. What joins a call and its work is the `stack_id` of
their events, in spite of its name; `correlation_id` is the application's own. Counters (`rocpd_pmc_event`) name
the event of their dispatch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any, BinaryIO

import msgspec

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.rocprof.agents import agent_of
from torch_tb_profiler.ingest.rocprof.counted import Counted
from torch_tb_profiler.ingest.rocprof.database import Database, open_database
from torch_tb_profiler.ingest.rocprof.finish import finish
from torch_tb_profiler.ingest.rocprof.lookup import either, lookup_of, named
from torch_tb_profiler.ingest.rocprof.records import Agents, Recording, Work
from torch_tb_profiler.ingest.runtime import Progress, Report, without_gc
from torch_tb_profiler.ingest.slices import Texts, integers_or_absent
from torch_tb_profiler.ingest.source import Source
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import ABSENT, Int64, Trace

_STRINGS = re.compile(r"rocpd_string(_\w+)?")
_AXES = ("x", "y", "z")


def read_rocpd(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    """Raises TraceError if the file holds no work and no calls, TooLargeError if it holds more than `limit`."""
    health, recording = HealthLog(), Recording()
    environment: dict[str, Any] = {}
    source = Source(stream, size, report, health, limit)

    def advance() -> None:
        # Tables that are joined with later ones hold no events; reading them takes as long.
        report(Progress("arranging", size, size, recording.columns.length))

    with without_gc(), open_database(source, health, advance) as database:
        for suffix in _processes(database):
            process = _Process(database, suffix, recording)
            environment = environment or process.environment
            process.read()
    return finish(recording, health, environment, advance)


def _processes(database: Database) -> list[str]:
    matches = [_STRINGS.fullmatch(table) for table in sorted(database.tables())]
    suffixes = [match[1] or "" for match in matches if match]
    if not suffixes:
        raise TraceError("this database holds no tables of rocprofv3")
    return suffixes


class _Process:
    """The tables of one process."""

    def __init__(self, database: Database, suffix: str, recording: Recording) -> None:
        self._database, self._suffix, self._recording = database, suffix, recording
        self._tables = set(database.tables())
        self._strings = self._texts("string", "string")
        # Version 4 keeps categories apart from other strings.
        named = "info_category" if f"rocpd_info_category{suffix}" in self._tables else "string"
        self._categories = self._texts(named, "name") if named != "string" else self._strings
        self.environment: dict[str, Any] = {}
        self._begin()
        self._events = lookup_of(self._rows("event", ("id", "stack_id", "category_id")), 2)
        self._messages = self._spoken()
        self._threads = lookup_of(self._rows("info_thread", ("id", "tid")), 1)
        self._pids = lookup_of(self._rows("info_process", ("id", "pid")), 1)
        self._times = lookup_of(self._rows("timestamp", ("id", "value")), 1)
        self._tracks = lookup_of(self._rows("track", ("id", "pid", "tid", "agent_id", "queue_id", "stream_id")), 5)

    def read(self) -> None:
        """Appends all records."""
        self._read_calls()
        self._read_dispatches()
        self._read_copies()

    def _begin(self) -> None:
        pid, command = None, None
        for pids, commands, environments in self._rows("info_process", ("pid", "command", "environment")):
            pid, command = integers_or_absent(pids[:1]).tolist()[0], _text(commands[0])
            self.environment = _object(environments[0])
        agents = [
            agent_of({"product_name": product, "name": name, **_object(extra)}, id, index, kind == "GPU")
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
            stack, category = self._events.of(event)
            of_track = self._tracks.of(track)
            self._recording.calls(
                named(self._categories, category),
                named(self._strings, name),
                named(self._messages, event),
                self._pids.of(either(pid, of_track[0]))[0],
                self._threads.of(either(tid, of_track[1]))[0],
                either(start, self._times.of(start_id)[0]),
                either(end, self._times.of(end_id)[0]),
                stack,
            )

    def _read_dispatches(self) -> None:
        symbols, counted = self._texts("info_kernel_symbol", "display_name"), self._counted()
        sizes = [f"{what}_size_{axis}" for what in ("grid", "workgroup") for axis in _AXES]
        names = (
            *("kernel_id", "dispatch_id", "group_segment_size", "private_segment_size", "agent_id", "event_id"),
            *sizes,
        )
        for work, track, (kernel, dispatch, local, scratch, agent, event, *size) in self._work(
            "kernel_dispatch", names
        ):
            self._recording.dispatches(
                self._placed(work, named(symbols, kernel), track),
                either(agent, track[2]),
                size[:3],
                size[3:],
                counted.of(event),
                dispatch_id=dispatch,
                shared_memory=local,
                scratch_memory=scratch,
            )

    def _read_copies(self) -> None:
        for work, track, (name, source, target, size) in self._work(
            "memory_copy", ("name_id", "src_agent_id", "dst_agent_id", "size")
        ):
            self._recording.copies(self._placed(work, named(self._strings, name), track), source, target, size)

    def _counted(self) -> Counted:
        """Counters by the event of their dispatch."""
        counters, counted = self._texts("info_pmc", "name"), Counted()
        for events, ids, values in self._rows("pmc_event", ("event_id", "pmc_id", "value")):
            for event, id, value in zip(integers_or_absent(events).tolist(), ids, values, strict=True):
                if id in counters and event != ABSENT and isinstance(value, (int, float)) and isfinite(value):
                    counted.add(counters[id], event, value)
        return counted

    def _work(self, table: str, names: Sequence[str]) -> Iterator[tuple[list[Int64], list[Int64], list[Int64]]]:
        """([start, end, correlation, stream, queue], columns of the track, further ones) of pieces of a table."""
        common = ("start", "end", "start_id", "end_id", "event_id", "stream_id", "queue_id", "track_id")
        for columns in self._rows(table, (*common, *names)):
            start, end, start_id, end_id, event, stream, queue, track, *rest = map(integers_or_absent, columns)
            timed = [either(start, self._times.of(start_id)[0]), either(end, self._times.of(end_id)[0])]
            yield [*timed, self._events.of(event)[0], stream, queue], self._tracks.of(track), rest

    @staticmethod
    def _placed(work: list[Int64], names: Texts, track: list[Int64]) -> Work:
        start, end, correlation, stream, queue = work
        return Work(names, start, end, correlation, either(stream, track[4]), either(queue, track[3]))

    def _spoken(self) -> dict[int, str]:
        """event id -> what the program gave its marker to say."""
        messages = {}
        for ids, extra in self._rows("event", ("id", "extdata"), "WHERE length(extdata) > 2"):
            for id, text in zip(ids, extra, strict=True):
                if message := _text(_object(text).get("message")):
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


def _object(text: object) -> dict[str, Any]:
    """A JSON object that lies in a cell; empty if it is none."""
    try:
        value = msgspec.json.decode(text) if isinstance(text, (str, bytes)) else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
