"""Simulates distributed jobs, so that the cost of a delay is known: the job with it less the job without it.

Each rank is a host thread that launches kernels to one stream and collectives to others, as PyTorch does:

    host     |-prepare-|launch|launch|launch|...........................|sync|
    compute            |-- backward 2 --|-- backward 1 --|              |adam|
    nccl                                |-- all_reduce 2 --|all_reduce 1|

A collective starts when the kernels launched before it are done and its stream is free. It ends on all its ranks
one transfer after the last of them started. `Wait` blocks the compute stream until all launched collectives end.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from tests.support.simulation.files import SYNC_US, RecordedJob, RecordedSpan

ODD_OPERATOR = "save_checkpoint"
BETWEEN_OPERATOR = "evaluate"
FRAME_OPERATOR, FRAME_OPERATOR_SHARE = "aten::sort", 2 / 3
"""The operator in the Python frame of a delay, and its share of the frame."""

LAUNCH_US = 5.0
START_US = 1_000_000.0
"""Time of the job's first event."""


@dataclass(frozen=True)
class SimulatedKernel:
    """A kernel on the compute stream of one of the process's devices.

    product  (m, n, k) of the matrix product that it computes in bf16, None if it computes anything else
    """

    name: str
    us: float
    device: int = 0
    product: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class Host:
    """An operator (or, if `load`, a wait for data) that launches nothing.

    frame  the Python frame around it, of which the operator is the last two thirds
    """

    name: str
    us: float
    load: bool = False
    frame: str = ""


@dataclass(frozen=True)
class Collective:
    """A collective, `name` as c10d records it; `send` goes from the first to the second of two ranks."""

    name: str
    ranks: tuple[int, ...]
    group: str
    us: float = 100.0
    elements: int = 1_000_000


@dataclass(frozen=True)
class Wait:
    """Makes the compute stream of the first device wait for the collectives launched so far, or of all devices."""

    everywhere: bool = True


@dataclass(frozen=True)
class Sync:
    """Makes the host wait for the compute streams of all devices."""


@dataclass(frozen=True)
class Call:
    """A runtime call that takes `us`, after it has waited for all that was launched if it `waits`.

    As `cudaFree` does: it returns once every stream of the device is done, those of collectives included.
    """

    name: str
    us: float
    waits: bool = False


@dataclass(frozen=True)
class Copy:
    """A copy on the compute stream between the device and memory that isn't pinned; the host waits for it."""

    us: float
    to_device: bool = False


Action = SimulatedKernel | Host | Collective | Wait | Sync | Call | Copy
_VARYING = (SimulatedKernel, Host, Call, Copy)
"""What takes longer or shorter by chance."""


@dataclass(frozen=True)
class Delay:
    """A cause for one rank to be late, by `kind`:

    host, loading  `us` more in operator `name` or in the data loader at the start of a step
    stall     likewise, in nothing that is recorded
    frame     likewise in a Python frame `prepare_batch`, two thirds of it in an operator `aten::sort`
    work      an additional kernel `extra_expert` of `us` at the start of a step
    larger    kernels named `kernel` work on `factor` times the data, which takes as many times as long
    rows      all kernels work on `factor` times the data
    device    all kernels take `factor` times as long
    link      all collectives of the rank take `factor` times as long

    steps     the steps in which it is late, None for all
    """

    kind: str
    rank: int
    us: float = 0.0
    factor: float = 1.0
    kernel: str = "attention"
    steps: tuple[int, ...] | None = None
    name: str = "prepare_batch"


