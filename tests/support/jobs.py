"""Drawing jobs of many ranks whose truth is known: who is late, whose clock is off, who communicates with whom.

A program is a list of operations in the order in which the job runs them. Before an operation each of its ranks
computes; its kernel starts when the rank arrives and ends, on all ranks, one transfer time after the last arrival.

    rank 0  |- step 1 -- compute --|-- all_reduce: waits ------|= transfer =|
    rank 1  |- step 1 -- compute --|- prepare_batch -|---------|= transfer =|     planted straggler
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from tests.support.traces import document, read_bytes
from torch_tb_profiler.analyses.distributed.rank_details import rank_details
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary, summarize_rank
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import Member, Members

BASE_NS = 1_700_000_000_000_000_000
CULPRIT = "prepare_batch"
_KERNELS = {"allreduce": "AllReduce", "_allgather_base": "AllGather", "_reduce_scatter_base": "ReduceScatter"}


@dataclass(frozen=True)
class JobOp:
    """A collective, or a message (`send` from the first rank to the second).

    compute_us  before it; of a message only the sender computes
    elements    of Float that each rank puts in
    """

    name: str
    ranks: tuple[int, ...]
    group: str
    compute_us: float = 1000.0
    transfer_us: float = 50.0
    elements: int = 250_000


@dataclass
class Job:
    """A job to draw.

    program       the operations of one step
    straggler     a rank that spends `slow_us` more, in an operator named CULPRIT, at the beginning of each step
    slow_kernel   it spends that in a kernel of that name instead
    kernel        what computes
    clock_ns      rank -> by how much its clock is ahead
    metadata, sequence  record the groups and sizes, the sequence numbers
    jitter_us     of the computing; half a microsecond of the ends
    wrong         (rank, position in the program) -> (key, value) that this rank records otherwise in step 2
    lost          (rank, position) of operations that a rank's file lacks in step 2
    begins_late_us  rank -> by how much later its profiler begins: what it did before is not recorded
    joins_late_us   rank -> by how much later it begins at all, as one does whose profiler takes long to start
    """

    ranks: int
    program: Sequence[JobOp]
    steps: int = 3
    straggler: int | None = None
    slow_us: float = 5000.0
    slow_kernel: bool = False
    kernel: str = "gemm"
    clock_ns: dict[int, int] = field(default_factory=dict)
    metadata: bool = True
    sequence: bool = True
    jitter_us: float = 5.0
    wrong: dict[tuple[int, int], tuple[str, Any]] = field(default_factory=dict)
    lost: frozenset[tuple[int, int]] = frozenset()
    begins_late_us: dict[int, float] = field(default_factory=dict)
    joins_late_us: dict[int, float] = field(default_factory=dict)

    def documents(self, only: Sequence[int] | None = None) -> dict[int, bytes]:
        """Return the trace file of each rank."""
        events = self._run()
        wanted = range(self.ranks) if only is None else only
        return {rank: document(events[rank], **self._head(rank)) for rank in wanted}

    def members(self, only: Sequence[int] | None = None) -> Members[RankSummary]:
        """Return the ranks, each reduced, as the view gets them."""
        return Members(
            ready_member(f"host{rank // 8}_{1000 + rank}", rank, read_bytes(content))
            for rank, content in self.documents(only).items()
        )

    def _head(self, rank: int) -> dict[str, Any]:
        groups = {(op.group, op.ranks) for op in self.program if rank in op.ranks}
        configured = [
            {"pg_name": name, "pg_desc": "drawn", "pg_size": len(ranks), "ranks": list(ranks)}
            for name, ranks in sorted(groups)
        ]
        info = {"backend": "nccl", "rank": rank, "world_size": self.ranks, "pg_config": configured}
        device = {"id": rank % 8, "name": "Drawn GPU", "totalGlobalMem": 2**34}
        return {"distributedInfo": info, "baseTimeNanoseconds": BASE_NS, "deviceProperties": [device]}

    def _run(self) -> list[list[dict[str, Any]]]:
        dice = random.Random(1)
        writers = [_RankWriter(rank, self) for rank in range(self.ranks)]
        now = [1_000_000.0 + self.joins_late_us.get(rank, 0.0) for rank in range(self.ranks)]
        sequence: dict[tuple[str, tuple[int, ...]], int] = {}
        for step in range(1, self.steps + 1):
            begin = list(now)
            fresh = [True] * self.ranks
            for position, op in enumerate(self.program):
                arrival: dict[int, float] = {}
                for rank in op.ranks:
                    if rank == self.straggler and fresh[rank]:
                        writers[rank].slow(now[rank], self.slow_us)
                        now[rank] += self.slow_us
                    fresh[rank] = False
                    if op.name != "send" or rank == op.ranks[0]:
                        took = op.compute_us + dice.uniform(0, self.jitter_us)
                        writers[rank].compute(now[rank], took)
                        now[rank] += took
                    arrival[rank] = now[rank] + 1
                end = max(arrival.values()) + op.transfer_us
                number = sequence[op.group, op.ranks] = sequence.get((op.group, op.ranks), 0) + 1
                for rank in op.ranks:
                    own_end = end + dice.uniform(0, 0.5)
                    if step != 2 or (rank, position) not in self.lost:
                        changed = (
                            dict([self.wrong[rank, position]])
                            if step == 2 and (rank, position) in self.wrong
                            else {}
                        )
                        writers[rank].operation(op, arrival[rank], own_end, number, changed)
                    now[rank] = own_end + 1
            for rank in range(self.ranks):
                writers[rank].add("user_annotation", f"ProfilerStep#{step}", begin[rank], now[rank] - begin[rank])
        return [writer.recorded() for writer in writers]


class _RankWriter:
    """The events of one rank; times in µs of the job, written on the rank's own clock."""

    def __init__(self, rank: int, job: Job) -> None:
        self._rank, self._job = rank, job
        self._events: list[dict[str, Any]] = []
        self._ids = 0

    def recorded(self) -> list[dict[str, Any]]:
        """Return what the profiler of this rank saw: all from when it began."""
        shift = self._job.clock_ns.get(self._rank, 0) / 1000
        begin = 1_000_000.0 + self._job.begins_late_us.get(self._rank, 0.0) + shift
        return [event for event in self._events if event["ts"] >= begin]

    def add(self, category: str, name: str, start: float, duration: float, **more: Any) -> None:
        shift = self._job.clock_ns.get(self._rank, 0) / 1000
        on_device = category == "kernel"
        place = (
            {"pid": self._rank % 8, "tid": more.pop("stream")}
            if on_device
            else {"pid": 1000 + self._rank, "tid": 1}
        )
        args = {"device": self._rank % 8, **more} if on_device else more
        start, end = round(start + shift, 3), round(start + shift + duration, 3)
        self._events.append(
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "ts": start,
                "dur": round(end - start, 3),
                "args": args,
                **place,
            }
        )

    def compute(self, start: float, took: float) -> None:
        self._launch("aten::mm", self._job.kernel, start, took)

    def slow(self, start: float, took: float) -> None:
        if self._job.slow_kernel:
            self._launch("aten::mm", CULPRIT, start, took)
        else:
            self.add("cpu_op", CULPRIT, start, took - 1)

    def _launch(self, operator: str, kernel: str, start: float, took: float) -> None:
        self._ids += 1
        self.add("cpu_op", operator, start, 5)
        self.add("cuda_runtime", "cudaLaunchKernel", start + 1, 2, correlation=self._ids)
        self.add("kernel", kernel, start + 2, took - 3, stream=7, correlation=self._ids)

    def operation(self, op: JobOp, arrival: float, end: float, number: int, changed: dict[str, Any]) -> None:
        self._ids += 1
        name, facts = op.name, {}
        if name == "send" and self._rank == op.ranks[1]:
            name = "recv"
        if self._job.metadata:
            gathers, scatters = name == "_allgather_base", name == "_reduce_scatter_base"
            facts = {
                "Collective name": name,
                "dtype": "Float",
                "In msg nelems": op.elements,
                "Out msg nelems": op.elements * len(op.ranks)
                if gathers
                else op.elements // len(op.ranks)
                if scatters
                else op.elements,
                "Group size": len(op.ranks),
                "Process Group Name": op.group,
                "Process Group Description": "drawn",
                "Process Group Ranks": str(list(op.ranks)),
            }
            if name in ("send", "recv"):
                facts["Dst Rank" if name == "send" else "Src Rank"] = (
                    op.ranks[1] if name == "send" else op.ranks[0]
                )
            if self._job.sequence:
                facts["Seq"] = number
            facts.update(changed)
        annotation = {"allreduce": "all_reduce"}.get(name, name)
        self.add("cpu_op", "record_param_comms", arrival - 1, 0.9, **facts)
        self.add("user_annotation", f"nccl:{annotation}", arrival - 0.9, 0.7)
        self.add("cuda_runtime", "cudaLaunchKernel", arrival - 0.8, 0.4, correlation=self._ids)
        kernel = f"ncclDevKernel_{_KERNELS.get(name, 'SendRecv')}_Sum_f32_RING_LL(ncclDevComm*)"
        self.add("kernel", kernel, arrival, end - arrival, stream=20, correlation=self._ids, **facts)


