"""Why an allocation failed: each cause is named where it is the cause, and not where it isn't."""

from __future__ import annotations

import io
import pickle
from typing import Any

import pytest

from tests.support.snapshots import entry, frame
from torch_tb_profiler.ingest.memory.snapshot import read_snapshot
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.memory.snapshot.build import build_snapshot
from torch_tb_profiler.views.memory.snapshot.payload import MemorySnapshot, SnapshotOom, SnapshotParams

MIB = 2**20
BASE = 0x7F00_0000_0000
FORWARD = [frame("at::empty", 0, "??"), frame("forward", 88, "model/block.py"), frame("<module>", 3)]
STEP = [frame("_init_group", 40, "site-packages/torch/optim/adam.py"), frame("<module>", 9)]


def draw_segment(
    pieces: list[tuple[int, list[Any] | None]], stream: int = 0, kind: str = "large", at: int = BASE
) -> dict[str, Any]:
    """Return a segment of blocks of (MiB, stack), without a stack free ones."""
    blocks, address = [], at
    for size, frames in pieces:
        state = "inactive" if frames is None else "active_allocated"
        requested = 0 if frames is None else size * MIB
        blocks.append({"address": address, "size": size * MIB, "requested_size": requested,
                       "state": state, "frames": frames or []})  # fmt: skip
        address += size * MIB
    return {"device": 0, "address": at, "total_size": address - at, "stream": stream, "segment_type": kind,
            "segment_pool_id": (0, 0), "is_expandable": False, "blocks": blocks}  # fmt: skip


def write_failed(
    segments: list[dict[str, Any]], request: int, free: int | None, after: list[Any] | None = None, **settings: Any
) -> SnapshotOom:
    oom = entry("oom", request * MIB, 5, FORWARD)
    del oom["addr"]
    if free is not None:
        oom["device_free"] = free * MIB
    value = {"segments": segments, "device_traces": [[oom, *(after or [])]], "allocator_settings": settings}
    return shown_failure(value).oom[-1]


def shown_failure(value: Any, **params: Any) -> MemorySnapshot:
    return build_snapshot(read_snapshot(io.BytesIO(pickle.dumps(value))), SnapshotParams(**params))


FULL = [draw_segment([(40, FORWARD), (20, STEP)])]
PIECES = [draw_segment([(10, FORWARD), (12, None), (10, FORWARD), (11, None), (10, STEP)])]


def test_memory_that_is_in_use_is_held_and_what_holds_enough_is_named() -> None:
    oom = write_failed([draw_segment([(40, FORWARD), (20, STEP), (3, None)])], 40, 10)
    assert (oom.cause, oom.in_use, oom.unused, oom.usable, oom.largest_free) == (
        "held", 60 * MIB, 3 * MIB, 3 * MIB, 3 * MIB
    )  # fmt: skip
    assert oom.categories == {"activations": 40 * MIB, "optimizer state": 20 * MIB}
    assert plain(oom.verdict) == (
        "Out of memory on GPU 0: 40 MiB requested, 10 MiB free. "
        "60 MiB are in use (40 MiB activations), 3 MiB reserved but unused."
    ).replace("40 MiB", "40.0 MiB").replace("10 MiB", "10.0 MiB").replace("60 MiB", "60.0 MiB").replace(
        "3 MiB", "3.00 MiB"
    )
    remedies = [plain(each) for each in oom.remedies]
    assert "activations hold 40.0 MiB" in remedies[0] and "At least 27.0 MiB" in remedies[-1]
    assert "if the GPU has more than 73.0 MiB" in remedies[1], "so little memory is left by other processes"
    assert len(remedies) == 3 and not any(
        "optimizer" in each or "expandable" in each for each in remedies
    )  # 20 < 27


