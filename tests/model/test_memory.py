"""Tests of memory events, mapped memory, and blocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.memory_traces import memory
from tests.support.traces import draw, read
from torch_tb_profiler.ingest import read_trace
from torch_tb_profiler.model.memory.blocks import BLOCK_STATES, has_addresses, memory_blocks
from torch_tb_profiler.model.memory.events import add_mapped_memory, memory_names, memory_operators, memory_records
from torch_tb_profiler.model.operators import operators
from torch_tb_profiler.model.trace import ABSENT, Trace

CALLS = """
host   cpu_op           aten::zeros      0  100
host   cpu_op           aten::empty     10   20
host   python_function  fill(1):~f      40   40
host   cuda_runtime     cudaMalloc      50   10
host2  cpu_op           aten::add       10   20
"""


def blocks(trace: Trace) -> list[tuple[int | None, int | None, int, str]]:
    """Return (allocated us, released us, size, state)."""
    found, records = memory_blocks(trace), memory_records(trace)
    listed = []
    for allocation, release, size, state in zip(
        found.allocation.tolist(), found.release.tolist(), found.size.tolist(), found.state.tolist(), strict=True
    ):
        allocated, released = (
            int(records.time[at] + trace.trace_start_ns) // 1000 if at >= 0 else None
            for at in (allocation, release)
        )
        listed.append((allocated, released, size, BLOCK_STATES[state]))
    return listed


def test_records_are_ordered_by_time_and_have_their_device() -> None:
    trace = draw(CALLS, *memory("""
    60  GPU0  b   16   528  2048
    20  GPU0  a  512   512  2048
    30  CPU   a   64    64     0
    60  GPU0  a -512    16  2048
    """))  # fmt: skip
    records = memory_records(trace)
    assert [device.name for device in records.devices] == ["CPU", "GPU 0"]
    assert records.time.tolist() == [20_000, 30_000, 60_000, 60_000]
    assert records.size.tolist() == [512, 64, 16, -512]  # in file order where times are equal
    assert records.device.tolist() == [1, 0, 1, 1]
    assert records.allocated.tolist() == [512, 64, 528, 16]


def test_every_type_of_device_has_a_name() -> None:
    trace = draw(CALLS, *memory("\n".join(f"{i} {name} a 1 1 1" for i, name in enumerate(
        ("CPU", "GPU1", "XPU0", "HPU0")))))  # fmt: skip
    assert [(each.name, each.kind) for each in memory_records(trace).devices] == [
        ("CPU", "CPU"),
        ("GPU 1", "CUDA"),
        ("XPU 0", "XPU"),
        ("HPU 0", "HPU"),
    ]
    hip = draw("gpu2 kernel k 0 10", *memory("1 HIP0 a 1 1 1"), hip_runtime_version=1,
               deviceProperties=[{"id": 2, "name": "MI300X", "totalGlobalMem": 2**37}])  # fmt: skip
    (device,) = memory_records(hip).devices
    assert (device.name, device.kind, device.hardware, device.capacity) == ("GPU 0", "ROCm", "MI300X", 2**37)


def test_unusual_devices_have_a_name_each() -> None:
    events = memory("1 CPU a 1 1 1\n2 CPU b 1 1 1\n3 CPU b 1 1 1\n4 CPU c 1 1 1")
    events[0]["args"].update({"Device Type": 20, "Device Id": 1})
    events[1]["args"].update({"Device Type": 77, "Device Id": 0})
    del events[2]["args"]["Device Type"], events[2]["args"]["Device Id"]
    events[3]["args"].update({"Device Type": 1, "Device Id": 0})
    hip = memory("5 HIP0 a 1 1 1")
    names = [device.name for device in memory_records(draw("gpu0 kernel k 0 10", *events, *hip)).devices]
    assert names == ["unknown", "GPU 0", "GPU 0 (device type 6)", "PrivateUse1:1", "device type 77:0"]


def test_a_record_belongs_to_the_innermost_operator_on_its_thread() -> None:
    trace = draw(CALLS, *memory("""
     5  CPU  a  1  1  0
    10  CPU  b  1  2  0
    30  CPU  c  1  3  0
    55  CPU  d  1  4  0
    15  CPU  e  1  5  0  host2
    100 CPU  f  1  6  0
    """))  # fmt: skip
    records, owner = memory_records(trace), memory_operators(trace)
    names = {
        int(time) // 1000: trace.strings[trace.events.name[operators(trace).rows[at]]] if at >= 0 else None
        for time, at in zip(records.time.tolist(), owner.tolist(), strict=True)
    }
    assert names == {
        5: "aten::zeros",
        10: "aten::empty",
        15: "aten::add",
        30: "aten::zeros",
        55: "aten::zeros",
        100: None,
    }
    codes, texts = memory_names(trace)
    assert [texts[code] if code >= 0 else None for code in codes.tolist()] == [
        "aten::zeros",
        "aten::zeros (aten::empty)",
        "aten::add",
        "aten::zeros",
        "aten::zeros",
        None,
    ]


def test_an_operator_that_only_provides_memory_is_named_with_the_one_around_it() -> None:
    trace = draw("""
    host user_annotation ProfilerStep#1     0  100
    host cpu_op          aten::empty_like   5    5
    host user_annotation gloo:all_gather   10   50
    host python_function gather            12   40
    host cpu_op          aten::empty       20   10
    """, *memory("6 CPU a 1 1 0\n25 CPU b 1 2 0"))  # fmt: skip
    assert memory_names(trace)[1] == ["aten::empty_like", "gloo:all_gather (aten::empty)"]


def test_operators_of_old_traces_with_threads_as_text_match() -> None:
    events = memory("15 CPU a 1 1 0")
    operator = {"ph": "X", "cat": "Operator", "name": "aten::add", "pid": 1, "tid": "1", "ts": 10.0, "dur": 20.0}
    assert memory_operators(read([operator, *events])).tolist() == [0]


def test_allocations_are_matched_with_releases_by_address() -> None:
    trace = draw(CALLS, *memory("""
    10  GPU0  a   512  512  0
    11  CPU   a    64   64  0
    20  GPU0  a  -512    0  0
    30  GPU0  a   256  256  0
    40  GPU0  b   -99  157  0
    50  CPU   a   -64    0  0
    60  GPU0  a   128  285  0
    70  GPU0  c     8  293  0
    """))  # fmt: skip
    assert blocks(trace) == [
        (10, 20, 512, "released"),
        (11, 50, 64, "released"),
        (30, None, 256, "replaced"),
        (None, 40, 99, "older"),
        (60, None, 128, "unreleased"),
        (70, None, 8, "unreleased"),
    ]
    found = memory_blocks(trace)
    # After the last record: the block that replaced another is live, the replaced one isn't.
    assert found.size[found.live_after(len(memory_records(trace)) - 1)].tolist() == [128, 8]
    assert found.size[found.live_after(5)].tolist() == [256]


def test_an_address_may_be_released_and_allocated_at_one_instant() -> None:
    trace = draw(CALLS, *memory("""
    10  GPU0  a   512  512  0
    20  GPU0  a  -512    0  0
    20  GPU0  a   100  100  0
    20  GPU0  a  -100    0  0
    """))  # fmt: skip
    assert blocks(trace) == [(10, 20, 512, "released"), (20, 20, 100, "released")]


def test_without_addresses_nothing_is_matched() -> None:
    trace = draw(CALLS, *memory("10 CPU - 512 - -\n20 CPU - -512 - -"))
    assert not has_addresses(trace)
    assert blocks(trace) == [(10, None, 512, "unknown")]
    assert not memory_blocks(trace).live_after(1).any()
    assert (memory_records(trace).allocated == ABSENT).all()


def test_events_without_size_or_time_are_ignored() -> None:
    events = memory("10 GPU0 a 512 512 0\n20 GPU0 a 7 0 0\n25 GPU0 a -512 0 0\n30 GPU0 b 1 1 1")
    del events[1]["args"]["Bytes"]
    del events[3]["ts"]
    trace = draw(CALLS, *events)
    assert blocks(trace) == [(10, 25, 512, "released")]
    assert len(memory_records(trace)) == 3


def test_a_damaged_file_has_a_limited_number_of_devices() -> None:
    events = memory("\n".join(f"{i} GPU0 a 5 5 9" for i in range(600)))
    for i, event in enumerate(events):
        event["args"]["Device Id"] = i
    records = memory_records(draw(CALLS, *events))
    assert len(records.devices) == 257 and records.devices[0].name == "unknown"
    assert (records.device == 0).sum() == 600 - 256
    absurd = memory(f"1 CPU a {-(2**63) + 1} {2**62} {2**62}\n2 CPU b 7 7 0\n3 CPU c {2**50} 7 0")
    absurd[1]["args"]["Addr"] = absurd[2]["args"]["Addr"] = 2**64 - 1
    trace = draw(CALLS, *absurd)
    assert memory_records(trace).size.tolist() == [0, 7, 0]
    assert memory_records(trace).allocated.tolist() == [ABSENT, 7, 7]
    assert blocks(trace) == [(2, None, 7, "unreleased")]


def test_a_trace_without_memory_events_has_none() -> None:
    trace = draw(CALLS)
    assert len(memory_records(trace)) == 0 and len(memory_blocks(trace)) == 0
    assert memory_operators(trace).tolist() == [] and memory_names(trace)[1] == []


def test_an_operator_named_like_its_category_is_one() -> None:
    """The code of its name is 0, which is a name like any other."""
    trace = draw("host cpu_op cpu_op 0 100", *memory("10 CPU a 8 8 0"))
    codes, texts = memory_names(trace)
    assert (codes.tolist(), texts) == ([0], ["cpu_op"])


Row = tuple[int, int, int, int]
"""Address, size, total allocated, total reserved, as recorded."""


def totals_with_mappings(*rows: Row) -> tuple[list[int], list[int]]:
    allocated, reserved = add_mapped_memory(*np.array(rows, np.int64).T)
    return allocated.tolist(), reserved.tolist()


def test_mapped_memory_is_in_use_and_not_cached() -> None:
    rows = [(1, 100, 100, 0), (2, 70, 0, 70), (3, 50, 150, 0), (2, -70, 0, 0), (1, -100, 50, 0)]
    assert totals_with_mappings(*rows) == ([100, 170, 220, 150, 50], [0] * 5)


def test_memory_mapped_before_the_recording_is_known_by_its_release() -> None:
    rows = [(1, 10, 510, 0), (9, -30, 0, 0), (2, 70, 0, 70), (2, -70, 0, 0)]
    assert totals_with_mappings(*rows)[0] == [540, 510, 580, 510]


def test_before_its_first_event_the_allocator_has_its_initial_total() -> None:
    assert totals_with_mappings((2, 70, 0, 70), (1, 10, 510, 0))[0] == [570, 580]


def test_mappings_alone_are_added_up() -> None:
    assert totals_with_mappings((2, 70, 0, 70), (3, 5, 0, 5), (2, -70, 0, 0)) == ([70, 75, 5], [0, 0, 0])


def test_the_release_of_the_allocators_last_block_is_no_unmapping() -> None:
    """It leaves both totals at 0, too; so does the release of an address that was mapped before."""
    rows = [(2, 70, 0, 70), (2, -70, 0, 0), (2, 20, 20, 0), (2, -20, 0, 0), (8, 5, 5, 0)]
    assert totals_with_mappings(*rows)[0] == [70, 0, 20, 0, 5]


@pytest.mark.parametrize("rows", [[(1, 100, 100, 0), (1, -100, 0, 0)], [(1, 100, 100, 500), (2, 300, 400, 500)]])
def test_without_mappings_totals_are_as_recorded(rows: list[Row]) -> None:
    assert totals_with_mappings(*rows) == ([row[2] for row in rows], [row[3] for row in rows])


def test_a_missing_total_stays_unknown_and_the_others_are_right() -> None:
    rows = [(2, 70, 0, 70), (1, 10, ABSENT, 0), (3, 5, 515, 0), (4, 1, ABSENT, ABSENT), (2, -70, 0, 0)]
    assert totals_with_mappings(*rows) == ([570, ABSENT, 585, ABSENT, 515], [0, 0, 0, ABSENT, 0])


def test_mappings_beside_an_allocator_without_totals_are_unknown() -> None:
    rows = [(2, 70, 0, 70), (1, 10, ABSENT, 0), (2, -70, 0, 0)]
    assert totals_with_mappings(*rows)[0] == [ABSENT] * 3


def test_an_unknown_release_after_a_missing_total_is_the_allocators() -> None:
    """It leaves both totals at 0; with a missing total it is unknown whether the allocator had more before."""
    rows = [(2, 70, 0, 70), (1, 10, ABSENT, 0), (9, -30, 0, 0), (2, -70, 0, 0)]
    assert totals_with_mappings(*rows)[0] == [90, ABSENT, 70, 0]


@pytest.mark.slow
def test_in_every_sample_each_event_changes_the_total_by_its_size(samples: Path) -> None:
    """The samples of data loading have mapped batches from worker processes."""
    recorded = 0
    for path in sorted(samples.glob("*/*.pt.trace.json.gz")):
        with path.open("rb") as stream:
            records = memory_records(read_trace(stream))
        for device in range(len(records.devices)):
            of_device = records.device == device
            assert (np.diff(records.allocated[of_device]) == records.size[of_device][1:]).all()
            recorded += int(of_device.sum())
    assert recorded > 20_000
