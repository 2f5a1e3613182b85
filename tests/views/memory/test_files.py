from __future__ import annotations

import copy
import gzip
import io
import json
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.snapshots import LINEAR, LOSS, block, entry, snapshot
from torch_tb_profiler.base.errors import NotFoundError, TraceError
from torch_tb_profiler.ingest.memory import snapshot as memory_snapshot
from torch_tb_profiler.ingest.memory.snapshot import read_snapshot
from torch_tb_profiler.ingest.memory.timeline import read_timeline
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.memory.snapshot.build import build_snapshot
from torch_tb_profiler.views.memory.snapshot.payload import MemorySnapshot, SnapshotParams
from torch_tb_profiler.views.memory.timeline import MemoryTimeline, TimelineParams, build_timeline


def build_payload(value: Any, **params: Any) -> MemorySnapshot:
    return build_snapshot(read_snapshot(io.BytesIO(pickle.dumps(value))), SnapshotParams(**params))


def column(content: bytes) -> list[float]:
    values: list[float] = np.frombuffer(content, "<f8").tolist()
    return values


def test_the_state_of_every_device() -> None:
    payload = build_payload(snapshot())
    first, second = payload.devices
    assert (first.segments, first.blocks, first.reserved_bytes) == (2, 5, 4096)
    assert (first.allocated_bytes, first.awaiting_bytes, first.free_bytes) == (1536, 256, 2304)
    assert (first.largest_free_bytes, first.requested_bytes) == (1536, 1500)
    assert (first.entries, first.out_of_memory) == (9, 1)
    assert (second.id, second.reserved_bytes, second.allocated_bytes, second.requested_bytes) == (1, 64, 0, 0)
    assert payload.device == 0  # the one that holds most
    assert build_payload(snapshot(), device=1).total_stacks == 0


def test_blocks_in_use_by_stack_and_segments() -> None:
    payload = build_payload(snapshot())
    assert [([frame.text for frame in stack.frames], stack.blocks, stack.bytes) for stack in payload.stacks] == [
        (["model.py(12): forward", "train.py(3): <module>"], 1, 1024),
        (["train.py(40): loss", "train.py(4): <module>"], 1, 512),
    ]
    assert payload.stacks[0].frames[0].line == 12
    assert [(each.address, each.kind, each.allocated_bytes, each.blocks) for each in payload.segments] == [
        ("0x8000000000001000", "small", 1024, 3),
        ("0x2000", "large", 512, 2),
    ]
    cut = build_payload(snapshot(), limit=1)
    assert (len(cut.stacks), cut.total_stacks, len(cut.segments), cut.total_segments) == (1, 2, 1, 2)


def test_the_history_ends_in_the_state() -> None:
    payload = build_payload(snapshot())
    assert column(payload.entry) == list(range(9))
    assert column(payload.allocated_last) == [0, 1000, 1000, 3000, 3000, 1000, 1000, 1500, 1500]
    assert column(payload.reserved_last) == [2048, 2048, 4096, 4096, 4096, 4096, 4096, 4096, 4096]
    assert column(payload.history_time_us) == list(range(10, 19))
    assert (payload.peak_allocated_bytes, payload.peak_entry) == (3000, 3)
    (error,) = payload.out_of_memory
    assert (error.entry, error.bytes, error.device_free_bytes) == (4, 10**9, 77)
    assert error.frames[0].function == "loss"


def test_a_history_without_its_oldest_entries_still_ends_in_the_state() -> None:
    value = snapshot()
    value["device_traces"][0] = value["device_traces"][0][5:]
    payload = build_payload(value)
    assert column(payload.allocated_last) == [1000, 1000, 1500, 1500]


def test_few_points_keep_the_peak() -> None:
    payload = build_payload(snapshot(), points=2)
    assert len(column(payload.entry)) == 2
    assert max(column(payload.allocated_max)) == 3000


