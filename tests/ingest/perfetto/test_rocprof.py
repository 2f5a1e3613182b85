"""rocprofv3's `.pftrace`: equal to its other formats where it holds what they hold, and unbroken by damage."""

from __future__ import annotations

import gzip
import io
import random
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.ingest.rocprof.test_read import expected_slices, slices
from tests.ingest.test_mutations import BYTES, mangle, survives
from tests.support.producers.pftrace import field, rocprof_pftrace
from tests.support.producers.rocprof import BOOT, GPU_INDEX, KERNELS, PID, chrome, draw_training, rocprof_json
from tests.support.traces import read_bytes
from tests.support.views import ask
from torch_tb_profiler.base.errors import TooLargeError, TraceError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.ingest import Progress, read_trace
from torch_tb_profiler.ingest.perfetto import packets
from torch_tb_profiler.ingest.perfetto import protobuf as wire
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.session import Root, Session
from torch_tb_profiler.views._shared.availability import memory_reason as unavailable

RUN = draw_training(3)
CONTENT = rocprof_pftrace(RUN)
COMPLETE = read_bytes(CONTENT)


def kinds(trace: Trace) -> set[str]:
    return {note.kind for note in trace.health}


def without_grids(counts: Any) -> dict[tuple[Any, ...], int]:
    return {(*key[:6], key[7]): count for key, count in counts.items()}


@pytest.mark.parametrize("content", [CONTENT, rocprof_pftrace(RUN, packed=True), gzip.compress(CONTENT)])
def test_parsed_slices_are_the_recorded_ones(content: bytes) -> None:
    trace = read_bytes(content)
    assert without_grids(slices(trace)) == without_grids(expected_slices(RUN))
    assert (trace.producer, trace.clock, kinds(trace)) == ("rocprofv3", "boot", set())
    assert steps(trace).names == ("0", "1", "2")
    assert (device_launches(trace)[1] >= 0).all()


def test_the_overview_equals_that_of_the_other_formats_and_of_pytorch() -> None:
    actual = ask(COMPLETE, "overview")
    for other in (chrome(RUN), rocprof_json(RUN)):
        theirs = ask(read_bytes(other), "overview")
        for key in ("steps", "average", "headline", "trace_start_ns"):
            assert actual.get(key) == theirs.get(key)


def test_kernels_equal_the_recorded_ones() -> None:
    rows = {row["name"]: row for row in ask(COMPLETE, "kernels")["rows"]}
    for number, name in enumerate(KERNELS):
        own = [each.end - each.start for each in RUN.dispatches if each.kernel == number]
        assert (rows[name]["calls"], rows[name]["total_ns"]) == (len(own), sum(own))
    assert {thread.label for thread in COMPLETE.threads} >= {f"{PID}/{PID}", f"{GPU_INDEX}/0", f"{GPU_INDEX}/1"}


@pytest.mark.parametrize("content", [CONTENT, rocprof_json(RUN)])
def test_memory_does_not_suggest_an_option_that_the_tool_lacks(content: bytes) -> None:
    trace = read_bytes(content)
    messages = "rocprofv3 records calls of the driver and work of the devices, not what PyTorch does"
    assert unavailable(trace) == f"no memory events were recorded ({messages})"
    assert "profile_memory" not in str(ask(trace, "trace"))
    assert "profile(profile_memory=True)" in str(unavailable(read_bytes(chrome(RUN))))


