"""Rules about sentences of Diff, which compares a job with the same job without its planted causes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tests.support.diffs import compare
from tests.support.random_jobs.plan import SHARED_LOADER
from tests.support.random_jobs.rules import NUMBER, SHARE, Context, first_reason, ratio, us
from tests.support.random_jobs.surfaces import found_texts
from tests.support.random_jobs.truth import JobTruth
from tests.support.traces import read_bytes
from torch_tb_profiler.analyses.shared.typical_steps import step_kinds
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views.diff.notes import MAX_ODD_STEPS

_DELTA = rf"[+−]?{NUMBER}"
_CHANGED = re.compile(rf"(?P<name>[\w:<>#()., ]+?) \((?P<delta>{_DELTA})(?:, [\w ]+)?\)(?:, | and |\.|,|$)")

_MIN_CHANGE = 0.02
"""Share of a step up to which Diff calls a change none."""

_MAX_LIKENESS = 0.8
"""Largest correlation that few steps are taken to have."""

_MIN_CLEAR_ERRORS = 4.0
"""How many standard errors a change is from the 2% if few steps tell them apart, too."""

_NEEDED_ERRORS = 2.8
"""How many standard errors show a change at 95% confidence in four of five cases, with many steps."""

_FEW_STEPS = 4
"""Fewest independent steps whose spread is known well enough for a short interval: with one or two degrees of
freedom, Student's t is 13 or 4 where it otherwise is 2."""

_NEEDED_FACTOR = 3.0
"""How far an estimate of the steps that are needed may be off: it is one from few steps, which are correlated."""


class ChangeTruth:
    """The truth about one rank before and after a change."""

    def __init__(self, before: JobTruth, rank: int, base: Trace) -> None:
        plan = before.plan
        simulation = plan.without(cause=True, shared=True)
        simulation = replace(simulation, seed=plan.seed + 1_000_000)  # the same jitter would prove too much
        after = JobTruth.of(replace(plan, simulation=simulation, causes=(), shared=None))
        self.traces = base, read_bytes(after.recorded.file(rank))
        self.before, self.after = (
            Context(truth, rank, _odd_steps(truth, rank, trace))
            for truth, trace in zip((before, after), self.traces, strict=True)
        )

    def of(self, time: Callable[[Context], float]) -> float:
        """Return by how many µs a time per step changes."""
        return time(self.after) - time(self.before)


def _odd_steps(truth: JobTruth, rank: int, trace: Trace) -> frozenset[int]:
    numbers = [number for number, _ in truth.recorded_steps(rank)]
    return frozenset(numbers[odd] for odd in np.flatnonzero(step_kinds(trace).odd).tolist())


def judge_diff(before: JobTruth, rank: int, base: Trace) -> Iterator[tuple[str, str | None]]:
    """Yield every sentence of Diff about a rank, and why it is false."""
    change = ChangeTruth(before, rank, base)
    payload: Any = compare(*change.traces)
    for path, text in found_texts(payload, ""):
        if path.startswith((".headline", ".explanation", ".notes")):
            for sentence in re.split(r"(?<=[.])\s+(?=\S)", text):
                yield sentence, judge_comparison(sentence, change)


def judge_comparison(sentence: str, change: Any) -> str | None:
    """Return why a sentence about a ChangeTruth is false, or None."""
    for pattern, check in _RULES:
        match = re.fullmatch(pattern, sentence)
        if match is not None:
            return check(match, change)
    return "no rule knows this sentence"


def _judge_times(match: re.Match[str], change: ChangeTruth) -> str | None:
    return first_reason(
        change.before.close(us(match["before"]), change.before.typical, "the step before"),
        change.after.close(us(match["now"]), change.after.typical, "the step now"),
    )


def _judge_step(match: re.Match[str], change: ChangeTruth) -> str | None:
    """Check the direction and size of a change, and both times."""
    before, now = change.before.typical, change.after.typical
    sign = 1 if match["direction"] == "slower" else -1
    said = sign * us(match["delta"])
    return first_reason(
        change.before.close(said, now - before, "the change"),
        change.before.close(sign * ratio(match["share"]) * before, now - before, "the change"),
        None if sign * (now - before) > 0 else "it is the other way around",
        _judge_times(match, change),
    )


