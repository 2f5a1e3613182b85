"""Who arrives late, and what that rank does meanwhile."""

from __future__ import annotations

from typing import Literal

import msgspec

from torch_tb_profiler.views._shared.text import Text

CauseKind = Literal["host", "data_loading", "more_work", "slower_device", "slower_link", "other", "held_up"]


class Straggler(msgspec.Struct, frozen=True):
    """How often and how much a rank kept the others waiting, and what that costs; most cost first.

    collectives  compared ones it took part in whose arrivals differ by more than the error of the clocks
    last, last_ratio  of these, how often it arrived last
    cost_ns      per step, by how much sooner the others would be done if it worked as long as usual
    delay_ns     waiting caused: time between the median arrival of the other ranks and its own in those, less
                 what it waited for others before; time in which several collectives wait for it counts once
    delay_per_step_ns  that over the number of steps
    waiting_ns   its own waiting for others, all compared collectives; waiting_per_step_ns likewise
    cause        why it is late: null if it is not, or of a rank below the first six; why: in words
    held_up_by   the worker whose lateness it passes on
    """

    worker: str
    rank: int | None
    host: str | None
    collectives: int
    last: int
    last_ratio: float | None
    cost_ns: float
    delay_ns: int
    delay_per_step_ns: float
    waiting_ns: int
    waiting_per_step_ns: float
    cause: CauseKind | None
    why: Text
    held_up_by: str | None


class HeatMap(msgspec.Struct, frozen=True):
    """rank x step: time after the median arrival of the other ranks, summed over the step's compared collectives.

    lateness_ns  a row per worker, a cell per step; null where nothing was compared
    """

    workers: list[str]
    steps: list[str]
    lateness_ns: list[list[int | None]]


class RankTime(msgspec.Struct, frozen=True):
    """Time by name: of the late rank, and of the median rank before the same collectives.

    short_name  of a kernel as the rank's Kernels view has it, of a frame `prepare_batch (train.py:42)`, of all
                else the name
    median_ns  null where it is not among the largest of the median rank: then it is less than those
    """

    name: str
    short_name: str
    time_ns: int
    median_ns: int | None


class Meanwhile(msgspec.Struct, frozen=True):
    """What a rank did between one arrival and its next, summed over the windows in which it worked longer than
    usual.

    summary     how long that took in total
    collectives  how many windows count: those that make up 95% of that; steps: in how many steps these lie
    latest      id of the collective after the longest of them
    window_ns   that time without stalls for communication; median_window_ns: of a rank that worked as long as
                usual
    categories  the overview's eight categories, in order
    host        operators and annotations by self time, largest difference first
    frames      Python frames of the user's code, less the frames of that in them, likewise
    kernels     device work by name, likewise
    """

    worker: str
    rank: int | None
    summary: Text
    collectives: int
    steps: int
    latest: int
    window_ns: int
    median_window_ns: int
    categories: list[RankTime]
    host: list[RankTime]
    frames: list[RankTime]
    kernels: list[RankTime]
