"""Running or stuck: how old the oldest pending call was when the dumps were written, or what two dumps share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from torch_tb_profiler.analyses.hangs.groups import JobGroup, JobGroups
from torch_tb_profiler.model.flight_recorder import (
    CallKey,
    JobDumps,
    RankFile,
    RecordedCall,
    RecorderDump,
    WatchdogTimeout,
)

MIN_HANG_NS = 1_000_000_000
"""A younger pending call shows no hang, ns: in a running job collectives are rarely pending for a second."""

MIN_COPY_DELAY_NS = 3600 * 1_000_000_000
"""A file this much newer than the timeout of a pending call was written by a copy, ns.

The recorder itself writes within seconds or minutes of the timeout."""

JobProgress = Literal["stuck", "running", "slow", "unknown"]


@dataclass(frozen=True)
class TimedOutCall:
    """A pending call that the watchdog of a rank gave up after `ran_ns`."""

    rank: int
    call: RecordedCall
    ran_ns: int


@dataclass(frozen=True)
class DumpTiming:
    """When the dumps were written, and what follows.

    progress    "running"  the oldest pending call is younger than `MIN_HANG_NS`, or it finished between two dumps
                "slow"     it is younger than an earlier pause of this job, so it may go on
                "stuck"    it is older, or it was pending in two dumps that are further apart than such a pause
                "unknown"  the storage has no times of the files, or those of a copy
    as_of_ns    epoch time of the last dump, None if unknown: as its writer noted it, of the file, or, where that
                is unknown, when a watchdog gave up a call
    copied_ns   epoch time of the last file, if that is the time of a copy
    waited_ns   age of the oldest pending call at that time, None if unknown or nothing is pending
    gap_ns      longest earlier pause of the job between two calls of one rank
    between_ns  time between two dumps, None if there is one
    timeouts    pending calls that watchdogs gave up, by rank
    """

    progress: JobProgress
    as_of_ns: int | None
    waited_ns: int | None
    gap_ns: int
    between_ns: int | None
    copied_ns: int | None = None
    timeouts: tuple[TimedOutCall, ...] = ()


def find_timing(job: JobDumps, dumps: Mapping[int, RecorderDump], groups: JobGroups) -> DumpTiming:
    """Return whether the pending calls of a job are stuck."""
    pending = [call for dump in dumps.values() for call in dump.pending]
    oldest = min((call.created_ns for call in pending), default=None)
    gap = max((dump.longest_gap_ns for dump in dumps.values()), default=0)
    timeouts = _find_timeouts(job, dumps, groups)
    noted, written = _latest_noted_time(job.files), _latest_written_time(job.files)
    copied = written if noted is None and written is not None and _is_copy(written, pending) else None
    written = as_of = written if noted is None else noted
    last = max((dump.last_call_ns or 0 for dump in dumps.values()), default=0)
    if copied is not None or (written is not None and last > written + MIN_HANG_NS):
        as_of = None  # the file's time is that of something else
    if as_of is None and timeouts:
        as_of, copied = max(each.call.created_ns + each.ran_ns for each in timeouts), None
    waited = as_of - oldest if as_of is not None and oldest is not None else None
    earlier = _latest_written_time(job.earlier) if noted is None else _latest_noted_time(job.earlier)
    between = as_of - earlier if as_of is not None and earlier is not None else None

    def conclude(progress: JobProgress) -> DumpTiming:
        return DumpTiming(progress, as_of, waited, gap, between, copied, timeouts)

    if job.earlier and pending:
        if not _is_pending_in_both(job, dumps):
            return conclude("running")
        if between is not None and between >= max(gap, MIN_HANG_NS):
            return conclude("stuck")
    if waited is None:
        return conclude("unknown")
    if waited < MIN_HANG_NS:
        return conclude("running")
    return conclude("slow" if waited < gap else "stuck")


def _is_copy(written_ns: int, pending: Iterable[RecordedCall]) -> bool:
    """Return whether a file is newer than its pending calls could be: their timeouts have passed long ago."""
    ends = [call.created_ns + call.timeout_ns for call in pending if call.timeout_ns is not None]
    return bool(ends) and written_ns > min(ends) + MIN_COPY_DELAY_NS


def _find_timeouts(
    job: JobDumps, dumps: Mapping[int, RecorderDump], groups: JobGroups
) -> tuple[TimedOutCall, ...]:
    """Return the pending calls that a log says timed out; a line of another attempt of the job matches none."""
    of_number: dict[int, list[WatchdogTimeout]] = defaultdict(list)
    for timeout in job.timeouts:
        of_number[timeout.number].append(timeout)
    found: dict[tuple[int, CallKey], TimedOutCall] = {}
    for rank, dump in dumps.items():
        for call in dump.pending:
            for timeout in of_number.get(call.number, ()):
                if _is_of_call(timeout, rank, call, groups.find(rank, call.group)):
                    found.setdefault((rank, call.key), TimedOutCall(rank, call, timeout.ran_ns))
    return tuple(found.values())


def _is_of_call(timeout: WatchdogTimeout, rank: int, call: RecordedCall, group: JobGroup) -> bool:
    """Return whether a line of the watchdog is about a pending call of a rank.

    The watchdog's names of operations are those of the recorder with more or less behind: ALLTOALL_BASE is
    all_to_all, ALLREDUCE is all_reduce_barrier. A coalesced batch can be of messages or of collectives.
    """
    its_rank = timeout.rank
    if its_rank is None and group.known and timeout.position < len(group.ranks):
        its_rank = group.ranks[timeout.position]
    names = timeout.operation.replace("_", "").lower(), call.operation.replace("_", "").lower()
    return (
        its_rank == rank
        and timeout.number == call.number
        and timeout.group in (None, call.group)
        and (names[0] == "coalesced" or names[0].startswith(names[1]) or names[1].startswith(names[0]))
        and timeout.ran_ns >= (call.timeout_ns or 0)
    )


def _latest_noted_time(files: Iterable[RankFile]) -> int | None:
    """Return the latest time that a dump itself holds."""
    return max(
        (file.dump.dumped_ns for file in files if file.dump is not None and file.dump.dumped_ns is not None),
        default=None,
    )


def _latest_written_time(files: tuple[RankFile, ...]) -> int | None:
    times = [file.written_ns for file in files if file.dump is not None]
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(times) else None


def _is_pending_in_both(job: JobDumps, dumps: Mapping[int, RecorderDump]) -> bool:
    """Return whether the first pending call of a rank is the same in both dumps."""
    before = {file.rank: file.dump for file in job.earlier if file.dump is not None}
    return any(
        _find_first_pending(dump) & _find_first_pending(old)
        for rank, dump in dumps.items()
        if (old := before.get(rank)) is not None
    )


def _find_first_pending(dump: RecorderDump) -> set[tuple[CallKey, int]]:
    """Return the first pending calls of a dump, with the time of the call: a restarted job counts anew."""
    first: dict[tuple[str, bool], tuple[CallKey, int]] = {}
    for call in dump.pending:
        first.setdefault((call.group, call.p2p), (call.key, call.created_ns))
    return set(first.values())
