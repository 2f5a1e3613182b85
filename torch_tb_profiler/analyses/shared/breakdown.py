"""How each step and an average one are spent: eight categories, each counting only time not counted before it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import median
from torch_tb_profiler.base.intervals import NO_INTERVALS, Intervals, covered_time, merge, union
from torch_tb_profiler.base.markers import is_data_loading, is_step
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.missing import missing_copies_reason, missing_kernels_reason
from torch_tb_profiler.model.communication.events import host_communication_calls, is_communication_kernel
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.steps import Steps, has_host_events, steps
from torch_tb_profiler.model.trace import ROCPROF, Bool, Float64, Int32, Int64, Trace, name_mask
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

MISSING_HOST = "the profiler did not record the host"
TRAINER_ONLY_REASON = "the trainer recorded its own loop; the PyTorch profiler did not run beside it"


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


@derived
def breakdown(trace: Trace) -> Breakdown:
    """Compute the time of each step by category.

    A category's time is what the union of it and all before it covers, less what those before cover: so the
    categories sum to the step by construction.
    """
    spans = steps(trace)
    times: dict[str, Int64] = {}
    counted = np.zeros(len(spans.starts), np.int64)
    covering: list[Intervals] = []
    role = role_intervals(trace)
    for category in CATEGORIES[:-1]:
        if len(role[category].starts):
            covering = [union(*covering, role[category])]
            reach = covered_time(covering[0], spans.starts, spans.ends)
        else:
            reach = counted
        times[category] = reach - counted
        counted = reach
    times["other"] = spans.ends - spans.starts - counted
    return Breakdown(spans, times, _unknown(trace))


@derived
def role_intervals(trace: Trace) -> dict[str, Intervals]:
    """Return the merged time of each category but `other`, over all threads and devices of the trace.

    Copies have none where kernels are missing: whether a kernel ran at the same time is unknown.
    """
    kernels, kernels_missing = rows_of_kind(trace, Kind.KERNEL), missing_kernels_reason(trace) is not None
    communicates = is_communication_kernel(trace)[kernels]
    host = rows_of_kind(trace, Kind.CPU_OP, Kind.ANNOTATION)
    name = trace.events.name[host]
    loading = name_mask(trace.strings, is_data_loading)[name]
    outside = loading | np.isin(host, host_communication_calls(trace)) | name_mask(trace.strings, is_step)[name]
    return {
        "kernel": _merged(trace, kernels[~communicates]),
        "memcpy": NO_INTERVALS if kernels_missing else _merged(trace, rows_of_kind(trace, Kind.MEMCPY)),
        "memset": NO_INTERVALS if kernels_missing else _merged(trace, rows_of_kind(trace, Kind.MEMSET)),
        "communication": _merged(trace, np.concatenate([kernels[communicates], host_communication_calls(trace)])),
        "runtime": _merged(trace, rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)),
        "dataloader": _merged(trace, np.concatenate([host[loading], trainer_loading(trace)])),
        "cpu_exec": _merged(trace, host[~outside]),
    }


def _merged(trace: Trace, rows: Int32) -> Intervals:
    return merge(trace.events.start[rows], event_ends(trace)[rows])


def missing_host_reason(trace: Trace) -> str:
    """Return why nothing is known about the host."""
    return f"{MISSING_HOST}; {recording_option(trace, 'host')}"


def _unknown(trace: Trace) -> dict[str, str]:
    if not has_host_events(trace) and len(rows_of_kind(trace, Kind.TRAINER)):
        work = () if len(rows_of_kind(trace, *DEVICE_KINDS)) else ("kernel", "memcpy", "memset", "communication")
        loading = () if len(trainer_loading(trace)) else ("dataloader",)
        return dict.fromkeys((*work, "runtime", *loading, "cpu_exec"), TRAINER_ONLY_REASON)
    unknown = {}
    if (kernels := missing_kernels_reason(trace)) is not None:
        # With rocprofv3 only kernels show communication; elsewhere calls of the host count where no kernel does.
        communication = (
            ("communication",) if trace.producer == ROCPROF and not len(host_communication_calls(trace)) else ()
        )
        unknown = dict.fromkeys(("kernel", "memcpy", "memset", *communication), kernels)
    elif (copies := missing_copies_reason(trace)) is not None:
        unknown = {"memcpy": copies}
    if not has_host_events(trace):
        unknown.update(dict.fromkeys(("runtime", "dataloader", "cpu_exec"), missing_host_reason(trace)))
    return unknown


OUTLIER_SHARE = 0.2
"""An outlier is further from the median step than this share of it,"""

OUTLIER_DEVIATIONS = 5.0
"""than this many median deviations,"""

MAX_OUTLIER_SHARE = 0.25
"""and one of at most this share of the steps."""


DEVICE_CATEGORIES = ("kernel", "memcpy", "memset", "communication")


class AverageStep(msgspec.Struct, frozen=True):
    """Means over the complete steps in ns, of the duration and of the time in each category.

    outliers  indices of the steps whose duration is far from all others
    filling   whether the first step fills the pipeline: host and device worked in it as in the others, but the
              device falls behind the host in it, which its end includes
    typical   mean duration without these: the time from step to step
    """

    duration: float
    categories: Mapping[str, float]
    steps: int
    outliers: tuple[int, ...]
    filling: bool
    typical: float


def average_step(breakdown: Breakdown) -> AverageStep | None:
    """Average the complete steps; None without any."""
    complete = breakdown.steps.complete
    if not complete.any():
        return None
    categories = {name: float(breakdown.times[name][complete].mean()) for name in CATEGORIES}
    indices = np.flatnonzero(complete)
    durations = breakdown.durations[complete].astype(np.float64)
    filling = _fills_pipeline(breakdown)
    rest = indices[1:] if filling else indices
    others = durations[1:] if filling else durations
    far = _outlying(others)
    return AverageStep(
        float(durations.mean()),
        categories,
        len(indices),
        tuple(rest[far].tolist()),
        filling,
        float(others[~far].mean()),
    )


def _fills_pipeline(breakdown: Breakdown) -> bool:
    """Return whether the first step is an outlier in which neither the host nor the device worked for longer."""
    spans = breakdown.steps
    if np.count_nonzero(spans.complete) < 3 or not spans.complete[0]:
        return False

    def is_typical(times: Int64) -> bool:
        return bool(times[0] <= (1 + OUTLIER_SHARE) * median(times[1:][spans.complete[1:]]))

    worked: Int64 = np.sum([breakdown.times[name] for name in DEVICE_CATEGORIES], axis=0)
    is_usual_work = is_typical(spans.host_ends - spans.host_starts) and is_typical(worked)
    return is_usual_work and bool(worked[0]) and not is_typical(breakdown.durations)


def _outlying(durations: Float64) -> Bool:
    """Return bool[steps]: the outliers, by their distance from the median in median deviations (Hampel 1974)."""
    middle = median(durations)
    deviations = np.abs(durations - middle)
    far: Bool = deviations > max(OUTLIER_SHARE * float(middle), OUTLIER_DEVIATIONS * median(deviations))
    return far if far.mean() <= MAX_OUTLIER_SHARE else np.zeros(len(durations), np.bool_)
