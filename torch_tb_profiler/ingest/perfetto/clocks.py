"""Convert times of packets, of any clock, to time since the machine booted.

A packet names the clock of its time, or its sequence has set a default; otherwise it counts from the boot. Clocks
64 to 127 belong to the sequence that took a snapshot of them; all others are shared. An incremental clock counts
from the previous packet of the sequence, at first from the snapshot. A snapshot reads several clocks at one moment
and so relates them to the boot. (Perfetto's "Synchronization of multiple clock domains" and clock_snapshot.proto.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.kineto.codes import distinct_rows
from torch_tb_profiler.ingest.perfetto.interned import SEQUENCE, clears_state, forward_fill
from torch_tb_profiler.ingest.perfetto.protobuf import MessageBuffer, MessageFields, parse_fields
from torch_tb_profiler.model.trace import ABSENT, Int64

BOOT, REAL = 6, 1
"""Numbers of the built-in clocks since boot and since the epoch."""

MAX_SEQUENCES, MAX_CLOCKS, MAX_CLOCK_PACKETS = 1 << 16, 8, 1 << 16
"""Limits that bound memory: sequences (one for each writing thread), clocks of a sequence (writers use three), and
packets of a batch that define clocks."""

_TIME, _CLOCK, SNAPSHOT, _DEFAULTS = 8, 58, 6, 59
"""Fields of a packet; in its defaults, the clock has the same number."""

_MAX_TIME_NS = 1 << 62
"""Largest valid time in ns (146 years); later ones are damage, and sums must not overflow."""


@dataclass
class _BootClock:
    """A clock and its relation to the time since boot.

    offset  ns to add to get the time since boot, None if unknown
    unit    ns per tick
    since   ns that an incremental clock has reached
    """

    offset: int | None
    unit: int = 1
    incremental: bool = False
    since: int = 0


_UNKNOWN_CLOCK = _BootClock(None)


@dataclass(frozen=True)
class _SequenceClocks:
    """The clocks that a sequence has defined so far."""

    default: int = BOOT
    clocks: dict[int, _BootClock] = field(default_factory=dict)


_INITIAL_STATE = _SequenceClocks()


class PacketClocks:
    """Converts the times of packets; keeps its state over the batches of a file."""

    def __init__(self) -> None:
        self._states: dict[int, _SequenceClocks] = {}
        self._shared = {BOOT: _BootClock(0)}

    def times(self, content: MessageBuffer, packets: MessageFields, at: Int64, size: Int64) -> Int64:
        """Return int64[k]: ns since boot, ABSENT where no time is given or its clock has no relation to the boot.

        A packet with a snapshot defines clocks and has no time itself.
        """
        raw, named = packets.numbers(_TIME), packets.numbers(_CLOCK)
        sequence, cleared = np.maximum(packets.numbers(SEQUENCE), 0), clears_state(packets)
        distinct, of = np.unique(sequence, return_inverse=True)
        of = of.ravel()
        states = [self._states.get(each, _INITIAL_STATE) for each in distinct.tolist()]
        has_snapshot = packets.has_part(SNAPSHOT)
        changes = np.flatnonzero((has_snapshot | packets.has_part(_DEFAULTS) | cleared) & ~packets.damaged)
        packets.damaged[changes[MAX_CLOCK_PACKETS:]] = True
        changes = changes[:MAX_CLOCK_PACKETS]
        for change in changes.tolist():
            begin = int(at[change])
            packet, owner = content.content[begin : begin + int(size[change])], int(sequence[change])
            try:
                states.append(self._apply_packet(owner, packet, bool(cleared[change])))
            except TraceError:
                packets.damaged[change] = True
                states.append(self._states.get(owner, _INITIAL_STATE))
        default = np.array([each.default for each in states], np.int64)
        if (default == BOOT).all() and ((named <= 0) | (named == BOOT)).all():
            return raw
        state = forward_fill(of, changes, np.arange(len(changes)) + len(distinct), of)
        clock = np.where(named > 0, named, default[state])
        timed = np.flatnonzero((raw != ABSENT) & ~has_snapshot)
        pairs, which = distinct_rows(state[timed], clock[timed])
        times = np.full(packets.count, ABSENT, np.int64)
        times[timed] = _resolve_times(
            [self._clock(states[each].clocks, id) for each, id in pairs], which, raw[timed]
        )
        return times

    def _clock(self, clocks: dict[int, _BootClock], id: int) -> _BootClock:
        """Return a clock of a sequence with these `clocks`, or a shared one."""
        return (clocks if _is_sequence_clock(id) else self._shared).get(id, _UNKNOWN_CLOCK)

    def _apply_packet(self, sequence: int, packet: bytes, cleared: bool) -> _SequenceClocks:
        """Return the state of a sequence from this packet on; a `cleared` one keeps only its clocks."""
        known = self._states.get(sequence, _INITIAL_STATE)
        default, clocks = BOOT if cleared else known.default, known.clocks
        for number, value in parse_fields(packet):
            if number == _DEFAULTS and isinstance(value, bytes):
                named = dict(parse_fields(value)).get(_CLOCK)
                default = named if isinstance(named, int) and 0 < named < 1 << 32 else BOOT
            elif number == SNAPSHOT and isinstance(value, bytes):
                readings = self._apply_snapshot(value)
                older = [(id, clock) for id, clock in clocks.items() if id not in readings]
                clocks = dict([*readings.items(), *older][:MAX_CLOCKS])
        if sequence in self._states or len(self._states) < MAX_SEQUENCES:
            self._states[sequence] = _SequenceClocks(default, clocks)
        return _SequenceClocks(default, clocks)

    def _apply_snapshot(self, content: bytes) -> dict[int, _BootClock]:
        """Return the clocks of the snapshot's sequence and store the shared ones."""
        readings = parse_snapshot(content)
        booted = None
        for id, (_, _, time) in readings.items():
            offset = self._clock({}, id).offset
            if offset is not None and (booted is None or id == BOOT):
                booted = time + offset
        own: dict[int, _BootClock] = {}
        for id, (unit, incremental, time) in readings.items():
            related = booted is not None and max(time, booted) < _MAX_TIME_NS and 0 < unit < _MAX_TIME_NS
            clock = _BootClock(booted - time if related and booted is not None else None, unit, incremental, time)
            if _is_sequence_clock(id):
                own[id] = clock
            elif id != BOOT and (id in self._shared or len(self._shared) < MAX_SEQUENCES):
                self._shared[id] = clock
        return own


