"""Communication operations for the distributed view: by worker, by process group, and where ranks disagree."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.job import group_ranks
from torch_tb_profiler.analyses.distributed.matching import METHODS, Difference
from torch_tb_profiler.analyses.distributed.waiting import Bandwidth, bandwidths
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.model.communication.collectives import Timing
from torch_tb_profiler.model.communication.names import DEVICE_BACKENDS
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int64
from torch_tb_profiler.views.distributed.payload import (
    AverageWaiting,
    CollectiveRow,
    Differing,
    Group,
    Mismatch,
    Operation,
    Waiting,
)
from torch_tb_profiler.views.distributed.ranks import Party

MOST_MISMATCHES = 100


def known(value: int) -> int | None:
    """None for ABSENT."""
    return None if value == ABSENT else int(value)


def number(value: float) -> float | None:
    """None for what is no number."""
    return float(value) if np.isfinite(value) else None


def full_name(who: Party, row: int) -> str:
    """`nccl:all_reduce` of an operation of the job's table."""
    table, names = who.found.job.table, who.found.job.names
    collective = names[table.collective[row]]
    return f"{names[table.backend[row]]}:{collective}" if table.backend[row] >= 0 else collective


# ---- waiting by step ------------------------------------------------------------------------------------


def waiting(who: Party) -> list[Waiting]:
    """Transfer and synchronising of every rank in every step, and outside of the steps where there is some."""
    job = who.found.job
    rows = []
    width = len(job.steps) + 1
    owner = job.table.member.astype(np.int64) * width + np.where(job.table.step >= 0, job.table.step, width - 1)
    transfer, waits = who.found.split.sums(job, owner, len(job.sources) * width)
    compared = np.bincount(owner[who.found.split.compared], minlength=len(transfer)) > 0
    codes = {name: code for code, name in enumerate(job.steps)}
    for position, source in enumerate(job.sources):
        names: list[str | None] = [*dict.fromkeys(step.name for step in source.summary.steps)]
        outside = position * width + width - 1
        for name in [*names, *([None] if compared[outside] else [])]:
            cell = outside if name is None else position * width + codes[name]
            told = bool(compared[cell])
            rows.append(
                Waiting(
                    source.worker,
                    source.rank,
                    name,
                    int(transfer[cell]) if told else None,
                    int(waits[cell]) if told else None,
                )
            )
    return rows


def average_waiting(who: Party, rows: list[Waiting]) -> list[AverageWaiting]:
    """Means over the complete steps."""
    by_worker: dict[str, list[Waiting]] = {}
    for row in rows:
        by_worker.setdefault(row.worker, []).append(row)
    found = []
    for source in who.sources:
        complete = {step.name for step in source.summary.steps if step.complete}
        own = [row for row in by_worker.get(source.worker, []) if row.step in complete]
        transfers = [row.transfer_ns for row in own if row.transfer_ns is not None]
        waits = [row.synchronizing_ns for row in own if row.synchronizing_ns is not None]
        mean = (float(np.mean(transfers)), float(np.mean(waits))) if transfers else (None, None)
        found.append(AverageWaiting(source.worker, source.rank, *mean))
    return found


# ---- by worker and name ---------------------------------------------------------------------------------


class Sums(msgspec.Struct, frozen=True):
    """Operations by some key. Columns by key: `example` a row of the job's table that stands for it.

    latency, exposed  int64 ns; ABSENT without any time; transfer, waiting: ABSENT if none was compared
    """

    example: Int64
    calls: Int64
    bytes_in: Int64
    bytes_out: Int64
    message: Int64
    latency: Int64
    exposed: Int64
    transfer: Int64
    waiting: Int64
    bandwidth: Bandwidth