@cache
def ddp(ranks: int, buckets: int = 3) -> tuple[JobOp, ...]:
    """Return the program of ranks that reduce gradients in buckets, by all."""
    everyone = tuple(range(ranks))
    return tuple(JobOp("allreduce", everyone, "0", elements=100_000 * (i + 1)) for i in range(buckets))


@cache
def fsdp(ranks: int) -> tuple[JobOp, ...]:
    """Return the program of ranks that gather parameters twice and scatter gradients."""
    everyone = tuple(range(ranks))
    return tuple(
        JobOp(name, everyone, "0") for name in ("_allgather_base", "_allgather_base", "_reduce_scatter_base")
    )


@cache
def pipeline(ranks: int, batches: int = 4) -> tuple[JobOp, ...]:
    """Simulate a pipeline: each rank is a stage and hands every micro-batch on to the next."""
    return tuple(
        JobOp("send", (stage, stage + 1), "0", compute_us=300)
        for _ in range(batches)
        for stage in range(ranks - 1)
    )


@cache
def ring_of_pairs(ranks: int) -> tuple[JobOp, ...]:
    """Simulate ranks that are each in two groups of the same name: with the left and with the right neighbor."""
    pairs = [(first, (first + 1) % ranks) for first in range(ranks)]
    return tuple(
        JobOp("allreduce", tuple(sorted(pair)), "pair")
        for parity in (0, 1)
        for pair in pairs
        if pair[0] % 2 == parity
    )


@cache
def tensor_and_data_parallel(ranks: int, width: int) -> tuple[JobOp, ...]:
    """Let groups of `width` neighbors reduce activations, and then every `width`-th rank gradients."""
    neighbors = [tuple(range(first, first + width)) for first in range(0, ranks, width)]
    across = [tuple(range(first, ranks, width)) for first in range(width)]
    return tuple(
        [JobOp("allreduce", each, "tp", compute_us=200) for _ in range(3) for each in neighbors]
        + [JobOp("allreduce", each, "dp", compute_us=200) for each in across]
    )


def ready_member(worker: str, rank: int | None, trace: Trace) -> Member[RankSummary]:
    """Return a worker whose trace is read and reduced."""
    return Member(worker, rank, "1", "ready", None, summarize_rank(trace), partial(rank_details, trace))
