"""The sentences of the Diff tab: the verdict on the step, and what explains it."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.diff.changes import Change
from torch_tb_profiler.analyses.diff.comparison import PairComparison
from torch_tb_profiler.analyses.diff.serving_phases import ComparedPhase
from torch_tb_profiler.analyses.shared.significance import MAX_NEEDED
from torch_tb_profiler.base.format import MINUS, format_duration, format_durations, format_number, format_ratio
from torch_tb_profiler.base.grammar import capitalize
from torch_tb_profiler.views._shared.text import Phrase, Text, link, sentences, text
from torch_tb_profiler.views.diff.payload import (
    DiffBar,
    DiffLevel,
    DiffOperator,
    DiffSide,
    DiffWaterfall,
)

CATEGORIES = {
    "kernel": "kernels",
    "memcpy": "memcpy",
    "memset": "memset",
    "communication": "exposed communication",
    "runtime": "runtime calls",
    "dataloader": "data loading",
    "cpu_exec": "host operators",
    "other": "time with nothing recorded",
}

_STATUS = {
    "added": ", added",
    "removed": ", removed",
    "moved_in": ", previously in processes that weren't recorded",
    "moved_out": ", now in processes that aren't recorded",
}

NEARLY_ALL_SHARE = 0.9
"""A category that explains at least this share of the change explains nearly all of it."""

MAX_OPERATORS = 3
"""Most operators that a sentence names."""

MAX_COVERAGE_DIFFERENCE = 0.05
"""Largest difference between the sides' shares of device time with known work; beyond it, more FLOPs may only be
known, not done."""

MIN_COMPLETE_COVERAGE = 0.995
"""Share of the device time with known work from which on all of it counts as known."""


def headline(
    step: Change, base: DiffSide, candidate: DiffSide, min_effect: float, one_run: bool, noun: str = "step"
) -> Text:
    """Say how a typical step changed, and whether that is proven; `noun`: see `DiffPayload.step_noun`."""
    empty = [name for name, side in (("base", base), ("candidate", candidate)) if not side.steps]
    if empty:
        sides = f"the {' and the '.join(empty)} {'has' if len(empty) == 1 else 'have'}"
        return text("Can't compare {noun} times: {sides} no complete {noun}.", sides=sides, noun=noun)
    if side := unmarked_side(base, candidate):
        return text(
            "Can't compare {noun} times: no {noun}s are marked in the {side}, so all of it counts as one.",
            noun=noun,
            side=side,
        )
    before, now = base.typical_ns, candidate.typical_ns
    if step.verdict == "equal":
        return text("{noun} time is the same on both sides: {now}.", noun=capitalize(noun), now=_now(now))
    if step.verdict == "unchanged":
        template = "No change in {noun} time: {times}. Any difference is under {min_effect} ({interval})."
        limit, interval = format_ratio(min_effect), _interval(step)
        return text(template, noun=noun, times=_times(before, now), min_effect=limit, interval=interval)
    change, exact = _change(before, now), _times(before, now, changed=True)
    if step.verdict in ("slower", "faster"):
        return text("The {noun} is {change}: {times}.", noun=noun, change=change, times=exact)
    times = _times(before, now)
    share = _share(before, now)
    several = max(len(base.recordings), len(candidate.recordings)) > 1
    if step.low_ns is None:
        return sentences(
            text("Inconclusive: {times} ({share}).", times=times, share=share),
            text("At least one side has a single {noun}, so there's no significance test.", noun=noun),
        )
    if one_run:
        return sentences(
            text("In this recording, the {noun} is {change}: {times}.", noun=noun, change=change, times=exact),
            text(_needed_steps_sentence(step, several, noun))
            if several
            else text("Both sides ran the same program: record each several times to rule out noise."),
        )
    if step.low_ns <= 0 <= (step.high_ns or 0):
        return sentences(
            text(
                "Inconclusive: {times} ({share}, {interval}).", times=times, share=share, interval=_interval(step)
            ),
            text(_needed_steps_sentence(step, several, noun)),
        )
    return sentences(
        text(
            "The {noun} is {change}: {times} ({interval}).",
            noun=noun,
            change=change,
            times=exact,
            interval=_interval(step),
        ),
        text(
            "Whether the change exceeds the {min_effect} that matters is unclear: {needed}",
            min_effect=format_ratio(min_effect),
            needed=_needed_steps_sentence(step, several, noun, lower=True),
        ),
    )


def unmarked_side(base: DiffSide, candidate: DiffSide) -> str | None:
    """Return the side that records no steps where the other one has several: its whole trace isn't one of them."""
    for name, side, other in (("base", base, candidate), ("candidate", candidate, base)):
        if not side.steps_recorded and other.steps_recorded and len(other.steps) > 1:
            return name
    return None