def test_fragmentation_is_enough_memory_in_pieces() -> None:
    oom = write_failed(PIECES, 20, 1)
    assert (oom.cause, oom.usable, oom.largest_free) == ("fragmentation", 23 * MIB, 12 * MIB)
    (remedy,) = map(plain, oom.remedies)
    assert "expandable_segments:True" in remedy and "24.0 MiB" in remedy
    (remedy,) = map(plain, write_failed(PIECES, 20, 1, expandable_segments=True).remedies)
    assert "expandable_segments:True" not in remedy and "fewer different sizes" in remedy
    assert write_failed(PIECES, 25, 1).cause == "held"
    assert write_failed(PIECES, 24, 1).cause == "fragmentation"
    assert write_failed(PIECES, 12, 1).cause == "unknown"  # it would have fit


def test_holes_of_other_streams_are_of_no_use() -> None:
    other = draw_segment([(30, None)], stream=7, at=BASE + 2**32)
    oom = write_failed([*FULL, other], 25, 1)
    assert (oom.cause, oom.usable, oom.other_unused) == ("other pools", 0, 30 * MIB)
    assert "30.0 MiB" in plain(oom.remedies[0])
    assert write_failed([*FULL, draw_segment([(30, None)], at=BASE + 2**32)], 25, 1).cause == "unknown"
    small = write_failed([*FULL, draw_segment([(30, None)], kind="small", at=BASE + 2**32)], 25, 1)
    assert (small.cause, small.usable) == ("other pools", 0)


@pytest.mark.parametrize(
    ("more", "remedy"),
    [
        ({"segment_pool_id": (0, 3)}, "Release CUDA graphs that are no longer replayed"),
        ({"stream": 7}, "Allocate on one stream"),
        ({"segment_type": "small"}, "Allocate fewer tensors of the other size class"),
    ],
)
def test_unused_memory_is_made_usable_by_what_keeps_it_from_the_request(more: Any, remedy: str) -> None:
    other = {**draw_segment([(30, None)], at=BASE + 2**32), **more}
    (remedies,) = map(plain, write_failed([*FULL, other], 25, 1).remedies)
    assert remedies.startswith(remedy) and "30.0 MiB" in remedies
    later = [entry("free_completed", MIB, 6, [], addr=1)]  # the same from the history backwards
    (remedies,) = map(plain, write_failed([*FULL, other], 25, 1, later).remedies)
    assert remedies.startswith(remedy) and "30.0 MiB" in remedies
    both = {**draw_segment([(30, None)], at=BASE + 2**33), "stream": 9, "segment_pool_id": (0, 9)}
    assert plain(write_failed([*FULL, both], 25, 1).remedies[0]).startswith("Release CUDA graphs")


GIB = 1024


def test_what_other_processes_hold_is_the_first_to_go_where_it_is_enough() -> None:
    def read_remedies(used: int, free: int, request: int, device: int | None) -> list[str]:
        oom = entry("oom", request * GIB * MIB, 5, FORWARD, device_free=free * GIB * MIB)
        value = {"segments": [draw_segment([(used * GIB, STEP)])], "device_traces": [[oom]]}
        params = {} if device is None else {"device_bytes": device * GIB * MIB}
        return [plain(each) for each in shown_failure(value, **params).oom[0].remedies]

    assert read_remedies(4, 1, 3, 80)[0].startswith("Stop other processes on this GPU: 75.0 GiB are held")
    assert not any("Stop" in each or "nvidia-smi" in each for each in read_remedies(74, 1, 4, 76)), (
        "its own CUDA context"
    )
    assert any("nvidia-smi" in each and "more than 5.00 GiB" in each for each in read_remedies(4, 1, 3, None))
    assert not any("nvidia-smi" in each for each in read_remedies(70, 1, 3, None)), "that is a whole GPU"
    # More than the device has: nothing that is freed makes it fit.
    assert read_remedies(4, 70, 200, 80) == [
        "Request less at once: if this process freed everything else, 74.0 GiB would be available."
    ]
    assert not any("Request less" in each for each in read_remedies(4, 70, 74, 80))
    assert (
        read_remedies(4, 6, 20, 80)[0].startswith("Stop other processes")
        and "At least 14.0 GiB" in read_remedies(4, 6, 20, 80)[-1]
    )


