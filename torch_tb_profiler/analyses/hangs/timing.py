"""Running or stuck: how old the oldest pending call was when the dumps were written, or what two dumps share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from torch_tb_profiler.model.flight_recorder import CallKey, JobDumps, RankFile, RecorderDump

YOUNG_NS = 1_000_000_000
"""A pending call younger than this is a job that runs."""

Progress = Literal["stuck", "running", "slow", "unknown"]


@dataclass(frozen=True)
class Timing:
    """When the dumps were written, and what follows.

    progress    "running"  the oldest pending call is younger than `YOUNG_NS`, or it finished between two dumps
                "slow"     it is younger than an earlier pause of this job, so it may go on
                "stuck"    it is older, or pending in two dumps
                "unknown"  the storage has no times of the files
    as_of_ns    epoch time of the last dump, None if unknown
    waited_ns   age of the oldest pending call at that time, None if unknown or nothing is pending
    gap_ns      longest earlier pause of the job between two calls of one rank
    between_ns  time between two dumps, None if there is one
    """

    progress: Progress
    as_of_ns: int | None
    waited_ns: int | None
    gap_ns: int
    between_ns: int | None


def find_timing(job: JobDumps, dumps: Mapping[int, RecorderDump]) -> Timing:
    """Return whether the pending calls of a job are stuck."""
    pending = [call for dump in dumps.values() for call in dump.pending]
    oldest = min((call.created_ns for call in pending), default=None)
    gap = max((dump.longest_gap_ns for dump in dumps.values()), default=0)
    as_of = _written(job.files)
    if as_of is not None and any(
        dump.last_call_ns is not None and dump.last_call_ns > as_of + YOUNG_NS for dump in dumps.values()
    ):
        as_of = None  # the file's time is that of something else
    waited = as_of - oldest if as_of is not None and oldest is not None else None
    earlier = _written(job.earlier)
    between = as_of - earlier if as_of is not None and earlier is not None else None
    if job.earlier and pending:
        return Timing(_compare(job, dumps), as_of, waited, gap, between)
    if waited is None:
        return Timing("unknown", as_of, waited, gap, between)
    if waited < YOUNG_NS:
        return Timing("running", as_of, waited, gap, between)
    return Timing("slow" if waited < gap else "stuck", as_of, waited, gap, between)


def _written(files: tuple[RankFile, ...]) -> int | None:
    times = [file.written_ns for file in files if file.dump is not None]
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(times) else None


def _compare(job: JobDumps, dumps: Mapping[int, RecorderDump]) -> Progress:
    """Return "stuck" if a rank's first pending call is the same in both dumps, else "running"."""
    before = {file.rank: file.dump for file in job.earlier if file.dump is not None}
    for rank, dump in dumps.items():
        old = before.get(rank)
        if old is not None and _first(dump) & _first(old):
            return "stuck"
    return "running"


def _first(dump: RecorderDump) -> set[tuple[CallKey, int]]:
    """Return the first pending calls of a dump, with the time of the call: a restarted job counts anew."""
    first: dict[tuple[str, bool], tuple[CallKey, int]] = {}
    for call in dump.pending:
        first.setdefault((call.group, call.p2p), (call.key, call.created_ns))
    return set(first.values())