def _judge_none(match: re.Match[str], change: ChangeTruth) -> str | None:
    before, now = change.before.typical, change.after.typical
    if abs(now / before - 1) > 1.2 * _MIN_CHANGE:
        return f"it changes from {before:.0f} to {now:.0f} µs"
    return _judge_times(match, change) if "before" in match.groupdict() else None


def _judge_needed(match: re.Match[str], change: ChangeTruth) -> str | None:
    """Check how many steps per side tell a change from one of 2%, and that those recorded don't."""
    sides = [context.usual_steps for context in (change.before, change.after)]
    before, now = (float(np.mean(side)) for side in sides)
    margin, size = _MIN_CHANGE * before, abs(now - before)
    error = float(np.sqrt(sum(np.var(side, ddof=1) / len(side) for side in sides)))
    if "unclear" in match[0] and abs(size - margin) > _MIN_CLEAR_ERRORS * error:
        return f"the change of {size:.0f} µs is clearly not the {margin:.0f} µs that matter"
    per_step = error**2 / sum(1 / len(side) for side in sides)
    goal = max(size if size >= margin else margin - size, 1e-9)
    needed, recorded = 2 * per_step * (_NEEDED_ERRORS / goal) ** 2, min(map(len, sides))
    said = int(match["needed"].replace(",", ""))
    if said <= recorded:
        return f"{recorded} steps per side are recorded"
    too_few = "ore than" not in match[0] and said < needed / _NEEDED_FACTOR - recorded
    # Steps that resemble the one before say less each, and few of them show how much only roughly.
    longest = max(sides, key=len)
    alike = min(max(max(map(_likeness, sides)) + len(longest) ** -0.5, 0.0), _MAX_LIKENESS)
    # And however large the change, a spread is known from a few independent steps only.
    most = max(needed, _FEW_STEPS) * (1 + alike) / (1 - alike)
    too_many = said > most * _NEEDED_FACTOR + 2 * recorded
    return f"{needed:.0f} to {most:.0f} steps would do" if too_few or too_many else None


def _judge_correlation(match: re.Match[str], change: ChangeTruth) -> str | None:
    """Check that the steps show a correlation that they are said to have: their jitter is independent."""
    sides = [context.usual_steps for context in (change.before, change.after)]
    count = sum(map(len, sides))
    likeness = sum(_likeness(side) * len(side) for side in sides) / count
    if "may be" in match[0] or likeness >= count**-0.5:
        return None
    return f"these {count} steps have one of {likeness:.2f}, as independent ones have"


def _likeness(steps: list[float]) -> float:
    """Return the correlation of the recorded steps with the one before."""
    deviations = np.array(steps) - np.mean(steps)
    squares = float((deviations**2).sum())
    return float((deviations[1:] * deviations[:-1]).sum()) / squares if squares else 0.0


def _judge_parts(match: re.Match[str], change: ChangeTruth) -> str | None:
    """Check the changes of categories or operators that a sentence lists."""
    parts = _CHANGED.finditer(match[1])
    return first_reason(*(_judge_part(part["name"], part["delta"], change) for part in parts))


def _judge_part(name: str, delta: str, change: ChangeTruth) -> str | None:
    name = name.strip()
    said = us(delta.lstrip("+−")) * (-1 if delta.startswith("−") else 1)
    time = _PARTS.get(name)
    if time is None and (known := _operator(name)) is not None:
        time = known
    return None if time is None else change.before.close(said, change.of(time), f"the change of {name}")


def _idle_in(*kinds: str) -> Callable[[Context], float]:
    return lambda context: context.truth.idle_while(context.rank, kinds, context.odd)


_PARTS: dict[str, Callable[[Context], float]] = {
    "kernels": lambda context: context.truth.computation(context.rank, context.odd),
    "exposed communication": lambda context: context.truth.exposed(context.rank, context.odd),
    "memcpy": lambda context: context.truth.copies_alone(context.rank, context.odd),
    "data loading": _idle_in("load"),
    "runtime calls": _idle_in("call", "sync"),
    "record_param_comms": lambda context: context.truth.summed(context.rank, ("collective",), "", context.odd),
}
"""What Diff calls a part of the step -> how long it takes."""


