"""Counters of rocprofv3: one value for each dispatch of a kernel, in arguments of the kernels.

A recording of rocprofv3 holds them itself. Files of counters beside a trace count the same program, as a rule in
another run (each kernel alone, once for each set of counters), so nothing but the order joins them:

    trace, by launch         gemm  relu  gemm  relu
    file, by dispatch  fill  gemm  relu  gemm  relu  gemm  relu      fits at 2 places: means over both

Of both only kernels count whose name the other one has: the tool can be told to count some kernels alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np

from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.trace import ArgColumn, Float64, Int32, Int64, Trace

PREFIX = "counter "
"""Of the argument that holds a counter; the rest is its name."""

BESIDE = "counters_beside"
"""Kind of the note of a trace whose counters come from files beside it."""

_MOST_PLACES = 100
"""More do not make the means better."""

_OTHER_KERNELS = (
    "counters that lie beside the trace are of other kernels than it has, or of the same in another order: they "
    "are left out"
)


class Dispatches(msgspec.Struct, frozen=True):
    """Dispatches of a file of counters, in their order.

    kernels   of each the name
    counters  name -> float64[d], NaN where a dispatch lacks it
    """

    kernels: Sequence[str]
    counters: dict[str, Float64]


def with_counters(trace: Trace, files: Sequence[Dispatches]) -> Trace:
    """The trace with the counters of files that lie beside it, and a note on how they were joined.

    What the trace holds itself stays; a file whose kernels come in another order is left out.
    """
    if not files:
        return trace
    health = HealthLog()
    kernels = _as_launched(trace)
    names = [_plain(trace.strings[code]) for code in trace.events.name[kernels].tolist()]
    args = dict(trace.args)
    for file in files:
        taken, places = _fit(names, [_plain(name) for name in file.kernels])
        if len(places) == 0:
            health.add("counters_left_out", "warning", _OTHER_KERNELS)
            continue
        health.add(BESIDE, "info", _joined(len(places)))
        rows = kernels[taken]
        order = np.argsort(rows)
        for name, values in file.counters.items():
            # A value that one place lacks is unknown: the mean of the others would be of another set.
            means = values[places].mean(axis=0)[order]
            known = np.isfinite(means)
            args.setdefault(PREFIX + name, ArgColumn("float", rows[order][known], means[known]))
    return replace(trace, args=args, health=(*trace.health, *health.notes()))


def _joined(places: int) -> str:
    message = "counters of rocprofv3 lie beside the trace and were joined with its kernels by their order"
    again = (
        f"; they come {places} times in what was counted, and each has the means over these {places} dispatches"
    )
    return message + (again if places > 1 else "")


def _as_launched(trace: Trace) -> Int32:
    """int32[k]: kernels in order of their launches; those of one launch, and those without, as they began."""
    rows, launch = device_launches(trace)
    computes = np.isin(rows, rows_of_kind(trace, Kind.KERNEL))
    rows, launch = rows[computes], launch[computes]
    began = trace.events.start[rows]
    launched = np.where(launch >= 0, trace.events.start[launch], began)
    ordered: Int32 = rows[np.lexsort((began, launched))]
    return ordered


def _plain(name: str) -> str:
    """A name as both tools spell it: they set spaces differently, and a symbol ends in `.kd`."""
    return "".join(name.split()).removesuffix(".kd")


def _fit(kernels: Sequence[str], dispatches: Sequence[str]) -> tuple[Int64, Int64]:
    """(int64[t] which kernels count, int64[p, t] the dispatch of each at every place where their order fits).

    No place where less than half of the dispatches are of such kernels: they are those of another program.
    """
    both = set(kernels) & set(dispatches)
    codes = {name: code for code, name in enumerate(sorted(both))}
    taken, of_kernels = _coded(kernels, codes)
    counted, of_dispatches = _coded(dispatches, codes)
    places: list[Int64] = []
    if len(taken) and 2 * len(counted) >= len(dispatches):
        text, part = of_dispatches.tobytes(), of_kernels.tobytes()
        width, at = of_kernels.itemsize, text.find(part)
        while at >= 0 and len(places) < _MOST_PLACES:
            if at % width == 0:
                places.append(counted[at // width : at // width + len(taken)])
            at = text.find(part, at + 1)
    return taken, np.array(places, np.int64).reshape(len(places), len(taken))


def _coded(names: Sequence[str], codes: dict[str, int]) -> tuple[Int64, Int32]:
    """(which names have a code, their codes)"""
    coded = np.array([codes.get(name, -1) for name in names], np.int32)
    at = np.flatnonzero(coded >= 0)
    return at, coded[at]
