"""What is true of a random job, computed from its simulation the slow way, and what every surface says of it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from tests.support.jobs import ready_member
from tests.support.random_jobs.plan import JobPlan
from tests.support.simulation.files import RecordedJob, RecordedSpan
from tests.support.simulation.simulator import Collective, Delay, Host, SimulatedKernel, Simulation
from tests.support.traces import read_bytes
from torch_tb_profiler.analyses.distributed.job_path import RankPath, reduce_path
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.shared.typical_steps import step_kinds
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.cli.screens import screen_of
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.summary import as_markdown, summarize
from torch_tb_profiler.view import Member, Members, RankView, RunView, TraceView, parse_params
from torch_tb_profiler.views import find_view
from torch_tb_profiler.views._shared.text import Phrase, plain

Interval = tuple[float, float]

RANK_VIEWS = (
    "overview", "overview/ranks", "idle", "idle/ranks", "critical_path", "critical_path/beside", "kernels",
    "operators", "trace", "roofline",
)  # fmt: skip
"""The views about one rank that the simulation records something for."""

_ADVICE_LINE = re.compile(r"\d+\. \*\*(?P<title>.+)\*\* \((?P<gain>.+), \S+\): (?P<text>.+)")
_BULLET = re.compile(r"^(?:- |## )(?:advice: )?(?:node\d+_\d+: )?(?:(?:info|warning|error): )?")


def union_us(intervals: Iterable[Interval]) -> float:
    """Return the length of the union."""
    length, reached = 0.0, float("-inf")
    for start, end in sorted(intervals):
        length += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return length


def _durations(simulation: Simulation) -> list[float]:
    """Return the µs of each step of the first rank."""
    return [span.end - span.start for span in simulation.run().spans[0] if span.kind == "step"]


def _in_steps(job: RecordedJob) -> float:
    """Return the µs that a job of one rank spends in steps, each from where no earlier one works to its last work.

    What is saved outside of steps, where an evaluation overlaps with the work of the step before, isn't a step's.
    """
    whole, reached = 0.0, 0.0
    for step in (span for span in job.spans[0] if span.kind == "step"):
        launched = [span.end for span in job.spans[0] if span.launch and step.start <= span.launch < step.end]
        end = max([step.end, *launched])
        whole += end - max(step.start, reached)
        reached = max(reached, end)
    return whole


@dataclass(frozen=True)
class JobTruth:
    """The job of a plan, simulated; times in µs per step.

    device  the device of each process whose work counts; None for all of them together
    """

    plan: JobPlan
    job: RecordedJob
    device: int | None = None

    def on_device(self, device: int) -> JobTruth:
        """Return the truth of one device of each process; the first one communicates."""
        return replace(self, device=device)

    @property
    def devices(self) -> int:
        """The number of devices of each process."""
        return 2 if self.plan.kind == "devices" else 1

    @property
    def steps(self) -> int:
        return self.plan.simulation.steps

    @cached_property
    def cause_cost(self) -> float:
        """What the late ranks cost the job per step."""
        return 0.0 if not self.plan.causes else self._cost(self.plan.without(cause=True))

    @cached_property
    def split_cost(self) -> float:
        """What more rows of a rank cost the job per step beyond as many rows on every rank."""
        simulation = self.plan.simulation
        ranks = range(len(simulation.programs))
        more = sum(each.factor - 1 for each in simulation.delays if each.kind == "rows") / len(ranks)
        others = [each for each in simulation.delays if each.kind != "rows"]
        even = [Delay("rows", rank, factor=1 + more) for rank in ranks]
        return self._cost(replace(simulation, delays=[*others, *even], _ends={}, _arrived={}))

    def cost_of(self, ranks: Collection[int]) -> float:
        """What the lateness of these ranks alone costs the job per step."""
        delays = [each for each in self.plan.simulation.delays if each.rank not in ranks]
        return self._cost(replace(self.plan.simulation, delays=delays, _ends={}, _arrived={}))

    @cached_property
    def shared_cost(self) -> float:
        """What the work that all ranks do on the host costs per step."""
        return 0.0 if self.plan.shared is None else self._cost(self.plan.without(shared=True))

    @cached_property
    def step(self) -> float:
        """The mean step of the job that isn't odd."""
        return self._step(self.plan.simulation)

    def with_kernels(self, factor: float) -> float:
        """Return the mean step with kernels of all ranks that many times as long."""
        return self._step(self.plan.scaled(SimulatedKernel, factor))

    def with_host(self, factor: float) -> float:
        """Return the mean step with host code of all ranks that many times as long."""
        return self._step(self.plan.scaled(Host, factor))

    def with_transfers(self, factor: float) -> float:
        """Return the mean step with transfers that many times as long."""
        return self._step(self.plan.scaled(Collective, factor))

    def saved_alone(self, rank: int, name: str, odd: Collection[int]) -> float:
        """What a step of a rank saves without what has that name, if its communication takes as long.

        That differs between the steps: in one it waits for others, in the next it may be late itself.
        """
        usual = [number for number in range(self.steps) if number not in odd]
        saved = 0.0
        for number in usual:
            alone = self.plan.of_rank(rank, self._latencies(rank, number))
            without = self.plan.without_named(name, alone)
            saved += _durations(alone)[number] - _durations(without)[number]
        return saved / len(usual)

    def _mean_latencies(self, rank: int, odd: Collection[int]) -> list[float]:
        """The mean µs of each collective of a rank's typical step."""
        latencies = [self._latencies(rank, number) for number in range(self.steps) if number not in odd]
        usual = [each for each in latencies if each]  # gradients may be reduced in some steps only
        return [sum(each) / len(usual) for each in zip(*usual, strict=True)]

    def _latencies(self, rank: int, step: int) -> list[float]:
        """The µs of each collective of a rank in one step."""
        programs = [self.plan.simulation.program_of(rank, number) for number in range(step + 1)]
        counts = [sum(isinstance(action, Collective) for action in program) for program in programs]
        spans = self._communicating(rank)[sum(counts[:-1]) : sum(counts)]
        return [span.end - span.start for span in spans]

    def without_named(self, name: str) -> float:
        """The mean step without what has that name on any rank: kernels, host code, or data loading."""
        return self._step(self.plan.without_named(name, self.plan.simulation))

    def saved_by_no_syncs(self, rank: int, odd: Collection[int]) -> float:
        """What a rank alone saves per step if its host never waits for its device: the next step overlaps then."""
        alone = self.plan.of_rank(rank, self._mean_latencies(rank, odd))
        kept = [number for number in range(self.steps) if number not in odd]
        delays = [
            each
            if each.steps is None
            else replace(each, steps=tuple(kept.index(step) for step in each.steps if step in kept))
            for each in alone.delays
        ]
        usual = replace(alone, steps=len(kept), delays=delays, odd=None, _ends={}, _arrived={})
        return (_in_steps(usual.run()) - _in_steps(self.plan.without_syncs(usual).run())) / len(kept)

    @property
    def planted_odd(self) -> tuple[int, ...]:
        """The steps in which all ranks do something once."""
        return () if self.plan.odd is None else self.plan.odd[:1]

    def _cost(self, without: Simulation) -> float:
        return self.step - self._step(without)

    def _step(self, simulation: Simulation) -> float:
        steps = [
            span.end - span.start
            for spans in simulation.run().spans
            for number, span in enumerate(each for each in spans if each.kind == "step")
            if number not in self.planted_odd
        ]
        return sum(steps) / len(steps)

    def durations(self, rank: int) -> list[float]:
        """The µs of each step of a rank."""
        return [span.end - span.start for span in self._spans(rank, "step")]

    def between(self, rank: int) -> float:
        """The µs from a rank's first step to its last that are outside of steps."""
        return sum(span.end - span.start for span in self._spans(rank, "between"))

    def typical(self, rank: int, odd: Collection[int]) -> float:
        """The mean step of a rank without those that are odd."""
        usual = [time for number, time in enumerate(self.durations(rank)) if number not in odd]
        return sum(usual) / len(usual)

    def busy(self, rank: int, odd: Collection[int]) -> float:
        """Time of a typical step in which a rank's device does anything."""
        return self._exclusive(self._computation(rank) + self._collectives(rank), [], rank, odd)

    def computation(self, rank: int, odd: Collection[int]) -> float:
        """Time of a typical step in which a rank computes."""
        return self._exclusive(self._computation(rank), [], rank, odd)

    def communication(self, rank: int, odd: Collection[int]) -> float:
        """Time of a typical step in which a rank is in a collective."""
        return self._exclusive(self._collectives(rank), [], rank, odd)

    def idle_while(self, rank: int, kinds: Collection[str], odd: Collection[int]) -> float:
        """Time of a typical step in which a rank's device idles while the host is in spans of these kinds."""
        host = [(span.start, span.end) for kind in kinds for span in self._spans(rank, kind)]
        return self._exclusive(host, self._computation(rank) + self._collectives(rank), rank, odd)

    def host_time(self, rank: int, name: str, odd: Collection[int]) -> float:
        """Time of a typical step that the host spends in what has this name."""
        spans = [(each.start, each.end) for each in self.job.spans[rank] if each.name == name]
        return self._exclusive(spans, [], rank, odd)

    def kernel_shares(self, rank: int) -> dict[str, float]:
        """The share of each name in the kernel time of the whole trace, collectives by their type."""
        times: dict[str, float] = {}
        for span in self.job.spans[rank]:
            if span.kind in ("kernel", "collective"):
                times[span.name] = times.get(span.name, 0.0) + span.end - span.start
        return {name: time / sum(times.values()) for name, time in times.items()}

    def waiting(self, rank: int, odd: Collection[int]) -> float:
        """Time of a typical step in which a rank is in a collective, but neither computes nor moves data."""
        return self._exclusive(self._collectives(rank), self._computation(rank) + self._transfers(rank), rank, odd)

    def transfer(self, rank: int, odd: Collection[int]) -> float:
        """Time of a typical step in which a rank moves data without computing."""
        return self._exclusive(self._transfers(rank), self._computation(rank), rank, odd)

    def exposed(self, rank: int, odd: Collection[int]) -> float:
        """Time of a typical step in which a rank is in a collective without computing."""
        return self._exclusive(self._collectives(rank), self._computation(rank), rank, odd)

    def _exclusive(
        self, counted: list[Interval], others: list[Interval], rank: int, odd: Collection[int]
    ) -> float:
        """Return the time per step that isn't odd in which any of `counted` runs, but none of `others`."""
        steps = [(span.start, span.end) for span in self._spans(rank, "step")]
        hidden = [*others, (0.0, steps[0][0]), *(steps[number] for number in odd)]
        return (union_us(hidden + counted) - union_us(hidden)) / (self.steps - len(odd))

    def _spans(self, rank: int, kind: str) -> list[RecordedSpan]:
        return [span for span in self.job.spans[rank] if span.kind == kind]

    @property
    def groups(self) -> set[tuple[int, ...]]:
        """The ranks of each group that communicates."""
        return {span.collective.ranks for rank in range(self.plan.ranks) for span in self._communicating(rank)}

    def _computation(self, rank: int) -> list[Interval]:
        counted = range(self.devices) if self.device is None else (self.device,)
        return [(span.start, span.end) for span in self._spans(rank, "kernel") if span.device in counted]

    def _collectives(self, rank: int) -> list[Interval]:
        return [(span.start, span.end) for span in self._communicating(rank)]

    def _transfers(self, rank: int) -> list[Interval]:
        return [(self._last_arrivals[span.key], span.end) for span in self._communicating(rank)]

    def _communicating(self, rank: int) -> list[RecordedSpan]:
        return [span for span in self.job.spans[rank] if span.collective is not None and not self.device]

    @cached_property
    def _last_arrivals(self) -> Mapping[Any, float]:
        last: dict[Any, float] = {}
        for rank in range(self.plan.ranks):
            for span in self._communicating(rank):
                last[span.key] = max(last.get(span.key, 0.0), span.start)
        return last


