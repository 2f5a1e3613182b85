"""Counters of a `.pftrace`, whose times are those of packets: equal to what the other formats record."""

from __future__ import annotations

import random
import zlib
from dataclasses import replace

import numpy as np
import pytest

from tests.ingest.rocprof.test_counters import content
from tests.ingest.rocprof.test_read import slices
from tests.ingest.test_mutations import BYTES, mangle, survives
from tests.support.producers.pftrace import PacketClock, counter_tracks, field, rocprof_pftrace
from tests.support.producers.rocprof import BOOT, RocprofCopy, RocprofRun, draw_training
from tests.support.traces import read_bytes
from tests.support.views import ask
from torch_tb_profiler.analyses.timeline.counters import all_series
from torch_tb_profiler.ingest.perfetto import clocks
from torch_tb_profiler.model.counters.dispatches import COUNTER_PREFIX
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.trace import Trace

COPIES, WAVES, FETCHED = "COPY BYTES to Agent [1] (GPU)", "Agent [1] PMC SQ_WAVES", "Agent [1] PMC FETCH_SIZE"


def draw_counted() -> RocprofRun:
    """Draw copies that overlap, one of them back to the host; each kernel has a counter of its own."""
    run = draw_training(3)
    run.dispatches = [
        replace(each, counters={("SQ_WAVES", "FETCH_SIZE")[each.kernel]: 1000.0 + number})
        for number, each in enumerate(run.dispatches)
    ]
    first = run.copies[0]
    run.copies += [
        RocprofCopy(True, first.start + 50_000, first.end + 50_000, first.correlation, 1, size=3 << 20),
        RocprofCopy(False, first.start + 500_000, first.end + 500_000, first.correlation, 1, size=5 << 20),
    ]
    return run


RUN = draw_counted()


def read(trace: Trace) -> dict[str, list[tuple[int, float]]]:
    """Return the samples of each counter, ns since BOOT."""
    first = trace.trace_start_ns - BOOT
    return {
        each.name: [
            (time + first, value) for time, value in zip(each.times.tolist(), each.values.tolist(), strict=True)
        ]
        for each in all_series(trace)
        if not each.role
    }


def expected_counters(unit: int = 1) -> dict[str, list[tuple[int, float]]]:
    """Return what the tool samples: KiB under way, and the counters of the dispatch that runs."""
    return {
        name: [
            (time // unit * unit, value * (1024.0 if name.startswith("COPY") else 1.0)) for time, value in samples
        ]
        for name, samples in counter_tracks(RUN).items()
    }


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["steps", "absolute"])
def test_samples_have_their_times_and_values(kind: str, packed: bool) -> None:
    trace = read_bytes(rocprof_pftrace(RUN, clock=PacketClock(kind), packed=packed))
    assert read(trace) == expected_counters()
    assert trace.health == ()
    timeline = ask(trace, "trace")
    clock_snapshot = {
        row["name"]: row["samples"] for row in timeline["tracks"] if row["kind"] == "counter" and not row["role"]
    }
    assert clock_snapshot == {name: len(samples) for name, samples in expected_counters().items()}


def test_a_microsecond_clock_is_exact_to_a_microsecond() -> None:
    """All else in the file is to the ns, since records carry their own times."""
    trace = read_bytes(rocprof_pftrace(RUN, clock=PacketClock("steps", 1000)))
    assert slices(trace) == slices(read_bytes(rocprof_pftrace(RUN)))
    # Of samples that the clock cannot tell apart the last one counts.
    assert read(trace) == {name: [*dict(samples).items()] for name, samples in expected_counters(1000).items()}
    assert read(trace) != expected_counters()


@pytest.mark.parametrize("format_", ["json", "rocpd 3", "rocpd 4"])
def test_counters_equal_those_of_the_other_formats(format_: str) -> None:
    """There they are arguments: the bytes of copies, and what was counted of a kernel from its start on."""
    other, actual = read_bytes(content(RUN, format_)), read(read_bytes(rocprof_pftrace(RUN)))
    begin = other.events.start + other.trace_start_ns - BOOT
    kernels = rows_of_kind(other, Kind.KERNEL)
    for name, track in (("SQ_WAVES", WAVES), ("FETCH_SIZE", FETCHED)):
        counted_ = other.arg_float(COUNTER_PREFIX + name, kernels)
        begins = begin[kernels].tolist()
        reported = {
            position: value for position, value in zip(begins, counted_.tolist(), strict=True) if value == value
        }
        assert len(reported) == 3 and reported.items() <= dict(actual[track]).items()
    copies = rows_of_kind(other, Kind.MEMCPY)
    names = [other.strings[code] for code in other.events.name[copies].tolist()]
    size, end = other.arg_int("bytes", copies), begin[copies] + other.events.duration[copies]
    inbound = np.array(["HtoD" in name for name in names])
    for time, value in actual[COPIES]:
        under_way = inbound & (begin[copies] <= time) & (time <= end)
        assert value == size[under_way].sum()
    assert max(value for _, value in actual[COPIES]) == 4 << 20


