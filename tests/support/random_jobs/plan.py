"""What a random job consists of: drawn from a seed, which draws it again.

A planted cause is work that one rank does beyond the others (see `Delay`), or that all ranks do while their GPUs
idle. An odd step is one in which all ranks do something once. Ranks may be missing, and clocks ahead of each
other.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.support.simulation.simulator import (
    ODD_OPERATOR,
    Action,
    Collective,
    Delay,
    Host,
    SimulatedKernel,
    Simulation,
    Sync,
    ddp,
    fsdp,
    pipeline,
    tensor_and_data_parallel,
)

SHARED_LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
SHARED_OPERATOR = "tokenize"

DELAY_NAMES = {
    "host": ("prepare_batch",),
    "frame": ("aten::sort", "prepare_batch"),
    "loading": (SHARED_LOADER,),
    "work": ("extra_expert",),
}
"""Kind of a delay -> names of what takes the time."""


@dataclass(frozen=True)
class JobPlan:
    """A job to simulate, and what to hide of it.

    cause    why one rank is late in every step; None if none is
    shared   what all ranks do on the host in every step while their GPUs idle (`loading` or `host`), and µs of it
    odd      (step, µs) in which all ranks do something once
    present  the ranks whose traces are found
    ahead    rank -> µs by which its clock is ahead
    """

    seed: int
    simulation: Simulation
    cause: Delay | None
    shared: tuple[str, float] | None
    odd: tuple[int, float] | None
    present: tuple[int, ...]
    ahead: dict[int, float]

    @property
    def ranks(self) -> int:
        return len(self.simulation.programs)

    @property
    def missing(self) -> tuple[int, ...]:
        """The ranks whose traces are missing."""
        return tuple(rank for rank in range(self.ranks) if rank not in self.present)

    def without(self, *, cause: bool = False, shared: bool = False) -> Simulation:
        """Return the job without its planted causes."""
        simulation = self.simulation
        skipped = int(shared and self.shared is not None)
        programs = [program[skipped:] for program in simulation.programs]
        delays = () if cause else simulation.delays
        return replace(simulation, programs=programs, delays=delays, _ends={}, _arrived={})

    def scaled(self, kind: type[SimulatedKernel | Host | Collective], factor: float) -> Simulation:
        """Return the job with all kernels, or all collectives, that many times as long."""
        programs = [
            [replace(each, us=each.us * factor) if isinstance(each, kind) else each for each in program]
            for program in self.simulation.programs
        ]
        scaled = {SimulatedKernel: ("work",), Host: ("host", "frame", "loading")}.get(kind, ())
        delays = [
            replace(each, us=each.us * factor) if each.kind in scaled else each for each in self.simulation.delays
        ]
        odd = self.simulation.odd
        if odd is not None and kind is Host:
            odd = odd[0], odd[1] * factor
        return replace(self.simulation, programs=programs, delays=delays, odd=odd, _ends={}, _arrived={})

    def of_rank(self, rank: int, latencies: Sequence[float]) -> Simulation:
        """Return the job of one rank, whose collectives take that long whatever the others do."""
        program: list[Action] = []
        left = iter(latencies)
        for each in self.simulation.programs[rank]:
            if isinstance(each, Collective):
                stream = f"{each.group} {each.ranks if each.name == 'send' else ''}"
                each = Collective(each.name, (0,), stream, next(left), each.elements)
            program.append(each)
        delays = [replace(each, rank=0) for each in self.simulation.delays if each.rank == rank]
        return replace(self.simulation, programs=[program], delays=delays, _ends={}, _arrived={})

    @staticmethod
    def without_named(name: str, simulation: Simulation) -> Simulation:
        """Return a job without kernels, host code or data loading of that name."""
        programs = [
            [each for each in program if isinstance(each, Collective) or getattr(each, "name", "") != name]
            for program in simulation.programs
        ]
        delays = [each for each in simulation.delays if name not in DELAY_NAMES.get(each.kind, ())]
        odd = None if name == ODD_OPERATOR else simulation.odd
        return replace(simulation, programs=programs, delays=delays, odd=odd, _ends={}, _arrived={})

    @staticmethod
    def without_syncs(simulation: Simulation) -> Simulation:
        """Return a job in which the host never waits for the device."""
        programs = [[each for each in program if not isinstance(each, Sync)] for program in simulation.programs]
        return replace(simulation, programs=programs, _ends={}, _arrived={})


def draw_plan(seed: int) -> JobPlan:
    """Draw the job of a seed."""
    dice = random.Random(seed)
    programs = _programs(dice)
    ranks, steps = len(programs), dice.randint(4, 8)
    step_us = max(sum(each.us for each in program if isinstance(each, SimulatedKernel)) for program in programs)
    cause = _cause(dice, programs, step_us) if dice.random() < 0.6 else None
    shared = None
    if dice.random() < 0.3:
        shared = dice.choice(["loading", "host"]), step_us * dice.uniform(0.1, 0.6)
        loads = shared[0] == "loading"
        planted = Host(SHARED_LOADER if loads else SHARED_OPERATOR, shared[1], loads)
        programs = [[planted, *program] for program in programs]
    odd = (dice.randrange(steps), step_us * dice.uniform(3, 20)) if dice.random() < 0.2 and steps > 4 else None
    missing = dice.sample(range(ranks), dice.randint(1, max(ranks // 3, 1))) if dice.random() < 0.25 else []
    ahead = {rank: dice.uniform(-20_000, 20_000) for rank in range(ranks)} if dice.random() < 0.3 else {}
    simulation = Simulation(
        programs,
        steps=steps,
        delays=[] if cause is None else [cause],
        jitter=dice.choice([0.0, 0.01, 0.02]),
        seed=seed,
        per_host=dice.choice([1, 8]) if ahead else 8,
        syncs=True,
        odd=odd,
    )
    present = tuple(rank for rank in range(ranks) if rank not in missing)
    return JobPlan(seed, simulation, cause, shared, odd, present, ahead)


def _programs(dice: random.Random) -> Sequence[Sequence[Action]]:
    kind = dice.choice(["ddp", "ddp", "sequential", "fsdp", "tensor", "pipeline"])
    programs: Sequence[Sequence[Action]]
    if kind in ("ddp", "sequential"):
        programs = ddp(dice.randint(2, 5), dice.randint(1, 3), overlap=kind == "ddp")
    elif kind == "fsdp":
        programs = fsdp(dice.randint(2, 4), dice.randint(2, 3))
    elif kind == "tensor":
        programs = tensor_and_data_parallel(4, 2, dice.randint(1, 2))
    else:
        programs = pipeline(dice.randint(2, 4), dice.randint(2, 4))
    kernels, transfers = dice.uniform(0.3, 3.0), dice.uniform(0.1, 3.0)
    return [[_scale_times(each, kernels, transfers) for each in program] for program in programs]


def _scale_times(action: Action, kernels: float, transfers: float) -> Action:
    if isinstance(action, SimulatedKernel):
        return replace(action, us=action.us * kernels)
    if isinstance(action, Collective):
        return replace(action, us=action.us * transfers)
    return action


def _cause(dice: random.Random, programs: Sequence[Sequence[Action]], step_us: float) -> Delay:
    rank = dice.randrange(len(programs))
    kind = dice.choice(["host", "frame", "loading", "work", "device"])
    if kind == "device":
        return Delay(kind, rank, factor=dice.uniform(1.1, 2.0))
    return Delay(kind, rank, us=step_us * dice.uniform(0.03, 1.0))
