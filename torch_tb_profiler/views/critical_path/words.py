"""The sentences of the Critical path view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch_tb_profiler.analyses.schedule.what_if import explained_work
from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.base.grammar import capitalize, share_base
from torch_tb_profiler.model.schedule.schedule import MIN_EXPLAINED_SHARE
from torch_tb_profiler.views._shared.text import (
    Phrase,
    Text,
    device_noun,
    link,
    sentences,
    shorten_name,
    text,
)
from torch_tb_profiler.views._shared.wording import UNEXPLAINED_WAIT, clock_shift_sentence
from torch_tb_profiler.views.critical_path.payload import PathSummary, TargetRow
from torch_tb_profiler.views.critical_path.titles import TIMELINE_WITH_PATH

_BOTTLENECK_PARTS = {
    "host": "host code",
    "device": "kernels and copies",
    "communication": "communication",
    "rank_wait": "waiting for other ranks",
    "latency": "latency (launches, wake-ups, gaps between kernels)",
}
"""What is on the path, by bottleneck; waiting for other ranks is told apart where they are compared."""

_MIN_MAJORITY_SHARE = 0.5
"""Share of the path from which on a step is called bound by one part."""

_MIN_PIPELINE_RATIO = 1.05
"""A saving this many times this rank's own communication includes transfers of others; rounding explains less."""

_MIN_ALLOCATOR_RATIO = 1.1
"""A saving this many times the allocator's time on the path includes its waits for the device."""

MIN_CHANGE = 0.005
"""A smaller change, as a share of the step, isn't mentioned."""

_MIN_RANK_WAIT_SHARE = 0.02
"""From this share of the path on, waiting for other ranks absorbs what a rank's own work would save."""

_MIN_ENCLOSING_SHARE = 0.5
"""An annotation around more than this share of the step is the program itself, not something to change in it."""

_MIN_INNER_SHARE = 0.1
"""Smallest share of the step of a part that is named instead of the annotation around it."""

_LIMITS = text(
    "Estimates replay the recorded schedule with shorter parts. They ignore contention for SMs and memory, clock "
    "speeds, the GIL, locks, what the allocator would do instead, and that operators are slower after memory was "
    "freed. Estimates in the table also ignore how fast a kernel can get. Removing a wait assumes that the host "
    "doesn't need the result. The profiler's own overhead is included."
)


_ALONE_LIMIT = text(
    "Communication includes waiting for other ranks, which a faster network doesn't shorten; {distributed} tells "
    "them apart.",
    distributed=Phrase("Distributed", link("distributed")),
)

_UNRECORDED_WAITS_LIMIT = text(
    "No recorded call waits for the device. Where the host does nothing until right after the device finishes, it "
    "is assumed to be waiting."
)

_UNLINKED_LIMIT = text(
    "Some communication has no recorded launch, so no path leads through it: where the host waits for it, that "
    "looks like host code."
)

COMPARED_LIMIT = text("What-ifs of communication shorten only the transfer, so that is the most they can save.")
"""Added to the limits once the other ranks are read."""


def limits(
    clock_shift_ns: int, *, communicates: bool = False, waits_unrecorded: bool = False, unlinked: bool = False
) -> Text:
    """Say what no what-if models, what communication contains, which waits are inferred, and the clock's shift.

    unlinked  communication has no recorded launch
    """
    return sentences(
        _LIMITS,
        _ALONE_LIMIT if communicates else (),
        _UNRECORDED_WAITS_LIMIT if waits_unrecorded else (),
        _UNLINKED_LIMIT if unlinked else (),
        clock_shift_sentence(clock_shift_ns),
    )


def is_communication(row: TargetRow) -> bool:
    """Return whether a target is communication, which may contain waiting for other ranks."""
    return row.kind in ("communication", "collective")


def times_by_part(path: PathSummary) -> dict[str, float]:
    """Return ns of the path by the parts that the headline tells apart."""
    times = dict.fromkeys(_BOTTLENECK_PARTS, 0.0)
    for each in path.categories:
        times[each.name if each.name in times else each.group] += each.time_ns
    return times


