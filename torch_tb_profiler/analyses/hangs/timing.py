"""Running or stuck: how old the oldest pending call was when the dumps were written, or what two dumps share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from torch_tb_profiler.model.flight_recorder import CallKey, JobDumps, RankFile, RecordedCall, RecorderDump

YOUNG_NS = 1_000_000_000
"""A pending call younger than this is a job that runs."""

LATE_NS = 3600 * 1_000_000_000
"""A file that is so much newer than the timeout of a pending call was written by a copy, not by the recorder."""

JobProgress = Literal["stuck", "running", "slow", "unknown"]


@dataclass(frozen=True)
class DumpTiming:
    """When the dumps were written, and what follows.

    progress    "running"  the oldest pending call is younger than `YOUNG_NS`, or it finished between two dumps
                "slow"     it is younger than an earlier pause of this job, so it may go on
                "stuck"    it is older, or it was pending in two dumps that are further apart than such a pause
                "unknown"  the storage has no times of the files, or those of a copy
    as_of_ns    epoch time of the last dump, None if unknown
    copied_ns   epoch time of the last file, if that is the time of a copy
    waited_ns   age of the oldest pending call at that time, None if unknown or nothing is pending
    gap_ns      longest earlier pause of the job between two calls of one rank
    between_ns  time between two dumps, None if there is one
    """

    progress: JobProgress
    as_of_ns: int | None
    waited_ns: int | None
    gap_ns: int
    between_ns: int | None
    copied_ns: int | None = None


def find_timing(job: JobDumps, dumps: Mapping[int, RecorderDump]) -> DumpTiming:
    """Return whether the pending calls of a job are stuck."""
    pending = [call for dump in dumps.values() for call in dump.pending]
    oldest = min((call.created_ns for call in pending), default=None)
    gap = max((dump.longest_gap_ns for dump in dumps.values()), default=0)
    written = as_of = _written_at(job.files)
    copied = written if written is not None and _is_copy(written, pending) else None
    last = max((dump.last_call_ns or 0 for dump in dumps.values()), default=0)
    if copied is not None or (written is not None and last > written + YOUNG_NS):
        as_of = None  # the file's time is that of something else
    waited = as_of - oldest if as_of is not None and oldest is not None else None
    earlier = _written_at(job.earlier)
    between = as_of - earlier if as_of is not None and earlier is not None else None

    def conclude(progress: JobProgress) -> DumpTiming:
        return DumpTiming(progress, as_of, waited, gap, between, copied)

    if job.earlier and pending:
        if not _is_pending_in_both(job, dumps):
            return conclude("running")
        if between is not None and between >= max(gap, YOUNG_NS):
            return conclude("stuck")
    if waited is None:
        return conclude("unknown")
    if waited < YOUNG_NS:
        return conclude("running")
    return conclude("slow" if waited < gap else "stuck")


def _is_copy(written_ns: int, pending: Iterable[RecordedCall]) -> bool:
    """Return True if a file is newer than its pending calls could be: their timeouts have passed long ago."""
    ends = [call.created_ns + call.timeout_ns for call in pending if call.timeout_ns is not None]
    return bool(ends) and written_ns > min(ends) + LATE_NS


def _written_at(files: tuple[RankFile, ...]) -> int | None:
    times = [file.written_ns for file in files if file.dump is not None]
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(times) else None


def _is_pending_in_both(job: JobDumps, dumps: Mapping[int, RecorderDump]) -> bool:
    """Return True if the first pending call of a rank is the same in both dumps."""
    before = {file.rank: file.dump for file in job.earlier if file.dump is not None}
    return any(_first(dump) & _first(old) for rank, dump in dumps.items() if (old := before.get(rank)) is not None)


def _first(dump: RecorderDump) -> set[tuple[CallKey, int]]:
    """Return the first pending calls of a dump, with the time of the call: a restarted job counts anew."""
    first: dict[tuple[str, bool], tuple[CallKey, int]] = {}
    for call in dump.pending:
        first.setdefault((call.group, call.p2p), (call.key, call.created_ns))
    return set(first.values())
