"""From the names of a request to a payload: the files are asked for, and their traces handed to the view."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from torch_tb_profiler.base.errors import NotFoundError, TraceError
from torch_tb_profiler.discovery import MemoryFile, Run, Span, Worker
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.session.jobs import Facts, encode
from torch_tb_profiler.session.state import FileState, ProgressInfo, StateName
from torch_tb_profiler.session.store import TraceStore
from torch_tb_profiler.view import (
    BASE,
    FileView,
    Member,
    Members,
    PairView,
    Reduction,
    RunView,
    TraceView,
    View,
    parse_params,
)
from torch_tb_profiler.views import all_views, find_view

if TYPE_CHECKING:
    from torch_tb_profiler.session import Session


logger = logging.getLogger(__name__)


ATTEMPTS = 5
"""How often a trace that others drop from a cache too small for all is loaded for one question."""


class Names(NamedTuple):
    """What a request names; None means the first."""

    run: str | None
    worker: str | None
    span: str | None


class FullNames(NamedTuple):
    """The names of an existing trace."""

    run: str
    worker: str
    span: str


@dataclass(frozen=True)
class Target:
    """One trace: a span of a worker of a run, resolved to existing names."""

    run: Run
    worker: Worker
    span: Span
    rank: int | None = None

    @property
    def names(self) -> FullNames:
        return FullNames(self.run.name, self.worker.name, self.span.name)


@dataclass(frozen=True)
class Answer:
    """A view's payload as JSON, or the state of the file while there is none yet.

    loading  how many files are still to come into the payload of a view of a run
    base     what the view of a pair compares with
    """

    view: str
    run: str
    worker: str
    span: str
    state: FileState
    payload: bytes | None
    loading: int = 0
    base: FullNames | None = None


class Viewer:
    """Answers views over what a session knows and its store holds."""

    def __init__(self, session: Session, store: TraceStore) -> None:
        self._session = session
        self._store = store
        self._reading = threading.Lock()
        self._last: tuple[tuple[str, str], object] = (("", ""), None)
        self._gathered: tuple[list[tuple[str, str, _Place]], Members[Any]] = [], Members(())

    def answer(
        self, slug: str, names: Names, params: Mapping[str, str], wait: bool, timeout: float | None
    ) -> Answer:
        """As `Session.view`."""
        view = find_view(slug)
        match view:
            case TraceView():
                return self._of_trace(view, names, params, wait, timeout)
            case RunView():
                return self._of_run(view, names, params, wait, timeout)
            case PairView():
                return self._of_pair(view, names, params, wait, timeout)
            case FileView():
                return self._of_file(view, names, params)

    def ready(self, names: Names, wait: bool, timeout: float | None) -> tuple[str, Target]:
        """Ask for a file, wait for it if told to; its key and whose it is."""
        target = self._session.find(*names)
        key = self._session.load(target.run, target.span)
        if wait:
            self._store.wait(key, timeout)
        if self._store.state(key).state == "ready":
            target = self._session.find(*names)  # a merged file has just become several workers
        return key, target

    def trace(self, key: str, target: Target) -> tuple[FileState, Trace | None]:
        """The trace of a file that is ready; if the cache has lost it, it is loading again."""
        state = self._store.state(key)
        if state.state != "ready":
            return state, None
        trace = self._store.trace(key, target.rank)
        if trace is None:
            self._store.reload(key)
        return self._store.state(key), trace

    # ---- one worker ---------------------------------------------------------------------------------

    def _of_trace(
        self, view: TraceView[Any, Any], names: Names, params: Mapping[str, str], wait: bool, timeout: float | None
    ) -> Answer:
        parsed = parse_params(view.params, params)
        key, target = self.ready(names, wait, timeout)
        state, payload = self._payload(view, parsed, key, target)
        attempts = ATTEMPTS if wait else 0
        while payload is None and attempts and state.state != "failed" and self._store.wait(key, timeout):
            state, payload = self._payload(view, parsed, key, target)
            attempts -= 1
        return Answer(view.slug, *target.names, state, payload)

    def _payload(
        self, view: TraceView[Any, Any], params: msgspec.Struct, key: str, target: Target
    ) -> tuple[FileState, bytes | None]:
        self._check_available(view, key, target)
        if view.eager:
            kept = self._store.result(key, view.slug, target.rank)
            if kept is not None:
                return self._store.state(key), kept
        state, trace = self.trace(key, target)
        return state, None if trace is None else encode(view.build(trace, params))

    def _check_available(self, view: View, key: str, target: Target) -> None:
        facts = self._store.facts(key)
        reason = lacking(facts, target.run).get(view.tab) if facts is not None else None
        if reason is not None:
            raise NotFoundError(reason, where=target.span.file.path)

    # ---- files beside the traces --------------------------------------------------------------------

    def _of_file(self, view: FileView[Any, Any, Any], names: Names, params: Mapping[str, str]) -> Answer:
        parsed = parse_params(view.params, params)
        run = self._session.catalog.run(names.run)
        file = self._session.memory_file(run, parsed.file)
        made = self._read(view, run, file)
        worker = run.workers[0]
        payload = encode(view.build(made, parsed))
        return Answer(view.slug, run.name, worker.name, worker.spans[0].name, FileState("ready"), payload)

    def _read(self, view: FileView[Any, Any, Any], run: Run, file: MemoryFile) -> object:
        """What a file says; that of the last one is kept."""
        name = (view.slug, file.file.key)
        with self._reading:  # one at a time: a snapshot takes many times its size in memory while it is read
            if self._last[0] != name:
                self._last = (("", ""), None)
                stored = self._session.open_file(run, file)
                with stored.stream:
                    try:
                        self._last = (name, view.read(stored))
                    except TraceError as error:
                        raise TraceError(error.message, where=file.name, hint=error.hint) from error
            return self._last[1]

    # ---- two workers --------------------------------------------------------------------------------

    def _of_pair(
        self, view: PairView[Any, Any], names: Names, params: Mapping[str, str], wait: bool, timeout: float | None
    ) -> Answer:
        parsed = parse_params(view.params, {name: text for name, text in params.items() if name not in BASE})
        given = Names(*(params.get(name) for name in BASE))
        key, target = self.ready(names, wait, timeout)
        base_key, base = self.ready(self._base(given, target), wait, timeout)
        traces: list[Trace] = []
        state = self._store.state(key)
        for each, whose in ((key, target), (base_key, base)):
            self._check_available(view, each, whose)
            state, trace = self.trace(each, whose)
            if trace is None:
                return Answer(view.slug, *target.names, state, None, base=base.names)
            traces.append(trace)
        payload = encode(view.build(traces[0], traces[1], parsed))
        return Answer(view.slug, *target.names, state, payload, base=base.names)

    def _base(self, given: Names, candidate: Target) -> Names:
        """What is compared with where nothing is named: the same worker and span of the first other run;
        the first other worker, or span, where there is but one run."""
        if given != Names(None, None, None):
            return given
        runs = self._session.catalog.runs
        other = next((run for run in runs if run.name != candidate.run.name), None)
        if other is not None:
            workers = {worker.name: worker for worker in self._session.workers(other)}
            worker = workers.get(candidate.worker.name)
            spans = {span.name for span in worker.spans} if worker is not None else set()
            span = candidate.span.name if candidate.span.name in spans else None
            return Names(other.name, worker.name if worker is not None else None, span)
        for sibling in self._session.workers(candidate.run):
            for each in sibling.spans:
                names = Names(candidate.run.name, sibling.name, each.name)
                if tuple(names) != tuple(candidate.names):
                    return names
        raise NotFoundError("there is only one trace", hint="put a second run into the log folder to compare with")

    # ---- all workers of a run -----------------------------------------------------------------------

    def _of_run(
        self,
        view: RunView[Any, Any, Any],
        names: Names,
        params: Mapping[str, str],
        wait: bool,
        timeout: float | None,
    ) -> Answer:
        parsed = parse_params(view.params, params)
        run = self._session.catalog.run(names.run)
        span = _known_span(run, names.span)
        deadline = None if timeout is None else time.monotonic() + timeout
        # Asked for before the workers are listed: what is in the cache then says its rank.
        keys = [self._session.load(run, each) for each in _spans(run, span)]
        for key in keys if wait else ():
            self._store.wait(key, None if deadline is None else max(deadline - time.monotonic(), 0.0))
        places = self._places(run, span)
        states = [place.state for place in places]
        answer = Answer(view.slug, run.name, names.worker or places[0].worker.name, span, states[0], None)
        loading = sum(state.state in ("waiting", "loading") for state in states)
        if loading and (wait or loading == len(places)):
            return replace(answer, state=FileState("loading", progress=_sum_progress(states)), loading=loading)
        if all(state.state == "failed" for state in states):
            return replace(answer, state=next(state for state in states if state.error is not None))
        members = self._gather(view.reduction, span, places)
        reasons = [member.reason for member in members if member.state == "ready" and member.result is None]
        if len(reasons) == len(members) and reasons[0] is not None:
            raise NotFoundError(reasons[0], where=run.name)
        payload = encode(view.build(members, parsed))
        return replace(answer, state=FileState("ready"), payload=payload, loading=loading)

    def _places(self, run: Run, name: str) -> list[_Place]:
        """The files of a span of every worker, all of them asked for."""
        whole = {worker.name for worker in run.workers}
        places = []
        for worker in self._session.workers(run):
            span = next((span for span in worker.spans if span.name == name), None)
            which = None if worker.name in whole else worker.rank
            if span is None:
                places.append(_Place(worker, None, which, FileState("failed")))
            else:
                key = self._session.load(run, span)
                places.append(_Place(worker, key, which, self._store.state(key)))
        return places

    def _gather(self, reduction: Reduction[Any], span: str, places: list[_Place]) -> Members[Any]:
        """The members with their results; the same object as before if nothing has changed."""
        keys = [(reduction.slug, span, place) for place in places]
        known, members = self._gathered
        if keys != known:
            former = dict(zip(known, members, strict=True))
            members = Members(
                former[key] if key in former else self._member(reduction, span, place)
                for key, place in zip(keys, places, strict=True)
            )
            self._gathered = keys, members
        return members

    def _member(self, reduction: Reduction[Any], span: str, place: _Place) -> Member[Any]:
        worker, state = place.worker, place.state

        def member(name: StateName, reason: str | None, result: object = None) -> Member[Any]:
            return Member(worker.name, worker.rank, span, name, reason, result)

        if place.key is None:
            return member("failed", f"this worker has no span {span}")
        facts = self._store.facts(place.key)
        if state.state != "ready" or facts is None:
            return member(state.state, state.error.message if state.error is not None else None)
        if reduction.slug in facts.unavailable:
            return member("ready", facts.unavailable[reduction.slug])
        result = self._reduced(reduction, place.key, place.which)
        return member("loading", None) if result is None else member("ready", None, result)

    def _reduced(self, reduction: Reduction[Any], key: str, which: int | None) -> object | None:
        """What a trace was reduced to: kept since it was loaded, else made again; None while it is loading."""
        kept = self._store.result(key, reduction.slug, which)
        if kept is not None:
            try:
                result: object = msgspec.json.decode(kept, type=reduction.type)
            except msgspec.DecodeError:
                logger.warning("what is kept of a trace for %s cannot be read and is made again", reduction.slug)
            else:
                return result
        trace = self._store.trace(key, which)
        if trace is None:
            self._store.reload(key)
            return None
        made: object = reduction.reduce(trace)
        return made


@dataclass(frozen=True)
class _Place:
    """A worker and its file; `which` is its rank in a file of several."""

    worker: Worker
    key: str | None
    which: int | None
    state: FileState


def lacking(facts: Facts, run: Run) -> Mapping[str, str]:
    """View slug -> why a trace has nothing to show there. A tab that opens the run's other files always has."""
    if not run.memory_files:
        return facts.unavailable
    opens = {view.tab for view in all_views() if isinstance(view, FileView)}
    return {slug: reason for slug, reason in facts.unavailable.items() if slug not in opens}


def _spans(run: Run, name: str) -> list[Span]:
    return [span for worker in run.workers for span in worker.spans if span.name == name]


def _known_span(run: Run, name: str | None) -> str:
    """The span of a name, the first if None; NotFoundError says what there is."""
    if not _spans(run, name or "1"):
        known = sorted({span.name for worker in run.workers for span in worker.spans}, key=int)
        raise NotFoundError(f"there is no span {name!r}", hint=f"spans: {', '.join(known)}")
    return name or "1"


def _sum_progress(states: list[FileState]) -> ProgressInfo:
    """How far the reading of all files is."""
    parts = [state.progress for state in states if state.progress is not None]
    stage = parts[0].stage if parts else "reading"
    done, total, events = (
        sum(getattr(part, name) for part in parts) for name in ("bytes_done", "bytes_total", "events")
    )
    return ProgressInfo(stage, done, total, events)
