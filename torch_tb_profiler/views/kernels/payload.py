"""The payloads of the Kernels tab."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from torch_tb_profiler.analyses.kernels.table import KernelGrouping, OriginFilter
from torch_tb_profiler.analyses.roofline.speeds import Speed
from torch_tb_profiler.views._shared.call_payloads import TensorCoreTime
from torch_tb_profiler.views._shared.text import Text


class KernelsParams(msgspec.Struct, frozen=True):
    """`group_by`: name, family, or launch (name, operator, grid, block, registers, shared memory); else filters.

    operator  only kernels that operators of this name launched, or that come from one at capture
    origin    known or unknown: only kernels whose operator or line is, wherever it is known from
    family    only work of this family: "matrix product", "elementwise", ...
    """

    group_by: KernelGrouping = "name"
    step: str = ""
    device: int | None = None
    stream: int | None = None
    operator: str = ""
    family: str = ""
    origin: OriginFilter = ""


class KernelRowParams(msgspec.Struct, frozen=True):
    """A row of the table as it is grouped and filtered: `event` of it (of a kernel, a copy or a memset)."""

    event: int
    group_by: KernelGrouping = "name"
    step: str = ""
    device: int | None = None
    stream: int | None = None
    operator: str = ""
    family: str = ""
    origin: OriginFilter = ""


class KernelRow(msgspec.Struct, frozen=True):
    """Launches that share a row; times in ns. Of a family, name and short_name are the family's.

    event               row of the trace of the first launch; names the row in the parts
    short_name          at most 48 characters; no other kernel of the trace has it
    family              the sort of work: "matrix product", "elementwise", ..., "other"
    operator            null: not linked to one (or not grouped by it)
    registers           per thread; shared_memory: bytes per block
    mean_blocks_per_sm, mean_occupancy  weighted by duration; occupancy as a ratio, estimated by the profiler
    tc_used             runs on Tensor (matrix) cores; null if names don't show it, or differ in a family
    tc_reason           what this rests on
    limiter             what keeps more blocks off a multiprocessor: threads, registers, shared memory, grid
    speed               a call shares its work among its kernels; null where the trace records no work
    origin_...          where all launches of known origin come from: operator, module (path) and innermost line;
                        null where they differ or it is unknown; always null in a trace without graphs and
                        compiled code, where `operator` says it
    origin_reason       why one is null, and how many launches have no known origin
    origin_places       number of different known origins, by operator and line or module; see `kernels/origins`
    """

    event: int
    name: str
    short_name: str
    family: str
    operator: str | None
    grid: str | None
    block: str | None
    registers: int | None
    shared_memory: int | None
    calls: int
    total_ns: int
    mean_ns: float
    median_ns: float
    p95_ns: float
    max_ns: int
    min_ns: int
    mean_blocks_per_sm: float | None
    mean_occupancy: float | None
    tc_used: bool | None
    tc_reason: str
    limiter: str | None
    speed: Speed | None
    origin_operator: str | None
    origin_module: str | None
    origin_line: str | None
    origin_reason: str | None
    origin_places: int


class MemoryOperationRow(msgspec.Struct, frozen=True):
    """Copies or memsets of one name. bandwidth: bytes per second over their summed time, null without bytes."""

    event: int
    name: str
    kind: str
    calls: int
    bytes: int | None
    total_ns: int
    mean_ns: float
    max_ns: int
    bandwidth: float | None


class KernelStream(msgspec.Struct, frozen=True):
    """A stream with work, for the filters."""

    device: int
    stream: int
    calls: int
    total_ns: int


class KernelFamily(msgspec.Struct, frozen=True):
    """Device work of one family, copies and memsets among it: different names, launches, summed time."""

    family: str
    names: int
    calls: int
    total_ns: int


class EngineRow(msgspec.Struct, frozen=True):
    """Engines of one class (MME, TPC, DMA, NIC); busy_ns: any of them works, in the steps; share of the steps."""

    name: str
    engines: int
    busy_ns: int
    share: float | None


class RecipeRow(msgspec.Struct, frozen=True):
    """A compiled graph: its nodes that ran, how long any did, and the row of the trace of the first."""

    id: int
    name: str
    nodes: int
    busy_ns: int
    event: int


class EnginesPayload(msgspec.Struct, frozen=True):
    """The engines of a Gaudi card. headline: how busy they are, and whether the host holds them up.

    bound  "device": the engines are rarely idle; "host": graphs are built while they are idle; null: unknown
    """

    headline: Text
    bound: Literal["device", "host"] | None
    classes: list[EngineRow]
    recipes: list[RecipeRow]


class KernelsPayload(msgspec.Struct, frozen=True):
    """The kernel table and that of copies and memsets; `reasons`: field -> why it is null in every row.

    headline  which kernel takes most of the time, and how much uses Tensor Cores, as far as names show it
    families  the work that the other filters keep, by family, largest first
    device_type  CUDA, ROCm, XPU, HPU, NPU, MTIA or other
    engines   of a card whose engines are recorded one by one, whatever the filters; else null
    """

    headline: Text
    rows: list[KernelRow]
    memory_operations: list[MemoryOperationRow]
    families: list[KernelFamily]
    tensor_cores: TensorCoreTime
    engines: EnginesPayload | None
    calls: int
    total_ns: int
    group_by: str
    device_type: str
    streams: list[KernelStream]
    steps: list[str]
    reasons: Mapping[str, Text]
