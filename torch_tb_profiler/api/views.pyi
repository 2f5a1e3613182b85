"""Written by `torch_tb_profiler.api.stubs`; not to be edited."""

import inspect
from typing import Literal

from torch_tb_profiler.api.opened import Opened
from torch_tb_profiler.api.result import Result
from torch_tb_profiler.view import View
from torch_tb_profiler.views._shared.call_payloads import CallDistribution
from torch_tb_profiler.views._shared.module_parts import ModuleFlame, ModuleInstances
from torch_tb_profiler.views.critical_path.payload import (
    CriticalPathPayload,
    JobPathPayload,
    PathGroupsPayload,
    PathSegmentsPayload,
    TargetRow,
)
from torch_tb_profiler.views.diff.payload import DiffLevel, DiffPayload
from torch_tb_profiler.views.distributed.collectives import CollectivePayload, CollectivesPayload
from torch_tb_profiler.views.distributed.connections import ConnectionsPayload
from torch_tb_profiler.views.distributed.map import RankMap
from torch_tb_profiler.views.distributed.payload.job import DistributedPayload
from torch_tb_profiler.views.distributed.payload.tables import (
    FamilyRows,
    GroupRows,
    JobRanks,
    OperationRows,
    RankStepRows,
)
from torch_tb_profiler.views.idle.launches import (
    BandwidthPayload,
    LaunchesPayload,
    QueuesPayload,
    SequencesPayload,
)
from torch_tb_profiler.views.idle.payload import IdleFlamePayload, IdleGapsPayload, IdlePayload
from torch_tb_profiler.views.kernels.payload import KernelsPayload
from torch_tb_profiler.views.lightning.payload import LightningPayload
from torch_tb_profiler.views.memory.curve import MemoryCurve
from torch_tb_profiler.views.memory.files import MemorySnapshot, MemoryTimeline
from torch_tb_profiler.views.memory.payload import MemoryPayload
from torch_tb_profiler.views.memory.tables import MemoryEvents, MemoryLive, MemoryOperators
from torch_tb_profiler.views.modules import CallTreeLevel, ModulesPayload
from torch_tb_profiler.views.operators.payload import OperatorsPayload, OperatorStacksPayload
from torch_tb_profiler.views.overlap.payload import OverlapComparison, OverlapPayload, OverlapReport
from torch_tb_profiler.views.overview.payload import Overview
from torch_tb_profiler.views.roofline.payload import RooflinePayload
from torch_tb_profiler.views.trace.blame import TraceMoment
from torch_tb_profiler.views.trace.event import TraceEvent, TraceFlows, TraceModule
from torch_tb_profiler.views.trace.path import TracePath
from torch_tb_profiler.views.trace.payload import TracePayload
from torch_tb_profiler.views.trace.search import TraceHits, TraceSearch
from torch_tb_profiler.views.trace.selection import TraceHeadline, TraceSelection
from torch_tb_profiler.views.trace.tile import TraceColors, TraceCounters, TraceNames, TraceTile

class _Overview:
    def __call__(self, *, worker: str | None = None, span: str | int | None = None) -> Result[Overview]:
        """Overview."""
    def preview(self, *, worker: str | None = None, span: str | int | None = None) -> Result[Overview]:
        """First page of the overview."""
    def ranks(self, *, worker: str | None = None, span: str | int | None = None) -> Result[Overview]:
        """Overview beside other ranks."""

class _Operators:
    def __call__(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        group_by: Literal["name", "shape", "signature", "module", "annotation"] = "name",
        step: str = "",
        thread: str = "",
        phase: str = "",
        kernel: str = "",
        family: str = "",
    ) -> Result[OperatorsPayload]:
        """Operators."""
    def stacks(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        event: int,
        group_by: Literal["name", "shape", "signature", "module", "annotation"] = "name",
        step: str = "",
        thread: str = "",
        phase: str = "",
        kernel: str = "",
        family: str = "",
        time: Literal["host", "device"] = "host",
    ) -> Result[OperatorStacksPayload]:
        """Call stacks."""
    def instances(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        event: int,
        group_by: Literal["name", "shape", "signature", "module", "annotation"] = "name",
        step: str = "",
        thread: str = "",
        phase: str = "",
        kernel: str = "",
        family: str = "",
        time: Literal["host", "device"] = "host",
    ) -> Result[CallDistribution]:
        """Durations."""

