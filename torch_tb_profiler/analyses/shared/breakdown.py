"""How each step and an average one are spent: eight categories, each counting only time not counted before it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.intervals import NO_INTERVALS, Intervals, covered_time, union
from torch_tb_profiler.base.markers import is_data_loading
from torch_tb_profiler.base.memo import derived, stored
from torch_tb_profiler.model.calls.missing import missing_copies_reason, missing_kernels_reason
from torch_tb_profiler.model.communication.events import (
    communication_kernels,
    computing_kernels,
    host_communication_calls,
)
from torch_tb_profiler.model.kinds import (
    DEVICE_KINDS,
    Kind,
    event_intervals,
    rows_named,
    rows_of_kind,
    step_marks,
)
from torch_tb_profiler.model.steps import Steps, has_host_events, steps
from torch_tb_profiler.model.trace import Int64, Trace, rows_mask
from torch_tb_profiler.model.trainer import trainer_loading
from torch_tb_profiler.model.vendors.recording_options import recording_option

CATEGORIES = (
    "kernel",
    "memcpy",
    "memset",
    "communication",
    "runtime",
    "dataloader",
    "cpu_exec",
    "other",
)
"""Categories in order of priority: an instant counts for the first one that covers it."""

MISSING_HOST = "the profiler didn't record the host"
TRAINER_ONLY_REASON = "the trainer recorded its own loop; the PyTorch profiler did not run beside it"


MAX_STEPS = 2000
"""Of more steps than this an overview lists a selection: a chart has no room for more, and 100,000 take 21 MB."""


class Breakdown(msgspec.Struct, frozen=True):
    """Time per category and step.

    times    category -> int64[steps] ns; over all categories they sum to the steps' durations exactly
    unknown  category -> why its time is unknown (it is then part of `other`)
    """

    steps: Steps
    times: Mapping[str, Int64]
    unknown: Mapping[str, str]

    @property
    def durations(self) -> Int64:
        """Return int64[steps] ns."""
        return self.steps.ends - self.steps.starts


@stored
def breakdown(trace: Trace) -> Breakdown:
    """Compute the time of each step by category."""
    return Breakdown(steps(trace), times_by_category(trace), _find_unknown(trace))


def times_by_category(trace: Trace, omitted: Collection[str] = ()) -> dict[str, Int64]:
    """Return category -> int64[steps] ns, as if nothing of the `omitted` categories had been recorded.

    A category's time is what the union of it and all before it covers, less what those before cover: so the
    categories sum to the step by construction.
    """
    spans = steps(trace)
    times: dict[str, Int64] = {}
    counted = np.zeros(len(spans.starts), np.int64)
    covering: list[Intervals] = []
    role = role_intervals(trace)
    for category in CATEGORIES[:-1]:
        if category not in omitted and len(role[category].starts):
            covering = [union(*covering, role[category])]
            reach = covered_time(covering[0], spans.starts, spans.ends)
        else:
            reach = counted
        times[category] = reach - counted
        counted = reach
    times["other"] = spans.ends - spans.starts - counted
    return times


@derived
def role_intervals(trace: Trace) -> dict[str, Intervals]:
    """Return the merged time of each category but `other`, over all threads and devices of the trace.

    Copies have none where kernels are missing: whether a kernel ran at the same time is unknown.
    """
    kernels_missing = missing_kernels_reason(trace) is not None
    host = rows_of_kind(trace, Kind.CPU_OP, Kind.ANNOTATION)
    loading = rows_named(trace, is_data_loading, Kind.CPU_OP, Kind.ANNOTATION)
    outside = rows_mask(trace, np.concatenate([loading, step_marks(trace), host_communication_calls(trace)]))
    return {
        "kernel": event_intervals(trace, computing_kernels(trace)),
        "memcpy": NO_INTERVALS if kernels_missing else event_intervals(trace, rows_of_kind(trace, Kind.MEMCPY)),
        "memset": NO_INTERVALS if kernels_missing else event_intervals(trace, rows_of_kind(trace, Kind.MEMSET)),
        "communication": event_intervals(
            trace, np.concatenate([communication_kernels(trace), host_communication_calls(trace)])
        ),
        "runtime": event_intervals(trace, rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)),
        "dataloader": event_intervals(trace, np.concatenate([loading, trainer_loading(trace)])),
        "cpu_exec": event_intervals(trace, host[~outside.take(host)]),
    }


def listed_steps(times: Breakdown) -> list[int]:
    """Return the numbers of at most about MAX_STEPS steps in order: all, or of each stretch the longest.

    The complete ones that come first and last, or have the least or the most of the time or of a category, always
    stay, so that what is derived from the list is true of all steps.
    """
    return representatives(times.durations, times.steps.complete, tuple(times.times.values()))


def representatives(
    durations: npt.ArrayLike, counted: npt.ArrayLike, columns: Sequence[npt.ArrayLike] = ()
) -> list[int]:
    """Return at most about MAX_STEPS numbers of k steps in order: all, or of each stretch the longest.

    durations  int64[k]
    counted    bool[k]; of these the first and last stay, and those with the least or the most of a column
    """
    durations, among = np.asarray(durations), np.flatnonzero(counted)
    count = len(durations)
    if count <= MAX_STEPS:
        return list(range(count))
    size = -(-count // MAX_STEPS)
    listed = {first + int(np.argmax(durations[first : first + size])) for first in range(0, count, size)}
    if len(among):
        listed |= {int(among[0]), int(among[-1])}
        for values in (durations, *columns):
            own = np.asarray(values)[among]
            listed |= {int(among[np.argmin(own)]), int(among[np.argmax(own)])}
    return sorted(listed)


def missing_host_reason(trace: Trace) -> str:
    """Return why nothing is known about the host."""
    return f"{MISSING_HOST}; {recording_option(trace, 'host')}"


def _find_unknown(trace: Trace) -> dict[str, str]:
    if not has_host_events(trace) and len(rows_of_kind(trace, Kind.TRAINER)):
        work = () if len(rows_of_kind(trace, *DEVICE_KINDS)) else ("kernel", "memcpy", "memset", "communication")
        loading = () if len(trainer_loading(trace)) else ("dataloader",)
        return dict.fromkeys((*work, "runtime", *loading, "cpu_exec"), TRAINER_ONLY_REASON)
    unknown = {}
    if (kernels := missing_kernels_reason(trace)) is not None:
        # Only kernels show communication, unless the host itself communicates.
        communication = () if len(host_communication_calls(trace)) else ("communication",)
        unknown = dict.fromkeys(("kernel", "memcpy", "memset", *communication), kernels)
    elif (copies := missing_copies_reason(trace)) is not None:
        unknown = {"memcpy": copies}
    if not has_host_events(trace):
        unknown.update(dict.fromkeys(("runtime", "dataloader", "cpu_exec"), missing_host_reason(trace)))
    return unknown
