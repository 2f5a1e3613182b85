"""The tracks of the timeline: every slice of a file belongs to exactly one of them.

A track is what one (pid, tid) pair of the file did in one role: a host thread, the work of a stream, the
annotations mirrored onto that stream, the synchronization recorded for it.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.tracks.census import Census, census, device_and_stream
from torch_tb_profiler.analyses.tracks.groups import Group, Grouping
from torch_tb_profiler.analyses.tracks.roles import Role, roles, stream_roles, thread_roles
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.thread_names import process_and_thread_names
from torch_tb_profiler.model.trace import NO_CODE, Int32, Trace
from torch_tb_profiler.model.vendors.ascend import GROUP, ascend_roles
from torch_tb_profiler.model.vendors.gaudi import thread_engines


class Track(msgspec.Struct, frozen=True):
    """One track of slices or instants.

    kind     "thread" | "stream" | "instants"
    role     threads: "trainer", "main", "backward" or ""; streams: "compute", "communication", "copy",
             "annotation", "sync";
             instants: "memory" (nothing but allocations, which the memory counters show) or ""
    group    index into `Tracks.groups`
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


class Tracks(msgspec.Struct, frozen=True):
    """Tracks in display order, and where each event belongs.

    lookup  int32[threads, roles]: the track of a (thread code, role), NO_CODE if there is none
    """

    tracks: tuple[Track, ...]
    groups: tuple[Group, ...]
    lookup: Int32


@derived
def tracks(trace: Trace) -> Tracks:
    """Tracks that have at least one event, in display order: host processes, devices, the profiler's spans."""
    counts = census(trace)
    devices, streams = device_and_stream(trace)
    grouping, description = Grouping(trace, counts, devices), _Description(trace, counts, devices, streams)
    pairs = [
        (code, Role(role))
        for code, role in np.argwhere(counts.slices + counts.instants > 0).tolist()
        if counts.slices[code, role] or role == Role.INSTANT
    ]
    keys = [grouping.key(code, role) for code, role in pairs]
    groups = {key: grouping.group(key) for key in keys}
    ordered_keys = sorted(groups, key=lambda key: grouping.order(key, groups[key]))
    index = {key: i for i, key in enumerate(ordered_keys)}
    unordered = [description.track(code, role, index[key]) for (code, role), key in zip(pairs, keys, strict=True)]
    order = sorted(range(len(unordered)), key=lambda i: description.order(unordered[i]))
    lookup = np.full((len(trace.threads), len(Role)), NO_CODE, np.int32)
    for id, i in enumerate(order):
        lookup[pairs[i]] = id
    return Tracks(tuple(unordered[i] for i in order), tuple(groups[key] for key in ordered_keys), lookup)


def tracks_of(trace: Trace, rows: Int32) -> Int32:
    """int32[k]: the track of each of these slices or instants."""
    ids: Int32 = tracks(trace).lookup[trace.events.thread[rows], roles(trace)[rows]]
    return ids


def track_of(trace: Trace, row: int) -> int:
    """The track of a slice or instant; of any other event that of its thread, NO_CODE if it has none."""
    return int(tracks(trace).lookup[trace.events.thread[row], roles(trace)[row]])


def device_labels(trace: Trace) -> dict[int, str]:
    """The name of each device that has tracks."""
    return {group.device: group.name for group in tracks(trace).groups if group.device is not None}


def work_tracks(trace: Trace) -> list[int]:
    """The streams of the devices, without what the profiler mirrors onto them; threads where there are none."""
    table = tracks(trace)
    own = [(id, t) for id, t in enumerate(table.tracks) if table.groups[t.group].kind != "profiler"]
    streams = [id for id, t in own if t.kind == "stream" and t.role not in ("annotation", "sync")]
    return streams or [id for id, t in own if t.kind == "thread"]


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
    "memory",
)
_MIRRORED = {Role.ANNOTATION: ("annotation", ", annotations"), Role.SYNC: ("sync", ", waits")}
"""What the profiler mirrors onto a stream: role and name of its track."""

NO_STREAM = 2**32 - 1
"""What the driver records for a wait that concerns no single stream."""


class _Description:
    """The tracks by themselves, from counts and what the metadata events say of threads."""

    def __init__(
        self, trace: Trace, counts: Census, devices: dict[int, int | None], streams: dict[int, int | None]
    ) -> None:
        self._threads = trace.threads
        self._counts = counts
        self._names = process_and_thread_names(trace)
        self._devices, self._streams = devices, streams
        self._stream_roles = stream_roles(trace)
        self._named = (thread_engines(trace) >= 0) | (ascend_roles(trace) == GROUP)
        self._main, self._backward = thread_roles(trace)

    def track(self, code: int, role: Role, group: int) -> Track:
        """What a thread code did in a role."""
        kind, what, name = self._label(code, role)
        counts, instants = self._counts, role == Role.INSTANT
        return Track(
            kind=kind,
            role=what,
            name=name,
            group=group,
            code=code,
            device=self._devices.get(code) if kind == "stream" else None,
            stream=self._streams.get(code) if kind == "stream" else None,
            slices=0 if instants else int(counts.slices[code, role]),
            python_slices=0 if instants else int(counts.python[code, role]),
            untimed=int(counts.untimed[code, role]),
            instants=int(counts.instants[code, role]) if instants else 0,
        )

    def _label(self, code: int, role: Role) -> tuple[Literal["thread", "stream", "instants"], str, str]:
        """(kind, role, name) of a track."""
        tid = self._threads[code].tid
        name = self._names.thread.get(code) or (f"thread {tid}" if isinstance(tid, int) else tid or "marks")
        if role == Role.INSTANT:
            only_memory = self._counts.memory[code, role] == self._counts.instants[code, role]
            return "instants", "memory" if only_memory else "", name
        if role == Role.TRAINER:
            return "thread", "trainer", "Trainer"
        if role == Role.HOST:
            return "thread", "main" if code == self._main else "backward" if code in self._backward else "", name
        stream = self._streams.get(code)
        if not self._named[code] or code not in self._names.thread:
            name = "all streams" if stream == NO_STREAM else f"stream {tid if stream is None else stream}"
        what, suffix = _MIRRORED.get(role, (self._stream_roles[code], ""))
        return "stream", what, name + suffix

    def order(self, track: Track) -> tuple[int, ...]:
        """What tracks are sorted by; a stream's annotations and waits stand beneath its work."""
        by_kind = ("thread", "stream", "instants").index(track.kind)
        by_role = _ROLE_ORDER.index(track.role)
        if track.kind == "stream":
            stream = track.stream if track.stream is not None else track.code
            return track.group, by_kind, stream, by_role, track.code
        return track.group, by_kind, by_role, self._names.thread_order.get(track.code, 0), track.code