def test_counters_before_the_first_record_do_not_move_steps() -> None:
    run = RocprofRun(copies=[RocprofCopy(True, 10_000, 20_000, 1, 0)], dispatches=RUN.dispatches[:1])
    with_counters = read_bytes(rocprof_pftrace(run))
    without = read_bytes(content(draw_uncounted(run), "json"))
    actual, theirs = ask(with_counters, "overview"), ask(without, "overview")
    assert with_counters.trace_start_ns == without.trace_start_ns - 5_000
    for step in actual["steps"]:
        step["start_ns"] -= 5_000
    for key in ("steps", "average", "headline"):
        assert actual[key] == theirs[key]


def draw_uncounted(run: RocprofRun) -> RocprofRun:
    return RocprofRun(copies=run.copies, dispatches=[replace(each, counters={}) for each in run.dispatches])


def sample(time: bytes, value: int = 7, track: int = 99, sequence: int = 7) -> bytes:
    return field(1, time + field(10, sequence) + field(11, field(9, 4) + field(11, track) + field(30, value)))


def clock_snapshot(*clocks_: bytes) -> bytes:
    return b"".join(field(1, clock) for clock in clocks_)


def clock(id: int, time: int, *, steps: bool = False, unit: int = 1) -> bytes:
    return field(1, id) + field(2, time) + field(3, int(steps)) + field(4, unit)


def snapshot(sequence: int, *clocks_: bytes, default: int | None = None, anew: bool = False) -> bytes:
    more = field(59, field(58, default)) if default is not None else b""
    return field(
        1, field(10, sequence) + field(6, clock_snapshot(*clocks_)) + more + (field(13, 1) if anew else b"")
    )


COMPLETE = rocprof_pftrace(draw_training(1))
"""Its copies are track 99."""


def extra(content_: bytes) -> list[tuple[int, float]]:
    """Return the samples besides those of COMPLETE; the number of unread ones is last, as (-1, number)."""
    trace = read_bytes(COMPLETE + content_)
    before = read(read_bytes(COMPLETE))[COPIES]
    lost = sum(note.count for note in trace.health if note.kind == "counters_not_read")
    return [each for each in read(trace)[COPIES] if each not in before] + ([(-1, float(lost))] if lost else [])


NOW = BOOT + 500_000


