"""The payload of the tab."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from torch_tb_profiler.views._shared.text import Text
from torch_tb_profiler.views.distributed.payload.communication import (
    AverageWaiting,
    CollectiveRow,
    Group,
    Mismatch,
    Waiting,
)
from torch_tb_profiler.views.distributed.payload.ranks import AverageTimes, Node, Rank, RankFamily, StepTimes
from torch_tb_profiler.views.distributed.payload.scale import GroupFamily, LateHost, Spread
from torch_tb_profiler.views.distributed.payload.stragglers import CauseKind, HeatMap, Meanwhile, Straggler


class Verdict(msgspec.Struct, frozen=True):
    """Whether ranks keep the others waiting.

    kind      uncertain: one or a few may, at a cost that matters, but it may be chance; the text names them
    worker, rank  the one that costs most, null if none stands out or it is unknown
    text      the headline
    cost_ns   per step, of all ranks that stand out; cause: why the first of them is late
    host      whose ranks they are, if they are late together; null otherwise
    """

    kind: Literal["straggler", "uncertain", "balanced", "unknown"]
    worker: str | None
    rank: int | None
    text: Text
    cost_ns: float | None
    cause: CauseKind | None
    host: str | None


class Problem(msgspec.Struct, frozen=True):
    """What is missing or doubtful; `worker` and `rank` where it concerns one."""

    kind: Literal[
        "loading", "broken_rank", "left_out", "missing_rank", "duplicate_rank", "world_size", "clock",
        "start_skew", "mismatch", "unmatched",
    ]  # fmt: skip
    text: Text
    worker: str | None
    rank: int | None


class Distributed(msgspec.Struct, frozen=True):
    """The payload of the tab.

    The lists with rows of every rank, step, operation, or group (ranks, nodes, overview, averages, families,
    waiting, average_waiting, collectives, groups) and the heat map are whole up to 64 ranks. Of a larger job they
    are empty, with the part that has them page by page in `reasons`; all else is bounded for any number of ranks.

    headline       who keeps the others waiting, or why that is unknown
    explanation    what that costs, and what these ranks do meanwhile; may be empty
    origin_ns      the zero of the job's clock as ns since the epoch, null if no file records the time of day
    start_skew_ns  from the first to the last rank to begin recording; null without two ranks on one clock
    rank_count     workers of the run; read_count: of these, those that are read or cannot be
    steps          names, in order of first appearance, at most a thousand
    spreads        how much the ranks differ; group_families: process groups by what they are for
    families       of each rank, most device time first
    stragglers     the hundred that cost most; late_hosts: the hosts of these
    mismatches     the first hundred; mismatch_count all
    """

    headline: Text
    explanation: Text
    verdict: Verdict
    problems: list[Problem]
    rank_count: int
    read_count: int
    steps: list[str]
    spreads: list[Spread]
    group_families: list[GroupFamily]
    ranks: list[Rank]
    nodes: list[Node]
    origin_ns: int | None
    start_skew_ns: int | None
    overview: list[StepTimes]
    averages: list[AverageTimes]
    families: list[RankFamily]
    waiting: list[Waiting]
    average_waiting: list[AverageWaiting]
    collectives: list[CollectiveRow]
    groups: list[Group]
    mismatches: list[Mismatch]
    mismatch_count: int
    stragglers: list[Straggler]
    late_hosts: list[LateHost]
    heat_map: HeatMap | None
    meanwhile: list[Meanwhile]
    reasons: Mapping[str, Text]