@dataclass
class Simulation:
    """A job to simulate.

    programs  for each rank the actions of one step
    jitter    relative standard deviation of the durations of kernels and host work
    per_host  number of ranks on one host
    stacks    record each step as a Python frame, too
    syncs     record the call in which the host waits for the compute stream
    odd       (step, µs): at the start of that step, all ranks run ODD_OPERATOR on the host, equally long
    between   (every, µs): after so many steps each, but not after the last, all ranks run BETWEEN_OPERATOR outside
              of the steps, equally long
    accumulates  gradients are reduced and applied in every so many steps only
    graphs    kernels between which the host does nothing else are launched at once, as a CUDA graph
    """

    programs: Sequence[Sequence[Action]]
    steps: int = 4
    delays: Sequence[Delay] = ()
    jitter: float = 0.0
    seed: int = 1
    per_host: int = 8
    stagger_us: float = 0.0
    stacks: bool = False
    syncs: bool = False
    odd: tuple[int, float] | None = None
    between: tuple[int, float] | None = None
    accumulates: int = 1
    graphs: bool = False
    _ends: dict[object, float] = field(default_factory=dict)
    _arrived: dict[object, dict[int, float]] = field(default_factory=dict)

    def cost_us(self) -> float:
        """Return the µs per step that the delays cost."""
        return (self.run().end - replace(self, delays=(), _ends={}, _arrived={}).run().end) / self.steps

    def run(self) -> RecordedJob:
        """Simulate all ranks."""
        self._ends, self._arrived = {}, {}
        recorded = RecordedJob([[] for _ in self.programs], self.per_host)
        running = {rank: self._rank(rank, recorded.spans[rank]) for rank in range(len(self.programs))}
        needed: dict[int, object] = dict.fromkeys(running)
        while running:
            ready = [rank for rank in running if needed[rank] is None or needed[rank] in self._ends]
            assert ready, "deadlock: the programs wait for each other"
            for rank in ready:
                try:
                    needed[rank] = next(running[rank])
                except StopIteration:
                    del running[rank]
        for spans in recorded.spans:
            for span in spans:
                if span.collective is not None:
                    span.end = self._ends[span.key]
        return recorded

    def _rank(self, rank: int, spans: list[RecordedSpan]) -> Iterator[object]:
        """Append what one rank does to `spans`; yield the keys of collectives whose end it needs to continue."""
        host = START_US + rank * self.stagger_us
        compute = host
        second = host  # the compute stream of the second device
        last: dict[object, object] = {}
        numbers: dict[object, int] = {}
        pending: list[object] = []
        graph: float | None = None  # when the graph was launched that the kernel is in
        for step in range(self.steps):
            begin = host
            extra, program = self._delay_actions(rank, step), self.program_of(rank, step)
            # Delays have negative positions, so that the jitter of the program stays the same.
            for position, action in enumerate([*extra, *program], -len(extra)):
                varies = self.jitter and isinstance(action, _VARYING)
                varies = varies and not (self.odd is not None and action == Host(ODD_OPERATOR, self.odd[1]))
                deviation = _deviation(self.seed, rank, step, position) if varies else 0.0
                variation = max(1 + self.jitter * deviation, 0.1)
                graph = graph if isinstance(action, SimulatedKernel) and self.graphs else None
                if isinstance(action, Host):
                    action_start, host = host, host + action.us * variation
                    if action.frame:
                        spans.append(RecordedSpan("frame", action.frame, action_start, host))
                        action_start = host - FRAME_OPERATOR_SHARE * (host - action_start)
                    if action.name:
                        kind = "load" if action.load else "host"
                        spans.append(RecordedSpan(kind, action.name, action_start, host))
                elif isinstance(action, SimulatedKernel):
                    launch = host if graph is None else graph
                    start = max(launch + 2, second if action.device else compute)
                    end = start + action.us * variation * self._duration_factor(rank, step, action.name)
                    compute, second = (compute, end) if action.device else (end, second)
                    size = self._duration_factor(rank, step, action.name, ("larger", "rows"))
                    span = RecordedSpan("kernel", action.name, start, end, launch, size=size, device=action.device)
                    span.product, span.in_graph = action.product, self.graphs
                    spans.append(span)
                    host += LAUNCH_US if graph is None else 0.0
                    graph = launch if self.graphs else None
                elif isinstance(action, Collective):
                    stream = (action.group, action.ranks if action.name == "send" else ())
                    number = numbers[action.group, action.ranks] = numbers.get((action.group, action.ranks), 0) + 1
                    key = (action.group, action.ranks, number)
                    start = max(host + 2, compute + 1)
                    if stream in last:
                        yield last[stream]
                        start = max(start, self._ends[last[stream]] + 1)
                    spans.append(RecordedSpan("collective", action.name, start, start, host, action, key))
                    self._arrive(key, action, rank, start, step)
                    last[stream] = key
                    pending.append(key)
                    host += LAUNCH_US
                elif isinstance(action, Wait):
                    for launched in pending:
                        yield launched
                        compute = max(compute, self._ends[launched] + 1)
                        second = max(second, self._ends[launched] + 1) if action.everywhere else second
                    pending = []
                elif isinstance(action, Call):
                    begin_call = host
                    if action.waits:
                        for launched in pending:
                            yield launched
                            host = max(host, self._ends[launched])
                        host = max(host, compute, second)
                    host += action.us * variation
                    spans.append(RecordedSpan("call", action.name, begin_call, host))
                elif isinstance(action, Copy):
                    start = max(host + 3, compute)
                    compute = start + action.us * variation
                    name = "HtoD (Pageable -> Device)" if action.to_device else "DtoH (Device -> Pageable)"
                    spans.append(RecordedSpan("copy", f"Memcpy {name}", start, compute, host))
                    spans.append(RecordedSpan("sync", "cudaStreamSynchronize", host + 4, compute + SYNC_US))
                    host = compute + SYNC_US + 1
                else:
                    end = max(host, compute, second)
                    if self.syncs:
                        spans.append(RecordedSpan("sync", "cudaStreamSynchronize", host, end + SYNC_US))
                        end += SYNC_US
                    host = end
            spans.append(RecordedSpan("step", f"ProfilerStep#{step + 1}", begin, host))
            if self.stacks:
                spans.append(RecordedSpan("frame", "/job/train.py(80): train", begin, host))
            if self.between is not None and (step + 1) % self.between[0] == 0 and step + 1 < self.steps:
                spans.append(RecordedSpan("between", BETWEEN_OPERATOR, host, host + self.between[1]))
                host += self.between[1]

    def program_of(self, rank: int, step: int) -> Sequence[Action]:
        """Return what a rank does in a step beside its delays."""
        program = self.programs[rank]
        if (step + 1) % self.accumulates == 0:
            return program
        return [
            each
            for each in program
            if not isinstance(each, Collective | Wait) and getattr(each, "name", "") != "adam"
        ]

    def _delay_actions(self, rank: int, step: int) -> list[Action]:
        extra: list[Action] = []
        if self.odd is not None and self.odd[0] == step:
            extra.append(Host(ODD_OPERATOR, self.odd[1]))
        for delay in self.delays:
            if delay.rank == rank and (delay.steps is None or step in delay.steps):
                if delay.kind == "host":
                    extra.append(Host(delay.name, delay.us))
                elif delay.kind == "stall":
                    extra.append(Host("", delay.us))
                elif delay.kind == "frame":
                    extra.append(Host(FRAME_OPERATOR, delay.us, frame="/job/train.py(42): prepare_batch"))
                elif delay.kind == "loading":
                    extra.append(
                        Host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", delay.us, True)
                    )
                elif delay.kind == "work":
                    extra.append(SimulatedKernel("extra_expert", delay.us))
        return extra

    def _duration_factor(
        self, rank: int, step: int, kernel: str, kinds: Sequence[str] = ("device", "larger", "rows")
    ) -> float:
        factor = 1.0
        for delay in self.delays:
            if delay.rank == rank and (delay.steps is None or step in delay.steps):
                is_meant = delay.kind != "larger" or delay.kernel == kernel
                if delay.kind in kinds and is_meant:
                    factor *= delay.factor
        return factor

    def _arrive(self, key: object, action: Collective, rank: int, start: float, step: int) -> None:
        arrived = self._arrived.setdefault(key, {})
        arrived[rank] = start
        if len(arrived) == len(action.ranks):
            slow = [d.factor for d in self.delays if d.kind == "link" and d.rank in action.ranks]
            self._ends[key] = max(arrived.values()) + action.us * max(slow, default=1.0)


