"""What a random job consists of: drawn from a seed, which draws it again.

A planted cause is work that ranks do beyond the others (see `Delay`), or that all ranks do while their GPUs idle:

    rank     one rank is late in every step
    half     half of the ranks have slower devices
    in turn  another rank each has more work, as the experts of a mixture do
    stall    the data loader of each rank stalls every few steps
    devices  each process computes on two devices, of which the second may not wait for collectives
    evaluation  all ranks evaluate outside of the steps, every few of them
    accumulation  gradients are reduced and applied in every few steps only
    checkpoint  rank 0 alone does something in every few steps
    rows     one rank works on more rows in every step
    network  all transfers are slow, and one rank is found

An odd step is one in which all ranks do something once. Ranks may be missing, and clocks ahead of each other.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from tests.support.simulation.simulator import (
    FRAME_OPERATOR,
    FRAME_OPERATOR_SHARE,
    ODD_OPERATOR,
    Action,
    Call,
    Collective,
    Copy,
    Delay,
    Host,
    SimulatedKernel,
    Simulation,
    Sync,
    ddp,
    fsdp,
    on_two_devices,
    pipeline,
    tensor_and_data_parallel,
)

SHARED_LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
SHARED_OPERATOR = "tokenize"

_PLANTED_ACTIONS = {"allocator": Call, "copies": Copy}
"""What all ranks do during the step, not before it -> what of the program that is."""

DELAY_NAMES = {
    "host": ("prepare_batch",),
    "frame": (FRAME_OPERATOR, "prepare_batch"),
    "loading": (SHARED_LOADER,),
    "work": ("extra_expert",),
}
"""Kind of a delay -> names of what takes the time."""


@dataclass(frozen=True)
class Gpu:
    """A model as its driver names it, with what its vendor states: FLOP/s of dense bf16, bytes/s, and bytes."""

    name: str
    flops: float
    memory: float
    bytes: int

    def shortest_us(self, product: tuple[int, int, int]) -> float:
        """Return the µs that a bf16 product takes at the peaks of this model: its roofline."""
        m, n, k = product
        return max(2 * m * n * k / self.flops, 2 * (m * n + m * k + n * k) / self.memory) * 1e6


GPUS = (
    Gpu("NVIDIA H100 80GB HBM3", 989.4e12, 3352e9, 85 * 10**9),
    Gpu("NVIDIA A100-SXM4-40GB", 312e12, 1555e9, 42 * 10**9),
    Gpu("NVIDIA A100-SXM4-80GB", 312e12, 2039e9, 85 * 10**9),
    Gpu("NVIDIA H200", 989.4e12, 4800e9, 150 * 10**9),
    Gpu("NVIDIA L40S", 362e12, 864e9, 48 * 10**9),
)


@dataclass(frozen=True)
class JobPlan:
    """A job to simulate, and what to hide of it.

    kind     what is planted, see above
    causes   why ranks are late, and in which steps; () if none is
    shared   what all ranks do on the host in every step while their GPUs idle (`loading` or `host`), and µs of it
    odd      (step, µs) in which all ranks do something once
    present  the ranks whose traces are found
    ahead    rank -> µs by which its clock is ahead
    gpu      model of the devices, None for one that nobody knows
    cut      at which shares of the first and the last step the recording begins and ends, None if it has all
    """

    seed: int
    simulation: Simulation
    kind: str
    causes: tuple[Delay, ...]
    shared: tuple[str, float] | None
    odd: tuple[int, float] | None
    present: tuple[int, ...]
    ahead: dict[int, float]
    gpu: Gpu | None = None
    cut: tuple[float, float] | None = None

    @property
    def ranks(self) -> int:
        return len(self.simulation.programs)

    @property
    def missing(self) -> tuple[int, ...]:
        """Return the ranks whose traces are missing."""
        return tuple(rank for rank in range(self.ranks) if rank not in self.present)

    @property
    def late(self) -> tuple[int, ...]:
        """Return the ranks that are late in every step."""
        return tuple(each.rank for each in self.causes if each.steps is None)

    @property
    def late_at_times(self) -> tuple[Delay, ...]:
        """Return why ranks are late in some steps; () if all are in the same ones, so that none waits."""
        at_times = tuple(each for each in self.causes if each.steps is not None)
        together = len(at_times) == self.ranks and len({(each.steps, each.us) for each in at_times}) == 1
        return () if together else at_times

    def late_in(self, step: int) -> list[Delay]:
        """Return why ranks are late in a step, but not in every one."""
        return [each for each in self.causes if each.steps is not None and step in each.steps]

    def lateness(self, cause: Delay) -> float:
        """Return the µs by which a rank is late for that reason."""
        if cause.kind not in ("larger", "rows", "device"):
            return cause.us
        kernels = [each for each in self.simulation.programs[cause.rank] if isinstance(each, SimulatedKernel)]
        larger = [each.us for each in kernels if cause.kind != "larger" or each.name == cause.kernel]
        return (cause.factor - 1) * sum(larger)

    def cause_of(self, rank: int) -> Delay | None:
        """Return why a rank is late in every step, None if it isn't."""
        return next((each for each in self.causes if each.rank == rank and each.steps is None), None)

    def without(self, *, cause: bool = False, shared: bool = False) -> Simulation:
        """Return the job without its planted causes."""
        simulation = self.simulation
        programs = simulation.programs
        if shared and self.shared is not None:
            planted = _PLANTED_ACTIONS.get(self.shared[0])
            programs = [
                program[1:] if planted is None else [each for each in program if not isinstance(each, planted)]
                for program in programs
            ]
        delays = () if cause else simulation.delays
        return replace(simulation, programs=programs, delays=delays, _ends={}, _arrived={})

    def scaled(self, kind: type[SimulatedKernel | Host | Collective | Copy | Call], factor: float) -> Simulation:
        """Return the job with all kernels, or all collectives, that many times as long."""
        programs = [
            [self._scale(rank, each, factor) if isinstance(each, kind) else each for each in program]
            for rank, program in enumerate(self.simulation.programs)
        ]
        scaled = {SimulatedKernel: ("work",), Host: ("host", "frame", "loading")}.get(kind, ())
        delays = [
            replace(each, us=each.us * factor) if each.kind in scaled else each for each in self.simulation.delays
        ]
        odd = self.simulation.odd
        if odd is not None and kind is Host:
            odd = odd[0], odd[1] * factor
        return replace(self.simulation, programs=programs, delays=delays, odd=odd, _ends={}, _arrived={})

    def _scale(self, rank: int, action: Any, factor: float) -> Any:
        """Return an action that takes so many times as long, but no less than its roofline allows."""
        us = action.us * factor
        if isinstance(action, SimulatedKernel) and action.product is not None and self.gpu is not None:
            slower = prod(
                each.factor for each in self.simulation.delays if (each.kind, each.rank) == ("device", rank)
            )
            us = max(us, min(action.us, self.gpu.shortest_us(action.product) / slower))
        return replace(action, us=us)

    def of_rank(self, rank: int, latencies: Sequence[float]) -> Simulation:
        """Return the job of one rank, whose collectives take that long whatever the others do."""
        program: list[Action] = []
        left = iter(latencies)
        for each in self.simulation.programs[rank]:
            if isinstance(each, Collective):
                stream = f"{each.group} {each.ranks if each.name == 'send' else ''}"
                each = Collective(each.name, (0,), stream, next(left, 0.0), each.elements)
            program.append(each)
        delays = [replace(each, rank=0) for each in self.simulation.delays if each.rank == rank]
        return replace(self.simulation, programs=[program], delays=delays, _ends={}, _arrived={})

    @staticmethod
    def without_named(name: str, simulation: Simulation) -> Simulation:
        """Return a job without what has that name; a frame without its operator keeps the rest."""
        programs = [
            [each for each in program if isinstance(each, Collective) or getattr(each, "name", "") != name]
            for program in simulation.programs
        ]
        delays = [
            replace(each, us=each.us * (1 - FRAME_OPERATOR_SHARE))
            if each.kind == "frame" and name == FRAME_OPERATOR
            else each
            for each in simulation.delays
            if name not in DELAY_NAMES.get(each.kind, ()) or each.kind == "frame" and name == FRAME_OPERATOR
        ]
        odd = None if name == ODD_OPERATOR else simulation.odd
        return replace(simulation, programs=programs, delays=delays, odd=odd, _ends={}, _arrived={})

    @staticmethod
    def without_syncs(simulation: Simulation) -> Simulation:
        """Return a job in which the host never waits for the device."""
        programs = [[each for each in program if not isinstance(each, Sync)] for program in simulation.programs]
        return replace(simulation, programs=programs, _ends={}, _arrived={})