def rounded_snapshot() -> dict[str, Any]:
    """Draw 100 tensors of 100 bytes in blocks of 512, half of which are freed before the end."""
    held = [block(512, "active_allocated", LOSS, 100) for _ in range(50)]
    segment = {"device": 0, "address": 0, "total_size": 51_200, "segment_type": "small", "stream": 0}
    history = [entry("alloc", 100, i, LOSS, addr=512 * i) for i in range(100)]
    history += [entry("free_completed", 100, 100 + i, LOSS, addr=512 * i) for i in range(50, 100)]
    return {"segments": [{**segment, "blocks": held}], "device_traces": [history]}


def test_a_peak_of_requested_bytes_is_compared_with_requested_bytes() -> None:
    value = rounded_snapshot()
    assert plain(build_payload(value).headline) == (
        "GPU 0 had 50.0 KiB reserved, 25.0 KiB of it in use, after a peak of 9.77 KiB requested (now 4.88 KiB)."
    )
    value["device_traces"] = [value["device_traces"][0][:50]]
    assert plain(build_payload(value).headline) == "GPU 0 had 50.0 KiB reserved, 25.0 KiB of it in use."


def test_a_peak_of_a_file_without_requested_sizes_counts_what_the_allocator_handed_out() -> None:
    value = rounded_snapshot()
    for each in value["segments"][0]["blocks"]:
        del each["requested_size"]
    for each in value["device_traces"][0]:
        each["size"] = 512
    assert plain(build_payload(value).headline) == (
        "GPU 0 had 50.0 KiB reserved, 25.0 KiB of it in use, after a peak of 50.0 KiB."
    )


def test_a_snapshot_without_history_or_stacks_says_what_to_record() -> None:
    value = snapshot()
    del value["device_traces"]
    for segment in value["segments"]:
        for each in segment["blocks"]:
            each["frames"] = []
            each.pop("requested_size", None)
    payload = build_payload(value)
    assert payload.entry == b"" and payload.peak_entry is None and payload.peak_allocated_bytes == 1536
    assert {"entry", "stacks", "requested_bytes"} <= payload.reasons.keys()
    assert [(stack.frames, stack.bytes) for stack in payload.stacks] == [([], 1536)]
    assert payload.devices[0].requested_bytes is None


def test_the_first_generation_keeps_stacks_in_the_blocks_history() -> None:
    value = snapshot()
    for segment in value["segments"]:
        for each in segment["blocks"]:
            each["history"] = [{"addr": 1, "real_size": 4, "frames": each.pop("frames")}]
    assert [stack.bytes for stack in build_payload(value["segments"]).stacks] == [1024, 512]


@pytest.mark.parametrize("damage", [None, 5, "text", [], {}, {"size": "large"}, {"size": 1.5}])
def test_one_bad_entry_costs_one_entry(damage: Any) -> None:
    value = copy.deepcopy(snapshot())
    value["segments"].append(damage)
    value["segments"][0]["blocks"].append(damage)
    value["device_traces"][0].append(damage)
    value["device_traces"].append(damage)
    payload = build_payload(value)
    assert payload.devices[0].allocated_bytes == 1536 and column(payload.allocated_last)[-1] == 1500
    assert plain(payload.reasons["skipped"]).startswith("3 entries")


def test_frames_may_be_anything() -> None:
    value = snapshot()
    value["segments"][0]["blocks"][0]["frames"] = [None, 7, {}, {"name": 5, "filename": "<b>", "line": "x"}]
    assert [frame.text for frame in build_payload(value).stacks[0].frames] == ["??", "??", "??", "<b>"]


def test_what_is_no_snapshot_is_told_so() -> None:
    values: list[Any] = [None, 5, {"a": 1}, {"segments": {}}]
    for value in values:
        with pytest.raises(TraceError, match="not a memory snapshot"):
            build_payload(value)
    with pytest.raises(NotFoundError, match="GPU 9"):
        build_payload(snapshot(), device=9)
    with pytest.raises(NotFoundError, match="no GPU"):
        build_payload({"segments": []})


