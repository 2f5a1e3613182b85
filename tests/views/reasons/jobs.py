"""Why fields about a job of several ranks are null: a job of which they are for that reason, and the next one."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tests.support.claims import Claim, ReadSentences
from tests.support.jobs import Job, ddp, ready_member, ring_of_pairs, tensor_and_data_parallel
from tests.support.traces import draw
from tests.views.distributed.page_claims import Change, broken, unread
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.view import Member, Members, NoParams
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.distributed.build import build
from torch_tb_profiler.views.distributed.reasons import paged_reasons


def of(field: str, members: Sequence[Member[RankSummary]]) -> str:
    return plain(build(Members(members), NoParams()).reasons.get(field, ()))


def job(field: str, drawn: Job, change: Change = list, only: Sequence[int] | None = None) -> ReadSentences:
    """Read why a field about a job is null, `change`: of other files of it."""
    return lambda: of(field, change(list(drawn.members(only))))


def ranks(field: str, *pictures: str) -> ReadSentences:
    """Read why a field about drawn ranks is null."""
    return lambda: of(
        field,
        [
            ready_member(
                f"w{rank}",
                rank,
                draw(picture, distributedInfo={"rank": rank, "world_size": 2}, baseTimeNanoseconds=10**18),
            )
            for rank, picture in enumerate(pictures)
        ],
    )


def entry(member: int, members: Sequence[Member[RankSummary]]) -> str:
    """Return the reason beside a rank in the table of ranks."""
    rows = build(Members(members), NoParams()).ranks
    return next(row.reason or "" for row in rows if row.worker == members[member].worker)


TWO = Job(2, ddp(2))
FOUR = Job(4, ddp(4))
STEP = "host user_annotation ProfilerStep#1 0 400\nhost user_annotation ProfilerStep#2 400 400\n"
ALL_REDUCE = (
    "host cuda_runtime cudaLaunchKernel 10 5 correlation=1\n"
    "gpu0 kernel ncclDevKernel_AllReduce 20 100 correlation=1 stream=7{args}\n"
    "host cuda_runtime cudaLaunchKernel 210 5 correlation=2\n"
    "gpu0 kernel gemm 220 100 correlation=2 stream=7\n"
)
SIZED = (
    " Collective name=allreduce In msg nelems=1000 Out msg nelems=1000 dtype=Float Group size=2 "
    "Process Group Name=0"
)
NO_RANKS = ALL_REDUCE.format(args=SIZED)
CALL = f"host cpu_op record_param_comms 400 20{SIZED}"
"""A call whose kernel is missing."""
UNSIZED = ALL_REDUCE.format(args="")

CLAIMS = {
    "views/distributed/reasons.py": [
        Claim(
            "only one rank was read, so there is none to compare it with",
            "only one rank was read",
            job("waiting_ns", TWO, unread(1)),
            "the other is, too",
            job("waiting_ns", TWO),
        ),
        Claim(
            "only one rank was read, so there is none to compare it with",
            "only one rank was read",
            job("heat_map", TWO, broken),
            "two others of four are",
            job("heat_map", FOUR, broken),
        ),
        Claim(
            "no other rank recorded a matching operation with a time",
            "no other rank recorded a matching operation with a time",
            job("waiting_ns", Job(4, tensor_and_data_parallel(4, 2)), only=(0, 3)),
            "its neighbors did",
            job("waiting_ns", Job(4, tensor_and_data_parallel(4, 2))),
        ),
        Claim(
            "the time includes waiting for other ranks, so the bandwidth is at least this",
            "the time includes waiting for other ranks",
            job("lower_bound", TWO, only=(0,)),
            "the other rank's part is known",
            job("lower_bound", TWO),
        ),
        Claim(
            "fewer than two of its ranks recorded it on one clock",
            "fewer than two of its ranks recorded it on one clock",
            job("skew_ns", Job(2, ddp(2), lost=frozenset({(1, 0)}))),
            "both did",
            job("skew_ns", TWO),
        ),
        Claim(
            "the trace doesn't record the size ({})",
            r"the trace doesn't record the size \(",
            ranks("bytes", UNSIZED, UNSIZED),
            "it does",
            ranks("bytes", NO_RANKS, NO_RANKS),
        ),
        Claim(
            "size, number of ranks, or device time isn't recorded, or the collective moves no data",
            "size, number of ranks, or device time isn't recorded, or the collective moves no data",
            ranks("bus_bandwidth", UNSIZED, UNSIZED),
            "they are",
            job("bus_bandwidth", TWO),
        ),
        Claim(
            "the operation's kernel isn't in the trace",
            "the operation's kernel isn't in the trace",
            ranks("latency_ns", NO_RANKS + CALL, NO_RANKS + CALL),
            "it is",
            ranks("latency_ns", NO_RANKS, NO_RANKS),
        ),
        Claim(
            "the traces don't record which ranks are in the process group; operations of several groups may "
            "appear as one",
            "the traces don't record which ranks are in the process group",
            ranks("ranks", NO_RANKS, NO_RANKS),
            "they do",
            job("ranks", TWO),
        ),
        Claim(
            "the trace doesn't record in which process group it communicates",
            "the trace doesn't record in which process group it communicates",
            ranks("name", UNSIZED, UNSIZED),
            "it does",
            ranks("name", NO_RANKS, NO_RANKS),
        ),
        Claim(
            "a rank recorded no steps ({}), so its recording counts as one step",
            r"a rank recorded no steps \(",
            ranks("steps", STEP + UNSIZED, UNSIZED),
            "both recorded two",
            ranks("steps", STEP + UNSIZED, STEP + UNSIZED),
        ),
        Claim(
            "of a rank without kernels, computation is CPU Exec on the host",
            "of a rank without kernels, computation is CPU Exec on the host",
            ranks("computation_ns", UNSIZED, "host cpu_op gloo:all_reduce 10 50"),
            "both have kernels",
            ranks("computation_ns", UNSIZED, UNSIZED),
        ),
        Claim(
            "no collective has a last arrival that can be attributed to a rank",
            "no collective has a last arrival that can be attributed to a rank",
            job("stragglers", Job(4, ring_of_pairs(4), jitter_us=0)),
            "a rank is late",
            job("stragglers", Job(2, ddp(2), straggler=1)),
        ),
        Claim(
            "the arrivals are closer together than the error of the clocks",
            "the arrivals are closer together than the error of the clocks",
            job("late_rank", Job(4, ring_of_pairs(4), jitter_us=0)),
            "one rank is late",
            job("late_rank", Job(4, ddp(4), straggler=2)),
        ),
        Claim(
            "{} ranks are too many for this list; `distributed/{}` has them page by page",
            "300 ranks are too many for this list; `distributed/ranks` has them",
            lambda: plain(paged_reasons(300)["nodes"]),
            "the list is that of steps",
            lambda: plain(paged_reasons(300)["overview"]),
        ),
    ],
    "views/distributed/ranks.py": [
        Claim(
            "{} has the same rank and is compared instead",
            "host0_1001 has the same rank and is compared instead",
            lambda: entry(2, [*TWO.members(), replace(TWO.members()[1], worker="host9_9")]),
            "it is another rank",
            lambda: entry(2, [*FOUR.members()]),
        ),
        Claim(
            "it is of another job, with {}",
            "it is of another job, with 3 ranks",
            lambda: entry(2, [*TWO.members(), *Job(3, ddp(3)).members([2])]),
            "it is of that job",
            lambda: entry(2, [*Job(3, ddp(3)).members()]),
        ),
    ],
}

NO_CLAIMS: dict[str, str] = {}
"""Reasons that say nothing that a trace could make false."""
