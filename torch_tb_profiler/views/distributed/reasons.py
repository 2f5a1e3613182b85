"""Why fields of the distributed view are null."""

from __future__ import annotations

from torch_tb_profiler.analyses.distributed.comparison import RankComparison, find_missing_data
from torch_tb_profiler.model.vendors.recording_options import RecordingTopic, producer_option
from torch_tb_profiler.views._shared.text import Text, reason_texts

_ALONE = "there is only one rank here; the traces of the others are needed"
_NOT_COMPARED = "no other rank recorded the same operation alike, with a time"


def reasons(comparison: RankComparison) -> dict[str, Text]:
    """Field -> why it is null, where some are."""
    gap = find_missing_data(comparison)
    reason: dict[str, str] = {}
    if gap.alone or gap.uncompared:
        why = _ALONE if gap.alone else _NOT_COMPARED
        reason.update(dict.fromkeys(("transfer_ns", "waiting_ns"), why))
        reason["lower_bound"] = "the time includes waiting for other ranks, so the bandwidth is at least this"
    if gap.alone or gap.unaligned:
        why = _ALONE if gap.alone else "too few of its ranks are on one clock"
        reason.update(
            dict.fromkeys(("skew_ns", "mean_skew_ns", "max_skew_ns", "after_first_ns", "start_skew_ns"), why)
        )
        reason.update(dict.fromkeys(("late_worker", "late_rank", "lateness_ns", "heat_map"), why))
    elif gap.unattributed:
        why = "the arrivals lie closer together than the error of the clocks"
        reason["late_worker"] = reason["late_rank"] = why
    if gap.unsized:
        size = f"the trace does not record the size ({options(comparison, 'sizes')})"
        reason.update(dict.fromkeys(("bytes", "message_bytes", "out_bytes"), size))
        reason["algorithm_bandwidth"] = reason["bus_bandwidth"] = (
            "size, number of ranks, or the device's time is not recorded, or the collective moves no data"
        )
    if gap.untimed:
        reason["latency_ns"] = reason["exposed_ns"] = "the operation's kernel is not in the trace"
    if gap.unknown_members:
        reason["ranks"] = (
            "the traces do not record which ranks are in the process group; "
            "operations of several groups may appear as one"
        )
    if gap.unnamed_groups:
        reason["name"] = "the trace does not record in which process group it communicates"
    if gap.stepless:
        reason["steps"] = f"no step is recorded ({options(comparison, 'steps')}): a whole recording is one step"
    if gap.host_computation:
        reason["computation_ns"] = "without kernels, computation is the host's CPU Exec"
    if not comparison.arrivals.attributable.any():
        reason["stragglers"] = "no collective has a last arrival that can be attributed to a rank"
    return reason_texts(reason)


_PARTS = {
    "ranks": "ranks",
    "nodes": "ranks",
    "averages": "ranks",
    "average_waiting": "ranks",
    "overview": "steps",
    "waiting": "steps",
    "families": "families",
    "collectives": "operations",
    "groups": "groups",
    "heat_map": "map",
}


def elsewhere(ranks: int) -> dict[str, Text]:
    """List of the payload -> which part has it page by page, of a job so large that it is left out."""
    return reason_texts(
        {name: f"of {ranks:,} ranks; `distributed/{part}` has them page by page" for name, part in _PARTS.items()}
    )


def options(comparison: RankComparison, topic: RecordingTopic) -> str:
    """Of those who wrote the traces."""
    producers = dict.fromkeys(source.summary.producer for source in comparison.sources)
    return "; ".join(producer_option(producer, topic) for producer in producers)