def draw_plan(seed: int) -> JobPlan:
    """Draw the job of a seed, of which `variants` makes others."""
    dice = random.Random(seed)
    programs = _programs(dice)
    ranks, steps = len(programs), dice.randint(4, 8)
    step_us = max(sum(each.us for each in program if isinstance(each, SimulatedKernel)) for program in programs)
    causes: tuple[Delay, ...] = (_cause(dice, programs, step_us),) if dice.random() < 0.6 else ()
    shared = None
    if dice.random() < 0.3:
        shared = dice.choice(["loading", "host"]), step_us * dice.uniform(0.1, 0.6)
        loads = shared[0] == "loading"
        planted = Host(SHARED_LOADER if loads else SHARED_OPERATOR, shared[1], loads)
        programs = [[planted, *program] for program in programs]
    odd = (dice.randrange(steps), step_us * dice.uniform(3, 20)) if dice.random() < 0.2 and steps > 4 else None
    missing = dice.sample(range(ranks), dice.randint(1, max(ranks // 3, 1))) if dice.random() < 0.25 else []
    ahead = {rank: dice.uniform(-20_000, 20_000) for rank in range(ranks)} if dice.random() < 0.3 else {}
    kind = "rank"
    chance = random.Random(f"{seed} kind")  # of its own: what else a seed draws stays the same
    if chance.random() < 0.3:
        kind = chance.choice(["half", "in turn", "stall", "devices"])
        steps = max(steps, 6) if kind in ("in turn", "stall") else steps
        causes = causes if kind == "devices" else _causes_of_many(chance, kind, programs, steps, step_us)
        share = chance.uniform(0.3, 1.0)
        if kind == "devices":
            waits = chance.random() < 0.5
            programs = [on_two_devices(each, share, waits) for each in programs]
    if kind == "stall" and 2 * len(causes[0].steps or ()) >= steps:
        odd = None  # with steps of three lengths, half of which stall, none is typical
    further = random.Random(f"{seed} further")
    variant = further.choice(["evaluation", "accumulation", "checkpoint", "rows", "network"])
    between, accumulates = None, 1
    if kind == "rank" and further.random() < 0.3:
        kind = variant
        if kind == "evaluation":
            between = further.randint(1, 3), step_us * further.uniform(0.3, 5.0)
        elif kind == "accumulation":
            accumulates, missing = further.randint(2, 4), []
            steps = 4 * accumulates
            programs = ddp(further.randint(2, 5), 2, overlap=further.random() < 0.5)
            causes = tuple(each for each in causes if each.rank < len(programs))
            ranks, shared, odd = len(programs), None, None
            ahead = {rank: ahead[rank] for rank in range(ranks)} if len(ahead) >= ranks else {}
        elif kind == "checkpoint":
            every, us = further.randint(3, 4), step_us * further.uniform(0.5, 5.0)
            steps, odd = max(steps, 6), None
            causes = (Delay("host", 0, us=us, steps=tuple(range(every - 1, steps, every))),)
        elif kind == "rows":
            causes = (Delay("rows", further.randrange(ranks), factor=further.uniform(1.1, 1.8)),)
        else:
            slower, elements = further.uniform(5.0, 40.0), further.choice([500, 50_000, 5_000_000, 200_000_000])
            programs = [[_slow_down(each, slower, elements) for each in program] for program in programs]
            causes, spared_rank = (), further.randrange(ranks)
            missing = [rank for rank in range(ranks) if rank != spared_rank]
    simulation = Simulation(
        programs,
        between=between,
        accumulates=accumulates,
        steps=steps,
        delays=causes,
        jitter=dice.choice([0.0, 0.01, 0.02]),
        seed=seed,
        per_host=dice.choice([1, 8]) if ahead else 8,
        syncs=True,
        odd=odd,
    )
    present = tuple(rank for rank in range(ranks) if rank not in missing)
    return JobPlan(seed, simulation, kind, causes, shared, odd, present, ahead)


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


def _slow_down(action: Action, factor: float, elements: int) -> Action:
    """Return a collective that takes that many times as long and moves that many elements."""
    if isinstance(action, Collective):
        return replace(action, us=action.us * factor, elements=elements)
    return action


def _cause(dice: random.Random, programs: Sequence[Sequence[Action]], step_us: float) -> Delay:
    rank = dice.randrange(len(programs))
    kind = dice.choice(["host", "frame", "loading", "work", "device"])
    if kind == "device":
        return Delay(kind, rank, factor=dice.uniform(1.1, 2.0))
    return Delay(kind, rank, us=step_us * dice.uniform(0.03, 1.0))


def _causes_of_many(
    dice: random.Random, kind: str, programs: Sequence[Sequence[Action]], steps: int, step_us: float
) -> tuple[Delay, ...]:
    ranks = range(len(programs))
    if kind == "half":
        late, factor = dice.sample(ranks, len(ranks) // 2), dice.uniform(1.1, 1.6)
        return tuple(Delay("device", rank, factor=factor) for rank in sorted(late))
    if kind == "in turn":
        kernel = max((each for each in programs[0] if isinstance(each, SimulatedKernel)), key=lambda each: each.us)
        return tuple(
            Delay("larger", rank, kernel=kernel.name, factor=dice.uniform(1.3, 2.5), steps=numbers)
            for rank in ranks
            if (numbers := tuple(range(rank, steps, len(ranks))))
        )
    every, stall = dice.randint(2, 4), step_us * dice.uniform(0.2, 2.0)
    first = [0] * len(ranks) if dice.random() < 0.3 else [dice.randrange(every) for _ in ranks]
    return tuple(Delay("loading", rank, us=stall, steps=tuple(range(first[rank], steps, every))) for rank in ranks)
