"""The sentences of the Overview: how a step is spent, what limits it, what to do first, how the steps vary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch_tb_profiler.analyses.roofline.tokens import TokenCounts
from torch_tb_profiler.analyses.shared.memory_curve import default_device, memory_levels
from torch_tb_profiler.base.format import format_bytes, format_duration, format_number, format_ratio
from torch_tb_profiler.base.grammar import agree, capitalize, join_words, plural
from torch_tb_profiler.model.memory.events import memory_failures
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views._shared.text import (
    Phrase,
    Text,
    device_noun,
    first_sentence,
    join_device_names,
    link,
    sentences,
    shorten_name,
    text,
)
from torch_tb_profiler.views._shared.wording import UNEXPLAINED_WAIT
from torch_tb_profiler.views.overview.payload import Average, Categories, HardwareUse, Recommendation, Step

CATEGORIES = Categories.__struct_fields__

BUSY_CATEGORIES = ("kernel", "memcpy", "memset", "communication")
"""Categories in which a device works: it is busy, as on the timeline and in Diff."""

CATEGORY_NAMES = {
    "kernel": "kernels",
    "memcpy": "memcpy",
    "memset": "memset",
    "communication": "communication",
    "runtime": "runtime calls",
    "dataloader": "data loading",
    "cpu_exec": "operators on the host",
    "other": "time outside operators and runtime calls",
}

_HOST_ACTIVITIES = {
    "runtime": ("is in ", "runtime calls"),
    "dataloader": ("is ", "loading data"),
    "cpu_exec": ("runs ", "operators"),
    "other": ("runs ", "no operators"),
}
"""Category -> what the host does in it; the second part opens the evidence."""

_ANNOTATED = {
    "operators": "annotated code",
    "operators on the host": "annotated code blocks on the host",
    "Operators on the host": "Annotated code blocks on the host",
}

_PATH_TEXTS = {
    "host": "host code",
    "device": "device work",
    "communication": "communication",
    "latency": "latency between host and device",
}

_EVIDENCE = {"kernel": link("kernels"), "cpu_exec": link("operators"), "runtime": link("operators")}

_TIMELINE = Phrase("timeline", link("trace"))

EXPOSED_HEADLINE_SHARE = 0.25
"""Exposed communication above this share of the step, and not below the idle time, is the headline."""

_MIN_EXPOSED_SHARE = 0.01
"""Exposed communication below this share of the time isn't mentioned."""

_MIN_COPIES_SHARE = 0.1
"""Copies while no kernel runs below this share of the busy time aren't mentioned."""

MIN_IDLE_SHARE = 0.1
"""A device that is idle for less than this share of the step counts as busy."""

MIN_COVERAGE = 0.9
"""Smallest share of device time with known FLOPs that makes the MFU worth a headline: the rest may be more."""

SUBMITTED_SHARE = 0.5
"""Above this share of idle time with the next work already submitted, the host isn't why the device is idle."""

SIMILAR_STEPS_SHARE = 0.005
"""Steps whose categories vary by less than this share of the longest step are called similar."""


def headline(spent: Text, recommendations: Sequence[Recommendation], waiting: Text = ()) -> Text:
    """Return how the step is spent and what to do first.

    spent    sentences about the step, of which the first is taken
    waiting  how much of the step waits for other ranks, without a full stop
    """
    if not recommendations:
        return sentences(first_sentence(spent), text("{waiting}.", waiting=waiting) if waiting else ())
    return sentences(first_sentence(spent), start_sentence(recommendations, waiting))


def start_sentence(recommendations: Sequence[Recommendation], waiting: Text = ()) -> Text:
    """Return "Start here:" with the title of the first recommendation, if any; `waiting`: see `headline`."""
    if not recommendations:
        return ()
    verb, *rest = recommendations[0].title
    return text(
        "{waiting}; start here: {title}." if waiting else "Start here: {title}.",
        waiting=waiting,
        title=(Phrase(verb.text[:1].lower() + verb.text[1:], verb.link), *rest),
    )


