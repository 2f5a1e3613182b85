"""Answer views of all workers of a run, and of one worker next to the others."""

from __future__ import annotations

import gc
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec.structs import replace

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.memory import (
    allow_huge_pages,
    populate_memory,
    recycle_memory,
    release_memory,
    share_memory,
)
from torch_tb_profiler.base.threads import lend_threads
from torch_tb_profiler.base.threadsafe import threadsafe
from torch_tb_profiler.discovery import ListedFile, ListedRun, Span, Worker
from torch_tb_profiler.discovery.origin_files import is_metrics_file
from torch_tb_profiler.ingest.runtime import without_gc
from torch_tb_profiler.model.origin_records import PlacedIterations
from torch_tb_profiler.session.answers.answer import Answer, ViewRequest
from torch_tb_profiler.session.cache.entries import encode_json, job_key
from torch_tb_profiler.session.cache.packed import pack, unpack
from torch_tb_profiler.session.files import RequestedFiles
from torch_tb_profiler.session.state import FileState, ProgressInfo, StateName
from torch_tb_profiler.session.targets import Target, TargetNames, Targets, check_has_trace
from torch_tb_profiler.storage import FileId
from torch_tb_profiler.view import (
    Member,
    Members,
    RankView,
    Reduction,
    RunView,
    TracedIterations,
    TraceView,
    parse_params,
)

logger = logging.getLogger(__name__)

TracePayload = Callable[[TraceView[Any, Any], msgspec.Struct, Target, bool], tuple[FileState, bytes | None]]
"""Builds the payload of a view of one trace: (view, params, target, wait) -> (state, payload)."""


MIN_CACHED_MEMBERS = 64
"""Members from which on answers about a whole job are cached; those about fewer are built within 0.1 s."""

_COMPARING_THREADS = 4
"""As many as may wait for each other while a large job is compared."""

_COMPARED_BYTES = 2
"""For each byte that is read of its ranks, comparing a large job takes more than this many at once."""

MAX_REQUESTED = 8
"""Most traces that are read because a page shows the iterations of their processes."""

TracedFile = tuple[TargetNames, PlacedIterations]
"""A trace, and the iterations that were joined with it."""


class TracedFiles:
    """Finds the traces of other runs whose processes recorded the iterations of a file of metrics.

    artifacts/rank_00_metrics.jsonl                      the file: worker rank0 of run `artifacts`
    artifacts/torch_profiler/rank0/...pt.trace.json      a trace of the same process, in a run of its own
    """

    def __init__(self, files: RequestedFiles, targets: Targets) -> None:
        self._files = files
        self._targets = targets

    def find(self, metrics: Sequence[ListedFile], request: bool) -> tuple[Mapping[str, list[TracedFile]], int]:
        """Return the traces by the URI of their metrics, and how many of them are being read.

        request  read traces that are not cached, at most `MAX_REQUESTED`; else what isn't known yet is left out
        """
        found: dict[str, list[TracedFile]] = defaultdict(list)
        wanted = {file.id.uri for file in metrics if is_metrics_file(file.path)}
        requested = loading = 0
        for run in self._targets.runs if wanted else ():
            for worker in self._targets.workers(run):
                for span in worker.spans:
                    beside = {each.path: each.id.uri for each in span.file.origins if each.id.uri in wanted}
                    if not beside:
                        continue
                    if request and requested < MAX_REQUESTED:
                        requested += 1
                        self._targets.request(span.file)
                        loading += self._files.state(span.file.id).state in ("waiting", "loading")
                    summary = self._files.cached_summary(span.file.id)
                    placed = None if summary is None else summary.iterations
                    if placed is not None and placed.path in beside:
                        names = TargetNames(run.name, worker.name, span.name)
                        found[beside[placed.path]].append((names, placed))
        return found, loading


def traced_iterations(traces: Sequence[TracedFile], recording: int) -> tuple[TracedIterations, ...]:
    """Return where each trace has the iterations of one recording."""
    return tuple(
        TracedIterations(
            *names,
            {
                number: (begin, end)
                for number, begin, end in zip(placed.number, placed.begin, placed.end, strict=True)
                if begin < end
            },
        )
        for names, placed in traces
        if placed.recording == recording
    )


class _WorkerFile(msgspec.Struct, frozen=True):
    """A worker and its file of the span, or None if it has no such span; `part` is its number in a merged file.

    traced  traces of other runs that were joined with the file's iterations
    """

    worker: Worker
    file: FileId | None
    part: int | None
    state: FileState
    traced: tuple[TracedFile, ...] = ()


class _ReloadingError(Exception):
    """The cache has evicted what a view needs of a worker, and its file is being loaded again."""

    def __init__(self, file: FileId) -> None:
        super().__init__(file)
        self.file = file


