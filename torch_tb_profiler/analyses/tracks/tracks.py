"""The tracks of the timeline and their groups. Every slice of a file belongs to exactly one track.

A track holds what one (pid, tid) pair of the file did in one role: a host thread, the work of a stream, the
annotations mirrored onto that stream, or the synchronization recorded for it. A group is a process of the host, a
device, or the profiler itself.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.tracks.roles import (
    Role,
    ThreadEventCounts,
    count_thread_events,
    event_roles,
    stream_roles,
    thread_devices_and_streams,
    thread_roles,
)
from torch_tb_profiler.base.arrays import distinct_numbers
from torch_tb_profiler.base.memo import stored
from torch_tb_profiler.model.devices import device_kind, device_name, devices, graph_lanes
from torch_tb_profiler.model.iteration_metrics import ITERATIONS_PROCESS
from torch_tb_profiler.model.kinds import HOST_KINDS, rows_of_kind
from torch_tb_profiler.model.serving.requests import REQUESTS_PROCESS
from torch_tb_profiler.model.thread_names import process_and_thread_names
from torch_tb_profiler.model.trace import NO_CODE, Int32, Trace
from torch_tb_profiler.model.vendors.ascend import GROUP, ascend_roles
from torch_tb_profiler.model.vendors.gaudi import thread_engines

_ROLE_ORDER = (
    "trainer",
    "main",
    "backward",
    "compute",
    "communication",
    "copy",
    "",
    "annotation",
    "sync",
    "graph",
    "memory",
)
"""Roles of tracks, in the order in which a group shows them."""

_BESIDE_WORK = {
    Role.ANNOTATION: ("annotation", ", annotations"),
    Role.SYNC: ("sync", ", waits"),
    Role.GRAPH: ("graph", ", graph nodes"),
}
"""Role and name suffix of the tracks of a stream that hold no device work."""

ROLES_BESIDE_WORK = tuple(role for role, _ in _BESIDE_WORK.values())

NO_STREAM = 2**32 - 1
"""Stream number that the driver records for a wait on all streams."""


class TrackGroup(msgspec.Struct, frozen=True):
    """Tracks that belong together: a process of the host, a device, or the spans of the profiler itself."""

    kind: Literal["process", "device", "profiler"]
    name: str
    pid: str
    device: int | None


class Track(msgspec.Struct, frozen=True):
    """One track of slices or instants.

    kind     "thread" | "stream" | "instants"
    role     threads: "trainer", "main", "backward" or ""; streams: "compute", "communication", "copy",
             "annotation", "sync", "graph" (nodes of CUDA graphs that are no work of the device);
             instants: "memory" (nothing but allocations, which the memory counters show) or ""
    group    index into `TrackTable.groups`
    code     thread code in the trace
    slices   "X" events and matched "B"/"E" pairs, Python frames and those without a time included
    untimed  slices or instants without a time, which cannot be drawn
    """

    kind: Literal["thread", "stream", "instants"]
    role: str
    name: str
    group: int
    code: int
    device: int | None
    stream: int | None
    slices: int
    python_slices: int
    untimed: int
    instants: int


class TrackTable(msgspec.Struct, frozen=True):
    """The tracks in display order, and the track of each thread and role.

    lookup  int32[threads, roles]: the track of a (thread code, role), NO_CODE if there is none
    """

    tracks: tuple[Track, ...]
    groups: tuple[TrackGroup, ...]
    lookup: Int32


@stored
def tracks(trace: Trace) -> TrackTable:
    """Return the tracks that have at least one event, in display order: processes, devices, the profiler."""
    counts = count_thread_events(trace)
    device_of_thread, stream_of_thread = thread_devices_and_streams(trace)
    grouping = _TrackGrouping(trace, counts, device_of_thread)
    builder = _TrackBuilder(trace, counts, device_of_thread, stream_of_thread)
    pairs = [
        (code, Role(role))
        for code, role in np.argwhere(counts.slices + counts.instants > 0).tolist()
        if counts.slices[code, role] or role == Role.INSTANT
    ]
    keys = [grouping.key(code, role) for code, role in pairs]
    groups = {key: grouping.group(key) for key in keys}
    ordered_keys = sorted(groups, key=lambda key: grouping.order(key, groups[key]))
    index = {key: i for i, key in enumerate(ordered_keys)}
    unordered = [builder.track(code, role, index[key]) for (code, role), key in zip(pairs, keys, strict=True)]
    order = sorted(range(len(unordered)), key=lambda i: builder.order(unordered[i]))
    lookup = np.full((len(trace.threads), len(Role)), NO_CODE, np.int32)
    for id, i in enumerate(order):
        lookup[pairs[i]] = id
    return TrackTable(tuple(unordered[i] for i in order), tuple(groups[key] for key in ordered_keys), lookup)


def tracks_of(trace: Trace, rows: Int32) -> Int32:
    """Return int32[k], the track of each of these slices or instants."""
    ids: Int32 = tracks(trace).lookup[trace.events.thread[rows], event_roles(trace)[rows]]
    return ids


def track_of(trace: Trace, row: int) -> int:
    """Return the track of a slice or instant, or of another event's thread; NO_CODE if there is none."""
    return int(tracks(trace).lookup[trace.events.thread[row], event_roles(trace)[row]])


