"""The answers of a report, made as the routes make them, the most important ones first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from torch_tb_profiler.base.errors import ProfilerError
from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.http import bodies, routes
from torch_tb_profiler.http.query import SELECTORS, Query
from torch_tb_profiler.report.contents import Contents
from torch_tb_profiler.report.questions import ROWS, Part, at_once, one_click
from torch_tb_profiler.session import ErrorInfo, Session
from torch_tb_profiler.view import BASE, RunView
from torch_tb_profiler.views import SLUGS, find_view

Names = tuple[str, str, str]
"""Run, worker, span."""

TILE_WIDTHS = (8192, 4096, 2048, 1024, 512)
"""Buckets of the whole timeline: as many as fit."""


def collect(session: Session, first: Names, base: Names | None, budget: int) -> Contents:
    """The answers about the trace `first`, in `budget` bytes; `base` is what it is compared with.

    All files of its run are read. Raises NotFoundError for unknown names.
    """
    contents = Contents(budget)
    contents.left_out += _never(session, first)
    collector = _Collector(session, contents)
    contents.recordings += [first, base] if base else [first]
    diff = collector.diff(first, base)
    compared = base if diff is None else _names(diff["base"])
    collector.listings([*contents.recordings, *([compared] if compared else [])])
    collector.tabs(first)
    if diff is not None and compared is not None:
        collector.parts(first, one_click("diff", diff["payload"]), _compared(compared))
    if base:
        collector.tabs(base)
    return contents


def _never(session: Session, names: Names) -> list[str]:
    """What no report holds."""
    run = session.catalog.run(names[0])
    others = len(session.workers(run)) - 1
    spans = len(session.find(*names).worker.spans) - 1
    return [
        "Filters by step, device, stream, thread or search of the server; ranges of time.",
        f"Details of rows below the first {ROWS} of each table.",
        "Trace: details of a slice, search, sums of a selection, the critical path, Python frames, the file.",
        *([f"The tabs of {plural(others, 'other worker')} of the run."] if others else []),
        *([f"The tabs of {plural(spans, 'other span')} of the worker."] if spans else []),
    ]


class _Collector:
    """Asks a session, and keeps what it answers."""

    def __init__(self, session: Session, contents: Contents) -> None:
        self._session = session
        self._contents = contents

    def diff(self, names: Names, base: Names | None) -> Any:
        """The answer of the diff, found by its base and where the page names none; None if there is no such."""
        answer = self._ask(names, Part("diff", _compared(base)))
        if answer is not None:
            asked = {**_named(names), **_compared(_names(answer["base"]))}
            self._contents.also("view/diff", _named(names) if base else asked)
        return answer

    def listings(self, recordings: Sequence[Names]) -> None:
        """What the page asks around its views: of these runs, and of each these workers and spans."""
        runs = routes.get_runs(self._session, Query(None, None, None, {}))
        known = {run.name: run for run in runs.runs}
        listed = [known[name] for name in dict.fromkeys(run for run, _, _ in recordings)]
        self._contents.put("runs", {}, msgspec.structs.replace(runs, runs=listed))
        for run in listed:
            query = Query(run.name, None, None, {})
            workers = _only(routes.get_workers(self._session, query), recordings)
            self._contents.put("workers", {"run": run.name}, workers)
            self._contents.put("health", {"run": run.name}, routes.get_health(self._session, query))
        for names in self._contents.recordings:
            self._contents.put("views", _named(names), routes.get_views(self._session, Query(*names, {})))

    def tabs(self, names: Names) -> None:
        """All tabs of a trace, then what they draw at once, the timeline, and what one click opens."""
        answers = {slug: self._ask(names, Part(slug, {})) for slug in SLUGS if slug != "diff"}
        payloads = {slug: answer["payload"] for slug, answer in answers.items() if answer is not None}
        for slug, payload in payloads.items():
            self.parts(names, at_once(slug, payload))
        if "trace" in payloads:
            self._timeline(names, payloads["trace"])
        for slug, payload in payloads.items():
            self.parts(names, one_click(slug, payload))

    def parts(self, names: Names, parts: Iterable[Part], more: Mapping[str, str] | None = None) -> None:
        for slug, params in parts:
            self._ask(names, Part(slug, {**(more or {}), **params}))

    def _timeline(self, names: Names, payload: Any) -> None:
        """The whole timeline as fine as fits; the page asks for its windows, and without a color for its strip."""
        begin, end = payload["begin_ns"], max(payload["end_ns"], payload["begin_ns"] + 1)
        window = {"begin": str(begin), "end": str(end)}
        for slug in ("trace/tile", "trace/blame", "trace/counters"):
            color = {"color": "class"} if slug == "trace/tile" else {}
            for width in TILE_WIDTHS:
                body = self._body(names, Part(slug, {**window, "width": str(width), **color}))
                if self._contents.put(f"view/{slug}", {**_named(names), **color}, body):
                    break
            else:
                self._contents.left_out.append(f"{slug}: it is too large.")
                continue
            if color:
                self._contents.also(f"view/{slug}", _named(names))
                resolution = msgspec.json.decode(body["payload"])["resolution_ns"]
                self._contents.left_out.append(
                    f"Trace: slices of {names[1]} that begin within {format_duration(resolution)} may be one box."
                )

    def _ask(self, names: Names, part: Part) -> Any:
        """Keep what a view answers, or why it does not; the answer, decoded, if it is one."""
        body = self._body(names, part)
        path, params = f"view/{part.slug}", {**_named(names), **part.params}
        if isinstance(find_view(part.slug), RunView):
            del params["worker"]
        if not self._contents.put(path, params, body):
            shown = ", ".join(f"{name} {value}" for name, value in part.params.items())
            self._contents.left_out.append(f"{part.slug}{shown and f' ({shown})'}: it is too large.")
        return None if isinstance(body, bodies.ErrorBody) else msgspec.json.decode(msgspec.json.encode(body))

    def _body(self, names: Names, part: Part) -> Any:
        try:
            return routes.answer_body(self._session.view(part.slug, *names, part.params, wait=True))
        except ProfilerError as error:
            return bodies.ErrorBody(ErrorInfo.of(error))


def _names(named: Mapping[str, str]) -> Names:
    run, worker, span = (named[name] for name in SELECTORS)
    return run, worker, span


def _named(names: Names) -> dict[str, str]:
    return dict(zip(SELECTORS, names, strict=True))


def _compared(base: Names | None) -> dict[str, str]:
    """The parameters of a diff with this base."""
    return dict(zip(BASE, base, strict=True)) if base else {}


def _only(workers: bodies.WorkersBody, recordings: Sequence[Names]) -> bodies.WorkersBody:
    """The workers and spans of a run that are among these."""
    spans = {(worker, span) for run, worker, span in recordings if run == workers.run}
    kept = [
        msgspec.structs.replace(each, spans=[span for span in each.spans if (each.name, span.name) in spans])
        for each in workers.workers
    ]
    return msgspec.structs.replace(workers, workers=[each for each in kept if each.spans])