def step_sentence(
    average: Average | None,
    kind: str | None,
    ids: Sequence[int],
    base: str,
    within: Mapping[str, Phrase] | None = None,
    hardware: HardwareUse | None = None,
    submitted: float = 0.0,
) -> Text:
    """Say how an average step is spent: mostly idle, busy, or in exposed communication.

    kind, ids  of the devices; None where no device work is recorded
    base       what shares refer to, see `grammar.share_base`
    within     category -> where most of its time passes
    hardware   how much of their peak busy devices use
    submitted  share of the idle time in which the next work is already submitted
    """
    if average is None:
        return text("There is no complete step to analyze.")
    total = average.duration_ns
    times = {name: getattr(average.categories, name) or 0.0 for name in CATEGORIES}
    if total <= 0:
        return text("No time passes in {base}.", base=base)
    if kind is None:
        return _largest_category_sentence(times, total, base, within or {})
    busy = sum(times[name] for name in BUSY_CATEGORIES)
    idle = total - busy
    if is_exposed(average):
        share = Phrase(f"{format_ratio(times['communication'] / total)} of {base}", link("trace"))
        return text("Exposed communication takes {share}.", share=share)
    copies_missing = average.categories.memcpy is None
    cause = idle_cause(average)
    if cause is None:
        least = f"at least {format_ratio(busy / total, 'down')}" if copies_missing else format_ratio(busy / total)
        share = Phrase(f"{least} of {base}", link("kernels"))
        return text(
            "{device} busy for {share}{communication}{mfu}.",
            device=_busy_subject(kind, ids),
            share=share,
            communication=_exposed_clause(times["communication"], times["memcpy"], busy),
            mfu=_mfu_clause(hardware),
        )
    most = f"at most {format_ratio(idle / total, 'up')}" if copies_missing else format_ratio(idle / total)
    share = Phrase(f"{most} of {base}", link("trace"))
    if submitted > SUBMITTED_SHARE:
        return text(
            "{device} idle for {share}, with its next work already submitted for {part}.",
            device=_idle_subject(kind, ids),
            share=share,
            part=Phrase(_part_of(submitted * idle, idle), link("idle")),
        )
    if average.categories.cpu_exec is None and average.categories.runtime is None:
        return text(
            "{device} idle for {share}; what the host does then isn't recorded.",
            device=_idle_subject(kind, ids),
            share=share,
        )
    verb, activity = _HOST_ACTIVITIES[cause]
    part = _part_of(times[cause], idle)
    mostly = "mainly " if times[cause] > 0.5 * idle else "the largest part of it "
    return text(
        "{device} idle for {share}, {mainly}while the host {verb}{activity} ({part}).",
        device=_idle_subject(kind, ids),
        share=share,
        mainly=mostly if " of " in part else "",
        verb=verb,
        activity=Phrase(activity, _EVIDENCE.get(cause, link("trace"))),
        part=part,
    )


def is_exposed(average: Average) -> bool:
    """Return whether exposed communication is the headline: much of the step, and no less than the idle time."""
    communication = average.categories.communication or 0.0
    return communication > EXPOSED_HEADLINE_SHARE * average.duration_ns and communication >= _idle_ns(average)


def idle_cause(average: Average) -> str | None:
    """Return the category with the most time while the device is idle, None where it is rather busy."""
    times = {
        name: time
        for name in CATEGORIES
        if name not in BUSY_CATEGORIES and (time := getattr(average.categories, name) or 0.0) > 0
    }
    if not times or _idle_ns(average) < MIN_IDLE_SHARE * average.duration_ns:
        return None
    return max(times, key=lambda name: times[name])


def _idle_ns(average: Average) -> float:
    return average.duration_ns - sum(getattr(average.categories, name) or 0.0 for name in BUSY_CATEGORIES)