def headline(
    path: PathSummary,
    times: Mapping[str, float],
    targets: Sequence[TargetRow],
    recorded: bool,
    kind: str,
    *,
    explained: float | None = None,
    compared: bool = False,
    waits: bool = False,
    noun: str = "step",
    missing_kernels: str | None = None,
    unlinked: bool = False,
) -> Text:
    """Say what most of the path is, and how long the step would be if that were twice as fast.

    Where the schedule explains too little of the device work to be replayed, what limits the step is likely only.
    Starts that nothing explains count as latency: a path of mostly those is unknown. Communication that isn't
    compared with other ranks may be waiting for them, so nothing is said about a faster network.

    times  ns of the path by BOTTLENECKS, or by `times_by_part` where the ranks are compared
    kind   of device, as in `device_kind`
    explained  share of the device work whose start the schedule explains; None without device work
    compared  all ranks are compared, so that communication contains no waiting
    waits     it is known that this rank waits for one that isn't compared
    noun      what a step is, see `steps.step_noun`
    missing_kernels  why no kernels were recorded although some were launched, None if that isn't so
    unlinked  communication has no recorded launch: the host may wait for it where it seems to work
    """
    base = share_base(path.steps, recorded, bool(path.odd), noun)
    if path.duration_ns <= 0:
        return text("No time passes in {base}.", base=base)
    unknown = missing_kernels
    if explained is not None and _is_unknown(times, explained):
        unknown = _unexplained_starts(explained, recorded, noun)
    if unknown is not None:
        return text("What limits {base} is unknown: {reason}.", base=base, reason=unknown)
    likely = unlinked or (explained is not None and explained < MIN_EXPLAINED_SHARE)
    bottleneck = max(times, key=lambda part: times[part])
    if bottleneck == "host" and _is_unexplained(path):
        share = _sync_ns(path) / path.duration_ns
        return _share_sentence(base, share, UNEXPLAINED_WAIT, "bound by an unrecorded wait", likely)
    share, part = times[bottleneck] / sum(times.values()), _BOTTLENECK_PARTS[bottleneck]
    if bottleneck == "communication" and not compared:
        part = "communication, including any waiting for other ranks"
    finding = _share_sentence(base, share, part, _bound_phrase(bottleneck, kind), likely)
    if bottleneck == "communication" and not compared:
        return finding
    if bottleneck == "rank_wait":
        return sentences(finding, _transfer_effect(path, targets) if compared else ())
    if waits or _waits_for_ranks(path):
        return sentences(finding, _ALONE_EFFECT)
    return sentences(finding, _speedup_effect(path, targets, bottleneck, _step(recorded, noun)))


def _bound_phrase(bottleneck: str, kind: str) -> str:
    """Return what a step is called most of whose path is one part: "host-bound", "bound by other ranks"."""
    if bottleneck == "rank_wait":
        return "bound by other ranks"
    return f"{device_noun(kind) if bottleneck == 'device' else bottleneck}-bound"


def _share_sentence(base: str, share: float, part: str, bound: str, likely: bool) -> Text:
    """Say what share of the path its largest part is, and what the step is bound by if that is most of it."""
    share_phrase, hedge = Phrase(format_ratio(share), TIMELINE_WITH_PATH), "likely " if likely else ""
    if share >= _MIN_MAJORITY_SHARE:
        return text(
            "{base} is {likely}{bound}: {share} of its critical path is {part}.",
            base=capitalize(base),
            likely=hedge,
            bound=bound,
            share=share_phrase,
            part=part,
        )
    return text(
        "The largest part of the critical path of {base} is {likely}{part} ({share}).",
        base=base,
        likely=hedge,
        share=share_phrase,
        part=part,
    )


def _speedup_effect(path: PathSummary, targets: Sequence[TargetRow], bottleneck: str, step: str) -> Text:
    """Say what a bottleneck twice as fast would make of the step; no kernel gets faster than its roofline."""
    half = next((row.step_ns[2] for row in targets if row.target == bottleneck and row.step_ns), None)
    if half is None:
        return ()
    shortens = path.duration_ns - half >= MIN_CHANGE * path.duration_ns
    condition = _AT_BEST if bottleneck != "communication" and _condition_text(path) else ""
    if shortens and bottleneck == "device" and path.attainable_ns is not None:
        return _attainable_effect(path, max(half, path.attainable_ns), step, condition)
    it = "them" if bottleneck == "device" else _BOTTLENECK_PARTS[bottleneck]
    now = format_duration(path.duration_ns)
    if not shortens:
        return text("Making {it} twice as fast wouldn't shorten {step} ({now}).", it=it, step=step, now=now)
    return text(
        "Making {it} twice as fast would cut {step}{before} to {then}{condition}.",
        it=it,
        step=step,
        before="" if condition else f" from {now}",
        then=_step_time(path, half),
        condition=condition,
    )


def _attainable_effect(path: PathSummary, then: float, step: str, condition: str) -> Text:
    """Say what kernels save at most that can't all be twice as fast; the roofline of copies isn't known."""
    now = path.duration_ns
    if now - then < MIN_CHANGE * now:
        return text("They run at their roofline, so faster ones can't shorten {step}.", step=step)
    return text(
        "Speedups of up to 2× ({within} their roofline) would cut {step} to {then}{condition}.",
        within="kernels within" if _copies_matter(path) else "within",
        step=step,
        then=_step_time(path, then),
        condition=condition,
    )


