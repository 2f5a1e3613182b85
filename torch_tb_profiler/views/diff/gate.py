"""A gate over a diff: does the candidate stay within a threshold and its budgets?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from torch_tb_profiler.base.errors import TraceError, UsageError
from torch_tb_profiler.base.units import format_bytes, format_duration, format_ratio, parse_bytes, parse_duration
from torch_tb_profiler.views.diff.payload import Change, DiffOperator, DiffPayload

TIMES = ("host_self", "host_total", "device_self", "device_total")


class Check(msgspec.Struct, frozen=True):
    """One question of the gate. passed: None where it cannot be told (too few steps)."""

    name: str
    passed: bool | None
    message: str


class Budget(msgspec.Struct, frozen=True):
    """Limits of the candidate: ns, bytes; of an operator by one of TIMES, "" for the one that counts."""

    step_time: int | None = None
    peak_memory: int | None = None
    exposed_communication: int | None = None
    operators: Mapping[str, Mapping[str, int]] | None = None


def parse_budget(text: str) -> Budget:
    """A budget file; UsageError says what is wrong with it."""
    try:
        given = json.loads(text)
    except ValueError as error:
        raise UsageError(f"the budget is no JSON: {error}") from error
    if not isinstance(given, dict):
        raise UsageError("the budget must be a JSON object", hint='such as {"step_time": "120 ms"}')
    known = ("step_time", "peak_memory", "exposed_communication", "operators")
    wrong = [key for key in given if key not in known]
    if wrong:
        raise UsageError(f"the budget has an unknown key {wrong[0]!r}", hint=f"keys: {', '.join(known)}")
    operators = given.get("operators", {})
    if not isinstance(operators, dict):
        raise UsageError("`operators` of the budget must be an object of names and limits")
    return Budget(
        step_time=_limit(given, "step_time"),
        peak_memory=_limit(given, "peak_memory"),
        exposed_communication=_limit(given, "exposed_communication"),
        operators={name: _operator_limits(name, limits) for name, limits in operators.items()},
    )


def _operator_limits(name: str, limits: Any) -> dict[str, int]:
    if not isinstance(limits, dict):
        limits = {"": limits}
    wrong = [key for key in limits if key not in ("", *TIMES)]
    if wrong:
        raise UsageError(f"the budget of {name} has an unknown key {wrong[0]!r}", hint=f"keys: {', '.join(TIMES)}")
    return {key: limit for key in limits if (limit := _limit(limits, key)) is not None}


def _limit(given: Mapping[str, Any], key: str) -> int | None:
    """A limit as a number of ns or bytes, or as text with a unit."""
    value = given.get(key)
    if isinstance(value, str):
        return parse_bytes(value) if key == "peak_memory" else parse_duration(value)
    if isinstance(value, bool) or not (value is None or isinstance(value, (int, float))):
        raise UsageError(f"the limit {key!r} of the budget is neither a number nor a text with a unit")
    return None if value is None else int(value)


def checks(found: DiffPayload, fail_over: float | None, budget: Budget | None) -> list[Check]:
    """All questions; `fail_over` is a part of the base's step. TraceError if a budget cannot be looked at."""
    asked = [] if fail_over is None else list(_regressions(found, fail_over))
    return asked if budget is None else asked + list(_budgets(found, budget))


def _regressions(found: DiffPayload, fail_over: float) -> Iterator[Check]:
    """Real slowdowns, of the step or in one operator, that cost more than a part of the base's step."""
    most = fail_over * (found.step.base_ns or 0)
    words = f"{describe(found.step)}; allowed {format_ratio(fail_over)}"
    if found.step.verdict == "unknown":
        yield Check("step time", None, f"{words}; with one step it cannot be told from chance")
    else:
        yield Check("step time", not _passes(found.step, most), words)
    for row in found.level.operators:
        for name in ("host_self", "device_self"):
            change = getattr(row, name)
            if _passes(change, most):
                words = f"{describe(change)} per step; allowed {format_ratio(fail_over)} of the step"
                yield Check(f"{row.name} {_spelled(name)}", False, words)


def _passes(change: Change, most: float) -> bool:
    return change.verdict == "slower" and (change.delta_ns or 0) > most


def _budgets(found: DiffPayload, budget: Budget) -> Iterator[Check]:
    if budget.step_time is not None:
        yield _time("budget: step time", found.step.candidate_ns, budget.step_time, found, "step")
    if budget.exposed_communication is not None:
        exposed = found.communication.exposed.candidate_ns
        yield _time("budget: exposed communication", exposed, budget.exposed_communication, found, "communication")
    if budget.peak_memory is not None:
        peak = _peak(found)
        if peak is None:
            reason = found.reasons.get("memory", "the trace does not say")
            raise TraceError(f"the budget of peak memory cannot be looked at: {reason}")
        words = f"{format_bytes(peak)}; allowed {format_bytes(budget.peak_memory)}"
        yield Check("budget: peak memory", peak <= budget.peak_memory, words)
    rows = {row.candidate_name or row.name: row for row in found.level.operators}
    for name, limits in (budget.operators or {}).items():
        for key, limit in limits.items():
            time = key or _counting(rows.get(name))
            value = getattr(rows[name], time).candidate_ns if name in rows else 0.0
            reason = time.partition("_")[0]
            yield _time(f"budget: {name} {_spelled(time)}", value, limit, found, reason)


def _counting(row: DiffOperator | None) -> str:
    """Device time of an operator that launches work, else host time."""
    return "device_total" if row is not None and row.device_total.candidate_ns else "host_total"


def _time(name: str, value: float | None, limit: int, found: DiffPayload, reason: str) -> Check:
    if value is None:
        raise TraceError(f"{name} cannot be looked at: {found.reasons.get(reason, 'the trace does not say')}")
    return Check(name, value <= limit, f"{format_duration(value)} per step; allowed {format_duration(limit)}")


def _peak(found: DiffPayload) -> int | None:
    """The highest peak of an accelerator, of the host where there is none."""
    peaks = {row.device: row.peak_allocated.candidate_bytes for row in found.memory}
    known = {device: peak for device, peak in peaks.items() if peak is not None}
    return max((peak for device, peak in known.items() if device != "CPU"), default=known.get("CPU"))


def _spelled(name: str) -> str:
    return name.replace("_", " ")


def describe(change: Change) -> str:
    """100 ms -> 105 ms (+5 %)."""
    ratio = change.delta_ratio
    relative = "" if ratio is None else f" ({'+' if ratio > 0 else ''}{format_ratio(ratio)})"
    return f"{format_duration(change.base_ns)} -> {format_duration(change.candidate_ns)}{relative}"
