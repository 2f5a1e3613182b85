"""Overlap: how much communication overlaps with computation, by rank and iteration, also of two runs."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.overlap.dips import find_dips
from torch_tb_profiler.analyses.overlap.job import (
    OverlapColumns,
    build_heat_map,
    column_mean,
    iteration_window,
    means_by_group,
    means_by_step,
    overlap_totals,
    recorded_differences,
)
from torch_tb_profiler.analyses.overlap.summary import COLLECTIVE_STREAMS, RankOverlap, summarize_overlap
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.rocm_smi import UNITS
from torch_tb_profiler.model.trace import Trace, TracePair
from torch_tb_profiler.view import Member, Members, NoParams, PairView, Reduction, RunView, Tab
from torch_tb_profiler.views._shared.availability import overlap_reason
from torch_tb_profiler.views._shared.job.members import count_unread, progress_phrase
from torch_tb_profiler.views._shared.text import link
from torch_tb_profiler.views.overlap import words
from torch_tb_profiler.views.overlap.payload import (
    MapName,
    OverlapComparedRow,
    OverlapComparison,
    OverlapDipsPayload,
    OverlapMap,
    OverlapParams,
    OverlapPayload,
    OverlapRankRow,
    OverlapReport,
    OverlapSeries,
    OverlapSignalRow,
    RecordedTotalRow,
    SeriesName,
)

_MAPS: tuple[MapName, ...] = ("exposed", "overlap", "compute", "total")

_SERIES: dict[SeriesName, str] = {
    "overlap_ratio": "ratio",
    "exposed": "ns",
    "compute": "ns",
    "loss": "",
    "lr": "",
    "grad_norm": "",
    "clock": UNITS["clock"],
    "power": UNITS["power"],
    "temperature": UNITS["temperature"],
    "memory": UNITS["memory"],
}
"""The metrics over the steps, in this order, and their units."""

_COMPARED_TOTALS = (
    "total",
    "compute",
    "allreduce",
    "reducescatter",
    "allgather",
    "overlap",
    "hidden",
    "exposed",
)


@derived
def _columns_by_worker(members: Members[RankOverlap]) -> dict[str, OverlapColumns]:
    return {member.worker: member.result.table() for member in members if member.result is not None}


def build(members: Members[RankOverlap], params: OverlapParams) -> OverlapPayload:
    """Show the ranks whose files have been read."""
    by_worker = _columns_by_worker(members)
    tables = list(by_worker.values())
    member_of = {member.worker: member for member in members}
    maps = {name: build_heat_map(tables, name, params.columns) for name in _MAPS}
    worst_iterations = list(zip(by_worker.items(), maps["exposed"].worst, strict=True))
    links = [
        [None if number is None else _timeline_link(member_of[worker], table, number) for number in row]
        for (worker, table), row in worst_iterations
    ]
    traced_links = [
        [None if number is None else _traced_link(member_of[worker], number) for number in row]
        for (worker, _), row in worst_iterations
    ]
    rows = [_build_rank_row(member, by_worker.get(member.worker)) for member in members]
    collectives = {
        name: column_mean(tables, f"{name}_exposed") or 0.0
        for name in COLLECTIVE_STREAMS
        if column_mean(tables, name)
    }
    hidden, exposed = column_mean(tables, "hidden"), column_mean(tables, "exposed")
    differences = recorded_differences(tables)
    worst = max(rows, key=lambda row: row.exposed_ns or 0.0, default=None)
    return OverlapPayload(
        headline=words.headline(
            column_mean(tables, "total"),
            exposed,
            collectives,
            None if worst is None else worst.link,
            not count_unread(members),
        ),
        details=words.details(rows, overlap_totals(tables), _hidden_ratio(hidden, exposed)),
        reading=progress_phrase(members),
        ranks=rows,
        workers=list(by_worker),
        steps=[f"{begin}" if begin == end else f"{begin}–{end}" for begin, end in maps["total"].steps],
        maps=[OverlapMap(name, heat_map.values) for name, heat_map in maps.items()],
        links=links,
        traced_links=traced_links,
        recorded=[
            RecordedTotalRow(
                words.title(difference.name),
                difference.recorded,
                difference.recomputed,
                difference.iterations,
                difference.most,
                words.FOLDED_REASON
                if difference.iterations and difference.folded == difference.iterations
                else None,
            )
            for difference in differences
        ],
        recorded_headline=words.recorded_headline(differences),
        series=_build_series(tables, maps["total"].steps),
        dips=_build_dips(tables),
    )


def _build_series(tables: Sequence[OverlapColumns], steps: Sequence[tuple[int, int]]) -> list[OverlapSeries]:
    """Return the metrics that any rank recorded, by the groups of steps of the maps."""
    columns: dict[SeriesName, list[float | None]] = {
        name: means_by_group(tables, name, steps) for name in _SERIES if name != "overlap_ratio"
    }
    overlap = means_by_group(tables, "overlap", steps)
    columns["overlap_ratio"] = [
        None if not compute or value is None else value / compute
        for value, compute in zip(overlap, columns["compute"], strict=True)
    ]
    return [
        OverlapSeries(name, words.SERIES_TITLES[name], unit, columns[name])
        for name, unit in _SERIES.items()
        if any(value is not None for value in columns[name])
    ]


def _build_dips(tables: Sequence[OverlapColumns]) -> OverlapDipsPayload:
    dips = find_dips(tables)
    rows = [
        OverlapSignalRow(
            signal=each.signal,
            title=words.SERIES_TITLES[each.signal],
            unusual=words.UNUSUAL[each.signal],
            unit=UNITS[each.signal],
            dips_with=each.dips_with,
            dips=each.dips,
            others_with=each.others_with,
            others=each.others,
            dip_value=each.dip_value,
            other_value=each.other_value,
            chance=float(f"{each.chance:.3g}"),
            stretches=each.stretches,
            strength=each.strength,
        )
        for each in dips.signals
    ]
    return OverlapDipsPayload(words.dips_headline(dips), dips.iterations, dips.dips, rows)


def _build_rank_row(member: Member[RankOverlap], columns: OverlapColumns | None) -> OverlapRankRow:
    tables = [] if columns is None else [columns]

    def mean(name: str) -> float | None:
        return column_mean(tables, name)

    compute, overlap = mean("compute"), mean("overlap")
    worst = build_heat_map(tables, "exposed", 1).worst if columns is not None else []
    number = worst[0][0] if worst and worst[0] else None
    return OverlapRankRow(
        worker=member.worker,
        rank=member.rank if member.result is None or member.result.rank is None else member.result.rank,
        state=member.state,
        reason=member.reason,
        iterations=0 if columns is None else len(columns["step"]),
        total_ns=mean("total"),
        compute_ns=compute,
        allreduce_ns=mean("allreduce"),
        reducescatter_ns=mean("reducescatter"),
        allgather_ns=mean("allgather"),
        allreduce_exposed_ns=mean("allreduce_exposed"),
        reducescatter_exposed_ns=mean("reducescatter_exposed"),
        allgather_exposed_ns=mean("allgather_exposed"),
        overlap_ns=overlap,
        exposed_ns=mean("exposed"),
        idle_ns=mean("idle"),
        overlap_ratio=None if not compute or overlap is None else overlap / compute,
        hidden_ratio=_hidden_ratio(mean("hidden"), mean("exposed")),
        link=None if number is None or columns is None else _timeline_link(member, columns, number),
        traced_link=None if number is None else _traced_link(member, number),
    )


def _hidden_ratio(hidden: float | None, exposed: float | None) -> float | None:
    """Return the share of communication that is overlapped; None if there is no communication."""
    communication = (hidden or 0.0) + (exposed or 0.0)
    return None if not communication else (hidden or 0.0) / communication


def _timeline_link(member: Member[RankOverlap], columns: OverlapColumns, number: int) -> str:
    begin, end = iteration_window(columns, number)
    return link("trace", worker=member.worker, span=member.span, at=f"{begin}-{end}")


def _traced_link(member: Member[RankOverlap], number: int) -> str | None:
    """Return what opens an iteration in a trace that was joined with it; None if no trace has it."""
    for traced in member.traced:
        if (window := traced.windows.get(number)) is not None:
            at = f"{window[0]}-{window[1]}"
            return link("trace", run=traced.run, worker=traced.worker, span=traced.span, at=at)
    return None


def build_report(members: Members[RankOverlap], _: NoParams) -> OverlapReport:
    """Return AORTA's totals and the series that its picture draws."""
    tables = list(_columns_by_worker(members).values())
    means = means_by_step(tables, ("compute", "overlap"))
    steps = [int(step) for step in means["step"]]
    return OverlapReport(overlap_totals(tables), steps, means["compute"], means["overlap"])