class _Kernels:
    def __call__(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        group_by: Literal["name", "launch", "family"] = "name",
        step: str = "",
        device: int | None = None,
        stream: int | None = None,
        operator: str = "",
        family: str = "",
    ) -> Result[KernelsPayload]:
        """Kernels."""
    def instances(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        event: int,
        group_by: Literal["name", "launch", "family"] = "name",
        step: str = "",
        device: int | None = None,
        stream: int | None = None,
        operator: str = "",
        family: str = "",
    ) -> Result[CallDistribution]:
        """Durations."""

class _Trace:
    def __call__(
        self, *, worker: str | None = None, span: str | int | None = None, python: bool = False
    ) -> Result[TracePayload]:
        """Trace."""
    def headline(
        self, *, worker: str | None = None, span: str | int | None = None, begin: int, end: int
    ) -> Result[TraceHeadline]:
        """Headline of a window."""
    def selection(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        first: int = 0,
        limit: int | None = None,
        begin: int,
        end: int,
        tracks: str = "",
        python: bool = False,
        sort: Literal["total", "self", "count", "mean", "most", "name"] = "total",
    ) -> Result[TraceSelection]:
        """Selection."""
    def tile(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        begin: int,
        end: int,
        width: int = 1500,
        tracks: str = "",
        python: bool = False,
        color: Literal["class", "family", "name", "process_group", "module"] = "class",
    ) -> Result[TraceTile]:
        """Timeline tile."""
    def names(self, *, worker: str | None = None, span: str | int | None = None, codes: str) -> Result[TraceNames]:
        """Timeline names."""
    def counters(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        begin: int,
        end: int,
        width: int = 1500,
        tracks: str = "",
    ) -> Result[TraceCounters]:
        """Timeline counters."""
    def colors(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        by: Literal["class", "family", "process_group", "module"] = "class",
    ) -> Result[TraceColors]:
        """Timeline colors."""
    def blame(
        self, *, worker: str | None = None, span: str | int | None = None, begin: int, end: int, width: int = 1500
    ) -> Result[TraceTile]:
        """Device time."""
    def moment(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        device: int,
        at: int,
        until: int | None = None,
        category: str = "",
        python: bool = False,
    ) -> Result[TraceMoment]:
        """Device at one moment."""
    def event(
        self, *, worker: str | None = None, span: str | int | None = None, event: int, python: bool = False
    ) -> Result[TraceEvent]:
        """Event."""
    def module(
        self, *, worker: str | None = None, span: str | int | None = None, event: int, python: bool = False
    ) -> Result[TraceModule]:
        """Module of an event."""
    def flows(
        self, *, worker: str | None = None, span: str | int | None = None, event: int, python: bool = False
    ) -> Result[TraceFlows]:
        """Flows."""
    def path(
        self, *, worker: str | None = None, span: str | int | None = None, begin: int, end: int
    ) -> Result[TracePath]:
        """Critical path on the timeline."""
    def search(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        first: int = 0,
        limit: int | None = 100,
        query: str,
        regex: bool = False,
        at: int = 0,
        event: int = -1,
        track: int = -1,
        python: bool = False,
    ) -> Result[TraceSearch]:
        """Search."""
    def hits(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        query: str,
        begin: int,
        end: int,
        regex: bool = False,
        width: int = 1500,
        python: bool = False,
    ) -> Result[TraceHits]:
        """Hits on the timeline."""