def headline_per_sample(
    change: Change,
    samples: tuple[int, int],
    base: DiffSide,
    candidate: DiffSide,
    one_run: bool,
    noun: str = "step",
) -> Text:
    """Say how the time per sample changed, where the sides compute different numbers of samples per step."""
    before, now = base.typical_ns / samples[0], candidate.typical_ns / samples[1]
    counts = text(
        "{noun}s aren't comparable: {base} samples in the base, {candidate} in the candidate.",
        noun=capitalize(noun),
        base=f"{samples[0]:,}",
        candidate=f"{samples[1]:,}",
    )
    proven = change.verdict in ("slower", "faster") and not one_run
    times = _times(before, now, changed=proven)
    if change.verdict in ("unchanged", "equal"):
        return sentences(text("No change in time per sample: {times}.", times=times), counts)
    template = (
        "Per sample, the {noun} is {change}: {times}." if proven else "Inconclusive per sample: {times} ({share})."
    )
    return sentences(
        text(template, noun=noun, change=_change(before, now), times=times, share=_share(before, now)), counts
    )


def headline_per_token(phases: Sequence[ComparedPhase], one_run: bool) -> Text:
    """Say how the time per token of two inference engines changed: of decodes, and of prefills where known."""
    known = {phase.phase: phase for phase in phases if phase.per_token.base_ns is not None}
    ordered = [known[name] for name in ("decode", "prefill", "mixed") if name in known]
    return sentences(*(_per_token_sentence(phase, one_run) for phase in ordered[:2]))


_TOKENS = {"decode": "decoded token", "prefill": "prompt token", "mixed": "token of mixed iterations"}


def _per_token_sentence(phase: ComparedPhase, one_run: bool) -> Text:
    change, noun = phase.per_token, _TOKENS[phase.phase]
    before, now = change.base_ns or 0.0, change.candidate_ns or 0.0
    proven = change.verdict in ("slower", "faster") and not one_run
    times = _times(before, now, "serving", changed=proven)
    if change.verdict in ("unchanged", "equal"):
        return text("No change in time per {noun}: {times}.", noun=noun, times=times)
    if proven:
        return text("A {noun} is {change}: {times}.", noun=noun, change=_change(before, now), times=times)
    return text("Inconclusive per {noun}: {times} ({share}).", noun=noun, times=times, share=_share(before, now))


def iterations_sentences(phases: Sequence[ComparedPhase], step: Change) -> list[Text]:
    """Say how long iterations take and how their mix differs, for inference engines."""
    if not phases or step.base_ns is None or step.candidate_ns is None:
        return []
    before, now = (_mix([phase.iterations[side] for phase in phases], phases) for side in (0, 1))
    return [
        text(
            "An average iteration took {before} before ({old}), {now} now ({new}).",
            before=format_duration(step.base_ns),
            old=before,
            now=format_duration(step.candidate_ns),
            new=now,
        )
    ]


def _mix(counts: Sequence[int], phases: Sequence[ComparedPhase]) -> str:
    return ", ".join(f"{count:,} {phase.phase}" for count, phase in zip(counts, phases, strict=True))


def _needed_steps_sentence(step: Change, several: bool, noun: str, lower: bool = False) -> str:
    """Say how many steps (recordings, where a side has several) would settle an inconclusive verdict."""
    what = "recordings" if several else f"{noun}s"
    if step.needed is None:
        sentence = f"More than {MAX_NEEDED:,} {what} per side would be needed to settle it."
    else:
        sentence = f"About {step.needed:,} {what} per side would settle it."
    return sentence[0].lower() + sentence[1:] if lower else sentence


def _now(ns: float) -> Phrase:
    return Phrase(format_duration(ns), link("overview"))


def _times(before: float, now: float, slug: str = "overview", *, changed: bool = False) -> Text:
    """Return the times of both sides, with digits enough to show how they differ if they `changed`."""
    old, new = format_durations(before, now) if changed else (format_duration(before), format_duration(now))
    return text("{before} before, {now} now", before=old, now=Phrase(new, link(slug)))


