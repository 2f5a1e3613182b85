"""What the operator table and its parts answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from torch_tb_profiler.analyses.operators.table import GroupBy
from torch_tb_profiler.analyses.roofline.speeds import Speed
from torch_tb_profiler.analyses.tracks.sources import Frame
from torch_tb_profiler.views._shared.text import Text


class OperatorsParams(msgspec.Struct, frozen=True):
    """`group_by`: name, shape, signature (shapes, dtypes, strides), module or annotation; the rest are filters.

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


class RowParams(msgspec.Struct, frozen=True):
    """A row of the table as it is grouped and filtered: `event` of it; `time` is host or device."""

    event: int
    group_by: GroupBy = "name"
    step: str = ""
    thread: str = ""
    phase: str = ""
    kernel: str = ""
    family: str = ""
    time: Literal["host", "device"] = "host"


class OperatorRow(msgspec.Struct, frozen=True):
    """Calls that share a row; times in ns.

    event            row of the trace of the call with the most device time, else host time; names the row in
                     the parts
    input_shape, input_types, input_strides, module, annotation  what the rows are grouped by beside the name;
                     null where the grouping does not ask or the trace does not say
    device_...       null in a trace without device work
    tc_eligible      could run on Tensor (matrix) cores
    tc_self_ratio    share of device_self that runs on them, at least; null without such time or if no kernel tells
    tc_self_unknown  share of device_self whose kernels do not tell; null without such time
    speed            of the calls whose own device work this is; null where the trace says nothing about work
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
    """Sums over the rows. Totals of nested operators overlap, so only self times are summed."""

    calls: int
    host_self_ns: int
    device_self_ns: int | None


class OperatorsPayload(msgspec.Struct, frozen=True):
    """The operator table.

    headline   which operators take most of the time
    unlinked   null in a trace without device work
    steps, threads, phases, families  what the filters can be set to; threads as "pid/tid"
    has_stacks  the trace records where operators are called from
    reasons    field -> why it is null
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
    reasons: Mapping[str, Text]


class OperatorStack(msgspec.Struct, frozen=True):
    """A distinct stack, innermost frame first, and the calls made from it; times in ns."""

    frames: list[Frame]
    calls: int
    host_self_ns: int
    host_total_ns: int
    device_self_ns: int
    device_total_ns: int
    event: int


class StackFrame(msgspec.Struct, frozen=True):
    """A frame of all stacks merged; `parent` is the index of the frame around it, null for outermost ones;
    `library`: it is of an installed package or of C."""

    text: str
    file: str | None
    line: int | None
    function: str | None
    library: bool
    parent: int | None
    calls: int
    host_ns: int
    device_ns: int


class OperatorStacks(msgspec.Struct, frozen=True):
    """Stacks of one row, most time first, and all of them as one tree (host and device total time).

    bare    calls without a stack; they are in neither
    reason  why there are none
    """

    name: str
    stacks: list[OperatorStack]
    frames: list[StackFrame]
    bare: int
    reason: Text | None