class _Idle:
    def __call__(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        by: Literal["cause", "emptied_by", "operator", "module", "frame"] = "cause",
        step: str = "",
        device: int | None = None,
        stream: int | None = None,
    ) -> Result[IdlePayload]:
        """Idle time."""
    def gaps(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        cause: str,
        subject: str | None = None,
        by: Literal["cause", "emptied_by", "operator", "module", "frame"] = "cause",
        step: str = "",
        device: int | None = None,
        stream: int | None = None,
        first: int = 0,
        limit: int | None = None,
    ) -> Result[IdleGapsPayload]:
        """Gaps."""
    def flame(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        by: Literal["cause", "emptied_by", "operator", "module", "frame"] = "cause",
        step: str = "",
        device: int | None = None,
        stream: int | None = None,
    ) -> Result[IdleFlamePayload]:
        """Idle flame graph."""
    def launches(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        step: str = "",
        device: int | None = None,
        stream: int | None = None,
        slow_call_ns: int = 50000,
        long_delay_ns: int = 100000,
    ) -> Result[LaunchesPayload]:
        """Launches."""
    def queue(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        step: str = "",
        device: int | None = None,
        stream: int | None = None,
        points: int = 300,
    ) -> Result[QueuesPayload]:
        """Queue length."""
    def bandwidth(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        step: str = "",
        device: int | None = None,
        stream: int | None = None,
        points: int = 300,
    ) -> Result[BandwidthPayload]:
        """Bandwidth."""
    def sequences(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        device: int | None = None,
        stream: int | None = None,
    ) -> Result[SequencesPayload]:
        """Sequences."""
    def ranks(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        by: Literal["cause", "emptied_by", "operator", "module", "frame"] = "cause",
        step: str = "",
        device: int | None = None,
        stream: int | None = None,
    ) -> Result[IdlePayload]:
        """Idle time compared with other ranks."""

class _CriticalPath:
    def __call__(
        self, *, worker: str | None = None, span: str | int | None = None, what_if: str = ""
    ) -> Result[CriticalPathPayload]:
        """Critical path."""
    def what_if(
        self, *, worker: str | None = None, span: str | int | None = None, target: str
    ) -> Result[TargetRow]:
        """What if."""
    def groups(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        by: Literal["operator", "module", "line"] = "line",
        step: str = "",
    ) -> Result[PathGroupsPayload]:
        """Path by place."""
    def pieces(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        first: int = 0,
        limit: int | None = None,
        step: str = "",
    ) -> Result[PathSegmentsPayload]:
        """Segments of the path."""
    def ranks(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        first: int = 0,
        limit: int | None = 500,
        step: str = "",
    ) -> Result[JobPathPayload]:
        """Critical path of the job."""

class _Modules:
    def __call__(self, *, worker: str | None = None, span: str | int | None = None) -> Result[ModulesPayload]:
        """Modules."""
    def flame(
        self, *, worker: str | None = None, span: str | int | None = None, time: Literal["host", "device"] = "host"
    ) -> Result[ModuleFlame]:
        """Module flame graph."""
    def instances(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        place: int,
        first: int = 0,
        limit: int | None = None,
    ) -> Result[ModuleInstances]:
        """Module calls."""
    def calls(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        thread: str | None = None,
        parent: int | None = None,
        first: int = 0,
        limit: int | None = None,
    ) -> Result[CallTreeLevel]:
        """Call tree."""

class _Lightning:
    def __call__(self, *, worker: str | None = None, span: str | int | None = None) -> Result[LightningPayload]:
        """Lightning."""
    def flame(
        self, *, worker: str | None = None, span: str | int | None = None, time: Literal["host", "device"] = "host"
    ) -> Result[ModuleFlame]:
        """Module flame graph."""
    def instances(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        place: int,
        first: int = 0,
        limit: int | None = None,
    ) -> Result[ModuleInstances]:
        """Module calls."""

