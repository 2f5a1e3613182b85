"""The composer: a log folder in, payloads out. The only place that joins discovery, loading and views."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

from torch_tb_profiler.analyses.timeline.excerpt import Cut, excerpt
from torch_tb_profiler.base.errors import NotFoundError, ProfilerError, TooLargeError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.discovery import Catalog, MemoryFile, Run, Sniffer, Span, Worker, build_catalog
from torch_tb_profiler.discovery.catalog import find_span, find_worker
from torch_tb_profiler.discovery.names import RANK_FOLDER
from torch_tb_profiler.executors import make_executor
from torch_tb_profiler.model.health import Note
from torch_tb_profiler.session.cutting import cut_large
from torch_tb_profiler.session.jobs import Facts
from torch_tb_profiler.session.state import ErrorInfo, FileState, HealthCounts, ProgressInfo
from torch_tb_profiler.session.store import TraceStore
from torch_tb_profiler.session.viewer import Answer, Names, Target, Viewer, lacking
from torch_tb_profiler.storage import Entry, Location, open_location
from torch_tb_profiler.view import StoredFile, parse_params

__all__ = [
    "Answer",
    "Download",
    "ErrorInfo",
    "Excerpt",
    "FileState",
    "HealthCounts",
    "Note",
    "ProgressInfo",
    "Root",
    "Session",
    "Target",
]

logger = logging.getLogger(__name__)

SETTLED_SECONDS = 3.0
"""A file that changed this recently may still be written; it is loaded once two listings agree on it."""

LEAST_MEMORY = 1 << 30
"""Bytes that a worker process gets however small the files may be: its libraries take a part of it."""


@dataclass(frozen=True)
class Root:
    """A log folder; runs of a named one carry the name in front."""

    url: str
    name: str = ""


@dataclass(frozen=True)
class Download:
    """A stored file: its name without folders, its bytes, open for reading."""

    name: str
    size: int
    stream: BinaryIO


@dataclass(frozen=True)
class Excerpt:
    """A part of a trace as JSON: a name for the file, its pieces."""

    name: str
    pieces: Iterator[bytes]


class Session:
    """Runs below some log folders. Nothing is listed or parsed before it is asked for."""

    def __init__(self, roots: Sequence[Root], settings: Settings) -> None:
        self._roots = [(root, open_location(root.url)) for root in roots]
        self._settings = settings
        self._store = TraceStore(settings, lambda: make_executor(settings.executor, worker_memory(settings)))
        self._sniffer = Sniffer()
        self._lock = threading.Lock()
        self._catalog = Catalog()
        self._identities: dict[str, str] = {}
        self._growing: frozenset[str] = frozenset()
        self._places: dict[str, Location] = {}
        self._error: ErrorInfo | None = None
        self._scanned = threading.Event()
        self._closing = threading.Event()
        self._poller: threading.Thread | None = None
        self._viewer = Viewer(self, self._store)

    # ---- runs ---------------------------------------------------------------------------------------

    @property
    def root(self) -> str:
        """The log folders, without secrets that their addresses may hold."""
        return ", ".join(place.label for _, place in self._roots)

    @property
    def scanned(self) -> bool:
        """False until the first listing is done."""
        return self._scanned.is_set()

    @property
    def error(self) -> ErrorInfo | None:
        """Why the last listing failed, None if it did not."""
        return self._error

    @property
    def catalog(self) -> Catalog:
        """The runs of the last listing."""
        return self._catalog

    def start(self) -> None:
        """List in the background, now and every few seconds, until `close`."""
        with self._lock:
            if self._poller is None:
                self._poller = threading.Thread(target=self._poll, name="profiler-poll", daemon=True)
                self._poller.start()

    def scan(self) -> Catalog:
        """List now; a folder that cannot be listed leaves its error and the runs known so far."""
        runs: list[Run] = []
        problems: list[str] = []
        places: dict[str, Location] = {}
        identities: dict[str, str] = {}
        growing: set[str] = set()
        failure: ErrorInfo | None = None
        for root, place in self._roots:
            try:
                found = place.scan()
            except ProfilerError as error:
                failure = ErrorInfo.of(error, stage="listing")
                continue
            problems += found.problems
            prefix = f"{root.name}/" if root.name else ""

            def key_of(entry: Entry, place: Location = place) -> str:
                return f"{place.uri(entry.path)}\0{entry.identity}"

            def is_trace(entry: Entry, place: Location = place) -> bool:
                key = f"{place.uri(entry.path)}\0{entry.identity}"
                return self._sniffer.is_trace(key, lambda: place.open(entry.path))

            for entry in found.entries:
                uri = place.uri(entry.path)
                identities[uri] = entry.identity
                if self._is_growing(uri, entry):
                    growing.add(key_of(entry))
            single = len(found.entries) == 1 and place.uri(found.entries[0].path) == place.label
            new = build_catalog(
                found.entries,
                root_name=place.name,
                prefix=prefix,
                single=single,
                is_trace=is_trace,
                key_of=key_of,
            )
            places.update((run.name, place) for run in new)
            runs += new
        if failure is None or runs:
            self._catalog = Catalog(tuple(sorted(runs, key=lambda run: run.name)), tuple(problems))
            self._places, self._identities, self._growing = places, identities, frozenset(growing)
        if failure is None:
            self._forget_others(identities)
        self._error = failure
        self._scanned.set()
        return self._catalog

    def _forget_others(self, identities: Mapping[str, str]) -> None:
        """Let go of what was known of files that have gone or changed."""
        self._store.keep_only({self._store.key_of(*item) for item in identities.items()})
        self._sniffer.keep_only({f"{uri}\0{identity}" for uri, identity in identities.items()})

    def _is_growing(self, uri: str, entry: Entry) -> bool:
        if self._identities.get(uri) == entry.identity or entry.mtime is None:
            return False
        import time

        return abs(time.time() - entry.mtime) < SETTLED_SECONDS

    def _poll(self) -> None:
        while not self._closing.is_set():
            try:
                self.scan()
            except Exception:  # the thread must live: the next listing may work again
                logger.exception("listing %s failed", self.root)
                self._scanned.set()
            wait = min(1.0, self._settings.poll_seconds) if self._growing else self._settings.poll_seconds
            self._closing.wait(wait)

    def workers(self, run: Run) -> tuple[Worker, ...]:
        """The workers of a run; a file that turned out to hold several ranks counts as one worker per rank."""
        expanded: list[Worker] = []
        for worker in run.workers:
            facts = [self._facts(run, span) for span in worker.spans]
            ranks = sorted({rank for fact in facts if fact is not None for rank in fact.ranks})
            if not ranks:
                own = {fact.rank for fact in facts if fact is not None and fact.rank is not None}
                rank = own.pop() if len(own) == 1 else worker.rank
                expanded.append(replace(worker, rank=rank))
                continue
            for rank in ranks:
                spans = tuple(
                    span
                    for span, fact in zip(worker.spans, facts, strict=True)
                    if fact is None or rank in fact.ranks
                )
                expanded.append(Worker(f"{worker.name}/rank{rank}", rank, spans))
        return tuple(expanded)

    def find(self, run: str | None, worker: str | None, span: str | None) -> Target:
        """Resolve names, each defaulting to the first; NotFoundError says what there is."""
        found_run = self._catalog.run(run)
        workers = self.workers(found_run)
        base = next((w for w in found_run.workers if w.name == worker), None)
        if base is not None and all(w.name != worker for w in workers):
            # The plain name of a merged file means its first rank.
            worker = next(w.name for w in workers if w.name.startswith(f"{base.name}/rank"))
        found_worker = find_worker(workers, worker)
        merged = found_worker.name not in {w.name for w in found_run.workers}
        rank = found_worker.rank if merged and _is_rank_name(found_worker.name) else None
        return Target(found_run, found_worker, find_span(found_worker, span), rank)

    # ---- files --------------------------------------------------------------------------------------

    def state(self, run: Run, span: Span) -> FileState:
        """The state of a span's file."""
        uri, identity = _split_key(span.file.key)
        return self._store.state(self._store.key_of(uri, identity))

    def health(self, run: Run, span: Span) -> tuple[Note, ...]:
        """The notes of a file that is ready, else none."""
        facts = self._facts(run, span)
        return facts.health if facts is not None else ()

    def load(self, run: Run, span: Span) -> str:
        """Ask for a span's file; returns its key at once. A growing file is left alone until it is whole."""
        place = self._places[run.name]
        uri, identity = _split_key(span.file.key)
        if span.file.key in self._growing and self._poller is not None:
            return self._store.key_of(uri, identity)
        return self._store.request(place.url, span.file.path, span.file.size, uri, identity)

    def wait(self, key: str, timeout: float | None = None) -> bool:
        """Wait until a file that was asked for by `load` is ready or failed; False if it is not yet."""
        return self._store.wait(key, timeout)

    def retry(self, run: Run, span: Span) -> None:
        """Load a failed file again."""
        uri, identity = _split_key(span.file.key)
        self._store.retry(self._store.key_of(uri, identity))
        self.load(run, span)

    def _facts(self, run: Run, span: Span) -> Facts | None:
        uri, identity = _split_key(span.file.key)
        return self._store.facts(self._store.key_of(uri, identity))

    # ---- views --------------------------------------------------------------------------------------

    def view(
        self,
        slug: str,
        run: str | None = None,
        worker: str | None = None,
        span: str | None = None,
        params: Mapping[str, str] | None = None,
        *,
        wait: bool = False,
        timeout: float | None = None,
    ) -> Answer:
        """The payload of a view, or the state of its file while it is loading or failed.

        Of a view of a run, `worker` says nothing, and what is ready is answered while the rest is loading;
        of a pair, `params` also hold what it is compared with (`view.BASE`). With `wait` all is waited for.
        Raises NotFoundError for unknown names, UsageError for unknown parameters.
        """
        return self._viewer.answer(slug, Names(run, worker, span), params or {}, wait, timeout)

    # ---- files for other tools ----------------------------------------------------------------------

    def original(self, run: str | None = None, worker: str | None = None, span: str | None = None) -> Download:
        """The file of a span as it is stored; the caller closes the stream.

        Raises NotFoundError for unknown names, StorageError if it cannot be opened.
        """
        target = self.find(run, worker, span)
        file = target.span.file
        place = self._places[target.run.name]
        size = place.entry(file.path).size  # it may have been replaced since it was listed
        return Download(file.path.rsplit("/", 1)[-1], size, place.open(file.path))

    def excerpt(
        self,
        run: str | None = None,
        worker: str | None = None,
        span: str | None = None,
        params: Mapping[str, str] | None = None,
        *,
        wait: bool = False,
        timeout: float | None = None,
    ) -> tuple[FileState, Excerpt | None]:
        """A part of a trace as a trace file of its own; None while the file is loading or if it failed.

        `params` are the fields of `analyses.excerpt.Cut` as text. Raises NotFoundError for unknown names,
        UsageError for parameters that make no sense. A file that is too large to be read whole is cut in
        passes over it, which takes minutes: only with `wait`.
        """
        cut = parse_params(Cut, params or {})
        key, target = self._viewer.ready(Names(run, worker, span), wait, timeout)
        state, trace = self._viewer.trace(key, target)
        too_large = wait and state.error is not None and state.error.code == TooLargeError.code
        if trace is None and not too_large:
            return state, None
        stem = target.span.file.path.rsplit("/", 1)[-1].removesuffix(".gz").removesuffix(".json")
        name = f"{stem.removesuffix('.pt.trace')}.slice.json"
        if trace is not None:
            return state, Excerpt(name, excerpt(trace, cut))
        place, file = self._places[target.run.name], target.span.file
        return state, Excerpt(name, cut_large(place, file.path, file.size, cut, self._settings.trace_bytes))

    def unavailable(self, target: Target) -> Mapping[str, str] | None:
        """View slug -> why there is nothing to show; None while the file is not loaded."""
        facts = self._facts(target.run, target.span)
        return None if facts is None else lacking(facts, target.run)

    def memory_file(self, run: Run, number: int) -> MemoryFile:
        """A memory file of a run by its number in the listing; NotFoundError if there is none."""
        if not 0 <= number < len(run.memory_files):
            raise NotFoundError(
                f"there is no memory file {number} in run {run.name!r}",
                hint=f"there are {len(run.memory_files)}: memory snapshots (*.pickle) and timelines (*.raw.json)",
            )
        return run.memory_files[number]

    def open_file(self, run: Run, file: MemoryFile) -> StoredFile:
        """A listed memory file; the caller closes the stream. StorageError if it cannot be opened."""
        return StoredFile(file.name, file.file.size, self._places[run.name].open(file.file.path))

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop polling and loading; worker processes end."""
        self._closing.set()
        poller, self._poller = self._poller, None
        if poller is not None and poller is not threading.current_thread():
            poller.join()
        self._store.close()


def worker_memory(settings: Settings) -> int:
    """Bytes that a worker process may take: what the largest file needs, and some more."""
    return max(3 * settings.trace_bytes, LEAST_MEMORY)


def _split_key(key: str) -> tuple[str, str]:
    uri, _, identity = key.rpartition("\0")
    return uri, identity


def _is_rank_name(name: str) -> bool:
    return bool(RANK_FOLDER.match(name.rsplit("/", 1)[-1]))