def test_workspaces_that_hold_enough_are_to_be_limited() -> None:
    workspace = [frame("at::cuda::getCUDABlasLtWorkspace", 0, "??"), frame("forward", 1, "m.py")]
    assert "CUBLAS_WORKSPACE_CONFIG" in plain(write_failed([draw_segment([(60, workspace)])], 40, 10).remedies[0])
    few = write_failed([draw_segment([(29, workspace), (31, FORWARD)])], 40, 10)
    assert not any("WORKSPACE" in plain(each) for each in few.remedies)


def test_memory_of_private_pools_is_of_graphs_although_its_allocation_is_not_recorded() -> None:
    pool = {**draw_segment([(30, FORWARD)], at=BASE + 2**32), "segment_pool_id": (0, 1)}
    oom = write_failed([*FULL, pool], 40, 10)
    assert oom.categories == {"activations": 40 * MIB, "CUDA graphs": 30 * MIB, "optimizer state": 20 * MIB}
    without_pool = [*FULL, draw_segment([(30, FORWARD)], at=BASE + 2**32)]
    assert "CUDA graphs" not in write_failed(without_pool, 40, 10).categories


def test_the_device_that_ran_out_is_shown_first() -> None:
    full = {**draw_segment([(90, FORWARD)]), "device": 1}
    oom = entry("oom", 40 * MIB, 5, FORWARD, device_free=10 * MIB)
    assert shown_failure({"segments": [*FULL, full], "device_traces": [[oom], []]}).device == 0
    assert shown_failure({"segments": [*FULL, full], "device_traces": [[], []]}).device == 1
    assert shown_failure({"segments": [*FULL, full], "device_traces": [[oom], [oom]]}).device == 1


def test_enough_free_memory_means_a_limit() -> None:
    assert write_failed(FULL, 20, 20).cause == "limit"
    assert write_failed(FULL, 20, 19).cause == "held"
    assert write_failed(FULL, 3, 19).cause == "unknown"  # the allocator asks for 20 MiB, of which 19 are there


def test_without_free_bytes_the_cause_is_unknown() -> None:
    oom = write_failed(FULL, 20, None)
    assert (oom.cause, oom.device_free, oom.remedies) == ("unknown", None, [])


def test_the_state_is_that_of_the_failure_though_tensors_died_since() -> None:
    died = [draw_segment([(63, None)])]
    after = [
        entry("free_requested", 40 * MIB, 6, FORWARD, addr=BASE),
        entry("free_completed", 40 * MIB, 7, FORWARD, addr=BASE),
        entry("free_requested", 20 * MIB, 8, STEP, addr=BASE + 40 * MIB),
        entry("free_completed", 20 * MIB, 9, STEP, addr=BASE + 40 * MIB),
    ]
    oom = write_failed(died, 40, 10, after)
    assert (oom.cause, oom.in_use, oom.reserved, oom.usable) == ("held", 60 * MIB, 63 * MIB, 3 * MIB)
    assert oom.categories == {"unknown": 60 * MIB}  # the file doesn't have the stacks of their allocations
    gone = write_failed([], 40, 10, [*after, entry("segment_free", 63 * MIB, 10, FORWARD, addr=BASE)])
    assert gone.cause == "unknown" and gone.reserved is None


def test_the_parts_add_up_to_the_device() -> None:
    oom = entry("oom", 40 * MIB, 5, FORWARD, device_free=10 * MIB)
    value = {"segments": PIECES, "device_traces": [[oom]]}
    (known,) = shown_failure(value, device_bytes=100 * MIB).oom
    assert known.in_use is not None and known.unused is not None and known.other_bytes is not None
    assert known.in_use + known.unused + 10 * MIB + known.other_bytes == 100 * MIB
    assert shown_failure(value).oom[0].other_bytes is None and "other_bytes" in shown_failure(value).reasons


