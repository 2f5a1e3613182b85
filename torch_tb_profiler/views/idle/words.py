"""The sentences of the Idle time view."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.schedule.what_if import explained_work
from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.base.grammar import capitalize, share_base, with_article
from torch_tb_profiler.model.devices import device_name
from torch_tb_profiler.views._shared.job.exposed import (
    CommunicationParts,
    awaited_clause,
    communication_sentence,
)
from torch_tb_profiler.views._shared.text import (
    Phrase,
    Text,
    device_noun,
    link,
    plain,
    sentences,
    shorten_name,
    text,
)
from torch_tb_profiler.views._shared.wording import clock_shift_sentence, unrecorded_wait_sentence
from torch_tb_profiler.views.idle.payload import AwaitedRank, IdlePayload, IdleRow

CAUSE_CLAUSES = {
    "data_loading": "waiting for data loading",
    "compile": "waiting for compilation",
    "sync": "while the host is in a synchronization call",
    "allocator": "waiting for the allocator",
    "copy_staging": "waiting for calls that stage copies",
    "launch_call": "waiting for launch calls",
    "runtime": "waiting for other runtime calls",
    "host_communication": "waiting for communication on the host",
    "wait": "while the host waits in locks, queues or sleeps",
    "profiler": "waiting for the profiler itself",
    "operator": "waiting for operators on the host",
    "python": "waiting for Python code",
    "annotation": "waiting for annotated code",
    "unrecorded": "waiting for unrecorded host code",
    "launch_latency": "in launch latency",
    "kernel_gap": "in gaps between queued kernels",
    "graph_gap": "in gaps inside graphs",
    "waits_for_stream": "waiting for other streams",
    "device_wait": "in device-side waits, with work already submitted",
    "unlinked": "before work whose launch wasn't recorded",
    "before_recording": "before its first recorded work, which was already submitted",
    "tail": "after its last work",
}
"""Cause -> the end of a sentence that says what a device idles for: "66 ms of it waiting for data loading"."""

_WAITS_UNKNOWN = "{one} rank's trace doesn't show which ranks its collectives wait for; {distributed} does"
_DISTRIBUTED = Phrase("Distributed", link("distributed"))

WAITS_UNKNOWN = text(_WAITS_UNKNOWN, one="one", distributed=_DISTRIBUTED)
"""Why the time spent waiting for other ranks is null while only one rank is read."""

SEVERAL_DEVICES = "This rank has several devices, and waits for other ranks can't be assigned to one of them."

ONE_STREAM = "Waits for other ranks are known for the device as a whole, not for a single stream."

NOT_EXPOSED = "No communication is exposed in these steps."
NOT_COMPARED = "No other rank recorded a matching collective."
"""Further reasons, once the other ranks are read."""

MAX_BUSY_IDLE_SHARE = 0.05
"""A device that is idle for less than this share of the time is called busy."""

_MIN_EXPOSED_SHARE = 0.01
"""Exposed communication below this share of the busy time is not mentioned."""

_NO_LAUNCH_FOLLOWS = (
    "tail", "before_recording", "unlinked", "kernel_gap", "graph_gap", "waits_for_stream", "device_wait",
)  # fmt: skip
"""Causes of idle time that no late launch ends, so that the device needn't have caught up with the host."""


