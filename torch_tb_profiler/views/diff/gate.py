"""A gate over a diff: does the candidate provably stay within a threshold and its budgets?"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from torch_tb_profiler.analyses.diff.changes import Change
from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.units import format_bytes, format_duration, format_ratio
from torch_tb_profiler.views._shared.text import plain, text
from torch_tb_profiler.views.diff.budget import Budget
from torch_tb_profiler.views.diff.payload import DiffOperator, DiffPayload
from torch_tb_profiler.views.diff.verdicts import signed_duration


class Check(msgspec.Struct, frozen=True):
    """One question of the gate. passed: None where the recordings cannot tell."""

    name: str
    passed: bool | None
    message: str


def checks(diff: DiffPayload, fail_over: float | None, budget: Budget | None, strict: bool = False) -> list[Check]:
    """All checks; `fail_over` is a share of the base's step. `strict`: what cannot be told has failed.

    TraceError if a budget cannot be checked.
    """
    regressions = [] if fail_over is None else list(_regressions(diff, fail_over))
    if strict:
        regressions = [replace(check, passed=bool(check.passed)) for check in regressions]
    return regressions if budget is None else [*regressions, *_budgets(diff, budget)]


def _regressions(diff: DiffPayload, fail_over: float) -> Iterator[Check]:
    """Significant slowdowns of the step or of an operator that cost more than a share of the base's step."""
    most = fail_over * (diff.step.base_ns or 0)
    words = f"{describe(diff.step)}; allowed {format_ratio(fail_over)}"
    passed = _passed(diff, most)
    yield Check("step time", passed, words if passed is not None else f"{words}; {_doubt(diff)}")
    for row in diff.level.operators:
        for name in ("host_self", "device_self"):
            change = getattr(row, name)
            if _exceeds(change, most):
                words = f"{describe(change)} per step; allowed {format_ratio(fail_over)} of the step"
                yield Check(f"{row.name} {_spelled(name)}", False, words)


def _passed(diff: DiffPayload, most: float) -> bool | None:
    """False: the step is proven to be slower, and by more than `most`; None: it may be."""
    step = diff.step
    if step.verdict not in ("cannot_tell", "unknown"):
        return not _exceeds(step, most)
    within = step.high_ns is not None and step.high_ns <= most and not _is_one_run(diff)
    return True if within else None


def _is_one_run(diff: DiffPayload) -> bool:
    """Two recordings of one program, which tell nothing of another one."""
    return diff.one_run and max(len(diff.base.recordings), len(diff.candidate.recordings)) < 2


def _doubt(diff: DiffPayload) -> str:
    if diff.step.low_ns is None:
        return "with fewer than two steps on a side this may be chance"
    if _is_one_run(diff):
        return "both are recordings of one run; several of each would tell"
    return f"95% interval {signed_duration(diff.step.low_ns)} to {signed_duration(diff.step.high_ns)}"


def _exceeds(change: Change, most: float) -> bool:
    """By the change of a typical step, the middle of the interval."""
    return change.verdict == "slower" and ((change.low_ns or 0) + (change.high_ns or 0)) / 2 > most


def _budgets(diff: DiffPayload, budget: Budget) -> Iterator[Check]:
    if budget.step_time is not None:
        yield _time("budget: step time", diff.step.candidate_ns, budget.step_time, diff, "step")
    if budget.exposed_communication is not None:
        exposed = diff.communication.exposed.candidate_ns
        yield _time("budget: exposed communication", exposed, budget.exposed_communication, diff, "communication")
    if budget.peak_memory is not None:
        peak = _peak(diff)
        if peak is None:
            raise TraceError(f"the budget of peak memory cannot be checked: {_why(diff, 'memory')}")
        words = f"{format_bytes(peak)}; allowed {format_bytes(budget.peak_memory)}"
        yield Check("budget: peak memory", peak <= budget.peak_memory, words)
    rows = {row.candidate_name or row.name: row for row in diff.level.operators}
    for name, limits in (budget.operators or {}).items():
        for key, limit in limits.items():
            time = key or _default_time(rows.get(name))
            value = getattr(rows[name], time).candidate_ns if name in rows else 0.0
            reason = time.partition("_")[0]
            yield _time(f"budget: {name} {_spelled(time)}", value, limit, diff, reason)


def _default_time(row: DiffOperator | None) -> str:
    """Device time for an operator that launches work, else host time."""
    return "device_total" if row is not None and row.device_total.candidate_ns else "host_total"


def _why(diff: DiffPayload, field: str) -> str:
    return plain(diff.reasons.get(field, text("the trace does not record it")))


def _time(name: str, value: float | None, limit: int, diff: DiffPayload, reason: str) -> Check:
    if value is None:
        raise TraceError(f"{name} cannot be checked: {_why(diff, reason)}")
    return Check(name, value <= limit, f"{format_duration(value)} per step; allowed {format_duration(limit)}")


def _peak(diff: DiffPayload) -> int | None:
    """The highest peak among accelerators; of the host where there is none."""
    peaks = {row.device: row.peak_allocated.candidate_bytes for row in diff.memory}
    known = {device: peak for device, peak in peaks.items() if peak is not None}
    return max((peak for device, peak in known.items() if device != "CPU"), default=known.get("CPU"))


def _spelled(name: str) -> str:
    return name.replace("_", " ")


def describe(change: Change) -> str:
    """100 ms -> 105 ms (+5%)."""
    ratio = change.delta_ratio
    relative = "" if ratio is None else f" ({'+' if ratio > 0 else ''}{format_ratio(ratio)})"
    return f"{format_duration(change.base_ns)} -> {format_duration(change.candidate_ns)}{relative}"
