"""The handler of each route, and the route table, the source of the application and the OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from torch_tb_profiler.analyses.timeline import ExcerptRange
from torch_tb_profiler.discovery import Catalog, Span
from torch_tb_profiler.http import bodies
from torch_tb_profiler.http.query import SELECTORS, Query
from torch_tb_profiler.http.responses import Attachment
from torch_tb_profiler.session import MAX_SAVED_BYTES, Answer, FileState, Session, Target
from torch_tb_profiler.views import all_tabs

MAX_LISTED_FILES = 20
"""Most files of one other tool that are listed by path."""


def get_runs(session: Session, query: Query) -> bodies.RunsBody:
    listed = []
    for run in session.catalog.runs:
        states = [session.state(span).state for worker in run.workers for span in worker.spans]
        counts = bodies.FileCounts(*(states.count(name) for name in ("waiting", "loading", "ready", "failed")))
        spans = max((len(worker.spans) for worker in run.workers), default=0)
        size = sum(file.size for file in (*run.files(), *(dump.file for dump in run.dumps)))
        workers, dumps = len(run.workers), len(run.dumps)
        listed.append(bodies.RunInfo(run.name, workers, spans, size, counts, dumps, run.tracker_name))
    problems = list(session.catalog.problems)
    return bodies.RunsBody(
        not session.scanned, session.error, session.root, problems, listed, _other_tools(session.catalog)
    )


def _other_tools(catalog: Catalog) -> bodies.OtherToolsInfo | None:
    if catalog.others_headline is None:
        return None
    kinds = [
        bodies.OtherFilesInfo(
            others.kind,
            others.advice,
            len(others.files),
            [file.path for file in others.files[:MAX_LISTED_FILES]],
        )
        for others in catalog.others
    ]
    return bodies.OtherToolsInfo(catalog.others_headline, kinds)


def get_workers(session: Session, query: Query) -> bodies.WorkersBody:
    run = session.catalog.run(query.run)
    listed = [
        bodies.WorkerInfo(worker.name, worker.rank, [_span_info(session, span) for span in worker.spans])
        for worker in session.workers(run)
    ]
    files = [
        bodies.MemoryFileInfo(number, file.name, file.kind, file.file.size, file.file.path)
        for number, file in enumerate(run.memory_files)
    ]
    return bodies.WorkersBody(run.name, listed, files)


def get_spans(session: Session, query: Query) -> bodies.SpansBody:
    target = session.find(*query.names)
    listed = [_span_info(session, span) for span in target.worker.spans]
    return bodies.SpansBody(target.run.name, target.worker.name, listed)


def _span_info(session: Session, span: Span) -> bodies.SpanInfo:
    return bodies.SpanInfo(span.name, span.label, span.file.path, span.file.size, session.state(span))


def get_state(session: Session, query: Query) -> bodies.StateBody:
    return _state_body(session, session.find(*query.names))


def retry_file(session: Session, query: Query) -> bodies.StateBody:
    target = session.find(*query.names)
    session.retry(target.span)
    return _state_body(session, target)


def _state_body(session: Session, target: Target) -> bodies.StateBody:
    return bodies.StateBody(*target.names, target.file.path, session.state(target.span))


def get_health(session: Session, query: Query) -> bodies.HealthBody:
    run = session.catalog.run(query.run)
    all_files = query.worker is None and query.span is None
    selected = None if all_files else session.find(*query.names)
    files = [
        bodies.FileHealthInfo(
            worker.name,
            span.name,
            span.file.path,
            span.file.size,
            session.state(span),
            list(session.health(span)),
        )
        for worker in session.workers(run)
        for span in worker.spans
        if selected is None or (selected.worker.name, selected.span.name) == (worker.name, span.name)
    ]
    return bodies.HealthBody(run.name, files)


def get_views(session: Session, query: Query) -> bodies.ViewsBody:
    reasons = session.unavailable_views(*query.names) if session.catalog.runs else None
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
    noun = session.step_noun(*query.names) if session.catalog.runs else "step"
    return bodies.ViewsBody(listed, noun)


def get_view(session: Session, query: Query, slug: str) -> Any:
    return answer_body(session.view(slug, *query.names, query.params))


def answer_body(answer: Answer) -> Any:
    """Return the body of an answer as a dict: its payload is JSON already, and its type depends on the view."""
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


def _not_ready(
    state: FileState, view: str, run: str, worker: str, span: str
) -> bodies.PendingBody | bodies.ErrorBody:
    """Return the progress of a file, or its error."""
    if state.state == "failed" and state.error is not None:
        return bodies.ErrorBody(state.error)
    pending: Literal["loading", "waiting"] = "loading" if state.state == "loading" else "waiting"
    return bodies.PendingBody(pending, view, run, worker, span, state.progress)


def save_file(session: Session, query: Query) -> bodies.SavedBody:
    return bodies.SavedBody(session.save(query.params.get("kind", ""), query.content))


def download_file(session: Session, query: Query) -> Attachment:
    file = session.original(*query.names)
    return Attachment.of_file(file.name, file.size, file.stream)


def download_slice(session: Session, query: Query) -> Any:
    state, excerpt = session.excerpt(*query.names, query.params)
    if excerpt is None:
        return _not_ready(state, "slice", *session.find(*query.names).names)
    return Attachment(excerpt.name, "application/json", excerpt.pieces)


# ---- route table ----------------------------------------------------------------------------------------

VIEW = "/view/"
"""Prefix of the paths of all views."""


@dataclass(frozen=True)
class Route:
    """One row of the route table.

    params   its query parameters, in the order of the documentation; None: those of the view in the path
    body     the type of a 200 response; `bytes` for a file
    handler  function of (session, query) that returns a body; for views of (session, query, slug)
    max_content  most bytes of the body of a request, 0 if it takes none
    """

    path: str
    method: str
    params: tuple[str, ...] | None
    body: type[Any]
    handler: Callable[..., Any]
    summary: str
    max_content: int = 0


_SLICE_PARAMS = (*SELECTORS, *ExcerptRange.__struct_fields__)

ROUTES = (
    Route("/runs", "GET", (), bodies.RunsBody, get_runs, "List all runs and how many of their files are loaded"),
    Route(
        "/workers", "GET", ("run",), bodies.WorkersBody, get_workers, "List the workers of a run and their spans"
    ),
    Route("/spans", "GET", ("run", "worker"), bodies.SpansBody, get_spans, "List the spans of a worker"),
    Route("/state", "GET", SELECTORS, bodies.StateBody, get_state, "Get the state of a file"),
    Route("/retry", "POST", SELECTORS, bodies.StateBody, retry_file, "Load a failed file again"),
    Route(
        "/health", "GET", SELECTORS, bodies.HealthBody, get_health, "List what was skipped or repaired, by file"
    ),
    Route("/views", "GET", SELECTORS, bodies.ViewsBody, get_views, "List the views and which of them a file has"),
    Route("/download", "GET", SELECTORS, bytes, download_file, "Download the file of a span as it is stored"),
    Route(
        "/save",
        "POST",
        ("kind",),
        bodies.SavedBody,
        save_file,
        "Write a table or picture of the page (kind csv, svg or png) into the log folder, as a new file",
        MAX_SAVED_BYTES,
    ),
    Route("/slice", "GET", _SLICE_PARAMS, bytes, download_slice, "Download a part of a trace as a trace file"),
    Route(
        f"{VIEW}{{slug}}", "GET", None, dict, get_view, "Get the payload of a view, or the progress of its file"
    ),
)
