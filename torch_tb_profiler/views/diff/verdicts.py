"""What is proven of the step, in a sentence or two."""

from __future__ import annotations

from torch_tb_profiler.analyses.diff.changes import Change
from torch_tb_profiler.analyses.shared.significance import MOST_NEEDED
from torch_tb_profiler.base.units import MINUS, format_duration, format_ratio
from torch_tb_profiler.views._shared.text import Phrase, Text, link, sentences, text
from torch_tb_profiler.views.diff.payload import DiffSide


def headline(step: Change, base: DiffSide, candidate: DiffSide, min_effect: float, one_run: bool) -> Text:
    """How a typical step changed, and whether that is proven."""
    empty = [name for name, side in (("base", base), ("candidate", candidate)) if not side.steps]
    if empty:
        sides = " or the ".join(empty)
        return text("Step times cannot be compared: there is no complete step in the {sides}.", sides=sides)
    before, now = base.typical_ns, candidate.typical_ns
    if step.verdict == "equal":
        return text("Step time is the same on both sides: {now}.", now=_now(now))
    times = text("{before} before, {now} now", before=format_duration(before), now=_now(now))
    if step.verdict == "unchanged":
        return text(
            "Step time is unchanged: {times}. Any change is below {least} ({range}).",
            times=times,
            least=format_ratio(min_effect),
            range=_interval(step),
        )
    if step.verdict in ("slower", "faster"):
        return text("The step is {change}: {times}.", change=_change(before, now), times=times)
    return sentences(
        _unproven(step, before, now, times, min_effect, one_run), _missing(step, base, candidate, one_run)
    )


def _unproven(step: Change, before: float, now: float, times: Text, min_effect: float, one_run: bool) -> Text:
    change = _change(before, now)
    unknown = "Cannot tell whether the step is slower or faster: "
    if step.low_ns is None:
        return text(unknown + "{times} ({share}).", times=times, share=_share(before, now))
    if one_run:
        return text("The step is {change} in this recording of the run: {times}.", change=change, times=times)
    if step.low_ns <= 0 <= (step.high_ns or 0):
        template = unknown + "{times} ({share}, {range})."
        return text(template, times=times, share=_share(before, now), range=_interval(step))
    template = "The step is {change}: {times} ({range}). Cannot tell whether by the {least} that matter."
    return text(template, times=times, change=change, range=_interval(step), least=format_ratio(min_effect))


def _missing(step: Change, base: DiffSide, candidate: DiffSide, one_run: bool) -> Text:
    """What would have to be recorded."""
    if step.low_ns is None:
        return text("A side has fewer than two steps, so this may be chance.")
    several = max(len(base.recordings), len(candidate.recordings)) > 1
    if one_run and not several:
        return text(
            "Both ran the same program, so this may be how far its recordings differ; compare several of each."
        )
    what = "recordings" if several else "steps"
    if step.needed is None:
        return text("More than {most} {what} of each side would be needed.", most=f"{MOST_NEEDED:,}", what=what)
    return text("About {needed} {what} of each side would tell.", needed=f"{step.needed:,}", what=what)


def _now(ns: float) -> Phrase:
    return Phrase(format_duration(ns), link("overview"))


def _change(before: float, now: float) -> Phrase:
    delta = now - before
    ratio = f" ({format_ratio(abs(delta) / before)})" if before else ""
    return Phrase(
        f"{format_duration(abs(delta))}{ratio} {'slower' if delta > 0 else 'faster'}", link("diff", table="parts")
    )


def _share(before: float, now: float) -> Phrase:
    """The change with its sign; a negligible one has none."""
    delta = now - before
    amount = format_ratio(abs(delta) / before) if before else signed_duration(delta)
    sign = "" if not before or amount.startswith("<") else "+" if delta > 0 else MINUS
    return Phrase(sign + amount, link("diff", table="parts"))


def _interval(step: Change) -> str:
    return f"95% interval {signed_duration(step.low_ns)} to {signed_duration(step.high_ns)}"


def signed_duration(ns: float | None) -> str:
    """+12.3 ms; less than a nanosecond is the rounding of means."""
    whole = None if ns is None else round(ns)
    return ("+" if (whole or 0) > 0 else "") + format_duration(whole)