def _idle_subject(kind: str, ids: Sequence[int]) -> str:
    return f"{capitalize(join_device_names(kind, ids))} {agree(max(len(ids), 1), 'is', 'are')}"


def _busy_subject(kind: str, ids: Sequence[int]) -> str:
    """Return the subject of "busy": several devices are busy while at least one of them is."""
    if len(ids) > 1:
        return f"At least one of {plural(len(ids), device_noun(kind))} is"
    return _idle_subject(kind, ids)


def _part_of(part: float, total: float) -> str:
    """Return "65.6 of 152 ms", or "152 ms" where both read alike."""
    texts = format_duration(part), format_duration(total)
    if texts[0] == texts[1]:
        return texts[1]
    (number, unit), (_, total_unit) = (each.rsplit(" ", 1) for each in texts)
    return f"{number if unit == total_unit else texts[0]} of {texts[1]}"


def _exposed_clause(communication: float, copies: float, busy: float) -> str:
    """Return how much of the busy time is exposed communication, which may be waiting, and how much are copies."""
    parts = []
    if communication >= _MIN_EXPOSED_SHARE * busy:
        parts.append(f"{format_duration(communication)} of exposed communication")
    if copies >= _MIN_COPIES_SHARE * busy:
        parts.append(f"{format_duration(copies)} of copies while no kernel runs")
    return f", including {' and '.join(parts)}" if parts else ""


def _mfu_clause(hardware: HardwareUse | None) -> Text:
    """Return the MFU of a busy device, or nothing where too little of its work is known."""
    if hardware is None or hardware.mfu is None or hardware.coverage < MIN_COVERAGE:
        return ()
    return text(
        ", at an MFU of {least}{mfu}",
        least="" if hardware.complete else "at least ",
        mfu=Phrase(format_ratio(hardware.mfu, "half" if hardware.complete else "down"), link("roofline")),
    )


def _largest_category_sentence(
    times: Mapping[str, float], total: float, base: str, within: Mapping[str, Phrase]
) -> Text:
    """Name the category with the most time, where no device work is recorded."""
    top = max(times, key=lambda name: times[name])
    name = CATEGORY_NAMES[top]
    return text(
        "{category} {are} the largest part of {base}: {share}{where}.",
        category=Phrase(capitalize(name), _EVIDENCE.get(top, link("trace"))),
        are="are" if top in ("kernel", "runtime", "cpu_exec") else "is",
        base=base,
        share=format_ratio(times[top] / total),
        where=text(", most of it in {what}", what=within[top]) if top in within else "",
    )


def unrecorded_sentence(where: Phrase | None) -> Text:
    """Name the function in which most time outside operators and runtime calls passes."""
    if where is None:
        return ()
    return text("Most of the time outside operators and runtime calls is spent in {where}.", where=where)


def largest_kernel_sentence(name: str, event: int, share: float, typical_noun: str = "") -> Text:
    """Name the kernel with the most time, as Kernels does; it opens its longest launch on the timeline.

    typical_noun  what a step is, see `steps.step_noun`, if the share is of typical ones; "" if of the whole trace
    """
    kernel = Phrase(shorten_name(name), link("trace", event=event))
    if typical_noun:
        return text(
            "{kernel} is the top kernel: {share} of kernel time in typical {noun}s.",
            kernel=kernel,
            share=format_ratio(share),
            noun=typical_noun,
        )
    return text("{kernel} is the top kernel: {share} of kernel time.", kernel=kernel, share=format_ratio(share))


_NONE_OF_IT = ", and none of it is communication"


