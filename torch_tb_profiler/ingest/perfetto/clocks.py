"""Times of packets, whichever clock they count with, as time since the machine booted.

A packet names the clock of its time, or its sequence has named one for those that name none; else it counts
since the boot. Clocks 64 to 127 belong to the sequence that took a snapshot of them; all others are
everybody's. One that is incremental counts from the packet before it in the sequence, at first from the
snapshot. A snapshot reads several clocks at one moment, and so relates them to the boot. (Perfetto's
"Synchronization of multiple clock domains" and clock_snapshot.proto.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.distinct import distinct_rows
from torch_tb_profiler.ingest.perfetto.content import Columns, Content
from torch_tb_profiler.ingest.perfetto.sequences import SEQUENCE, cleared, since_turn
from torch_tb_profiler.ingest.perfetto.wire import fields
from torch_tb_profiler.model.trace import ABSENT, Bool, Int64

BOOT, REAL = 6, 1
"""Clocks that every recording service knows by number."""

MOST_SEQUENCES, MOST_CLOCKS, MOST_TURNS = 1 << 16, 8, 1 << 16
"""Sequences (a writer has one for each thread), clocks of one of them (their writer knows three), and packets of a
batch that tell of clocks: what is kept stays small whatever a file says."""

_TIME, _CLOCK, _SNAPSHOT, _DEFAULTS = 8, 58, 6, 59
_LATEST = 1 << 62
"""ns; times beyond it (146 years) are damage, and sums must not overflow."""


@dataclass
class _Clock:
    """`offset`: ns from this clock to the time since the boot, None where nothing relates the two.

    unit   ns of one of its steps
    since  ns that an incremental one has come to
    """

    offset: int | None
    unit: int = 1
    incremental: bool = False
    since: int = 0


_UNRELATED = _Clock(None)


@dataclass(frozen=True)
class _State:
    """What a sequence has said so far."""

    default: int = BOOT
    clocks: dict[int, _Clock] = field(default_factory=dict)


_FRESH = _State()


class Clocks:
    """Goes on over the batches of a file."""

    def __init__(self) -> None:
        self._states: dict[int, _State] = {}
        self._shared = {BOOT: _Clock(0)}

    def times(self, content: Content, packets: Columns, at: Int64, size: Int64) -> Int64:
        """int64[k]: ns since the boot; ABSENT where none is said or nothing relates its clock to the boot.

        A packet with a snapshot says what clocks showed and happens at no time.
        """
        raw, named = packets.numbers(_TIME), packets.numbers(_CLOCK)
        sequence, anew = np.maximum(packets.numbers(SEQUENCE), 0), cleared(packets)
        distinct, of = np.unique(sequence, return_inverse=True)
        of = of.ravel()
        states = [self._states.get(each, _FRESH) for each in distinct.tolist()]
        snaps = _has(packets, _SNAPSHOT)
        turns = np.flatnonzero((snaps | _has(packets, _DEFAULTS) | anew) & ~packets.damaged)
        packets.damaged[turns[MOST_TURNS:]] = True
        turns = turns[:MOST_TURNS]
        for turn in turns.tolist():
            begin = int(at[turn])
            packet, whose = content.content[begin : begin + int(size[turn])], int(sequence[turn])
            try:
                states.append(self._turn(whose, packet, bool(anew[turn])))
            except TraceError:
                packets.damaged[turn] = True
                states.append(self._states.get(whose, _FRESH))
        default = np.array([each.default for each in states], np.int64)
        if (default == BOOT).all() and ((named <= 0) | (named == BOOT)).all():
            return raw
        state = since_turn(of, turns, np.arange(len(turns)) + len(distinct), of)
        clock = np.where(named > 0, named, default[state])
        timed = np.flatnonzero((raw != ABSENT) & ~snaps)
        pairs, which = distinct_rows(state[timed], clock[timed])
        times = np.full(packets.count, ABSENT, np.int64)
        times[timed] = _resolved([self._clock(states[each].clocks, id) for each, id in pairs], which, raw[timed])
        return times

    def _clock(self, clocks: dict[int, _Clock], id: int) -> _Clock:
        return (clocks if _own(id) else self._shared).get(id, _UNRELATED)

    def _turn(self, sequence: int, packet: bytes, anew: bool) -> _State:
        """The state of a sequence from this packet on; if it begins `anew` it keeps its clocks alone."""
        known = self._states.get(sequence, _FRESH)
        default, clocks = BOOT if anew else known.default, known.clocks
        for number, value in fields(packet):
            if number == _DEFAULTS and isinstance(value, bytes):
                named = dict(fields(value)).get(_CLOCK)
                default = named if isinstance(named, int) and 0 < named < 1 << 32 else BOOT
            elif number == _SNAPSHOT and isinstance(value, bytes):
                shown = self._snapshot(value)
                older = [(id, clock) for id, clock in clocks.items() if id not in shown]
                clocks = dict([*shown.items(), *older][:MOST_CLOCKS])
        if sequence in self._states or len(self._states) < MOST_SEQUENCES:
            self._states[sequence] = _State(default, clocks)
        return _State(default, clocks)

    def _snapshot(self, content: bytes) -> dict[int, _Clock]:
        """The clocks of its sequence; those of everybody are kept here."""
        shown = readings(content)
        booted = None
        for id, (_, _, time) in shown.items():
            offset = self._clock({}, id).offset
            if offset is not None and (booted is None or id == BOOT):
                booted = time + offset
        own: dict[int, _Clock] = {}
        for id, (unit, incremental, time) in shown.items():
            related = booted is not None and max(time, booted) < _LATEST and 0 < unit < _LATEST
            clock = _Clock(booted - time if related and booted is not None else None, unit, incremental, time)
            if _own(id):
                own[id] = clock
            elif id != BOOT and (id in self._shared or len(self._shared) < MOST_SEQUENCES):
                self._shared[id] = clock
        return own


def readings(snapshot: bytes) -> dict[int, tuple[int, bool, int]]:
    """What a ClockSnapshot shows: clock -> (unit in ns, whether it is incremental, ns that it has come to)."""
    shown = {}
    for number, clock in fields(snapshot):
        if number == 1 and isinstance(clock, bytes):
            reading = dict(fields(clock))
            id, time, incremental, unit = (reading.get(each) for each in (1, 2, 3, 4))
            unit = unit if isinstance(unit, int) else 1
            if isinstance(id, int) and isinstance(time, int):
                shown[id] = unit, bool(incremental), time * unit
    return shown


def _own(id: int) -> bool:
    """Whether a clock belongs to the sequence that took a snapshot of it."""
    return 64 <= id < 128


def _has(packets: Columns, number: int) -> Bool:
    present = np.zeros(packets.count, np.bool_)
    present[packets.parts(number)[0]] = True
    return present


def _resolved(clocks: list[_Clock], which: Int64, raw: Int64) -> Int64:
    """int64[k]: ns since the boot of what `clocks[which]` show."""
    distinct = list({id(clock): clock for clock in clocks}.values())
    place = {id(clock): number for number, clock in enumerate(distinct)}
    which = np.array([place[id(clock)] for clock in clocks], np.int64)[which]
    unit = np.array([clock.unit if clock.offset is not None else 1 for clock in distinct], np.int64)[which]
    offset = np.array([clock.offset or 0 for clock in distinct], np.int64)[which]
    sound = np.array([clock.offset is not None for clock in distinct], np.bool_)[which]
    sound &= (raw >= 0) & (raw <= _LATEST // unit)
    time = np.where(sound, raw, 0) * unit
    counts = np.array([clock.incremental and clock.offset is not None for clock in distinct], np.bool_)
    rows = np.flatnonzero(counts[which])
    rows = rows[np.argsort(which[rows], kind="stable")]
    if len(rows):
        own = which[rows]
        first = np.searchsorted(own, own)
        since = np.array([min(clock.since, _LATEST) for clock in distinct], np.int64)[own]
        steps = time[rows]
        total = np.cumsum(steps)
        total = since + total - (total[first] - steps[first])
        # The same as floats: where whole numbers have run over, these have not.
        reach = np.cumsum(steps.astype(np.float64))
        reach = since + reach - (reach[first] - steps[first])
        sound[rows] &= reach < _LATEST
        time[rows] = np.where(reach < _LATEST, total, 0)
        for row in np.flatnonzero(np.append(own[1:] != own[:-1], True)).tolist():
            distinct[own[row]].since = int(total[row]) if reach[row] < _LATEST else _LATEST
    return np.where(sound, time + offset, ABSENT)
