"""Build the summary of a run from what the views answer for each of its workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec.structs import asdict, replace

from torch_tb_profiler.analyses.memory.devices import held_elsewhere
from torch_tb_profiler.analyses.overview.finding import advice_priority
from torch_tb_profiler.base.errors import ProfilerError
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.model.health import is_truncated
from torch_tb_profiler.model.vendors.recording_options import TRUNCATED_BEFORE_DEVICE_WORK
from torch_tb_profiler.summary.payload import (
    VERSION,
    Communication,
    DeviceUse,
    Health,
    Memory,
    StepTime,
    Summary,
    SummaryAdvice,
    Top,
)
from torch_tb_profiler.summary.snapshots import summarize_snapshots
from torch_tb_profiler.summary.source import SummarySource, collect_answers
from torch_tb_profiler.views._shared.text import first_sentence, plain, text
from torch_tb_profiler.views.distributed.payload.job import DistributedPayload
from torch_tb_profiler.views.hangs.payload import HangsPayload
from torch_tb_profiler.views.memory.payload import MemoryPayload
from torch_tb_profiler.views.memory.words import elsewhere_sentence
from torch_tb_profiler.views.overview.payload import Average, Overview
from torch_tb_profiler.views.overview.words import start_sentence
from torch_tb_profiler.views.serving.payload import AdviceRow, ServingPayload
from torch_tb_profiler.views.serving.ranks import ServingRanks

MAX_NOTES = 6
"""Most health notes in a summary."""

TOP_ROWS = 5
"""Rows of a table of top operators, kernels or modules."""

TopTable = Literal["operators", "replayed", "kernels", "modules"]


class _AnswerCollector:
    """Collects the answers of the workers, and per view the first reason why no worker has one."""

    def __init__(self, source: SummarySource) -> None:
        self._source = source
        self.reasons: dict[str, str] = {}

    def collect(self, slug: str, workers: Sequence[str]) -> dict[str, Any]:
        """Return the answers of a view by worker."""
        answers, errors = collect_answers(self._source, slug, workers)
        if errors and not answers:
            self.reasons[slug] = next(iter(errors.values())).message
        return answers


def summarize(source: SummarySource) -> Summary:
    """Summarize a run; raise ProfilerError if no worker can be read."""
    hang = source.hang
    if hang is not None and not source.workers:
        return _summarize_dumps(source, hang)
    try:
        overviews, unreadable = _collect_overviews(source)
    except ProfilerError:
        of_snapshots = summarize_snapshots(source)
        if of_snapshots is None:
            raise
        return of_snapshots
    read = list(overviews)
    answers = _AnswerCollector(source)
    job: DistributedPayload | None = answers.collect("distributed", read[:1]).get(read[0])
    rank_overviews = answers.collect("overview/ranks", read) if job is not None else {}
    advised: dict[str, Overview] = {**overviews, **rank_overviews}
    stragglers = job.verdict.workers if job is not None else []
    of_job = _overviews_of_job(job, overviews)
    step = step_time(of_job, stragglers)
    late = job.verdict.worker if job is not None else None
    slowest = step.slowest if step is not None else read[0]
    bound_worker = late if late in advised else slowest
    decisive = advised[bound_worker]
    engine: ServingPayload | None = answers.collect("serving", [bound_worker]).get(bound_worker)
    engines: ServingRanks | None = None
    if engine is not None and len(read) > 1:
        engines = answers.collect("serving/ranks", read[:1]).get(read[0])
    memory = answers.collect("memory", read)
    operators = answers.collect("operators", read)
    summary = Summary(
        version=VERSION,
        run=source.run,
        span=source.span,
        workers=len(source.workers),
        read=len(read),
        ranks=job.expected_count if job is not None else None,
        headline=[*_hang_sentences(hang), *_headline(job, decisive, bound_worker, engine, engines)],
        bound=plain(decisive.spent),
        bound_worker=bound_worker,
        step=step,
        operators=top_rows("operators", operators),
        kernels=top_rows("kernels", answers.collect("kernels", read)),
        modules=top_rows("modules", answers.collect("modules", read)),
        devices=device_use(of_job, apart=job is not None),
        communication=_build_communication(job, overviews),
        memory=_build_memory(memory),
        advice=_merge_advice(advised, overviews, job),
        health=_build_health(advised, unreadable, job),
        reasons={},
        replayed=top_rows("replayed", operators),
    )
    return _with_reasons(summary, answers.reasons, decisive)


def _overviews_of_job(job: DistributedPayload | None, overviews: Mapping[str, Overview]) -> Mapping[str, Overview]:
    """Return the overviews without those of another job's ranks, and of files of a rank that has another file."""
    others = {each.worker for each in job.ranks if not each.compared and each.calls is not None} if job else set()
    return {worker: each for worker, each in overviews.items() if worker not in others} or overviews


