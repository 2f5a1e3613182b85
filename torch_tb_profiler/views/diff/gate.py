"""A gate over a diff: does the candidate provably stay within a threshold and its budget?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from torch_tb_profiler.analyses.diff.changes import Change
from torch_tb_profiler.base.errors import TraceError, UsageError
from torch_tb_profiler.base.format import (
    format_bytes,
    format_duration,
    format_durations,
    format_ratio,
    parse_bytes,
    parse_duration,
)
from torch_tb_profiler.views._shared.text import plain, text
from torch_tb_profiler.views.diff.payload import DiffOperator, DiffPayload
from torch_tb_profiler.views.diff.words import signed_duration, unmarked_side

OPERATOR_TIMES = ("host_self", "host_total", "device_self", "device_total")
"""Times of an operator that a budget can limit."""


class Budget(msgspec.Struct, frozen=True):
    """Limits of the candidate in ns and bytes; None where there is no limit.

    operators  name -> one of OPERATOR_TIMES -> ns; "" limits the total device time of an operator that launches
               work, the total host time of any other
    """

    step_time: int | None = None
    peak_memory: int | None = None
    exposed_communication: int | None = None
    operators: Mapping[str, Mapping[str, int]] | None = None


class Check(msgspec.Struct, frozen=True):
    """One check of the gate; `passed` is None where the recordings are inconclusive.

    comparable  False if the sides do different amounts of work per step, so that `passed` is None whatever
    the times
    """

    name: str
    passed: bool | None
    message: str
    comparable: bool = True


def parse_budget(content: str) -> Budget:
    """Parse the content of a budget file; UsageError says what is wrong with it."""
    try:
        budget = json.loads(content)
    except ValueError as error:
        raise UsageError(f"the budget is not valid JSON: {error}") from error
    if not isinstance(budget, dict):
        raise UsageError("the budget must be a JSON object", hint='such as {"step_time": "120 ms"}')
    known = ("step_time", "peak_memory", "exposed_communication", "operators")
    unknown = [key for key in budget if key not in known]
    if unknown:
        raise UsageError(f"the budget has an unknown key {unknown[0]!r}", hint=f"keys: {', '.join(known)}")
    operators = budget.get("operators", {})
    if not isinstance(operators, dict):
        raise UsageError("the budget's `operators` must map names to limits")
    return Budget(
        step_time=_parse_limit(budget, "step_time"),
        peak_memory=_parse_limit(budget, "peak_memory"),
        exposed_communication=_parse_limit(budget, "exposed_communication"),
        operators={name: _parse_operator_limits(name, limits) for name, limits in operators.items()},
    )


def _parse_operator_limits(name: str, limits: Any) -> dict[str, int]:
    if not isinstance(limits, dict):
        limits = {"": limits}
    unknown = [key for key in limits if key not in ("", *OPERATOR_TIMES)]
    if unknown:
        hint = f"keys: {', '.join(OPERATOR_TIMES)}"
        raise UsageError(f"the budget of {name} has an unknown key {unknown[0]!r}", hint=hint)
    return {key: limit for key in limits if (limit := _parse_limit(limits, key)) is not None}


def _parse_limit(limits: Mapping[str, Any], key: str) -> int | None:
    """Return a limit in ns or bytes, given as a number or as text with a unit."""
    value = limits.get(key)
    if isinstance(value, str):
        return parse_bytes(value) if key == "peak_memory" else parse_duration(value)
    if isinstance(value, bool) or not (value is None or isinstance(value, (int, float))):
        raise UsageError(f"the budget's limit {key!r} is neither a number nor text with a unit")
    return None if value is None else int(value)


def run_checks(
    diff: DiffPayload, fail_over: float | None, budget: Budget | None, strict: bool = False
) -> list[Check]:
    """Run all checks; TraceError if a budget can't be checked.

    `fail_over` is a share of the base's step. With `strict`, an inconclusive check fails; one whose sides aren't
    comparable stays that.
    """
    regressions = [] if fail_over is None else list(_check_regressions(diff, fail_over))
    if strict:
        regressions = [
            replace(check, passed=bool(check.passed)) if check.comparable else check for check in regressions
        ]
    return regressions if budget is None else [*regressions, *_check_budget(diff, budget)]


def _check_regressions(diff: DiffPayload, fail_over: float) -> Iterator[Check]:
    """Check for proven slowdowns of the step or of an operator that exceed a share of the base's step."""
    if reason := _incomparable_reason(diff):
        yield Check(
            f"{diff.step_noun} time", None, f"not comparable per {diff.step_noun}: {reason}", comparable=False
        )
        return
    max_slowdown = fail_over * (diff.step.base_ns or 0)
    message = f"{describe_change(diff.step)}; allowed {format_ratio(fail_over)}"
    passed = _step_passes(diff, max_slowdown)
    yield Check(
        f"{diff.step_noun} time",
        passed,
        message if passed is not None else f"{message} ({_uncertainty_text(diff)})",
    )
    for row in diff.level.operators:
        for name in ("host_self", "device_self"):
            change = getattr(row, name)
            if _exceeds(change, max_slowdown):
                noun = diff.step_noun
                message = f"{describe_change(change)} per {noun}; allowed {format_ratio(fail_over)} of the {noun}"
                yield Check(f"{row.name} {_time_name(name)}", False, message)


