"""What is true of a random job, computed from its simulation the slow way, and what every surface says of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.support.jobs import ready_member
from tests.support.random_jobs.plan import JobPlan
from tests.support.simulation.files import RecordedJob, RecordedSpan
from tests.support.simulation.simulator import Collective, Host, SimulatedKernel, Simulation
from tests.support.traces import read_bytes
from torch_tb_profiler.analyses.distributed.job_path import RankPath, reduce_path
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.summary import summarize
from torch_tb_profiler.view import Member, Members, RankView, RunView, TraceView, parse_params
from torch_tb_profiler.views import find_view
from torch_tb_profiler.views._shared.text import plain

Interval = tuple[float, float]


def union_us(intervals: Iterable[Interval]) -> float:
    """Return the length of the union."""
    length, reached = 0.0, float("-inf")
    for start, end in sorted(intervals):
        length += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return length


@dataclass(frozen=True)
class JobTruth:
    """The job of a plan, simulated; times in µs per step."""

    plan: JobPlan
    job: RecordedJob

    @property
    def steps(self) -> int:
        return self.plan.simulation.steps

    @cached_property
    def cause_cost(self) -> float:
        """What the late rank costs the job per step."""
        return 0.0 if self.plan.cause is None else self._cost(self.plan.without(cause=True))

    @cached_property
    def shared_cost(self) -> float:
        """What the work that all ranks do on the host costs per step."""
        return 0.0 if self.plan.shared is None else self._cost(self.plan.without(shared=True))

    @cached_property
    def step(self) -> float:
        """The mean step of the job."""
        return self._step(self.plan.simulation)

    @cached_property
    def typical_step(self) -> float:
        """The mean of the steps that aren't odd."""
        odd = self.plan.odd
        spans = [span for span in self.job.spans[self.plan.present[0]] if span.kind == "step"]
        usual = [span for number, span in enumerate(spans) if odd is None or number != odd[0]]
        return sum(span.end - span.start for span in usual) / len(usual)

    def with_kernels(self, factor: float) -> float:
        """Return the mean step with kernels of all ranks that many times as long."""
        return self._step(self.plan.scaled(SimulatedKernel, factor))

    def with_host(self, factor: float) -> float:
        """Return the mean step with host code of all ranks that many times as long."""
        return self._step(self.plan.scaled(Host, factor))

    def with_transfers(self, factor: float) -> float:
        """Return the mean step with transfers that many times as long."""
        return self._step(self.plan.scaled(Collective, factor))

    def _cost(self, without: Simulation) -> float:
        return self.step - self._step(without)

    @staticmethod
    def _step(simulation: Simulation) -> float:
        spans = simulation.run().spans
        return sum(max(span.end for span in rank) - min(span.start for span in rank) for rank in spans) / (
            len(spans) * simulation.steps
        )

    def waiting(self, rank: int) -> float:
        """Time of a typical step in which a rank is in a collective, but neither computes nor moves data."""
        return self._exclusive(self._collectives(rank), self._computation(rank) + self._transfers(rank), rank)

    def transfer(self, rank: int) -> float:
        """Time of a typical step in which a rank moves data without computing."""
        return self._exclusive(self._transfers(rank), self._computation(rank), rank)

    def exposed(self, rank: int) -> float:
        """Time of a typical step in which a rank is in a collective without computing."""
        return self._exclusive(self._collectives(rank), self._computation(rank), rank)

    def _exclusive(self, counted: list[Interval], others: list[Interval], rank: int) -> float:
        """Return the time per typical step in which any of `counted` runs, but none of `others`."""
        steps = [(span.start, span.end) for span in self.job.spans[rank] if span.kind == "step"]
        odd = [] if self.plan.odd is None else [steps[self.plan.odd[0]]]
        hidden = others + odd
        return (union_us(hidden + counted) - union_us(hidden)) / (self.steps - len(odd))

    @property
    def groups(self) -> set[tuple[int, ...]]:
        """The ranks of each group that communicates."""
        return {span.collective.ranks for rank in range(self.plan.ranks) for span in self._communicating(rank)}

    def _computation(self, rank: int) -> list[Interval]:
        return [(span.start, span.end) for span in self.job.spans[rank] if span.kind == "kernel"]

    def _collectives(self, rank: int) -> list[Interval]:
        return [(span.start, span.end) for span in self._communicating(rank)]

    def _transfers(self, rank: int) -> list[Interval]:
        return [(self._last_arrivals[span.key], span.end) for span in self._communicating(rank)]

    def _communicating(self, rank: int) -> list[RecordedSpan]:
        return [span for span in self.job.spans[rank] if span.collective is not None]

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
        """Yield (surface, rank, text) of everything said of these ranks and of the job."""
        ranks = list(rank_workers)
        first_rank, first = ranks[0]
        job = self.answer("distributed", first)
        for text in (job.headline, job.explanation):
            yield "distributed", first_rank, plain(text)
        path = self.answer("critical_path/ranks", first)
        yield "critical_path/ranks", first_rank, plain(path.explanation)
        for rank, worker in ranks:
            for slug, fields in (
                ("overview/ranks", ("headline", "beside")),
                ("idle/ranks", ("headline", "explanation", "beside")),
                ("critical_path/beside", ("headline", "explanation", "beside")),
            ):
                payload = self.answer(slug, worker)
                for field in fields:
                    yield slug, rank, plain(getattr(payload, field))
            for advice in self.answer("overview/ranks", worker).recommendations:
                yield "advice", rank, f"{plain(advice.title)}: {advice.gain}"
            rows = self.answer("idle/ranks", worker).causes[:3]
            yield "idle table", rank, ", ".join(row.subject for row in rows if row.subject)
        summary = summarize(self)
        for text in (*summary.headline, summary.communication.text if summary.communication else ""):
            yield "summary", first_rank, text