def headline(payload: IdlePayload, kind: str) -> Text:
    """Say how long the device is idle and for what most; `kind` of device as in `device_kind`."""
    if payload.counted == 0:
        return text("There is no complete {noun} to analyze.", noun=payload.step_noun)
    if payload.duration_ns <= 0:
        return text("No time passes in {base}.", base=_share_base(payload))
    device, base = _device(payload, kind), _share_base(payload)
    share = payload.idle_ns / payload.duration_ns
    bounded = "idle_ns" in payload.reasons  # copies may be missing
    if share < MAX_BUSY_IDLE_SHARE or not payload.causes:
        least = f"at least {format_ratio(1 - share, 'down')}" if bounded else format_ratio(1 - share)
        busy = Phrase(f"{least} of {base}", link("kernels"))
        return text(
            "{device} is busy for {share}{exposed}.", device=device, share=busy, exposed=_exposed_clause(payload)
        )
    most = f"at most {format_ratio(share, 'up')}" if bounded else format_ratio(share)
    idle, duration = payload.idle_ns / payload.counted, payload.duration_ns / payload.counted
    cause, (time, longest) = max(times_by_cause(payload.causes).items(), key=lambda each: each[1][0])
    return text(
        "{device} is idle for {share} ({idle} of {duration}), {time} of it {cause}.",
        device=device,
        share=Phrase(f"{most} of {base}", _evidence_text(payload, max(payload.causes, key=_length))),
        idle=format_duration(idle, "up" if bounded else "half"),
        duration=format_duration(duration),
        time=format_duration(time / payload.counted),
        cause=Phrase(CAUSE_CLAUSES[cause], _evidence_text(payload, longest)),
    )


def _share_base(payload: IdlePayload) -> str:
    """Return what shares refer to; a chosen step is "the step", typical or not."""
    has_odd = payload.counted > 1 and any(each.complete and not each.typical for each in payload.steps)
    return share_base(payload.counted, payload.steps_recorded, has_odd, payload.step_noun)


def _exposed_clause(payload: IdlePayload) -> str:
    """Return the clause about a busy device's exposed communication, which may be waiting for other ranks."""
    exposed = payload.exposed_communication_ns
    if exposed < _MIN_EXPOSED_SHARE * (payload.duration_ns - payload.idle_ns):
        return ""
    base = _share_base(payload)
    return f"; {format_ratio(exposed / payload.duration_ns)} of {base} is exposed communication"


def explanation(payload: IdlePayload, *, waits_unrecorded: bool = False) -> Text:
    """Say the next cause, which calls drained the queue, and whether the host launches too slowly.

    waits_unrecorded  the host waits for the device although no call is recorded that does
    """
    if "causes" in payload.reasons:
        return text("{reason}.", reason=capitalize(plain(payload.reasons["causes"])))
    if payload.idle_ns <= 0 or payload.counted == 0:
        return ()
    ranked = sorted(times_by_cause(payload.causes).items(), key=lambda each: -each[1][0])
    busy = payload.idle_ns < MAX_BUSY_IDLE_SHARE * payload.duration_ns  # the headline names no cause then
    next_cause: Text = ()
    if len(ranked) > (0 if busy else 1):
        cause, (time, longest) = ranked[0 if busy else 1]
        next_cause = text(
            "{rank}{time}{per_step} {cause}.",
            rank="Largest idle time: " if busy else "Next: ",
            time=format_duration(time / payload.counted),
            per_step=f" per {payload.step_noun}" if payload.steps_recorded and payload.counted > 1 else "",
            cause=Phrase(CAUSE_CLAUSES[cause], _evidence_text(payload, longest)),
        )
    main_cause = ranked[0][0] if ranked else ""
    return sentences(
        next_cause,
        _queue_drains(payload, main_cause, waits_unrecorded),
        () if busy else _launch_bound_sentence(payload),
    )


def _queue_drains(payload: IdlePayload, main_cause: str, waits_unrecorded: bool) -> Text:
    """Say how much of the idle time follows a call that drained the queue."""
    drained = payload.idle_ns - payload.caught_up_ns
    if drained <= 0 and main_cause in _NO_LAUNCH_FOLLOWS:
        return ()
    if drained <= 0 and waits_unrecorded:
        return unrecorded_wait_sentence(f"the {device_noun(payload.device_type)}")
    if drained <= 0:
        return text(
            "No sync caused this: the {device} simply caught up with the host.",
            device=device_noun(payload.device_type),
        )
    calls: dict[str, int] = {}
    for row in payload.causes:
        if row.emptied_by is not None:
            calls[row.emptied_by] = calls.get(row.emptied_by, 0) + row.emptied_ns
    share = format_ratio(drained / payload.idle_ns)
    if not calls:
        return text("{share} of the idle time follows a call that drained the queue.", share=share)
    largest = max(calls, key=lambda name: calls[name])
    call = shorten_name(largest)
    if len(calls) == 1:
        return text(
            "{share} of the idle time follows {call} that drained the queue.", share=share, call=with_article(call)
        )
    return text(
        "{share} of the idle time follows calls that drained the queue, {mostly} {call}.",
        share=share,
        mostly="mostly" if 2 * calls[largest] > sum(calls.values()) else "most of all",
        call=call,
    )


