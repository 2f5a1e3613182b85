"""Who keeps the others waiting, in numbers and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from torch_tb_profiler.analyses.distributed import stragglers as late
from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES
from torch_tb_profiler.base.units import format_duration, format_ratio
from torch_tb_profiler.model.trace import ABSENT
from torch_tb_profiler.views.distributed.operations import Sums, full_name
from torch_tb_profiler.views.distributed.payload import HeatMap, Meanwhile, Share, Straggler, Verdict
from torch_tb_profiler.views.distributed.ranks import Party, join_ranks

WORTH_NAMING = 0.02
"""A delay of less than this share of a step is not worth a name."""

MOST_OF_IT = 0.7
"""The ranks that cause this share of all delay are the stragglers, if they are few."""

FEW = 0.25
"""They are few if they are at most this share of the ranks (or one)."""

EXPLAINED = 3
"""Of so many ranks it is told what they did meanwhile."""


def stragglers(who: Party) -> list[Straggler]:
    """Every rank, most delay first; empty if no arrivals can be compared."""
    if not (who.found.arrivals.last >= 0).any():
        return []
    found = late.stragglers(who.found.job, who.found.matching, who.found.arrivals, who.found.split)
    return [
        Straggler(
            worker=who.sources[row.member].worker,
            rank=who.sources[row.member].rank,
            collectives=row.collectives,
            last=row.last,
            last_ratio=row.last / row.collectives if row.collectives else None,
            delay_ns=row.delay,
            delay_per_step_ns=row.delay / max(len(who.sources[row.member].summary.steps), 1),
            waited_ns=row.waited,
        )
        for row in found
    ]


def heat_map(who: Party) -> HeatMap | None:
    """None if no arrivals can be compared."""
    if not (who.found.arrivals.late != ABSENT).any():
        return None
    cells = late.lateness_by_step(who.found.job, who.found.arrivals)
    shown = np.flatnonzero((cells != ABSENT).any(axis=0))
    return HeatMap(
        workers=[source.worker for source in who.sources],
        steps=[who.found.job.steps[code] for code in shown.tolist()],
        late_ns=[[None if cell == ABSENT else cell for cell in row] for row in cells[:, shown].tolist()],
    )


def meanwhile(who: Party, rows: Sequence[Straggler]) -> list[Meanwhile]:
    """What the ranks with most delay did before the collectives where they came last."""
    found = []
    for row in rows[:EXPLAINED]:
        if row.delay_ns > 0:
            sums = late.meanwhile(who.found.job, who.found.matching, who.found.arrivals, who.position[row.worker])
            if sums.collectives:
                found.append(_meanwhile(row, sums))
    return found


def _meanwhile(row: Straggler, sums: late.Meanwhile) -> Meanwhile:
    return Meanwhile(
        worker=row.worker,
        rank=row.rank,
        collectives=sums.collectives,
        steps=sums.steps,
        window_ns=sums.window,
        median_window_ns=sums.median_window,
        categories=[Share(name, *pair) for name, pair in zip(CATEGORIES, sums.categories, strict=True)],
        host=_shares(sums.host),
        kernels=_shares(sums.kernels),
    )


def _shares(times: Mapping[str, tuple[int, int | None]]) -> list[Share]:
    return sorted((Share(name, *pair) for name, pair in times.items()), key=lambda share: -_excess(share))


def _excess(share: Share) -> int:
    return share.late_ns - (share.median_ns or 0)


# ---- in words -------------------------------------------------------------------------------------------


def verdict(who: Party, rows: Sequence[Straggler], sums: Sums) -> Verdict:
    """The answer in a few sentences."""
    if len(who.sources) == 1:
        name = join_ranks(who.sources)
        return Verdict(
            "unknown", f"{name} is alone here: who waits for whom takes the others' traces.", None, None
        )
    if not who.found.matching.compared.any():
        text = "No collective of one rank could be matched with another's, so nothing tells who waits for whom."
        return Verdict("unknown", text, None, None)
    if not (who.found.arrivals.skew != ABSENT).any():
        return Verdict("unknown", "The clocks of the ranks cannot be compared.", None, None)
    culprits = _culprits(who, rows)
    if not culprits:
        return Verdict("balanced", _join(_balance(who, rows), _communicating(who, sums, ())), None, None)
    first = culprits[0]
    text = _join(_blame(who, culprits), _communicating(who, sums, culprits), _doing(who, culprits, rows))
    return Verdict("straggler", text, first.worker, first.rank)


def _culprits(who: Party, rows: Sequence[Straggler]) -> list[Straggler]:
    """The few ranks that cause most of the delay, if it is worth naming."""
    delays = np.array([row.delay_ns for row in rows], np.int64)
    if delays.sum() == 0:
        return []
    count = int(np.searchsorted(np.cumsum(delays), MOST_OF_IT * delays.sum())) + 1
    step = np.mean([step.duration for source in who.sources for step in source.summary.steps])
    worth = rows[0].delay_per_step_ns >= WORTH_NAMING * step
    return list(rows[:count]) if worth and count <= max(1, FEW * len(rows)) else []


def _join(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


def _per_step(who: Party) -> str:
    recorded = all(source.summary.recorded_steps for source in who.sources)
    return "per step" if recorded else "in the recording"


def _named(who: Party, rows: Sequence[Straggler]) -> str:
    return join_ranks([who.sources[i] for i in sorted(who.position[row.worker] for row in rows)])


def _balance(who: Party, rows: Sequence[Straggler]) -> str:
    if not rows:
        return "The ranks arrive at their collectives within the error of their clocks."
    first = rows[0]
    name, cost = _named(who, [first]), format_duration(first.delay_per_step_ns)
    return (
        f"No rank stands out. {name} causes most delay: it arrives last in {first.last} of "
        f"{first.collectives} collectives, which costs {cost} {_per_step(who)}."
    )


def _blame(who: Party, culprits: Sequence[Straggler]) -> str:
    names, others = _named(who, culprits), "the other" if len(who.sources) == 2 else "the others"
    if len(culprits) > 1:
        cost = format_duration(sum(row.delay_per_step_ns for row in culprits))
        return f"{names} keep {others} waiting, {cost} {_per_step(who)} in all."
    first = culprits[0]
    return (
        f"{names} keeps {others} waiting: it arrives last in {first.last} of {first.collectives} collectives, "
        f"which costs {format_duration(first.delay_per_step_ns)} {_per_step(who)}."
    )


def _communicating(who: Party, sums: Sums, culprits: Sequence[Straggler]) -> str:
    """How much of a step the (other) ranks communicate without computing, and in which collective.

    Without a GPU computation is the host's, which goes on while other threads communicate: there all counts.
    """
    blamed = {row.worker for row in culprits}
    others = [source for source in who.sources if source.worker not in blamed]
    on_device = all(source.summary.by_kernels for source in others)
    shares = [
        float(
            np.mean([(step.communication + (0 if on_device else step.overlap)) / step.duration for step in steps])
        )
        for steps in ([step for step in each.summary.steps if step.complete and step.duration] for each in others)
        if steps
    ]
    if not shares:
        return ""
    what = "exposed communication" if on_device else "communication"
    names = join_ranks(others) if len(others) <= 5 else f"The {'other ' if blamed else ''}{len(others)} ranks"
    spend = "spends" if len(others) == 1 else "spend"
    step = "each step" if _per_step(who) == "per step" else "the recording"
    text = f"{names} {spend} {format_ratio(float(np.mean(shares)))} of {step} in {what}"
    times = _times_by_name(who, sums, {source.worker for source in others}, on_device)
    most = max(times, key=lambda name: times[name], default=None)
    return f"{text}, most of it in {most}." if len(times) > 1 else f"{text} ({most})." if most else f"{text}."


def _times_by_name(who: Party, sums: Sums, workers: set[str], exposed: bool) -> dict[str, int]:
    """Collective -> ns of these workers."""
    times: dict[str, int] = {}
    column = sums.exposed if exposed else sums.latency
    for row, time in zip(sums.example.tolist(), column.tolist(), strict=True):
        if time != ABSENT and who.sources[who.found.job.table.member[row]].worker in workers:
            name = full_name(who, row)
            times[name] = times.get(name, 0) + time
    return times


def _doing(who: Party, culprits: Sequence[Straggler], rows: Sequence[Straggler]) -> str:
    """What the (first) late rank did that the median rank did not."""
    row = culprits[0]
    found = next((each for each in meanwhile(who, rows) if each.worker == row.worker), None)
    if found is None or found.window_ns <= found.median_window_ns:
        return ""
    more = found.window_ns - found.median_window_ns
    steps = max(found.steps, 1)
    kernel = next(share for share in found.categories if share.name == "kernel")
    where, shares = ("host", found.host) if _excess(kernel) < more / 2 else ("device", found.kernels)
    other = "the other" if len(who.sources) == 2 else "the median rank"
    it, its = ("it", "its") if len(culprits) == 1 else (each.format(_named(who, [row])) for each in ("{}", "{}'s"))
    if shares and _excess(shares[0]) >= more / 5:
        best = shares[0]
        median = "less" if best.median_ns is None else format_duration(best.median_ns / steps)
        time = format_duration(best.late_ns / steps)
        return f"Meanwhile {its} {where} is in `{best.name}` for {time} {_per_step(who)}, {other}'s for {median}."
    most = max(found.categories, key=_excess)
    times = [format_duration((ns or 0) / steps) for ns in (most.late_ns, most.median_ns)]
    return f"Meanwhile {it} spends {times[0]} {_per_step(who)} {_CATEGORY_WORDS[most.name]}, {other} {times[1]}."


_CATEGORY_WORDS = {
    "kernel": "in kernels",
    "memcpy": "copying memory",
    "memset": "filling memory",
    "communication": "in other communication",
    "runtime": "in calls of the runtime",
    "dataloader": "waiting for data",
    "cpu_exec": "in operators on the host",
    "other": "in what the profiler does not show",
}
