"""The overview in words: how a step is spent, what to do first, how the steps vary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch_tb_profiler.analyses.overview.finding import LEAST_GAIN
from torch_tb_profiler.analyses.roofline.tokens import TokenCounts
from torch_tb_profiler.base.format import format_duration, format_number, format_ratio
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.model.schedule.schedule import MIN_EXPLAINED_SHARE
from torch_tb_profiler.views._shared.text import Phrase, Text, join_phrases, link, sentences, shorten_name, text
from torch_tb_profiler.views.overview.payload import Average, Categories, HardwareUse, Recommendation, Step

CATEGORIES = Categories.__struct_fields__

BUSY = ("kernel", "memcpy", "memset", "communication")
"""Categories in which a device works: it is busy, as on the timeline and in Diff."""

CATEGORY_NAMES = {
    "kernel": "kernels",
    "memcpy": "memcpy",
    "memset": "memset",
    "communication": "communication",
    "runtime": "runtime calls",
    "dataloader": "data loading",
    "cpu_exec": "host operators",
    "other": "time outside of operators and calls",
}

_EVIDENCE = {"kernel": link("kernels"), "cpu_exec": link("operators"), "runtime": link("operators")}

_PATH_TEXTS = {
    "host": "host code",
    "device": "device work",
    "communication": "communication",
    "latency": "latency between host and device",
}

EXPOSED = 0.25
"""Communication above this share of the step, and not below all other waiting, is what the headline is about."""

_TIMELINE = Phrase("timeline", link("trace"))

_LEAST_EXPOSED = 0.01
"""Communication that nothing hides and that is below this share of the time is not spoken of."""

IDLE = 0.1
"""A device that waits for less than this share of the step counts as busy."""

TOLD = 0.9
"""Where less of the device time is modeled, its use of the peak is no headline: what is not known may be more."""

SUBMITTED = 0.5
"""A device whose next work is submitted in more than this share of its waiting does not wait for the host."""

ALIKE = 0.005
"""Steps whose categories vary by less than this share of the longest step are alike."""


def whole_of(average: Average | None, recorded: bool) -> str:
    """What shares are of: a single step is no average."""
    if not recorded:
        return "the trace"
    return "the step" if average is not None and average.steps == 1 else "the average step"


def headline(spent: Text, recommendations: Sequence[Recommendation], waiting: Text = ()) -> Text:
    """How the average step is spent, how much of it waits for other ranks, and what to do first."""
    first = text("First recommendation: {title}.", title=recommendations[0].title) if recommendations else ()
    return sentences(spent, waiting, first)


def bound_sentence(times: Mapping[str, float], base: str, evidence: str) -> tuple[str, Text]:
    """Return the largest part of the critical path and a clause: "92% of the step's critical path is host code".

    times     ns of the path by `analyses.schedule.categories.BOUNDS`; their sum is positive
    base      "the step" or "the trace"; evidence: what a click on the share opens
    """
    bound = max(times, key=lambda part: times[part])
    share = Phrase(f"{format_ratio(times[bound] / sum(times.values()))} of {base}'s critical path", evidence)
    return bound, text("{share} is {part}", share=share, part=_PATH_TEXTS[bound])


def bound(times: Mapping[str, float] | None, whole: str, exposed: float = 0.0) -> Text:
    """What bounds a step, as the Critical path says it; empty where no schedule explains the trace.

    exposed: share of the step in communication of the device that no computation hides. It need not bound the
    step, so that a step with some of it that is bounded by something else says how much of it the path holds.
    """
    if times is None or (total := sum(times.values())) <= 0:
        return ()
    whole = "the trace" if whole == "the trace" else "the step"
    part, said = bound_sentence(times, whole, link("critical_path"))
    if part == "communication" or exposed < _LEAST_EXPOSED:
        return text("{said}.", said=said)
    if times["communication"] == 0:
        return text("{said}, and none of it is communication.", said=said)
    return text("{said}, {share} communication.", said=said, share=format_ratio(times["communication"] / total))


def gains(recommendations: Sequence[Recommendation], explained: float | None, reason: str | None) -> Text:
    """Where the gains come from, and what they do not know; `reason`: why no schedule is replayed."""
    bases = {each.basis for each in recommendations} - {None}
    if not bases:
        return ()
    if reason is not None:
        return text(
            "Gains are measured shares of the step, as no change can be replayed: {reason}.", reason=reason
        )
    if bases == {"share"}:
        return text("The gain is a measured share of the step: what it is about is not in the schedule.")
    return text(
        "A what-if replays the recorded schedule without what the advice takes away; {share} of the device work "
        "starts when that says (at least {least} are needed). The {path} says what no replay knows. Gains do not "
        "add up.",
        share=format_ratio(explained),
        least=format_ratio(MIN_EXPLAINED_SHARE),
        path=Phrase("Critical path", link("critical_path")),
    )


def no_advice(average: Average | None, reason: str | None, device_type: str | None, whole: str) -> Text:
    """Why nothing is advised. Where the device waits, that does not mean that nothing can be done.

    `device_type`: None where no work of a device is recorded.
    """
    if reason is not None:
        return text("Nothing is advised: {reason}.", reason=reason)
    if average is None or average.duration_ns <= 0:
        return text("Nothing is advised: there is no complete step.")
    busy = sum(getattr(average.categories, name) or 0.0 for name in BUSY) / average.duration_ns
    if device_type is not None and 0 < busy < 1 - IDLE:
        return text("No rule explains what the device waits for. The {timeline} shows it.", timeline=_TIMELINE)
    return text(
        "No rule finds {share} of {whole} to gain.",
        share=format_ratio(LEAST_GAIN),
        whole="the trace" if whole == "the trace" else "the step",
    )


def spent(
    average: Average | None,
    device_type: str | None,
    whole: str,
    within: Mapping[str, Phrase] | None = None,
    hardware: HardwareUse | None = None,
    submitted: float = 0.0,
    largest: Text = (),
) -> Text:
    """How the average step is spent.

    `device_type`: None where no work of a device is recorded. `whole`: see `whole_of`. `within`: in what half or
    more of a category's time passes. `hardware`: what a busy device makes of its peak. `submitted`: share of the
    device's waiting in which its next work is submitted: what the host does then is not why it waits.
    `largest`: which kernel a busy device runs most, see `largest`.
    """
    if average is None:
        return text("There is no complete step to analyze.")
    total = average.duration_ns
    times = {name: getattr(average.categories, name) or 0.0 for name in CATEGORIES}
    if total <= 0:
        return text("No time passes in {whole}.", whole=whole)
    if device_type is None:
        return _largest(times, total, whole, within or {})
    busy = sum(times[name] for name in BUSY) / total
    least, most = ("at least ", "at most ") if average.categories.memcpy is None else ("", "")
    if times["communication"] / total > EXPOSED and times["communication"] / total >= 1 - busy:
        evidence = Phrase(f"{format_ratio(times['communication'] / total)} of {whole}", link("trace"))
        return text("{share} is communication that no computation hides.", share=evidence)
    waits = {name: time for name, time in times.items() if name not in BUSY and time > 0}
    device = "GPU" if device_type in ("CUDA", "ROCm") else "device"
    if 1 - busy < IDLE or not waits:
        share = Phrase(f"{least}{format_ratio(busy)} of {whole}", link("kernels"))
        busy_for = text(
            "The {device} is busy for {share}{talk}{use}.",
            device=device,
            share=share,
            talk=(talk := _talk(times, busy * total)),
            use=_use(hardware, ", and" if talk else " and"),
        )
        return sentences(busy_for, largest)
    waiting = Phrase(f"{most}{format_ratio(1 - busy)} of {whole}", link("trace"))
    if submitted > SUBMITTED:
        return text(
            "The {device} waits for {share}; for {portion} of that, its next work is already submitted.",
            device=device,
            share=waiting,
            portion=Phrase(format_ratio(submitted), link("idle")),
        )
    cause = max(waits, key=lambda name: waits[name])
    return text(
        "The {device} waits for {share}; {portion} of that is {cause}.",
        device=device,
        share=waiting,
        portion=format_ratio(waits[cause] / ((1 - busy) * total)),
        cause=_cause(cause, within or {}),
    )


def largest(name: str, event: int, share: float) -> Text:
    """The kernel with the most time, in the words of Kernels; it opens its longest launch on the timeline."""
    kernel = Phrase(shorten_name(name), link("trace", event=event))
    return text("{kernel} takes {share} of the kernel time.", kernel=kernel, share=format_ratio(share))


def _use(hardware: HardwareUse | None, joined: str) -> Text:
    """How much of its peak a busy device uses; nothing where that is not known well enough."""
    if hardware is None or hardware.mfu is None or hardware.coverage < TOLD:
        return ()
    return text(
        "{joined} uses {least}{mfu} of its peak FLOP/s",
        joined=joined,
        least="" if hardware.complete else "at least ",
        mfu=Phrase(format_ratio(hardware.mfu), link("roofline")),
    )


def _talk(times: Mapping[str, float], busy_ns: float) -> str:
    """How much of the busy time is spent in collectives, which may be waiting for other ranks."""
    share = times["communication"] / busy_ns
    return (
        f", {format_ratio(share)} of that in communication that no computation hides"
        if share >= _LEAST_EXPOSED
        else ""
    )


def _largest(times: Mapping[str, float], total: float, whole: str, within: Mapping[str, Phrase]) -> Text:
    top = max(times, key=lambda name: times[name])
    return text(
        "The largest part of {whole}, {share}, is {category}.",
        whole=whole,
        share=format_ratio(times[top] / total),
        category=_cause(top, within),
    )


def _cause(name: str, within: Mapping[str, Phrase]) -> Text:
    """The category, and in what most of it passes."""
    if name not in within:
        return (_category(name),)
    return text("{category}, most of it in {what}", category=_category(name), what=within[name])


def _category(name: str) -> Phrase:
    return Phrase(CATEGORY_NAMES[name], _EVIDENCE.get(name, link("trace")))


def reachable(said: Text, operators: bool) -> Text:
    """The same words; where no `operators` are recorded, what would open them opens the timeline."""
    if operators:
        return said
    return tuple(Phrase(each.text, link("trace")) if each.link == link("operators") else each for each in said)


def explanation(
    steps: Sequence[Step], average: Average | None, reasons: Mapping[str, str], cut_off: bool = False
) -> Text:
    """How the steps vary, which are outliers, and which are left out; why the whole trace is shown as one step.

    Of a file that is cut off nobody knows what varies: what is missing may.
    """
    if "steps" in reasons:
        reason = reasons["steps"]
        return text("{reason}.", reason=reason[:1].upper() + reason[1:])
    complete = [step for step in steps if step.complete]
    dropped = len(steps) - len(complete)
    left_out = text("{count} left out.", count=plural(dropped, "incomplete step")) if dropped else ()
    outliers = _outliers(complete, average) if average is not None and average.outliers else ()
    filling = average.filling if average is not None else None
    first = _filling(complete[0]) if filling is not None else ()
    return sentences(_variation(complete[1:] if first else complete, cut_off), first, outliers, left_out)


def _filling(step: Step) -> Text:
    return text(
        "Step {name} before them takes {duration}, as the device runs behind the host from then on.",
        name=step.name,
        duration=format_duration(step.duration_ns),
    )


def _variation(complete: Sequence[Step], cut_off: bool) -> Text:
    if len(complete) < 2:
        return text("{count} recorded.", count=plural(len(complete), "complete step"))
    durations = [step.duration_ns for step in complete]
    count, times = plural(len(complete), "step"), _range(min(durations), max(durations))
    if cut_off:
        return text("{count} of {times} before the cut.", count=count, times=times)
    ranges = {}
    for name in CATEGORIES:
        spent = [getattr(step.categories, name) or 0 for step in complete]
        ranges[name] = min(spent), max(spent)
    widest = max(ranges, key=lambda name: ranges[name][1] - ranges[name][0])
    least, most = ranges[widest]
    if most - least < ALIKE * max(durations):
        alike = "{count} of about {duration}, all alike."
        return text(alike, count=count, duration=format_duration(max(durations)))
    return text(
        "{count} of {times}. What varies most is {category}, {range}.",
        count=count,
        times=times,
        category=_category(widest),
        range=_range(least, most),
    )


def _outliers(complete: Sequence[Step], average: Average) -> Text:
    far = [step for step in complete if step.name in average.outliers]
    named = join_phrases(f"{step.name} ({format_duration(step.duration_ns)})" for step in far)
    template = (
        "{steps} {named} {are} far from the others: without {them} the average step is {typical}, not {mean}."
    )
    return text(
        template,
        steps="Step" if len(far) == 1 else "Steps",
        named=named,
        are="is" if len(far) == 1 else "are",
        them="it" if len(far) == 1 else "them",
        typical=format_duration(average.typical_ns),
        mean=format_duration(average.duration_ns),
    )


def _range(least: float, most: float) -> str:
    return f"{format_duration(least)} to {format_duration(most)}"


def throughput_sentence(tokens: TokenCounts | None) -> Text:
    """Say how many tokens per second the model processes; empty where the trace doesn't record tokens."""
    if tokens is None:
        return ()
    return text(
        "The model processes {rate} tokens/s: {tokens} in {duration} ({prompt} of prompts, {generated} generated, "
        "by the names of {iterations}).",
        tokens=plural(tokens.prompt + tokens.generating, "token"),
        duration=format_duration(tokens.duration_ns),
        rate=format_number(tokens.per_second),
        prompt=f"{tokens.prompt:,}",
        generated=f"{tokens.generating:,}",
        iterations=Phrase(plural(tokens.iterations, "iteration"), link("trace", event=tokens.event)),
    )