def parse_snapshot(snapshot: bytes) -> dict[int, tuple[int, bool, int]]:
    """Return the readings of a ClockSnapshot: clock -> (ns per tick, whether it is incremental, time in ns)."""
    readings = {}
    for number, clock in parse_fields(snapshot):
        if number == 1 and isinstance(clock, bytes):
            reading = dict(parse_fields(clock))
            id, time, incremental, unit = (reading.get(each) for each in (1, 2, 3, 4))
            unit = unit if isinstance(unit, int) else 1
            if isinstance(id, int) and isinstance(time, int):
                readings[id] = unit, bool(incremental), time * unit
    return readings


def _is_sequence_clock(id: int) -> bool:
    """Return whether a clock belongs to the sequence that took a snapshot of it."""
    return 64 <= id < 128


def _resolve_times(clocks: list[_BootClock], which: Int64, raw: Int64) -> Int64:
    """Return int64[k]: the readings `raw` of `clocks[which]`, in ns since boot."""
    distinct = list({id(clock): clock for clock in clocks}.values())
    place = {id(clock): number for number, clock in enumerate(distinct)}
    which = np.array([place[id(clock)] for clock in clocks], np.int64)[which]
    unit = np.array([clock.unit if clock.offset is not None else 1 for clock in distinct], np.int64)[which]
    offset = np.array([clock.offset or 0 for clock in distinct], np.int64)[which]
    sound = np.array([clock.offset is not None for clock in distinct], np.bool_)[which]
    sound &= (raw >= 0) & (raw <= _MAX_TIME_NS // unit)
    time = np.where(sound, raw, 0) * unit
    counts = np.array([clock.incremental and clock.offset is not None for clock in distinct], np.bool_)
    rows = np.flatnonzero(counts[which])
    rows = rows[np.argsort(which[rows], kind="stable")]
    if len(rows):
        own = which[rows]
        first = np.searchsorted(own, own)
        since = np.array([min(clock.since, _MAX_TIME_NS) for clock in distinct], np.int64)[own]
        steps = time[rows]
        total = np.cumsum(steps)
        total = since + total - (total[first] - steps[first])
        # The same sum in floats doesn't overflow where the integers do.
        reach = np.cumsum(steps.astype(np.float64))
        reach = since + reach - (reach[first] - steps[first])
        sound[rows] &= reach < _MAX_TIME_NS
        time[rows] = np.where(reach < _MAX_TIME_NS, total, 0)
        for row in np.flatnonzero(np.append(own[1:] != own[:-1], True)).tolist():
            distinct[own[row]].since = int(total[row]) if reach[row] < _MAX_TIME_NS else _MAX_TIME_NS
    return np.where(sound, time + offset, ABSENT)
