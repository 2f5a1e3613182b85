"""The trace files of a simulated job, as each rank's profiler would write them on its own clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.jobs import ready_member
from tests.support.traces import document, read_bytes
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import Members

BASE_NS = 1_700_000_000_000_000_000
_KERNELS = {"allreduce": "AllReduce", "_allgather_base": "AllGather", "_reduce_scatter_base": "ReduceScatter"}


@dataclass
class RecordedSpan:
    """Something that ran, times in µs of the job.

    launch  when the host launched it; size: of its work, 1 for the usual one
    device  of the process, on which a kernel runs
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


@dataclass
class RecordedJob:
    """The spans of every rank of a simulated job."""

    spans: list[list[RecordedSpan]]
    per_host: int

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
            {"id": rank % self.per_host + number, "name": "Simulated GPU", "totalGlobalMem": 2**34}
            for number in range(count)
        ]
        head = {"distributedInfo": info, "baseTimeNanoseconds": BASE_NS, "deviceProperties": devices}
        events: list[dict[str, Any]] = []
        for correlation, span in enumerate(self.spans[rank], 1):
            events += _events(span, correlation, rank, metadata)
        for event in events:
            start, end = (t + ahead + drift * t for t in (event["ts"], event["ts"] + event["dur"]))
            event["ts"], event["dur"] = round(start, 3), round(end - start, 3)
        return document(events, **(head if metadata else {**head, "distributedInfo": info}))


def _events(span: RecordedSpan, correlation: int, rank: int, metadata: bool) -> list[dict[str, Any]]:
    def event(category: str, name: str, start: float, end: float, tid: int = 1, **args: Any) -> dict[str, Any]:
        pid = span.device if category == "kernel" else 1000 + rank
        return {
            "ph": "X", "cat": category, "name": name, "ts": start, "dur": end - start, "pid": pid, "tid": tid,
            "args": {"device": span.device, **args} if category == "kernel" else args,
        }  # fmt: skip

    if span.kind == "step":
        return [event("user_annotation", span.name, span.start, span.end)]
    if span.kind == "frame":
        return [event("python_function", span.name, span.start, span.end)]
    if span.kind in ("host", "load", "between"):
        return [event("user_annotation" if span.kind == "load" else "cpu_op", span.name, span.start, span.end)]
    if span.kind == "sync":
        return [event("cuda_runtime", span.name, span.start, span.end)]
    launch = event("cuda_runtime", "cudaLaunchKernel", span.launch + 1, span.launch + 2, correlation=correlation)
    if span.kind == "kernel":
        return [
            event("cpu_op", f"aten::{span.name}", span.launch, span.launch + 4),
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
    facts: dict[str, Any] = {}
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
    stream = 20 + sum(map(ord, op.group)) % 40 + (hash(op.ranks) % 7 if op.name == "send" else 0)
    kernel = f"ncclDevKernel_{_KERNELS.get(name, 'SendRecv')}_Sum_f32_RING_LL(ncclDevComm*)"
    return [
        event("cpu_op", "record_param_comms", span.launch, span.launch + 4, **facts),
        launch,
        event("kernel", kernel, span.start, span.end, stream, stream=stream, correlation=correlation, **facts),
    ]
