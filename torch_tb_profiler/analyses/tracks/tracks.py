"""The tracks of the timeline: every slice of a file belongs to exactly one of them.

A track is what one (pid, tid) pair of the file did in one role: a host thread, the work of a stream, the
annotations mirrored onto that stream, the synchronisation recorded for it. Splitting by role keeps spans that
run beside each other by design (an annotation over kernels) from being mistaken for overlap.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.base.markers import is_step
from torch_tb_profiler.model.communication.events import communication_kernels
from torch_tb_profiler.model.devices import device_kind, device_of, devices, stream_of
from torch_tb_profiler.model.kinds import DEVICE, HOST, Kind, ends, is_slice, kinds, of_kind
from torch_tb_profiler.model.memory.events import is_memory
from torch_tb_profiler.model.names import names
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64, Trace, derived, name_mask


class Role(IntEnum):
    """What a (pid, tid) pair is asked for."""

    HOST = 0
    DEVICE = 1
    ANNOTATION = 2
    SYNC = 3
    INSTANT = 4


_ROLE_OF_KIND = np.zeros(len(Kind), np.int8)
_ROLE_OF_KIND[list(DEVICE)] = Role.DEVICE
_ROLE_OF_KIND[Kind.DEVICE_ANNOTATION] = Role.ANNOTATION
_ROLE_OF_KIND[Kind.SYNC] = Role.SYNC

INSTANT_PHASES = b"iIR"
FLOW_PHASES = b"stf"


class Track(msgspec.Struct, frozen=True):
    """One track of slices or instants.

    kind     "thread" | "stream" | "instants"
    role     threads: "main", "backward" or ""; streams: "compute", "communication", "copy", "annotation", "sync";
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


class Group(msgspec.Struct, frozen=True):
    """Tracks that belong together: a process of the host, a device, or spans of the profiler itself."""

    kind: Literal["process", "device", "profiler"]
    name: str
    pid: str
    device: int | None


class Tracks(msgspec.Struct, frozen=True):
    """Tracks in display order, and where each event belongs.

    lookup  int32[threads, roles]: the track of a (thread code, role), NO_CODE if there is none
    """

    tracks: tuple[Track, ...]
    groups: tuple[Group, ...]
    lookup: Int32


def count_phases(trace: Trace, phases: bytes) -> int:
    """How many events have one of these phases."""
    return int(_of_phase(trace, phases).sum())


def count_other(trace: Trace) -> int:
    """How many events are neither slices, instants, counters, flows nor metadata, nor the end of a slice."""
    known = all_slices(trace) | _of_phase(trace, INSTANT_PHASES + FLOW_PHASES + b"CM")
    paired = int((all_slices(trace) & (trace.events.phase == ord("B"))).sum())  # each has its "E"
    return int((~known).sum()) - paired


def _of_phase(trace: Trace, phases: bytes) -> Bool:
    found: Bool = np.isin(trace.events.phase, np.frombuffer(phases, np.uint8))
    return found


@derived
def all_slices(trace: Trace) -> Bool:
    """bool[n]: "X" events and matched "B"/"E" pairs, those without a time included."""
    events = trace.events
    found: Bool = (events.phase == ord("X")) | is_slice(trace)
    return found


@derived
def roles(trace: Trace) -> np.ndarray:
    """int8[n]: the Role of every slice or instant (HOST for what is neither)."""
    role: np.ndarray = _ROLE_OF_KIND[kinds(trace)]
    role[_of_phase(trace, INSTANT_PHASES)] = Role.INSTANT
    return role


def track_of(trace: Trace, rows: Int32) -> Int32:
    """int32[k]: the track of each of these slices or instants."""
    found: Int32 = tracks(trace).lookup[trace.events.thread[rows], roles(trace)[rows]]
    return found


@derived
def tracks(trace: Trace) -> Tracks:
    """Tracks that have at least one event, in display order: host processes, devices, the profiler's spans."""
    facts = _Facts(trace)
    keys = [
        (code, Role(role))
        for code, role in np.argwhere(facts.slices + facts.instants > 0).tolist()
        if facts.slices[code, role] or role == Role.INSTANT
    ]
    group_keys = [facts.group_key(code, role) for code, role in keys]
    described = {key: facts.group(key) for key in group_keys}
    order_of_groups = sorted(described, key=lambda key: facts.group_order(key, described[key]))
    position = {key: i for i, key in enumerate(order_of_groups)}
    made = [facts.track(code, role, position[key]) for (code, role), key in zip(keys, group_keys, strict=True)]
    order = sorted(range(len(made)), key=lambda i: facts.track_order(made[i]))
    lookup = np.full((len(trace.threads), len(Role)), NO_CODE, np.int32)
    for place, i in enumerate(order):
        lookup[keys[i]] = place
    return Tracks(tuple(made[i] for i in order), tuple(described[key] for key in order_of_groups), lookup)


