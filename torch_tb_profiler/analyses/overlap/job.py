"""The iterations of all ranks of a job together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from torch_tb_profiler.analyses.overlap.recorded import STREAM
from torch_tb_profiler.model.trace import Float64, Int64

Table = Mapping[str, Float64]
"""The columns of a rank (`summary.RankOverlap`)."""

LEAST_DIFFERENCE_NS = 1000
"""Recorded and recomputed times that lie closer are equal: events are timed to about half a microsecond."""


class Dataset(msgspec.Struct, frozen=True):
    """Means over all iterations of all ranks, under the names of AORTA's own report; ms. From what the recorder
    counted, where it counted nothing from the ranges. `mean_loss` leaves out losses that are no numbers; null
    without any."""

    count: int
    mean_loss: float | None
    mean_overlap_ms: float
    mean_compute_ms: float
    mean_allreduce_overlap_ms: float
    mean_reducescatter_overlap_ms: float
    overlap_ratio: float


class Difference(NamedTuple):
    """A total that was recorded and recomputed from the ranges; means over all iterations that record it, ns.

    iterations  in how many the two differ; most: by how much at most
    folded      in how many of these two ranges of one stream run at once
    """

    name: str
    recorded: float
    recomputed: float
    iterations: int
    most: float
    folded: int


class HeatMap(NamedTuple):
    """A value per rank and group of consecutive steps: the mean; None where the rank has no such step.

    steps   first and last step of each group
    worst   per rank and group (begin, end) ns in the rank's trace of the iteration with the highest value
    """

    steps: list[tuple[int, int]]
    values: list[list[float | None]]
    worst: list[list[tuple[int, int] | None]]


def mean(tables: Sequence[Table], name: str) -> float | None:
    """Mean of a column over all iterations of all ranks; None without any."""
    values = _joined(tables, name)
    return float(values.mean()) if len(values) else None


def dataset(tables: Sequence[Table]) -> Dataset:
    """The totals of AORTA's report."""

    def mean_ms(recorded: str, ours: str) -> float:
        written, counted = _joined(tables, recorded), _joined(tables, ours)
        values = np.where(np.isnan(written), counted, written)
        return float(values.mean()) / 1e6 if len(values) else 0.0

    loss = _joined(tables, "loss")
    loss = loss[np.isfinite(loss)]
    compute = mean_ms(f"recorded {STREAM}compute", "compute")
    overlap = mean_ms("recorded overlap", "overlap")
    return Dataset(
        count=sum(len(table["step"]) for table in tables),
        mean_loss=float(loss.mean()) if len(loss) else None,
        mean_overlap_ms=overlap,
        mean_compute_ms=compute,
        mean_allreduce_overlap_ms=mean_ms("recorded allreduce_overlap", "allreduce_overlap"),
        mean_reducescatter_overlap_ms=mean_ms("recorded reducescatter_overlap", "reducescatter_overlap"),
        overlap_ratio=overlap / compute if compute > 0 else 0.0,
    )


def differences(tables: Sequence[Table]) -> list[Difference]:
    """Every total that any rank recorded, in the order of the columns."""
    names = dict.fromkeys(name for table in tables for name in table if name.startswith("recorded "))
    return [each for name in names if (each := _difference(tables, name.removeprefix("recorded "))) is not None]


def _difference(tables: Sequence[Table], name: str) -> Difference | None:
    recorded = _joined(tables, f"recorded {name}")
    known = ~np.isnan(recorded)
    if not known.any():
        return None
    ours = _joined(tables, "idle_before_last" if name == "idle" else name, missing=0.0)
    recorded, ours, folded = recorded[known], ours[known], _joined(tables, "folded")[known] > 0
    gap = np.abs(recorded - ours)
    differs = gap > LEAST_DIFFERENCE_NS
    return Difference(
        name,
        float(recorded.mean()),
        float(ours.mean()),
        int(differs.sum()),
        float(gap.max()),
        int((differs & folded).sum()),
    )


def heat_map(tables: Sequence[Table], name: str, most_columns: int) -> HeatMap:
    """A column by rank and step; consecutive steps share a group where there are more than `most_columns`."""
    steps = np.unique(_joined(tables, "step").astype(np.int64))
    width = max(-(-len(steps) // most_columns), 1)
    groups = -(-len(steps) // width)
    bounds = [(int(steps[at * width]), int(steps[min((at + 1) * width, len(steps)) - 1])) for at in range(groups)]
    values, worst = [], []
    for table in tables:
        group = np.searchsorted(steps, table["step"].astype(np.int64)) // width
        counts = np.bincount(group, minlength=groups)
        sums = np.bincount(group, table[name], minlength=groups)
        means = (sums / np.maximum(counts, 1)).tolist()
        values.append([each if count else None for each, count in zip(means, counts.tolist(), strict=True)])
        worst.append(_worst(table, group, name, groups))
    return HeatMap(bounds, values, worst)


def _worst(table: Table, group: Int64, name: str, groups: int) -> list[tuple[int, int] | None]:
    places: list[tuple[int, int] | None] = [None] * groups
    first = -np.arange(len(group))  # of equal values the first counts
    for row in np.lexsort((first, table[name], group)).tolist():  # the last of a group is its highest
        begin = int(table["begin"][row])
        places[int(group[row])] = (begin, begin + int(table["total"][row]))
    return places


def series(tables: Sequence[Table], names: Sequence[str]) -> dict[str, list[float]]:
    """Columns by step, over all ranks in order of the step: `step` and means over the ranks, ns."""
    steps, at = np.unique(_joined(tables, "step").astype(np.int64), return_inverse=True)
    counts = np.bincount(at)
    means = {name: (np.bincount(at, _joined(tables, name)) / counts).tolist() for name in names if len(at)}
    return {"step": steps.tolist(), **{name: means.get(name, []) for name in names}}


def _joined(tables: Sequence[Table], name: str, missing: float = np.nan) -> Float64:
    parts = [table.get(name, np.full(len(table["step"]), missing)) for table in tables]
    return np.concatenate(parts) if parts else np.empty(0)