def by_worker(who: Party) -> Sums:
    """Operations of one worker that share group, collective and back end."""
    job, table = who.found.job, who.found.job.table
    rows = group(table.member, table.group, table.collective, table.backend)
    owner, count = rows.which, len(rows)
    transfer, waits = who.found.split.sums(job, owner, count)
    compared = np.bincount(owner[who.found.split.compared], minlength=count) > 0
    latency, exposed = _times(who, rows.first)
    return Sums(
        example=rows.first,
        calls=rows.counts,
        bytes_in=_known_sums(owner, table.bytes_in, count),
        bytes_out=_known_sums(owner, table.bytes_out, count),
        message=_known_sums(owner, table.message, count),
        latency=latency,
        exposed=exposed,
        transfer=np.where(compared, transfer, ABSENT),
        waiting=np.where(compared, waits, ABSENT),
        bandwidth=bandwidths(job, who.found.split, owner, count),
    )


def _known_sums(owner: Int64, values: Int64, count: int) -> Int64:
    told = values != ABSENT
    sums = np.zeros(count, np.int64)
    np.add.at(sums, owner[told], values[told])
    return np.where(np.bincount(owner[told], minlength=count) > 0, sums, ABSENT)


def _times(who: Party, example: Int64) -> tuple[Int64, Int64]:
    """(latency, exposed) of each key, as its rank summed them; ABSENT if none of its operations has a time."""
    table = who.found.job.table
    found = np.full((2, len(example)), ABSENT)
    cells = {}
    for position, source in enumerate(who.sources):
        for total in source.summary.totals:
            cells[position, total.group, total.collective, total.backend] = total
    for i, row in enumerate(example.tolist()):
        position = int(table.member[row])
        own = who.sources[position].summary.table()[table.row[row]]
        total = cells[position, int(own["group"]), int(own["collective"]), int(own["backend"])]
        if own["timing"] != Timing.NONE or total.latency:
            found[0, i], found[1, i] = total.latency, total.exposed
    return found[0], found[1]


def collective_rows(who: Party, sums: Sums) -> list[CollectiveRow]:
    """A row per worker, group and name, in order of rank."""
    job, table = who.found.job, who.found.job.table
    rows = []
    for i, example in enumerate(sums.example.tolist()):
        source = who.sources[table.member[example]]
        backend = job.names[table.backend[example]] if table.backend[example] != NO_CODE else None
        timing = Timing(int(table.timing[example]))
        launches = timing is not Timing.DEVICE and backend in DEVICE_BACKENDS
        rows.append(
            CollectiveRow(
                worker=source.worker,
                rank=source.rank,
                group=int(table.group[example]),
                name=full_name(who, example),
                collective=job.names[table.collective[example]],
                backend=backend,
                calls=int(sums.calls[i]),
                bytes=known(sums.bytes_in[i]),
                out_bytes=known(sums.bytes_out[i]),
                message_bytes=known(sums.message[i]),
                latency_ns=known(sums.latency[i]),
                transfer_ns=known(sums.transfer[i]),
                synchronizing_ns=known(sums.waiting[i]),
                exposed_ns=known(sums.exposed[i]),
                algorithm_bandwidth=None if launches else number(sums.bandwidth.algorithm[i]),
                bus_bandwidth=None if launches else number(sums.bandwidth.bus[i]),
                lower_bound=bool(sums.bandwidth.lower_bound[i]),
                timing=timing.name.lower(),
            )
        )
    return rows


# ---- by group -------------------------------------------------------------------------------------------


