"""The sentences on what averages leave out: odd steps, and time outside of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch_tb_profiler.analyses.shared.odd_steps import OddStep, odd_steps
from torch_tb_profiler.analyses.shared.outside_steps import outside_steps
from torch_tb_profiler.analyses.shared.typical_steps import average_step
from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.base.grammar import agree, plural
from torch_tb_profiler.model.kernels.short_names import short_kernel_names
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views._shared.text import (
    Phrase,
    Text,
    join_phrases,
    link,
    sentences,
    shorten_frame,
    shorten_name,
    text,
)

MAX_SENTENCES = 3
"""Most causes of odd steps that are told apart."""

ONE_RANK_NOTE = text(
    "Most of that is communication; one rank's file can't tell transfer from waiting for another rank."
)
"""What an odd step's communication is spent on is known beside the other ranks only, see `job/odd_steps.py`."""

_CATEGORY_CLAUSES = {
    "kernel": "in kernels",
    "memcpy": "in copies",
    "memset": "in memsets",
    "communication": "in exposed communication",
    "runtime": "in runtime calls",
    "dataloader": "loading data",
    "cpu_exec": "in operators or annotated code on the host",
    "other": "outside operators and runtime calls",
}


def odd_steps_sentence(trace: Trace) -> Text:
    """Say which steps differ from the typical ones, by how much, and what makes them longer; empty without any."""
    found, average = odd_steps(trace), average_step(trace)
    if not found or average is None:
        return ()
    by_cause: dict[tuple[str, str | None, bool], list[OddStep]] = {}
    for each in found:
        by_cause.setdefault((each.name, each.category, each.extra_ns > 0), []).append(each)
    groups = sorted(by_cause.values(), key=lambda group: -max(abs(each.extra_ns) for each in group))
    rest = sum(len(group) for group in groups[MAX_SENTENCES:])
    names = short_kernel_names(trace)
    lines = []
    for position, group in enumerate(groups[:MAX_SENTENCES]):
        who, cause = _group_sentence(group, names)
        if position:
            lines.append(text("{who}{cause}.", who=who, cause=cause))
        else:
            duration = format_duration(average.duration)
            lines.append(
                text("{first} than a typical step ({duration}){cause}.", first=who, duration=duration, cause=cause)
            )
        if group[0].communicates and ONE_RANK_NOTE not in lines:
            lines.append(ONE_RANK_NOTE)
    return sentences(
        *lines,
        text("{count} {differ} as well.", count=plural(rest, "more step"), differ=agree(rest, "differs", "differ"))
        if rest
        else (),
    )


def outside_steps_sentence(trace: Trace) -> Text:
    """Say how much of the time from the first step to the last is in no step, and what takes it; often empty."""
    found = outside_steps(trace)
    if found is None:
        return ()
    shown = shorten_name(shorten_frame(short_kernel_names(trace).get(found.name, found.name)))
    return sentences(
        text(
            "Between the first step and the last, {share} of the time is outside of steps ({time}{cause}).",
            share=format_ratio(found.share),
            time=format_duration(found.time),
            cause=text(", mostly in {what}", what=Phrase(shown, link("trace", event=found.event)))
            if found.name
            else "",
        ),
        text(
            "{stretch} follows step {step}; averages of steps don't count it.",
            stretch="It" if found.stretches == 1 else "The longest stretch",
            step=found.after,
        ),
    )


def _group_sentence(group: Sequence[OddStep], kernels: Mapping[str, str]) -> tuple[Text, Text]:
    """Return ("Steps 3 and 7 take 290 to 300 ms more", ", mostly in save_checkpoint") for steps of one cause."""
    longest = max(group, key=lambda each: abs(each.extra_ns))
    times = sorted(abs(each.extra_ns) for each in group)
    low, high = format_duration(times[0]), format_duration(times[-1])
    who = text(
        "{steps} {names} {take} {time} {more}",
        steps=agree(len(group), "Step", "Steps"),
        names=join_phrases(each.step for each in group),
        take=agree(len(group), "takes", "take"),
        time=low if low == high else f"{low} to {high}",
        more="more" if longest.extra_ns > 0 else "less",
    )
    if longest.name:
        shown = kernels.get(longest.name) or shorten_name(shorten_frame(longest.name))
        return who, text(", mostly in {what}", what=Phrase(shown, link("trace", event=longest.event)))
    if longest.category is not None:
        return who, text(", mostly {where}", where=_CATEGORY_CLAUSES[longest.category])
    return who, ()