def _launch_bound_sentence(payload: IdlePayload) -> Text:
    """Say that the host launches too slowly, if that is what the device waits for and slower than its work."""
    if not payload.launch_bound or payload.launch_ns is None or payload.item_ns is None:
        return ()
    if payload.launch_ns <= payload.item_ns:
        return ()
    return text(
        "Launch-bound: the host launches one kernel every {launch}; the {device} finishes one in {item} "
        "(medians).",
        device=device_noun(payload.device_type),
        launch=format_duration(payload.launch_ns),
        item=format_duration(payload.item_ns),
    )


def limits(
    explained: float | None, clock_shift_ns: int, recorded: bool, noun: str = "step", *, alone: bool = True
) -> Text:
    """Say how well the recorded launches and syncs explain the work, and what one rank `alone` can't show."""
    schedule: Text = ()
    work = explained_work(recorded, noun)
    if explained == 0:
        schedule = text("The recorded launches and syncs don't explain when {work} starts.", work=work)
    elif explained is not None:
        schedule = text(
            "The recorded launches and syncs explain when {share} starts.",
            share=f"all {work.removeprefix('the ')}" if explained == 1 else f"{format_ratio(explained)} of {work}",
        )
    return sentences(
        schedule,
        clock_shift_sentence(clock_shift_ns),
        text(f"{_WAITS_UNKNOWN}.", one="One", distributed=_DISTRIBUTED) if alone else (),
    )


def waiting_explanation(parts: CommunicationParts, awaited: Sequence[AwaitedRank]) -> Text:
    """Say what the exposed communication of a step is spent on, and which ranks it waits for."""
    if parts.transfer_ns + parts.waiting_ns + parts.uncompared_ns <= 0:
        return ()
    ranks = [(each.rank, each.worker, each.waiting_ns) for each in awaited]
    return communication_sentence(parts, awaited_clause(parts, ranks))


def times_by_cause(rows: Sequence[IdleRow]) -> dict[str, tuple[int, IdleRow]]:
    """Return for each cause its total time and the row with its longest segment."""
    times: dict[str, tuple[int, IdleRow]] = {}
    for row in rows:
        time, longest = times.get(row.cause, (0, row))
        times[row.cause] = time + row.time_ns, max(longest, row, key=_length)
    return times


def _length(row: IdleRow) -> int:
    return row.end_ns - row.begin_ns


def _evidence_text(payload: IdlePayload, row: IdleRow) -> str:
    """Return the link to the longest segment of a row on the timeline.

    A device's segment opens with everything known about it. While one stream waits another may work, so a stream's
    segment opens as a time range with the event to blame.
    """
    margin = max(_length(row) // 4, 1000)
    at = f"{row.begin_ns - margin}-{row.end_ns + margin}"
    if payload.stream is None:
        return link("trace", moment=f"{payload.device}:{row.begin_ns}", at=at)
    return link("trace", area=f"{row.begin_ns}-{row.end_ns}", at=at, event=row.event)


def _device(payload: IdlePayload, kind: str) -> str:
    device = device_name(kind, payload.device)
    return device if payload.stream is None else f"Stream {payload.stream} of {device}"


def graph_capture_unavailable(reason: str) -> Text:
    """Explain why the savings of graph capture can't be estimated."""
    return text("Savings from capturing them in a graph can't be estimated: {reason}.", reason=reason)