def _sync_ns(path: PathSummary) -> float:
    return sum(each.time_ns for each in path.categories if each.name == "sync")


def _is_unexplained(path: PathSummary) -> bool:
    """Return whether most of the host's part are synchronization calls that nothing recorded ends.

    A call that waits for recorded work isn't on the path while that runs.
    """
    return 2 * _sync_ns(path) > sum(each.time_ns for each in path.categories if each.group == "host")


_AT_BEST = " at best"
"""Added to a step time where work may wait for communication that it didn't wait for in the recording."""

_ALONE_EFFECT = text("Faster work on this rank alone would only make it wait longer.")


def _waits_for_ranks(path: PathSummary) -> bool:
    """Return whether a rank notably waits for others, so that its own work isn't what a step takes."""
    waiting = sum(each.time_ns for each in path.categories if each.name == "rank_wait")
    return waiting >= _MIN_RANK_WAIT_SHARE * path.duration_ns


def _transfer_effect(path: PathSummary, targets: Sequence[TargetRow]) -> Text:
    """Say what a faster network saves of a step that mostly waits for other ranks."""
    without = next((row.step_ns[-1] for row in targets if row.target == "communication" and row.step_ns), None)
    if without is None:
        return ()
    saved = path.duration_ns - without
    if saved < MIN_CHANGE * path.duration_ns:
        return text("A faster network wouldn't help.")
    own = sum(each.time_ns for each in path.categories if each.name == "communication")
    # Transfers pass one after the other through a pipeline: this rank waits for all before its own.
    return text(
        "A faster network would save at most {saved}{where}.",
        saved=format_duration(saved, "up"),
        where=", including transfers between the ranks that this one waits for"
        if saved > _MIN_PIPELINE_RATIO * own
        else "",
    )


def host_headline(
    path: PathSummary, targets: Sequence[TargetRow], recorded: bool, noun: str = "step"
) -> Text | None:
    """Say what the largest part of a step without device work is; that it is host-bound would be obvious.

    noun  what a step is, see `steps.step_noun`
    """
    best = _find_best_target(path, targets)
    if best is None or best.step_ns is None:
        return None
    return text(
        "{subject} is {share} of the critical path. Removing it would cut {step} from {now} to {then}{condition}.",
        subject=_subject_phrase(best),
        share=format_ratio(best.path_ns / path.duration_ns),
        step=_step(recorded, noun),
        now=format_duration(path.duration_ns),
        then=_step_time(path, best.step_ns[4]),
        condition=_condition_text(path),
    )


def explanation(
    path: PathSummary,
    targets: Sequence[TargetRow],
    explained: float | None,
    recorded: bool,
    *,
    compared: bool = False,
    waits: bool = False,
    noun: str = "step",
    missing_kernels: str | None = None,
) -> Text:
    """Say which named part would save most if it were gone, what faster kernels save, and how sure this is.

    compared  all ranks are compared, so that communication contains no waiting
    waits     it is known that this rank waits for one that isn't compared
    noun      what a step is, see `steps.step_noun`
    missing_kernels  why no kernels were recorded although some were launched, None if that isn't so
    """
    if explained is None and missing_kernels is not None:
        return text(
            "Only the host was recorded, so this path follows its main thread, including its waits for the device."
        )
    if explained is None:
        return text(
            "Only the host was recorded, so this path follows its main thread. Waits on other threads or "
            "processes aren't recorded."
        )
    if _is_unknown(times_by_part(path), explained):
        return ()  # the headline says why
    parts: list[Text] = []
    waits = waits or _waits_for_ranks(path)
    best = (
        None
        if waits
        else _find_best_target(path, [row for row in targets if compared or not is_communication(row)])
    )
    if best is not None and best.step_ns:
        template = (
            "Removing the waits in {subject} would cut {step} to {then}{condition}."
            if best.kind == "sync"
            else "{subject} accounts for {time} of the critical path; removing it would cut {step} to "
            "{then}{condition}."
        )
        subject = _subject_phrase(best)
        # While the allocator's calls wait, the device's work is on the path.
        saved = path.duration_ns - best.step_ns[4]
        if best.target == "allocator" and saved > _MIN_ALLOCATOR_RATIO * best.path_ns:
            template = (
                "Removing {subject}, with their waits for the device, would cut {step} to {then}{condition}."
            )
            subject = Phrase("the allocator's calls", subject.link)
        values: dict[str, str | Phrase] = {
            "subject": subject,
            "time": format_duration(best.path_ns),
            "step": _step(recorded, noun),
            "then": _step_time(path, best.step_ns[4]),
            "condition": "" if is_communication(best) else _condition_text(path),
        }
        parts.append(text(template, **values))
    kernels = next((row.step_ns for row in targets if row.target == "device" and row.step_ns), None)
    if kernels is not None and not waits:
        saved = path.duration_ns - max(kernels[2], path.attainable_ns or 0)
        if path.duration_ns - kernels[2] < MIN_CHANGE * path.duration_ns:
            parts.append(text("Faster kernels wouldn't help."))
        elif saved < MIN_CHANGE * path.duration_ns:
            parts.append(text("Kernels run at their roofline, so they can't be notably faster."))
        elif path.attainable_ns is not None:
            template = (
                "Kernels and copies up to twice as fast (kernels within their roofline) would save {most}{saved}."
                if _copies_matter(path)
                else "Kernels up to twice as fast (within their roofline) would save {most}{saved}."
            )
            parts.append(text(template, **_saving_texts(path, saved)))
        else:
            work = "Kernels and copies" if _copies_matter(path) else "Kernels"
            template = "{work} twice as fast would save {most}{saved}."
            parts.append(text(template, work=work, **_saving_texts(path, saved)))
    if explained < MIN_EXPLAINED_SHARE:
        parts.append(text("This is uncertain: {reason}.", reason=_unexplained_starts(explained, recorded, noun)))
    return sentences(*parts)