def _change(before: float, now: float) -> Phrase:
    delta = now - before
    ratio = f" ({format_ratio(abs(delta) / before)})" if before else ""
    direction = "slower" if delta > 0 else "faster"
    return Phrase(f"{format_duration(abs(delta))}{ratio} {direction}", link("diff", table="parts"))


def _share(before: float, now: float) -> Phrase:
    """Return the relative change with its sign; a negligible one has none."""
    delta = now - before
    amount = format_ratio(abs(delta) / before) if before else signed_duration(delta)
    sign = "" if not before or not delta or amount.startswith("<") else "+" if delta > 0 else MINUS
    return Phrase(sign + amount, link("diff", table="parts"))


def _interval(step: Change) -> str:
    return f"95% interval {signed_duration(step.low_ns)} to {signed_duration(step.high_ns)}"


def signed_duration(ns: float | None) -> str:
    """Format a difference as "+12.3 ms", rounded to ns: anything smaller comes from rounding means."""
    rounded = None if ns is None else round(ns)
    return ("+" if (rounded or 0) > 0 else "") + format_duration(rounded)


def explanation(
    step: Change, categories: DiffWaterfall, root: DiffLevel, noun: str = "step", *, same_samples: bool = True
) -> list[Text]:
    """Name the categories and the operators that explain the change, a sentence each.

    same_samples  both sides compute as many samples per step; else the headline is about one sample
    """
    return [*_category_sentences(step, categories, root, noun, same_samples), *_operator_sentences(root.operators)]


def _category_sentences(
    step: Change, waterfall: DiffWaterfall, root: DiffLevel, noun: str, same_samples: bool
) -> list[Text]:
    significant = [bar for bar in waterfall.bars if bar.verdict in ("slower", "faster")]
    if not _has_direction(step):
        bars = _join_with_commas([_bar(bar, root) for bar in significant])
        template = "Significant changes within the {noun}: {bars}."
        return [text(template, noun=noun, bars=bars)] if significant else []
    if not waterfall.delta_ns or not (step.base_ns and step.candidate_ns):
        return []
    largest = max(waterfall.bars, key=lambda bar: bar.delta_ns / waterfall.delta_ns)
    per_step = "" if same_samples else f" per {noun}"
    cause = _largest_cause_sentence(largest, largest.delta_ns / waterfall.delta_ns, root, per_step)
    others = [_bar(bar, root) for bar in significant if bar is not largest]
    return [cause, text("Also significant: {bars}.", bars=_join_with_commas(others))] if others else [cause]


def _has_direction(step: Change) -> bool:
    """Return whether the step significantly changed and its mean changed in the direction of a typical step."""
    low, high, delta = step.low_ns, step.high_ns, step.delta_ns or 0
    if step.verdict in ("unchanged", "equal", "unknown"):
        return False
    return low is None or high is None or (low > 0 and delta > 0) or (high < 0 and delta < 0)


def _largest_cause_sentence(bar: DiffBar, share: float, root: DiffLevel, per_step: str) -> Text:
    if share > 2 - NEARLY_ALL_SHARE:
        template = (
            "More than the entire change{per_step} comes from {bar}{doubt}; other categories offset part of it."
        )
    elif share >= NEARLY_ALL_SHARE:
        template = "Nearly all of the change{per_step} comes from {bar}{doubt}."
    else:
        template = "The largest part of the change{per_step}, {share}, comes from {bar}{doubt}."
    doubt = ", which isn't significant by itself" if bar.verdict == "cannot_tell" else ""
    return text(template, share=format_ratio(share), bar=_bar(bar, root), doubt=doubt, per_step=per_step)


def _bar(bar: DiffBar, root: DiffLevel) -> Text:
    name = Phrase(CATEGORIES[bar.name], _evidence_link(bar.name, root))
    return text("{name} ({delta})", name=name, delta=signed_duration(bar.delta_ns))


def _evidence_link(category: str, root: DiffLevel) -> str:
    """Return the link to the table or the part that a category is made of, else to the timeline."""
    if category == "kernel":
        return link("diff", table="kernels")
    if category == "cpu_exec":
        return link("diff", table="operators")
    loader = next((part for part in root.parts if part.kind == "dataloader"), None)
    if category == "dataloader" and loader is not None and loader.parts:
        return link("diff", part=loader.path)
    return link("trace")