def device_labels(trace: Trace) -> dict[int, str]:
    """Return the name of each device that has tracks, by device number."""
    return {group.device: group.name for group in tracks(trace).groups if group.device is not None}


_BESIDE = (REQUESTS_PROCESS, ITERATIONS_PROCESS)
"""Processes of the lanes that files beside the trace add."""


def work_tracks(trace: Trace) -> list[int]:
    """Return the ids of the tracks of device work, or of the host threads if no stream was recorded.

    Lanes of files beside the trace (requests, iterations) overlap with what they describe: they are no threads,
    and count only where the trace has none.
    """
    table = tracks(trace)
    program_tracks = [(id, t) for id, t in enumerate(table.tracks) if table.groups[t.group].kind != "profiler"]
    streams = [id for id, t in program_tracks if t.kind == "stream" and t.role not in ROLES_BESIDE_WORK]
    threads = [(id, trace.threads[t.code].pid) for id, t in program_tracks if t.kind == "thread"]
    return streams or [id for id, pid in threads if pid not in _BESIDE] or [id for id, _ in threads]


_GroupKey = tuple[str, int | str | None]
"""("process", pid), ("device", number) or ("profiler", "")."""


class _TrackGrouping:
    """Assigns threads to groups, by their events and by the names that metadata events give to processes."""

    def __init__(self, trace: Trace, counts: ThreadEventCounts, device_of_thread: dict[int, int | None]) -> None:
        self._threads = trace.threads
        self._slices = counts.slices.sum(1)
        self._spans = counts.spans.sum(1)
        self._names = process_and_thread_names(trace)
        self._device_kind = device_kind(trace)
        self._device_names = {info.id: info.name for info in devices(trace)}
        self._device_of_thread = device_of_thread
        self._device_of_pid = {
            trace.threads[code].pid: device for code, device in device_of_thread.items() if device is not None
        }
        host_threads = distinct_numbers(trace.events.thread[rows_of_kind(trace, *HOST_KINDS)])
        self._host_pids = {trace.threads[code].pid for code in host_threads}

    def key(self, code: int, role: Role) -> _GroupKey:
        """Return the key of the group that a thread's events in a role belong to."""
        pid = self._threads[code].pid
        device = self._device_of_thread.get(code)
        if (role == Role.DEVICE or role in _BESIDE_WORK) and device is not None:
            return ("device", device)
        if self._slices[code] and self._spans[code] == self._slices[code]:
            return ("profiler", "")
        if pid in self._device_of_pid and pid not in self._host_pids:
            return ("device", self._device_of_pid[pid])
        if not self._slices[code] and pid not in self._host_pids:
            return ("profiler", "")
        return ("process", pid)

    def group(self, key: _GroupKey) -> TrackGroup:
        """Build the group of a key."""
        kind, id = key
        if kind == "device":
            assert isinstance(id, int)
            name = self._device_names.get(id)
            return TrackGroup(
                "device", device_name(self._device_kind, id) + (f" · {name}" if name else ""), "", id
            )
        if kind == "profiler":
            return TrackGroup("profiler", "Profiler", "", None)
        unnamed = id if isinstance(id, str) and id else f"process {id}"
        return TrackGroup("process", self._names.process.get(id) or unnamed, str(id), None)

    def order(self, key: _GroupKey, group: TrackGroup) -> tuple[int, int, str]:
        """Return the sort key of a group: processes come first, then devices, then the profiler."""
        kind = ("process", "device", "profiler").index(group.kind)
        index = group.device if group.device is not None else self._names.process_order.get(key[1], 0)
        return kind, index, group.pid


