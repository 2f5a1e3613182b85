"""Draws a recording of rocprofv3 as the database that it writes by default (rocpd), in versions 3, 4 and 4.1.0.

Tables end in the id of the process; views without it join them. A call and the work that it launched share the
`stack_id` of their events; `correlation_id` is the application's own, mostly 0.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.producers.rocprof import (
    BOOT,
    CPU,
    DOMAINS,
    GPU,
    KERNELS,
    MANGLED,
    PID,
    RocprofCall,
    RocprofCopy,
    RocprofDispatch,
    RocprofRun,
    agents,
    counter_names,
)

UUID = "_019a5f0c_72a4_7d1e_9d5b_0242ac120002"
NODE = 2993533

_INFO = {
    "metadata": "tag TEXT NOT NULL, value TEXT NOT NULL",
    "string": "string TEXT NOT NULL UNIQUE ON CONFLICT ABORT",
    "info_node": "hash BIGINT NOT NULL UNIQUE, machine_id TEXT NOT NULL UNIQUE, hostname TEXT",
    "info_process": "nid INTEGER, ppid INTEGER, pid INTEGER NOT NULL, command TEXT, environment JSONB NOT NULL",
    "info_thread": "nid INTEGER, ppid INTEGER, pid INTEGER NOT NULL, tid INTEGER NOT NULL, name TEXT",
    "info_agent": "nid INTEGER, pid INTEGER, type TEXT CHECK (type IN ('CPU', 'GPU')), absolute_index INTEGER, "
    "logical_index INTEGER, type_index INTEGER, name TEXT, model_name TEXT, product_name TEXT, extdata JSONB",
    "info_queue": "nid INTEGER, pid INTEGER, name TEXT",
    "info_stream": "nid INTEGER, pid INTEGER, name TEXT",
    "info_kernel_symbol": "nid INTEGER, pid INTEGER, code_object_id INTEGER, kernel_name TEXT, display_name TEXT",
    "track": "nid INTEGER, pid INTEGER, tid INTEGER, agent_id INTEGER, queue_id INTEGER, stream_id INTEGER, "
    "name_id INTEGER",
    "event": "category_id INTEGER, stack_id INTEGER, parent_stack_id INTEGER, correlation_id INTEGER, "
    "extdata JSONB DEFAULT '{}' NOT NULL",
    "info_pmc": "nid INTEGER, pid INTEGER, agent_id INTEGER, name TEXT, symbol TEXT",
    "pmc_event": "event_id INTEGER, pmc_id INTEGER NOT NULL, value REAL DEFAULT 0.0",
}
_SIZES = "".join(f", {what}_size_{axis} INTEGER NOT NULL" for what in ("workgroup", "grid") for axis in "xyz")
_WORK = {
    "region": ", name_id INTEGER NOT NULL, event_id INTEGER",
    "kernel_dispatch": ", kernel_id INTEGER, dispatch_id INTEGER, private_segment_size INTEGER, "
    f"group_segment_size INTEGER{_SIZES}, event_id INTEGER",
    "memory_copy": ", name_id INTEGER, dst_agent_id INTEGER, src_agent_id INTEGER, size INTEGER, event_id INTEGER",
}
_PLACES = {
    "region": "nid INTEGER, pid INTEGER, tid INTEGER, start BIGINT NOT NULL, 'end' BIGINT NOT NULL",
    "kernel_dispatch": "nid INTEGER, pid INTEGER, tid INTEGER, agent_id INTEGER, queue_id INTEGER, "
    "stream_id INTEGER, start BIGINT NOT NULL, 'end' BIGINT NOT NULL",
    "memory_copy": "nid INTEGER, pid INTEGER, tid INTEGER, queue_id INTEGER, stream_id INTEGER, "
    "start BIGINT NOT NULL, 'end' BIGINT NOT NULL",
}
_POINTERS = {
    "4": "track_id INTEGER NOT NULL, start_id INTEGER NOT NULL, end_id INTEGER NOT NULL",
    "4.1.0": "track_id INTEGER NOT NULL, start BIGINT NOT NULL, 'end' BIGINT NOT NULL",
}


class _DatabaseWriter:
    def __init__(self, connection: sqlite3.Connection, version: str, uuid: str) -> None:
        self._connection, self._version, self._uuid = connection, version, uuid
        self._strings: dict[str, int] = {}
        self._tracks: dict[tuple[Any, ...], int] = {}
        self._events = self._times = 0
        tables = dict(_INFO)
        if version != "3":
            tables["info_category"] = "name TEXT NOT NULL"
        if version == "4":
            tables["timestamp"] = "value BIGINT NOT NULL, phase INTEGER, track_id INTEGER"
        for name, fields in _WORK.items():
            tables[name] = _POINTERS.get(version, _PLACES[name]) + fields
        for name, fields in tables.items():
            guid = f"guid TEXT DEFAULT '{uuid[1:]}' NOT NULL"
            connection.execute(
                f"CREATE TABLE `rocpd_{name}{uuid}` (id INTEGER PRIMARY KEY AUTOINCREMENT, {guid}, {fields})"
            )
            connection.execute(f"CREATE VIEW IF NOT EXISTS `rocpd_{name}` AS SELECT * FROM `rocpd_{name}{uuid}`")

    def insert(self, table: str, **cells: Any) -> None:
        names, marks = ", ".join(f'"{name}"' for name in cells), ", ".join("?" * len(cells))
        self._connection.execute(
            f"INSERT INTO `rocpd_{table}{self._uuid}` ({names}) VALUES ({marks})", [*cells.values()]
        )

    def string(self, text: str) -> int:
        if text not in self._strings:
            self._strings[text] = len(self._strings) + 1
            self.insert("string", id=self._strings[text], string=text)
        return self._strings[text]

    def event(self, domain: str, correlation: int, message: str | None = None) -> int:
        self._events += 1
        category = self.string(domain) if self._version == "3" else KINDS.index(domain) + 1
        extra = json.dumps({"message": message}) if message is not None else "{}"
        self.insert("event", id=self._events, category_id=category, stack_id=correlation,
                    parent_stack_id=correlation, correlation_id=0, extdata=extra)  # fmt: skip
        return self._events

    def work(
        self, table: str, span: RocprofCall | RocprofDispatch | RocprofCopy, place: dict[str, int], **cells: Any
    ) -> None:
        """Insert a row with its times and place, in it or apart."""
        if self._version == "3":
            self.insert(table, nid=NODE, pid=PID, **place, start=BOOT + span.start, end=BOOT + span.end, **cells)
            return
        key = tuple(sorted(place.items()))
        if key not in self._tracks:
            self._tracks[key] = len(self._tracks) + 1
            self.insert("track", id=self._tracks[key], nid=NODE, pid=PID, **place)
        if self._version == "4.1.0":
            times = {"start": BOOT + span.start, "end": BOOT + span.end}
            self.insert(table, track_id=self._tracks[key], **times, **cells)
            return
        # In no order of time, as several threads append to it.
        for number, (value, phase) in enumerate(((span.end, 2), (span.start, 1)), self._times + 1):
            self.insert("timestamp", id=number, value=BOOT + value, phase=phase)
        self._times += 2
        ids = {"track_id": self._tracks[key], "start_id": self._times, "end_id": self._times - 1}
        self.insert(table, **ids, **cells)

    def describe(self, run: RocprofRun) -> None:
        self.insert("metadata", tag="schema_version", value=self._version)
        self.insert("info_node", id=NODE, hash=1, machine_id="f00", hostname="host")
        self.insert("info_process", id=PID, nid=NODE, pid=PID, command="python train.py",
                    environment=json.dumps(run.environment))  # fmt: skip
        for tid in sorted({call.tid for call in run.calls} | {PID}):
            self.insert("info_thread", id=tid, nid=NODE, pid=PID, tid=tid)
        for agent in agents():
            self.insert(
                "info_agent", id=agent["node_id"], nid=NODE, pid=PID, type="GPU" if agent["type"] == 2 else "CPU",
                absolute_index=agent["node_id"], logical_index=agent["logical_node_id"], type_index=0,
                name=agent["name"], model_name="", product_name=agent["product_name"], extdata=json.dumps(agent),
            )  # fmt: skip
        for number, name in enumerate(counter_names(run), 1):
            self.insert("info_pmc", id=number, nid=NODE, pid=PID, agent_id=GPU, name=name, symbol=name)
        for number, (mangled, name) in enumerate(zip(MANGLED, KERNELS, strict=True), 1):
            self.insert("info_kernel_symbol", id=number, code_object_id=1, kernel_name=mangled, display_name=name)
        if self._version != "3":
            for number, kind in enumerate(DOMAINS, 1):
                self.insert("info_category", id=number, name=kind)


KINDS = list(DOMAINS)


def write_rocpd(path: Path, run: RocprofRun, version: str = "3", uuid: str = UUID) -> Path:
    """Write a database and return `path`; a second call with another `uuid` adds a process."""
    with closing(sqlite3.connect(path)) as connection, connection:
        writer = _DatabaseWriter(connection, version, uuid)
        writer.describe(run)
        for call in run.calls:
            event = writer.event(call.domain, call.correlation, call.message)
            writer.work("region", call, {"tid": call.tid}, name_id=writer.string(call.name), event_id=event)
        for number, each in enumerate(run.dispatches, 1):
            sizes = {
                f"{what}_size_{axis}": size
                for what, triple in (("workgroup", each.block), ("grid", each.grid))
                for axis, size in zip("xyz", triple, strict=True)
            }
            place = {"tid": PID, "agent_id": GPU, "queue_id": each.queue, "stream_id": each.stream}
            event = writer.event("KERNEL_DISPATCH", each.correlation)
            writer.work("kernel_dispatch", each, place, kernel_id=each.kernel + 1, dispatch_id=number,
                        private_segment_size=0, group_segment_size=4096, **sizes, event_id=event)  # fmt: skip
            for name, value in each.counters.items():
                pmc = counter_names(run).index(name) + 1
                writer.insert("pmc_event", event_id=event, pmc_id=pmc, value=0.25 * value)
                writer.insert("pmc_event", event_id=event, pmc_id=pmc, value=0.75 * value)
        for copy in run.copies:
            source, target = copy.agents
            writer.work("memory_copy", copy, {"tid": PID, "stream_id": copy.stream},
                        name_id=writer.string(copy.operation), dst_agent_id=target, src_agent_id=source,
                        size=copy.size, event_id=writer.event("MEMORY_COPY", copy.correlation))  # fmt: skip
    assert CPU == 0
    return path