@lru_cache(1 << 14)
def _deviation(*place: int) -> float:
    """Draw the standard deviations by which an action takes longer: the same in a job with and without a delay."""
    return random.Random(" ".join(map(str, place))).gauss(0, 1)


def ddp(ranks: int, buckets: int = 3, overlap: bool = True) -> list[list[Action]]:
    """Return programs that reduce gradients in buckets during the backward pass."""
    everyone = tuple(range(ranks))
    program: list[Action] = [Host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100, True)]
    program += [
        Host("forward", 50),
        SimulatedKernel("gemm", 1500),
        SimulatedKernel("attention", 1000),
        SimulatedKernel("layer_norm", 500),
    ]
    for bucket in range(buckets):
        program += [SimulatedKernel("gemm_backward", 1200), SimulatedKernel("attention_backward", 800)]
        program.append(Collective("allreduce", everyone, "0", 400, 1_000_000 + bucket))
        program += [] if overlap else [Wait()]
    return [[*program, Wait(), SimulatedKernel("adam", 500), Sync()] for _ in everyone]


def fsdp(ranks: int, layers: int = 3) -> list[list[Action]]:
    """Return programs that gather parameters one layer ahead and scatter gradients after each backward."""
    everyone = tuple(range(ranks))
    gather = Collective("_allgather_base", everyone, "0", 300)
    program: list[Action] = [Host("forward", 50), gather]
    for direction in ("forward", "backward"):
        for layer in range(layers):
            program += [Wait(), *([gather] if layer + 1 < layers or direction == "forward" else [])]
            program += [SimulatedKernel(f"gemm_{direction}", 1200), SimulatedKernel(f"attention_{direction}", 700)]
            if direction == "backward":
                program.append(Collective("_reduce_scatter_base", everyone, "0", 300))
    return [[*program, Wait(), SimulatedKernel("adam", 300), Sync()] for _ in everyone]