class _Distributed:
    def __call__(self, *, worker: str | None = None, span: str | int | None = None) -> Result[DistributedPayload]:
        """Distributed."""
    def collectives(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        sort: Literal[
            "start",
            "name",
            "group",
            "step",
            "ranks",
            "bytes",
            "latency",
            "transfer",
            "waiting",
            "skew",
            "bandwidth",
        ] = "start",
        descending: bool = False,
        group: int = -1,
        name: str = "",
        step: str = "",
        late: str = "",
        mismatched: bool = False,
        first: int = 0,
        limit: int | None = None,
    ) -> Result[CollectivesPayload]:
        """Collectives."""
    def collective(
        self, *, worker: str | None = None, span: str | int | None = None, collective: int
    ) -> Result[CollectivePayload]:
        """One collective."""
    def connections(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        workers: str = "",
        begin: int | None = None,
        end: int | None = None,
        limit: int = 300,
    ) -> Result[ConnectionsPayload]:
        """Connected ranks."""
    def map(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        show: Literal["late", "computation", "exposed", "other"] = "late",
        by: str = "rank",
        mark: str = "",
        begin: int = 0,
        end: int | None = None,
    ) -> Result[RankMap]:
        """Map of the ranks."""
    def ranks(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        first: int = 0,
        limit: int | None = None,
        descending: bool = False,
        search: str = "",
        sort: Literal[
            "rank",
            "worker",
            "host",
            "state",
            "calls",
            "duration_ns",
            "computation_ns",
            "overlap_ns",
            "exposed_ns",
            "other_ns",
            "transfer_ns",
            "waiting_ns",
            "cost_ns",
            "last",
            "residual_ns",
            "offset_ns",
            "recording_start_ns",
            "recording_duration_ns",
        ] = "rank",
    ) -> Result[JobRanks]:
        """Ranks."""
    def steps(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        first: int = 0,
        limit: int | None = None,
        descending: bool = False,
        search: str = "",
        sort: Literal[
            "rank",
            "step",
            "duration_ns",
            "computation_ns",
            "overlap_ns",
            "exposed_ns",
            "other_ns",
            "transfer_ns",
            "waiting_ns",
        ] = "rank",
    ) -> Result[RankStepRows]:
        """Steps of the ranks."""
    def operations(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        first: int = 0,
        limit: int | None = None,
        descending: bool = False,
        search: str = "",
        sort: Literal[
            "rank",
            "name",
            "group",
            "calls",
            "latency_ns",
            "transfer_ns",
            "waiting_ns",
            "exposed_ns",
            "bytes",
            "bus_bandwidth",
            "algorithm_bandwidth",
        ] = "rank",
    ) -> Result[OperationRows]:
        """Operations by rank."""
    def groups(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        first: int = 0,
        limit: int | None = None,
        descending: bool = False,
        search: str = "",
        sort: Literal[
            "group",
            "name",
            "collectives",
            "compared",
            "latency_ns",
            "transfer_ns",
            "waiting_ns",
            "exposed_ns",
            "mean_skew_ns",
            "max_skew_ns",
            "bytes",
            "bus_bandwidth",
        ] = "group",
    ) -> Result[GroupRows]:
        """Operations by process group."""
    def families(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        first: int = 0,
        limit: int | None = None,
        descending: bool = False,
        search: str = "",
        sort: Literal["rank", "family", "kind", "calls", "device_ns", "share", "kernel"] = "rank",
    ) -> Result[FamilyRows]:
        """Kernel families by rank."""

class _Overlap:
    def __call__(
        self, *, worker: str | None = None, span: str | int | None = None, columns: int = 120
    ) -> Result[OverlapPayload]:
        """Overlap."""
    def report(self, *, worker: str | None = None, span: str | int | None = None) -> Result[OverlapReport]:
        """Overlap report."""
    def compare(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        base_run: str | None = None,
        base_worker: str | None = None,
        base_span: str | None = None,
        base_also: str | None = None,
        also: str | None = None,
    ) -> Result[OverlapComparison]:
        """Overlap compared."""

