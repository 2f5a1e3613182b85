"""Iterations with little overlap, and whether the GPU was throttled or short of memory in them.

overlap / computation   0.61 0.60 0.35 0.62 0.33 0.60      dips: the third and the fifth
clock, MHz              2100 2090 1310 2100 1300 2100      lower in both of them, and in no other

How often a reading is unusual in dips and elsewhere is compared by Fisher's exact test, one-sided, times the
number of readings that are compared (Bonferroni). Neighboring iterations aren't independent, so
separate stretches of dips count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, lgamma
from typing import Literal, NamedTuple

import numpy as np

from torch_tb_profiler.analyses.overlap.job import OverlapColumns
from torch_tb_profiler.model.trace import Bool, Float64

DIP_RATIO = 0.8
"""An iteration whose overlap / computation is below this share of its rank's median is a dip."""

MIN_ITERATIONS = 8
"""Fewest iterations of a rank that make its median meaningful."""

LOW_CLOCK_RATIO = 0.95
"""A clock below this share of the rank's median is low."""

MIN_HOT_DEGREES = 5
"""A temperature at least this many °C above the rank's median is high."""

MIN_FULL_MEMORY_PERCENT = 95
"""Memory of which at least this share is in use is short."""

MAX_STRONG_CHANCE, MAX_WEAK_CHANCE = 0.01, 0.05
"""Evidence is strong or weak if chance alone gives such a table at most this often."""

MIN_STRONG_STRETCHES = 3
"""Fewest separate stretches of coinciding dips for strong evidence: one long stretch is a single event."""

Signal = Literal["clock", "temperature", "memory"]
Strength = Literal["strong", "weak", "none"]

_UNUSUAL: dict[Signal, Callable[[Float64], Bool]] = {
    "clock": lambda values: values < LOW_CLOCK_RATIO * np.median(values),
    "temperature": lambda values: values >= np.median(values) + MIN_HOT_DEGREES,
    "memory": lambda values: values >= MIN_FULL_MEMORY_PERCENT,
}


class SignalEvidence(NamedTuple):
    """How often a reading is unusual in dips and in other iterations that have the reading.

    dip_value, other_value  medians of the reading in dips and elsewhere
    chance                  how often chance alone gives at least as many of the dips
    stretches               separate stretches of consecutive dips with the unusual reading, of the rank with most
    """

    signal: Signal
    dips_with: int
    dips: int
    others_with: int
    others: int
    dip_value: float
    other_value: float
    chance: float
    stretches: int

    @property
    def strength(self) -> Strength:
        """Return how strong the evidence is that dips and unusual readings coincide."""
        if 2 * self.dips_with < self.dips or self.chance > MAX_WEAK_CHANCE:
            return "none"
        return "strong" if self.chance <= MAX_STRONG_CHANCE and self.stretches >= MIN_STRONG_STRETCHES else "weak"


class OverlapDips(NamedTuple):
    """Dips of all ranks.

    iterations  iterations of ranks that have enough of them and any overlap
    dips        how many of them are dips
    gpus        most GPUs that an output of `rocm-smi` lists, 0 without any
    gpu_known   whether any rank's GPU is known among them
    signals     readings that both dips and other iterations have
    """

    iterations: int
    dips: int
    gpus: int
    gpu_known: bool
    signals: list[SignalEvidence]


def find_dips(tables: Sequence[OverlapColumns]) -> OverlapDips:
    """Return the dips of all ranks, and what `rocm-smi` read in them."""
    judged = [(table, dips) for table in tables if (dips := _find_dips(table)) is not None]
    gpus = max((int(table["gpus"].max(initial=0)) for table in tables), default=0)
    pairs = [(name, _pool_iterations(judged, name)) for name in _UNUSUAL]
    found = [(name, pooled) for name, pooled in pairs if pooled is not None]
    signals = [_build_evidence(name, *pooled, tests=len(found)) for name, pooled in found]
    return OverlapDips(
        sum(len(dips) for _, dips in judged),
        sum(int(dips.sum()) for _, dips in judged),
        gpus,
        any(bool(np.isfinite(table["gpu"]).any()) for table in tables),
        signals,
    )


def _find_dips(table: OverlapColumns) -> Bool | None:
    """Return bool[k]: which iterations of a rank are dips; None if it has too few, or no overlap."""
    computed = table["compute"] > 0
    ratio = np.divide(table["overlap"], table["compute"], out=np.full(len(computed), np.nan), where=computed)
    if computed.sum() < MIN_ITERATIONS:
        return None
    median = np.median(ratio[computed])
    return None if median == 0 else computed & (ratio < DIP_RATIO * median)


def _pool_iterations(
    judged: Sequence[tuple[OverlapColumns, Bool]], name: Signal
) -> tuple[Bool, Bool, Float64, int] | None:
    """Return (is dip, is unusual, reading, stretches) of the iterations with a reading, or None."""
    dips, unusual, values, stretches = [], [], [], 0
    for table, dip in judged:
        known = np.isfinite(table[name])
        if known.any():
            is_unusual = _UNUSUAL[name](table[name][known])
            dips.append(dip[known])
            unusual.append(is_unusual)
            values.append(table[name][known])
            together = dip[known] & is_unusual
            stretches = max(stretches, int((together & ~np.append(False, together[:-1])).sum()))
    if not dips:
        return None
    joined = np.concatenate(dips)
    if joined.all() or not joined.any():
        return None
    return joined, np.concatenate(unusual), np.concatenate(values), stretches


def _build_evidence(
    name: Signal, dip: Bool, unusual: Bool, values: Float64, stretches: int, *, tests: int
) -> SignalEvidence:
    dips_with, dips = int((dip & unusual).sum()), int(dip.sum())
    others_with, others = int((~dip & unusual).sum()), int((~dip).sum())
    return SignalEvidence(
        name,
        dips_with,
        dips,
        others_with,
        others,
        float(np.median(values[dip])),
        float(np.median(values[~dip])),
        min(chance_of_table(dips_with, dips, others_with, others) * tests, 1.0),
        stretches,
    )


def chance_of_table(dips_with: int, dips: int, others_with: int, others: int) -> float:
    """Return how often at least `dips_with` of the dips are unusual if the unusual iterations fall anywhere.

    Fisher's exact test, one-sided: the upper tail of the hypergeometric distribution.
    """
    total, unusual = dips + others, dips_with + others_with
    tables = _log_ways(total, dips)
    return sum(
        exp(_log_ways(unusual, k) + _log_ways(total - unusual, dips - k) - tables)
        for k in range(max(dips_with, dips + unusual - total), min(dips, unusual) + 1)
    )


def _log_ways(count: int, chosen: int) -> float:
    """Return the logarithm of the number of ways to choose."""
    return lgamma(count + 1) - lgamma(chosen + 1) - lgamma(count - chosen + 1)
