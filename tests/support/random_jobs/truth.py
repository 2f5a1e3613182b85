"""What is true of a random job, computed from its simulation the slow way."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tests.support.random_jobs.plan import JobPlan
from tests.support.simulation.files import RecordedJob, RecordedSpan
from tests.support.simulation.simulator import Call, Collective, Copy, Host, SimulatedKernel, Simulation

Interval = tuple[float, float]


def union_us(intervals: Iterable[Interval]) -> float:
    """Return the length of the union."""
    length, reached = 0.0, float("-inf")
    for start, end in sorted(intervals):
        length += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return length


def _durations(simulation: Simulation) -> list[float]:
    """Return the µs of each step of the first rank."""
    return [span.end - span.start for span in simulation.run().spans[0] if span.kind == "step"]


def _in_steps(job: RecordedJob) -> float:
    """Return the µs that a job of one rank spends in steps, each from where no earlier one works to its last work.

    What is saved outside of steps, where an evaluation overlaps with the work of the step before, isn't a step's.
    """
    whole, reached = 0.0, 0.0
    for step in (span for span in job.spans[0] if span.kind == "step"):
        launched = [span.end for span in job.spans[0] if span.launch and step.start <= span.launch < step.end]
        end = max([step.end, *launched])
        whole += end - max(step.start, reached)
        reached = max(reached, end)
    return whole


@dataclass(frozen=True)
class JobTruth:
    """The job of a plan, simulated; times in µs per step.

    device  the device of each process whose work counts; None for all of them together
    """

    plan: JobPlan
    job: RecordedJob
    device: int | None = None

    @classmethod
    def of(cls, plan: JobPlan) -> JobTruth:
        """Simulate a plan."""
        job = plan.simulation.run()
        if plan.gpu is not None:
            job = replace(job, device_name=plan.gpu.name, device_bytes=plan.gpu.bytes)
        return cls(plan, job)

    @cached_property
    def recorded(self) -> RecordedJob:
        """Return what the profilers record of the job."""
        if self.plan.cut is None:
            return self.job
        first, last = self._spans(0, "step")[0], self._spans(0, "step")[-1]
        begin, end = (
            step.start + share * (step.end - step.start)
            for step, share in zip((first, last), self.plan.cut, strict=True)
        )
        return self.job.between(begin, end)

    def recorded_steps(self, rank: int) -> list[tuple[int, RecordedSpan]]:
        """Return the steps of a rank that are recorded as a whole, with their numbers."""
        recorded = {span.name: span for span in self.recorded.spans[rank] if span.kind == "step"}
        names = [span.name for span in self._spans(rank, "step")]
        return [(number, recorded[name]) for number, name in enumerate(names) if name in recorded]

    def left_out(self, rank: int) -> frozenset[int]:
        """Return the steps of a rank that are recorded in part or not at all: no two ranks end a step at once."""
        return frozenset(range(self.steps)) - {number for number, _ in self.recorded_steps(rank)}

    def on_device(self, device: int) -> JobTruth:
        """Return the truth of one device of each process; the first one communicates."""
        return replace(self, device=device)

    @property
    def devices(self) -> int:
        """Return the number of devices of each process."""
        return 2 if self.plan.kind == "devices" else 1

    @property
    def steps(self) -> int:
        return self.plan.simulation.steps

    @cached_property
    def cause_cost(self) -> float:
        """Return what the late ranks cost the job per step."""
        return 0.0 if not self.plan.causes else self._cost(self.plan.without(cause=True))

    @cached_property
    def split_cost(self) -> float:
        """Return what more rows of a rank cost the job per step beyond as many rows on every rank."""
        simulation = self.plan.simulation
        ranks = range(len(simulation.programs))
        larger = [each for each in simulation.delays if each.steps is None and each.kind in ("rows", "larger")]
        others = [each for each in simulation.delays if each not in larger]
        even = [
            replace(each, rank=rank, factor=1 + (each.factor - 1) / len(ranks))
            for each in larger
            for rank in ranks
        ]
        return self._cost(replace(simulation, delays=[*others, *even], _ends={}, _arrived={}))

    def cost_of(self, ranks: Collection[int], missing: Collection[int] = ()) -> float:
        """Return what the lateness of these ranks alone costs the job per step if no missing one is late."""
        return self._step(self._without_late({*missing})) - self._step(self._without_late({*missing, *ranks}))

    def _without_late(self, ranks: Collection[int]) -> Simulation:
        delays = [each for each in self.plan.simulation.delays if each.rank not in ranks]
        return replace(self.plan.simulation, delays=delays, _ends={}, _arrived={})

    @cached_property
    def shared_cost(self) -> float:
        """Return what the work that all ranks do on the host costs per step."""
        return 0.0 if self.plan.shared is None else self._cost(self.plan.without(shared=True))

    @cached_property
    def step(self) -> float:
        """Return the mean step of the job that isn't odd."""
        return self._mean_step(self.job)

    def with_kernels(self, factor: float) -> float:
        """Return the mean step with kernels of all ranks that many times as long."""
        return self._step(self.plan.scaled(SimulatedKernel, factor))

    def with_device_work(self, factor: float) -> float:
        """Return the mean step with kernels and copies of all ranks that many times as long."""
        copied = replace(self.plan, simulation=self.plan.scaled(Copy, factor))
        return self._step(copied.scaled(SimulatedKernel, factor))

    def with_host(self, factor: float) -> float:
        """Return the mean step with host code of all ranks, and their calls, that many times as long."""
        called = replace(self.plan, simulation=self.plan.scaled(Call, factor))
        return self._step(called.scaled(Host, factor))

    def with_transfers(self, factor: float) -> float:
        """Return the mean step with transfers that many times as long."""
        return self._step(self.plan.scaled(Collective, factor))

    def saved_alone(self, rank: int, name: str, odd: Collection[int]) -> float:
        """Return what a step of a rank saves without what has that name, if its communication takes as long.

        That differs between the steps: in one it waits for others, in the next it may be late itself.
        """
        return self._saved_alone(rank, odd, lambda alone: self.plan.without_named(name, alone))

    def saved_alone_by_shared(self, rank: int, odd: Collection[int]) -> float:
        """Return what a step of a rank saves without what all ranks do, if its communication takes as long."""
        return self._saved_alone(
            rank, odd, lambda alone: replace(self.plan, simulation=alone).without(shared=True)
        )

    def saved_alone_by_kernels(self, rank: int, copies: bool, odd: Collection[int]) -> float:
        """Return what a step of a rank saves with kernels (and copies) twice as fast, if communication stays."""

        def speed_up(alone: Simulation) -> Simulation:
            # Its kernels are those of rank 0 of the job in which it is alone.
            plan = replace(self.plan, simulation=alone)
            copied = replace(plan, simulation=plan.scaled(Copy, 0.5)) if copies else plan
            return copied.scaled(SimulatedKernel, 0.5)

        return self._saved_alone(rank, odd, speed_up)

    def _saved_alone(self, rank: int, odd: Collection[int], change: Callable[[Simulation], Simulation]) -> float:
        typical = [number for number in range(self.steps) if number not in odd]
        saved = 0.0
        for number in typical:
            alone = replace(self.plan.of_rank(rank, self._latencies(rank, number)), steps=number + 1)
            without = change(alone)
            saved += _durations(alone)[number] - _durations(without)[number]
        return saved / len(typical)

    def _mean_latencies(self, rank: int, odd: Collection[int]) -> list[float]:
        """Return the mean µs of each collective of a rank's typical step."""
        latencies = [self._latencies(rank, number) for number in range(self.steps) if number not in odd]
        communicating = [each for each in latencies if each]  # gradients may be reduced in some steps only
        return [sum(each) / len(communicating) for each in zip(*communicating, strict=True)]

    def _latencies(self, rank: int, step: int) -> list[float]:
        """Return the µs of each collective of a rank in one step."""
        programs = [self.plan.simulation.program_of(rank, number) for number in range(step + 1)]
        counts = [sum(isinstance(action, Collective) for action in program) for program in programs]
        spans = self._communicating(rank)[sum(counts[:-1]) : sum(counts)]
        return [span.end - span.start for span in spans]

    def without_named(self, name: str) -> float:
        """Return the mean step without what has that name on any rank: kernels, host code, or data loading."""
        return self._step(self.plan.without_named(name, self.plan.simulation))

    def saved_by_no_syncs(self, rank: int, odd: Collection[int]) -> float:
        """Return what a rank alone saves per step if its host never waits for its device: steps overlap."""
        alone = self.plan.of_rank(rank, self._mean_latencies(rank, odd))
        typical_steps = [number for number in range(self.steps) if number not in odd]
        delays = [
            each
            if each.steps is None
            else replace(
                each, steps=tuple(typical_steps.index(step) for step in each.steps if step in typical_steps)
            )
            for each in alone.delays
        ]
        typical_plan = replace(alone, steps=len(typical_steps), delays=delays, odd=None, _ends={}, _arrived={})
        return (_in_steps(typical_plan.run()) - _in_steps(self.plan.without_syncs(typical_plan).run())) / len(
            typical_steps
        )

    @property
    def planted_odd(self) -> tuple[int, ...]:
        """Return the steps in which all ranks do something once."""
        return () if self.plan.odd is None else self.plan.odd[:1]

    def _cost(self, without: Simulation) -> float:
        return self.step - self._step(without)

    def _step(self, simulation: Simulation) -> float:
        return self._mean_step(simulation.run())

    def _mean_step(self, job: RecordedJob) -> float:
        steps = [
            span.end - span.start
            for spans in job.spans
            for number, span in enumerate(each for each in spans if each.kind == "step")
            if number not in self.planted_odd
        ]
        return sum(steps) / len(steps)

    def durations(self, rank: int) -> list[float]:
        """Return the µs of each step of a rank."""
        return [span.end - span.start for span in self._spans(rank, "step")]

    def between(self, rank: int) -> float:
        """Return the µs between a rank's first and last step that are outside of steps."""
        return sum(span.end - span.start for span in self._spans(rank, "between"))

    def typical(self, rank: int, odd: Collection[int]) -> float:
        """Return the mean step of a rank without those that are odd."""
        durations = [time for number, time in enumerate(self.durations(rank)) if number not in odd]
        return sum(durations) / len(durations)

    def busy(self, rank: int, odd: Collection[int]) -> float:
        """Return the time of a typical step in which a rank's device does anything."""
        return self._exclusive(self._on_device(rank), [], rank, odd)

    def device_work(self, rank: int, odd: Collection[int]) -> float:
        """Return the time of a typical step in which a rank's device computes or copies."""
        return self._exclusive(self._computation(rank) + self._copies(rank), [], rank, odd)

    def copying(self, rank: int, odd: Collection[int]) -> float:
        """Return the time of a typical step in which a device copies."""
        return self._exclusive(self._copies(rank), [], rank, odd)

    def copies_alone(self, rank: int, odd: Collection[int]) -> float:
        """Return the time of a typical step in which a device copies and does nothing else."""
        others = self._computation(rank) + self._collectives(rank)
        return self._exclusive(self._copies(rank), others, rank, odd)

    def kernels_run(self, rank: int, odd: Collection[int]) -> float:
        """Return the time of a typical step in which any kernel runs, of computation or communication."""
        return self._exclusive(self._computation(rank) + self._collectives(rank), [], rank, odd)

    def computation(self, rank: int, odd: Collection[int]) -> float:
        """Return the time of a typical step in which a rank computes."""
        return self._exclusive(self._computation(rank), [], rank, odd)

    def communication(self, rank: int, odd: Collection[int]) -> float:
        """Return the time of a typical step in which a rank is in a collective."""
        return self._exclusive(self._collectives(rank), [], rank, odd)

    def idle_while(self, rank: int, kinds: Collection[str], odd: Collection[int]) -> float:
        """Return the time of a typical step in which a device idles while its host is in spans of these kinds."""
        host = [(span.start, span.end) for kind in kinds for span in self._spans(rank, kind)]
        return self._exclusive(host, self._on_device(rank), rank, odd)

    def in_operators(self, rank: int, odd: Collection[int]) -> float:
        """Return the time of a typical step in which a rank without a device computes."""
        return self.idle_while(rank, ("host",), odd)

    def host_time(self, rank: int, name: str, odd: Collection[int]) -> float:
        """Return the time of a typical step that the host spends in an operator or frame of this name."""
        spans = [
            (each.start, each.end)
            for each in self.job.spans[rank]
            if name in (each.name, each.name.rpartition(": ")[2])
        ]
        return self._exclusive(spans, [], rank, odd)

    def products(self, rank: int, odd: Collection[int]) -> tuple[float, float, float]:
        """Return the FLOP, the µs and the fewest possible µs of a typical step's matrix products."""
        assert self.plan.gpu is not None
        steps = [step for i, step in enumerate(self._spans(rank, "step")) if i not in odd]
        flops = time = shortest = 0.0
        for span in self._spans(rank, "kernel"):
            if span.product is not None and any(step.start <= span.launch < step.end for step in steps):
                m, n, k = span.product
                flops += 2.0 * m * n * k
                time += span.end - span.start
                shortest += self.plan.gpu.shortest_us(span.product)
        return flops / len(steps), time / len(steps), shortest / len(steps)

    def summed(self, rank: int, kinds: Collection[str], name: str, odd: Collection[int]) -> float:
        """Return the time per step of spans that the host launched in it, each for itself; of any name if ""."""
        steps = self._spans(rank, "step")
        typical_steps = [(step.start, step.end) for number, step in enumerate(steps) if number not in odd]
        spans = [span for kind in kinds for span in self._spans(rank, kind) if not name or span.name == name]
        times = [
            span.end - span.start
            for span in spans
            if any(start <= span.launch < end for start, end in typical_steps)
        ]
        return sum(times) / len(typical_steps)

    def kernel_shares(self, rank: int, odd: Collection[int] | None = None) -> dict[str, float]:
        """Return the share of each name in the kernel time of the whole trace, collectives by their type.

        odd  steps that don't count, if only steps count
        """
        bounds = [(step.start, step.end) for i, step in self.recorded_steps(rank) if odd is None or i not in odd]
        times: dict[str, float] = {}
        for span in self.recorded.spans[rank]:
            if span.kind in ("kernel", "collective"):
                inside = sum(max(min(span.end, end) - max(span.start, begin), 0.0) for begin, end in bounds)
                times[span.name] = times.get(span.name, 0.0) + (span.end - span.start if odd is None else inside)
        return {name: time / sum(times.values()) for name, time in times.items()}

    def waiting(self, rank: int, odd: Collection[int]) -> float:
        """Return the time of a typical step that a rank is in a collective but neither computes nor moves data."""
        others = self._computation(rank) + self._copies(rank) + self._transfers(rank)
        return self._exclusive(self._collectives(rank), others, rank, odd)

    def lateness(self, rank: int, step: int) -> float:
        """Return the µs that a rank works longer in a step than the median of the others, by chance or planned."""
        return self._works[rank][step] - statistics.median(
            works[step] for other, works in enumerate(self._works) if other != rank
        )

    @cached_property
    def _works(self) -> list[list[float]]:
        """Return the µs of each step of each rank whose collectives take no time and wait for nobody."""
        simulation = self.plan.simulation
        programs = [
            [
                replace(each, ranks=(rank,), us=0.0) if isinstance(each, Collective) else each
                for each in simulation.programs[rank]
            ]
            for rank in range(self.plan.ranks)
        ]
        job = replace(simulation, programs=programs, _ends={}, _arrived={}).run()
        return [[span.end - span.start for span in spans if span.kind == "step"] for spans in job.spans]

    def waited_for(self, late: int) -> float:
        """Return the longest time per step that a rank waits in collectives at which this one arrives last."""
        starts = {span.key: span.start for span in self._communicating(late)}
        waits = [
            sum(
                starts[span.key] - span.start
                for span in self._communicating(rank)
                if starts.get(span.key) == self._last_arrivals[span.key]
            )
            for rank in self.plan.present
            if rank != late
        ]
        return max(waits, default=0.0) / self.steps

    def transfer(self, rank: int, odd: Collection[int]) -> float:
        """Return the time of a typical step in which a rank moves data without computing."""
        return self._exclusive(self._transfers(rank), self._computation(rank) + self._copies(rank), rank, odd)

    def exposed(self, rank: int, odd: Collection[int]) -> float:
        """Return the time of a typical step in which a rank is in a collective without computing or copying."""
        return self._exclusive(self._collectives(rank), self._computation(rank) + self._copies(rank), rank, odd)

    def _exclusive(
        self, counted: list[Interval], others: list[Interval], rank: int, odd: Collection[int]
    ) -> float:
        """Return the time per step that isn't odd in which any of `counted` runs, but none of `others`."""
        steps = [(span.start, span.end) for span in self._spans(rank, "step")]
        hidden = [*others, (0.0, steps[0][0]), *(steps[number] for number in odd)]
        return (union_us(hidden + counted) - union_us(hidden)) / (self.steps - len(odd))

    def _spans(self, rank: int, kind: str) -> list[RecordedSpan]:
        return [span for span in self.job.spans[rank] if span.kind == kind]

    @property
    def groups(self) -> set[tuple[int, ...]]:
        """Return the ranks of each group that communicates."""
        return {span.collective.ranks for rank in range(self.plan.ranks) for span in self._communicating(rank)}

    def _computation(self, rank: int) -> list[Interval]:
        counted = range(self.devices) if self.device is None else (self.device,)
        return [(span.start, span.end) for span in self._spans(rank, "kernel") if span.device in counted]

    def _copies(self, rank: int) -> list[Interval]:
        return [(span.start, span.end) for span in self._spans(rank, "copy") if not self.device]

    def _on_device(self, rank: int) -> list[Interval]:
        return self._computation(rank) + self._copies(rank) + self._collectives(rank)

    def _collectives(self, rank: int) -> list[Interval]:
        return [(span.start, span.end) for span in self._communicating(rank)]

    def _transfers(self, rank: int) -> list[Interval]:
        return [(self._last_arrivals[span.key], span.end) for span in self._communicating(rank)]

    def _communicating(self, rank: int) -> list[RecordedSpan]:
        return [span for span in self.job.spans[rank] if span.collective is not None and not self.device]

    @cached_property
    def _last_arrivals(self) -> Mapping[Any, float]:
        last: dict[Any, float] = {}
        for rank in range(self.plan.ranks):
            for span in self._communicating(rank):
                last[span.key] = max(last.get(span.key, 0.0), span.start)
        return last