def _is_unknown(times: Mapping[str, float], explained: float) -> bool:
    """Return whether most of the path is latency between starts of which most aren't explained."""
    return explained < _MIN_MAJORITY_SHARE and max(times, key=lambda part: times[part]) == "latency"


def _unexplained_starts(explained: float, recorded: bool, noun: str) -> str:
    work = explained_work(recorded, noun)
    if explained == 0:
        return f"the recorded launches and syncs don't explain when {work} starts"
    return f"the recorded launches and syncs explain the start of only {format_ratio(explained)} of {work}"


def _copies_matter(path: PathSummary) -> bool:
    """Return whether copies are a notable part of the path beside the kernels."""
    copies = sum(each.time_ns for each in path.categories if each.name == "copy")
    return copies >= MIN_CHANGE * path.duration_ns


def _step_time(path: PathSummary, ns: float) -> str:
    """Format the time of a changed step; "at best" it is this, so it isn't rounded up."""
    return format_duration(ns, "down" if path.saves_at_most else "half")


def _saving_texts(path: PathSummary, ns: float) -> dict[str, str]:
    """Return what is saved, "at most" where the step is so long only "at best"."""
    if path.saves_at_most:
        return {"most": "at most ", "saved": format_duration(ns, "up")}
    return {"most": "", "saved": format_duration(ns)}


def _condition_text(path: PathSummary) -> str:
    """Return what a replay of one rank assumes: its collectives end as long after they start as they did."""
    communicates = any(each.name in ("communication", "rank_wait") for each in path.categories)
    condition = " if communication time stays the same" if communicates else ""
    return f"{_AT_BEST}{condition}" if path.saves_at_most else condition


def _step(recorded: bool, noun: str) -> str:
    return f"the {noun}" if recorded else "the trace"


def _find_best_target(path: PathSummary, targets: Sequence[TargetRow]) -> TargetRow | None:
    """Return the named target that would save most if it were gone, or None if none saves anything noticeable."""
    minimum = MIN_CHANGE * path.duration_ns
    savings = [
        (path.duration_ns - row.step_ns[4], row)
        for row in targets
        if row.step_ns and row.target not in ("host", "device")
    ]
    named = [row for saved, row in sorted(savings, key=lambda each: -each[0]) if saved >= minimum]
    if not named:
        return None
    return next((row for row in named[1:] if _is_inside(row, named[0], path)), named[0])


def _is_inside(row: TargetRow, enclosing: TargetRow, path: PathSummary) -> bool:
    """Return whether a part worth naming lies in an annotation around most of the path.

    The part must lie inside if both together take longer than the path.
    """
    return (
        _is_user_range(enclosing)
        and not _is_user_range(row)
        and enclosing.path_ns > _MIN_ENCLOSING_SHARE * path.duration_ns
        and row.path_ns >= _MIN_INNER_SHARE * path.duration_ns
        and enclosing.path_ns + row.path_ns > path.duration_ns
    )


def _is_user_range(row: TargetRow) -> bool:
    """Return whether a target is code as its author divides it; operators are named with their library."""
    return row.kind == "module" or (row.kind == "operator" and "::" not in row.title)


def _subject_phrase(row: TargetRow) -> Phrase:
    python = "true" if row.kind == "module" else None  # a module is a Python frame, which the timeline folds
    return Phrase(
        shorten_name(row.title), None if row.event is None else link("trace", event=row.event, python=python)
    )
