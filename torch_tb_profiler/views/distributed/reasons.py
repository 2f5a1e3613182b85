"""Why fields of the Distributed tab are null."""

from __future__ import annotations

from torch_tb_profiler.analyses.distributed.comparison import RankComparison, find_missing_data
from torch_tb_profiler.model.vendors.recording_options import RecordingTopic, producer_option
from torch_tb_profiler.views._shared.text import Text, reason_texts

_ALONE = "only one rank was read, so there is none to compare it with"
_NOT_COMPARED = "no other rank recorded a matching operation with a time"


def null_reasons(comparison: RankComparison) -> dict[str, Text]:
    """Return why fields are null, by field; only fields that are null somewhere are included."""
    missing = find_missing_data(comparison)
    reasons: dict[str, str] = {}
    if missing.alone or missing.uncompared:
        why = _ALONE if missing.alone else _NOT_COMPARED
        reasons.update(dict.fromkeys(("transfer_ns", "waiting_ns"), why))
        reasons["lower_bound"] = "the time includes waiting for other ranks, so the bandwidth is at least this"
    if missing.alone or missing.unaligned:
        why = _ALONE if missing.alone else "fewer than two of its ranks recorded it on one clock"
        reasons.update(
            dict.fromkeys(("skew_ns", "mean_skew_ns", "max_skew_ns", "after_first_ns", "start_skew_ns"), why)
        )
        reasons.update(dict.fromkeys(("late_worker", "late_rank", "lateness_ns", "heat_map"), why))
    elif missing.unattributed:
        why = "the arrivals are closer together than the error of the clocks"
        reasons["late_worker"] = reasons["late_rank"] = why
    if missing.unsized:
        size = f"the trace doesn't record the size ({recording_options(comparison, 'sizes')})"
        reasons.update(dict.fromkeys(("bytes", "message_bytes", "out_bytes"), size))
        reasons["algorithm_bandwidth"] = reasons["bus_bandwidth"] = (
            "size, number of ranks, or device time isn't recorded, or the collective moves no data"
        )
    if missing.untimed:
        reasons["latency_ns"] = reasons["exposed_ns"] = "the operation's kernel isn't in the trace"
    if missing.unknown_members:
        reasons["ranks"] = (
            "the traces don't record which ranks are in the process group; operations of several groups may "
            "appear as one"
        )
    if missing.unnamed_groups:
        reasons["name"] = "the trace doesn't record in which process group it communicates"
    if missing.stepless:
        option = recording_options(comparison, "steps")
        reasons["steps"] = f"a rank recorded no steps ({option}), so its recording counts as one step"
    if missing.host_computation:
        reasons["computation_ns"] = "of a rank without kernels, computation is CPU Exec on the host"
    if not comparison.arrivals.attributable.any():
        reasons["stragglers"] = "no collective has a last arrival that can be attributed to a rank"
    return reason_texts(reasons)


_PAGED_PARTS = {
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
"""Lists that the payload of a large job leaves out -> the part of the tab that has their rows."""


def paged_reasons(ranks: int) -> dict[str, Text]:
    """Return which part has the rows of each list that the payload of a large job leaves out."""
    return reason_texts(
        {
            name: f"{ranks:,} ranks are too many for this list; `distributed/{part}` has them page by page"
            for name, part in _PAGED_PARTS.items()
        }
    )


def recording_options(comparison: RankComparison, topic: RecordingTopic) -> str:
    """Return the option that records `topic`, for every producer of the traces."""
    summaries = [source.summary for source in comparison.sources]
    options = (
        producer_option(each.producer, topic, on_ascend=any(device.kind == "NPU" for device in each.devices))
        for each in summaries
    )
    return "; ".join(dict.fromkeys(options))