def test_a_folder_lists_the_trace_once(tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host/7_results.pftrace").write_bytes(CONTENT)
    (tmp_path / "host/8_results.pftrace").write_bytes(CONTENT)
    (tmp_path / "host/8_results.json").write_bytes(rocprof_json(RUN))
    with Session([Root(str(tmp_path))], Settings(cache_bytes=0)) as session:
        catalog = session.scan()
    assert [[span.file.name for span in each.spans] for run in catalog.runs for each in run.workers] == [
        ["7_results.pftrace"],
        ["8_results.json"],
    ]
    assert catalog.others == ()


def test_a_clock_snapshot_gives_the_time_of_day() -> None:
    """The machine booted `BOOT` ns before; without the wall's clock in the snapshot that is not known."""
    wall = 1_790_000_000_000_000_000
    clocks = field(1, field(1, 6) + field(2, BOOT)) + field(1, field(1, 1) + field(2, wall))
    trace = read_bytes(field(1, field(8, BOOT) + field(6, clocks)) + CONTENT)
    assert (trace.clock, trace.wall_start_ns) == ("epoch", wall)
    assert slices(trace) == slices(COMPLETE)
    assert (COMPLETE.clock, COMPLETE.wall_start_ns) == ("boot", None)


@pytest.mark.slow
def test_a_large_trace_is_read_in_chunks_with_progress() -> None:
    run = draw_training(2000)
    content = rocprof_pftrace(run)
    assert len(content) > 2 << 20
    seen: list[Progress] = []
    trace = read_trace(io.BytesIO(content), size=len(content), report=seen.append)
    assert without_grids(slices(trace)) == without_grids(expected_slices(run))
    done = [each.bytes_done for each in seen if each.stage == "reading"]
    assert len(done) > 2 and done == sorted(done)


def test_a_bomb_of_compressed_packets_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packets, "MAX_PACKET_BYTES", 1 << 20)
    bomb = field(1, field(50, zlib.compress(bytes(2 << 20))))
    trace = read_bytes(CONTENT + bomb)
    assert len(trace) == len(COMPLETE)
    assert "skipped_event" in kinds(trace)


def test_a_bomb_of_many_compressed_packets_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packets, "MAX_INFLATED_BYTES", 100_000)
    inner = zlib.compress(field(1, field(8, 1)) * 10_000)
    trace = read_bytes(CONTENT + field(1, field(50, inner)) * 20)
    assert len(trace) == len(COMPLETE)
    assert "skipped_event" in kinds(trace)


def test_a_message_nested_a_million_times_is_skipped() -> None:
    deep = b""
    for _ in range(2000):
        deep = field(12, deep)
    trace = read_bytes(CONTENT + field(1, field(10, 7) + field(11, field(9, 1) + field(4, deep))))
    assert len(trace) == len(COMPLETE)


def test_a_packet_without_an_end_ends_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packets, "MAX_PACKET_BYTES", 1 << 20)
    endless = CONTENT + b"\x0a" + b"\xff\xff\xff\xff\x7f" + bytes(4 << 20)
    trace = read_bytes(endless)
    assert len(trace) == len(COMPLETE)
    assert "endless_packet" in kinds(trace)


def test_a_truncated_trace_keeps_the_packets_before_the_cut() -> None:
    counts = []
    for cut in range(2000, len(CONTENT), 307):
        trace = read_bytes(CONTENT[:cut])
        counts.append(len(trace))
        assert len(trace) == len(COMPLETE) or "truncated" in kinds(trace)
    assert counts == sorted(counts) and len(set(counts)) > 3


def test_a_trace_beyond_the_limit_is_refused() -> None:
    with pytest.raises(TooLargeError):
        read_trace(io.BytesIO(CONTENT), size=len(CONTENT), limit=1000)


@pytest.mark.parametrize("number", [b"\x80" * 11, b"\xff" * 20, b"\x80"])
def test_an_endless_number_is_damage(number: bytes) -> None:
    with pytest.raises(TraceError, match="damaged"):
        wire.read_varint(number, 0)


def test_numbers_of_64_bits_are_read_exactly() -> None:
    assert wire.parse_fields(field(3, 2**64 - 1)) == [(3, 2**64 - 1)]
    assert wire.to_signed(2**64 - 1) == -1
    assert np.int64(wire.to_signed(2**63 - 1)) == 2**63 - 1


@pytest.mark.slow
@pytest.mark.parametrize("packed", [False, True])
def test_no_damage_crashes(packed: bool, long: bool) -> None:
    complete = rocprof_pftrace(draw_training(1), packed=packed)
    chance = random.Random(f"pftrace {packed}")
    for _ in range(1000 if long else 60):
        survives(mangle(complete, BYTES, chance))
