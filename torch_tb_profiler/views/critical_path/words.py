"""The critical path in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.model.schedule.schedule import MIN_EXPLAINED_SHARE
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.vendors.recording_options import RecordingTopic, recording_option
from torch_tb_profiler.views._shared.text import Phrase, Text, link, sentences, shorten_name, text, worker_name
from torch_tb_profiler.views._shared.wording import clock_shift_sentence
from torch_tb_profiler.views.critical_path.payload import PathSummary, RankOnPath, TargetRow

CATEGORIES = {
    "data_loading": "Data loading",
    "compile": "Compilation",
    "sync": "Synchronization",
    "allocator": "Allocator",
    "copy_staging": "Copy staging",
    "launch_call": "Launch calls",
    "runtime": "Other calls",
    "host_communication": "Host communication",
    "wait": "Locks, queues and sleeps",
    "profiler": "Profiler",
    "operator": "Operators",
    "python": "Python",
    "annotation": "Annotated code",
    "unrecorded": "Not recorded",
    "kernel": "Kernels",
    "communication": "Communication",
    "copy": "Copies and memsets",
    "launch_latency": "Launch latency",
    "kernel_gap": "Gaps between kernels",
    "stream_wait": "Stream wait latency",
    "wake_up": "Wake-up after a wait",
    "hand_off": "Hand-off between threads",
    "before_recording": "Before the recording",
}

_SUBJECTS = {
    "host": "The host",
    "device": "Device work",
    "communication": "Communication",
    "latency": "Latency between host and device",
}

_ALONE = {
    "data_loading": "Data loading",
    "allocator": "The allocator",
    "wait": "Waiting in locks, queues and sleeps",
    "communication": "All communication",
    "host": "All host work",
    "device": "All kernels and copies",
}

NOWHERE = {
    "operator": "Outside operators",
    "module": "Outside modules",
    "line": "No line of the program recorded",
}
"""What of the path belongs to nothing of a kind."""

_NO_PLACES: dict[str, tuple[str, RecordingTopic]] = {
    "operator": ("no operator is recorded", "operators"),
    "module": ("no nn.Module is recorded", "modules"),
    "line": ("no Python source is recorded", "stacks"),
}
"""Why all of the path belongs to nothing of a kind: what is not recorded."""

_LIT = link("trace", path="true")
"""The timeline with the path lit."""

_SAME = 0.005
"""A change below this share of the step is none to speak of."""

_MOST = 0.5
"""A range around more than this share of the step is rather its program than what to change in it."""

_PART = 0.1
"""What is named in place of the range around it takes at least this share of the step."""

_LIMITS = text(
    "The recorded schedule is replayed with shorter pieces. Contention for SMs and memory, clocks, the GIL, locks "
    "and what the allocator would do instead are not modeled; a removed wait assumes that nobody needs the value; "
    "what the profiler itself costs is inside."
)


def limits(clock_shift_ns: int) -> Text:
    """What no what-if knows, and how the clocks were brought together."""
    return sentences(_LIMITS, clock_shift_sentence(clock_shift_ns))


def title(kind: str, name: str, kernels: Mapping[str, str]) -> str:
    """A target in people's words; `kernels`: their short names."""
    if not name:
        return _ALONE[kind]
    return kernels.get(name, name) if kind == "kernel" else name


def evidence(category: str) -> str | None:
    """What a click on a category opens."""
    tabs = {"operator": "operators", "launch_call": "operators", "kernel": "kernels", "copy": "kernels"}
    return link(tabs[category]) if category in tabs else _LIT


def headline(path: PathSummary, times: Mapping[str, float], targets: Sequence[TargetRow], recorded: bool) -> Text:
    """What most of the path is, and the step if that were twice as fast; `times`: ns of the path by BOUNDS."""
    whole = "the step" if recorded else "the trace"
    if path.duration_ns <= 0:
        return text("No time passes in {whole}.", whole=whole)
    bound, said = _bound_clause(times, whole)
    half = next((row.step_ns[2] for row in targets if row.target == bound and row.step_ns), None)
    if half is None:
        return text("{said}.", said=said)
    now = format_duration(path.duration_ns)
    if path.duration_ns - half < _SAME * path.duration_ns:
        return text("{said}; twice as fast, {whole} still takes {now}.", said=said, whole=_a(recorded), now=now)
    return text(
        "{said}; twice as fast, {whole} takes {then}, not {now}.",
        said=said,
        whole=_a(recorded),
        then=format_duration(half),
        now=now,
    )


def _bound_clause(times: Mapping[str, float], base: str) -> tuple[str, Text]:
    """Return the largest part of the path and a clause: "The host bounds 92% of the step"."""
    bound = max(times, key=lambda part: times[part])
    share = Phrase(f"{format_ratio(times[bound] / sum(times.values()))} of {base}", _LIT)
    return bound, text("{subject} bounds {share}", subject=_SUBJECTS[bound], share=share)


