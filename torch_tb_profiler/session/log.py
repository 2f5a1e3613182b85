"""The log folders, which are listed on request or every few seconds."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence, Set

import msgspec

from torch_tb_profiler.base.errors import NotFoundError, ProfilerError
from torch_tb_profiler.discovery import (
    Catalog,
    ListedFile,
    ListedRun,
    OtherFiles,
    Sniffer,
    arrange_runs,
    distinct_names,
    find_dumps,
    find_other_files,
    with_counter_files,
    with_dumps,
    with_origin_files,
    with_request_files,
    with_tables,
)
from torch_tb_profiler.discovery.trackers import TrackerNames
from torch_tb_profiler.session.state import ErrorInfo
from torch_tb_profiler.storage import FileEntry, FileId, Location, open_location

logger = logging.getLogger(__name__)

MIN_SETTLED_SECONDS = 3.0
"""A file that changed less than this ago may still be written; it is loaded once two listings agree on it."""

GROWING_POLL_SECONDS = 1.0
"""Longest time between two listings while a file is still being written."""


class Root(msgspec.Struct, frozen=True):
    """A log folder; if it has a name, the names of its runs begin with it."""

    url: str
    name: str = ""


class LogFolders:
    """The runs in some log folders.

    on_listed  called with all files after each listing in which every folder could be listed
    """

    def __init__(
        self, roots: Sequence[Root], poll_seconds: float, on_listed: Callable[[Set[FileId]], None]
    ) -> None:
        self._roots = [(root.name, open_location(root.url)) for root in dict.fromkeys(roots)]
        self._poll_seconds = poll_seconds
        self._on_listed = on_listed
        self._sniffer = Sniffer()
        self._trackers = TrackerNames()
        self._lock = threading.Lock()
        self._scanned = threading.Event()
        self._closing = threading.Event()
        self._changed = threading.Condition()
        self._poller: threading.Thread | None = None
        self._ids: dict[str, FileId] = {}
        self._growing: frozenset[str] = frozenset()
        self.catalog = Catalog()
        self.error: ErrorInfo | None = None

    @property
    def label(self) -> str:
        """Return the log folders, without secrets in their addresses."""
        return ", ".join(location.label for _, location in self._roots)

    @property
    def scanned(self) -> bool:
        """Return whether the first listing is complete."""
        return self._scanned.is_set()

    @property
    def holds_one_trace(self) -> bool:
        """Return whether there is one trace file in the log folders."""
        runs = self.catalog.runs
        return len(runs) == 1 and [len(worker.spans) for worker in runs[0].workers[:2]] == [1]

    def start(self) -> None:
        """List in the background, now and every few seconds, until `close`."""
        with self._lock:
            if self._poller is None:
                self._poller = threading.Thread(target=self._poll, name="profiler-poll", daemon=True)
                self._poller.start()

    def save(self, folder: str, stem: str, suffix: str, content: bytes) -> str:
        """Write a new file in a folder of the first log folder, and return where; see `Location.create`."""
        location = self._roots[0][1]
        return location.uri(location.create(folder, stem, suffix, content))

    def close(self) -> None:
        """Stop listing."""
        self._closing.set()
        with self._changed:
            poller, self._poller = self._poller, None
            self._changed.notify_all()
        if poller is not None and poller is not threading.current_thread():
            poller.join()

    def scan(self) -> Catalog:
        """List the folders now; if one can't be listed, set `error` and keep the runs that are known."""
        listings: list[tuple[str, list[ListedRun]]] = []
        problems: list[str] = []
        others: list[OtherFiles] = []
        ids: dict[str, FileId] = {}
        growing: set[str] = set()
        error: ErrorInfo | None = None
        for name, location in self._roots:
            try:
                scan = location.scan()
            except ProfilerError as problem:
                error = ErrorInfo.of(problem, stage="listing")
                continue
            problems += scan.problems
            files = [ListedFile.of(location, entry) for entry in scan.entries]
            ids.update((file.id.uri, file.id) for file in files)
            growing.update(
                file.id.uri for file, entry in zip(files, scan.entries, strict=True) if self._is_new(file, entry)
            )
            dumps = find_dumps(files, self._sniffer.is_dump)
            dumped = {dump.file.path for dump in dumps}
            files = [file for file in files if file.path not in dumped]
            files = with_tables(files, self._sniffer.is_trace, self._is_foreign)
            files = with_counter_files(files, self._sniffer.is_trace)
            files = with_origin_files(files, self._sniffer.is_trace)
            files = with_request_files(files, self._sniffer.is_trace)
            folder_runs = with_dumps(
                self._runs(location, name, files),
                dumps,
                root_name=location.name,
                prefix=f"{name}/" if name else "",
            )
            listings.append((location.label, self._trackers.name_runs(folder_runs, files)))
            others += find_other_files(files, folder_runs, self._sniffer.foreign_format)
        runs, renamed = distinct_names(listings)
        if error is None or runs:
            runs.sort(key=lambda run: (run.is_capture, run.name))
            self.catalog = Catalog(tuple(runs), (*problems, *renamed), tuple(others))
            with self._changed:
                self._ids, self._growing = ids, frozenset(growing)
                self._changed.notify_all()
        if error is None:
            listed = {*ids.values(), *(file.id for run in runs for file in run.files())}
            self._sniffer.keep_only(listed)
            self._trackers.keep_only(listed)
            self._on_listed(listed)
        self.error = error
        self._scanned.set()
        return self.catalog

    def check_listed(self, file: ListedFile) -> None:
        """Raise NotFoundError if a file is no longer in the last listing."""
        if file.id.uri not in self._ids:
            raise NotFoundError("the file is no longer in the log folder", where=file.path)

    def is_growing(self, file: ListedFile) -> bool:
        """Return whether a file may still be written; the next listing will tell."""
        if self._poller is None or not self._growing:
            return False
        parts = [file, *file.counters, *file.tables, *file.beside, *file.origins, *file.requests, *file.formats]
        return any(part.id.uri in self._growing for part in parts)

    def wait_until_complete(self, files: Sequence[ListedFile], timeout: float | None) -> None:
        """Wait until none of these files is growing, at most until `close` or for `timeout` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: not any(map(self.is_growing, files)), timeout)

    def _runs(self, location: Location, name: str, files: Sequence[ListedFile]) -> list[ListedRun]:
        return arrange_runs(
            files,
            root_name=location.name,
            prefix=f"{name}/" if name else "",
            single=len(files) == 1 and files[0].id.uri == location.label,
            is_trace=self._sniffer.is_trace,
            is_separate_run=self._sniffer.is_separate_run,
        )

    def _is_foreign(self, file: ListedFile) -> bool:
        """Return whether a file belongs to another tool by its name or its first bytes."""
        return self._sniffer.foreign_format(file) is not None

    def _is_new(self, file: ListedFile, entry: FileEntry) -> bool:
        """Return whether this content was not in the last listing and was written just now."""
        if self._ids.get(file.id.uri) == file.id or entry.mtime is None:
            return False
        return abs(time.time() - entry.mtime) < MIN_SETTLED_SECONDS

    def _poll(self) -> None:
        while not self._closing.is_set():
            try:
                self.scan()
            except Exception:  # keep the thread alive: the next listing may work again
                logger.exception("listing %s failed", self.label)
                self._scanned.set()
            pause = min(GROWING_POLL_SECONDS, self._poll_seconds) if self._growing else self._poll_seconds
            self._closing.wait(pause)
