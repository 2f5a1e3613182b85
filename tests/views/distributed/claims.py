"""Each sentence on which rank is late, why, or what that costs: a job where it holds, and one where it doesn't.

The jobs are simulated, so what is true of them is known. `false_if` says in words what the second job does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.support.simulation.simulator import (
    Delay,
    Simulation,
    ddp,
    pipeline,
    tensor_and_data_parallel,
    with_idle_stage,
)


class SimulatedJob(NamedTuple):
    """A simulated job, the ranks whose files are found, None for all, and those that record the host alone."""

    simulation: Simulation
    found: Sequence[int] | None = None
    untimed: tuple[int, ...] = ()


class JobClaim(NamedTuple):
    """A sentence of `views/_shared/job/` by its template."""

    template: str
    says: str
    holds: SimulatedJob
    false_if: str
    other: SimulatedJob


def job(*delays: Delay, ranks: int = 4, steps: int = 4, found: Sequence[int] | None = None) -> SimulatedJob:
    return SimulatedJob(Simulation(ddp(ranks), steps=steps, delays=delays, jitter=0.01), found)


def in_order(
    *delays: Delay,
    ranks: int = 8,
    found: Sequence[int] | None = None,
    steps: int = 4,
    untimed: tuple[int, ...] = (),
) -> SimulatedJob:
    """Return a job whose collectives are waited for at once."""
    return SimulatedJob(
        Simulation(ddp(ranks, overlap=False), steps=steps, delays=delays, jitter=0.01), found, untimed
    )


def stages(idle: int | None = None) -> SimulatedJob:
    """Return a pipeline of 8 ranks, of which one may compute nothing."""
    programs = pipeline(8) if idle is None else with_idle_stage(8, idle)
    return SimulatedJob(Simulation(programs, steps=4, jitter=0.01, syncs=True))


def few(delay: Delay, steps: int = 1) -> SimulatedJob:
    """Return a job of so few steps that nothing tells how much they vary."""
    return SimulatedJob(Simulation(ddp(4, 2, overlap=False), steps=steps, delays=[delay]))


def in_turn(kind: str, ranks: Sequence[int] = (0, 2, 1, 3), name: str = "prepare_batch") -> SimulatedJob:
    delays = [
        Delay(kind, ranks[step % len(ranks)], us=5000, factor=4.0, steps=(step,), name=name) for step in range(8)
    ]
    return job(*delays, steps=8)


SEVERAL = [
    Delay("host" if rank < 2 else "frame", rank, us=5000, steps=(step, step + 4))
    for step, rank in enumerate((0, 2, 1, 3))
]
"""Ranks are late in turn, each in other code."""

HOST = Delay("host", 1, us=5000)
LATE_AT_TIMES = Delay("host", 0, us=3000, steps=(0, 2, 4))
EVERYONE = [Delay("host", rank, us=5000) for rank in range(4)]

CLAIMS = [
    JobClaim(
        "{among}{names} is a straggler: it arrives last at {collectives} and costs {others} {limit}{cost} "
        "{per_step}.",
        r"Rank 1 is a straggler: it arrives last at .* and costs every other rank [45]\.\d+ ms per step\.",
        job(HOST),
        "all ranks work as long",
        job(*EVERYONE),
    ),
    JobClaim(
        "{among}{names} are stragglers: together they cost {others} {limit}{cost} {per_step}.",
        "Ranks 2 and 9 are stragglers: together they cost every other rank ",
        job(Delay("host", 2, us=5000), Delay("host", 9, us=5000), ranks=16),
        "one of them alone is late",
        job(Delay("host", 2, us=5000), ranks=16),
    ),
    JobClaim(
        "No rank{found} is a straggler, but {rank} computes {time} {per_step}, the median rank {median}.",
        r"No rank is a straggler, but rank 7 computes nothing per step, the median rank 9\.8\d ms\.",
        stages(idle=7),
        "all stages compute as long",
        stages(),
    ),
    JobClaim(
        "The ranks are balanced; no straggler.",
        r"The ranks are balanced; no straggler\.",
        job(),
        "one is late in each step",
        job(HOST),
    ),
    JobClaim(
        "No rank is late in most {noun}s.",
        r"No rank is late in most steps\.",
        job(Delay("host", 1, us=8000, steps=(2,))),
        "it is late in all of them",
        job(Delay("host", 1, us=8000)),
    ),
    JobClaim(
        "All differences between the ranks cost {cost} {per_step}.",
        r"Rank 0 is late 3 times: .* All differences between the ranks cost 1\.7\d ms per step\.",
        SimulatedJob(
            Simulation(ddp(2), steps=6, delays=[LATE_AT_TIMES, Delay("host", 1, us=570, steps=(1, 3, 5))])
        ),
        "nobody else is late",
        SimulatedJob(Simulation(ddp(2), steps=6, delays=[LATE_AT_TIMES])),
    ),
    JobClaim(
        "{cost}.",
        r"Rank 1 costs the others most: 2\.\d+ ms per step\.",
        job(Delay("host", 1, us=5000, steps=(0, 1, 2, 3)), steps=8),
        "all ranks are late then",
        job(*(Delay("host", rank, us=5000, steps=(0, 1, 2, 3)) for rank in range(4)), steps=8),
    ),
    JobClaim(
        "{rank} is late {often}: in {noun} {steps}, by {most}{excess}{cause}.",
        r"Rank 1 is late once: in step 3, by [78]\.\d+ ms, mostly in prepare_batch\.",
        job(Delay("host", 1, us=8000, steps=(2,))),
        "another rank is as late in the next step",
        job(Delay("host", 1, us=8000, steps=(1,)), Delay("host", 3, us=8000, steps=(2,))),
    ),
    JobClaim(
        "{ranks} {are} late at times, too.",
        r"Ranks 1 and 3 are late at times, too\.",
        job(*(Delay("host", rank, us=8000, steps=(2 * rank,)) for rank in (1, 2, 3)), steps=12),
        "one of them isn't late",
        job(*(Delay("host", rank, us=8000, steps=(2 * rank,)) for rank in (1, 2)), steps=12),
    ),
    JobClaim(
        "No rank{found} is a straggler, but work is uneven: {rank} has {amount} than the others.",
        "No rank is a straggler, but work is uneven: rank 3 has less than the others",
        job(Delay("rows", 3, factor=0.6)),
        "all ranks have as little",
        job(*(Delay("rows", rank, factor=0.6) for rank in range(4))),
    ),
    JobClaim(
        "Work is uneven: {rank} computes {ratio} × as long as {other}, because {name} runs on {size} instead of "
        "{typical}.",
        r"Work is uneven: rank 3 computes 0\.\d+ × as long as the median rank, ",
        job(Delay("rows", 3, factor=0.6)),
        "its kernels take as short on equal sizes",
        job(Delay("device", 3, factor=0.6)),
    ),
    JobClaim(
        "Split evenly, the same work would save {saving} {per_step}.",
        r"Split evenly, the same work would save \d",
        job(Delay("rows", 3, factor=0.6)),
        "all ranks have as little",
        job(*(Delay("rows", rank, factor=0.6) for rank in range(4))),
    ),
    JobClaim(
        "{names} may be {noun} ({cost} {per_step}), but {steps} enough to tell.",
        r"Rank 1 may be a straggler \(.*\), but 1 step isn't enough to tell\.",
        few(HOST),
        "four steps show the same",
        few(HOST, steps=4),
    ),
    JobClaim(
        "No rank{found} is a clear straggler.",
        r"No rank is a clear straggler\.",
        few(Delay("host", 1, us=700)),
        "four steps show the same",
        few(Delay("host", 1, us=700), steps=4),
    ),
    JobClaim(
        "{cost}, but {steps} enough to rule out chance.",
        r"Rank 1 costs the others most: .*, but 1 step isn't enough to rule out chance\.",
        few(Delay("host", 1, us=700)),
        "four steps show the same",
        few(Delay("host", 1, us=700), steps=4),
    ),
    JobClaim(
        "{missing} may be {late}, but {why}: the {count} ranks{found} spend up to {cost} {per_step} "
        "waiting for {it}.",
        "Rank 3 may be the straggler, but its trace is missing: the 3 ranks found spend up to ",
        SimulatedJob(Simulation(ddp(4, 1, overlap=False), delays=[Delay("host", 3, us=5000)]), (0, 1, 2)),
        "its trace is found",
        job(Delay("host", 3, us=5000)),
    ),
    JobClaim(
        "All {ranks} found here wait for {absent}, at least {cost} {per_step}.",
        "All ranks found here wait for rank 5, whose trace is missing, at least ",
        in_order(Delay("host", 5, us=5000), found=(0, 1, 2, 3, 4, 6, 7)),
        "a rank that is found is late, and the missing one isn't",
        in_order(Delay("host", 1, us=5000), found=(0, 1, 2, 3, 4, 6, 7)),
    ),
    JobClaim(
        "All {ranks} whose times of a collective are known wait for another one, at least {cost} {per_step}.",
        "All ranks whose times of a collective are known wait for another one, at least ",
        in_order(Delay("host", 5, us=5000), untimed=(5,)),
        "a rank whose times are known is late, and the other one isn't",
        in_order(Delay("host", 1, us=5000), untimed=(5,)),
    ),
    JobClaim(
        "Only {count} of {all} were read, too few to name a straggler.",
        "Only 3 of 8 ranks were read, too few to name a straggler",
        job(HOST, ranks=8, found=(0, 1, 2)),
        "half of them are found",
        job(HOST, ranks=8, found=(0, 1, 2, 3)),
    ),
    JobClaim(
        "Of the ranks that were {compared}, {name} costs the others most: up to {cost} {per_step}, but nothing if "
        "{missing} is as late anyway.",
        "Of the ranks that were found, rank 1 costs the others most: up to ",
        job(HOST, ranks=8, found=(0, 1, 2)),
        "all ranks work as long",
        job(*(Delay("host", rank, us=5000) for rank in range(8)), ranks=8, found=(0, 1, 2)),
    ),
    JobClaim(
        "No rank is a clear straggler, but differences between the ranks cost {cost} {per_step}.",
        r"No rank is a clear straggler, but differences between the ranks cost [45]\.\d+ ms per step\.",
        job(*(Delay("host", rank, us=5000) for rank in (4, 5, 6, 7)), ranks=8),
        "all ranks work as long",
        job(*(Delay("host", rank, us=5000) for rank in range(8)), ranks=8),
    ),
    JobClaim(
        "No small group of ranks causes most of it.",
        "No small group of ranks causes most of it.",
        job(*(Delay("host", rank, us=5000) for rank in (2, 5, 6)), ranks=8),
        "one of them causes it all",
        job(Delay("host", 5, us=5000), ranks=8),
    ),
    JobClaim(
        "{rank} has a slower link: its collectives take longer to transfer than the same ones on other ranks.",
        "Rank 3 has a slower link: ",
        SimulatedJob(
            Simulation(tensor_and_data_parallel(8, 2), delays=[Delay("link", 3, factor=10)], jitter=0.02)
        ),
        "all of its collectives are those of all ranks",
        job(Delay("link", 3, factor=10)),
    ),
    JobClaim(
        "{rank} has a slower device: the same kernels take {ratio} × as long as on {other}.",
        r"Rank 1 has a slower device: the same kernels take 1\.3\d × as long as on the median rank\.",
        job(Delay("device", 1, factor=1.3)),
        "it has 1.3 times the rows",
        job(Delay("rows", 1, factor=1.3)),
    ),
    JobClaim(
        "{ranks} {have}: {evidence}.",
        r"Ranks 1 and 2 have slower devices: the same kernels take 1\.3\d?(?: to 1\.3\d)? × as long as on",
        job(Delay("device", 1, factor=1.3), Delay("device", 2, factor=1.3)),
        "they have 1.3 times the rows",
        job(Delay("rows", 1, factor=1.3), Delay("rows", 2, factor=1.3)),
    ),
    JobClaim(
        "{missing} may be {late}, too: no other trace can show that.",
        r"Rank 3 may be a straggler, too: no other trace can show that\.",
        job(HOST, found=[0, 1, 2]),
        "its trace is there",
        job(HOST),
    ),
    JobClaim(
        "If so, fixing {names} alone saves less, or nothing.",
        r"If so, fixing rank 1 alone saves less, or nothing\.",
        job(HOST, found=[0, 1, 2]),
        "the trace of each rank that may be late, too, is there",
        job(HOST),
    ),
    JobClaim(
        "{rank} has more work: {name} runs on {size} there, on {typical} on {other}.",
        "Rank 1 has more work: ",
        job(Delay("rows", 1, factor=1.3)),
        "its kernels take 1.3 times as long on equal sizes",
        job(Delay("device", 1, factor=1.3)),
    ),
    JobClaim(
        "Before it arrives, {rank}'s {where} spends {time} {per_step} in {name}; {other}'s spends {median}.",
        r"Before it arrives, rank 1's host spends [45]\.\d+ ms per step in prepare_batch; the median rank's ",
        job(HOST),
        "its kernels are slower",
        job(Delay("device", 1, factor=1.3)),
    ),
    JobClaim(
        "Before it arrives, {rank} spends {time} {per_step} {doing}; {other} spends {median}.",
        "Before it arrives, rank 1 spends [45].* in unrecorded code; ",
        job(Delay("stall", 1, us=5000)),
        "an operator is recorded in that time",
        job(HOST),
    ),
    JobClaim(
        "By operator, most of the difference is {name}.",
        "By operator, most of the difference is aten::sort",
        job(Delay("frame", 1, us=5000)),
        "no frame is around the operator",
        job(HOST),
    ),
    JobClaim(
        "Ranks take turns being late: in {late} of {steps}, one of {ranks} is late by {time}.",
        "Ranks take turns being late: in 8 of 8 steps, one of 4 is late by ",
        in_turn("stall"),
        "it is the same rank each time",
        in_turn("stall", (2,)),
    ),
    JobClaim(
        "That costs {cost} {per_step}.",
        r"That costs [45]\.\d+ ms per step\.",
        in_turn("stall"),
        "nobody is late",
        job(steps=8),
    ),
    JobClaim(
        "{all} of them spend it in {name}: do that on all ranks in the same {noun}, or in none.",
        "All of them spend it in prepare_batch: ",
        in_turn("host"),
        "nothing is recorded in that time",
        in_turn("stall"),
    ),
    JobClaim(
        "The late rank spends it in {kernels}: give every rank the same amount of work in each {noun}.",
        "The late rank spends it in attention: give every rank the same amount of work",
        in_turn("larger"),
        "the host spends it",
        in_turn("host"),
    ),
    JobClaim(
        "No single function or operator takes most of it.",
        "No single function or operator takes most of it.",
        SimulatedJob(Simulation(ddp(4, 2, overlap=False), steps=8, delays=SEVERAL)),
        "all of them spend it in one operator",
        in_turn("host"),
    ),
    JobClaim(
        "Call gc.freeze() after warm-up, or gc.disable() and gc.collect() on all ranks every few hundred {noun}s.",
        r"the likely cause\. Call gc\.freeze\(\) after warm-up",
        in_turn("stall"),
        "an operator is recorded in that time",
        in_turn("host"),
    ),
    JobClaim(
        "Nothing recorded explains it, so Python's garbage collector is the likely cause.",
        "Nothing recorded explains it, so Python's garbage collector is the likely cause.",
        in_turn("stall"),
        "an operator is recorded in that time",
        in_turn("host"),
    ),
    JobClaim(
        "It is Python's garbage collector ({name}).",
        r"It is Python's garbage collector \((?:Python GC|GCNConv)\)\.",
        in_turn("host", name="Python GC"),
        "graph convolutions take that long",
        in_turn("host", name="GCNConv"),
    ),
    JobClaim(
        "It is Python's garbage collector ({name}).",
        r"It is Python's garbage collector \(<built-in .* collect.*>\)\.",
        in_turn("host", name="<built-in function collect>"),
        "a function that collects something else does",
        in_turn("host", name="<built-in method collect of queue>"),
    ),
]

NO_CLAIMS = {
    "Reading the ranks.": "progress",
    "Of the {count} ranks read so far, {sentence}": "progress, around another sentence",
    "{names} of {host}": "a part of another sentence",
    "{prefix}{names}": "a part of another sentence",
    "{among}{names} is a straggler: it costs {others} {limit}{cost} {per_step}.": "the other, for a slower link",
    "{names} {costs} {others} {cost} {per_step}": "a part of another sentence",
    "{cost}, less than {worth} of {base}.": "as the ranks are balanced",
    "The {count} ranks{found} are balanced; no straggler among them.": "as the ranks are balanced",
    "{compared} of {all} {were} compared": "what was read: tests/views/distributed/test_missing.py",
    "{count}.": "what was read: tests/views/distributed/test_missing.py",
    **dict.fromkeys(
        (
            "{count}; {why}.",
            "{count}; {files}, and {times}.",
            "{traces} {missing} {are} missing",
            "the operations of {noun} {untimed} have no device times",
        ),
        "what was read: tests/views/distributed/test_missing.py and test_recordings.py",
    ),
    "No {rank} of this job can be compared.": "why nothing is said",
    "Only {rank} was read. Add the other ranks' traces to see who waits for whom.": "why nothing is said",
    "The traces don't record which ranks communicate, so waiting can't be attributed.": "why nothing is said",
    "No collective could be matched between the ranks, so waiting can't be attributed.": "why nothing is said",
    "No delay is attributed to the ranks that were {compared}.": "why nothing is said",
    "No delay is attributed to any rank.": "as the ranks are balanced",
    **dict.fromkeys(
        (
            "its collectives take longer to transfer than the same ones on other ranks",
            "the same kernels take {ratio} × the median",
            "the same kernels take {ratio} × as long as on {others}",
            "waits for {rank}",
            "{more} more in {name}",
            "{more} more {doing}",
        ),
        "a cell of the table that says what the sentence on the cause does: test_simulated_delays.py",
    ),
}
"""Templates that say nothing of who, why, or how much, with the reason."""
