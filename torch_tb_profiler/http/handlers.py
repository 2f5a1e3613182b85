"""What each route answers: ask the session, fill the body."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from torch_tb_profiler.discovery import Catalog, Span
from torch_tb_profiler.http import bodies
from torch_tb_profiler.http.attachment import Attachment
from torch_tb_profiler.http.query import Query
from torch_tb_profiler.session import Answer, FileState, Session, Target
from torch_tb_profiler.views import all_tabs


def runs(session: Session, query: Query) -> bodies.Runs:
    listed = []
    for run in session.catalog.runs:
        states = [session.state(span).state for worker in run.workers for span in worker.spans]
        counts = bodies.FileCounts(*(states.count(name) for name in ("waiting", "loading", "ready", "failed")))
        spans = max((len(worker.spans) for worker in run.workers), default=0)
        size = sum(file.size for file in run.files())
        listed.append(bodies.RunInfo(run.name, len(run.workers), spans, size, counts))
    problems = list(session.catalog.problems)
    return bodies.Runs(
        not session.scanned, session.error, session.root, problems, listed, _others(session.catalog)
    )


def _others(catalog: Catalog) -> bodies.OtherTools | None:
    if catalog.others_headline is None:
        return None
    kinds = [
        bodies.OtherFilesInfo(each.kind, each.advice, len(each.files), [file.path for file in each.files[:20]])
        for each in catalog.others
    ]
    return bodies.OtherTools(catalog.others_headline, kinds)


def workers(session: Session, query: Query) -> bodies.Workers:
    run = session.catalog.run(query.run)
    listed = [
        bodies.WorkerInfo(worker.name, worker.rank, [_span(session, span) for span in worker.spans])
        for worker in session.workers(run)
    ]
    files = [
        bodies.MemoryFileInfo(number, each.name, each.kind, each.file.size)
        for number, each in enumerate(run.memory_files)
    ]
    return bodies.Workers(run.name, listed, files)


def spans(session: Session, query: Query) -> bodies.Spans:
    target = session.find(*query.names)
    listed = [_span(session, span) for span in target.worker.spans]
    return bodies.Spans(target.run.name, target.worker.name, listed)


def state(session: Session, query: Query) -> bodies.State:
    return _state(session, session.find(*query.names))


def retry(session: Session, query: Query) -> bodies.State:
    target = session.find(*query.names)
    session.retry(target.span)
    return _state(session, target)


def health(session: Session, query: Query) -> bodies.Health:
    run = session.catalog.run(query.run)
    all_files = query.worker is None and query.span is None
    chosen = None if all_files else session.find(*query.names)
    files = [
        bodies.FileHealth(
            worker.name,
            span.name,
            span.file.path,
            span.file.size,
            session.state(span),
            list(session.health(span)),
        )
        for worker in session.workers(run)
        for span in worker.spans
        if chosen is None or (chosen.worker.name, chosen.span.name) == (worker.name, span.name)
    ]
    return bodies.Health(run.name, files)


def views(session: Session, query: Query) -> bodies.Views:
    reasons = session.unavailable(session.find(*query.names)) if session.catalog.runs else None
    listed = [
        bodies.ViewInfo(
            tab.slug,
            tab.view.title,
            tab.section,
            None if reasons is None else tab.slug not in reasons,
            None if reasons is None else reasons.get(tab.slug),
        )
        for tab in all_tabs()
    ]
    return bodies.Views(listed)


def view(session: Session, query: Query, slug: str) -> Any:
    return envelope(session.view(slug, *query.names, query.params))


def envelope(answer: Answer) -> Any:
    """What is said around a payload, as a dict: the payload is JSON already, and its type depends on the slug."""
    if answer.payload is None:
        return _not_ready(answer.state, answer.view, answer.run, answer.worker, answer.span)
    return {
        "state": "ready",
        "view": answer.view,
        "run": answer.run,
        "worker": answer.worker,
        "span": answer.span,
        "loading": answer.loading,
        "base": answer.base and answer.base._asdict(),
        "payload": msgspec.Raw(answer.payload),
    }


def download(session: Session, query: Query) -> Attachment:
    file = session.original(*query.names)
    return Attachment.of_file(file.name, file.size, file.stream)


def slice_(session: Session, query: Query) -> Any:
    state, excerpt = session.excerpt(*query.names, query.params)
    if excerpt is None:
        return _not_ready(state, "slice", *session.find(*query.names).names)
    return Attachment(excerpt.name, "application/json", excerpt.pieces)


def _not_ready(
    state: FileState, asked: str, run: str, worker: str, span: str
) -> bodies.Pending | bodies.ErrorBody:
    """How far a file is, or why it failed."""
    if state.state == "failed" and state.error is not None:
        return bodies.ErrorBody(state.error)
    pending: Literal["loading", "waiting"] = "loading" if state.state == "loading" else "waiting"
    return bodies.Pending(pending, asked, run, worker, span, state.progress)


def _state(session: Session, target: Target) -> bodies.State:
    return bodies.State(*target.names, target.file.path, session.state(target.span))


def _span(session: Session, span: Span) -> bodies.SpanInfo:
    return bodies.SpanInfo(span.name, span.label, span.file.path, span.file.size, session.state(span))
