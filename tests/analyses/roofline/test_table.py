"""Attainable time, what bounds it, and utilization, on drawn traces whose figures are computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.model.work.operator_events import BF16, FLOAT, SCALAR, kernel, launch, operator
from tests.support.traces import read
from torch_tb_profiler.analyses.roofline.summary import RooflineSums, sum_rows
from torch_tb_profiler.analyses.roofline.table import GroupBy, RooflineTable, WorkFilter, roofline_table
from torch_tb_profiler.analyses.roofline.utilization import utilization
from torch_tb_profiler.model.trace import Trace

ALL = WorkFilter()
SMALL = "bf16=1,fp32=1,hbm=1"
"""A device of 10^12 FLOP/s and 10^9 bytes/s: 1 us is 10^6 FLOPs or 1,000 bytes."""

MM = {"dims": [[100, 100], [100, 100]], "types": [BF16, BF16]}  # 2 * 10^6 FLOPs: 2 us; 60,000 bytes: 60 us
ADD = {"dims": [[1000], [1000], []], "types": [BF16, BF16, SCALAR]}  # 1,000 FLOPs; 6,000 bytes: 6 us


def one(name: str, inputs: dict[str, Any], duration: float, after: float = 0) -> list[dict[str, Any]]:
    """Return an operator with one kernel, right behind another one that keeps the device busy until then."""
    return [
        operator("lib::before", 0, 10), launch(1, 1), kernel("before", 20, 20 - after, 1),
        operator(name, 12, 8, **inputs), launch(13, 2), kernel("it", 40, duration, 2),
    ]  # fmt: skip


def table_of(
    trace: Trace, group_by: GroupBy = "operator", custom_peaks: str = SMALL
) -> tuple[RooflineTable, RooflineSums, list[str]]:
    table = roofline_table(trace, group_by, ALL, custom_peaks)
    found = sum_rows(trace, table.items, table.groups, custom_peaks)
    return table, found, [trace.strings[trace.events.name[event]] for event in found.event]


def bound(events: list[dict[str, Any]], custom_peaks: str = SMALL) -> str:
    _, found, names = table_of(read(events), custom_peaks=custom_peaks)
    return found.bound[names.index(events[3]["name"])]


def test_the_roof_is_the_longer_of_computing_and_moving() -> None:
    trace = read(one("aten::mm", MM, 120))
    _, found, names = table_of(trace)
    at = names.index("aten::mm")
    assert (found.flops[at], found.bytes[at], found.roof[at]) == (2e6, 60_000.0, 60_000.0)
    _, fast, _ = table_of(trace, custom_peaks="bf16=1,hbm=1000")
    assert fast.roof[at] == 2000.0


def test_what_bounds_a_call() -> None:
    assert bound(one("aten::mm", MM, 120)) == "memory"
    assert bound(one("aten::mm", MM, 120), "bf16=0.01,hbm=1000") == "compute"
    assert bound(one("aten::mm", {}, 120)) == "unknown"
    assert bound(one("lib::mystery", MM, 120)) == "unknown"


def test_a_short_call_far_from_its_roof_is_bound_by_latency() -> None:
    fast = "bf16=1000,fp32=1000,hbm=1000"
    assert bound(one("aten::add", ADD, 9), fast) == "latency"
    assert bound(one("aten::add", ADD, 11), fast) == "memory"  # long enough to fill the device
    assert bound(one("aten::add", ADD, 9)) == "memory"  # short, but near its roof


def test_a_call_that_the_device_waited_for_longer_than_it_ran_is_bound_by_its_launch() -> None:
    assert bound(one("aten::add", ADD, 9, after=8.5)) == "memory"
    assert bound(one("aten::add", ADD, 9, after=9.5)) == "launch"


def test_a_long_call_is_not_bound_by_its_launch_however_long_the_device_was_idle_before() -> None:
    def after_idling(duration: float) -> str:
        events = one("aten::add", ADD, duration)
        events[5]["ts"] += 1_650
        return bound(events)

    assert after_idling(49) == "launch"
    assert after_idling(51) == "memory"


def test_communication_has_no_roof_of_memory() -> None:
    events = one("aten::copy_", {"dims": [[8], [8], []], "types": [FLOAT, FLOAT, SCALAR]}, 50)
    events[5]["name"] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    assert bound(events) == "communication"


def test_a_copy_to_the_host_does_not_wait_for_memory() -> None:
    events = one("aten::copy_", {"dims": [[8], [8], []], "types": [FLOAT, FLOAT, SCALAR]}, 50)
    events[5] = kernel("Memcpy DtoH (Device -> Pinned)", 40, 50, 2, "gpu_memcpy", bytes=32)
    _, found, names = table_of(read(events))
    at = names.index("aten::copy_")
    assert found.bound[at] == "unknown"
    assert np.isnan(found.roof[at])
    assert found.bytes[at] == 32
    assert "host" in (found.reason[at] or "")


def test_without_peaks_there_are_figures_but_no_roof() -> None:
    trace = read(one("aten::mm", MM, 120))
    _, found, names = table_of(trace, custom_peaks="")
    at = names.index("aten::mm")
    assert found.flops[at] == 2e6
    assert np.isnan(found.roof[at])
    assert found.bound[at] == "unknown"
    assert utilization(trace, ALL, "").mfu is None


def test_kernels_share_the_work_of_their_call_by_time() -> None:
    trace = read([
        operator("aten::mm", 0, 50, **MM), launch(10, 1), launch(20, 2), launch(30, 3),
        kernel("Memset (Device)", 60, 5, 1, "gpu_memset", bytes=9),
        kernel("a", 70, 30, 2), kernel("b", 100, 10, 3),
        kernel("alone", 200, 7, 99),
    ])  # fmt: skip
    table, found, names = table_of(trace, "kernel")
    flops = dict(zip(names, found.flops.tolist(), strict=True))
    assert (flops["a"], flops["b"], flops["Memset (Device)"]) == (1.5e6, 0.5e6, 0.0)
    assert np.isnan(flops["alone"])
    assert found.reason[names.index("alone")] == "no recorded operator launched it"
    assert int(found.device.sum()) == 52_000
    assert table.unlinked_ns == 7000


@pytest.mark.parametrize("group_by", ["operator", "shape", "module"])
def test_rows_and_what_nobody_launched_are_all_device_time(group_by: GroupBy) -> None:
    trace = read([*one("aten::mm", MM, 120), kernel("alone", 200, 7, 99)])
    table, found, _ = table_of(trace, group_by)
    assert int(found.device.sum()) + table.unlinked_ns == 147_000
    assert np.nansum(found.flops) == 2e6


def draw_training(again: bool) -> Trace:
    """Return a step of 100 us with a product forward and backward, computed again if checkpointed."""
    engine = "autograd::engine::evaluate_function: MmBackward0"
    number = {"Sequence number": 9, "Fwd thread id": 0}
    step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": 100}
    events = [
        step,
        operator("aten::mm", 1, 9, **MM, **number), launch(2, 1), kernel("gemm", 11, 10, 1),
        operator(engine, 40, 40, **{"Sequence number": 5, "Fwd thread id": 1}),
        operator("aten::mm", 60, 9, **MM), launch(61, 3), kernel("gemm", 71, 10, 3),
    ]  # fmt: skip
    if again:
        events += [operator("aten::mm", 45, 9, **MM, **number), launch(46, 2), kernel("gemm", 51, 10, 2)]
    return read(events)


def test_model_flops_leave_out_what_is_computed_again() -> None:
    plain, checkpointed = (utilization(draw_training(again), ALL, SMALL) for again in (False, True))
    assert plain.mfu == plain.hfu == pytest.approx(4 / 100)  # two products of 2 us
    assert checkpointed.mfu == pytest.approx(4 / 100)
    assert checkpointed.hfu == pytest.approx(6 / 100)
    assert (checkpointed.needed, checkpointed.executed, checkpointed.again) == (4e6, 6e6, 2e6)


def test_coverage_is_the_share_of_device_time_whose_work_is_known() -> None:
    trace = read([*one("aten::mm", MM, 60), kernel("alone", 200, 20, 99)])
    found = utilization(trace, ALL, SMALL)
    assert found.coverage == pytest.approx(60 / 100)  # 20 us before, 20 us alone
    assert (found.modeled_ns, found.device_ns) == (60_000, 100_000)


def test_work_outside_of_the_steps_does_not_count_for_them() -> None:
    step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": 100}
    trace = read([
        step,
        operator("aten::mm", 1, 9, **MM), launch(2, 1), kernel("gemm", 11, 10, 1),
        operator("aten::mm", 150, 9, **MM), launch(151, 2), kernel("gemm", 171, 10, 2),
    ])  # fmt: skip
    assert utilization(trace, ALL, SMALL).mfu == pytest.approx(2 / 100)
    assert utilization(trace, WorkFilter("1"), SMALL).coverage == 1.0
    assert utilization(trace, WorkFilter("1"), SMALL).device_ns == 10_000


def test_two_devices_have_twice_the_peak() -> None:
    events = [
        operator("aten::mm", 0, 50, **MM), launch(10, 1), kernel("gemm", 20, 80, 1),
        operator("aten::mm", 60, 40, **MM), launch(70, 2), kernel("gemm", 80, 20, 2),
    ]  # fmt: skip
    events[5]["args"]["device"] = 1
    trace = read(events)
    assert utilization(trace, ALL, SMALL).mfu == pytest.approx(4 / 200)
    assert utilization(trace, WorkFilter(device=1), SMALL).mfu == pytest.approx(2 / 100)