_ROLE_ORDER = ("main", "backward", "compute", "communication", "copy", "", "annotation", "sync", "memory")

NO_STREAM = 2**32 - 1
"""What the driver records for a wait that concerns no single stream."""


def _spelled(tid: int | str | None) -> str:
    """The name of a thread that nothing names."""
    if isinstance(tid, int):
        return f"thread {tid}"
    return tid or "marks"


_GroupKey = tuple[str, int | str | None]


class _Facts:
    """Counts per (thread code, role) and what the metadata events say of processes and threads."""

    def __init__(self, trace: Trace) -> None:
        events = trace.events
        self.trace = trace
        counts = _counts(trace)
        self.instants = counts["instant"]
        self.slices, self.untimed, self.memory = counts["slice"], counts["untimed"], counts["memory"]
        self.python, self.spans = counts["python"], counts["span"]
        self.names = names(trace)
        self.kind = device_kind(trace)
        self.device, self.stream = _places(trace)
        self.stream_role = _stream_roles(trace)
        self.main, self.backward = _thread_roles(trace)
        self.labels = {info.id: info.name for info in devices(trace)}
        self.host_pids = {
            trace.threads[code].pid for code in np.unique(events.thread[of_kind(trace, *HOST)]).tolist()
        }
        self.device_of_pid = {
            trace.threads[code].pid: device for code, device in self.device.items() if device is not None
        }

    def group_key(self, code: int, role: Role) -> _GroupKey:
        pid = self.trace.threads[code].pid
        if role in (Role.DEVICE, Role.ANNOTATION, Role.SYNC) and self.device.get(code) is not None:
            return ("device", self.device[code])
        if self.slices[code].sum() and self.spans[code].sum() == self.slices[code].sum():
            return ("profiler", "")
        if pid in self.device_of_pid and pid not in self.host_pids:
            return ("device", self.device_of_pid[pid])
        if not self.slices[code].sum() and pid not in self.host_pids:
            return ("profiler", "")
        return ("process", pid)

    def group(self, key: _GroupKey) -> Group:
        kind, which = key
        if kind == "device":
            assert isinstance(which, int)
            prefix = self.kind if self.kind in ("HPU", "MTIA") else "GPU"
            name = self.labels.get(which)
            return Group("device", f"{prefix} {which}" + (f" · {name}" if name else ""), "", which)
        if kind == "profiler":
            return Group("profiler", "Profiler", "", None)
        spelled = which if isinstance(which, str) and which else f"process {which}"
        return Group("process", self.names.process.get(which) or spelled, str(which), None)

    def group_order(self, key: _GroupKey, group: Group) -> tuple[int, int, str]:
        rank = ("process", "device", "profiler").index(group.kind)
        return (
            rank,
            group.device if group.device is not None else self.names.process_order.get(key[1], 0),
            group.pid,
        )

    def track(self, code: int, role: Role, group: int) -> Track:
        thread = self.trace.threads[code]
        name = self.names.thread.get(code) or _spelled(thread.tid)
        kind: Literal["thread", "stream", "instants"] = "thread"
        stream = None
        what = ""
        if role == Role.INSTANT:
            kind = "instants"
            what = "memory" if self.memory[code, role] == self.instants[code, role] else ""
        elif role == Role.HOST:
            what = "main" if code == self.main else "backward" if code in self.backward else ""
        else:
            kind, stream = "stream", self.stream.get(code)
            name = "all streams" if stream == NO_STREAM else f"stream {thread.tid if stream is None else stream}"
            what = {Role.ANNOTATION: "annotation", Role.SYNC: "sync"}.get(role) or self.stream_role[code]
            name += {Role.ANNOTATION: ", annotations", Role.SYNC: ", waits"}.get(role, "")
        return Track(
            kind=kind,
            role=what,
            name=name,
            group=group,
            code=code,
            device=self.device.get(code) if kind == "stream" else None,
            stream=stream,
            slices=int(self.slices[code, role]) if role != Role.INSTANT else 0,
            python_slices=int(self.python[code, role]) if role != Role.INSTANT else 0,
            untimed=int(self.untimed[code, role]),
            instants=int(self.instants[code, role]) if role == Role.INSTANT else 0,
        )

    def track_order(self, track: Track) -> tuple[int, ...]:
        by_kind = ("thread", "stream", "instants").index(track.kind)
        by_role = _ROLE_ORDER.index(track.role)
        if track.kind == "stream":
            # A stream's annotations and waits stand beneath its work.
            stream = track.stream if track.stream is not None else track.code
            return track.group, by_kind, stream, by_role, track.code
        return track.group, by_kind, by_role, self.names.thread_order.get(track.code, 0), track.code