@pytest.mark.parametrize(
    ("packets", "expected"),
    [
        # No clock: since the boot. The sequence 8 has said nothing.
        (sample(field(8, NOW), sequence=8), [(500_000, 7168.0)]),
        # The clock of everybody; its own sequence's default does not count.
        (sample(field(8, NOW) + field(58, 6)), [(500_000, 7168.0)]),
        # A clock of another sequence is not known in this one, nor one that no snapshot shows.
        (sample(field(8, 5) + field(58, 65), sequence=8), [(-1, 1.0)]),
        (sample(field(8, 5) + field(58, 3)), [(-1, 1.0)]),
        # The same number means another clock in each sequence; steps count from the packet before in the sequence.
        (
            snapshot(8, clock(6, BOOT), clock(64, 1000, steps=True), default=64)
            + snapshot(9, clock(6, BOOT + 300_000), clock(64, 5, steps=True, unit=1000), default=64)
            + sample(field(8, 10), sequence=8)
            + sample(field(8, 2), sequence=9)
            + sample(field(8, 10), sequence=8)
            + sample(field(8, 2), sequence=9),
            [(10, 7168.0), (20, 7168.0), (302_000, 7168.0), (304_000, 7168.0)],
        ),
        # A new snapshot begins anew; a packet between them that is no sample moves the clock, too.
        (
            snapshot(8, clock(6, BOOT), clock(64, 0, steps=True), default=64)
            + field(1, field(8, 40) + field(10, 8) + field(11, field(9, 3)))
            + sample(field(8, 2), sequence=8)
            + snapshot(8, clock(6, BOOT + 200), clock(64, 0, steps=True))
            + sample(field(8, 2), sequence=8),
            [(42, 7168.0), (202, 7168.0)],
        ),
        # A sequence that begins anew has no default until it says one.
        (
            snapshot(8, clock(6, BOOT), clock(64, 0, steps=True), default=64)
            + field(1, field(10, 8) + field(13, 1))
            + sample(field(8, NOW), sequence=8)
            + sample(field(8, 3) + field(58, 64), sequence=8),
            [(3, 7168.0), (500_000, 7168.0)],
        ),
        # Related by way of another clock of everybody.
        (
            snapshot(8, clock(6, BOOT + 100), clock(3, 1_000))
            + snapshot(9, clock(3, 1_050), clock(66, 0, unit=10))
            + sample(field(8, 4) + field(58, 66), sequence=9)
            + sample(field(8, 1_070) + field(58, 3), sequence=9),
            [(170, 7168.0), (190, 7168.0)],
        ),
        # A snapshot of clocks that nothing relates to the boot.
        (
            snapshot(8, clock(3, 1_000), clock(64, 0, steps=True), default=64) + sample(field(8, 1), sequence=8),
            [(-1, 1.0)],
        ),
        # Times, units and sums beyond all measure are no times; the rest stays.
        (
            snapshot(8, clock(6, BOOT), clock(64, 0, steps=True), default=64)
            + sample(field(8, 9), sequence=8)
            + sample(field(8, 2**62 - 1), sequence=8) * 3
            + sample(field(8, 2**63 + 5), sequence=8),
            [(9, 7168.0), (-1, 4.0)],
        ),
        (
            snapshot(8, clock(6, BOOT), clock(64, 2**60, steps=True, unit=2**63), default=64)
            + snapshot(9, clock(6, BOOT), clock(65, 0, unit=0), default=65)
            + sample(field(8, 1), sequence=8)
            + sample(field(8, 1), sequence=9),
            [(-1, 2.0)],
        ),
        # No track, no value, no time.
        (
            sample(field(8, NOW) + field(58, 6), track=5)
            + sample(b"")
            + field(1, field(8, NOW) + field(58, 6) + field(11, field(9, 4) + field(11, 99))),
            [(-1, 3.0)],
        ),
    ],
)
def test_times_follow_their_clock(packets: bytes, expected: list[tuple[int, float]]) -> None:
    found = extra(packets)
    assert found == expected
    # Compressed packets and those behind them are batches of their own: clocks go on from one to the other.
    if (-1, 4.0) not in expected:
        begins = [
            position for position in range(len(packets)) if packets[position:] and is_packet(packets, position)
        ]
        for cut in begins:
            inner = packets[:cut] and field(1, field(50, zlib.compress(packets[:cut])))
            assert extra(inner + packets[cut:]) == expected


def is_packet(content_: bytes, position: int) -> bool:
    """Return whether a packet of `content_` begins at `at`."""
    place = 0
    while place < position:
        size = content_[place + 1]
        place += 2 + size
    return place == position


def test_memory_of_clocks_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequences, clocks and snapshots without end: what comes first is read, the rest said."""
    monkeypatch.setattr(clocks, "MAX_SEQUENCES", 3)
    many = b"".join(
        snapshot(100 + n, clock(6, BOOT), clock(64, 0, steps=True), default=64) for n in range(9)
    ) + b"".join(sample(field(8, 1 + n) + field(58, 64), sequence=100 + n) for n in range(9))
    # In the batch of its snapshot a clock is known whatever is kept.
    assert len(extra(many)) == 9
    monkeypatch.setattr(clocks, "MAX_CLOCK_PACKETS", 2)
    trace = read_bytes(COMPLETE + many)
    assert {note.kind for note in trace.health} == {"skipped_event", "counters_not_read"}
    assert slices(trace) == slices(read_bytes(COMPLETE))


@pytest.mark.slow
def test_no_damage_to_clocks_crashes(long: bool) -> None:
    complete = rocprof_pftrace(RUN)[:900] + rocprof_pftrace(RUN)[-4000:]
    chance = random.Random("clocks")
    for _ in range(1000 if long else 60):
        survives(mangle(complete, BYTES, chance))
