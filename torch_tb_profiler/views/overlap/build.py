"""Overlap: how much communication computation hides, by rank and iteration."""

from __future__ import annotations

from torch_tb_profiler.analyses.overlap.job import (
    Dataset,
    Table,
    dataset,
    differences,
    heat_map,
    mean,
    series,
)
from torch_tb_profiler.analyses.overlap.summary import COLLECTIVES, RankOverlap, summarize
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.trace import AORTA, Trace
from torch_tb_profiler.view import Member, Members, NoParams, Reduction, RunView, Tab
from torch_tb_profiler.views._shared.job.members import count_unread, progress_phrase
from torch_tb_profiler.views._shared.text import link
from torch_tb_profiler.views.overlap import words
from torch_tb_profiler.views.overlap.compare import COMPARE
from torch_tb_profiler.views.overlap.payload import (
    MapName,
    OverlapMap,
    OverlapParams,
    OverlapPayload,
    OverlapReport,
    RankRow,
    RecordedRow,
)

_MAPS: tuple[MapName, ...] = ("exposed", "overlap", "compute", "total")


@derived
def _tables(members: Members[RankOverlap]) -> dict[str, Table]:
    """Worker -> the columns of a rank that is read."""
    return {member.worker: member.result.table() for member in members if member.result is not None}


def build(members: Members[RankOverlap], params: OverlapParams) -> OverlapPayload:
    """The job as far as its files are read."""
    by_worker = _tables(members)
    tables = list(by_worker.values())
    spans = {member.worker: member.span for member in members}
    maps = {name: heat_map(tables, name, params.columns) for name in _MAPS}
    links = [
        [None if place is None else _timeline(worker, spans[worker], place) for place in row]
        for worker, row in zip(by_worker, maps["exposed"].worst, strict=True)
    ]
    rows = [_rank(member, by_worker.get(member.worker)) for member in members]
    collectives = {name: mean(tables, f"{name}_exposed") or 0.0 for name in COLLECTIVES if mean(tables, name)}
    hidden, exposed = mean(tables, "hidden"), mean(tables, "exposed")
    differing = differences(tables)
    summary = dataset(tables)
    worst = max(rows, key=lambda row: row.exposed_ns or 0.0, default=None)
    return OverlapPayload(
        headline=words.headline(
            mean(tables, "total"),
            exposed,
            collectives,
            None if worst is None else worst.link,
            not count_unread(members),
        ),
        details=words.details(rows, summary, _share(hidden, exposed)),
        reading=progress_phrase(members),
        ranks=rows,
        workers=list(by_worker),
        steps=[f"{begin}" if begin == end else f"{begin}–{end}" for begin, end in maps["total"].steps],
        maps=[OverlapMap(name, each.values) for name, each in maps.items()],
        links=links,
        recorded=[
            RecordedRow(
                words.title(each.name),
                each.recorded,
                each.recomputed,
                each.iterations,
                each.most,
                words.FOLDED if each.iterations and each.folded == each.iterations else None,
            )
            for each in differing
        ],
        recorded_headline=words.recorded_headline(differing),
    )


def _rank(member: Member[RankOverlap], table: Table | None) -> RankRow:
    tables = [] if table is None else [table]

    def of(name: str) -> float | None:
        return mean(tables, name)

    compute, overlap = of("compute"), of("overlap")
    worst = heat_map(tables, "exposed", 1).worst if table is not None else []
    place = worst[0][0] if worst and worst[0] else None
    return RankRow(
        worker=member.worker,
        rank=member.rank if member.result is None or member.result.rank is None else member.result.rank,
        state=member.state,
        reason=member.reason,
        iterations=0 if table is None else len(table["step"]),
        total_ns=of("total"),
        compute_ns=compute,
        allreduce_ns=of("allreduce"),
        reducescatter_ns=of("reducescatter"),
        allgather_ns=of("allgather"),
        allreduce_exposed_ns=of("allreduce_exposed"),
        reducescatter_exposed_ns=of("reducescatter_exposed"),
        allgather_exposed_ns=of("allgather_exposed"),
        overlap_ns=overlap,
        exposed_ns=of("exposed"),
        idle_ns=of("idle"),
        overlap_ratio=None if not compute or overlap is None else overlap / compute,
        hidden_ratio=_share(of("hidden"), of("exposed")),
        link=None if place is None else _timeline(member.worker, member.span, place),
    )


def _share(hidden: float | None, exposed: float | None) -> float | None:
    """The hidden part of all communication; None without any."""
    whole = (hidden or 0.0) + (exposed or 0.0)
    return None if not whole else (hidden or 0.0) / whole


def _timeline(worker: str, span: str, place: tuple[int, int]) -> str:
    return link("trace", worker=worker, span=span, at=f"{place[0]}-{place[1]}")


def build_report(members: Members[RankOverlap], _: NoParams) -> OverlapReport:
    """AORTA's totals, and what its picture draws."""
    tables = list(_tables(members).values())
    steps = series(tables, ("compute", "overlap"))
    summary: Dataset = dataset(tables)
    return OverlapReport(summary, [int(step) for step in steps["step"]], steps["compute"], steps["overlap"])


def unavailable(trace: Trace) -> str | None:
    """Only benchmarks that time streams record iterations."""
    return (
        None
        if trace.clock == "iteration"
        else f"no metrics of iterations are recorded ({AORTA}: `rank_*_metrics.jsonl`)"
    )


REDUCTION = Reduction("overlap", RankOverlap, summarize)

TAB = Tab(
    "Resources",
    RunView("overlap", "Overlap", OverlapParams, OverlapPayload, build, REDUCTION),
    unavailable,
    (RunView("overlap/report", "Overlap report", NoParams, OverlapReport, build_report, REDUCTION), COMPARE),
    clocks=("epoch", "boot", "iteration"),
)
