"""Parameters and payloads of the operator table and its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from torch_tb_profiler.analyses.operators import GroupBy
from torch_tb_profiler.analyses.roofline.speeds import Speed
from torch_tb_profiler.analyses.tracks.sources import SourceFrame
from torch_tb_profiler.views._shared.origins import OriginTimeRow
from torch_tb_profiler.views._shared.text import Text


class OperatorsParams(msgspec.Struct, frozen=True):
    """`group_by` is name, shape, signature (shapes, dtypes, strides), module or annotation; the rest are filters.

    thread  "pid/tid"
    phase   forward, backward, optimizer or data
    kernel  only operators that launched device work of this name
    family  only operators that launched device work of this family: "matrix product", "elementwise", ...
    """

    group_by: GroupBy = "name"
    step: str = ""
    thread: str = ""
    phase: str = ""
    kernel: str = ""
    family: str = ""


class OperatorRowParams(msgspec.Struct, frozen=True):
    """A row of the table, given by its `event`, with the same grouping and filters; `time` is host or device."""

    event: int
    group_by: GroupBy = "name"
    step: str = ""
    thread: str = ""
    phase: str = ""
    kernel: str = ""
    family: str = ""
    time: Literal["host", "device"] = "host"


class OperatorRow(msgspec.Struct, frozen=True):
    """A row of the table; times in ns.

    event            row of the trace of the call with the most device time, else host time; identifies the row in
                     requests for the parts
    input_shape, input_types, input_strides, module, annotation  what the rows are grouped by besides the name;
                     null if the grouping doesn't need it or the trace doesn't record it
    device_...       null in a trace without device work
    tc_eligible      could run on Tensor (matrix) cores
    tc_self_ratio    share of device_self that runs on them, at least; null without device time, or if no kernel
                     name tells
    tc_self_unknown  share of device_self whose kernel names don't tell; null without device time
    speed            of the calls that own this device work; null if the trace records nothing about work
    """

    event: int
    name: str
    input_shape: str | None
    input_types: str | None
    input_strides: str | None
    module: str | None
    annotation: str | None
    calls: int
    host_self_ns: int
    host_total_ns: int
    host_mean_ns: float
    device_self_ns: int | None
    device_total_ns: int | None
    tc_eligible: bool
    tc_self_ratio: float | None
    tc_total_ratio: float | None
    tc_self_unknown: float | None
    tc_total_unknown: float | None
    speed: Speed | None


class UnlinkedWork(msgspec.Struct, frozen=True):
    """Device work that no operator launched."""

    calls: int
    device_ns: int


class OperatorTotals(msgspec.Struct, frozen=True):
    """Sums over the rows; totals of nested operators overlap, so only self times are summed."""

    calls: int
    host_self_ns: int
    device_self_ns: int | None


class OperatorsPayload(msgspec.Struct, frozen=True):
    """The operator table.

    headline    which operators take most of the time
    unlinked    null in a trace without device work
    steps, threads, phases, families  values of the filters; threads as "pid/tid"
    has_stacks  the trace records where operators are called from
    replayed    what graphs replayed, by the operator that was captured; most time first, at most 500
    has_compiled  rows may unfold into the lines of compiled kernels (`operators/origins`)
    reasons     field -> why it is null
    """

    headline: Text
    rows: list[OperatorRow]
    unlinked: UnlinkedWork | None
    totals: OperatorTotals
    group_by: str
    steps: list[str]
    threads: list[str]
    phases: list[str]
    families: list[str]
    has_stacks: bool
    replayed: list[OriginTimeRow]
    has_compiled: bool
    reasons: Mapping[str, Text]


class OperatorStackRow(msgspec.Struct, frozen=True):
    """A distinct stack, innermost frame first, and the calls made from it; times in ns."""

    frames: list[SourceFrame]
    calls: int
    host_self_ns: int
    host_total_ns: int
    device_self_ns: int
    device_total_ns: int
    event: int


class StackFrame(msgspec.Struct, frozen=True):
    """A frame of the merged stacks.

    library  the frame is in an installed package or in C
    parent   index of the frame around it, null for the outermost
    """

    text: str
    file: str | None
    line: int | None
    function: str | None
    library: bool
    parent: int | None
    calls: int
    host_ns: int
    device_ns: int


class OperatorStacksPayload(msgspec.Struct, frozen=True):
    """Stacks of one row, most time first, and all of them merged into one tree (host and device total time).

    bare    number of calls without a stack; they are in neither
    reason  why there are no stacks
    """

    name: str
    stacks: list[OperatorStackRow]
    frames: list[StackFrame]
    bare: int
    reason: Text | None