def critical_path_sentence(
    times: Mapping[str, float] | None,
    base: str,
    exposed: float = 0.0,
    syncs: float = 0.0,
    *,
    waits_unrecorded: bool = False,
) -> Text:
    """Say what most of the critical path is; empty where no schedule explains the trace.

    times    ns of the path by `BOTTLENECKS`
    exposed  share of the step in exposed communication. It needn't be on the critical path: where the path is
             mostly something else, the sentence also says how much of the path is communication
    syncs    ns of the host's part in synchronization calls, which nothing recorded explains
    waits_unrecorded  the host waits for the device although no call is recorded that does, or communication has
             no recorded launch: waits for communication may look like host code then
    """
    if times is None or (total := sum(times.values())) <= 0:
        return ()
    largest = max(times, key=lambda part: times[part])
    path = "the trace's" if base == "the trace" else f"the {base.split()[-1]}'s"
    unexplained = largest == "host" and 2 * syncs > times["host"]
    part_ns, part_text = (syncs, UNEXPLAINED_WAIT) if unexplained else (times[largest], _PATH_TEXTS[largest])
    share = Phrase(f"{format_ratio(part_ns / total)} of {path} critical path", link("critical_path"))
    rest = ""
    if largest != "communication" and exposed >= _MIN_EXPOSED_SHARE:
        part = times["communication"]
        none = ", and none of it is known to be communication" if waits_unrecorded else _NONE_OF_IT
        rest = f", {format_ratio(part / total)} communication" if part else none
    return text("{share} is {part}{rest}.", share=share, part=part_text, rest=rest)


def redirect_operator_links(texts: Text, has_operators: bool) -> Text:
    """Return `texts`; without recorded operators the host runs annotated code, which the timeline shows."""
    if has_operators:
        return texts
    return tuple(
        Phrase(without_operators(each.text), link("trace")) if each.link == link("operators") else each
        for each in texts
    )


def without_operators(category: str) -> str:
    """Return what a category is called where no operator is recorded: annotations are left of it."""
    return _ANNOTATED.get(category, category)


def steps_explanation(
    steps: Sequence[Step],
    average: Average | None,
    reasons: Mapping[str, str],
    truncated: bool = False,
    noun: str = "step",
) -> Text:
    """Say how the steps vary, and which are left out; or why the trace is shown as one step.

    What varies in a truncated file is unknown, because the missing part may. `noun`: see `steps.step_noun`.
    """
    if "steps" in reasons:
        return text("{reason}.", reason=capitalize(reasons["steps"]))
    complete = [step for step in steps if step.complete]
    dropped = len(steps) - len(complete)
    left_out = (
        text(
            "{count} {are} left out.", count=plural(dropped, f"incomplete {noun}"), are=agree(dropped, "is", "are")
        )
        if dropped
        else ()
    )
    odd = average.outliers if average is not None else []
    filling = average.filling if average is not None else None
    first = _filling_sentence(complete[0], noun) if filling is not None else ()
    typical = [step for step in complete if step.name not in odd and step.name != filling]
    return sentences(_variation_sentence(typical, truncated, bool(odd), noun), first, left_out)


def _filling_sentence(step: Step, noun: str) -> Text:
    return text(
        "{noun} {name} before them takes {duration}, because the device falls behind the host in it.",
        noun=capitalize(noun),
        name=step.name,
        duration=format_duration(step.duration_ns),
    )


def _variation_sentence(complete: Sequence[Step], truncated: bool, typical: bool, noun: str) -> Text:
    """Say how long steps take, and what varies; `typical`: odd ones, which have their own sentence, are out."""
    if len(complete) < 2:
        return text("{count} recorded.", count=plural(len(complete), f"complete {noun}"))
    durations = [step.duration_ns for step in complete]
    count, times = (
        plural(len(complete), f"typical {noun}" if typical else noun),
        _range(min(durations), max(durations)),
    )
    if truncated:
        return text("{count} of {times} before the file ends.", count=count, times=times)
    ranges = {}
    for name in CATEGORIES:
        values = [getattr(step.categories, name) or 0 for step in complete]
        ranges[name] = min(values), max(values)
    widest = max(ranges, key=lambda name: ranges[name][1] - ranges[name][0])
    low, high = ranges[widest]
    same = format_duration(min(durations)) == format_duration(max(durations))
    if same or high - low < SIMILAR_STEPS_SHARE * max(durations):
        return text("{count} of about {duration}.", count=count, duration=format_duration(max(durations)))
    return text(
        "{count} of {times}; {category} {vary} most, from {range}.",
        count=count,
        times=times,
        category=Phrase(CATEGORY_NAMES[widest], _EVIDENCE.get(widest, link("trace"))),
        vary="vary" if widest in ("kernel", "runtime", "cpu_exec") else "varies",
        range=_range(low, high),
    )