def _incomparable_reason(diff: DiffPayload) -> str | None:
    """Return why steps of the sides aren't the same amount of work, None if nothing shows that."""
    if side := unmarked_side(diff.base, diff.candidate):
        return f"no {diff.step_noun}s are marked in the {side}"
    if diff.samples is None:
        return None
    base, candidate = diff.samples
    change = "" if diff.per_sample is None else f"; per sample {describe_change(diff.per_sample)}"
    return f"{base:,} samples in the base, {candidate:,} in the candidate{change}"


def _step_passes(diff: DiffPayload, max_slowdown: float) -> bool | None:
    """Return False if the step is proven to be slower by more than `max_slowdown`, None if it may be."""
    step = diff.step
    if step.verdict not in ("cannot_tell", "unknown"):
        return not _exceeds(step, max_slowdown)
    within = step.high_ns is not None and step.high_ns <= max_slowdown and not _is_one_program(diff)
    return True if within else None


def _is_one_program(diff: DiffPayload) -> bool:
    """Return whether each side is one recording of the same run, which can't prove a change between programs."""
    return diff.one_run and max(len(diff.base.recordings), len(diff.candidate.recordings)) < 2


def _uncertainty_text(diff: DiffPayload) -> str:
    if diff.step.low_ns is None:
        return f"at least one side has fewer than two {diff.step_noun}s, so there's no significance test"
    if _is_one_program(diff):
        return (
            "both sides are recordings of one run, so this may be run-to-run noise: record each side several times"
        )
    return f"95% interval {signed_duration(diff.step.low_ns)} to {signed_duration(diff.step.high_ns)}"


def _exceeds(change: Change, max_slowdown: float) -> bool:
    """Return whether a proven slowdown of a typical step, the middle of its interval, exceeds `max_slowdown`."""
    return change.verdict == "slower" and ((change.low_ns or 0) + (change.high_ns or 0)) / 2 > max_slowdown


def _check_budget(diff: DiffPayload, budget: Budget) -> Iterator[Check]:
    if budget.step_time is not None:
        yield _check_time(f"{diff.step_noun} time", diff.step.candidate_ns, budget.step_time, diff, "step")
    if budget.exposed_communication is not None:
        exposed = diff.communication.exposed.candidate_ns
        yield _check_time("exposed communication", exposed, budget.exposed_communication, diff, "communication")
    if budget.peak_memory is not None:
        peak = _find_peak_bytes(diff)
        if peak is None:
            raise TraceError(f"can't check the budget of peak memory: {_missing_reason(diff, 'memory')}")
        message = f"{format_bytes(peak)}; allowed {format_bytes(budget.peak_memory)}"
        yield Check("budget: peak memory", peak <= budget.peak_memory, message)
    rows = {row.candidate_name or row.name: row for row in diff.level.operators}
    for name, limits in (budget.operators or {}).items():
        for key, limit in limits.items():
            time = key or _default_time(rows.get(name))
            value = getattr(rows[name], time).candidate_ns if name in rows else 0.0
            yield _check_time(f"{name} {_time_name(time)}", value, limit, diff, time.partition("_")[0])


def _default_time(row: DiffOperator | None) -> str:
    """Return device time for an operator that launches work, else host time."""
    return "device_total" if row is not None and row.device_total.candidate_ns else "host_total"


def _check_time(name: str, value: float | None, limit: int, diff: DiffPayload, reason_field: str) -> Check:
    if value is None:
        raise TraceError(f"can't check the budget of {name}: {_missing_reason(diff, reason_field)}")
    message = f"{format_duration(value)} per {diff.step_noun}; allowed {format_duration(limit)}"
    return Check(f"budget: {name}", value <= limit, message)


def _missing_reason(diff: DiffPayload, field: str) -> str:
    return plain(diff.reasons.get(field, text("the trace doesn't record it")))


def _find_peak_bytes(diff: DiffPayload) -> int | None:
    """Return the highest peak among accelerators, or that of the host where there is none."""
    peaks = {row.device: row.peak_allocated.candidate_bytes for row in diff.memory}
    known = {device: peak for device, peak in peaks.items() if peak is not None}
    return max((peak for device, peak in known.items() if device != "CPU"), default=known.get("CPU"))


def _time_name(field: str) -> str:
    return field.replace("_", " ")


def describe_change(change: Change) -> str:
    """Format a change as "100 ms -> 105 ms (+5%)"."""
    ratio = change.delta_ratio
    relative = "" if ratio is None else f" ({'+' if ratio > 0 else ''}{format_ratio(ratio)})"
    if change.base_ns is None or change.candidate_ns is None:
        return f"{format_duration(change.base_ns)} -> {format_duration(change.candidate_ns)}{relative}"
    return f"{' -> '.join(format_durations(change.base_ns, change.candidate_ns))}{relative}"
