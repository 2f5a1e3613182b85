"""Each rule of the clocks of packets by a file, and what a hostile one may write in place of numbers."""

from __future__ import annotations

import zlib

import pytest

from tests.ingest.perfetto.test_clocks import COMPLETE, clock, clock_snapshot, extra, sample, snapshot
from tests.ingest.rocprof.test_read import slices
from tests.support.producers.pftrace import field
from tests.support.producers.rocprof import BOOT
from tests.support.traces import read_bytes
from torch_tb_profiler.ingest.perfetto import clocks

VALUE = 7168.0
LOST = -1
HALF = 2**61
UNNUMBERED = field(1, field(8, BOOT + 7) + field(11, field(9, 4) + field(11, 99) + field(30, 7)))
"""A sample that names no sequence."""
RELATED = snapshot(8, clock(6, BOOT), clock(64, 0, steps=True), default=64)


def at(time: int, sequence: int = 8, clock_: int | None = None) -> bytes:
    named = b"" if clock_ is None else field(58, clock_)
    return sample(field(8, time) + named, sequence=sequence)


def pack_batch(*packets: bytes) -> bytes:
    """Return a batch of its own."""
    return field(1, field(50, zlib.compress(b"".join(packets))))


def clock_packet(sequence: int, content: bytes) -> bytes:
    """Return a packet that tells of clocks."""
    return field(1, field(10, sequence) + content)


@pytest.mark.parametrize(
    ("packets", "times"),
    [
        pytest.param(
            pack_batch(snapshot(8, clock(6, BOOT + 100), clock(1, 1000)), at(1010, clock_=1)),
            [110],
            id="time of day, alone",
        ),
        pytest.param(
            RELATED + snapshot(9, clock(6, BOOT + 100), clock(1, 1000)) + at(1010, clock_=1) + at(1),
            [1, 110],
            id="time of day beside a default",
        ),
        pytest.param(
            snapshot(8, clock(6, BOOT + 100), clock(1, 1000), default=1) + at(1010),
            [110],
            id="time of day by default",
        ),
        pytest.param(RELATED + at(5) + at(0) + at(1), [5, 6], id="a step of nothing is one"),
        pytest.param(
            snapshot(1, clock(6, BOOT), clock(64, 0), default=64) + UNNUMBERED + at(5, 1),
            [5, 7],
            id="no sequence is not the first one",
        ),
        pytest.param(
            snapshot(0, clock(6, BOOT), default=3) + UNNUMBERED, [LOST], id="but the one without a number"
        ),
        pytest.param(RELATED + at(5, clock_=0), [5], id="no clock has the number 0"),
        pytest.param(
            snapshot(8, clock(6, BOOT), default=0) + at(BOOT + 5) + RELATED + at(3), [3, 5], id="nor a default"
        ),
        pytest.param(
            snapshot(8, clock(6, BOOT + 10, steps=True, unit=1), clock(64, 0, steps=True), default=64)
            + at(BOOT + 50, clock_=6)
            + at(BOOT + 60, clock_=6),
            [50, 60],
            id="the boot is no clock that goes by steps",
        ),
        pytest.param(
            RELATED + clock_packet(8, field(8, 40) + field(6, clock_snapshot(clock(3, 1)))) + at(2),
            [2],
            id="a snapshot happens at no time",
        ),
        pytest.param(
            snapshot(8, clock(6, BOOT + 100), clock(3, 1000))
            + snapshot(9, clock(3, 1050), clock(6, BOOT + 200), clock(64, 0), default=64)
            + at(1, 9),
            [201],
            id="the boot itself rather than a clock related to it before",
        ),
        pytest.param(
            snapshot(8, clock(6, BOOT + 100), clock(3, 1000))
            + snapshot(9, clock(6, BOOT + 200), clock(3, 1050), clock(64, 0), default=64)
            + at(1, 9),
            [201],
            id="in any order",
        ),
        pytest.param(
            snapshot(8, clock(6, BOOT), clock(63, 10), clock(128, 20)) + at(11, 9, 63) + at(22, 9, 128),
            [1, 2],
            id="63 and 128 are everybody's",
        ),
        pytest.param(
            snapshot(8, clock(6, BOOT), clock(64, 10), clock(127, 20))
            + at(11, 9, 64)
            + at(22, 9, 127)
            + at(33, 8, 127),
            [13, LOST, LOST],
            id="64 and 127 are of a sequence",
        ),
        pytest.param(
            clock_packet(
                8,
                field(6, clock_snapshot(clock(6, BOOT)) + field(7, clock(6, BOOT + 100)) + field(1, clock(64, 0))),
            )
            + at(1, clock_=64),
            [1],
            id="only clocks of a snapshot count",
        ),
        pytest.param(
            RELATED
            + clock_packet(
                8, field(59, field(58, 64)) + field(60, clock_snapshot(clock(6, BOOT + 100), clock(64, 0)))
            )
            + at(1),
            [1],
            id="only snapshots hold clocks",
        ),
    ],
)
def test_each_clock_rule_holds(packets: bytes, times: list[int]) -> None:
    expected = [(float(time), VALUE) for time in times if time != LOST]
    lost = times.count(LOST)
    assert extra(packets) == expected + ([(LOST, float(lost))] if lost else [])