def build_comparison(pair: TracePair, _: NoParams) -> OverlapComparison:
    """Compare the means over all iterations of two sets of recordings."""
    base, candidate = _summarize_all(pair.base), _summarize_all(pair.candidate)
    base_totals, candidate_totals = overlap_totals(base), overlap_totals(candidate)
    rows = [
        OverlapComparedRow(words.title(name), column_mean(base, name), column_mean(candidate, name), False)
        for name in _COMPARED_TOTALS
    ]
    ratio = OverlapComparedRow(
        "Overlap / computation", base_totals.overlap_ratio, candidate_totals.overlap_ratio, True
    )
    headline = words.comparison_headline(base_totals, candidate_totals)
    return OverlapComparison(headline, [*rows, ratio], base_totals, candidate_totals)


def _summarize_all(recordings: Sequence[Trace]) -> list[OverlapColumns]:
    return [summarize_overlap(trace).table() for trace in recordings]


REDUCTION = Reduction("overlap", RankOverlap, summarize_overlap, traced=True)

TAB = Tab(
    "Resources",
    RunView("overlap", "Overlap", OverlapParams, OverlapPayload, build, REDUCTION),
    overlap_reason,
    (
        RunView("overlap/report", "Overlap report", NoParams, OverlapReport, build_report, REDUCTION),
        PairView("overlap/compare", "Overlap compared", NoParams, OverlapComparison, build_comparison),
    ),
    clocks=("epoch", "boot", "iteration"),
)
