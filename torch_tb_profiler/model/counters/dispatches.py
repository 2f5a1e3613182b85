"""Counters of rocprofv3: one value for each dispatch of a kernel, in arguments of the kernels.

A recording of rocprofv3 contains them itself. Counter files beside a trace count the same program, usually in
another run (each kernel alone, once for each set of counters), so that only the order of kernels joins them:

    trace, by launch         gemm  relu  gemm  relu
    file, by dispatch  fill  gemm  relu  gemm  relu  gemm  relu      matches at 2 places: means over both

Only kernels whose name is in both count: the tool can be told to count some kernels alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.trace import ArgColumn, Float64, Int32, Int64, Trace

COUNTER_PREFIX = "counter "
"""Start of the arguments that hold counters; the rest is the counter's name."""

COUNTER_FILES_NOTE = "counters_beside"
"""Kind of the health note of a trace whose counters come from files beside it."""

_MAX_PLACES = 100
"""More places do not improve the means."""

_OTHER_KERNELS = (
    "the counter files beside the trace are left out: they are of other kernels, or of the same in another order"
)


class DispatchCounters(msgspec.Struct, frozen=True):
    """The d dispatches of a counter file, in their order.

    kernels   name of the kernel of each
    counters  name -> float64[d], NaN where a dispatch lacks it
    """

    kernels: Sequence[str]
    counters: dict[str, Float64]


def with_counters(trace: Trace, files: Sequence[DispatchCounters]) -> Trace:
    """Return the trace with the counters of files beside it, and a health note on how they were joined.

    Counters that the trace contains itself stay; a file whose kernels come in another order is left out.
    """
    if not files:
        return trace
    health = HealthLog()
    kernels = _find_kernels_by_launch(trace)
    names = [_normalize_name(trace.strings[code]) for code in trace.events.name[kernels].tolist()]
    args = dict(trace.args)
    for file in files:
        counted, places = _match_dispatches(names, [_normalize_name(name) for name in file.kernels])
        if len(places) == 0:
            health.add("counters_left_out", "warning", _OTHER_KERNELS)
            continue
        health.add(COUNTER_FILES_NOTE, "info", _join_message(len(places)))
        rows = kernels[counted]
        order = np.argsort(rows)
        for name, values in file.counters.items():
            # A value that one place lacks is unknown: the mean of the others would be over another set.
            means = values[places].mean(axis=0)[order]
            is_known = np.isfinite(means)
            args.setdefault(COUNTER_PREFIX + name, ArgColumn("float", rows[order][is_known], means[is_known]))
    return replace(trace, args=args, health=(*trace.health, *health.notes()))


def _join_message(places: int) -> str:
    message = "counters of rocprofv3 in files beside the trace were joined with its kernels by their order"
    if places == 1:
        return message
    return (
        f"{message}; the kernels occur {places} times in the files, and each has the means over these {places} "
        "dispatches"
    )


def _find_kernels_by_launch(trace: Trace) -> Int32:
    """Return int32[k]: kernels in order of their launches; those of one launch, or without any, by their start."""
    rows, launch = device_launches(trace)
    is_kernel = np.isin(rows, rows_of_kind(trace, Kind.KERNEL))
    rows, launch = rows[is_kernel], launch[is_kernel]
    start = trace.events.start[rows]
    launch_time = np.where(launch >= 0, trace.events.start[launch], start)
    ordered: Int32 = rows[np.lexsort((start, launch_time))]
    return ordered


def _normalize_name(name: str) -> str:
    """Drop spaces and the suffix `.kd` of symbols, which the two tools write differently."""
    return "".join(name.split()).removesuffix(".kd")


def _match_dispatches(kernels: Sequence[str], dispatches: Sequence[str]) -> tuple[Int64, Int64]:
    """Return (int64[t] counted kernels, int64[p, t] the dispatch of each at every place where the order matches).

    There is no place if less than half of the dispatches are of kernels of the trace: then the file is of another
    program.
    """
    common = set(kernels) & set(dispatches)
    codes = {name: code for code, name in enumerate(sorted(common))}
    counted, kernel_codes = _encode_names(kernels, codes)
    positions, dispatch_codes = _encode_names(dispatches, codes)
    places: list[Int64] = []
    if len(counted) and 2 * len(positions) >= len(dispatches):
        text, part = dispatch_codes.tobytes(), kernel_codes.tobytes()
        width, at = kernel_codes.itemsize, text.find(part)
        while at >= 0 and len(places) < _MAX_PLACES:
            if at % width == 0:
                places.append(positions[at // width : at // width + len(counted)])
            at = text.find(part, at + 1)
    return counted, np.array(places, np.int64).reshape(len(places), len(counted))


def _encode_names(names: Sequence[str], codes: dict[str, int]) -> tuple[Int64, Int32]:
    """Return (positions of the names that have a code, their codes)."""
    encoded = np.array([codes.get(name, -1) for name in names], np.int32)
    positions = np.flatnonzero(encoded >= 0)
    return positions, encoded[positions]
