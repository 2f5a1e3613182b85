"""The trace files of a simulated job, as each rank's profiler would write them on its own clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.support.jobs import ready_member
from tests.support.traces import document, read_bytes
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import Members

BASE_NS = 1_700_000_000_000_000_000
SYNC_US = 4.0
"""From the end of the work that the host waits for to the return of the call, if it is recorded."""

_ON_DEVICE = ("kernel", "gpu_memcpy")
_LAUNCHED = ("kernel", "copy", "collective")
_KERNELS = {"allreduce": "AllReduce", "_allgather_base": "AllGather", "_reduce_scatter_base": "ReduceScatter"}


@dataclass
class RecordedSpan:
    """Something that ran, times in µs of the job.

    launch  when the host launched it; size: of its work, 1 for the usual one
    device  of the process, on which a kernel runs
    product  (m, n, k) of the matrix product that a kernel computes in bf16, if it does
    in_graph  it was launched with others, by a graph
    """

    kind: str
    name: str
    start: float
    end: float
    launch: float = 0.0
    collective: Any = None
    key: Any = None
    size: float = 1.0
    device: int = 0
    product: tuple[int, int, int] | None = None
    in_graph: bool = False


@dataclass
class RecordedJob:
    """The spans of every rank of a simulated job, and what its devices are.

    untimed  ranks whose profilers record the host alone
    """

    spans: list[list[RecordedSpan]]
    per_host: int
    device_name: str = "Simulated GPU"
    device_bytes: int = 2**34
    untimed: tuple[int, ...] = ()

    def between(self, begin: float, end: float) -> RecordedJob:
        """Return what a profiler records that runs from `begin` to `end`: what lies within, whole steps only."""
        complete = [
            [
                replace(span, launch=span.launch if span.launch >= begin else 0.0)
                for span in spans
                if begin <= span.start and span.end <= end
            ]
            for spans in self.spans
        ]
        return replace(self, spans=complete)

    def with_recording(self, rank: int, begin: int, end: int) -> RecordedJob:
        """Return the job whose profiler of one rank records only the steps with these numbers, `end` exclusive."""
        steps = [span for span in self.spans[rank] if span.kind == "step"]
        shorter = self.between(steps[begin].start, steps[end - 1].end)
        return replace(self, spans=[*self.spans[:rank], shorter.spans[rank], *self.spans[rank + 1 :]])

    @property
    def end(self) -> float:
        """The time at which the last rank finished, in µs."""
        return max(span.end for spans in self.spans for span in spans)

    def members(
        self,
        only: Sequence[int] | None = None,
        metadata: bool = True,
        ahead_us: Mapping[int, float] | None = None,
        drift: Mapping[int, float] | None = None,
    ) -> Members[RankSummary]:
        """Return the reduced ranks.

        ahead_us  rank -> µs by which its clock is ahead
        drift     rank -> drift of its clock in seconds per second
        """
        ranks = range(len(self.spans)) if only is None else only
        return Members(
            ready_member(
                f"node{rank // self.per_host}_{1000 + rank}",
                rank,
                read_bytes(self.file(rank, metadata, (ahead_us or {}).get(rank, 0), (drift or {}).get(rank, 0))),
            )
            for rank in ranks
        )

    def trace(self, rank: int) -> Trace:
        """Return the trace of one rank."""
        return read_bytes(self.file(rank, True, 0, 0))

    def file(self, rank: int, metadata: bool = True, ahead: float = 0, drift: float = 0) -> bytes:
        """Return the trace file of one rank; `ahead` and `drift` of its clock as in `members`."""
        groups = {(span.collective.group, span.collective.ranks) for span in self.spans[rank] if span.collective}
        configured = [
            {"pg_name": name, "pg_desc": name, "pg_size": len(ranks), "ranks": list(ranks)}
            for name, ranks in sorted(groups)
        ]
        info: dict[str, Any] = {"backend": "nccl", "rank": rank, "world_size": len(self.spans)}
        if metadata:
            info["pg_config"] = configured
        count = 1 + max((span.device for span in self.spans[rank]), default=0)
        devices = [
            {"id": rank % self.per_host + number, "name": self.device_name, "totalGlobalMem": self.device_bytes}
            for number in range(count)
        ]
        head = {"distributedInfo": info, "baseTimeNanoseconds": BASE_NS, "deviceProperties": devices}
        events: list[dict[str, Any]] = []
        graphs: dict[float, int] = {}  # launch of a graph -> its correlation
        for number, span in enumerate(self.spans[rank], 1):
            correlation = graphs.setdefault(span.launch, number) if span.in_graph else number
            span_events = _events(span, correlation, rank, metadata)
            if span.in_graph:  # the launch once, and no operators
                span_events = [each for each in span_events if each["cat"] == "kernel" or correlation == number]
            # What was launched before the recording has neither operator nor call.
            events += [
                each
                for each in span_events
                if span.kind not in _LAUNCHED or span.launch or "device" in each["args"]
            ]
        if rank in self.untimed:
            events = [each for each in events if "device" not in each["args"]]
        for event in events:
            start, end = (t + ahead + drift * t for t in (event["ts"], event["ts"] + event["dur"]))
            # Begin and end are rounded, not the duration: else a call would outlast the begin of the next by 1 ns.
            event["ts"], event["dur"] = round(start, 3), round(round(end, 3) - round(start, 3), 3)
        return document(events, **(head if metadata else {**head, "distributedInfo": info}))


def _events(span: RecordedSpan, correlation: int, rank: int, metadata: bool) -> list[dict[str, Any]]:
    def event(category: str, name: str, start: float, end: float, tid: int = 1, **args: Any) -> dict[str, Any]:
        pid = span.device if category in _ON_DEVICE else 1000 + rank
        return {
            "ph": "X", "cat": category, "name": name, "ts": start, "dur": end - start, "pid": pid, "tid": tid,
            "args": {"device": span.device, **args} if category in _ON_DEVICE else args,
        }  # fmt: skip

    if span.kind == "step":
        return [event("user_annotation", span.name, span.start, span.end)]
    if span.kind == "frame":
        return [event("python_function", span.name, span.start, span.end)]
    if span.kind in ("host", "load", "between"):
        return [event("user_annotation" if span.kind == "load" else "cpu_op", span.name, span.start, span.end)]
    if span.kind in ("sync", "call"):
        return [event("cuda_runtime", span.name, span.start, span.end)]
    facts: dict[str, Any] = {}
    if span.kind == "copy":
        return [
            event("cpu_op", "aten::copy_", span.launch, span.end + SYNC_US + 1),
            event("cuda_runtime", "cudaMemcpyAsync", span.launch + 1, span.launch + 3, correlation=correlation),
            event("gpu_memcpy", span.name, span.start, span.end, 7, stream=7, correlation=correlation),
        ]
    call = "cudaGraphLaunch" if span.in_graph else "cudaLaunchKernel"
    launch = event("cuda_runtime", call, span.launch + 1, span.launch + 2, correlation=correlation)
    if span.kind == "kernel":
        operator = f"aten::{span.name}"
        if span.product is not None:
            m, n, k = span.product
            operator, facts = "aten::mm", {"Input Dims": [[m, k], [k, n]], "Input type": ["c10::BFloat16"] * 2}
        launched = [] if span.in_graph else [event("cpu_op", operator, span.launch, span.launch + 4, **facts)]
        return [
            *launched,
            launch,
            event(
                "kernel",
                span.name,
                span.start,
                span.end,
                7,
                stream=7,
                correlation=correlation,
                grid=[round(1000 * span.size), 1, 1],
            ),
        ]
    op, name = span.collective, span.name
    if name == "send" and rank == op.ranks[1]:
        name = "recv"
    if metadata:
        size = len(op.ranks)
        factor = {"_allgather_base": size, "_reduce_scatter_base": 1 / size}.get(name, 1)
        facts = {
            "Collective name": name, "dtype": "Float", "In msg nelems": op.elements,
            "Out msg nelems": int(op.elements * factor), "Group size": size, "Process Group Name": op.group,
            "Process Group Ranks": str(sorted(op.ranks)),
        }  # fmt: skip
        if name in ("send", "recv"):
            facts["Dst Rank" if name == "send" else "Src Rank"] = op.ranks[1 if name == "send" else 0]
        else:
            facts["Seq"] = span.key[2]
    stream = 20 + sum(map(ord, op.group)) % 40
    if op.name == "send":  # a stream of its own for each pair and direction, as they run at once
        stream = 100 * (1 + op.ranks[0]) + op.ranks[1]
    kernel = f"ncclDevKernel_{_KERNELS.get(name, 'SendRecv')}_Sum_f32_RING_LL(ncclDevComm*)"
    return [
        event("cpu_op", "record_param_comms", span.launch, span.launch + 4, **facts),
        launch,
        event("kernel", kernel, span.start, span.end, stream, stream=stream, correlation=correlation, **facts),
    ]
