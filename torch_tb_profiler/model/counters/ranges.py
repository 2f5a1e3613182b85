"""Counter ranges: the hardware counters of a kernel, and the launch and operator that they belong to.

CUPTI's range profiler writes ranges:

    aten::mm -------------|
      cudaLaunchKernel --|                     the n-th launch
    cuda_profiler_range "gemm" ---|            the n-th range: {"dram__bytes_read.sum": 4096, ...}

The profiler runs one kernel at a time and replays it for each set of counters, so PyTorch records no kernels
beside ranges, and the times of ranges are made up: the recording divided by their number. A range has no
correlation id. As in Holistic Trace Analysis, the n-th range belongs to the n-th launch where there are as many of
both.

rocprofv3 counts while it records times: its counters are arguments of the kernels (`dispatches`).
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.counters.dispatches import COUNTER_PREFIX
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int32, Trace, name_mask, rows_mask

RANGE_CATEGORY = "cuda_profiler_range"
LOST_KERNEL = "__missing__"
"""Name of a range whose kernel the profiler lost."""

_LAUNCH = lazy_regex(r"^(?:cuda|cu|hip)(?:Module)?Launch(?:Cooperative)?Kernel")


class CounterRanges(msgspec.Struct, frozen=True):
    """The r ranges of a trace by time; a kernel with counters is a range, too.

    rows      int32[r]  rows of the trace
    launch    int32[r]  row of the call that launched the kernel, NO_CODE where that is unknown
    kernel    int32[r]  row of the kernel, NO_CODE if none is recorded or known
    operator  int32[r]  row of the innermost operator around the launch, NO_CODE if there is none
    reason    why ranges have no launches; None if they have
    counters  name -> key of the argument that holds its values, by name
    amd       the counters are those of AMD's devices
    """

    rows: Int32
    launch: Int32
    kernel: Int32
    operator: Int32
    reason: str | None
    counters: dict[str, str]
    amd: bool = False

    def __len__(self) -> int:
        return len(self.rows)


@derived
def counter_ranges(trace: Trace) -> CounterRanges:
    """Return the ranges of a trace; none where no counters were recorded."""
    rows = rows_of_kind(trace, Kind.METRICS)
    if len(rows):  # Intel's metrics of kernels are no ranges
        rows = rows[name_mask(trace.strings, RANGE_CATEGORY.__eq__)[trace.events.category[rows]]]
    if not len(rows):
        return _collect_counted_kernels(trace)
    rows = _sort_by_time(trace, rows)
    counters = _parse_numeric_arguments(trace, rows)
    calls = _find_kernel_launches(trace)
    kernel = _find_first_kernels(trace, calls)
    reason = _mismatch_reason(trace, rows, calls, kernel)
    if reason is not None:
        none = np.full(len(rows), NO_CODE, np.int32)
        return CounterRanges(rows, none, none, none, reason, counters)
    return CounterRanges(rows, calls, kernel, enclosing_operators(trace)[calls], None, counters)


def _collect_counted_kernels(trace: Trace) -> CounterRanges:
    """Return the kernels with counters of rocprofv3 as ranges."""
    keys = [key for key in sorted(trace.args) if key.startswith(COUNTER_PREFIX)]
    counters = {key.removeprefix(COUNTER_PREFIX): key for key in keys if trace.args[key].kind in ("int", "float")}
    rows, launch = device_launches(trace)
    is_counted = rows_mask(trace, rows_of_kind(trace, Kind.KERNEL)).take(rows)
    if counters:
        is_counted &= np.isin(rows, np.concatenate([trace.args[key].rows for key in counters.values()]))
    rows, launch = rows[is_counted], launch[is_counted]
    if not counters or not len(rows):
        none = np.empty(0, np.int32)
        return CounterRanges(none, none, none, none, None, {})
    order = np.argsort(trace.events.start[rows], kind="stable")
    rows, launch = rows[order], launch[order]
    operator = np.where(launch >= 0, enclosing_operators(trace)[launch], NO_CODE).astype(np.int32)
    return CounterRanges(rows, launch, rows, operator, None, counters, amd=True)


def _parse_numeric_arguments(trace: Trace, rows: Int32) -> dict[str, str]:
    return {
        key: key
        for key, column in sorted(trace.args.items())
        if column.kind in ("int", "float") and np.isin(rows, column.rows).any()
    }


def _sort_by_time(trace: Trace, rows: Int32) -> Int32:
    ordered: Int32 = rows[np.argsort(trace.events.start[rows], kind="stable")]
    return ordered


def _find_kernel_launches(trace: Trace) -> Int32:
    """Return the calls that launch kernels, by time; of a runtime call and the driver call in it the outer one."""
    rows = rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    is_launch = name_mask(trace.strings, lambda text: _LAUNCH.match(text) is not None)
    rows = _sort_by_time(trace, rows[is_launch[trace.events.name[rows]]])
    ids = trace.arg_int("correlation", rows)
    _, first = np.unique(ids, return_index=True)
    is_repeated = np.ones(len(rows), np.bool_)
    is_repeated[first] = False
    outer: Int32 = rows[~is_repeated | (ids == ABSENT)]
    return outer


def _find_first_kernels(trace: Trace, calls: Int32) -> Int32:
    """Return int32[k]: the first kernel of each call, NO_CODE where none is recorded."""
    rows, launch = device_launches(trace)
    is_kernel = np.isin(rows, rows_of_kind(trace, Kind.KERNEL))
    kernel_of_call = np.full(len(trace) + 1, NO_CODE, np.int32)
    kernel_of_call[launch[is_kernel][::-1]] = rows[is_kernel][::-1]
    kernel_of_call[-1] = NO_CODE
    kernels: Int32 = kernel_of_call[calls]
    return kernels


def _mismatch_reason(trace: Trace, rows: Int32, calls: Int32, kernel: Int32) -> str | None:
    """Return why the n-th range isn't that of the n-th launch, or None if it is."""
    if len({trace.threads[code].pid for code in trace.events.thread[rows].tolist()}) > 1:
        return "kernels of several devices were counted, and ranges don't record which launch was on which"
    if len(rows) != len(calls):
        return (
            f"{len(rows)} counted ranges for {len(calls)} kernel launches can't be matched "
            "(`profiler_measure_per_kernel=True` counts every kernel)"
        )
    is_other_name = trace.events.name[rows] != trace.events.name[kernel]
    is_lost = name_mask(trace.strings, LOST_KERNEL.__eq__)[trace.events.name[rows]]
    if (is_other_name & (kernel >= 0) & ~is_lost).any():
        return "the names of the ranges are not those of the launched kernels, in their order"
    return None
