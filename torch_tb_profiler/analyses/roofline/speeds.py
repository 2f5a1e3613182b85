"""How fast the rows of other tables work, and how close that is to what their device can do."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.roofline.summary import Bound, Sums, sums
from torch_tb_profiler.analyses.roofline.table import Items, items_of_calls, items_of_events
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.analyses.shared.shapes import shape_texts
from torch_tb_profiler.model.counters.ranges import counter_ranges
from torch_tb_profiler.model.kinds import DEVICE_KINDS, rows_of_kind
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace
from torch_tb_profiler.model.vendors.recording_options import missing_device_work_reason, recording_option
from torch_tb_profiler.model.work.measured import measured_event_work
from torch_tb_profiler.model.work.operator_work import operator_work

COUNTED = (
    "hardware counters were recorded instead of the times of kernels: the range profiler runs every kernel alone, "
    "and several times"
)
NO_WORK = "no device work counts as its own: it launched none, or a modeled operator inside or around it did"


class Speed(msgspec.Struct, frozen=True):
    """How fast a row works while it runs; None is unknown.

    flops_per_s, bytes_per_s  of its calls of which they are known
    efficiency  attainable over measured time; above 1 where a cache served it, or bytes are estimated
    bound       what most of its time is bound by
    measured    hardware counters tell FLOPs or bytes of some of its calls
    reason      why something is unknown
    """

    flops_per_s: float | None
    bytes_per_s: float | None
    efficiency: float | None
    bound: Bound
    measured: bool
    reason: str | None


def untold(trace: Trace) -> str | None:
    """Why a trace says nothing about work; None if it does."""
    if not len(rows_of_kind(trace, *DEVICE_KINDS)):
        return COUNTED if len(counter_ranges(trace)) else missing_device_work_reason(trace)
    return None if len(shape_texts(trace)) or measured_event_work(trace) is not None else _no_shapes(trace)


def _no_shapes(trace: Trace) -> str:
    return f"no input shapes are recorded, so FLOPs and bytes are unknown ({recording_option(trace, 'shapes')})"


def operator_speeds(trace: Trace, rows: Int32, which: Int64, count: int) -> list[Speed | None]:
    """Of `count` groups of operators: `which` int64[k] is the group of each of `rows` int32[k], ascending.

    A group has the calls that own device work. All None where the trace says nothing about work.
    """
    if untold(trace) is not None:
        return [None] * count
    own = operator_work(trace).owners.calls
    at = np.minimum(np.searchsorted(rows, own), max(len(rows) - 1, 0))
    mine = np.flatnonzero(rows[at] == own) if len(rows) else at[:0]
    return _speeds(trace, items_of_calls(trace, mine, ""), which[at[mine]], count)


def kernel_speeds(trace: Trace, rows: Int32, which: Int64, count: int) -> list[Speed | None]:
    """Of groups of device events, as `operator_speeds`; a call of several kernels shares its work among them."""
    if untold(trace) is not None:
        return [None] * count
    at = np.searchsorted(operator_work(trace).owners.events, rows)
    return _speeds(trace, items_of_events(trace, at, ""), which, count)


def place_speeds(trace: Trace, code: Int32, parent: Int32) -> list[Speed | None]:
    """Of the m places of a model with all places inside them: `code` int32[n] of events, `parent` int32[m]."""
    if untold(trace) is not None:
        return [None] * len(parent)
    calls = np.arange(len(operator_work(trace).owners.calls))
    place = code[operator_work(trace).owners.calls]
    pairs: list[tuple[Int64, Int32]] = []
    while (inside := place != NO_CODE).any():
        calls, place = calls[inside], place[inside]
        pairs.append((calls, place))
        place = parent[place]
    which = np.concatenate([each for _, each in pairs]) if pairs else calls[:0]
    every = np.concatenate([each for each, _ in pairs]) if pairs else calls[:0]
    return _speeds(trace, items_of_calls(trace, every, ""), which.astype(np.int64), len(parent))


def class_speeds(trace: Trace, code: Int32, classes: Sequence[Sequence[int]]) -> list[Speed | None]:
    """Of classes of places, without the places inside: `classes` are the places of each, `code` as above."""
    if untold(trace) is not None:
        return [None] * len(classes)
    of_place = np.zeros(1 + max((max(places) for places in classes), default=0), np.int64)
    for number, places in enumerate(classes):
        of_place[list(places)] = number
    place = code[operator_work(trace).owners.calls]
    calls = np.flatnonzero(place != NO_CODE)
    return _speeds(trace, items_of_calls(trace, calls, ""), of_place[place[calls]], len(classes))


def _speeds(trace: Trace, items: Items, which: Int64, count: int) -> list[Speed | None]:
    speeds: list[Speed | None] = [Speed(None, None, None, "unknown", False, NO_WORK)] * count
    if len(which) == 0:
        return speeds
    groups = group(which)
    totals = sums(trace, items, groups, "")
    for i, row in enumerate(which[groups.first].tolist()):
        speeds[row] = speed(totals, i)
    return speeds


def speed(totals: Sums, i: int) -> Speed:
    """Of one row."""
    return Speed(
        flops_per_s=_per_second(totals.flops[i], totals.flops_ns[i]),
        bytes_per_s=_per_second(totals.bytes[i], totals.bytes_ns[i]),
        efficiency=_over(totals.roof[i], totals.roof_ns[i]),
        bound=totals.bound[i],
        measured=totals.measured[i],
        reason=totals.reason[i],
    )


def _per_second(amount: float, ns: int) -> float | None:
    share = _over(amount, ns)
    return None if share is None else 1e9 * share


def _over(part: float, whole: int) -> float | None:
    return None if not np.isfinite(part) or whole == 0 else float(part) / int(whole)
