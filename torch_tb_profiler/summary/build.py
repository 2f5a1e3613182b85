"""A summary from what the views answer for each worker of a run, and for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from torch_tb_profiler.base.errors import ProfilerError
from torch_tb_profiler.model.health import is_truncated
from torch_tb_profiler.model.vendors.recording_options import TRUNCATED_BEFORE_DEVICE_WORK
from torch_tb_profiler.summary.payload import VERSION, Advice, Communication, Health, Memory, Summary
from torch_tb_profiler.summary.steps import device_use, step_time
from torch_tb_profiler.summary.tops import tops
from torch_tb_profiler.views._shared.text import plain, text
from torch_tb_profiler.views.distributed.payload.job import DistributedPayload
from torch_tb_profiler.views.memory.payload import MemoryPayload
from torch_tb_profiler.views.overview.payload import Overview

MOST_NOTES = 6


class Source(Protocol):
    """A run at one span."""

    @property
    def run(self) -> str: ...
    @property
    def span(self) -> str: ...
    @property
    def workers(self) -> Sequence[str]: ...

    def ask(self, slug: str, worker: str) -> Any:
        """The payload of a view. Raises ProfilerError: the trace has nothing to show there, or cannot be read."""
        ...


class _Answers:
    """What each view answers of each worker, and the first reason why one does not."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.reasons: dict[str, str] = {}

    def of(self, slug: str, workers: Sequence[str]) -> dict[str, Any]:
        answers = {}
        for worker in workers:
            try:
                answers[worker] = self._source.ask(slug, worker)
            except ProfilerError as error:
                self.reasons.setdefault(slug, error.message)
        if answers:
            self.reasons.pop(slug, None)
        return answers


def summarize(source: Source) -> Summary:
    """Raises ProfilerError if no worker can be read."""
    overviews, unreadable = _overviews(source)
    read = list(overviews)
    answers = _Answers(source)
    job: DistributedPayload | None = answers.of("distributed", read[:1]).get(read[0])
    beside = answers.of("overview/ranks", read) if job is not None else {}
    advised: dict[str, Overview] = {**overviews, **beside}
    step = step_time(overviews)
    late = job.verdict.worker if job is not None else None
    slowest = step.slowest if step is not None else read[0]
    whose = late if late in advised else slowest
    decisive = advised[whose]
    memory = answers.of("memory", read)
    summary = Summary(
        version=VERSION,
        run=source.run,
        span=source.span,
        workers=len(source.workers),
        read=len(read),
        headline=_headline(job, decisive),
        bound=plain(decisive.spent),
        bound_worker=whose,
        step=step,
        operators=tops("operators", answers.of("operators", read)),
        kernels=tops("kernels", answers.of("kernels", read)),
        modules=tops("modules", answers.of("modules", read)),
        devices=device_use(overviews),
        communication=_communication(job, overviews),
        memory=_memory(memory),
        advice=_advice(advised),
        health=_health(overviews, unreadable),
        reasons={},
    )
    return _explained(summary, answers.reasons, decisive)


def _overviews(source: Source) -> tuple[dict[str, Overview], dict[str, ProfilerError]]:
    """(the overview of each worker that has one, why others have none)."""
    overviews: dict[str, Overview] = {}
    failed: dict[str, ProfilerError] = {}
    for worker in source.workers:
        try:
            overviews[worker] = source.ask("overview", worker)
        except ProfilerError as error:
            failed[worker] = error
    if not overviews:
        raise next(iter(failed.values()))
    return overviews, failed


def _headline(job: DistributedPayload | None, decisive: Overview) -> list[str]:
    """Of a job who keeps the others waiting, else how a step is spent."""
    if job is not None and job.rank_count > 1:
        return [sentence for text in (job.headline, job.explanation) if (sentence := plain(text))]
    return [plain(decisive.headline)] if decisive.headline else []


def _communication(job: DistributedPayload | None, overviews: Mapping[str, Overview]) -> Communication | None:
    means = {each.measure: each.mean_ns for each in job.spreads} if job is not None else {}
    if "exposed" in means:
        exposed, steps = means["exposed"], means["duration"]
    else:
        known = [each.average for each in overviews.values() if each.average is not None]
        spent = [(one.categories.communication, one.duration_ns) for one in known]
        times = [(communication, step) for communication, step in spent if communication]
        if not times:
            return None
        exposed, steps = (sum(column) / len(times) for column in zip(*times, strict=True))
    verdict = job.verdict if job is not None else None
    return Communication(
        exposed_ns=exposed,
        exposed_share=exposed / steps if steps else 0.0,
        late_worker=verdict.worker if verdict is not None else None,
        late_rank=verdict.rank if verdict is not None else None,
        late_cost_ns=verdict.cost_ns if verdict is not None else None,
        text=plain(verdict.text) if verdict is not None else "",
    )


def _memory(answers: Mapping[str, MemoryPayload]) -> Memory | None:
    peaks = [
        (device.kind != "CPU", device.peak_allocated.bytes, worker, device)
        for worker, payload in answers.items()
        for device in payload.devices
        if device.peak_allocated is not None
    ]
    if not peaks:
        return None
    _, peak, worker, device = max(peaks, key=lambda each: each[:2])
    growth = [
        plain(each.verdict) if len(answers) == 1 else f"{name}: {plain(each.verdict)}"
        for name, payload in answers.items()
        for each in payload.growth
        if each.growing
    ]
    return Memory(worker, device.name, peak, device.capacity_bytes, growth)


def _advice(overviews: Mapping[str, Overview]) -> list[Advice]:
    """Of each rule the case that gains most, largest gain first."""
    best: dict[tuple[str, str], Advice] = {}
    for worker, payload in overviews.items():
        for each in payload.recommendations:
            advice = Advice(plain(each.title), plain(each.text), each.gain, each.gain_ns, each.gain_share, worker)
            key = each.id, each.case
            if key not in best or (advice.gain_share or 0.0) > (best[key].gain_share or 0.0):
                best[key] = advice
    return sorted(best.values(), key=lambda advice: -(advice.gain_share or 0.0))


def _health(overviews: Mapping[str, Overview], unreadable: Mapping[str, ProfilerError]) -> Health:
    notes = {note.message: note.severity for payload in overviews.values() for note in payload.health}
    severities = list(notes.values())
    notes_in_words = [f"{worker} cannot be read: {error.message}" for worker, error in unreadable.items()]
    notes_in_words += sorted((f"{severity}: {message}" for message, severity in notes.items()))
    return Health(
        severities.count("error"), severities.count("warning"), len(unreadable), notes_in_words[:MOST_NOTES]
    )


def _explained(summary: Summary, reasons: Mapping[str, str], decisive: Overview) -> Summary:
    """With why sections are empty."""
    explained = {name: reasons[name] for name in ("operators", "kernels", "modules", "memory") if name in reasons}
    if summary.step is None:
        why = decisive.reasons.get("average") or decisive.reasons.get("steps") or text("no complete step")
        explained["step"] = plain(why)
    if summary.devices is None:
        cut = is_truncated(decisive.health)
        explained["devices"] = TRUNCATED_BEFORE_DEVICE_WORK if cut else "no device work is recorded"
    if summary.communication is None:
        explained["communication"] = reasons.get("distributed", "no step spends time in it")
    if summary.memory is None:
        explained.setdefault("memory", "the file records no totals")
    if not summary.advice and decisive.no_advice:
        explained["advice"] = plain(decisive.no_advice)
    return replace(summary, reasons=explained)