def _range(low: float, high: float) -> str:
    return f"{format_duration(low)} to {format_duration(high)}"


def throughput_sentence(tokens: TokenCounts | None) -> Text:
    """Say how many tokens per second the model processes; empty where the trace doesn't record tokens."""
    if tokens is None:
        return ()
    return text(
        "The model processes {rate} tokens/s: {tokens} in {duration} ({prompt} prompt, {generated}; counted from "
        "the labels of {iterations}).",
        tokens=plural(tokens.prompt + tokens.generating, "token"),
        duration=format_duration(tokens.duration_ns),
        rate=format_number(tokens.per_second),
        prompt=f"{tokens.prompt:,}",
        generated=f"{tokens.generating:,} generated{' or drafted' if tokens.drafts else ''}",
        iterations=Phrase(plural(tokens.iterations, "iteration"), link("trace", event=tokens.event)),
    )


def iterations_sentence() -> Text:
    """Say what a step is in the trace of an inference engine, and which tab says more."""
    return text(
        "{serving} shows what an iteration of the engine costs and what to set.",
        serving=Phrase("Serving", link("serving")),
    )


def failure_sentence(trace: Trace) -> Text:
    """Say that allocations ran out of memory, and that Memory shows why; empty where none did."""
    failed = memory_failures(trace)
    if not len(failed):
        return ()
    names = [failed.devices[code].name for code in sorted(set(failed.device.tolist()))]
    shown = next((level.device.name for level in memory_levels(trace) if level.device.name in names), None)
    return text(
        "{count} on {devices} ran out of memory: {memory} shows what was in use.",
        count=plural(len(failed), "allocation"),
        devices=join_words(names),
        memory=Phrase("Memory", link("memory", device=shown)),
    )


def leak_sentence(trace: Trace, noun: str) -> Text:
    """Say that memory of the default device or another may leak, and when that fills it; empty where none does.

    Steps until it is full: (capacity - allocated at the end of the last step) / growth per step. Memory that the
    allocator caches or other processes hold makes them fewer, so the sentence says "at most".
    `noun`: see `steps.step_noun`.
    """
    default = default_device(trace)
    for level in sorted(memory_levels(trace), key=lambda level: level.device.name != default):
        device = level.device
        from torch_tb_profiler.analyses.memory.growth import memory_growth  # only where memory is recorded

        change = memory_growth(trace, level)
        if change is None or not change.growing or not change.per_step:
            continue
        if device.name != default and not change.is_large:
            continue
        # Some of what grows may be made up for by what is released.
        since = min(holder.since for holder in change.holders)
        net = int(change.live[-1] - change.live[since]) // max(len(change.live) - 1 - since, 1)
        rate = min(change.per_step, net)
        known = device.capacity is not None and rate > 0
        left = -((int(change.live[-1]) - (device.capacity or 0)) // rate) if known else None
        return text(
            "Memory{where} may leak: it grows by {size} per {noun}{full}.",
            where="" if device.name == default else f" on {device.name}",
            noun=noun,
            size=Phrase(format_bytes(change.per_step), link("memory", device=device.name, table="growth")),
            full=""
            if left is None or left < 1
            else f", which would fill {device.name} in at most {plural(left, f'more {noun}')}",
        )
    return ()