def _summarize_dumps(source: SummarySource, hang: HangsPayload) -> Summary:
    """Summarize a run that has flight recorder dumps and no trace."""
    unreadable = [row for row in hang.ranks if row.problem is not None]
    notes = [f"{row.file} can't be read: {row.problem}" for row in unreadable] + hang.problems
    return Summary(
        version=VERSION,
        run=source.run,
        span=source.span,
        workers=0,
        read=0,
        ranks=len(hang.ranks),
        headline=[sentence for words in (hang.headline, hang.explanation) if (sentence := plain(words))],
        bound="",
        bound_worker="",
        step=None,
        operators=[],
        kernels=[],
        modules=[],
        devices=None,
        communication=None,
        memory=None,
        advice=[],
        health=Health(0, 0, len(unreadable), notes[:MAX_NOTES]),
        reasons={"step": "the run has no trace, only flight recorder dumps"},
    )


def _hang_sentences(hang: HangsPayload | None) -> list[str]:
    """Return who holds a hung job up; nothing of a job that runs or has finished."""
    if hang is None or hang.verdict.verdict in ("finished", "running"):
        return []
    return [sentence for words in (hang.headline, hang.explanation) if (sentence := plain(words))]


def _collect_overviews(source: SummarySource) -> tuple[dict[str, Overview], dict[str, ProfilerError]]:
    """Return (worker -> its overview, worker -> the error why it has none). Raises an error if all have none."""
    overviews, errors = collect_answers(source, "overview", source.workers)
    if not overviews:
        raise next(iter(errors.values()))
    return overviews, errors


def _headline(
    job: DistributedPayload | None,
    decisive: Overview,
    bound_worker: str,
    engine: ServingPayload | None,
    engines: ServingRanks | None,
) -> list[str]:
    """Return who is late in a job of several ranks, what holds an engine back, or else how a step is spent.

    Of ranks that run an engine it begins with their rate; ranks that are engines of their own wait for none.
    """
    rate = [] if engines is None or len(engines.ranks) < 2 else [plain(first_sentence(engines.headline))]
    apart = engines is not None and len(engines.engines) == len(engines.ranks)
    if job is not None and job.rank_count > 1 and not (rate and apart):
        left_out = plain(decisive.left_out)
        odd = [f"{bound_worker}: {left_out}"] if left_out else []
        return [*rate, *(sentence for text in (job.headline, job.explanation) if (sentence := plain(text))), *odd]
    if engine is not None and engine.what_holds_it_back is not None:
        alone = f"{bound_worker}: " if rate else ""
        # Faster iterations gain nothing while the engine has no requests.
        advice = engine.advice[:1] if engine.what_holds_it_back != "no_requests" else []
        return [*rate, alone + plain(engine.headline), *(_start_with(each) for each in advice)]
    start = start_sentence(decisive.recommendations)
    # What averages leave out may be most of the time: a loader that is late in each fourth step.
    headline_parts = (decisive.spent, decisive.left_out, start)
    return [*rate, *(sentence for text in headline_parts if (sentence := plain(text)))]


def _start_with(advice: AdviceRow) -> str:
    title = plain(advice.title)
    return f"Start here: {title[:1].lower()}{title[1:]}. {plain(advice.detail)}"


def step_time(overviews: Mapping[str, Overview], stragglers: Sequence[str] = ()) -> StepTime | None:
    """Return the average step of the workers that aren't stragglers, or None if no worker has a complete step.

    A file that is cut off may lack the device's work, so that it counts only where there is no other.
    """
    known = {worker: each.average for worker, each in overviews.items() if each.average is not None}
    whole = {worker: average for worker, average in known.items() if not is_truncated(overviews[worker].health)}
    known = whole or known
    if not known:
        return None
    slowest = max(known, key=lambda worker: known[worker].duration_ns)
    averaged = {worker: average for worker, average in known.items() if worker not in stragglers} or known
    nouns = {overviews[worker].step_noun for worker in known}
    return StepTime(
        mean_ns=_mean([average.duration_ns for average in averaged.values()]),
        workers=len(averaged),
        steps=max(average.steps for average in averaged.values()),
        slowest=slowest,
        slowest_ns=known[slowest].duration_ns,
        breakdown=_build_breakdown([*averaged.values()]),
        recorded=all(overviews[worker].steps_recorded for worker in known),
        left_out=[worker for worker in stragglers if worker in known and worker not in averaged],
        noun=nouns.pop() if len(nouns) == 1 else "step",
        typical=any(average.outliers for average in known.values()),
    )