class _TrackBuilder:
    """Builds tracks from the counts of events and the names that metadata events give to threads."""

    def __init__(
        self,
        trace: Trace,
        counts: ThreadEventCounts,
        device_of_thread: dict[int, int | None],
        stream_of_thread: dict[int, int | None],
    ) -> None:
        self._threads = trace.threads
        self._counts = counts
        self._names = process_and_thread_names(trace)
        self._device_of_thread, self._stream_of_thread = device_of_thread, stream_of_thread
        self._stream_roles = stream_roles(trace)
        # Only these streams are shown by the names that the file records for them.
        self._has_stream_name = (thread_engines(trace) >= 0) | (ascend_roles(trace) == GROUP) | graph_lanes(trace)
        self._main_thread, self._backward_threads = thread_roles(trace)

    def track(self, code: int, role: Role, group: int) -> Track:
        """Build the track of a thread code and role."""
        kind, track_role, name = self._label(code, role)
        counts, instants = self._counts, role == Role.INSTANT
        return Track(
            kind=kind,
            role=track_role,
            name=name,
            group=group,
            code=code,
            device=self._device_of_thread.get(code) if kind == "stream" else None,
            stream=self._stream_of_thread.get(code) if kind == "stream" else None,
            slices=0 if instants else int(counts.slices[code, role]),
            python_slices=0 if instants else int(counts.python[code, role]),
            untimed=int(counts.untimed[code, role]),
            instants=int(counts.instants[code, role]) if instants else 0,
        )

    def _label(self, code: int, role: Role) -> tuple[Literal["thread", "stream", "instants"], str, str]:
        """Return the kind, role and name of a track."""
        tid = self._threads[code].tid
        name = self._names.thread.get(code) or (f"thread {tid}" if isinstance(tid, int) else tid or "marks")
        if role == Role.INSTANT:
            only_memory = self._counts.memory[code, role] == self._counts.instants[code, role]
            return "instants", "memory" if only_memory else "", name
        if role == Role.TRAINER:
            return "thread", "trainer", "Trainer"
        if role == Role.HOST:
            if code == self._main_thread:
                return "thread", "main", name
            return "thread", "backward" if code in self._backward_threads else "", name
        stream = self._stream_of_thread.get(code)
        if not self._has_stream_name[code] or code not in self._names.thread:
            name = "all streams" if stream == NO_STREAM else f"stream {tid if stream is None else stream}"
        track_role, suffix = _BESIDE_WORK.get(role, (self._stream_roles[code], ""))
        return "stream", track_role, name + suffix

    def order(self, track: Track) -> tuple[int, ...]:
        """Return the sort key of a track; a stream's annotations and waits come after its work."""
        by_kind = ("thread", "stream", "instants").index(track.kind)
        by_role = _ROLE_ORDER.index(track.role)
        if track.kind == "stream":
            stream = track.stream if track.stream is not None else track.code
            return track.group, by_kind, stream, by_role, track.code
        return track.group, by_kind, by_role, self._names.thread_order.get(track.code, 0), track.code
