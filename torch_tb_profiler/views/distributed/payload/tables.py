"""Tables of a large job, page by page: ranks, steps, operations, process groups, kernel families."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from torch_tb_profiler.view import Page
from torch_tb_profiler.views._shared.text import Text
from torch_tb_profiler.views.distributed.payload.communication import GroupCollectiveRow, RankCollectiveRow
from torch_tb_profiler.views.distributed.payload.ranks import RankFamily

RankSort = Literal[
    "rank", "worker", "host", "state", "calls", "duration_ns", "computation_ns", "overlap_ns", "exposed_ns",
    "other_ns", "transfer_ns", "waiting_ns", "cost_ns", "last", "residual_ns", "offset_ns", "recording_start_ns",
    "recording_duration_ns",
]  # fmt: skip
StepSort = Literal[
    "rank", "step", "duration_ns", "computation_ns", "overlap_ns", "exposed_ns", "other_ns", "transfer_ns",
    "waiting_ns",
]  # fmt: skip
OperationSort = Literal[
    "rank", "name", "group", "calls", "latency_ns", "transfer_ns", "waiting_ns", "exposed_ns", "bytes",
    "bus_bandwidth", "algorithm_bandwidth",
]  # fmt: skip
GroupSort = Literal[
    "group", "name", "collectives", "compared", "latency_ns", "transfer_ns", "waiting_ns", "exposed_ns",
    "mean_skew_ns", "max_skew_ns", "bytes", "bus_bandwidth",
]  # fmt: skip
FamilySort = Literal["rank", "family", "kind", "calls", "device_ns", "share", "kernel"]


class _Search(Page, frozen=True, kw_only=True):
    """Search and order of a table.

    search  a number, or "rank" and a number, finds the rank with that number if there is one; any other text finds
            the rows with a name that contains it. Unknown values come last in every order
    """

    descending: bool = False
    search: str = ""


class RanksParams(_Search, frozen=True, kw_only=True):
    sort: RankSort = "rank"


class StepsParams(_Search, frozen=True, kw_only=True):
    sort: StepSort = "rank"


class OperationsParams(_Search, frozen=True, kw_only=True):
    sort: OperationSort = "rank"


class GroupsParams(_Search, frozen=True, kw_only=True):
    sort: GroupSort = "group"


class FamiliesParams(_Search, frozen=True, kw_only=True):
    sort: FamilySort = "rank"


class GroupPlace(msgspec.Struct, frozen=True):
    """Position of a rank in its group of a family of process groups, from 0; `size`: ranks of the largest."""

    family: str
    place: int
    size: int


class JobRank(msgspec.Struct, frozen=True):
    """One worker of the run; times are means over its typical steps unless noted.

    state, reason, compared, calls  as in `RankEntry`
    host, devices  where it ran; null and empty if that isn't recorded
    duration_ns ... other_ns  as in `AverageStepTimes`; transfer_ns, waiting_ns: as in `AverageWaitingRow`
    cost_ns, cost_is_limit, last, collectives  as in `StragglerRow`; null if it isn't compared
    method, residual_ns, offset_ns, recording_start_ns, recording_duration_ns  as in `RankClockRow` and `RankEntry`
    """

    worker: str
    rank: int | None
    span: str
    state: Literal["waiting", "loading", "ready", "failed"]
    reason: str | None
    compared: bool
    host: str | None
    devices: list[str]
    places: list[GroupPlace]
    calls: int | None
    duration_ns: float | None
    computation_ns: float | None
    overlap_ns: float | None
    exposed_ns: float | None
    other_ns: float | None
    transfer_ns: float | None
    waiting_ns: float | None
    cost_ns: float | None
    cost_is_limit: bool
    last: int | None
    collectives: int | None
    method: str | None
    residual_ns: int | None
    offset_ns: int | None
    recording_start_ns: int | None
    recording_duration_ns: int | None


class JobRanks(msgspec.Struct, frozen=True):
    """A page of the ranks; `total` rows match the search."""

    rows: list[JobRank]
    total: int
    first: int
    reasons: Mapping[str, Text]


class RankStepRow(msgspec.Struct, frozen=True):
    """One step of one rank: as in `RankStepTimes`, with transfer and waiting as in `StepWaitingRow`.

    For communication outside the steps, `step` and the other times are null.
    """

    worker: str
    rank: int | None
    step: str | None
    start_ns: int | None
    complete: bool | None
    duration_ns: int | None
    computation_ns: int | None
    overlap_ns: int | None
    exposed_ns: int | None
    other_ns: int | None
    transfer_ns: int | None
    waiting_ns: int | None


class RankStepRows(msgspec.Struct, frozen=True):
    """A page of the steps; `total` rows match the search."""

    rows: list[RankStepRow]
    total: int
    first: int
    reasons: Mapping[str, Text]


class OperationRows(msgspec.Struct, frozen=True):
    """A page of the operations by rank; `total` rows match the search."""

    rows: list[RankCollectiveRow]
    total: int
    first: int
    reasons: Mapping[str, Text]


class GroupRow(GroupCollectiveRow, frozen=True, kw_only=True):
    """Operations of one process group that share a name.

    group  its id; label: its description or name; family: label of its family, null if its ranks
           are unknown
    ranks  in short (`0-7`, `0-56/8`, or the first and the last of an uneven list), null if unknown
    present, absent  number of its ranks that communicate here, and that have no trace
    matched_by, mismatches, assumed  as in `ProcessGroupRow`
    """

    group: int
    label: str
    family: str | None
    ranks: str | None
    size: int | None
    present: int
    absent: int
    matched_by: str | None
    mismatches: int
    assumed: bool


class GroupRows(msgspec.Struct, frozen=True):
    """A page of the operations by process group; `total` rows match the search."""

    rows: list[GroupRow]
    total: int
    first: int
    reasons: Mapping[str, Text]


class FamilyRows(msgspec.Struct, frozen=True):
    """A page of the kernel families by rank; `total` rows match the search."""

    rows: list[RankFamily]
    total: int
    first: int
    reasons: Mapping[str, Text]
