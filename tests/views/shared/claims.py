"""Each sentence that several views say: a recording where it holds, and one where it doesn't."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tests.model.schedule.test_unrecorded_waits import ITEM, training
from tests.support.claims import Claim, ReadSentences, read_sentences
from tests.support.jobs import Job
from tests.support.jobs import ddp as drawn_ddp
from tests.support.random_jobs.surfaces import found_texts
from tests.support.simulation.simulator import Action, Delay, Simulation, ddp, tensor_and_data_parallel
from tests.support.traces import draw, read_bytes
from tests.views.distributed.page_claims import build_sentences, unread
from tests.views.overview.test_ranks import alone, both
from tests.views.shared.test_clock import EARLY
from tests.views.test_odd_steps import draw_training as draw_odd
from tests.views.test_outside_steps import draw_training as draw_pauses
from tests.views.test_truncated import WHOLE
from torch_tb_profiler.view import Members, NoParams
from torch_tb_profiler.views.overview.ranks import build_beside_ranks

SAVE = "host user_annotation save_checkpoint {start} {extra}"
OTHER_SAVES = "host user_annotation save_{extra} {start} {extra}"
ALL_REDUCE = "gpu0 kernel ncclKernel_AllReduce_RING {start} {extra} stream=20"
EVALUATE = "host user_annotation evaluate"


def odd(*extra: int, inside: str = "") -> ReadSentences:
    """Read the sentences about steps of 10 ms that are so much longer; `inside`: what the host does then."""
    return lambda: read_sentences("overview", draw_odd(*extra, inside=inside))


def pauses(*lengths: int, inside: str = "") -> ReadSentences:
    """Read the sentences about steps of 10 ms, each followed by a pause in us; `inside`: what fills it."""
    return lambda: read_sentences("overview", draw_pauses(*lengths, inside=inside))


def beside(
    *delays: Delay, only: Sequence[int] | None = None, programs: Sequence[Sequence[Action]] | None = None
) -> ReadSentences:
    """Read the sentences about rank 0 of 4 beside those of `only`."""
    job = Simulation(programs or ddp(4, 1, overlap=False), steps=5, delays=delays, jitter=0.01, syncs=True)
    return lambda: " ".join(text for _, text in found_texts(both(job.run(), 0, only)[1], ""))


def large(ranks: int) -> ReadSentences:
    """Read the sentences about a rank of so many while only two of them are read."""

    def say() -> str:
        job = Simulation(ddp(2)).run()
        first, second = job.members()
        others = [
            replace(second, worker=f"w{rank}", rank=rank, state="waiting", result=None) for rank in range(2, ranks)
        ]
        payload = build_beside_ranks(alone(job, 0), first.worker, Members([first, second, *others]), NoParams())
        return " ".join(text for _, text in found_texts(payload, ""))

    return say


LATE = Delay("host", 3, us=5000)
FOUR = Job(4, drawn_ddp(4))

CLAIMS = [
    # ---- what averages leave out
    Claim(
        "{first} than a typical step ({duration}){cause}.",
        r"Step 2 takes 20\.0 ms more than a typical step \(10\.0 ms\)",
        odd(0, 0, 20_000, 0, 0, 0, inside=SAVE),
        "all steps are as long",
        odd(*[20_000] * 6, inside=SAVE),
    ),
    Claim(
        "{steps} {names} {take} {time} {more}",
        r"Steps 2 and 6 take 20\.0 ms more ",
        odd(0, 0, 20_000, 0, 0, 0, 20_000, 0, 0, 0, inside=SAVE),
        "they are longer for different reasons",
        odd(0, 0, 20_000, 0, 0, 0, 30_000, 0, 0, 0, inside=OTHER_SAVES),
    ),
    Claim(
        ", mostly in {what}",
        r"than a typical step \(10\.0 ms\), mostly in save_checkpoint",
        odd(0, 0, 20_000, 0, 0, 0, inside=SAVE),
        "it takes exactly half of that",
        odd(0, 0, 20_000, 0, 0, 0, inside="host user_annotation save_checkpoint {start} 10000"),
    ),
    Claim(
        ", mostly {where}",
        ", mostly in operators or annotated code on the host",
        odd(0, 0, 20_000, 0, 0, 0),
        "one operator takes it",
        odd(0, 0, 20_000, 0, 0, 0, inside="host cpu_op aten::sort {start} {extra}"),
    ),
    Claim(
        "{who}{cause}.",
        r"\. Step 2 takes 20\.0 ms more, mostly in save_20000\.",
        odd(0, 0, 20_000, 0, 0, 0, 30_000, 0, 0, 0, inside=OTHER_SAVES),
        "both steps are longer for one reason",
        odd(0, 0, 20_000, 0, 0, 0, 30_000, 0, 0, 0, inside=SAVE),
    ),
    Claim(
        "Most of that is communication; one rank's file can't tell transfer from waiting for another rank.",
        r"mostly in NCCL AllReduce RING\. Most of that is communication; one rank's file can't tell",
        odd(0, 0, 20_000, 0, 0, 0, inside=ALL_REDUCE),
        "it computes in that time",
        odd(0, 0, 20_000, 0, 0, 0, inside=ALL_REDUCE.replace("ncclKernel_AllReduce_RING", "gemm")),
    ),
    Claim(
        "{count} {differ} as well.",
        r"1 more step differs as well\.",
        odd(*[0] * 16, 20_000, 0, 30_000, 0, 40_000, 0, 50_000, 0, inside=OTHER_SAVES),
        "it is like another one",
        odd(*[0] * 16, 20_000, 0, 30_000, 0, 40_000, 0, 40_000, 0, inside=OTHER_SAVES),
    ),
    Claim(
        "Between the first step and the last, {share} of the time is outside of steps ({time}{cause}).",
        r"Between the first step and the last, 50% of the time is outside of steps \(40\.0 ms",
        pauses(0, 40_000, 0, 0),
        "the pause is after the last step",
        pauses(0, 0, 0, 40_000),
    ),
    Claim(
        ", mostly in {what}",
        r"\(40\.0 ms, mostly in evaluate\)",
        pauses(0, 40_000, 0, 0, inside=EVALUATE),
        "nothing but the loop is recorded then",
        pauses(0, 40_000, 0, 0),
    ),
    Claim(
        "{stretch} follows step {step}; averages of steps don't count it.",
        "The longest stretch follows step 1; averages of steps don't count it",
        pauses(10_000, 20_000, 10_000, 0, inside=EVALUATE),
        "another one is longer",
        pauses(10_000, 20_000, 30_000, 0, inside=EVALUATE),
    ),
    # ---- communication of a rank beside the others
    Claim(
        "Of {total} of {what}, {scope}{least}{waiting} is spent waiting for other ranks{awaited} and "
        "{most}{transfer} transferring data{counted}.",
        r"Of 5\.\d+ ms of exposed communication, [45]\.\d+ ms is spent waiting for other ranks and \d+ µs "
        r"transferring data\.",
        beside(LATE),
        "all ranks are as late",
        beside(*(Delay("host", rank, us=5000) for rank in range(4))),
    ),
    Claim(
        " ({ranks})",
        r"in step 3, 5\.\d+ ms is spent waiting for other ranks \(5\.\d+ ms for rank 3\)",
        beside(Delay("host", 3, us=5000, steps=(2,))),
        "another rank is late in it",
        beside(Delay("host", 2, us=5000, steps=(2,))),
    ),
    Claim(
        "{uncompared} can't be compared with another rank; of the other {compared}, ",
        r"exposed communication, \d+ µs can't be compared with another rank; of the other \d+ µs, \S+",
        beside(programs=tensor_and_data_parallel(4, 2), only=(0, 2, 3)),
        "its neighbor is found",
        beside(programs=tensor_and_data_parallel(4, 2)),
    ),
    Claim(
        "How much of {total} of {what} is waiting for other ranks isn't known exactly, because not every "
        "rank's part is {recorded}.",
        r"How much of 5\.\d+ ms of exposed communication is waiting for other ranks isn't known exactly, because "
        r"not every rank's part is recorded\.",
        beside(LATE, only=(0, 1, 2)),
        "the late rank is found",
        beside(LATE),
    ),
    Claim(
        "{unread} of the {ranks} ranks weren't read for this page, so this rank isn't compared with the others. "
        "{distributed} compares them all.",
        "63 of the 65 ranks weren't read for this page, so this rank isn't compared",
        large(65),
        "it is a job whose ranks are all read for it, one fewer",
        large(64),
    ),
    Claim(
        "{count} of {all} {are} still being read",
        "2 of 4 traces are still being read",
        build_sentences(FOUR, unread(1, 2)),
        "one of them is read",
        build_sentences(FOUR, unread(1)),
    ),
    # ---- what was recorded
    Claim(
        "The device clock was shifted by {shift}, because some work was recorded as starting before its launch.",
        r"shifted by 11\.0 µs, because some work was recorded as starting before its launch\.",
        lambda: read_sentences("idle", draw(EARLY)),
        "the kernel begins after its launch",
        lambda: read_sentences("idle", draw(EARLY.replace("gemm               40", "gemm               70"))),
    ),
    Claim(
        "The host seems to have waited for {device}, although no recorded call does.",
        r"The host seems to have waited for the GPU, although no recorded call does\.",
        lambda: read_sentences("idle", training(ITEM)),
        "the host goes on 0.1 ms after the device is done",
        lambda: read_sentences("idle", training(ITEM, returns=100)),
    ),
    Claim(
        "The file is truncated. Kineto writes GPU work last, so it's probably missing; you see only what came "
        "before the cut.",
        r"The file is truncated\. Kineto writes GPU work last, so it's probably missing",
        lambda: read_sentences("overview", read_bytes(WHOLE[:-25])),
        "its last 25 bytes are there",
        lambda: read_sentences("overview", read_bytes(WHOLE)),
    ),
]

NO_CLAIMS: dict[str, str] = {}
"""Templates that say nothing that a recording could make false, with the reason."""