def _operator_sentences(operators: Sequence[DiffOperator]) -> list[Text]:
    changed = []
    for row in operators:
        time = max(("host_self", "device_self"), key=lambda name: abs(getattr(row, name).delta_ns or 0))
        change: Change = getattr(row, time)
        if change.significant:
            name = Phrase(row.name, link("diff", metric=None if time == "host_self" else time, q=row.name))
            status = {**_STATUS, "renamed": f", now {row.candidate_name}"}.get(row.status, "")
            delta = _operator_delta_text(row, change)
            changed.append(text("{name} ({delta}{status})", name=name, delta=delta, status=status))
    if not changed:
        return []
    rest = len(changed) - MAX_OPERATORS
    more = text(" and {more}", more=Phrase(f"{rest} more", link("diff", only=1))) if rest > 0 else ()
    names = _join_with_commas(changed[:MAX_OPERATORS])
    return [text("Operators that changed most: {names}{more}.", names=names, more=more)]


def _operator_delta_text(row: DiffOperator, change: Change) -> str:
    """Return by how much the larger of an operator's times changed, or both where work moved to the other side."""
    host, device = row.host_self, row.device_self
    if host.significant and device.significant and (host.delta_ns or 0) * (device.delta_ns or 0) < 0:
        return f"{signed_duration(host.delta_ns)} on the host, {signed_duration(device.delta_ns)} on the device"
    return signed_duration(change.delta_ns)


def _join_with_commas(texts: Sequence[Text]) -> Text:
    joined: Text = ()
    for item in texts:
        joined = text("{before}, {item}", before=joined, item=item) if joined else item
    return joined


def flops_sentences(comparison: PairComparison, min_effect: float, noun: str) -> list[Text]:
    """Say whether matrix operators compute more, or the same at another speed; nothing if FLOPs are unknown."""
    base, candidate = comparison.flops
    old, new = base.matrix.flops, candidate.matrix.flops
    if not (old and new) or base.coverage is None or candidate.coverage is None:
        return []
    coverage = {"old": format_ratio(base.coverage), "new": format_ratio(candidate.coverage)}
    if abs(candidate.coverage - base.coverage) > MAX_COVERAGE_DIFFERENCE:
        template = (
            "Can't compare FLOPs: FLOPs or bytes are known for {old} of device time in the base, {new} in the "
            "candidate."
        )
        return [text(template, **coverage)]
    limits: Text = ()
    if min(base.coverage, candidate.coverage) < MIN_COMPLETE_COVERAGE:
        template = "FLOPs or bytes are known for {old} of device time in the base, {new} in the candidate."
        limits = text(template, **coverage)
    speeds = _tflops(old, base.matrix.busy_ns), _tflops(new, candidate.matrix.busy_ns)
    change = new / old - 1
    if abs(change) <= min_effect:
        return [sentences(_same_flops_sentence(comparison.matrix_time, speeds, noun), limits)]
    finding = text(
        "{operators} compute {change} {direction} FLOPs, at {speed} TFLOP/s{before}.",
        operators=Phrase("Matrix operators", link("diff", metric="device_self")),
        change=format_ratio(abs(change)),
        direction="more" if change > 0 else "fewer",
        speed=speeds[1],
        before="" if speeds[0] == speeds[1] else f" ({speeds[0]} before)",
    )
    return [sentences(finding, limits)]


def _same_flops_sentence(time: Change, speeds: tuple[str, str], noun: str) -> Text:
    """Say how fast the same FLOPs are computed, as far as that is proven."""
    target = link("diff", metric="device_self")
    if time.significant and time.delta_ratio is not None:
        return text(
            "{operators} take {change} {direction} for the same FLOPs: {old} TFLOP/s before, {new} now.",
            operators=Phrase("Matrix operators", target),
            change=format_ratio(abs(time.delta_ratio)),
            direction="longer" if time.delta_ratio > 0 else "less time",
            old=speeds[0],
            new=speeds[1],
        )
    if time.verdict in ("unchanged", "equal"):
        template = "{operators} compute the same FLOPs as fast as before, at {speed} TFLOP/s."
        return text(template, operators=Phrase("Matrix operators", target), speed=speeds[1])
    return text(
        "Same FLOPs in {operators}; too few {noun}s to compare their speed ({old} TFLOP/s before, {new} now).",
        noun=noun,
        operators=Phrase("matrix operators", target),
        old=speeds[0],
        new=speeds[1],
    )


def _tflops(flops: float, ns: float) -> str:
    return format_number(flops / ns / 1000)
