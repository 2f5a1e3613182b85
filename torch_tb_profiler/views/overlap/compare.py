"""Two sets of recordings of iterations side by side."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.overlap.job import Table, dataset, mean
from torch_tb_profiler.analyses.overlap.summary import summarize
from torch_tb_profiler.model.trace import Trace, TracePair
from torch_tb_profiler.view import NoParams, PairView
from torch_tb_profiler.views.overlap import words
from torch_tb_profiler.views.overlap.payload import ComparedRow, OverlapComparison

_NAMES = ("total", "compute", "allreduce", "reducescatter", "allgather", "overlap", "hidden", "exposed")


def build_comparison(pair: TracePair, _: NoParams) -> OverlapComparison:
    """Means over all iterations of each side."""
    base, candidate = _tables(pair.base), _tables(pair.candidate)
    base_totals, candidate_totals = dataset(base), dataset(candidate)
    rows = [ComparedRow(words.title(name), mean(base, name), mean(candidate, name), False) for name in _NAMES]
    ratio = ComparedRow("Overlap / computation", base_totals.overlap_ratio, candidate_totals.overlap_ratio, True)
    headline = words.compared(base_totals, candidate_totals)
    return OverlapComparison(headline, [*rows, ratio], base_totals, candidate_totals)


def _tables(recordings: Sequence[Trace]) -> list[Table]:
    return [summarize(trace).table() for trace in recordings]


COMPARE = PairView("overlap/compare", "Overlap compared", NoParams, OverlapComparison, build_comparison)