class _Memory:
    def __call__(self, *, worker: str | None = None, span: str | int | None = None) -> Result[MemoryPayload]:
        """Memory."""
    def curve(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        device: str = "",
        begin: int | None = None,
        end: int | None = None,
        points: int = 1000,
    ) -> Result[MemoryCurve]:
        """Memory curve."""
    def live(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        device: str = "",
        at: int | None = None,
        begin: int | None = None,
        end: int | None = None,
        group_by: Literal["operator", "module", "stack", "size"] = "operator",
        first: int = 0,
        limit: int | None = None,
    ) -> Result[MemoryLive]:
        """Live memory."""
    def events(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        device: str = "",
        begin: int | None = None,
        end: int | None = None,
        at: int | None = None,
        operator: str = "",
        search: str = "",
        state: Literal["released", "unreleased", "replaced", "older", "unknown"] | Literal[""] = "",
        sort: Literal["size", "operator", "allocated", "released", "duration"] = "size",
        descending: bool = True,
        first: int = 0,
        limit: int | None = None,
    ) -> Result[MemoryEvents]:
        """Memory events."""
    def operators(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        device: str = "",
        begin: int | None = None,
        end: int | None = None,
    ) -> Result[MemoryOperators]:
        """Memory by operator."""
    def snapshot(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        file: int = 0,
        device: int | None = None,
        points: int = 1000,
        limit: int = 200,
    ) -> Result[MemorySnapshot]:
        """Memory snapshot."""
    def timeline(
        self, *, worker: str | None = None, span: str | int | None = None, file: int = 0, points: int = 1000
    ) -> Result[MemoryTimeline]:
        """Memory timeline."""

class _Diff:
    def __call__(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        base_run: str | None = None,
        base_worker: str | None = None,
        base_span: str | None = None,
        base_also: str | None = None,
        also: str | None = None,
        min_effect: float = 0.02,
    ) -> Result[DiffPayload]:
        """Diff."""
    def part(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        base_run: str | None = None,
        base_worker: str | None = None,
        base_span: str | None = None,
        base_also: str | None = None,
        also: str | None = None,
        min_effect: float = 0.02,
        path: str = "",
    ) -> Result[DiffLevel]:
        """Part of the timeline."""

class Views:
    _opened: Opened
    name: str
    def __init__(self, opened: Opened, name: str) -> None: ...
    @property
    def overview(self) -> _Overview:
        """Overview."""
    @property
    def operators(self) -> _Operators:
        """Operators."""
    @property
    def kernels(self) -> _Kernels:
        """Kernels."""
    def roofline(
        self,
        *,
        worker: str | None = None,
        span: str | int | None = None,
        group_by: Literal["operator", "shape", "kernel", "family", "module"] = "operator",
        step: str = "",
        device: int | None = None,
        peaks: str = "",
    ) -> Result[RooflinePayload]:
        """Roofline."""
    @property
    def trace(self) -> _Trace:
        """Trace."""
    @property
    def idle(self) -> _Idle:
        """Idle time."""
    @property
    def critical_path(self) -> _CriticalPath:
        """Critical path."""
    @property
    def modules(self) -> _Modules:
        """Modules."""
    @property
    def lightning(self) -> _Lightning:
        """Lightning."""
    @property
    def distributed(self) -> _Distributed:
        """Distributed."""
    @property
    def overlap(self) -> _Overlap:
        """Overlap."""
    @property
    def memory(self) -> _Memory:
        """Memory."""
    @property
    def diff(self) -> _Diff:
        """Diff."""

class ViewMethod:
    def __init__(self, opened: Opened, run: str, view: View) -> None: ...
    def __getattr__(self, part: str) -> ViewMethod: ...

NAMES: tuple[str, ...]

def signature(view: View) -> inspect.Signature: ...
def description(view: View) -> str: ...
