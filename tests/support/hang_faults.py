"""Jobs of any shape with a planted fault, simulated call by call: who is at fault is known, and who waits.

Each rank runs a program of calls. A call ends when the counterpart is there: all members of a collective in calls
of the same kind, or the other side of a message. What has ended when nothing can move any more is what the
recorders of such a job hold.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tests.support.dumps import DrawnJob

Fault = Literal["stop", "wrong_op", "wrong_size", "skip", "swap", "none"]


@dataclass(frozen=True)
class ProgramCall:
    """A collective of a group, or a message between two of its members (global ranks)."""

    operation: str
    group: str
    elements: int = 32
    peer: int | None = None


@dataclass
class PlantedJob:
    """A job that ran until nothing moved.

    fault    what was planted at the culprit
    waiting  ranks that are in a call when nothing moves any more
    """

    fault: Fault
    culprit: int
    job: DrawnJob
    waiting: list[int]


def draw_groups(random_: random.Random, world: int) -> dict[str, list[int]]:
    """Return tensor-, data- and pipeline-parallel groups of a grid, or groups that overlap at random."""
    if random_.random() < 0.6:
        tensor = random_.choice([size for size in (1, 2, 4) if world % size == 0])
        groups = {f"tp{first}": list(range(first, first + tensor)) for first in range(0, world, tensor)}
        groups |= {f"dp{place}": list(range(place, world, tensor)) for place in range(tensor)}
    else:
        groups = {f"g{i}": sorted(random_.sample(range(world), random_.randint(2, world))) for i in range(3)}
    return {name: ranks for name, ranks in groups.items() if len(ranks) > 1}


def draw_programs(
    random_: random.Random, world: int, groups: dict[str, list[int]]
) -> dict[int, list[ProgramCall]]:
    """Return a program per rank; all ranks agree on the order of what they share, so it ends without a fault."""
    programs: dict[int, list[ProgramCall]] = {rank: [] for rank in range(world)}
    everyone = {"0": list(range(world)), **groups}
    for _ in range(random_.randint(4, 12)):
        name = random_.choice(list(everyone))
        members = everyone[name]
        if random_.random() < 0.25:
            one, other = random_.sample(members, 2)
            programs[one].append(ProgramCall("send", name, peer=other))
            programs[other].append(ProgramCall("recv", name, peer=one))
            continue
        operation = random_.choice(["all_reduce", "all_gather", "broadcast", "_reduce_scatter_base"])
        elements = random_.choice([8, 32, 1024])
        for rank in members:
            programs[rank].append(ProgramCall(operation, name, elements))
    return programs


def plant(random_: random.Random, programs: dict[int, list[ProgramCall]], fault: Fault) -> tuple[int, int] | None:
    """Change the program of one rank; return the rank and the place, or None if nothing there can be changed."""
    places = [
        (rank, place)
        for rank, program in programs.items()
        for place, call in enumerate(program)
        if call.peer is None or fault == "stop"
    ]
    if not places:
        return None
    rank, place = random_.choice(places)
    program = programs[rank]
    call = program[place]
    if fault == "stop":
        del program[place:]
    elif fault == "wrong_op":
        other = random_.choice(
            [name for name in ("all_reduce", "all_gather", "broadcast") if name != call.operation]
        )
        program[place] = ProgramCall(other, call.group, call.elements)
    elif fault == "wrong_size":
        program[place] = ProgramCall(call.operation, call.group, call.elements + 5)
    elif fault == "skip":
        del program[place]
    elif fault == "swap":
        if place + 1 == len(program) or program[place + 1] == call or program[place + 1].peer is not None:
            return None
        program[place : place + 2] = program[place + 1], call
    return rank, place


def run(
    world: int, groups: dict[str, list[int]], programs: dict[int, list[ProgramCall]], ahead: int
) -> tuple[DrawnJob, list[int]]:
    """Run the programs until nothing moves; return the job's recorders and the ranks that are in a call.

    ahead  collectives of the same group that a host launches behind the one that its rank is in
    """
    job = DrawnJob(world, groups)
    everyone: dict[str, Sequence[int]] = {"0": range(world), **groups}
    at = dict.fromkeys(range(world), 0)
    entered: dict[int, tuple[ProgramCall, int]] = {}
    counts: dict[tuple[int, str], int] = {}
    while True:
        for rank, program in programs.items():
            if rank not in entered and at[rank] < len(program):
                call = program[at[rank]]
                if call.peer is None:
                    counts[rank, call.group] = counts.get((rank, call.group), 0) + 1
                    job.call(call.operation, [rank], group=call.group, done=False, elements=call.elements)
                else:
                    job.message(call.operation, rank, call.peer, group=call.group, done=False)
                entered[rank] = call, len(job.entries[rank]) - 1
        ended: list[int] = []
        for rank, (call, _) in entered.items():
            if call.peer is None:
                members = everyone[call.group]
                same = [entered[member][0] for member in members if member in entered]
                numbers = {counts.get((member, call.group), 0) for member in members}
                if len(same) == len(members) and all(other == call for other in same) and len(numbers) == 1:
                    ended.append(rank)
            elif call.peer in entered:
                other = entered[call.peer][0]
                if other.peer == rank and other.group == call.group and other.operation != call.operation:
                    ended.append(rank)
        if not ended:
            for rank, (call, _) in entered.items():
                if call.peer is None:
                    _queue(job, rank, call.group, programs[rank][at[rank] + 1 : at[rank] + 1 + ahead])
            return job, sorted(entered)
        for rank in ended:
            _, place = entered.pop(rank)
            entry = job.entries[rank][place]
            entry.update(state="completed", retired=True, time_discovered_completed_ns=job.time)
            at[rank] += 1


def _queue(job: DrawnJob, rank: int, group: str, calls: Sequence[ProgramCall]) -> None:
    for call in calls:
        if call.peer is not None or call.group != group:
            return  # work of another group waits for the result
        job.call(call.operation, [rank], group=call.group, done=False, elements=call.elements)


def draw_job(seed: int, fault: Fault) -> PlantedJob | None:
    """Return a job with a fault, or None if the one drawn with this seed doesn't hang, or can't have it."""
    random_ = random.Random(f"{fault} {seed}")
    world = random_.choice([2, 3, 4, 6, 8, 12, 16])
    groups = draw_groups(random_, world)
    programs = draw_programs(random_, world, groups)
    planted = plant(random_, programs, fault) if fault != "none" else (0, 0)
    if planted is None:
        return None
    job, waiting = run(world, groups, programs, random_.choice([0, 0, 1, 5]))
    if fault != "none" and not waiting:
        return None
    if random_.random() < 0.3:
        for rank in range(world):
            job.lose(rank, random_.randint(0, len(job.entries[rank]) // 2))
    return PlantedJob(fault, planted[0], job, waiting)