class JobSurfaces:
    """What is said of a job: the answers of all views that compare its ranks, and the summary."""

    run, span, hang = "job", "1", None

    def __init__(self, truth: JobTruth) -> None:
        plan = truth.plan
        self.ranks = plan.present
        self._traces: dict[str, Trace] = {}
        members, paths = [], []
        for rank in plan.present:
            trace = read_bytes(truth.job.file(rank, ahead=plan.ahead.get(rank, 0.0)))
            worker = self.worker(truth, rank)
            self._traces[worker] = trace
            members.append(ready_member(worker, rank, trace))
            path = reduce_path(trace)
            paths.append(Member(worker, rank, "1", "ready", None, path, members[-1].details))
        self._members: dict[str, Members[Any]] = {
            RankSummary.__name__: Members(members), RankPath.__name__: Members(paths),
        }  # fmt: skip
        self._answers: dict[tuple[str, str], Any] = {}

    @staticmethod
    def worker(truth: JobTruth, rank: int) -> str:
        """Return the name of a rank's worker."""
        return f"node{rank // truth.plan.simulation.per_host}_{1000 + rank}"

    @property
    def workers(self) -> list[str]:
        return list(self._traces)

    def odd_steps(self, truth: JobTruth, rank: int) -> frozenset[int]:
        """Return the odd steps of a rank, which the views about it name."""
        return frozenset(np.flatnonzero(step_kinds(self._traces[self.worker(truth, rank)]).odd).tolist())

    def answer(self, slug: str, worker: str) -> Any:
        """Return what a view answers for a worker without parameters."""
        key = slug, worker
        if key not in self._answers:
            self._answers[key] = self._build(slug, worker)
        return self._answers[key]

    def _build(self, slug: str, worker: str) -> Any:
        view = find_view(slug)
        params = parse_params(view.params, {})
        if isinstance(view, TraceView):
            if slug in ("memory", "modules"):
                raise NotFoundError("the simulation records no memory and no modules")
            return view.build(self._traces[worker], params)
        if isinstance(view, RankView):
            members = self._members[view.reduction.type.__name__]
            return view.build(self.answer(view.alone.slug, worker), worker, members, params)
        assert isinstance(view, RunView)
        return view.build(self._members[view.reduction.type.__name__], params)

    def sentences(self, rank_workers: Iterable[tuple[int, str]]) -> Iterator[tuple[str, int, str]]:
        """Yield (surface, rank, text) of everything said of these ranks and of the job.

        Every text of an answer counts, wherever it stands in it: the page, HTTP, the API, the report and MCP show
        these very texts. What the command line writes itself is read from what it prints.
        """
        ranks = list(rank_workers)
        first_rank, first = ranks[0]
        for slug in ("distributed", "critical_path/ranks"):
            yield from self._texts_of(slug, first_rank, first)
        for rank, worker in ranks:
            for slug in RANK_VIEWS:
                yield from self._texts_of(slug, rank, worker)
            for advice in self.answer("overview/ranks", worker).recommendations:
                yield "advice", rank, f"{plain(advice.title)}: {advice.gain}"
            rows = self.answer("idle/ranks", worker).causes[:3]
            yield "idle table", rank, ", ".join(row.subject for row in rows if row.subject)
        yield from self._summary_texts(first_rank)

    def _texts_of(self, slug: str, rank: int, worker: str) -> Iterator[tuple[str, int, str]]:
        payload = self.answer(slug, worker)
        for path, each in found_texts(payload, ""):
            yield slug + path, rank, each
        tab = slug if slug == "critical_path/ranks" else slug.partition("/")[0]
        screen = screen_of(tab, json.loads(msgspec.json.encode(payload)))
        for sentence in (*screen.sentences, *screen.notes):
            yield f"{slug} table", rank, sentence
        for label, value in screen.facts:
            yield f"{slug} table", rank, f"{label}: {value}"

    def _summary_texts(self, rank: int) -> Iterator[tuple[str, int, str]]:
        summary = summarize(self)
        for text in (*summary.headline, summary.communication.text if summary.communication else ""):
            yield "summary", rank, text
        for line in as_markdown(summary).replace("\\<", "<").splitlines():
            names = (f"{worker}{end}" for worker in self.workers for end in ":)")
            named = next((i // 2 for i, name in enumerate(names) if name in line), None)
            about = rank if named is None else self.ranks[named]
            advice = _ADVICE_LINE.fullmatch(line)
            if advice is not None:
                yield "advice", about, f"{advice['title']}: {advice['gain']}"
                yield "summary.text", about, advice["text"]
            elif line and not line.startswith("|"):
                yield "summary", about, _BULLET.sub("", line)


def found_texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield (path of the field, text) of all sentences in an answer."""
    if isinstance(value, tuple) and value and all(isinstance(each, Phrase) for each in value):
        yield path, plain(value)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from found_texts(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from found_texts(each, f"{path}.{name}")
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from found_texts(each, path)