@pytest.mark.parametrize(
    ("frames", "category"),
    [
        ([frame("forward", 1, "m.py"), frame("backward", 2, "t.py")], "activations"),
        ([frame("at::mm", 0, "??"), frame("_engine_run_backward", 2, "torch/autograd/graph.py")], "gradients"),
        (STEP, "optimizer state"),
        ([frame("__init__", 90, "torch/nn/modules/linear.py")], "parameters"),
        ([frame("all_gather_into_tensor", 9, "x.py"), frame("forward", 1, "m.py")], "communication buffers"),
        ([frame("_allocate_kv_cache", 9, "cache_engine.py")], "KV cache"),
        ([frame("at::cuda::getCUDABlasLtWorkspace", 0, "??"), frame("forward", 1, "m.py")], "library workspace"),
        ([frame("load", 1, "data.py")], "unknown"),
        ([], "unknown"),
    ],
)
def test_categories_follow_the_innermost_frame_that_a_rule_matches(frames: list[Any], category: str) -> None:
    value = {"segments": [], "device_traces": [[entry("alloc", 7, 1, frames)]]}
    peak = shown_failure({**value, "segments": [draw_segment([(1, None)])]}).peak
    assert peak is not None and peak.categories == {category: 7}


def test_pools_and_compile_contexts_are_categories_where_the_stack_says_nothing_more() -> None:
    entries = [
        entry("alloc", 10, 1, [], addr=1, compile_context="0/0"),
        entry("alloc", 20, 2, FORWARD, addr=2, compile_context="0/0"),
        entry("alloc", 40, 3, FORWARD, addr=3, compile_context="N/A", pool_id=(0, 2)),
        entry("alloc", 80, 4, [], addr=4, compile_context="N/A"),
    ]
    peak = shown_failure({"segments": [draw_segment([(1, None)])], "device_traces": [entries]}).peak
    assert peak is not None
    assert peak.categories == {"unknown": 80, "CUDA graphs": 40, "activations": 20, "compiled code": 10}
    assert peak.compile_contexts == {"N/A": 120, "0/0": 30}
    assert (peak.bytes, sum(site.bytes for site in peak.sites), sum(site.blocks for site in peak.sites)) == (
        150,
        150,
        4,
    )


def test_the_peak_is_that_of_live_allocations_whichever_free_is_recorded() -> None:
    for free in ("free_requested", "free_completed"):
        entries = [
            entry("alloc", 10, 1, FORWARD, addr=1),
            entry("alloc", 5, 2, STEP, addr=2),
            entry(free, 10, 3, FORWARD, addr=1),
            entry("alloc", 7, 4, FORWARD, addr=1),
            entry(free, 100, 5, FORWARD, addr=9),  # older than the history
        ]
        peak = shown_failure({"segments": [draw_segment([(1, None)])], "device_traces": [entries]}).peak
        assert peak is not None and (peak.bytes, peak.entry, peak.time_us) == (15, 1, 2)
        assert [(site.frames[0].function, site.bytes) for site in peak.sites] == [(None, 10), ("_init_group", 5)]


def test_what_would_be_available_is_less_than_what_was_asked_for_as_shown_too() -> None:
    oom = entry("oom", 74 * GIB * MIB, 5, FORWARD, device_free=70 * GIB * MIB - 20 * MIB)
    value = {"segments": [draw_segment([(4 * GIB, STEP)])], "device_traces": [[oom]]}
    remedies = [plain(each) for each in shown_failure(value, device_bytes=75 * GIB * MIB).oom[0].remedies]
    assert "Request less at once: if this process freed everything else, 73.9 GiB would be available." in remedies