def _operator(name: str) -> Callable[[Context], float] | None:
    """Return how long an operator takes that the simulation knows: on the host, or what it launches."""
    if name in ("prepare_batch", "tokenize", "aten::sort", "extra_expert", SHARED_LOADER):
        return lambda context: context.truth.host_time(context.rank, name, context.odd)
    kernel = name.removeprefix("aten::")
    if kernel == name:
        return None

    def launched(context: Context) -> float:
        return context.truth.summed(context.rank, ("kernel",), kernel, context.odd)

    def takes(context: Context) -> float:
        return launched(context) or context.truth.host_time(context.rank, name, context.odd)

    return takes if kernel not in ("mm", "copy_") else None


def _side(name: str, change: ChangeTruth) -> Context:
    return change.before if name == "base" else change.after


def _judge_outside(match: re.Match[str], change: ChangeTruth) -> str | None:
    """Check how many operators begin outside of the steps that are compared."""
    context = _side(match["side"], change)
    spans, odd = context.truth.recorded.spans[context.rank], context.odd
    steps = [span for number, span in context.truth.recorded_steps(context.rank) if number not in odd]
    begins = [span.start for span in spans if span.kind in ("host", "between")]
    begins += [span.launch for span in spans if span.launch and not span.in_graph]
    outside = sum(not any(step.start <= begin < step.end for step in steps) for begin in begins)
    return None if int(match["count"].replace(",", "")) == outside else f"there are {outside}"


def _judge_left_out(match: re.Match[str], change: ChangeTruth) -> str | None:
    """Check which step is left out, and how much longer it takes."""
    context, step = _side(match["side"], change), int(match["step"]) - 1
    if step not in context.odd:
        return "that step is like the others"
    extra = context.truth.durations(context.rank)[step] - context.typical
    said = us(match["time"]) * (1 if match["sign"] == "more" else -1)
    return context.close(said, extra, "what it takes more")


def _judge_others_left_out(match: re.Match[str], change: ChangeTruth) -> str | None:
    """Check how many steps are left out beside those that are named, the first step apart."""
    context = _side(match["side"], change)
    more = len(context.odd - {0}) - MAX_ODD_STEPS
    said = int(match["count"])
    return None if said in (more, len(context.odd) - MAX_ODD_STEPS) else f"{more} more are left out"


def _judge_odd_as_typical(match: re.Match[str], change: ChangeTruth) -> str | None:
    """Check that a step that is left out of one side is about as long as one that counts on the other."""
    left, counted = _side(match["side"], change), _side(match["other"], change)
    odd = [left.truth.durations(left.rank)[step] for step in left.odd]
    durations = counted.truth.durations(counted.rank)
    typical = [duration for step, duration in enumerate(durations) if step not in counted.odd]
    alike = any(abs(a - b) <= 0.15 * b for a in odd for b in typical)
    return None if alike else "no typical step is as long as one that is left out"


def _judge_counts(match: re.Match[str], change: ChangeTruth) -> str | None:
    """Check how many steps are compared: those that aren't left out."""
    for name, context in (("base", change.before), ("candidate", change.after)):
        count = context.truth.steps - len(context.odd)
        if int(match[name]) != count:
            return f"{count} steps of the {name} are typical"
    return None


def _judge_first_step(match: re.Match[str], change: ChangeTruth) -> str | None:
    context = _side(match["side"], change)
    return first_reason(
        context.close(us(match["time"]), context.truth.durations(context.rank)[0], "the first step"),
        context.close(us(match["typical"]), context.typical, "a typical step"),
    )


def _speed(context: Context) -> float:
    """Return the TFLOP/s of the matrix products."""
    flops, time, _ = context.truth.products(context.rank, context.odd)
    return flops / time / 1e6


def _judge_speeds(match: re.Match[str], change: ChangeTruth) -> str | None:
    if change.before.plan.gpu is None:
        return "nothing is known of its products"
    for said, context in ((match["old"], change.before), (match["new"], change.after)):
        if said and abs(float(said.replace(",", "")) / _speed(context) - 1) > 0.03:
            return f"it is {_speed(context):.0f} TFLOP/s"
    return None


def _judge_known_work(match: re.Match[str], change: ChangeTruth) -> str | None:
    for said, context in ((match["old"], change.before), (match["new"], change.after)):
        if context.plan.gpu is None:
            return "nothing is known of its products"
        true = context.truth.products(context.rank, context.odd)[1] / context.truth.summed(
            context.rank, ("kernel", "collective"), "", context.odd
        )
        if abs(ratio(said) - true) > 0.03:
            return f"it is {true:.1%}"
    return None