def _counts(trace: Trace) -> dict[str, Int64]:
    """int64[threads, roles] of slices, instants, and of those among them that are ..."""
    role, slices = roles(trace), all_slices(trace)
    rows = np.flatnonzero(slices | (role == Role.INSTANT))
    kind = kinds(trace)[rows]
    features = {
        "slice": slices[rows],
        "untimed": trace.events.start[rows] == ABSENT,
        "python": slices[rows] & (kind == Kind.PYTHON),
        "span": slices[rows] & (kind == Kind.SPAN),
        "memory": is_memory(trace)[rows],
    }
    # One code for all features of an event, so that all are counted in one pass.
    code = (trace.events.thread[rows] * np.int64(len(Role)) + role[rows]) << len(features)
    for bit, which in enumerate(features.values()):
        code |= which.astype(np.int64) << bit
    size = (len(trace.threads) * len(Role)) << len(features)
    table = np.bincount(code, minlength=size).reshape(len(trace.threads), len(Role), -1)
    combination = np.arange(table.shape[2])
    counts = {name: table[:, :, combination >> bit & 1 == 1].sum(2) for bit, name in enumerate(features)}
    return {**counts, "instant": table.sum(2) - counts["slice"]}


def _places(trace: Trace) -> tuple[dict[int, int | None], dict[int, int | None]]:
    """Device and stream of each thread code that carries device work, annotations or waits."""
    rows = of_kind(trace, *DEVICE, Kind.DEVICE_ANNOTATION, Kind.SYNC)
    codes, first = np.unique(trace.events.thread[rows], return_index=True)
    rows = rows[first]
    device, stream = device_of(trace)[rows], stream_of(trace)[rows]

    def known(values: Int64) -> list[int | None]:
        return [None if value == ABSENT else value for value in values.tolist()]

    return (
        dict(zip(codes.tolist(), known(device), strict=True)),
        dict(zip(codes.tolist(), known(stream), strict=True)),
    )


def _stream_roles(trace: Trace) -> dict[int, str]:
    """What each stream spends most of its time with: "compute", "communication" or "copy"."""
    rows = of_kind(trace, *DEVICE)
    what = np.where(kinds(trace)[rows] == Kind.KERNEL, 0, 2)
    what[communication_kernels(trace)[rows]] = 1
    time = (ends(trace)[rows] - trace.events.start[rows]).astype(np.float64) + 1e-3  # empty ones count too
    key = trace.events.thread[rows].astype(np.int64) * 3 + what
    spent = np.bincount(key, time, minlength=3 * len(trace.threads)).reshape(-1, 3)
    most = spent.argmax(1).tolist()
    return {code: ("compute", "communication", "copy")[most[code]] for code in range(len(trace.threads))}


def _thread_roles(trace: Trace) -> tuple[int, set[int]]:
    """(code of the main thread, codes of the threads that run backward)."""
    operators = of_kind(trace, Kind.CPU_OP, Kind.ANNOTATION)
    threads = trace.events.thread[operators]
    if len(threads) == 0:
        return NO_CODE, set()
    steps = name_mask(trace.strings, is_step)[trace.events.name[operators]]
    chosen = threads[steps] if steps.any() else threads
    main = int(np.bincount(chosen).argmax())
    origin = trace.arg_int("Fwd thread id", operators)
    backward = set(np.unique(threads[(origin != ABSENT) & (origin != 0)]).tolist()) - {main}
    return main, backward