def host_headline(path: PathSummary, targets: Sequence[TargetRow], recorded: bool) -> Text | None:
    """Of a step without device work its largest part: that the host bounds it would say nothing."""
    best = _best(path, targets)
    if best is None or best.step_ns is None:
        return None
    return text(
        "{subject} takes {share} of {whole}; without it, {a} takes {then}, not {now}.",
        subject=_subject(best),
        share=format_ratio(best.path_ns / path.duration_ns),
        whole="the step" if recorded else "the trace",
        a=_a(recorded),
        then=format_duration(best.step_ns[4]),
        now=format_duration(path.duration_ns),
    )


def _a(recorded: bool) -> str:
    return "a step" if recorded else "the trace"


def explanation(path: PathSummary, targets: Sequence[TargetRow], explained: float | None, recorded: bool) -> Text:
    """The named part that would bring most if it were gone; what faster kernels bring; how sure this is."""
    if explained is None:
        return text(
            "Only the host is recorded: this is the time of its main thread, and what that waits for in other "
            "threads and processes is not known."
        )
    parts_of_text: list[Text] = []
    best = _best(path, targets)
    if best is not None and best.step_ns:
        without = (
            "Without waits in {subject}, {whole} takes {then}."
            if best.kind == "sync"
            else ("{subject} is {time} of that path; without it, {whole} takes {then}.")
        )
        parts: dict[str, str | Phrase] = {
            "subject": _subject(best),
            "time": format_duration(best.path_ns),
            "whole": _a(recorded),
            "then": format_duration(best.step_ns[4]),
        }
        parts_of_text.append(text(without, **parts))
    kernels = next((row.step_ns for row in targets if row.target == "device" and row.step_ns), None)
    if kernels is not None:
        gain = path.duration_ns - kernels[2]
        gains = "nothing" if gain < _SAME * path.duration_ns else format_duration(gain)
        parts_of_text.append(text("Halving all kernels gains {gains}.", gains=gains))
    if explained < MIN_EXPLAINED_SHARE:
        parts_of_text.append(
            text(
                "{share} of the device work starts when the schedule says, so this is uncertain.",
                share=f"Only {format_ratio(explained)}" if explained else "None",
            )
        )
    return sentences(*parts_of_text)


def _best(path: PathSummary, targets: Sequence[TargetRow]) -> TargetRow | None:
    """The part with a name that would bring most if it were gone; None if none brings anything to speak of."""
    least = _SAME * path.duration_ns
    gains = [
        (path.duration_ns - row.step_ns[4], row)
        for row in targets
        if row.step_ns and row.target not in ("host", "device")
    ]
    named = [row for gain, row in sorted(gains, key=lambda each: -each[0]) if gain >= least]
    if not named:
        return None
    return next((row for row in named[1:] if _is_inside(row, named[0], path)), named[0])


def _is_inside(row: TargetRow, around: TargetRow, path: PathSummary) -> bool:
    """Whether a part worth naming lies in a range around most of the path: both have more time than it."""
    return (
        _is_range(around)
        and not _is_range(row)
        and around.path_ns > _MOST * path.duration_ns
        and row.path_ns >= _PART * path.duration_ns
        and around.path_ns + row.path_ns > path.duration_ns
    )


def _is_range(row: TargetRow) -> bool:
    """Of code as its author divides it; operators are named with their library."""
    return row.kind == "module" or (row.kind == "operator" and "::" not in row.title)


def _subject(row: TargetRow) -> Phrase:
    subject = shorten_name(row.title)
    python = "true" if row.kind == "module" else None  # a module is a Python frame, folded until asked for
    return Phrase(subject, None if row.event is None else link("trace", event=row.event, python=python))


def job_headline(ranks: Sequence[RankOnPath], duration_ns: float) -> Text:
    """The rank with most of the job's path, and what most of that is beside the work of its device."""
    if not ranks:
        return text("No rank has a complete step to find a path through.")
    first = ranks[0]
    name = worker_name(first.rank, first.worker)
    said = text(
        "The job's path is on {name} for {share} of the step",
        name=Phrase(name, link("trace", worker=first.worker, path="true")),
        share=format_ratio(first.path_ns / duration_ns),
    )
    host = max(
        (each for each in first.categories if each.group != "device"), key=lambda each: each.time_ns, default=None
    )
    if host is None or host.time_ns < _SAME * duration_ns:
        return text("{said}.", said=said)
    part, time = host.title[:1].lower() + host.title[1:], format_duration(host.time_ns)
    return text("{said}, {time} of it in {part}.", said=said, time=time, part=part)


def no_places(trace: Trace, by: str) -> str:
    """Why all of the path belongs to nothing of a kind."""
    said, topic = _NO_PLACES[by]
    return f"{said} ({recording_option(trace, topic)})"
