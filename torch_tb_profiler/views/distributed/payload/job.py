"""The payload of the tab: the verdict on the ranks, the stragglers, and all tables of a job of up to 64 ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from torch_tb_profiler.views._shared.text import Text
from torch_tb_profiler.views.distributed.payload.communication import (
    AverageWaitingRow,
    GroupFamily,
    MismatchRow,
    ProcessGroupRow,
    RankCollectiveRow,
    StepWaitingRow,
)
from torch_tb_profiler.views.distributed.payload.ranks import (
    AverageStepTimes,
    JobNode,
    RankEntry,
    RankFamily,
    RankSpreadRow,
    RankStepTimes,
)

CauseKind = Literal[
    "host", "data_loading", "more_work", "longer_kernels", "slower_device", "slower_link", "other", "held_up"
]


class VerdictPayload(msgspec.Struct, frozen=True):
    """Whether the job has stragglers.

    kind      uncertain: one or a few ranks may be, at a cost that matters, but it may be chance; the text names
              them. uneven: none is, but the ranks differ; the text says how
    worker, rank  the costliest straggler, null if there is none or it is unknown; workers: all, costliest first
    text      the headline
    cost_ns   per step, of all stragglers together; cause: why the first of them is late
    host      the host of the stragglers if they are late together, else null
    """

    kind: Literal["straggler", "uncertain", "balanced", "uneven", "unknown"]
    worker: str | None
    workers: list[str]
    rank: int | None
    text: Text
    cost_ns: float | None
    cause: CauseKind | None
    host: str | None


class Problem(msgspec.Struct, frozen=True):
    """What is missing or in doubt; `worker` and `rank` if it concerns a single one."""

    kind: Literal[
        "loading", "broken_rank", "left_out", "missing_rank", "duplicate_rank", "world_size", "clock",
        "start_skew", "mismatch", "unmatched",
    ]  # fmt: skip
    text: Text
    worker: str | None
    rank: int | None


class StragglerRow(msgspec.Struct, frozen=True):
    """How often and how long a rank kept the others waiting, and what that costs; highest cost first.

    collectives  compared ones it took part in whose arrivals differ by more than the error of the clocks
    last, last_ratio  how often it arrived last in these
    cost_ns      per step: how much sooner the other ranks would finish if this one worked as long as the median
                 rank; cost_is_limit: at most that, as the verdict says of the only straggler, or of the rank
                 found that costs most beside missing ones
    delay_ns     waiting it caused in those: time between the median arrival of the other ranks and its own, minus
                 the time it had waited for others; time in which several collectives wait for it counts once
    delay_per_step_ns  delay_ns over the number of steps
    waiting_ns   its own waiting for others, all compared collectives; waiting_per_step_ns likewise
    cause        why it is late: null if it isn't, or for ranks below the first six; why: the same in words
    held_up_by   the worker whose lateness it passes on
    """

    worker: str
    rank: int | None
    host: str | None
    collectives: int
    last: int
    last_ratio: float | None
    cost_ns: float
    cost_is_limit: bool
    delay_ns: int
    delay_per_step_ns: float
    waiting_ns: int
    waiting_per_step_ns: float
    cause: CauseKind | None
    why: Text
    held_up_by: str | None


class LateHost(msgspec.Struct, frozen=True):
    """A host with several ranks, at least one of them listed under `stragglers`; only if there are several hosts.

    ranks     number of its ranks that are compared
    cost_ns   per step: of all of them together if they are late together, else of its costliest rank
    """

    host: str
    ranks: int
    cost_ns: float
    together: bool


class LatenessMap(msgspec.Struct, frozen=True):
    """rank x step: time after the median arrival of the other ranks, summed over the step's compared collectives.

    lateness_ns  a row per worker, a cell per step; null where nothing was compared
    """

    workers: list[str]
    steps: list[str]
    lateness_ns: list[list[int | None]]


class RankTimeRow(msgspec.Struct, frozen=True):
    """Time by name: on the late rank, and on the median rank before the same collectives.

    short_name  kernels: as in the rank's Kernels view; frames: `prepare_batch (train.py:42)`; else the name
    median_ns   null if it isn't among the largest of the median rank in every window, so it is less than those
    most_ns     what the median rank spends at most
    """

    name: str
    short_name: str
    time_ns: int
    median_ns: int | None
    most_ns: int


class StragglerActivityRow(msgspec.Struct, frozen=True):
    """What a rank spent extra time on, summed over the windows between collectives in which it worked longest.

    summary      how long that took in total
    collectives  number of windows: those that make up 95% of the extra time; steps: number of steps they are in
    latest       id of the collective after the longest of them
    window_ns    time of the windows without stalls for communication; median_window_ns: of the median rank
    categories   the overview's eight categories, in order
    host         operators and annotations by self time, largest difference first
    frames       Python frames of the user's code, minus user frames inside them, likewise
    kernels      device work by name, likewise
    """

    worker: str
    rank: int | None
    summary: Text
    collectives: int
    steps: int
    latest: int
    window_ns: int
    median_window_ns: int
    categories: list[RankTimeRow]
    host: list[RankTimeRow]
    frames: list[RankTimeRow]
    kernels: list[RankTimeRow]


class DistributedPayload(msgspec.Struct, frozen=True):
    """The payload of the tab.

    The lists with rows of every rank, step, operation, or group (ranks, nodes, overview, averages, families,
    waiting, average_waiting, collectives, groups) and the heat map are complete up to 64 ranks. For a larger job
    they are empty, and `reasons` names the part that has them page by page; everything else is bounded for any
    number of ranks.

    headline       who is a straggler, or why that is unknown
    explanation    what that costs, and what these ranks spend extra time on; may be empty
    origin_ns      the zero of the job's clock as ns since the epoch, null if no file records the time of day
    start_skew_ns  from the first to the last rank to start recording; null without two ranks on one clock
    rank_count     workers of the run; read_count: of these, the ones that are read or can't be
    compared_count, expected_count  ranks that are compared, and that the job has as far as its files tell
    steps          names, in order of first appearance, at most a thousand
    step_noun      what a step is in a sentence: "step", or "iteration" if every rank is one of an inference engine
    spreads        how much the ranks differ; group_families: process groups by purpose
    families       kernel families of each rank, most device time first
    stragglers     the hundred costliest ranks; late_hosts: their hosts
    mismatches     the first hundred; mismatch_count: all
    meanwhile      what the costliest ranks spent extra time on before the collectives they were late for
    """

    headline: Text
    explanation: Text
    verdict: VerdictPayload
    problems: list[Problem]
    rank_count: int
    read_count: int
    compared_count: int
    expected_count: int
    steps: list[str]
    spreads: list[RankSpreadRow]
    group_families: list[GroupFamily]
    ranks: list[RankEntry]
    nodes: list[JobNode]
    origin_ns: int | None
    start_skew_ns: int | None
    overview: list[RankStepTimes]
    averages: list[AverageStepTimes]
    families: list[RankFamily]
    waiting: list[StepWaitingRow]
    average_waiting: list[AverageWaitingRow]
    collectives: list[RankCollectiveRow]
    groups: list[ProcessGroupRow]
    mismatches: list[MismatchRow]
    mismatch_count: int
    stragglers: list[StragglerRow]
    late_hosts: list[LateHost]
    heat_map: LatenessMap | None
    meanwhile: list[StragglerActivityRow]
    reasons: Mapping[str, Text]
    step_noun: str = "step"