def _build_breakdown(averages: list[Average]) -> dict[str, float | None]:
    parts = [asdict(average.categories) for average in averages]
    means: dict[str, float | None] = {}
    for name in parts[0]:
        known = [part[name] for part in parts if part[name] is not None]
        means[name] = _mean(known) if known else None
    return means


def device_use(overviews: Mapping[str, Overview], *, apart: bool) -> DeviceUse | None:
    """Return how busy the devices are, or None if there are none.

    apart  the workers communicate as ranks of a job, so that none shares its device with another
    """
    devices = [(worker, device) for worker, each in overviews.items() for device in each.devices]
    if not devices:
        return None
    used = [(device.utilization, worker) for worker, device in devices if device.utilization is not None]
    names = {device.name for _, device in devices}
    least, worker = min(used) if used else (None, None)
    return DeviceUse(
        devices=len(devices),
        at_least=len(devices) if apart else len({device.id for _, device in devices}),
        name=names.pop() if len(names) == 1 else None,
        mean_utilization=_mean([share for share, _ in used]) if used else None,
        least_utilization=least,
        least_worker=worker,
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def top_rows(table: TopTable, answers: Mapping[str, Any]) -> list[Top]:
    """Return the rows with the most device self time, or host time if no row has any; summed over workers."""
    rows = [row for payload in answers.values() for row in _read_table_rows(table, payload)]
    of_device = any(device for *_, device, _ in rows)
    sums: dict[str, tuple[str, int | None, int]] = {}
    for name, shown, calls, device, host in rows:
        _, sum_calls, sum_time = sums.get(name, ("", None, 0))
        sum_calls = sum_calls if calls is None else (sum_calls or 0) + calls
        sums[name] = shown, sum_calls, sum_time + (device if of_device else host)
    total = sum(time for _, _, time in sums.values())
    top = sorted(sums.values(), key=lambda each: -each[2])[:TOP_ROWS]
    return [Top(shown, calls, time, time / total if total else None) for shown, calls, time in top if time]


def _read_table_rows(table: TopTable, payload: Any) -> Iterator[tuple[str, str, int | None, int, int]]:
    """Yield (name, displayed name, calls if they are known, device self time, host self time) per row; ns."""
    if table == "operators":
        for row in payload.rows:
            yield row.name, row.name, row.calls, row.device_self_ns or 0, row.host_self_ns
    elif table == "replayed":
        is_known = any(row.operator is not None for row in payload.replayed)
        for row in payload.replayed if is_known else ():
            name = row.operator or "unknown"
            yield name, name, None, row.ns, 0
    elif table == "kernels":
        for row in payload.rows:
            yield row.name, row.short_name, row.calls, row.total_ns, 0
    else:
        for row in payload.classes:
            yield (
                row.name,
                row.name,
                row.calls,
                row.device_self_ns,
                (row.host_exclusive_ns or 0) + (row.backward_host_self_ns or 0),
            )


def _build_communication(
    job: DistributedPayload | None, overviews: Mapping[str, Overview]
) -> Communication | None:
    means = {each.measure: each.mean_ns for each in job.spreads} if job is not None else {}
    on_devices = any(each.devices for each in overviews.values())
    stragglers = job.verdict.workers if job is not None else []
    waiting = [each for each in job.averages if each.worker not in stragglers] if job is not None else []
    if stragglers and waiting:
        exposed = _mean([each.exposed_ns + (0.0 if on_devices else each.overlap_ns) for each in waiting])
        steps = _mean([each.duration_ns for each in waiting])
    elif "exposed" in means:
        exposed, steps = means["exposed"] + (0.0 if on_devices else means["overlap"]), means["duration"]
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
        exposed=on_devices,
    )


def _build_memory(answers: Mapping[str, MemoryPayload]) -> Memory | None:
    peaks = [
        (device.kind != "CPU", device.peak_allocated.bytes, worker, device)
        for worker, payload in answers.items()
        for device in payload.devices
        if device.peak_allocated is not None
    ]
    if not peaks:
        return None
    _, peak, worker, device = max(peaks, key=lambda each: each[:2])
    several = any(len(payload.devices) > 1 for payload in answers.values())
    growth = []
    for name, payload in answers.items():
        lead = "" if len(answers) == 1 else f"{name}: "
        counts = Counter(failure.device for failure in payload.out_of_memory)
        growth += [
            f"{lead}{plural(count, 'allocation')} on {on} ran out of memory.{_held_elsewhere(payload, on)}"
            for on, count in counts.items()
        ]
        growth += [
            f"{lead}{f'{each.device}: ' if several else ''}{plain(each.verdict)}"
            for each in payload.growth
            if each.growing or each.rising_bytes or each.rising_reserved_bytes
        ]
    return Memory(worker, device.name, peak, device.capacity_bytes, growth)


