"""What is in use at every instant of a snapshot, by category, module and step, and where it lies."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pytest

from tests.support.snapshots import entry, frame
from tests.views.memory.test_snapshot_failures import BASE, FORWARD, MIB, STEP, draw_segment
from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.ingest.memory.snapshot import read_snapshot
from torch_tb_profiler.model.snapshots import RecordedSnapshot
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.memory.snapshot.address_map import AddressMap, AddressMapParams, build_map
from torch_tb_profiler.views.memory.snapshot.build import build_snapshot
from torch_tb_profiler.views.memory.snapshot.instant import InstantParams, MemoryInstant, build_instant
from torch_tb_profiler.views.memory.snapshot.payload import MemorySnapshot, SnapshotParams

OTHER = [frame("forward", 7, "model/head.py"), *FORWARD[1:]]
LOAD = [frame("load", 1, "data.py")]


def read(value: Any) -> RecordedSnapshot:
    return read_snapshot(io.BytesIO(pickle.dumps(value)))


def history() -> dict[str, Any]:
    """Draw 20 MiB of optimizer state from before the history, 8 freed in it; activations come and go."""
    actions = [
        entry("alloc", 10 * MIB, 1, FORWARD, addr=BASE + 64 * MIB),
        entry("alloc", 30 * MIB, 12, OTHER, addr=BASE + 96 * MIB),
        entry("free_requested", 8 * MIB, 13, LOAD, addr=BASE + 200 * MIB),
        entry("free_requested", 10 * MIB, 14, FORWARD, addr=BASE + 64 * MIB),
        entry("free_completed", 10 * MIB, 15, FORWARD, addr=BASE + 64 * MIB),
        entry("alloc", 50 * MIB, 30, LOAD, addr=BASE + 300 * MIB),
        entry("free_completed", 50 * MIB, 31, LOAD, addr=BASE + 300 * MIB),
    ]
    notes = [
        {"name": name, "stage": stage, "device": 0, "time_us": time}
        for name, stage, time in (
            ("ProfilerStep#3", "START", 11), ("forward", "START", 29), ("ProfilerStep#3", "END", 20)
        )
    ]  # fmt: skip
    segments = [draw_segment([(20, STEP), (76, None), (30, OTHER)]), draw_segment([(4, None)], at=BASE + 2**32)]
    return {"segments": segments, "device_traces": [actions], "external_annotations": notes}


def column(content: bytes) -> list[float]:
    values: list[float] = np.frombuffer(content, "<f8").tolist()
    return values


def shown(**params: Any) -> MemorySnapshot:
    return build_snapshot(read(history()), SnapshotParams(**params))


def instant(**params: Any) -> MemoryInstant:
    return build_instant(read(history()), InstantParams(**params))


def test_categories_add_up_to_the_bytes_in_use_at_every_point() -> None:
    for points in (1, 2, 3, 100):
        payload = shown(points=points)
        sums = np.sum([column(each) for each in payload.category_bytes], axis=0)
        assert sums.tolist() == column(payload.allocated_max)[: len(sums)] or points < 7
        assert sums.max() == payload.peak_allocated_bytes == 100 * MIB
    whole = shown()
    levels = dict(
        zip(whole.categories, (np.array(column(each)) / MIB for each in whole.category_bytes), strict=True)
    )
    assert levels["optimizer state"].tolist() == [20] * 7
    assert levels["activations"].tolist() == [10, 40, 40, 30, 30, 30, 30]
    assert levels["unknown"].tolist() == [8, 8, 0, 0, 0, 50, 0]  # what was freed, and what no rule knows
    assert column(whole.peak_of_point) == [0, 1, 2, 3, 4, 5, 6]
    assert column(shown(points=2).peak_of_point) == [1, 5]


def test_the_peaks_inside_and_outside_of_steps() -> None:
    payload = shown()
    assert payload.step_peak is not None and payload.outside_peak is not None
    assert (payload.step_peak.bytes, payload.step_peak.entry, payload.step_peak.step) == (
        68 * MIB,
        1,
        "ProfilerStep#3",
    )
    assert (payload.outside_peak.bytes, payload.outside_peak.entry) == (100 * MIB, 5)
    assert payload.unknown_ratio == pytest.approx(50 / 80)
    value = history()
    value["external_annotations"] = value["external_annotations"][1:]  # no beginning, so no step
    without = build_snapshot(read(value), SnapshotParams())
    assert without.step_peak is None and without.outside_peak is None and "step_peak" in without.reasons


def test_the_live_set_of_an_instant_by_category_module_and_site() -> None:
    at = instant(entry=1)
    assert (at.bytes, at.older_bytes, at.step, at.time_us) == (68 * MIB, 8 * MIB, "ProfilerStep#3", 12)
    assert at.categories == {"activations": 40 * MIB, "optimizer state": 20 * MIB, "unknown": 8 * MIB}
    assert {each.name: each.bytes // MIB for each in at.modules} == {
        "model/head.py": 30, "model/block.py": 10, "outside of modules": 28
    }  # fmt: skip
    assert [(each.bytes // MIB, each.category) for each in at.sites] == [
        (30, "activations"), (20, "optimizer state"), (10, "activations")
    ]  # fmt: skip
    assert plain(at.headline).startswith("68.0 MiB in use on GPU 0 after entry 1 (ProfilerStep#3)")
    assert (instant(entry=6).bytes, instant().bytes, instant().entry) == (50 * MIB, 50 * MIB, None)
    assert instant(entry=6).categories == instant().categories
    with pytest.raises(UsageError, match="7 entries"):
        instant(entry=7)


def test_code_of_pytorch_is_no_module() -> None:
    inner = [frame("forward", 9, "/x/site-packages/torch/nn/modules/linear.py"), *FORWARD]
    value = {"segments": [draw_segment([(1, inner)])], "device_traces": []}
    (module,) = build_instant(read(value), InstantParams()).modules
    assert module.name == "model/block.py"


def test_the_map_has_every_block_where_it_lies() -> None:
    mapped: AddressMap = build_map(read(history()), AddressMapParams())
    first, second = mapped.segments
    assert [(piece.offset // MIB, piece.bytes // MIB, piece.kind) for piece in first.pieces] == [
        (0, 20, "optimizer state"), (20, 76, "free"), (96, 30, "activations")
    ]  # fmt: skip
    assert (first.free_bytes, first.largest_free_bytes, mapped.free_bytes) == (76 * MIB, 76 * MIB, 80 * MIB)
    assert first.address == hex(BASE) and [piece.kind for piece in second.pieces] == ["free"]
    many = {"segments": [draw_segment([(1, FORWARD), (1, None)] * 500)], "device_traces": []}
    (segment,) = build_map(read(many), AddressMapParams(pieces=10)).segments
    assert len(segment.pieces) == 10 and {piece.kind for piece in segment.pieces} == {"mixed"}
    assert sum(piece.bytes for piece in segment.pieces) == segment.bytes == 1000 * MIB
    assert (segment.free_bytes, segment.largest_free_bytes, segment.blocks) == (500 * MIB, MIB, 1000)


def test_a_step_has_the_entries_from_its_beginning_to_its_end() -> None:
    first, second = BASE + 2**36, BASE + 2**37
    actions = [
        entry("alloc", 90 * MIB, 1, LOAD, addr=first),
        entry("free_completed", 90 * MIB, 2, LOAD, addr=first),
        entry("alloc", 10 * MIB, 5, LOAD, addr=first),
        entry("alloc", 20 * MIB, 6, LOAD, addr=second),
        entry("free_completed", 20 * MIB, 7, LOAD, addr=second),
        entry("free_completed", 10 * MIB, 7, LOAD, addr=first),
    ]
    notes = [
        {"name": "ProfilerStep#0", "stage": stage, "device": 0, "time_us": time}
        for stage, time in (("START", 5), ("END", 6))
    ]
    value = {"segments": [draw_segment([(1, None)])], "device_traces": [actions], "external_annotations": notes}
    payload = build_snapshot(read(value), SnapshotParams())
    assert payload.step_peak is not None and payload.outside_peak is not None
    assert (payload.step_peak.bytes, payload.step_peak.entry) == (30 * MIB, 3)
    assert (payload.outside_peak.bytes, payload.outside_peak.entry) == (90 * MIB, 0)


def test_of_a_truncated_file_only_what_its_history_allocates_is_in_use() -> None:
    value = history()
    del value["external_annotations"]
    content = pickle.dumps(value)
    snapshot = read_snapshot(io.BytesIO(content[: content.rindex(b"free_completed") - 20]))
    assert snapshot.facts.incomplete is not None
    at = build_instant(snapshot, InstantParams(entry=1))
    assert at.categories == {"activations": 40 * MIB} and at.older_bytes == 0
