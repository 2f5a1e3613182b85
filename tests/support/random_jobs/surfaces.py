"""What every surface says of a random job."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from tests.support.jobs import ready_member
from tests.support.random_jobs.truth import JobTruth
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

RANK_VIEWS = (
    "overview", "overview/ranks", "idle", "idle/ranks", "critical_path", "critical_path/beside", "kernels",
    "operators", "trace", "roofline",
)  # fmt: skip
"""The views about one rank that the simulation records something for."""

_DEVICE_VIEWS = ("idle", "idle/ranks", "kernels", "roofline")
"""Those that need device work."""

_ADVICE_LINE = re.compile(r"\d+\. \*\*(?P<title>.+)\*\* \((?P<gain>.+), \S+\): (?P<text>.+)")
_BULLET = re.compile(r"^(?:- |## )(?:advice: )?(?:node\d+_\d+: )?(?:(?:info|warning|error): )?")


class JobSurfaces:
    """What is said of a job: the answers of all views that compare its ranks, and the summary."""

    run, span, hang = "job", "1", None

    def __init__(self, truth: JobTruth) -> None:
        plan = truth.plan
        self.ranks = plan.present
        self._traces: dict[str, Trace] = {}
        self.has_device = plan.kind != "cpu"
        members, paths = [], []
        for rank in plan.present:
            trace = read_bytes(truth.recorded.file(rank, ahead=plan.ahead.get(rank, 0.0)))
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

    def trace(self, truth: JobTruth, rank: int) -> Trace:
        """Return the trace of a rank."""
        return self._traces[self.worker(truth, rank)]

    def odd_steps(self, truth: JobTruth, rank: int) -> frozenset[int]:
        """Return the odd steps of a rank, which the views about it name."""
        odd = np.flatnonzero(step_kinds(self._traces[self.worker(truth, rank)]).odd).tolist()
        numbers = [number for number, _ in truth.recorded_steps(rank)]
        return frozenset(numbers[each] for each in odd) | truth.left_out(rank)

    def answer(self, slug: str, worker: str) -> Any:
        """Return what a view answers for a worker without parameters."""
        key = slug, worker
        if key not in self._answers:
            self._answers[key] = self._build(slug, worker)
        return self._answers[key]

    def _build(self, slug: str, worker: str) -> Any:
        if not self.has_device and slug in _DEVICE_VIEWS:
            raise NotFoundError("the process has no device")
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
            for slug in [each for each in RANK_VIEWS if self.has_device or each not in _DEVICE_VIEWS]:
                yield from self._texts_of(slug, rank, worker)
            for advice in self.answer("overview/ranks", worker).recommendations:
                yield "advice", rank, f"{plain(advice.title)}: {advice.gain}"
            rows = self.answer("idle/ranks", worker).causes[:3] if self.has_device else ()
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
            worker, _, message = text.partition(": ")
            if worker in self._traces:  # a sentence about one rank begins with its worker
                yield "summary", self.ranks[self.workers.index(worker)], message
            else:
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