def _held_elsewhere(payload: MemoryPayload, device: str) -> str:
    """Return the sentence on memory that others held when an allocation of a device failed, "" if none did."""
    capacity = next((each.capacity_bytes for each in payload.devices if each.name == device), None)
    held = [
        held_elsewhere(capacity, failure.allocated_bytes, failure.reserved_bytes, failure.bytes)
        for failure in payload.out_of_memory
        if failure.device == device
    ]
    most = max((size for size in held if size is not None), default=None)
    return "" if most is None else f" {plain(elsewhere_sentence(device, most))}"


HOST_RULES = ("data_loading", "host_code", "short_code", "launch_bound")
"""Advice of a late rank's own file that its overview beside the others makes part of why it is late."""


def _merge_advice(
    overviews: Mapping[str, Overview], alone: Mapping[str, Overview], job: DistributedPayload | None
) -> list[SummaryAdvice]:
    """Return for each rule and case the recommendation with the largest gain; largest first.

    What a straggler's own file advises about the time by which it is late is part of the advice about the
    straggler.

    alone  the overviews by each rank's own file
    """
    best: dict[tuple[str, str], SummaryAdvice] = {}
    late = job.verdict.workers if job is not None else []
    remedies: dict[str, str] = {}
    for worker, payload in overviews.items():
        listed = {(each.id, each.case) for each in payload.recommendations}
        is_late = worker in late and len(late) < len(overviews)
        for each in alone[worker].recommendations if is_late else ():
            if each.id in HOST_RULES and (each.id, each.case) not in listed:
                remedies.setdefault(worker, plain(each.title))
        for each in payload.recommendations:
            if is_late and each.id == "straggler":
                continue
            advice = SummaryAdvice(
                plain(each.title), plain(each.text), each.gain, each.gain_ns, each.gain_share, worker
            )
            key = each.id, each.case
            if key not in best or (advice.gain_share or 0.0) > (best[key].gain_share or 0.0):
                best[key] = advice
    about = best.get(("straggler", ""))
    if about is not None and remedies:
        there = " ".join(f"On {worker}: {title}." for worker, title in remedies.items())
        best["straggler", ""] = replace(about, text=f"{about.text} {there}")
    ordered = sorted(best.items(), key=lambda each: -advice_priority(each[0][0], each[1].gain_share))
    return [advice for _, advice in ordered]


def _build_health(
    overviews: Mapping[str, Overview], unreadable: Mapping[str, ProfilerError], job: DistributedPayload | None
) -> Health:
    notes = {note.message: note.severity for payload in overviews.values() for note in payload.health}
    problems = job.problems if job is not None else []
    notes |= {plain(each.text): "warning" for each in problems if each.kind in ("world_size", "duplicate_rank")}
    severities = list(notes.values())
    messages = [f"{worker} can't be read: {error.message}" for worker, error in unreadable.items()]
    messages += sorted((f"{severity}: {message}" for message, severity in notes.items()))
    return Health(severities.count("error"), severities.count("warning"), len(unreadable), messages[:MAX_NOTES])


def _with_reasons(summary: Summary, reasons: Mapping[str, str], decisive: Overview) -> Summary:
    """Return the summary with the reasons why sections are empty."""
    explained = {name: reasons[name] for name in ("operators", "kernels", "modules", "memory") if name in reasons}
    if summary.step is None:
        why = decisive.reasons.get("average") or decisive.reasons.get("steps") or text("no complete step")
        explained["step"] = plain(why)
    if summary.devices is None:
        cut = is_truncated(decisive.health)
        explained["devices"] = TRUNCATED_BEFORE_DEVICE_WORK if cut else "no GPU or other device work was recorded"
    if summary.communication is None:
        explained["communication"] = reasons.get("distributed", "no step spends time in communication")
    if summary.memory is None:
        explained.setdefault("memory", "the file has no allocator totals")
    if not summary.advice and decisive.no_advice:
        # It is of one worker: others may wait for longer.
        whose = f"{summary.bound_worker}: " if summary.read > 1 else ""
        explained["advice"] = whose + plain(decisive.no_advice)
    return replace(summary, reasons=explained)