def tensor_and_data_parallel(ranks: int, width: int, buckets: int = 2) -> list[list[Action]]:
    """Return programs: neighbors reduce activations, and every `width`-th rank gradients during backward."""
    programs = []
    for rank in range(ranks):
        neighbors = tuple(range(rank // width * width, rank // width * width + width))
        across = tuple(range(rank % width, ranks, width))
        program: list[Action] = [Host("forward", 50)]
        for layer in range(2 + buckets):
            program += [SimulatedKernel("gemm", 900), SimulatedKernel("attention", 600)]
            program += [Collective("allreduce", neighbors, "tp", 80, 50_000), Wait()] if layer < 2 else []
            program += [Collective("allreduce", across, "dp", 300, 1_000_000)] if layer >= 2 else []
        programs.append([*program, Wait(), SimulatedKernel("adam", 300), Sync()])
    return programs


def pipeline(stages: int, batches: int = 4) -> list[list[Action]]:
    """Return programs: all forwards, then all backwards of the micro-batches, then an all-reduce of the norm."""
    programs = []
    for stage in range(stages):
        before, after = (stage - 1, stage), (stage, stage + 1)
        program: list[Action] = [Host("forward", 50)]
        for _ in range(batches):
            program += [Collective("send", before, "pp", 50, 10_000), Wait()] if stage else []
            program += [SimulatedKernel("gemm", 500), SimulatedKernel("attention", 300)]
            program += [Collective("send", after, "pp", 50, 10_000)] if stage + 1 < stages else []
        for _ in range(batches):
            back = (stage + 1, stage)
            program += [Collective("send", back, "pp", 50, 10_000), Wait()] if stage + 1 < stages else []
            program += [SimulatedKernel("gemm_backward", 1000), SimulatedKernel("attention_backward", 600)]
            program += [Collective("send", (stage, stage - 1), "pp", 50, 10_000)] if stage else []
        program += [Wait(), Collective("allreduce", tuple(range(stages)), "0", 50, 1), Wait()]
        programs.append([*program, SimulatedKernel("adam", 200), Sync()])
    return programs


def with_idle_stage(stages: int, idle: int, batches: int = 4) -> list[list[Action]]:
    """Return the programs of a pipeline in which one stage hands on what it gets and computes nothing."""
    programs = pipeline(stages, batches)
    programs[idle] = [action for action in programs[idle] if not isinstance(action, SimulatedKernel)]
    return programs


def on_two_devices(program: Sequence[Action], share: float, waits: bool = True) -> list[Action]:
    """Return a program whose process launches each kernel on a second device, too, for that share of its time.

    waits  the second device waits for collectives as well
    """
    both: list[Action] = []
    for action in program:
        both.append(Wait(waits) if isinstance(action, Wait) else action)
        if isinstance(action, SimulatedKernel):
            both.append(replace(action, us=share * action.us, device=1))
    return both


def mixture_of_experts(ranks: int, layers: int = 2) -> list[list[Action]]:
    """Return programs that send tokens to the experts of all ranks and back, twice per layer and direction."""
    everyone = tuple(range(ranks))
    program: list[Action] = [Host("forward", 50)]
    for direction in ("forward", "backward"):
        for _ in range(layers):
            program += [SimulatedKernel(f"attention_{direction}", 700)]
            program += [Collective("all_to_allv", everyone, "ep", 150, 400_000), Wait()]
            program += [SimulatedKernel(f"expert_{direction}", 1500)]
            program += [Collective("all_to_allv", everyone, "ep", 150, 400_000), Wait()]
    program += [Collective("allreduce", everyone, "dp", 300, 1_000_000), Wait()]
    return [[*program, SimulatedKernel("adam", 300), Sync()] for _ in everyone]


def with_micro_batches(programs: Sequence[Sequence[Action]], batches: int) -> list[list[Action]]:
    """Return programs that accumulate gradients of that many batches per step, and exchange those of the last."""
    accumulated = []
    for program in programs:
        alone = [
            each
            for each in program
            if not isinstance(each, Collective | Wait | Sync) and getattr(each, "name", "") != "adam"
        ]
        accumulated.append([*alone * (batches - 1), *program])
    return accumulated
