"""The iterations of all ranks of a job: means, maps by rank and step, and recorded beside recomputed totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from torch_tb_profiler.analyses.overlap.summary import STREAM
from torch_tb_profiler.model.trace import Float64, Int64

OverlapColumns = Mapping[str, Float64]
"""The columns of one rank: name -> float64[k] of its iterations (`summary.RankOverlap`)."""

MIN_DIFFERENCE_NS = 1000
"""Recorded and recomputed times closer than this count as equal: events are timed to about half a microsecond."""


class OverlapTotals(msgspec.Struct, frozen=True):
    """Means over all iterations of all ranks, in ms, under the names of AORTA's own report.

    They are the recorder's totals, or recomputed from the ranges if it wrote none. `mean_loss` leaves out losses
    that aren't numbers; null if there are no others.
    """

    count: int
    mean_loss: float | None
    mean_overlap_ms: float
    mean_compute_ms: float
    mean_allreduce_overlap_ms: float
    mean_reducescatter_overlap_ms: float
    overlap_ratio: float


class RecordedDifference(NamedTuple):
    """A total as recorded and as recomputed from the ranges: means over all iterations that record it, ns.

    iterations  number of iterations in which the two differ; most: the largest difference
    folded      number of these in which two ranges of one stream run at once
    """

    name: str
    recorded: float
    recomputed: float
    iterations: int
    most: float
    folded: int


class OverlapHeatMap(NamedTuple):
    """Means by rank and group of consecutive steps; None if the rank has no such step.

    steps   first and last step of each group
    worst   per rank and group: number of the iteration, in the rank's recording, with the highest value
    """

    steps: list[tuple[int, int]]
    values: list[list[float | None]]
    worst: list[list[int | None]]


def column_mean(tables: Sequence[OverlapColumns], name: str) -> float | None:
    """Return the mean of a column over all iterations of all ranks; None if there are none."""
    values = _join(tables, name)
    return float(values.mean()) if len(values) else None


def overlap_totals(tables: Sequence[OverlapColumns]) -> OverlapTotals:
    """Return the totals of AORTA's report."""

    def mean_ms(recorded_name: str, name: str) -> float:
        recorded, recomputed = _join(tables, recorded_name), _join(tables, name)
        values = np.where(np.isnan(recorded), recomputed, recorded)
        return float(values.mean()) / 1e6 if len(values) else 0.0

    loss = _join(tables, "loss")
    loss = loss[np.isfinite(loss)]
    compute = mean_ms(f"recorded {STREAM}compute", "compute")
    overlap = mean_ms("recorded overlap", "overlap")
    return OverlapTotals(
        count=sum(len(table["step"]) for table in tables),
        mean_loss=float(loss.mean()) if len(loss) else None,
        mean_overlap_ms=overlap,
        mean_compute_ms=compute,
        mean_allreduce_overlap_ms=mean_ms("recorded allreduce_overlap", "allreduce_overlap"),
        mean_reducescatter_overlap_ms=mean_ms("recorded reducescatter_overlap", "reducescatter_overlap"),
        overlap_ratio=overlap / compute if compute > 0 else 0.0,
    )


def recorded_differences(tables: Sequence[OverlapColumns]) -> list[RecordedDifference]:
    """Return every total that any rank recorded, in the order of the columns."""
    names = dict.fromkeys(name for table in tables for name in table if name.startswith("recorded "))
    recorded_differences = (_build_difference(tables, name.removeprefix("recorded ")) for name in names)
    return [difference for difference in recorded_differences if difference is not None]


def _build_difference(tables: Sequence[OverlapColumns], name: str) -> RecordedDifference | None:
    recorded = _join(tables, f"recorded {name}")
    known = ~np.isnan(recorded)
    if not known.any():
        return None
    recomputed = _join(tables, "idle_before_last" if name == "idle" else name, missing=0.0)
    recorded, recomputed = recorded[known], recomputed[known]
    folded = _join(tables, "folded")[known] > 0
    gap = np.abs(recorded - recomputed)
    differs = gap > MIN_DIFFERENCE_NS
    return RecordedDifference(
        name,
        float(recorded.mean()),
        float(recomputed.mean()),
        int(differs.sum()),
        float(gap.max()),
        int((differs & folded).sum()),
    )


def build_heat_map(tables: Sequence[OverlapColumns], name: str, max_columns: int) -> OverlapHeatMap:
    """Return a column by rank and step; consecutive steps share a group if there are more than `max_columns`."""
    steps = np.unique(_join(tables, "step").astype(np.int64))
    width = max(-(-len(steps) // max_columns), 1)
    groups = -(-len(steps) // width)
    starts = range(0, len(steps), width)
    bounds = [(int(steps[start]), int(steps[min(start + width, len(steps)) - 1])) for start in starts]
    values, worst = [], []
    for table in tables:
        group = np.searchsorted(steps, table["step"].astype(np.int64)) // width
        counts = np.bincount(group, minlength=groups)
        sums = np.bincount(group, table[name], minlength=groups)
        means = (sums / np.maximum(counts, 1)).tolist()
        values.append(
            [column_mean if count else None for column_mean, count in zip(means, counts.tolist(), strict=True)]
        )
        worst.append(_find_worst_iterations(table[name], group, groups))
    return OverlapHeatMap(bounds, values, worst)


def iteration_window(table: OverlapColumns, number: int) -> tuple[int, int]:
    """Return begin and end of an iteration in the rank's recording, ns."""
    begin = int(table["begin"][number])
    return begin, begin + int(table["total"][number])


def _find_worst_iterations(values: Float64, group: Int64, groups: int) -> list[int | None]:
    worst: list[int | None] = [None] * groups
    first = -np.arange(len(group))  # among equal values the first iteration wins
    for row in np.lexsort((first, values, group)).tolist():  # the last one of a group has its highest value
        worst[int(group[row])] = row
    return worst


def means_by_group(
    tables: Sequence[OverlapColumns], name: str, groups: Sequence[tuple[int, int]]
) -> list[float | None]:
    """Return the mean of a column over all ranks in each group (first and last step); None without a number."""
    steps, values = _join(tables, "step").astype(np.int64), _join(tables, name)
    known = np.isfinite(values)
    group = np.searchsorted([first for first, _ in groups], steps[known], "right") - 1
    counts = np.bincount(group, minlength=len(groups))
    sums = np.bincount(group, values[known], minlength=len(groups))
    pairs = zip(sums.tolist(), counts.tolist(), strict=True)
    return [total / count if count else None for total, count in pairs]


def means_by_step(tables: Sequence[OverlapColumns], names: Sequence[str]) -> dict[str, list[float]]:
    """Return `step` and, for each column in `names`, the mean over the ranks at each step, ns."""
    steps, index = np.unique(_join(tables, "step").astype(np.int64), return_inverse=True)
    counts = np.bincount(index)
    means = {name: (np.bincount(index, _join(tables, name)) / counts).tolist() for name in names if len(index)}
    return {"step": steps.tolist(), **{name: means.get(name, []) for name in names}}


def _join(tables: Sequence[OverlapColumns], name: str, missing: float = np.nan) -> Float64:
    parts = [table.get(name, np.full(len(table["step"]), missing)) for table in tables]
    return np.concatenate(parts) if parts else np.empty(0)
