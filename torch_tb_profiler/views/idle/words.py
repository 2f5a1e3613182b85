"""What the Idle time view says in words."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.views._shared.job.exposed import CommunicationParts, communication_sentence
from torch_tb_profiler.views._shared.text import (
    Phrase,
    Text,
    join_phrases,
    link,
    plain,
    sentences,
    shorten_name,
    text,
    worker_name,
)
from torch_tb_profiler.views._shared.wording import CAUSE_TEXTS, clock_shift_sentence
from torch_tb_profiler.views.idle.payload import AwaitedRank, IdlePayload, IdleRow

WAITING = text(
    "one rank does not show whom its collectives wait for; {tab} does",
    tab=Phrase("Distributed", link("distributed")),
)
"""Why how long it waits for them is null."""

SEVERAL_DEVICES = "the rank has several devices: on which of them its collectives wait is not told"

ONE_STREAM = "of one stream it is not told; of the device it is"

NOT_COMPARED = "none of its collectives is recorded alike by another rank"
"""Further reasons, where other ranks are beside it."""

IDLE = 0.05
"""A device that waits for less than this share of the time counts as busy."""

_LEAST_EXPOSED = 0.01
"""Communication that nothing hides and that is below this share of the busy time is not spoken of."""

_FRACTIONS = (
    (1 / 4, "a quarter"),
    (1 / 3, "a third"),
    (1 / 2, "half"),
    (2 / 3, "two thirds"),
    (3 / 4, "three quarters"),
)
_NEAR = 0.015

_LEAST_NAMED, _MOST_NAMED = 0.05, 3
"""Ranks that are waited for less than this share of the waiting, and more than so many, are not named."""

_NOT_CAUGHT_UP = ("tail", "before_recording", "unlinked")
"""Waits that do not end with a launch: whether the device was faster than the host is not known of them."""


def headline(payload: IdlePayload, kind: str) -> Text:
    """How much the device waits, and for what most."""
    device = _device(payload, kind)
    whole = "each step" if payload.steps_recorded else "the trace"
    if payload.counted == 1 and payload.steps_recorded:
        whole = "the step"
    if payload.duration_ns <= 0:
        return text("There is no complete step to analyze.")
    share = payload.idle_ns / payload.duration_ns
    if share < IDLE or not payload.causes:
        least = "at least " if "idle_ns" in payload.reasons else ""
        busy = Phrase(f"{least}{format_ratio(1 - share)} of {whole}", link("kernels"))
        return text("{device} is busy for {share}{talk}.", device=device, share=busy, talk=_talk(payload))
    most = "at most " if "idle_ns" in payload.reasons else ""
    sums = by_cause(payload.causes)
    cause, (time, longest) = max(sums.items(), key=lambda each: each[1][0])
    return text(
        "{device} waits {share}; {portion} of that for {cause}.",
        device=device,
        share=Phrase(
            f"{most}{format_ratio(share)} of {whole}", _evidence(payload, max(payload.causes, key=_length))
        ),
        portion=_fraction(time / payload.idle_ns),
        cause=Phrase(CAUSE_TEXTS[cause], _evidence(payload, longest)),
    )


def _talk(payload: IdlePayload) -> str:
    """How much of the busy time is spent in collectives, which may be waiting for other ranks."""
    share = payload.exposed_communication_ns / (payload.duration_ns - payload.idle_ns)
    if share < _LEAST_EXPOSED:
        return ""
    return f", {format_ratio(share)} of that in communication that no computation hides"


def explanation(payload: IdlePayload) -> Text:
    """The next cause, what emptied the queue, and whether the host launches too slowly."""
    if "causes" in payload.reasons:
        reason = plain(payload.reasons["causes"])
        return text("{reason}.", reason=reason[:1].upper() + reason[1:])
    if payload.idle_ns <= 0 or payload.counted == 0:
        return ()
    ranked = sorted(by_cause(payload.causes).items(), key=lambda each: -each[1][0])
    busy = payload.idle_ns < IDLE * payload.duration_ns  # the headline names no cause then
    following: Text = ()
    if len(ranked) > (0 if busy else 1):
        cause, (time, longest) = ranked[0 if busy else 1]
        following = text(
            "{rank}{cause}, {time}{per}.",
            rank="It waits most for " if busy else "Next: ",
            cause=Phrase(CAUSE_TEXTS[cause], _evidence(payload, longest)),
            time=format_duration(time / payload.counted),
            per=" a step" if payload.steps_recorded and payload.counted > 1 else "",
        )
    return sentences(following, _emptied(payload, ranked[0][0] if ranked else ""), () if busy else _bound(payload))


def _emptied(payload: IdlePayload, most: str) -> Text:
    """`most`: the cause of most of the wait."""
    emptied = payload.idle_ns - payload.caught_up_ns
    if emptied <= 0 and most in _NOT_CAUGHT_UP:
        return ()
    if emptied <= 0:
        return text("No call had emptied the queue before: the device caught up with the host.")
    calls: dict[str, int] = {}
    for row in payload.causes:
        if row.emptied_by is not None:
            calls[row.emptied_by] = calls.get(row.emptied_by, 0) + row.emptied_ns
    share = format_ratio(emptied / payload.idle_ns)
    if not calls:
        return text("Before {share} of the wait, a call had emptied the queue.", share=share)
    call = shorten_name(max(calls, key=lambda name: calls[name]))
    if len(calls) == 1:
        return text("Before {share} of the wait, {call} had emptied the queue.", share=share, call=call)
    return text("Before {share} of the wait, a call had emptied the queue, mostly {call}.", share=share, call=call)


def _bound(payload: IdlePayload) -> Text:
    """Said only where the host's launching is what the device waits for, and slower than the device's work."""
    if not payload.launch_bound or payload.launch_ns is None or payload.item_ns is None:
        return ()
    if payload.launch_ns <= payload.item_ns:
        return ()
    return text(
        "The {whole} is launch-bound: a launch every {launch}, while the device needs {item} for an item "
        "(medians).",
        whole="step" if payload.steps_recorded else "trace",
        launch=format_duration(payload.launch_ns),
        item=format_duration(payload.item_ns),
    )


def limits(explained: float | None, clock_shift_ns: int, alone: bool = True) -> Text:
    """How well the recorded launches and waits explain the work, and what one rank `alone` cannot show."""
    schedule = text(
        "{share} of the device's work starts when the recorded launches and waits say.",
        share=format_ratio(explained),
    )
    return sentences(
        () if explained is None else schedule,
        clock_shift_sentence(clock_shift_ns),
        text("Waiting for other ranks: {reason}.", reason=WAITING) if alone else (),
    )


def beside(parts: CommunicationParts, waits: Sequence[AwaitedRank]) -> Text:
    """What the exposed communication of a step is spent on, and for whom it waits."""
    if parts.transfer_ns + parts.waiting_ns + parts.uncompared_ns <= 0:
        return ()
    named = [each for each in waits if each.waiting_ns >= _LEAST_NAMED * parts.waiting_ns][:_MOST_NAMED]
    whom = [
        Phrase(
            f"{format_duration(each.waiting_ns)} for {worker_name(each.rank, each.worker)}",
            link("trace", worker=each.worker),
        )
        for each in named
    ]
    return communication_sentence(parts, text(" ({whom})", whom=join_phrases(whom)) if whom else ())


def by_cause(rows: Sequence[IdleRow]) -> dict[str, tuple[int, IdleRow]]:
    """Cause -> (its time, the row with its longest part)."""
    sums: dict[str, tuple[int, IdleRow]] = {}
    for row in rows:
        time, longest = sums.get(row.cause, (0, row))
        sums[row.cause] = time + row.time_ns, max(longest, row, key=_length)
    return sums


def _length(row: IdleRow) -> int:
    return row.end_ns - row.begin_ns


def _evidence(payload: IdlePayload, row: IdleRow) -> str:
    """The longest part of a row, on the timeline: a device's with all that is known of it; where one stream waits,
    another may work, so a stream's is a stretch with what is to blame."""
    margin = max(_length(row) // 4, 1000)
    at = f"{row.begin_ns - margin}-{row.end_ns + margin}"
    if payload.stream is None:
        return link("trace", moment=f"{payload.device}:{row.begin_ns}", at=at)
    return link("trace", area=f"{row.begin_ns}-{row.end_ns}", at=at, event=row.event)


def _device(payload: IdlePayload, kind: str) -> str:
    noun = "GPU" if kind in ("CUDA", "ROCm", "XPU") else "device"
    several = len({stream.device for stream in payload.streams}) > 1
    device = f"{noun} {payload.device}" if several else f"the {noun}"
    if payload.stream is not None:
        return f"Stream {payload.stream} of {device}"
    return device[:1].upper() + device[1:]


def _fraction(share: float) -> str:
    for fraction, word in _FRACTIONS:
        if abs(share - fraction) <= _NEAR:
            return f"about {word}"
    return format_ratio(share)


def no_capture(reason: str) -> Text:
    """Why it is null what capturing sequences in a graph would save."""
    return text("What capturing them in a graph would save is unknown: {reason}.", reason=reason)
