"""Further kinds of random jobs, each with a cause of its own:

allocator  each step frees and allocates memory of the driver after its first kernel, and waits for that kernel
copies     each step waits for a copy between the device and memory that isn't pinned
products   devices of a model whose peak rates are known compute matrix products at a known share of the peak
cut        the recording begins and ends in the middle of a step
graphs     kernels are launched as CUDA graphs
experts    ranks exchange tokens with the experts of all ranks, and the expert of one has more of them
batches    each step accumulates gradients of several batches, and exchanges those of the last one
cpu        one process without a device
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from tests.support.random_jobs.plan import GPUS, SHARED_LOADER, SHARED_OPERATOR, Gpu, JobPlan, draw_plan
from tests.support.simulation.simulator import (
    Action,
    Call,
    Copy,
    Delay,
    Host,
    SimulatedKernel,
    ddp,
    mixture_of_experts,
    with_micro_batches,
)

KINDS = ("allocator", "copies", "products", "cut", "graphs", "experts", "batches", "cpu")

_VARIANT_SHARE = 0.6
"""Share of the plain jobs that become one of these."""


def draw_job(seed: int) -> JobPlan:
    """Draw the job of a seed."""
    plan = draw_plan(seed)
    dice = random.Random(f"{seed} variant")
    if plan.kind != "rank" or dice.random() >= _VARIANT_SHARE:
        return plan
    return _DRAWS[dice.choice(KINDS)](dice, plan)


def _draw_shared(dice: random.Random, plan: JobPlan, kind: str, actions: Sequence[Action], us: float) -> JobPlan:
    """Return a plan in which all ranks do something after their first kernel."""
    programs = []
    for program in _programs(plan):
        first = next(i for i, each in enumerate(program) if isinstance(each, SimulatedKernel)) + 1
        programs.append([*program[:first], *actions, *program[first:]])
    simulation = replace(plan.simulation, programs=programs, delays=(), odd=None)
    return _all_present(replace(plan, kind=kind, simulation=simulation, causes=(), shared=(kind, us), odd=None))


def _draw_allocator(dice: random.Random, plan: JobPlan) -> JobPlan:
    us = [dice.uniform(100, 3000), dice.uniform(300, 5000)]
    calls = [Call("cudaFree", us[0], waits=True), Call("cudaMalloc", us[1])]
    return _draw_shared(dice, plan, "allocator", calls, sum(us))


def _draw_copies(dice: random.Random, plan: JobPlan) -> JobPlan:
    copy = Copy(dice.uniform(200, 5000), dice.random() < 0.5)
    return _draw_shared(dice, plan, "copies", [copy, Host("", dice.uniform(20, 200))], copy.us)


def _draw_products(dice: random.Random, plan: JobPlan) -> JobPlan:
    gpu, share = dice.choice(GPUS), dice.uniform(0.2, 0.85)
    programs = [[_compute_product(each, gpu, share) for each in program] for program in _programs(plan)]
    simulation = replace(plan.simulation, programs=programs)
    return replace(plan, kind="products", simulation=simulation, shared=None, gpu=gpu)


def _compute_product(action: Action, gpu: Gpu, share: float) -> Action:
    """Return a kernel named gemm as one that computes a product at that share of the peak, others as they are."""
    if not (isinstance(action, SimulatedKernel) and action.name.startswith("gemm")):
        return action
    rows = 4096
    depth = max(int(action.us * 1e-6 * share * gpu.flops / (2 * rows * rows)) // 64 * 64, 64)
    product = rows, rows, depth
    return replace(action, us=gpu.shortest_us(product) / share, product=product)


def _draw_cut(dice: random.Random, plan: JobPlan) -> JobPlan:
    simulation = replace(plan.simulation, steps=plan.simulation.steps + 2, odd=None)
    return replace(plan, kind="cut", simulation=simulation, odd=None, cut=(dice.random(), dice.random()))


def _draw_graphs(dice: random.Random, plan: JobPlan) -> JobPlan:
    programs = ddp(dice.randint(2, 4), dice.randint(1, 3), overlap=False)
    return _on_programs(replace(plan, kind="graphs"), programs, graphs=True)


def _draw_experts(dice: random.Random, plan: JobPlan) -> JobPlan:
    programs, factor = mixture_of_experts(dice.randint(2, 5), dice.randint(1, 2)), dice.uniform(1.15, 2.0)
    late = Delay("larger", dice.randrange(len(programs)), kernel="expert_forward", factor=factor)
    other = replace(late, kernel="expert_backward")
    varied = _on_programs(replace(plan, kind="experts"), programs)
    return replace(varied, causes=(late,), simulation=replace(varied.simulation, delays=(late, other)))


def _draw_batches(dice: random.Random, plan: JobPlan) -> JobPlan:
    programs = with_micro_batches(ddp(dice.randint(2, 4), dice.randint(1, 3)), dice.randint(2, 4))
    return _on_programs(replace(plan, kind="batches"), programs)


def _draw_cpu(dice: random.Random, plan: JobPlan) -> JobPlan:
    program: list[Action] = [
        Host(f"aten::{name}", dice.uniform(500, 4000)) for name in ("mm", "addmm", "relu", "sum")
    ]
    length = sum(each.us for each in program if isinstance(each, Host))
    shared = None
    if dice.random() < 0.7:
        loads = dice.random() < 0.5
        shared = "loading" if loads else "host", length * dice.uniform(0.1, 0.8)
        program = [Host(SHARED_LOADER if loads else SHARED_OPERATOR, shared[1], loads), *program]
    varied = _on_programs(replace(plan, kind="cpu"), [program])
    return replace(varied, shared=shared, causes=(), simulation=replace(varied.simulation, delays=()))


def _on_programs(plan: JobPlan, programs: Sequence[Sequence[Action]], graphs: bool = False) -> JobPlan:
    """Return the plan with other programs, of ranks that are all present."""
    causes = tuple(each for each in plan.causes if each.rank < len(programs) and each.kind != "work")
    simulation = replace(plan.simulation, programs=programs, delays=causes, odd=None, graphs=graphs)
    ahead = {rank: plan.ahead.get(rank, 0.0) for rank in range(len(programs))} if plan.ahead else {}
    return _all_present(replace(plan, simulation=simulation, causes=causes, shared=None, odd=None, ahead=ahead))


def _all_present(plan: JobPlan) -> JobPlan:
    return replace(plan, present=tuple(range(plan.ranks)))


def _programs(plan: JobPlan) -> list[list[Action]]:
    """Return the programs without what all ranks do on the host."""
    skipped = int(plan.shared is not None)
    return [[*program[skipped:]] for program in plan.simulation.programs]


_DRAWS = {
    "allocator": _draw_allocator,
    "copies": _draw_copies,
    "products": _draw_products,
    "cut": _draw_cut,
    "graphs": _draw_graphs,
    "experts": _draw_experts,
    "batches": _draw_batches,
    "cpu": _draw_cpu,
}
