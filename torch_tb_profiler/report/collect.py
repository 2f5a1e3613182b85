"""Collect the answers that a report holds, as the routes give them, the most important first, up to a size."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from torch_tb_profiler.base.errors import ProfilerError
from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.http import bodies, routes
from torch_tb_profiler.http.query import SELECTORS, Query
from torch_tb_profiler.http.responses import http_status
from torch_tb_profiler.report.requests import (
    MAX_ROWS,
    PartRequest,
    initial_parts,
    memory_file_part,
    one_click_parts,
    snapshot_parts,
)
from torch_tb_profiler.session import ErrorInfo, Session
from torch_tb_profiler.view import BASE, DumpsView, RunView
from torch_tb_profiler.views import SLUGS, find_view

Names = tuple[str, str, str]
"""Run, worker, span."""

TILE_WIDTHS = (8192, 4096, 2048, 1024, 512)
"""Candidate numbers of buckets for the timeline of the entire trace; the first one that fits is used."""

ENTRY_BYTES = 32
"""Bytes reserved per answer for its punctuation and status."""


class Contents:
    """The answers in a report, as its page reads them (`fe/src/api/embedded.ts`), within `budget` bytes.

    recordings  (run, worker, span) of each trace, the main one first
    entries     (path, parameters including the names of the trace, index of the answer)
    answers     (HTTP status, body as base64 of gzip)
    left_out    sentences about what the report does not hold
    """

    def __init__(self, budget: int) -> None:
        self.recordings: list[tuple[str, str, str]] = []
        self.entries: list[tuple[str, dict[str, str], int]] = []
        self.answers: list[tuple[int, str]] = []
        self.left_out: list[str] = []
        self._bytes_left = budget

    def add(self, path: str, params: Mapping[str, str], body: Any) -> bool:
        """Add an answer; return False if it does not fit."""
        # Level 9 takes more than twice as long, for 1 to 4% fewer bytes.
        encoded = base64.b64encode(gzip.compress(msgspec.json.encode(body), 7, mtime=0)).decode()
        size = len(encoded) + len(json.dumps([path, dict(params)])) + ENTRY_BYTES
        if size > self._bytes_left:
            return False
        self._bytes_left -= size
        self.entries.append((path, dict(params), len(self.answers)))
        self.answers.append((http_status(body), encoded))
        return True

    def add_alias(self, path: str, params: Mapping[str, str]) -> None:
        """Let these parameters lead to the last answer, too."""
        self.entries.append((path, dict(params), len(self.answers) - 1))


def collect_contents(session: Session, first: Names, base: Names | None, budget: int) -> Contents:
    """Collect the answers about the trace `first` in `budget` bytes; `base` is what it is compared with.

    Reads all files of its run. Raises NotFoundError for unknown names.
    """
    contents = Contents(budget)
    contents.left_out += _list_omissions(session, first)
    collector = _Collector(session, contents)
    contents.recordings += [first, base] if base else [first]
    diff = collector.add_diff(first, base)
    compared = base if diff is None else _names(diff["base"])
    collector.add_listings([*contents.recordings, *([compared] if compared else [])])
    collector.add_tabs(first)
    if diff is not None and compared is not None:
        collector.add_parts(first, one_click_parts("diff", diff["payload"]), _base_parameters(compared))
    if base:
        collector.add_tabs(base)
    return contents


def _list_omissions(session: Session, names: Names) -> list[str]:
    """Return what no report holds, as sentences."""
    run = session.catalog.run(names[0])
    others = max(len(session.workers(run)) - 1, 0)
    spans = len(session.find(*names).worker.spans) - 1 if run.workers else 0
    unavailable = session.unavailable_views(*names) if run.workers else None
    serves = unavailable is not None and "serving" not in unavailable
    return [
        "Filters by step, device, stream or thread, search on the server, and time ranges.",
        f"Details of rows below the first {MAX_ROWS} of each table.",
        "Trace: slice details, search, totals of a selection, the critical path, Python frames, the trace file.",
        *(["Serving: sums and more detail of a stretch of iterations."] if serves else []),
        *([f"The tabs of {plural(others, 'other worker')} of the run."] if others else []),
        *([f"The tabs of {plural(spans, 'other span')} of the worker."] if spans else []),
    ]


class _Collector:
    """Requests answers from a session and adds them to the contents."""

    def __init__(self, session: Session, contents: Contents) -> None:
        self._session = session
        self._contents = contents

    def add_diff(self, names: Names, base: Names | None) -> Any:
        """Add the diff, also under the parameters that the page sends without a base; return its answer."""
        answer = self._add_view(names, PartRequest("diff", _base_parameters(base)))
        if answer is not None:
            params = {**_name_parameters(names), **_base_parameters(_names(answer["base"]))}
            self._contents.add_alias("view/diff", _name_parameters(names) if base else params)
        return answer

    def add_listings(self, recordings: Sequence[Names]) -> None:
        """Add the lists of runs, workers, spans and views that the page requests, limited to these recordings."""
        runs = routes.get_runs(self._session, Query(None, None, None, {}))
        by_name = {run.name: run for run in runs.runs}
        listed = [by_name[name] for name in dict.fromkeys(run for run, _, _ in recordings)]
        self._contents.add("runs", {}, msgspec.structs.replace(runs, runs=listed))
        for run in listed:
            query = Query(run.name, None, None, {})
            workers = _limit_workers(routes.get_workers(self._session, query), recordings)
            shown = {
                file
                for names in recordings
                if names[0] == run.name
                for file in _choose_memory_files(self._session, names)
            }
            files = [file for file in workers.memory_files if file.file in shown]
            workers = msgspec.structs.replace(workers, memory_files=files)
            self._contents.add("workers", {"run": run.name}, workers)
            self._contents.add("health", {"run": run.name}, routes.get_health(self._session, query))
        for names in self._contents.recordings:
            self._contents.add(
                "views", _name_parameters(names), routes.get_views(self._session, Query(*names, {}))
            )

    def add_tabs(self, names: Names) -> None:
        """Add all tabs of a trace, the parts they draw at first, the timeline, and the parts one click away."""
        answers = {slug: self._add_view(names, PartRequest(slug, {})) for slug in SLUGS if slug != "diff"}
        payloads = {slug: answer["payload"] for slug, answer in answers.items() if answer is not None}
        for slug, payload in payloads.items():
            self.add_parts(names, initial_parts(slug, payload))
        if "overview" not in payloads:
            # The page's first request, whose answer says why there is none.
            self._add_view(names, PartRequest("overview/preview", {}))
        files = _choose_memory_files(self._session, names) if "memory" in payloads else []
        for number in files[:1]:
            self._add_memory_file(names, number)
        if files and self._is_snapshot(names):
            self._add_view(names, PartRequest("memory/ranks", {}))
        if "trace" in payloads:
            self._add_timeline(names, payloads["trace"])
        for slug, payload in payloads.items():
            self.add_parts(names, one_click_parts(slug, payload))
        for number in files[1:]:
            self._add_memory_file(names, number)

    def _add_memory_file(self, names: Names, number: int) -> None:
        """Add a memory file of the run; of a snapshot also its segments, and what is in use at its moments."""
        file = self._session.catalog.run(names[0]).memory_files[number]
        answer = self._add_view(names, memory_file_part(number, file.kind))
        if answer is not None and file.kind == "snapshot":
            self.add_parts(names, snapshot_parts(number, answer["payload"]))

    def _is_snapshot(self, names: Names) -> bool:
        """Return whether a recording is a snapshot, one of several workers."""
        run = self._session.catalog.run(names[0])
        own = self._session.find(*names).file.path
        return len(self._session.workers(run)) > 1 and own in {each.file.path for each in run.memory_files}

    def add_parts(self, names: Names, parts: Iterable[PartRequest], more: Mapping[str, str] | None = None) -> None:
        """Add parts of views, each requested with `more` parameters, too."""
        for slug, params in parts:
            self._add_view(names, PartRequest(slug, {**(more or {}), **params}))

    def _add_timeline(self, names: Names, payload: Any) -> None:
        """Add the entire timeline at the finest width that fits.

        The page requests it by window, and without a color for the overview strip.
        """
        begin, end = payload["begin_ns"], max(payload["end_ns"], payload["begin_ns"] + 1)
        window = {"begin": str(begin), "end": str(end)}
        for slug in ("trace/tile", "trace/blame", "trace/counters"):
            color = {"color": "class"} if slug == "trace/tile" else {}
            for width in TILE_WIDTHS:
                body = self._request_body(names, PartRequest(slug, {**window, "width": str(width), **color}))
                if self._contents.add(f"view/{slug}", {**_name_parameters(names), **color}, body):
                    break
            else:
                self._contents.left_out.append(f"{slug}: too large for the report.")
                continue
            if color:
                self._contents.add_alias(f"view/{slug}", _name_parameters(names))
                resolution = msgspec.json.decode(body["payload"])["resolution_ns"]
                self._contents.left_out.append(
                    f"Trace: slices of {names[1]} in {names[0]} that begin within {format_duration(resolution)} "
                    "may be drawn as one box."
                )

    def _add_view(self, names: Names, part: PartRequest) -> Any:
        """Add the answer of a view, or its error; return the decoded answer, or None for an error."""
        body = self._request_body(names, part)
        path, params = f"view/{part.slug}", {**_name_parameters(names), **part.params}
        if isinstance(find_view(part.slug), RunView | DumpsView):
            del params["worker"]
        if not self._contents.add(path, params, body):
            shown = ", ".join(f"{name} {value}" for name, value in part.params.items())
            self._contents.left_out.append(f"{part.slug}{shown and f' ({shown})'}: too large for the report.")
        return None if isinstance(body, bodies.ErrorBody) else msgspec.json.decode(msgspec.json.encode(body))

    def _request_body(self, names: Names, part: PartRequest) -> Any:
        """Return the body of the answer of a view, or that of its error."""
        try:
            return routes.answer_body(self._session.view(part.slug, *names, part.params, wait=True))
        except ProfilerError as error:
            return bodies.ErrorBody(ErrorInfo.of(error))


def _choose_memory_files(session: Session, names: Names) -> list[int]:
    """Return the numbers of the memory files that a report about a recording holds, the most important first.

    Those are the recording's own snapshot, the files beside the traces, and the snapshots of other ranks, at most
    `MAX_ROWS` of them.
    """
    run = session.catalog.run(names[0])
    if not run.workers:
        return []
    paths = [file.file.path for file in run.memory_files]
    recordings = {span.file.path for worker in session.workers(run) for span in worker.spans}
    own = session.find(*names).file.path
    beside = [number for number, path in enumerate(paths) if path not in recordings]
    others = [number for number, path in enumerate(paths) if path in recordings and path != own]
    return [*([paths.index(own)] if own in paths else []), *beside, *others[:MAX_ROWS]]


def _names(named: Mapping[str, str]) -> Names:
    run, worker, span = (named[name] for name in SELECTORS)
    return run, worker, span


def _name_parameters(names: Names) -> dict[str, str]:
    return dict(zip(SELECTORS, names, strict=True))


def _base_parameters(base: Names | None) -> dict[str, str]:
    """Return the parameters that select this base of a diff."""
    return dict(zip(BASE, base, strict=True)) if base else {}


def _limit_workers(workers: bodies.WorkersBody, recordings: Sequence[Names]) -> bodies.WorkersBody:
    """Return the workers and spans of a run that are among the recordings."""
    spans = {(worker, span) for run, worker, span in recordings if run == workers.run}
    limited = [
        msgspec.structs.replace(each, spans=[span for span in each.spans if (each.name, span.name) in spans])
        for each in workers.workers
    ]
    return msgspec.structs.replace(workers, workers=[each for each in limited if each.spans])