class RunAnswers:
    """The answers of views of a run."""

    def __init__(self, files: RequestedFiles, targets: Targets, trace_payload: TracePayload) -> None:
        self._files = files
        self._targets = targets
        self._trace_payload = trace_payload
        self._traced = TracedFiles(files, targets)
        self._read_bytes = 0
        self._last: tuple[list[tuple[str, str, _WorkerFile]], Members[Any]] = [], Members(())

    def answer(self, view: RunView[Any, Any, Any] | RankView[Any, Any, Any], request: ViewRequest) -> Answer:
        params = parse_params(view.params, request.params)
        run = self._targets.run(request.names.run)
        span = request.names.span or "1"
        if request.wait:
            self._targets.wait_until_complete([each.file for each in self._find_spans(run, span)], request.timeout)
            run = self._targets.run(request.names.run)
        spans = self._find_spans(run, span)
        all_files = request.wait or isinstance(view, RunView) or len(spans) <= view.max_members
        if all_files:
            self._request_files(spans, request)
        else:
            self._targets.request(self._targets.find(request.names._replace(span=span)).file)
        loaded_spans = self._find_spans(
            run, span
        )  # loaded files may lack the span, or hold several workers with it
        if all_files and request.wait and len(loaded_spans) > len(spans):
            self._request_files(loaded_spans, request)
        files = self._find_worker_files(run, span, all_files)
        joining = 0
        if view.reduction.traced:
            traced, joining = self._traced.find([each.file for each in loaded_spans], request=not request.wait)
            files = [
                file if file.file is None else replace(file, traced=tuple(traced.get(file.file.uri, ())))
                for file in files
            ]
        states = [file.state for file in files]
        worker = request.names.worker or files[0].worker.name
        answer = Answer(view.slug, run.name, worker, span, states[0], None)
        loading = sum(state.state in ("waiting", "loading") for state in states) if all_files else 0
        if loading and (request.wait or loading == len(files)):
            return replace(answer, state=FileState("loading", progress=_sum_progress(states)), loading=loading)
        if all(state.state == "failed" for state in states):
            return replace(answer, state=next(state for state in states if state.error is not None))
        key = None if loading else self._cache_key(view, params, span, files)
        cached = None if key is None else self._files.cached_answer(key, view.slug)
        if cached is not None:
            return replace(answer, state=FileState("ready"), payload=cached)
        try:
            with self._comparing(len(files)):
                members = self._build_members(view.reduction, span, files)
                if self._files.own_process and view.reduction.details is not None:
                    populate_memory(_COMPARED_BYTES * self._read_bytes)
                reasons = [
                    member.reason for member in members if member.state == "ready" and member.result is None
                ]
                if len(reasons) == len(members) and reasons[0] is not None:
                    raise NotFoundError(reasons[0], where=run.name)
                built = self._build(view, request, members, replace(answer, loading=loading + joining), params)
            if (
                key is not None
                and built.payload is not None
                and not any(each.state == "loading" for each in members)
            ):
                self._files.cache_job_answer(key, view.slug, built.payload)
                self._files.cache_summaries([span.file for span in loaded_spans])
            return built
        except _ReloadingError as reloading:
            if request.wait and self._files.wait(reloading.file, request.timeout):
                return self.answer(view, request)
            return replace(answer, state=FileState("loading"), loading=loading + 1)

    @contextmanager
    def _comparing(self, members: int) -> Iterator[None]:
        """Compare the members of a large job inside the `with` block as fast as this process can."""
        if members < MIN_CACHED_MEMBERS:
            yield
            return
        from torch_tb_profiler.session.jobs import available_cores, enable_job_functions

        enable_job_functions()
        allow_huge_pages(False)
        recycle_memory()  # the C library would return each column of a large job to the system, page by page
        if self._files.own_process:
            share_memory()
        try:
            # Summaries are many small objects, none of which is garbage.
            with (
                without_gc(),
                ThreadPoolExecutor(_COMPARING_THREADS, "profiler-compare") as threads,
                lend_threads(threads if available_cores() > 1 else None),
            ):
                yield
                if self._files.own_process:
                    gc.freeze()  # a command ends soon: a search through all of them would find nothing
        finally:
            allow_huge_pages(True)
            if not self._files.own_process:
                release_memory()

    def _build(
        self,
        view: RunView[Any, Any, Any] | RankView[Any, Any, Any],
        request: ViewRequest,
        members: Members[Any],
        answer: Answer,
        params: msgspec.Struct,
    ) -> Answer:
        """Return `answer` with the payload; a view of one worker has none until that worker's trace is ready."""
        if isinstance(view, RunView):
            return replace(answer, state=FileState("ready"), payload=encode_json(view.build(members, params)))
        target = self._targets.find(request.names._replace(span=answer.span))
        worker = target.worker.name
        state, trace_payload = self._trace_payload(view.alone, params, target, request.wait)
        if trace_payload is None:
            return replace(answer, worker=worker, state=state)
        alone = msgspec.json.decode(trace_payload, type=threadsafe(view.alone.payload))
        payload = encode_json(view.build(alone, worker, members, params))
        return replace(answer, worker=worker, state=state, payload=payload)

    def _cache_key(
        self,
        view: RunView[Any, Any, Any] | RankView[Any, Any, Any],
        params: msgspec.Struct,
        span: str,
        files: list[_WorkerFile],
    ) -> str | None:
        """Return the key under which an answer about all members of a large job is cached; None if it isn't.

        It names all that the answer is built from: the members, and the cache entry of each one's file.
        """
        if not isinstance(view, RunView) or view.reduction.traced or len(files) < MIN_CACHED_MEMBERS:
            return None
        members = [
            (
                each.worker.name,
                each.worker.rank,
                None if each.file is None else self._files.key(each.file),
                each.part,
                each.state.state,
                None if each.state.error is None else each.state.error.message,
            )
            for each in files
        ]
        return job_key((view.slug, span, params, members))

    def _find_spans(self, run: ListedRun, name: str) -> list[Span]:
        """Return the spans of a name; NotFoundError lists the spans of the run."""
        check_has_trace(run)
        spans = self._targets.spans(run, name)
        if not spans:
            names = {span.name for worker in self._targets.workers(run) for span in worker.spans}
            hint = f"spans: {', '.join(sorted(names, key=int))}"
            raise NotFoundError(f"there is no span {name!r}", hint=hint)
        return spans

    def _request_files(self, spans: list[Span], request: ViewRequest) -> None:
        """Request all files before the workers are listed: the summary of a cached file has its rank."""
        deadline = None if request.timeout is None else time.monotonic() + request.timeout
        if len(spans) >= MIN_CACHED_MEMBERS:
            self._targets.request_all([span.file for span in spans])
        else:
            for span in spans:
                self._targets.request(span.file)
        for span in spans if request.wait else ():
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            self._files.wait(span.file.id, left)

    def _find_worker_files(self, run: ListedRun, name: str, request: bool) -> list[_WorkerFile]:
        """Return the file of a span for every worker; request the files if `request`."""
        files = []
        for worker in self._targets.workers(run):
            span = self._targets.span(worker, name)
            part = None if span is None else span.part
            if span is None:
                files.append(_WorkerFile(worker, None, part, FileState("failed")))
            else:
                if request:
                    self._targets.request(span.file)
                files.append(_WorkerFile(worker, span.file.id, part, self._files.state(span.file.id)))
        return files

    def _build_members(self, reduction: Reduction[Any], span: str, files: list[_WorkerFile]) -> Members[Any]:
        """Return the members with their results; the same object as before if nothing has changed."""
        keys = [(reduction.slug, span, file) for file in files]
        last_keys, members = self._last
        if keys != last_keys:
            known = dict(zip(last_keys, members, strict=True))
            members = Members(
                known[key] if key in known else self._build_member(reduction, span, file)
                for key, file in zip(keys, files, strict=True)
            )
            self._last = keys, members
        return members

    def _build_member(self, reduction: Reduction[Any], span: str, file: _WorkerFile) -> Member[Any]:
        worker, state = file.worker, file.state

        def member(name: StateName, reason: str | None, result: object = None) -> Member[Any]:
            traced = traced_iterations(file.traced, file.part or 0)
            return Member(worker.name, worker.rank, span, name, reason, result, load_details, traced)

        def load_details() -> object:
            assert reduction.details is not None and file.file is not None
            reduced = self._load_reduction(reduction.details, file.file, file.part, mapped=True)
            if reduced is None:
                raise _ReloadingError(file.file)
            return reduced

        if file.file is None:
            return member("failed", f"this worker has no span {span}")
        summary = self._files.summary(file.file)
        if state.state != "ready" or summary is None:
            return member(state.state, state.error.message if state.error is not None else None)
        if reduction.slug in summary.unavailable:
            return member("ready", summary.unavailable[reduction.slug])
        result = self._load_reduction(reduction, file.file, file.part)
        return member("loading", None) if result is None else member("ready", None, result)

    def _load_reduction(
        self, reduction: Reduction[Any], file: FileId, part: int | None, mapped: bool = False
    ) -> object | None:
        """Return the reduction of a trace, from the cache or computed again; None while the trace is loading."""
        content = self._files.reduced(file, reduction.cache_name, part, mapped)
        if content is not None:
            try:
                result: object = unpack(content, reduction.type)
            except ValueError:
                logger.warning("a cached reduction of %s can't be read and is computed again", reduction.slug)
            else:
                self._read_bytes += 0 if mapped else len(content)
                return result
        trace = self._files.trace(file, part)
        if trace is None:
            self._files.reload(file)
            return None
        reduced: object = reduction.reduce(trace)
        self._files.cache_reduced(file, reduction.cache_name, part, pack(reduced))
        return reduced


def _sum_progress(states: list[FileState]) -> ProgressInfo:
    """Add up the progress of all files."""
    parts = [state.progress for state in states if state.progress is not None]
    stage = parts[0].stage if parts else "reading"
    done, total, events = (
        sum(getattr(part, name) for part in parts) for name in ("bytes_done", "bytes_total", "events")
    )
    return ProgressInfo(stage, done, total, events)
