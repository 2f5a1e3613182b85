"""What hardware counters counted, and which launch and operator it was counted for.

The range profiler of CUPTI writes ranges:

    aten::mm -------------|
      cudaLaunchKernel --|                     the n-th launch
    cuda_profiler_range "gemm" ---|            the n-th range: {"dram__bytes_read.sum": 4096, ...}

The profiler runs one kernel at a time and replays it for each set of counters, so PyTorch records no kernels
beside ranges, and the times of ranges are made up: the recording divided by their number. A range carries no
correlation; as in Holistic Trace Analysis it belongs to the launch of the same place in order, where there are as
many of both.

rocprofv3 counts beside its times: its counters are arguments of the kernels (`dispatches`).
"""

from __future__ import annotations

import re

import msgspec
import numpy as np

from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.counters.dispatches import PREFIX
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int32, Trace, derived, name_mask

CATEGORY = "cuda_profiler_range"
MISSING = "__missing__"
"""The name of a range whose kernel the profiler lost."""

_LAUNCH = re.compile(r"^(?:cuda|cu|hip)(?:Module)?Launch(?:Cooperative)?Kernel")


class Ranges(msgspec.Struct, frozen=True):
    """Columns of r ranges in order of time; a counted kernel is a range, too.

    rows      int32[r]  of the trace
    launch    int32[r]  row of the call that launched the kernel, NO_CODE where that cannot be told
    kernel    int32[r]  row of the kernel, NO_CODE if none is recorded (or not told)
    operator  int32[r]  row of the innermost operator around the launch, NO_CODE if there is none
    reason    why ranges have no launches; None if they have
    counters  name -> key of the argument that holds its values, in order of the alphabet
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
def ranges(trace: Trace) -> Ranges:
    """Empty where nothing was counted."""
    rows = rows_of_kind(trace, Kind.METRICS)
    if len(rows):  # Intel's metrics of kernels are no ranges
        rows = rows[name_mask(trace.strings, CATEGORY.__eq__)[trace.events.category[rows]]]
    if not len(rows):
        return _counted_kernels(trace)
    rows = _in_time(trace, rows)
    counters = _numbers(trace, rows)
    calls = _launches(trace)
    kernel = _kernels(trace, calls)
    reason = _mismatch(trace, rows, calls, kernel)
    if reason is not None:
        none = np.full(len(rows), NO_CODE, np.int32)
        return Ranges(rows, none, none, none, reason, counters)
    return Ranges(rows, calls, kernel, enclosing_operators(trace)[calls], None, counters)


def _counted_kernels(trace: Trace) -> Ranges:
    """Kernels with counters of rocprofv3."""
    counters = {key.removeprefix(PREFIX): key for key in sorted(trace.args) if key.startswith(PREFIX)}
    counters = {name: key for name, key in counters.items() if trace.args[key].kind in ("int", "float")}
    rows, launch = device_launches(trace)
    counted = np.isin(rows, rows_of_kind(trace, Kind.KERNEL))
    if counters:
        counted &= np.isin(rows, np.concatenate([trace.args[key].rows for key in counters.values()]))
    rows, launch = rows[counted], launch[counted]
    if not counters or not len(rows):
        none = np.empty(0, np.int32)
        return Ranges(none, none, none, none, None, {})
    order = np.argsort(trace.events.start[rows], kind="stable")
    rows, launch = rows[order], launch[order]
    operator = np.where(launch >= 0, enclosing_operators(trace)[launch], NO_CODE).astype(np.int32)
    return Ranges(rows, launch, rows, operator, None, counters, amd=True)


def _numbers(trace: Trace, rows: Int32) -> dict[str, str]:
    """Numeric arguments that any of the rows has."""
    return {
        key: key
        for key, column in sorted(trace.args.items())
        if column.kind in ("int", "float") and np.isin(rows, column.rows).any()
    }


def _in_time(trace: Trace, rows: Int32) -> Int32:
    ordered: Int32 = rows[np.argsort(trace.events.start[rows], kind="stable")]
    return ordered


def _launches(trace: Trace) -> Int32:
    """Calls that launch kernels, in order; of a runtime call and the driver call inside it the outer one."""
    rows = rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    named = name_mask(trace.strings, lambda text: _LAUNCH.match(text) is not None)
    rows = _in_time(trace, rows[named[trace.events.name[rows]]])
    ids = trace.arg_int("correlation", rows)
    _, first = np.unique(ids, return_index=True)
    again = np.ones(len(rows), np.bool_)
    again[first] = False
    single: Int32 = rows[~again | (ids == ABSENT)]
    return single


def _kernels(trace: Trace, calls: Int32) -> Int32:
    """int32[k]: the first kernel of each call, NO_CODE where none is recorded."""
    rows, launch = device_launches(trace)
    computes = np.isin(rows, rows_of_kind(trace, Kind.KERNEL))
    of_call = np.full(len(trace) + 1, NO_CODE, np.int32)
    of_call[launch[computes][::-1]] = rows[computes][::-1]
    of_call[-1] = NO_CODE
    kernels: Int32 = of_call[calls]
    return kernels


def _mismatch(trace: Trace, rows: Int32, calls: Int32, kernel: Int32) -> str | None:
    """Why the n-th range is not that of the n-th launch."""
    if len({trace.threads[code].pid for code in trace.events.thread[rows].tolist()}) > 1:
        return "kernels of several devices were counted, and ranges do not say which launch was on which"
    if len(rows) != len(calls):
        return (
            f"{len(rows)} counted ranges for {len(calls)} launches of kernels: which belongs to which cannot be "
            "told (`profiler_measure_per_kernel=True` counts every kernel)"
        )
    named = trace.events.name[rows] != trace.events.name[kernel]
    lost = name_mask(trace.strings, MISSING.__eq__)[trace.events.name[rows]]
    if (named & (kernel >= 0) & ~lost).any():
        return "the ranges are not named as the kernels that were launched, in their order"
    return None
