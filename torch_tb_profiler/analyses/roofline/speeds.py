"""Achieved rates of the rows of other tables, and how close they are to the device's limit."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.roofline.summary import Bound, RooflineSums, sum_rows
from torch_tb_profiler.analyses.roofline.table import WorkItems, items_of_calls, items_of_events
from torch_tb_profiler.analyses.shared.grouping import group, input_shape_texts
from torch_tb_profiler.model.counters.ranges import counter_ranges
from torch_tb_profiler.model.kinds import DEVICE_KINDS, rows_of_kind
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace
from torch_tb_profiler.model.vendors.recording_options import missing_device_work_reason, recording_option
from torch_tb_profiler.model.work.measured import measured_event_work
from torch_tb_profiler.model.work.operator_work import operator_work
from torch_tb_profiler.model.work.ownership import work_owners

COUNTERS_ONLY = (
    "hardware counters were recorded instead of kernel times: the range profiler runs every kernel alone, several "
    "times"
)
NO_OWN_WORK = "it has no device work of its own: it launched none, or a modeled operator inside or around it did"


class Speed(msgspec.Struct, frozen=True):
    """The achieved rates of a row while it runs; None is unknown.

    flops_per_s, bytes_per_s  over those of its calls whose work is known
    efficiency  attainable over measured time; above 1 if a cache served it or bytes are estimated
    bound       what limits most of its time
    measured    hardware counters measured FLOPs or bytes of some of its calls
    reason      why something is unknown
    """

    flops_per_s: float | None
    bytes_per_s: float | None
    efficiency: float | None
    bound: Bound
    measured: bool
    reason: str | None


def missing_work_reason(trace: Trace) -> str | None:
    """Return why `trace` has no FLOP counts, or None if it has."""
    if not len(rows_of_kind(trace, *DEVICE_KINDS)):
        return COUNTERS_ONLY if len(counter_ranges(trace)) else missing_device_work_reason(trace)
    if len(input_shape_texts(trace)) or any(any(each.inputs[:1]) for each in work_owners(trace).captures):
        return None
    return None if measured_event_work(trace) is not None else _missing_shapes_reason(trace)


def _missing_shapes_reason(trace: Trace) -> str:
    return f"no input shapes were recorded, so FLOPs and bytes are unknown ({recording_option(trace, 'shapes')})"


def operator_speeds(trace: Trace, rows: Int32, which: Int64, count: int) -> list[Speed | None]:
    """Return the speeds of `count` groups of operators.

    `which` int64[k] is the group of each of `rows` int32[k], ascending.

    A group has the calls that own device work. All are None if the trace has no FLOP counts.
    """
    if missing_work_reason(trace) is not None:
        return [None] * count
    own = operator_work(trace).owners.calls
    at = np.minimum(np.searchsorted(rows, own), max(len(rows) - 1, 0))
    mine = np.flatnonzero(rows[at] == own) if len(rows) else at[:0]
    return _compute_speeds(trace, items_of_calls(trace, mine, ""), which[at[mine]], count)


def kernel_speeds(trace: Trace, rows: Int32, which: Int64, count: int) -> list[Speed | None]:
    """Return the speeds of groups of device events; a call shares its work among its kernels."""
    if missing_work_reason(trace) is not None:
        return [None] * count
    at = np.searchsorted(operator_work(trace).owners.events, rows)
    return _compute_speeds(trace, items_of_events(trace, at, ""), which, count)


def place_speeds(trace: Trace, code: Int32, parent: Int32) -> list[Speed | None]:
    """Return the speeds of m modules, each with all modules inside it.

    `code` int32[n] is the module of each event, `parent` int32[m] the module around each module.
    """
    if missing_work_reason(trace) is not None:
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
    return _compute_speeds(trace, items_of_calls(trace, every, ""), which.astype(np.int64), len(parent))


def class_speeds(trace: Trace, code: Int32, classes: Sequence[Sequence[int]]) -> list[Speed | None]:
    """Return the speeds of module classes without nested modules; `classes` lists the modules of each."""
    if missing_work_reason(trace) is not None:
        return [None] * len(classes)
    of_place = np.zeros(1 + max((max(places) for places in classes), default=0), np.int64)
    for number, places in enumerate(classes):
        of_place[list(places)] = number
    place = code[operator_work(trace).owners.calls]
    calls = np.flatnonzero(place != NO_CODE)
    return _compute_speeds(trace, items_of_calls(trace, calls, ""), of_place[place[calls]], len(classes))


def _compute_speeds(trace: Trace, items: WorkItems, which: Int64, count: int) -> list[Speed | None]:
    speeds: list[Speed | None] = [Speed(None, None, None, "unknown", False, NO_OWN_WORK)] * count
    if len(which) == 0:
        return speeds
    groups = group(which)
    totals = sum_rows(trace, items, groups, "")
    for i, row in enumerate(which[groups.first].tolist()):
        speeds[row] = row_speed(totals, i)
    return speeds


def row_speed(totals: RooflineSums, i: int) -> Speed:
    """Return the speed of row `i`."""
    return Speed(
        flops_per_s=_per_second(totals.flops[i], totals.flops_ns[i]),
        bytes_per_s=_per_second(totals.bytes[i], totals.bytes_ns[i]),
        efficiency=_ratio_or_none(totals.roof[i], totals.roof_ns[i]),
        bound=totals.bound[i],
        measured=totals.measured[i],
        reason=totals.reason[i],
    )


def _per_second(amount: float, ns: int) -> float | None:
    share = _ratio_or_none(amount, ns)
    return None if share is None else 1e9 * share


def _ratio_or_none(part: float, whole: int) -> float | None:
    return None if not np.isfinite(part) or whole == 0 else float(part) / int(whole)