_TIMES = rf"(?P<before>{NUMBER}) before, (?P<now>{NUMBER}) now"
_INTERVAL = rf"95% interval {_DELTA} to {_DELTA}"

_RULES: tuple[tuple[str, Callable[[re.Match[str], ChangeTruth], str | None]], ...] = (
    (
        rf"The step is (?P<delta>{NUMBER}) \((?P<share>{SHARE})\) (?P<direction>faster|slower): {_TIMES}"
        rf"(?: \({_INTERVAL}\))?\.",
        _judge_step,
    ),
    (rf"No change in step time: {_TIMES}\.", _judge_none),
    (rf"Any difference is under 2% \({_INTERVAL}\)\.", _judge_none),
    (rf"Step time is the same on both sides: {NUMBER}\.", _judge_none),
    (rf"Inconclusive: {_TIMES} \([^()]*(?:\({_INTERVAL}\))?[^()]*\)\.", _judge_times),
    (r"Whether by the 2% that matter is inconclusive: .*", lambda match, change: None),
    (
        r"(?:Whether the change exceeds the 2% that matters is unclear: a|A)bout (?P<needed>[\d,]+) steps per "
        r"side would settle it\.",
        _judge_needed,
    ),
    (
        r"(?:Whether the change exceeds the 2% that matters is unclear: m|M)ore than (?P<needed>[\d,]+) steps per "
        r"side would be needed to settle it\.",
        _judge_needed,
    ),
    (
        r"(?:Nearly all of the change comes from|More than the entire change comes from|The largest part of the "
        rf"change, {SHARE}, comes from|Also significant:|Significant changes within the step:|Operators that "
        r"changed most:) (.*)",
        _judge_parts,
    ),
    (
        r"(?P<count>[\d,]+) operator calls? in the (?P<side>base|candidate) (?:is|are) outside the compared "
        r"steps\.",
        _judge_outside,
    ),
    (
        rf"Step (?P<step>\d+) of the (?P<side>base|candidate) is left out: it takes (?P<time>{NUMBER}) "
        r"(?P<sign>more|less) than a typical step(?:, mostly .*)?\.",
        _judge_left_out,
    ),
    (
        r"(?P<count>\d+) more steps? of the (?P<side>base|candidate) (?:is|are) left out as well\.",
        _judge_others_left_out,
    ),
    (
        r"Matrix operators compute the same FLOPs as fast as before, at (?P<new>[\d.,]+) TFLOP/s\.(?P<old>)",
        _judge_speeds,
    ),
    (
        rf"Matrix operators take {SHARE} (?:longer|less time) for the same FLOPs: (?P<old>[\d.,]+) TFLOP/s "
        r"before, (?P<new>[\d.,]+) now\.",
        _judge_speeds,
    ),
    (
        r"Same FLOPs in matrix operators; too few steps to compare their speed \((?P<old>[\d.,]+) TFLOP/s "
        r"before, (?P<new>[\d.,]+) now\)\.",
        _judge_speeds,
    ),
    (
        rf"(?:Can't compare FLOPs: )?FLOPs or bytes are known for (?P<old>{SHARE}) of device time in the "
        rf"base, (?P<new>{SHARE}) in the candidate\.",
        _judge_known_work,
    ),
    (
        r"Steps as long as some that are left out of the (?P<side>base|candidate) are typical of the "
        r"(?P<other>base|candidate), and count there\.",
        _judge_odd_as_typical,
    ),
    (r"(?P<base>\d+) steps in the base, (?P<candidate>\d+) in the candidate\.", _judge_counts),
    (r"All numbers are per step\.", lambda match, change: None),
    (
        rf"The first step of the (?P<side>base|candidate) \((?P<time>{NUMBER})\) is left out, as it may be "
        rf"warm-up: a typical one takes (?P<typical>{NUMBER})\.",
        _judge_first_step,
    ),
    (r"Consecutive steps (?:are|may be) correlated \(autocorrelation .*", _judge_correlation),
    (r"One recording per side, so run-to-run noise is unknown\.", lambda match, change: None),
    (r"Record each side two or three times\.", lambda match, change: None),
)
"""(pattern of a whole sentence, what makes it false)."""
