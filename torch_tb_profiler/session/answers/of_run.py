"""Views of all workers of a run, and of one of them beside the others."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.discovery import Run, Span, Worker
from torch_tb_profiler.session.answers.answer import Answer, Question
from torch_tb_profiler.session.answers.of_trace import TraceAnswers
from torch_tb_profiler.session.files import Files
from torch_tb_profiler.session.kept.packed import unpack
from torch_tb_profiler.session.kept.summary import encode
from torch_tb_profiler.session.state import FileState, ProgressInfo, StateName
from torch_tb_profiler.session.targets import Targets
from torch_tb_profiler.storage import FileId
from torch_tb_profiler.view import Member, Members, RankView, Reduction, RunView, parse_params

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _WorkerFile:
    """A worker and its file of the span, None if it has no such span; `part` tells which of a file that holds
    several traces."""

    worker: Worker
    file: FileId | None
    part: int | None
    state: FileState


class _ReadingAgainError(Exception):
    """The cache has lost what a view opens of a worker, and its file is being read again."""

    def __init__(self, file: FileId) -> None:
        super().__init__(file)
        self.file = file


class RunAnswers:
    def __init__(self, files: Files, targets: Targets, of_trace: TraceAnswers) -> None:
        self._files = files
        self._targets = targets
        self._of_trace = of_trace
        self._last: tuple[list[tuple[str, str, _WorkerFile]], Members[Any]] = [], Members(())

    def answer(self, view: RunView[Any, Any, Any] | RankView[Any, Any, Any], question: Question) -> Answer:
        params = parse_params(view.params, question.params)
        run = self._targets.run(question.names.run)
        span = question.names.span or "1"
        if question.wait:
            self._targets.wait_until_whole([each.file for each in self._spans(run, span)], question.timeout)
            run = self._targets.run(question.names.run)
        spans = self._spans(run, span)
        whole = question.wait or isinstance(view, RunView) or len(spans) <= view.most
        if whole:
            self._request(spans, question)
        else:
            self._targets.request(self._targets.find(question.names._replace(span=span)).file)
        now = self._spans(run, span)  # what has been read may have no such span, or more workers with it
        if whole and question.wait and len(now) > len(spans):
            self._request(now, question)
        files = self._worker_files(run, span, whole)
        states = [file.state for file in files]
        worker = question.names.worker or files[0].worker.name
        answer = Answer(view.slug, run.name, worker, span, states[0], None)
        loading = sum(state.state in ("waiting", "loading") for state in states) if whole else 0
        if loading and (question.wait or loading == len(files)):
            return replace(answer, state=FileState("loading", progress=_sum_progress(states)), loading=loading)
        if all(state.state == "failed" for state in states):
            return replace(answer, state=next(state for state in states if state.error is not None))
        members = self._members(view.reduction, span, files)
        reasons = [member.reason for member in members if member.state == "ready" and member.result is None]
        if len(reasons) == len(members) and reasons[0] is not None:
            raise NotFoundError(reasons[0], where=run.name)
        try:
            return self._ready(view, question, members, replace(answer, loading=loading), params)
        except _ReadingAgainError as reading:
            if question.wait and self._files.wait(reading.file, question.timeout):
                return self.answer(view, question)
            return replace(answer, state=FileState("loading"), loading=loading + 1)

    def _ready(
        self,
        view: RunView[Any, Any, Any] | RankView[Any, Any, Any],
        question: Question,
        members: Members[Any],
        answer: Answer,
        params: msgspec.Struct,
    ) -> Answer:
        """With the payload, as soon as the worker's own view has one."""
        if isinstance(view, RunView):
            return replace(answer, state=FileState("ready"), payload=encode(view.build(members, params)))
        target = self._targets.find(question.names._replace(span=answer.span))
        worker = target.worker.name
        state, alone = self._of_trace.payload(view.alone, params, target, question.wait)
        if alone is None:
            return replace(answer, worker=worker, state=state)
        own = msgspec.json.decode(alone, type=view.alone.payload)
        payload = encode(view.build(own, worker, members, params))
        return replace(answer, worker=worker, state=state, payload=payload)

    def _spans(self, run: Run, name: str) -> list[Span]:
        """The spans of a name; NotFoundError says what there is."""
        spans = self._targets.spans(run, name)
        if not spans:
            known = {span.name for worker in self._targets.workers(run) for span in worker.spans}
            hint = f"spans: {', '.join(sorted(known, key=int))}"
            raise NotFoundError(f"there is no span {name!r}", hint=hint)
        return spans

    def _request(self, spans: list[Span], question: Question) -> None:
        """Ask for all files before the workers are listed: what is in the cache then says its rank."""
        deadline = None if question.timeout is None else time.monotonic() + question.timeout
        for span in spans:
            self._targets.request(span.file)
        for span in spans if question.wait else ():
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            self._files.wait(span.file.id, left)

    def _worker_files(self, run: Run, name: str, asked: bool) -> list[_WorkerFile]:
        """The files of a span of every worker; asked for, if they are to be read."""
        files = []
        for worker in self._targets.workers(run):
            span = self._targets.span(worker, name)
            part = None if span is None else span.part
            if span is None:
                files.append(_WorkerFile(worker, None, part, FileState("failed")))
            else:
                if asked:
                    self._targets.request(span.file)
                files.append(_WorkerFile(worker, span.file.id, part, self._files.state(span.file.id)))
        return files

    def _members(self, reduction: Reduction[Any], span: str, files: list[_WorkerFile]) -> Members[Any]:
        """The members with their results; the same object as before if nothing has changed."""
        keys = [(reduction.slug, span, file) for file in files]
        last_keys, members = self._last
        if keys != last_keys:
            known = dict(zip(last_keys, members, strict=True))
            members = Members(
                known[key] if key in known else self._member(reduction, span, file)
                for key, file in zip(keys, files, strict=True)
            )
            self._last = keys, members
        return members

    def _member(self, reduction: Reduction[Any], span: str, file: _WorkerFile) -> Member[Any]:
        worker, state = file.worker, file.state

        def member(name: StateName, reason: str | None, result: object = None) -> Member[Any]:
            return Member(worker.name, worker.rank, span, name, reason, result, details)

        def details() -> object:
            assert reduction.details is not None and file.file is not None
            reduced = self._reduced(reduction.details, file.file, file.part, mapped=True)
            if reduced is None:
                raise _ReadingAgainError(file.file)
            return reduced

        if file.file is None:
            return member("failed", f"this worker has no span {span}")
        summary = self._files.summary(file.file)
        if state.state != "ready" or summary is None:
            return member(state.state, state.error.message if state.error is not None else None)
        if reduction.slug in summary.unavailable:
            return member("ready", summary.unavailable[reduction.slug])
        result = self._reduced(reduction, file.file, file.part)
        return member("loading", None) if result is None else member("ready", None, result)

    def _reduced(
        self, reduction: Reduction[Any], file: FileId, part: int | None, mapped: bool = False
    ) -> object | None:
        """What a trace was reduced to: kept since it was loaded, else made again; None while it is loading."""
        content = self._files.reduced(file, reduction.kept_as, part, mapped)
        if content is not None:
            try:
                result: object = unpack(content, reduction.type)
            except ValueError:
                logger.warning("what is kept of a trace for %s cannot be read and is made again", reduction.slug)
            else:
                return result
        trace = self._files.trace(file, part)
        if trace is None:
            self._files.reload(file)
            return None
        return reduction.reduce(trace)  # type: ignore[no-any-return]


def _sum_progress(states: list[FileState]) -> ProgressInfo:
    """How far the reading of all files is."""
    parts = [state.progress for state in states if state.progress is not None]
    stage = parts[0].stage if parts else "reading"
    done, total, events = (
        sum(getattr(part, name) for part in parts) for name in ("bytes_done", "bytes_total", "events")
    )
    return ProgressInfo(stage, done, total, events)
