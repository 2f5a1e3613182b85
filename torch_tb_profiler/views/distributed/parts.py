"""What the distributed view asks for once it is open: the table of collectives, and one of them across ranks."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import CollectiveTable, collective_table
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Float64, Int64, derived
from torch_tb_profiler.view import Members, RunView
from torch_tb_profiler.views.distributed import connections as distributed_connections
from torch_tb_profiler.views.distributed.operations import full_name, known, number
from torch_tb_profiler.views.distributed.part_payloads import (
    Before,
    Collective,
    CollectiveInstance,
    CollectiveParams,
    Collectives,
    CollectivesParams,
    NamedTime,
    Participant,
)
from torch_tb_profiler.views.distributed.ranks import Party, party
from torch_tb_profiler.views.distributed.reasons import reasons
from torch_tb_profiler.views.distributed.reduction import RANK_SUMMARIES


@derived
def _table(members: Members[RankSummary]) -> CollectiveTable:
    return collective_table(party(members).found)


@derived
def _mismatches(members: Members[RankSummary]) -> dict[int, str]:
    """Collective -> what differs between its ranks."""
    found: dict[int, str] = {}
    for difference in party(members).found.matching.differences:
        told = f"{difference.what}: {', '.join(difference.values)}"
        found[difference.instance] = (
            f"{found[difference.instance]}; {told}" if difference.instance in found else told
        )
    return found


def build_collectives(members: Members[RankSummary], params: CollectivesParams) -> Collectives:
    """A page of the table of collectives."""
    who, table = party(members), _table(members)
    rows = np.flatnonzero(_kept(members, params))
    order = rows[np.argsort(_sort_key(who, table, params.sort)[rows], kind="stable")]
    order = order[::-1] if params.descending else order
    page = order[params.rows].tolist()
    return Collectives([_instance(members, each) for each in page], len(rows), params.first, reasons(who))


def _kept(members: Members[RankSummary], params: CollectivesParams) -> Bool:
    who, table = party(members), _table(members)
    job = who.found.job
    keep = np.ones(len(who.found.matching), np.bool_)
    if params.group >= 0:
        if params.group >= len(job.groups):
            raise NotFoundError(f"there is no process group {params.group}", hint=f"0 to {len(job.groups) - 1}")
        keep &= job.table.group[table.example] == params.group
    if params.name:
        keep &= np.array([full_name(who, row) == params.name for row in table.example.tolist()], np.bool_)
    if params.step:
        if params.step not in job.steps:
            raise NotFoundError(f"there is no step {params.step!r}", hint=f"steps: {', '.join(job.steps[:20])}")
        keep &= job.table.step[table.example] == job.steps.index(params.step)
    if params.late:
        if params.late not in who.position:
            raise NotFoundError(f"no worker {params.late!r} is compared", hint="`ranks` of the view lists them")
        last = who.found.arrivals.last
        keep &= (last >= 0) & (np.append(job.table.member, NO_CODE)[last] == who.position[params.late])
    if params.mismatched:
        keep &= np.isin(np.arange(len(keep)), list(_mismatches(members)))
    return keep


def _sort_key(who: Party, table: CollectiveTable, sort: str) -> Int64 | Float64:
    job, example = who.found.job, table.example
    names = np.array(sorted(range(len(job.names)), key=job.names.__getitem__), np.int64)
    place = np.empty(len(names) + 1, np.int64)
    place[names], place[-1] = np.arange(len(names)), -1
    keys: dict[str, Int64 | Float64] = {
        "start": np.arange(len(example)),
        "name": place[job.table.collective[example]],
        "group": job.table.group[example].astype(np.int64),
        "step": job.table.step[example].astype(np.int64),
        "ranks": who.found.matching.sizes,
        "bytes": table.message,
        "latency": table.longest,
        "transfer": table.shortest,
        "waiting": table.waiting,
        "skew": who.found.arrivals.skew,
        "bandwidth": np.nan_to_num(table.bandwidth.bus, nan=-1.0),
    }
    return keys[sort]


def _instance(members: Members[RankSummary], at: int) -> CollectiveInstance:
    who, table = party(members), _table(members)
    job, matching, arrivals = who.found.job, who.found.matching, who.found.arrivals
    row = int(table.example[at])
    step, dtype, last = int(job.table.step[row]), int(job.table.dtype[row]), int(arrivals.last[at])
    late = who.sources[job.table.member[last]] if last >= 0 else None
    return CollectiveInstance(
        id=at,
        group=int(job.table.group[row]),
        name=full_name(who, row),
        sequence=known(job.table.sequence[row]),
        step=job.steps[step] if step >= 0 else None,
        start_ns=known(table.start[at]),
        end_ns=known(table.end[at]),
        ranks=int(matching.sizes[at]),
        size=job.groups[job.table.group[row]].size,
        dtype=job.names[dtype] if dtype >= 0 else None,
        bytes=known(table.message[at]),
        latency_ns=known(table.longest[at]),
        transfer_ns=known(table.shortest[at]),
        waiting_ns=known(table.waiting[at]),
        skew_ns=known(arrivals.skew[at]),
        late_worker=late.worker if late else None,
        late_rank=late.rank if late else None,
        algorithm_bandwidth=number(table.bandwidth.algorithm[at]),
        bus_bandwidth=number(table.bandwidth.bus[at]),
        lower_bound=bool(table.bandwidth.lower_bound[at]),
        mismatch=_mismatches(members).get(at),
    )


def build_collective(members: Members[RankSummary], params: CollectiveParams) -> Collective:
    """One collective across its ranks."""
    who = party(members)
    count = len(who.found.matching)
    if not 0 <= params.collective < count:
        raise NotFoundError(f"there is no collective {params.collective}", hint=f"0 to {count - 1}")
    rows = np.flatnonzero(who.found.matching.instance == params.collective).tolist()
    middle = [row for row in rows if who.found.arrivals.middle[row]]
    return Collective(
        instance=_instance(members, params.collective),
        participants=[_participant(who, row) for row in rows],
        median_worker=who.sources[who.found.job.table.member[middle[0]]].worker if middle else None,
        reasons=reasons(who),
    )


def _participant(who: Party, row: int) -> Participant:
    job, split, arrivals = who.found.job, who.found.split, who.found.arrivals
    table, member = job.table, int(job.table.member[row])
    source = who.sources[member]
    cell = source.summary.table()[table.row[row]]
    shift = who.found.clocks.clocks[member].shift
    start, end = known(table.start[row]), known(table.end[row])
    dtype = int(table.dtype[row])
    span = next(each.span for each in who.members if each.worker == source.worker)
    return Participant(
        worker=source.worker,
        rank=source.rank,
        span=span,
        event=int(cell["event"]),
        call=int(cell["call"]) if cell["call"] >= 0 else None,
        name=full_name(who, row),
        dtype=job.names[dtype] if dtype >= 0 else None,
        bytes=known(table.bytes_in[row]),
        out_bytes=known(table.bytes_out[row]),
        trace_start_ns=start,
        start_ns=None if start is None or shift is None else start + shift,
        end_ns=None if end is None or shift is None else end + shift,
        latency_ns=known(table.busy[row]),
        transfer_ns=known(split.transfer[row]),
        synchronizing_ns=known(split.waiting[row]),
        exposed_ns=known(table.exposed[row]),
        late_ns=_late(who, row) if arrivals.late[row] != ABSENT else None,
        before=_before(source.summary, cell),
    )


def _late(who: Party, row: int) -> int:
    """ns after the first arrival at the same collective."""
    job = who.found.job
    shift, _ = who.found.clocks.shifts()
    first = who.found.arrivals.first[who.found.matching.instance[row]]
    return int(job.table.start[row] + shift[job.table.member[row]] - first)


def _before(summary: RankSummary, cell: np.void) -> Before | None:
    if cell["window"] == ABSENT:
        return None

    def named(codes: str, times: str) -> list[NamedTime]:
        pairs = zip(cell[codes].tolist(), cell[times].tolist(), strict=True)
        return [NamedTime(summary.names[code], time) for code, time in pairs if code >= 0]

    categories = [NamedTime(*pair) for pair in zip(CATEGORIES, cell["categories"].tolist(), strict=True)]
    return Before(int(cell["window"]), categories, named("host", "host_ns"), named("kernels", "kernel_ns"))


PARTS = (
    RunView(
        "distributed/collectives", "Collectives", CollectivesParams, Collectives, build_collectives, RANK_SUMMARIES
    ),
    RunView(
        "distributed/collective", "One collective", CollectiveParams, Collective, build_collective, RANK_SUMMARIES
    ),
    distributed_connections.CONNECTIONS,
)