@pytest.mark.parametrize(
    ("packets", "times"),
    [
        pytest.param(
            RELATED + clock_packet(8, field(13, 1) + field(59, 5)) + at(1, clock_=64),
            [1],
            id="number for defaults",
        ),
        pytest.param(
            RELATED + clock_packet(8, field(59, field(58, 64)) + field(6, 5)) + at(1), [1], id="for a snapshot"
        ),
        pytest.param(RELATED + clock_packet(8, field(6, field(1, 5))) + at(1), [1], id="for a clock"),
        pytest.param(
            RELATED + clock_packet(8, field(59, field(58, "x"))) + at(BOOT + 1), [1], id="text for a clock"
        ),
        pytest.param(
            RELATED + clock_packet(8, field(59, field(58, 2**63 + 9))) + at(BOOT + 1), [1], id="no such clock"
        ),
        pytest.param(
            RELATED + clock_packet(8, field(6, clock_snapshot(field(1, "x") + field(2, 5)))) + at(1),
            [1],
            id="text for an id",
        ),
        pytest.param(
            RELATED + clock_packet(8, field(6, clock_snapshot(field(1, 64) + field(2, "x")))) + at(1),
            [1],
            id="text for a time",
        ),
        pytest.param(
            snapshot(8, clock(6, BOOT), clock(65, 5, unit=1000)) + at(HALF, clock_=65) + at(6, clock_=65),
            [1000, LOST],
            id="a time that its unit takes beyond all measure",
        ),
        pytest.param(
            snapshot(8, clock(6, 2**63 + 5), clock(65, 5)) + at(6, clock_=65), [LOST], id="boot beyond it"
        ),
        pytest.param(
            snapshot(8, clock(6, BOOT), clock(65, 2**63 + 5)) + at(6, clock_=65), [LOST], id="clock beyond it"
        ),
        pytest.param(RELATED + at(HALF) + at(HALF), [HALF, LOST], id="steps that add up to it"),
        pytest.param(
            pack_batch(RELATED, *[at(2 * HALF - 1)] * 4) + at(10),
            [LOST] * 5,
            id="steps that have added up to it before",
        ),
        pytest.param(
            RELATED
            + snapshot(9, clock(6, BOOT), clock(64, 0, steps=True), default=64)
            + at(HALF)
            + at(HALF - 1, 9)
            + at(2, 9),
            [HALF - 1, HALF, HALF + 1],
            id="steps of two that do not",
        ),
    ],
)
def test_values_that_no_writer_writes_are_skipped(packets: bytes, times: list[int]) -> None:
    lost = times.count(LOST)
    found = extra(packets)
    assert [each for each in found if each[0] == LOST] == ([(LOST, float(lost))] if lost else [])
    assert [time for time, _ in found if time != LOST] == sorted({*times} - {LOST})
    assert slices(read_bytes(COMPLETE + packets)) == slices(read_bytes(COMPLETE))


def test_a_damaged_snapshot_is_noted() -> None:
    (note,) = read_bytes(COMPLETE + clock_packet(8, field(6, b"\x0a\x7f\x01"))).health
    assert (note.kind, note.count) == ("skipped_event", 1)


def test_only_the_first_sequences_and_clocks_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "MAX_SEQUENCES", 3)
    # The sequence of the file itself is one of three.
    first = [snapshot(100 + n, clock(6, BOOT), clock(64, 0, steps=True), default=64) for n in range(9)]
    again = snapshot(101, clock(6, BOOT + 50), clock(64, 0, steps=True), default=64)
    samples = [at(1 + n, 100 + n, 64) for n in range(9)]
    assert extra(pack_batch(*first) + pack_batch(again) + b"".join(samples)) == [
        (1, VALUE),
        (52, VALUE),
        (LOST, 7),
    ]
    # The boot is one of three clocks of everybody.
    everybody = snapshot(8, clock(6, BOOT), *(clock(200 + n, 0) for n in range(9)))
    later = snapshot(8, clock(6, BOOT + 50), clock(201, 0))
    samples = [at(1 + n, 8, 200 + n) for n in range(9)]
    assert extra(everybody + pack_batch(later) + b"".join(samples)) == [(1, VALUE), (52, VALUE), (LOST, 7)]
