"""Payloads of the Overlap tab."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from torch_tb_profiler.analyses.overlap.dips import Signal, Strength
from torch_tb_profiler.analyses.overlap.job import OverlapTotals
from torch_tb_profiler.views._shared.text import Text

SeriesName = Literal[
    "overlap_ratio", "exposed", "compute", "loss", "lr", "grad_norm", "clock", "power", "temperature", "memory"
]

MapName = Literal["exposed", "overlap", "compute", "total"]


class OverlapParams(msgspec.Struct, frozen=True):
    """The maps have at most `columns` columns; if there are more iterations, several share one."""

    columns: Annotated[int, msgspec.Meta(ge=1, le=400)] = 120


class OverlapRankRow(msgspec.Struct, frozen=True):
    """One rank: means per iteration in ns, null if it isn't read.

    reason         why it failed, or why there is nothing to show
    <collective>_exposed_ns  the part while no computation runs
    overlap_ns     computation while an all-reduce or a reduce-scatter runs
    exposed_ns     any collective while no computation runs
    idle_ns        time without any busy stream, to the end of the iteration
    overlap_ratio  overlap / computation, as AORTA defines it
    hidden_ratio   share of communication that overlaps with computation
    link           opens the iteration with the most exposed communication, on the timeline
    traced_link    opens it in a trace of the same process, in another run; null if none that was read has it
    """

    worker: str
    rank: int | None
    state: Literal["waiting", "loading", "ready", "failed"]
    reason: str | None
    iterations: int
    total_ns: float | None
    compute_ns: float | None
    allreduce_ns: float | None
    reducescatter_ns: float | None
    allgather_ns: float | None
    allreduce_exposed_ns: float | None
    reducescatter_exposed_ns: float | None
    allgather_exposed_ns: float | None
    overlap_ns: float | None
    exposed_ns: float | None
    idle_ns: float | None
    overlap_ratio: float | None
    hidden_ratio: float | None
    link: str | None
    traced_link: str | None


class OverlapMap(msgspec.Struct, frozen=True):
    """Means in ns by rank and group of steps, null if a rank has no such step."""

    name: MapName
    values: list[list[float | None]]


class RecordedTotalRow(msgspec.Struct, frozen=True):
    """A total as recorded and as recomputed from the ranges: means per iteration in ns.

    iterations  number of iterations in which the two differ; most_ns: the largest difference
    reason      why they differ; null if they don't, or if it is unknown
    """

    name: str
    recorded_ns: float
    recomputed_ns: float
    iterations: int
    most_ns: float
    reason: str | None


class OverlapSeries(msgspec.Struct, frozen=True):
    """Means of the ranks by group of steps, null where no rank has one.

    unit  "ns", "ratio", that of the reading ("MHz", "W", "°C", "%"), or "" for a plain number
    """

    name: SeriesName
    title: str
    unit: str
    values: list[float | None]


class OverlapSignalRow(msgspec.Struct, frozen=True):
    """How often a reading of `rocm-smi` is unusual in dips of overlap and in other iterations.

    unusual                 what counts as unusual
    dip_value, other_value  medians of the reading, in `unit`
    chance                  how often chance alone gives such a table (Fisher's exact test, corrected)
    stretches               separate stretches of dips with the unusual reading, of the rank with most
    """

    signal: Signal
    title: str
    unusual: str
    unit: str
    dips_with: int
    dips: int
    others_with: int
    others: int
    dip_value: float
    other_value: float
    chance: float
    stretches: int
    strength: Strength


class OverlapDipsPayload(msgspec.Struct, frozen=True):
    """Iterations with little overlap, and what `rocm-smi` read in them."""

    headline: Text
    iterations: int
    dips: int
    signals: list[OverlapSignalRow]


class OverlapPayload(msgspec.Struct, frozen=True):
    """How much communication is overlapped with compute, by rank and iteration (AORTA's metrics).

    workers   the rows of the maps; steps: their columns, "4" or "4–7"
    links     by row and column of the maps: opens the iteration with the most exposed communication
    traced_links  opens the same iteration in a trace of the same process, in another run; null if none that was
              read has it
    recorded_headline  whether the recorded totals match the ranges
    series    metrics by the columns of the maps, those that were recorded; their ranks together
    reading   how many files are still to be read, empty once all are; until then all figures are of those read
    """

    headline: Text
    details: Text
    reading: Text
    ranks: list[OverlapRankRow]
    workers: list[str]
    steps: list[str]
    maps: list[OverlapMap]
    links: list[list[str | None]]
    traced_links: list[list[str | None]]
    recorded: list[RecordedTotalRow]
    recorded_headline: Text
    series: list[OverlapSeries]
    dips: OverlapDipsPayload


class OverlapReport(msgspec.Struct, frozen=True):
    """What `overlap-report` writes about a folder: AORTA's totals, and means of the ranks by global step in ns."""

    summary: OverlapTotals
    step: list[int]
    compute_ns: list[float]
    overlap_ns: list[float]


class OverlapComparedRow(msgspec.Struct, frozen=True):
    """Means per iteration in ns (or a ratio) of both sides; null if a side has none."""

    name: str
    base: float | None
    candidate: float | None
    is_ratio: bool


class OverlapComparison(msgspec.Struct, frozen=True):
    """The overlap of two sets of recordings, compared."""

    headline: Text
    rows: list[OverlapComparedRow]
    base: OverlapTotals
    candidate: OverlapTotals