def test_references_to_one_list_do_not_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_snapshot, "_MAX_ENTRIES", 1000)
    blocks = [{"size": 1, "state": "inactive", "frames": [LINEAR[0]] * 100} for _ in range(100)]
    with pytest.raises(TraceError, match="more than 1,000 entries"):
        build_payload({"segments": [{"total_size": 100, "blocks": blocks}] * 100})
    assert LOSS[0]["name"] == "loss"


# ---- exported timelines -------------------------------------------------------------------------------

PARAMETER, STATE, INPUT, TEMPORARY, ACTIVATION, GRADIENT, DETAIL, UNKNOWN = range(8)
EVENTS = [
    [-1, 1, 400, PARAMETER],
    [-1, 1, 50, INPUT],
    [1_000, 2, 100, TEMPORARY],
    [2_000, 2, 300, ACTIVATION],
    [2_000, 4, -100, TEMPORARY],
    [3_000, 2, 250, GRADIENT],
    [4_000, 4, -300, ACTIVATION],
    [5_000, 3, -250, GRADIENT],
    [5_000, 3, 250, PARAMETER],
]


def timeline(content: bytes, **params: Any) -> MemoryTimeline:
    return build_timeline(read_timeline(io.BytesIO(content)), TimelineParams(**params))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_timeline_is_stacked_by_category(pack: Any) -> None:
    payload = timeline(pack(json.dumps(EVENTS).encode()))
    assert payload.categories == ["parameter", "input", "temporary", "activation", "gradient"]
    assert payload.start_bytes == [400, 50, 0, 0, 0]
    assert column(payload.time) == [1_000, 1_000, 2_000, 2_000, 3_000, 4_000, 5_000, 5_000]
    assert (payload.begin_ns, payload.end_ns, payload.events) == (1_000, 5_000, 9)
    assert (payload.peak_bytes, payload.peak_time_ns, payload.peak_sizes) == (1000, 3_000, [400, 50, 0, 300, 250])
    assert [column(row)[-1] for row in payload.sizes] == [650, 50, 0, 0, 0]


def test_a_timeline_begins_with_its_first_timed_event() -> None:
    """What was there before has no time; it is drawn at that of the first change, even of the only one."""
    payload = timeline(b"[[-1, 0, 400, 0], [1000, 1, 100, 1]]")
    assert (payload.begin_ns, payload.end_ns) == (1_000, 1_000)
    assert timeline(b"[[-1, 0, 400, 0]]").begin_ns == -1


@given(
    st.lists(
        st.tuples(st.integers(-1, 50), st.integers(1, 4), st.integers(-9, 99), st.integers(0, 9)), min_size=1
    ),
    st.integers(1, 9),
)
@settings(deadline=None)
def test_samples_of_a_timeline_reach_its_peak(events: list[tuple[int, int, int, int]], points: int) -> None:
    payload = timeline(json.dumps(events).encode(), points=points)
    whole = timeline(json.dumps(events).encode(), points=1000)
    totals = np.sum([np.frombuffer(row) for row in payload.sizes], axis=0)
    assert totals.max() == payload.peak_bytes == whole.peak_bytes
    assert totals[-1] == sum(size for _, _, size, _ in events)
    assert len(totals) <= points + 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"[]", "empty"),
        (b"{}", "not a memory timeline"),
        (b"[[1, 2, 3]]", "not a memory timeline"),
        (b'[[1, 2, 3, "x"]]', "not a memory timeline"),
        (b"[[1, 2, 3, 4]", "not a memory timeline"),
        (b"[[1, 2, 99999999999999999999, 4]]", "not a memory timeline"),
        (gzip.compress(b"[[1, 2, 3, 4]]", mtime=0)[:-9], "damaged"),
        (b"\xff\xfe", "not a memory timeline"),
    ],
)
def test_broken_timelines_are_told(content: bytes, reason: str) -> None:
    with pytest.raises(TraceError, match=reason):
        timeline(content)
