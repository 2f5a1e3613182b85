"""Each sentence of Distributed on communication, clocks and files: a job where it holds, and one where it doesn't.

What is said of late ranks: claims.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from tests.support.claims import Claim, ReadSentences
from tests.support.jobs import Job, JobOp, ddp, pipeline, tensor_and_data_parallel
from tests.support.random_jobs.surfaces import found_texts
from tests.support.simulation.simulator import (
    START_US,
    Action,
    Collective,
    SimulatedKernel,
    Simulation,
    Sync,
    Wait,
)
from tests.support.simulation.simulator import (
    ddp as programs,
)
from tests.views.distributed.test_clocks import without_time_of_day
from tests.views.distributed.test_ranks import without_kernels
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.view import Member, Members, NoParams
from torch_tb_profiler.views.distributed.build import build
from torch_tb_profiler.views.distributed.connections import ConnectionsParams, build_connections

Change = Callable[[list[Member[RankSummary]]], list[Member[RankSummary]]]


def of(members: Sequence[Member[RankSummary]]) -> str:
    return "\n".join(sentence for _, sentence in found_texts(build(Members(members), NoParams()), ""))


def build_sentences(job: Job, change: Change = list, only: Sequence[int] | None = None) -> ReadSentences:
    """Read the sentences about a drawn job, `change`: of other files of it."""
    return lambda: of(change(list(job.members(only))))


def unread(*ranks: int) -> Change:
    """Return the files of a job while those of these ranks are still to be read."""
    return lambda members: [
        replace(member, state="loading", result=None) if rank in ranks else member
        for rank, member in enumerate(members)
    ]


def broken(members: list[Member[RankSummary]]) -> list[Member[RankSummary]]:
    """Return the files of a job of which that of rank 1 is empty."""
    return [members[0], replace(members[1], state="failed", result=None, reason="it is empty"), *members[2:]]


def left_out(members: list[Member[RankSummary]]) -> list[Member[RankSummary]]:
    return [members[0], replace(members[1], result=None, reason="it has no steps"), *members[2:]]


def twice(members: list[Member[RankSummary]]) -> list[Member[RankSummary]]:
    """Return the files of a job with a second one of its last rank."""
    return [*members, replace(members[-1], worker="host9_9")]


def two_worlds() -> str:
    """Read the sentences about ranks 0 and 1 of two ranks, and rank 2 of three."""
    return of([*Job(2, ddp(2)).members(), *Job(3, ddp(3)).members([2])])


def no_clock(members: list[Member[RankSummary]]) -> list[Member[RankSummary]]:
    """Return the files of a job of which those of ranks 2 and 3 lack the time of day."""
    return [*members[:2], without_time_of_day(members[2], 5), without_time_of_day(members[3], 9)]


def connected(job: Job, *ranks: int, change: Change = list, limit: int = 100) -> ReadSentences:
    """Read the sentences about the timelines of these ranks below each other."""

    def say() -> str:
        members = Members(change(list(job.members())))
        workers = ",".join(members[rank].worker for rank in ranks)
        payload = build_connections(members, ConnectionsParams(workers, limit=limit))
        return "\n".join(sentence for _, sentence in found_texts(payload, ""))

    return say


def communicating(*times: int) -> ReadSentences:
    """Read the sentences about steps whose all-reduce, all-gather and reduce-scatter take these times in us."""
    names = ("allreduce", "_allgather_base", "_reduce_scatter_base")
    program: list[Action] = [SimulatedKernel("gemm", 1000)]
    for name, us in zip(names, times, strict=True):
        if us:
            program += [Collective(name, (0, 1, 2), "0", us), Wait(), SimulatedKernel("gelu", 500)]
    job = Simulation([[*program, Sync()]] * 3, steps=4)
    return lambda: of(job.run().members())


def drifting(drift: float) -> ReadSentences:
    """Read the sentences about a job of 40 ms of which one clock drifts (s/s), and is right half-way."""

    def say() -> str:
        job = Simulation(programs(4), steps=4).run()
        middle = (START_US + job.end) / 2
        return of(job.members(ahead_us={2: -drift * middle}, drift={2: drift}))

    return say


def without_times(rank: int | None) -> ReadSentences:
    """Read the sentences about a job of which the file of a rank lacks the kernels."""
    job = Job(4, ddp(4))
    return lambda: of(job.members() if rank is None else without_kernels(job, rank))


EVEN, LATE = Job(4, ddp(4)), Job(4, ddp(4), straggler=2)
PAIRS: tuple[JobOp, ...] = tensor_and_data_parallel(4, 2)[:6]
OTHER_SIZE = Job(4, ddp(4), wrong={(2, 1): ("In msg nelems", 7)})

CLAIMS = [
    # ---- problems
    Claim(
        "{name} is missing: {reason}",
        r"Rank 1 \(host0_1001\) is missing: it is empty",
        build_sentences(EVEN, broken),
        "its file is read",
        build_sentences(EVEN),
    ),
    Claim(
        "{name} is left out: {reason}",
        r"Rank 1 \(host0_1001\) is left out: it has no steps",
        build_sentences(EVEN, left_out),
        "its file has something to compare",
        build_sentences(EVEN),
    ),
    Claim(
        "{worker} and {other} both claim to be rank {rank}; {other} is shown",
        "host9_9 and host0_1003 both claim to be rank 3; host0_1003 is shown",
        build_sentences(EVEN, twice),
        "each rank has one file",
        build_sentences(EVEN),
    ),
    Claim(
        "The traces are of jobs with {sizes} ranks; only those of the job with {compared} are compared",
        "The traces are of jobs with 2 and 3 ranks; only those of the job with 2 are compared",
        two_worlds,
        "all of them are of three ranks",
        build_sentences(Job(3, ddp(3))),
    ),
    Claim(
        "{traces} {absent} {are} missing ({count} of {all}); waiting for {it} counts as transfer",
        r"The trace of rank 3 is missing \(1 of 4 ranks\); waiting for it counts as transfer",
        build_sentences(EVEN, only=[0, 1, 2]),
        "it is there",
        build_sentences(EVEN),
    ),
    Claim(
        "{name} isn't compared by time: its trace records no time of day, and it shares no collective with other "
        "ranks",
        r"Rank 2 \(host0_1002\) isn't compared by time: its trace records no time of day",
        build_sentences(Job(4, PAIRS), no_clock),
        "all ranks share collectives",
        build_sentences(EVEN, no_clock),
    ),
    Claim(
        "The clock of {rank} is {offset} {where}; it was corrected by aligning the ends of {collectives}, "
        "which now agree within {residual}",
        r"The clock of rank 2 \(host0_1002\) is 5\.00 ms ahead; it was corrected by aligning the ends of 9 shared "
        "collectives, which now agree within ",
        build_sentences(Job(4, ddp(4), clock_ns={2: 5_000_000})),
        "it is as much behind",
        build_sentences(Job(4, ddp(4), clock_ns={2: -5_000_000})),
    ),
    Claim(
        "Arrivals of {rank} are known only to within {error}",
        r"Arrivals of rank 2 \(node0_1002\) are known only to within ",
        drifting(0.5),
        "its clock is as fast as the others'",
        drifting(0),
    ),
    Claim(
        "{names} started recording up to {skew} after the first rank, while others were already waiting in "
        "{collectives}; the profiler caused that wait, so it isn't attributed to any rank",
        r"Rank 2 started recording up to 8\.\d+ ms after the first rank, while others were already waiting in 1 "
        "collective; the profiler caused that wait",
        build_sentences(Job(4, ddp(4), joins_late_us={2: 8_000.0})),
        "it starts with the others, and is as late for another reason",
        build_sentences(Job(4, ddp(4), straggler=2, slow_us=8_000.0)),
    ),
    Claim(
        "{collectives} not compared: the ranks differ in name, size, or dtype",
        "1 collective is not compared: the ranks differ in name, size, or dtype",
        build_sentences(OTHER_SIZE),
        "a rank lacks the collective",
        build_sentences(Job(4, ddp(4), lost=frozenset({(2, 1)}))),
    ),
    Claim(
        "{name} isn't compared by time: its operations have no device times",
        r"Rank 1 \(w1\) isn't compared by time: its operations have no device times",
        without_times(1),
        "its kernels are recorded",
        without_times(None),
    ),
    Claim(
        "{messages} not compared: the traces don't record sender and receiver ({option})",
        r"\d+ messages are not compared: the traces don't record sender and receiver",
        build_sentences(Job(4, pipeline(4), metadata=False)),
        "they record them",
        build_sentences(Job(4, pipeline(4))),
    ),
    Claim(
        "{collectives} not compared: the ranks ran different numbers of them within a step",
        "3 collectives are not compared: the ranks ran different numbers of them within a step",
        build_sentences(Job(4, ddp(4), sequence=False, lost=frozenset({(1, 1)}))),
        "their numbers say which one a rank lacks",
        build_sentences(Job(4, ddp(4), lost=frozenset({(1, 1)}))),
    ),
    # ---- the explanation
    Claim(
        "The {count} ranks read so far don't show whether one is a straggler.",
        "The 2 ranks read so far don't show whether one is a straggler.",
        build_sentences(Job(6, ddp(6)), unread(2, 3, 4, 5)),
        "all are read",
        build_sentences(Job(6, ddp(6))),
    ),
    Claim(
        "Waiting can be attributed once two ranks are read.",
        "Waiting can be attributed once two ranks are read.",
        build_sentences(EVEN, unread(1, 2, 3)),
        "two are read",
        build_sentences(EVEN, unread(2, 3)),
    ),
    Claim(
        "{names} {spend} {share} of {base} in {what}{largest}.",
        r"Ranks 0, 1 and 3 spend 63\.\d% of an average step in exposed communication",
        build_sentences(LATE),
        "nobody waits, so that it is the transfer only",
        build_sentences(EVEN),
    ),
    Claim(
        "The {other}{count} ranks",
        "The other 7 ranks spend ",
        build_sentences(Job(8, ddp(8), straggler=2)),
        "no rank is a straggler",
        build_sentences(Job(8, ddp(8))),
    ),
    Claim(
        " ({name})",
        r"in exposed communication \(nccl:reduce_scatter\)\.",
        communicating(0, 0, 700),
        "another collective takes time, too",
        communicating(0, 310, 700),
    ),
    Claim(
        ", most of it in {name}",
        ", most of it in nccl:reduce_scatter",
        communicating(300, 310, 700),
        "it takes a third",
        communicating(300, 310, 320),
    ),
    Claim(
        ", the largest part of it in {name}",
        ", the largest part of it in nccl:reduce_scatter",
        communicating(300, 310, 320),
        "it takes less than each of the others",
        communicating(300, 310, 290),
    ),
    Claim(
        "It spends {time} getting to {collectives} in {steps}; the median rank spends {median}.",
        r"It spends 18\.\d ms getting to 3 collectives in 3 steps; the median rank spends 3\.0\d ms\.",
        build_sentences(LATE),
        "its delay is a fifth",
        build_sentences(Job(4, ddp(4), straggler=2, slow_us=1_000.0)),
    ),
    # ---- connected timelines
    Claim(
        "{late} {straggle}. {others} {are} shown below {them}, on the job's clock.",
        r"Rank 2 is a straggler\. Ranks 1 and 3 are shown below it",
        connected(LATE, 1, 2, 3),
        "the job has none",
        connected(EVEN, 1, 2, 3),
    ),
    Claim(
        "{ranks} {are} aligned on the job's clock.",
        "Ranks 0 and 1 are aligned on the job's clock",
        connected(EVEN, 0, 1),
        "of rank 1 no file is read",
        connected(EVEN, 0, 1, change=broken),
    ),
    Claim(
        "The clocks of these ranks can't be aligned.",
        "The clocks of these ranks can't be aligned",
        connected(EVEN, 1, change=broken),
        "one of them can",
        connected(EVEN, 0, 1, change=broken),
    ),
    Claim(
        "Left out because their clocks can't be aligned: {workers}.",
        "Left out because their clocks can't be aligned: host0_1002, host0_1003",
        connected(Job(4, PAIRS), 0, 1, 2, 3, change=no_clock),
        "their collectives align them",
        connected(EVEN, 0, 1, 2, 3, change=no_clock),
    ),
    Claim(
        "{collectives} in this window{longest}, connected across ranks: each rank's arrival on the left, the "
        "common end on the right.",
        r"9 collectives in this window \(longest 2 drawn\), connected across ranks",
        connected(EVEN, 0, 1, limit=2),
        "all of them are drawn",
        connected(EVEN, 0, 1, limit=9),
    ),
    # ---- ranks that disagree
    Claim(
        "{collective}: {what} ({values})",
        r"nccl:all_reduce: ranks move different amounts of data \(800000 bytes, 28 bytes\)",
        build_sentences(OTHER_SIZE),
        "they differ in the data type",
        build_sentences(Job(4, ddp(4), wrong={(2, 1): ("dtype", "Half")})),
    ),
    Claim(
        "{collective}: {what}",
        "nccl:all_reduce: a rank lacks it but has earlier and later ones",
        build_sentences(Job(4, ddp(4), lost=frozenset({(1, 1)}))),
        "it moves other data there",
        build_sentences(OTHER_SIZE),
    ),
]

_REST = "the rest of a list, counted alike for every kind: tests/views/distributed/test_scale.py"
NO_CLAIMS = {
    "{count} more ranks are missing": _REST,
    "{count} more ranks are left out": _REST,
    "{count} more ranks are claimed twice": _REST,
    "The clocks of {count} more ranks were corrected or are imprecise": _REST,
    "{count} more ranks aren't compared by time": _REST,
}
"""Templates that say nothing that a job could make false, with the reason."""