def groups(who: Party, sums: Sums) -> list[Group]:
    """Every process group with its operations summed over the ranks."""
    job, table, matching = who.found.job, who.found.job.table, who.found.matching
    wrong = np.zeros(len(matching), np.bool_)
    wrong[[difference.instance for difference in matching.differences]] = True
    operations = _operations(who, sums)
    present = {source.rank for source in who.sources}
    rows = []
    for code, described in enumerate(job.groups):
        mine = table.group == code
        instances = np.unique(matching.instance[mine])
        shared = instances[matching.sizes[instances] > 1]
        methods = np.bincount(matching.method[shared], minlength=len(METHODS))
        members = np.unique(table.member[mine]).tolist()
        ranks = group_ranks(described)
        backends = np.unique(table.backend[mine]).tolist()
        rows.append(
            Group(
                id=code,
                name=described.name,
                description=described.description,
                ranks=ranks,
                size=described.size,
                assumed=described.assumed,
                backends=[job.names[each] for each in backends if each != NO_CODE],
                matched_by=METHODS[int(methods.argmax())] if methods.any() else None,
                workers=[who.sources[each].worker for each in members],
                absent_ranks=[each for each in ranks or () if each not in present] if None not in present else [],
                operations=operations.get(code, []),
                mismatches=int(wrong[instances].sum()),
            )
        )
    return rows


def _operations(who: Party, sums: Sums) -> dict[int, list[Operation]]:
    """Group -> its operations by name, most latency first."""
    job, table, matching = who.found.job, who.found.job.table, who.found.matching
    names = group(table.group, table.collective, table.backend)
    owner, count = names.which, len(names)
    speed = bandwidths(job, who.found.split, owner, count)
    of_instance = np.empty(len(matching), np.int64)
    of_instance[matching.instance[::-1]] = owner[::-1]
    compared = np.zeros(len(matching), np.bool_)
    compared[matching.instance[matching.compared]] = True
    skew = who.found.arrivals.skew
    found: dict[int, list[Operation]] = {}
    part = owner[sums.example]
    for i, row in enumerate(names.first.tolist()):
        own, mine = np.flatnonzero(part == i), of_instance == i
        skews = skew[mine & (skew != ABSENT)]
        operation = Operation(
            name=full_name(who, row),
            collective=job.names[table.collective[row]],
            operations=int(mine.sum()),
            compared=int((mine & compared).sum()),
            calls=int(sums.calls[own].sum()),
            bytes=_total(sums.bytes_in[own]),
            message_bytes=_total(sums.message[own]),
            latency_ns=_total(sums.latency[own]),
            transfer_ns=_total(sums.transfer[own]),
            synchronizing_ns=_total(sums.waiting[own]),
            exposed_ns=_total(sums.exposed[own]),
            mean_skew_ns=float(skews.mean()) if len(skews) else None,
            max_skew_ns=int(skews.max()) if len(skews) else None,
            algorithm_bandwidth=number(speed.algorithm[i]),
            bus_bandwidth=number(speed.bus[i]),
            lower_bound=bool(speed.lower_bound[i]),
        )
        found.setdefault(int(table.group[row]), []).append(operation)
    for listed in found.values():
        listed.sort(key=lambda each: (-(each.latency_ns or 0), each.name))
    return found


def _total(values: Int64) -> int | None:
    told = values[values != ABSENT]
    return int(told.sum()) if len(told) else None


# ---- disagreements --------------------------------------------------------------------------------------

_WORDS = {
    "name": "ranks run different collectives in one place",
    "size": "ranks move different amounts",
    "dtype": "ranks use different types",
    "missing": "a rank has not recorded it, though it has earlier and later ones",
}


def mismatches(who: Party) -> list[Mismatch]:
    """The first disagreements between ranks."""
    return [_mismatch(who, difference) for difference in who.found.matching.differences[:MOST_MISMATCHES]]


def _mismatch(who: Party, difference: Difference) -> Mismatch:
    table = who.found.job.table
    row = int(np.flatnonzero(who.found.matching.instance == difference.instance)[0])
    step = int(table.step[row])
    values = [
        Differing(value, [who.sources[member].worker for member in members])
        for value, members in difference.values.items()
    ]
    told = ", ".join(value.value for value in values)
    return Mismatch(
        group=int(table.group[row]),
        collective=difference.instance,
        step=who.found.job.steps[step] if step >= 0 else None,
        what=difference.what,
        values=values,
        text=f"{full_name(who, row)}: {_WORDS[difference.what]} ({told})",
    )
