"""Rules about rows of tables: who, why and how much a row says, against the truth of one rank or of the job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.random_jobs.plan import SHARED_LOADER
from tests.support.random_jobs.rules import Context, simulated_name

Row = tuple[str, str, str | None]
"""Table, the row in words, and why it is false (None if it isn't)."""


def judge_rank_rows(idle: Any, path: Any, overview: Any, context: Context) -> Iterator[Row]:
    """Yield the rows of Idle time, Critical path and Overview of one rank."""
    if idle is not None:
        yield from _idle_rows(idle, context.on_device(0))
    yield from _path_rows(path, context)
    yield from _category_rows(overview, context)


def _idle_rows(idle: Any, context: Context) -> Iterator[Row]:
    truth, steps = context.truth, max(idle.counted, 1)
    whole = context.typical - truth.busy(context.rank, context.odd)
    said = sum(row.time_ns for row in idle.causes) / steps / 1e3
    yield "idle causes", f"all: {said:.0f} µs", context.close(said, whole, "the idle time")
    loading = sum(row.time_ns for row in idle.sums if row.cause == "data_loading") / steps / 1e3
    true = truth.idle_while(context.rank, ("load",), context.odd)
    yield "idle causes", f"data loading: {loading:.0f} µs", context.close(loading, true, "idle for data")
    for row in idle.causes:
        name = simulated_name(row.subject or "")
        if row.cause in ("operator", "python") and name is not None and not name.startswith("aten::"):
            most = truth.host_time(context.rank, name, context.odd)
            time = row.time_ns / steps / 1e3
            yield "idle causes", f"{name}: {time:.0f} µs", context.at_least(time, most, f"the time of {name}")
        if row.gain_ns is not None:
            most = row.time_ns / steps + 1
            yield (
                "idle causes",
                f"{row.subject} saves",
                None if row.gain_ns <= most else "it saves more than it idles",
            )
    if idle.communication is not None and not context.plan.missing:
        parts = idle.communication
        for said_ns, time, what in (
            (parts.waiting_ns, truth.waiting, "the waiting"),
            (parts.transfer_ns, truth.transfer, "the transfer"),
        ):
            true = time(context.rank, context.odd)
            yield "idle communication", f"{what}: {said_ns / 1e3:.0f} µs", context.close(said_ns / 1e3, true, what)


def _path_rows(path: Any, context: Context) -> Iterator[Row]:
    """Yield the what-if targets that the simulation knows by name: their time, and what is saved without them."""
    truth = context.truth
    now = path.path.duration_ns
    yield "path", f"a step: {now / 1e3:.0f} µs", context.close(now / 1e3, context.typical, "the step")
    for row in path.targets:
        kind, _, name = row.target.partition(":")
        if kind not in ("operator", "data_loading") or row.step_ns is None:
            continue
        known = SHARED_LOADER if kind == "data_loading" else simulated_name(name)
        if known is None or not (time := truth.host_time(context.rank, known, context.odd)):
            continue
        said = row.path_ns / 1e3
        yield "targets", f"{known}: {said:.0f} µs", context.at_least(said, time, f"the time of {known}")
        saved = (now - row.step_ns[-1]) / 1e3
        true = truth.saved_alone(context.rank, known, context.odd)
        check = context.at_most if path.path.saves_at_most else context.close
        yield "targets", f"without {known}: {saved:.0f} µs less", check(saved, min(true, time), "what it saves")


def _category_rows(overview: Any, context: Context) -> Iterator[Row]:
    """Yield the categories of the average step, which sum to it."""
    categories = {
        name: getattr(overview.average.categories, name) for name in overview.average.categories.__struct_fields__
    }
    whole = sum(time or 0.0 for time in categories.values()) / 1e3
    yield "categories", f"all: {whole:.0f} µs", context.close(whole, context.typical, "the step")
    truth = context.truth
    for name, time in (("kernel", truth.computation), ("communication", truth.exposed)):
        said, true = (categories[name] or 0.0) / 1e3, time(context.rank, context.odd)
        yield "categories", f"{name}: {said:.0f} µs", context.close(said, true, name)


def judge_job_rows(job: Any, contexts: Mapping[int, Context]) -> Iterator[Row]:
    """Yield the rows of Distributed: the times of each rank, and what it costs the others."""
    for row in job.averages:
        context = contexts[row.rank]
        truth = context.truth
        computes = truth.computation if context.plan.kind != "cpu" else truth.in_operators
        for said, time, what in (
            (row.duration_ns, truth.typical, "the step"),
            (row.computation_ns + row.overlap_ns, computes, "computation"),
            (row.exposed_ns, truth.exposed, "exposed communication"),
        ):
            true = time(row.rank, context.odd)
            yield (
                "averages",
                f"rank {row.rank}, {what}: {said / 1e3:.0f} µs",
                context.close(said / 1e3, true, what),
            )
    for row in job.stragglers:
        context = contexts[row.rank]
        said = row.cost_ns / 1e3
        most = context.truth.cause_cost if row.rank in {each.rank for each in context.plan.causes} else 0.0
        # What ranks vary by, with more than one late at a time, costs a few percent of a step.
        slack = 0.05 * context.truth.step
        if row.cost_is_limit:
            yield (
                "stragglers",
                f"rank {row.rank} costs up to {said:.0f} µs",
                context.at_most(said, context.truth.cost_of({row.rank}, context.plan.missing), "the cost"),
            )
            continue
        wrong = said > 1.1 * most + slack and not job.verdict.kind == "unknown" and not context.plan.missing
        yield "stragglers", f"rank {row.rank} costs {said:.0f} µs", f"it costs {most:.0f} µs" if wrong else None
